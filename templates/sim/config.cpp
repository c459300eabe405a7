#include "config.h"

#include <fstream>
#include <sstream>

Config read_config(const std::string& path) {
    std::ifstream in(path);
    if (!in) throw Fatal{"GW0710", "cannot read `" + path + "`", ""};
    Config c;
    std::string line;
    auto resource = [&](const std::string& name) -> ResourceConfig& {
        for (auto& r : c.resources)
            if (r.name == name) return r;
        throw Fatal{"GW0710", "`" + path + "` names no resource `" + name + "`", ""};
    };
    while (std::getline(in, line)) {
        std::vector<std::string> f;
        std::string field;
        std::istringstream s(line);
        while (std::getline(s, field, '\t')) f.push_back(field);
        f.resize(f.size() < 8 ? 8 : f.size());
        auto number = [&](size_t i) { return static_cast<Time>(std::stoull(f[i])); };
        try {
            if (f[0] == "until") c.until = number(1);
            else if (f[0] == "drain") c.drain = number(1);
            else if (f[0] == "trace") c.trace = f[1];
            else if (f[0] == "summary") c.summary = f[1];
            else if (f[0] == "per-frame") c.per_frame = true;
            else if (f[0] == "clock") c.clocks.push_back({f[1], number(2), number(3)});
            else if (f[0] == "reset") c.resets.push_back({f[1], f[2] == "1"});
            else if (f[0] == "resource") {
                ResourceConfig r;
                r.name = f[1], r.cls = f[2], r.width = static_cast<unsigned>(number(3)), r.period = number(4), r.clock_port = f[5];
                c.resources.push_back(r);
            } else if (f[0] == "fact") resource(f[1]).facts[f[2]] = std::stoll(f[3]);
            else if (f[0] == "delay") resource(f[1]).delays_ps[f[2]] = std::stoll(f[3]);
            else if (f[0] == "regs") resource(f[1]).regs = f[2];
            else if (f[0] == "ask") {
                Ask a{{}, static_cast<size_t>(number(3))};
                for (size_t i = 0; i + 1 < f[2].size(); i += 2) a.bytes.push_back(static_cast<uint8_t>(std::stoul(f[2].substr(i, 2), nullptr, 16)));
                resource(f[1]).asks.push_back(a);
            } else if (f[0] == "wire") resource(f[1]).wire = {f[2], f[3], f[4]};
            else throw Fatal{"GW0710", "`" + path + "` has the unknown item `" + f[0] + "`", ""};
        } catch (const std::logic_error&) {
            throw Fatal{"GW0710", "`" + path + "` has the unreadable line `" + line + "`", ""};
        }
    }
    return c;
}
