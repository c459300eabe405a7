#include "types.h"

#include <array>
#include <cstdio>

static std::array<std::array<uint32_t, 256>, 4> make_tables() {
    std::array<std::array<uint32_t, 256>, 4> t{};
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 4; k++) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 0xff];
    return t;
}

uint32_t crc32(const uint8_t* p, size_t n) {
    static const auto t = make_tables();
    uint32_t c = 0xffffffffu;
    for (; n >= 4; n -= 4, p += 4) {
        uint32_t w;
        std::memcpy(&w, p, 4);
        c ^= w;
        c = t[3][c & 0xff] ^ t[2][c >> 8 & 0xff] ^ t[1][c >> 16 & 0xff] ^ t[0][c >> 24];
    }
    for (; n; n--, p++) c = c >> 8 ^ t[0][(c ^ *p) & 0xff];
    return ~c;
}

bool fcs_good(const std::vector<uint8_t>& b) {
    if (b.size() < 5) return false;
    uint32_t have, want = crc32(b.data(), b.size() - 4);
    std::memcpy(&have, b.data() + b.size() - 4, 4);
    return have == want;
}

void pad_and_seal(std::vector<uint8_t>& b) {
    if (b.size() < 60) b.resize(60, 0);
    uint32_t c = crc32(b.data(), b.size());
    for (int i = 0; i < 4; i++) b.push_back(static_cast<uint8_t>(c >> 8 * i));
}

std::string show(Time t) {
    char s[48];
    if (t < 1000000000ull) std::snprintf(s, sizeof s, "%.3f ns", static_cast<double>(t) * 1e-6);
    else std::snprintf(s, sizeof s, "%llu.%06llu us", static_cast<unsigned long long>(t / 1000000000u),
                       static_cast<unsigned long long>(t % 1000000000u / 1000u));
    return s;
}

void Stats::came_in(const Frame& f, bool good, Time end) {
    frames_in++;
    bytes_in += f.bytes.size() > 4 ? f.bytes.size() - 4 : 0;
    last_activity = end;
    if (!good) return;
    good_in++;
    in_end.push_back(end);
    uint64_t n = good_in;
    if (n == 1 || n == 10 || n == 100 || n % 1000 == 0)
        backlog.emplace_back(n, static_cast<int64_t>(n) - static_cast<int64_t>(out_first.size()));
}

void Stats::went_out(const Sent& s) {
    frames_out++;
    bytes_out += s.bytes.size();
    if (s.end > last_activity) last_activity = s.end;
    if (s.good) out_first.push_back(s.first_byte);
    else bad_out++;
}

void Stats::violation(const std::string& text) {
    violations++;
    if (first_violations.size() < 8) first_violations.push_back(text);
}
