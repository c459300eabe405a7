// What a bench of one module needs: clocks, checks, a seed. The module under test is `Vdut`.
//
// A bench prints `seed N` first and `ok WHAT` or `FAIL FILE:LINE: ...` per check; it replays a seed given in GATEWEAVE_SEED.
#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "Vdut.h"
#include "verilated.h"

namespace bench {

inline std::mt19937_64 rng;
inline int failures = 0;
inline uint64_t now_ps = 0;

/// Random number below `n`.
inline uint64_t below(uint64_t n) { return n < 2 ? 0 : rng() % n; }

/// 1 with a chance of `percent`.
inline bool chance(unsigned percent) { return below(100) < percent; }

inline void begin(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    const char* given = std::getenv("GATEWEAVE_SEED");
    const uint64_t seed = given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    rng.seed(seed);
    // Flip-flops without a reset start with random values.
    Verilated::randReset(2);
    Verilated::randSeed(static_cast<int>(seed & 0x7fffffff) | 1);
}

inline void fail(const char* file, int line, const char* format, ...) {
    std::printf("FAIL %s:%d at %llu ps: ", file, line, static_cast<unsigned long long>(now_ps));
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
    if (++failures >= 10) std::exit(1);
}

/// Says that a part of the bench has passed, if nothing has failed.
inline void ok(const char* what) {
    if (failures == 0) std::printf("ok %s\n", what);
}

inline int end() { return failures ? 1 : 0; }

/// The module and its clocks, with time in ps.
template <class Dut = Vdut>
struct Sim {
    struct Clock {
        uint8_t* pin;
        uint64_t half, next;
        std::function<void()> sample, drive;
    };
    Dut dut;
    std::vector<Clock> clocks;

    /// Adds a clock. Just before each rising edge `sample` sees the outputs; after it `drive` sets the inputs.
    void clock(uint8_t& pin, uint64_t period, std::function<void()> sample, std::function<void()> drive, uint64_t phase = 0) {
        pin = 0;
        clocks.push_back({&pin, period / 2, now_ps + phase + period / 2, std::move(sample), std::move(drive)});
    }

    /// To the next edge of any clock.
    void step() {
        uint64_t next = UINT64_MAX;
        for (auto& c : clocks) next = std::min(next, c.next);
        now_ps = next;
        std::vector<Clock*> rising;
        for (auto& c : clocks)
            if (c.next == next && !*c.pin) rising.push_back(&c);
        for (auto* c : rising)
            if (c->sample) c->sample();
        for (auto& c : clocks)
            if (c.next == next) {
                *c.pin ^= 1;
                c.next += c.half;
            }
        dut.eval();
        for (auto* c : rising)
            if (c->drive) c->drive();
        dut.eval();
    }

    void run(uint64_t ps) {
        const uint64_t stop = now_ps + ps;
        while (now_ps < stop) step();
    }

    /// Runs until `condition` or for at most `ps`; false when it ran out.
    template <class Condition>
    bool until(uint64_t ps, Condition condition) {
        const uint64_t stop = now_ps + ps;
        while (!condition()) {
            if (now_ps >= stop) return false;
            step();
        }
        return true;
    }
};

/// Ports of any width as bytes, the lowest first: Verilator has integers up to 64 bits and arrays of words above.
template <class Port>
inline uint8_t get_byte(const Port& port, unsigned i) {
    if constexpr (std::is_integral_v<Port>) return static_cast<uint8_t>(static_cast<uint64_t>(port) >> (8 * i));
    else return static_cast<uint8_t>(port[i / 4] >> (8 * (i % 4)));
}

template <class Port>
inline void set_byte(Port& port, unsigned i, uint8_t value) {
    if constexpr (std::is_integral_v<Port>) {
        port = static_cast<Port>((static_cast<uint64_t>(port) & ~(0xffull << (8 * i))) | static_cast<uint64_t>(value) << (8 * i));
    } else {
        port[i / 4] = (port[i / 4] & ~(0xffu << (8 * (i % 4)))) | static_cast<uint32_t>(value) << (8 * (i % 4));
    }
}

using Bytes = std::vector<uint8_t>;

inline Bytes random_bytes(size_t n) {
    Bytes b(n);
    for (auto& x : b) x = static_cast<uint8_t>(rng());
    return b;
}

/// CRC-32 of Ethernet.
inline uint32_t crc32(const uint8_t* p, size_t n) {
    uint32_t c = ~0u;
    while (n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
    }
    return ~c;
}

/// One packet of a packets stream.
struct Packet {
    Bytes bytes;
    bool err = false;
    uint64_t user = 0;
    bool operator==(const Packet& o) const { return err == o.err && user == o.user && (err || bytes == o.bytes); }
};

/// Sends packets into the ports of a stream; `percent` is the chance of a beat per cycle.
template <class Data, class Keep>
struct Source {
    Data& data;
    Keep& keep;
    uint8_t &last, &err, &valid, &ready;
    unsigned bytes_per_beat;
    unsigned percent = 100;
    std::function<void(uint64_t)> user = [](uint64_t) {};
    std::deque<Packet> queue{};
    size_t at = 0, sent = 0;
    bool offered = false, accepted = false;

    void sample() { accepted = valid && ready; }
    void drive() {
        if (accepted || !offered) {
            if (accepted) {
                at += bytes_per_beat;
                if (at >= queue.front().bytes.size()) {
                    queue.pop_front();
                    at = 0;
                    sent++;
                }
            }
            offered = !queue.empty() && chance(percent);
            accepted = false;
            valid = offered;
            if (!offered) return;
            const Packet& p = queue.front();
            const size_t n = std::min<size_t>(bytes_per_beat, p.bytes.size() - at);
            for (unsigned i = 0; i < bytes_per_beat; i++) set_byte(data, i, i < n ? p.bytes[at + i] : static_cast<uint8_t>(rng()));
            for (unsigned i = 0; i < (bytes_per_beat + 7) / 8; i++) {
                const unsigned left = n > 8 * i ? static_cast<unsigned>(n - 8 * i) : 0;
                set_byte(keep, i, left >= 8 ? 0xff : static_cast<uint8_t>((1u << left) - 1));
            }
            last = at + n >= p.bytes.size();
            err = last ? p.err : chance(50);
            user(p.user);
        }
    }
};

/// Takes packets from the ports of a stream and checks that `keep` is as the contract says.
template <class Data, class Keep>
struct Sink {
    Data& data;
    Keep& keep;
    uint8_t &last, &err, &valid, &ready;
    unsigned bytes_per_beat;
    unsigned percent = 100;
    std::function<uint64_t()> user = [] { return 0; };
    std::vector<Packet> got{};
    Packet open{};
    size_t beats = 0;
    bool held = false;
    Bytes held_data{};

    void sample() {
        if (held && !valid) fail("sink", 0, "valid fell before ready");
        held = valid && !ready;
        if (!valid || !ready) return;
        unsigned n = 0;
        bool gap = false;
        for (unsigned i = 0; i < bytes_per_beat; i++) {
            const bool k = get_byte(keep, i / 8) >> (i % 8) & 1;
            if (k && gap) fail("sink", 0, "keep has a hole");
            gap |= !k;
            if (k) {
                open.bytes.push_back(get_byte(data, i));
                n++;
            }
        }
        if (!last && n != bytes_per_beat) fail("sink", 0, "a beat before the last has %u of %u bytes", n, bytes_per_beat);
        if (last && n == 0 && beats) fail("sink", 0, "an empty beat ends a packet that has bytes");
        if (beats && open.user != user()) fail("sink", 0, "user changes in a packet");
        open.user = user();
        beats++;
        if (last) {
            open.err = err;
            got.push_back(open);
            open = {};
            beats = 0;
        }
    }
    void drive() { ready = chance(percent); }
};

template <class Data, class Keep>
Source<Data, Keep> source(Data& d, Keep& k, uint8_t& l, uint8_t& e, uint8_t& v, uint8_t& r, unsigned b) { return {d, k, l, e, v, r, b}; }
template <class Data, class Keep>
Sink<Data, Keep> sink(Data& d, Keep& k, uint8_t& l, uint8_t& e, uint8_t& v, uint8_t& r, unsigned b) { return {d, k, l, e, v, r, b}; }

}  // namespace bench

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) bench::fail(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
