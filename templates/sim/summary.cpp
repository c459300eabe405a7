#include "summary.h"

#include <cstdio>

namespace {
std::string quoted(const std::string& s) {
    std::string r = "\"";
    for (unsigned char c : s) {
        if (c == '"' || c == '\\') r += '\\', r += static_cast<char>(c);
        else if (c < 0x20) {
            char b[8];
            std::snprintf(b, sizeof b, "\\u%04x", c);
            r += b;
        } else r += static_cast<char>(c);
    }
    return r + "\"";
}
std::string num(uint64_t v) { return std::to_string(v); }

std::string latency(const Stats& s, bool per_frame) {
    // The n-th good frame out answers the n-th good frame in: true of everything that answers in order, and only then.
    if (s.in_end.empty() || s.in_end.size() != s.out_first.size()) return "null";
    double sum = 0;
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    std::string all;
    for (size_t i = 0; i < s.in_end.size(); i++) {
        int64_t d = static_cast<int64_t>(s.out_first[i]) - static_cast<int64_t>(s.in_end[i]);
        lo = d < lo ? d : lo, hi = d > hi ? d : hi;
        sum += static_cast<double>(d);
        if (per_frame) all += (i ? "," : "") + std::to_string(d);
    }
    std::string r = "{\"min_fs\":" + std::to_string(lo) + ",\"max_fs\":" + std::to_string(hi) +
                    ",\"mean_fs\":" + std::to_string(static_cast<int64_t>(sum / static_cast<double>(s.in_end.size())));
    return r + ",\"frames_fs\":[" + all + "]}";
}
}  // namespace

uint64_t Summary::violations() const {
    uint64_t n = 0;
    for (auto& r : resources) n += r.stats ? r.stats->violations : 0;
    return n;
}

bool write_summary(const Summary& s, const std::string& path, bool per_frame) {
    std::string o = "{\"time_fs\":" + num(s.time) + ",\"evals\":" + num(s.evals) + ",\"wall_seconds\":" + std::to_string(s.wall_seconds) +
                    ",\"ended_by\":" + quoted(s.ended_by) + ",\"errors\":[";
    for (size_t i = 0; i < s.errors.size(); i++) {
        auto& e = s.errors[i];
        o += (i ? "," : "") + ("{\"code\":" + quoted(e.code)) + ",\"message\":" + quoted(e.message) + ",\"help\":" + quoted(e.help) + "}";
    }
    o += "],\"resources\":[";
    bool first = true;
    for (auto& r : s.resources) {
        o += first ? "\n" : ",\n";
        first = false;
        o += "{\"name\":" + quoted(r.name) + ",\"class\":" + quoted(r.cls) + ",\"shown\":" + quoted(r.shown) + ",\"heard\":[";
        for (size_t i = 0; i < r.heard.size(); i++) o += (i ? "," : "") + num(r.heard[i]);
        o += "],\"wire\":";
        if (!r.stats) {
            o += "null}";
            continue;
        }
        const Stats& t = *r.stats;
        o += "{\"frames_in\":" + num(t.frames_in) + ",\"good_in\":" + num(t.good_in) + ",\"bytes_in\":" + num(t.bytes_in) +
             ",\"dropped_in\":" + num(t.dropped_in) + ",\"frames_out\":" + num(t.frames_out) + ",\"bytes_out\":" + num(t.bytes_out) +
             ",\"bad_out\":" + num(t.bad_out) + ",\"short_gaps\":" + num(t.short_gaps) + ",\"underruns\":" + num(t.underruns) +
             ",\"undelivered\":" + num(t.undelivered) + ",\"window_violations\":" + num(t.violations) + ",\"violations\":[";
        for (size_t i = 0; i < t.first_violations.size(); i++) o += (i ? "," : "") + quoted(t.first_violations[i]);
        o += "],\"backlog\":[";
        for (size_t i = 0; i < t.backlog.size(); i++)
            o += (i ? "," : "") + ("[" + num(t.backlog[i].first)) + "," + std::to_string(t.backlog[i].second) + "]";
        o += "],\"latency\":" + latency(t, per_frame) + "}}";
    }
    o += "]}\n";
    FILE* f = path.empty() ? stdout : std::fopen(path.c_str(), "w");
    if (!f) return false;
    bool ok = std::fwrite(o.data(), 1, o.size(), f) == o.size();
    if (f != stdout) ok = std::fclose(f) == 0 && ok;
    return ok;
}
