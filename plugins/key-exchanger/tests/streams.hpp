// Streams of words between a module and a bench, as in the kinds `rdma`, `rdma_cm` and `rdma_keys`.
#pragma once

#include "bench.hpp"

namespace world {

using bench::below;
using bench::Bytes;
using bench::chance;

inline void put32(Bytes& b, uint64_t v) {
    for (int k = 24; k >= 0; k -= 8) b.push_back(uint8_t(v >> k));
}
inline uint32_t get32(const Bytes& b, size_t at) { return uint32_t(b[at]) << 24 | uint32_t(b[at + 1]) << 16 | uint32_t(b[at + 2]) << 8 | b[at + 3]; }

/// Words to the module.
struct Feed {
    uint32_t& data;
    uint8_t &last, &valid, &ready;
    std::deque<std::pair<uint32_t, bool>> words{};
    bool taken = false;
    std::function<void()> ended = [] {};

    void give(const std::vector<uint32_t>& record) {
        for (size_t i = 0; i < record.size(); i++) words.push_back({record[i], i + 1 == record.size()});
    }
    void sample() { taken = valid && ready; }
    void drive(unsigned percent) {
        if (taken) {
            if (words.front().second) ended();
            words.pop_front();
            valid = 0;
        }
        taken = false;
        if (!valid && !words.empty() && chance(percent)) valid = 1;
        data = valid ? words.front().first : uint32_t(bench::rng());
        last = valid ? words.front().second : uint8_t(below(2));
    }
};

/// Words from the module.
struct Drain {
    uint32_t& data;
    uint8_t &last, &valid, &ready;
    std::vector<uint32_t> record{};
    std::function<void(const std::vector<uint32_t>&)> whole{};
    uint32_t held = 0;
    bool waiting = false;

    void sample() {
        if (waiting) CHECK(valid && data == held, "a word changed while it waited");
        waiting = valid && !ready;
        held = data;
        if (!valid || !ready) return;
        record.push_back(data);
        if (last) {
            whole(record);
            record.clear();
        }
    }
    void drive(unsigned percent) { ready = chance(percent); }
};

}  // namespace world
