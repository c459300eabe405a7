// What the composer writes for a run: one item a line, fields separated by tabs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "types.h"

struct ClockConfig {
    std::string port;
    Time period, phase;
};
struct ResetConfig {
    std::string port;
    bool active_low;
};
struct WireConfig {
    std::string kind, a, b;
};
/// Bytes for a serial line, and how many come back.
struct Ask {
    std::vector<uint8_t> bytes;
    size_t answer;
};
struct ResourceConfig {
    std::string name, cls, clock_port;
    unsigned width = 0;
    Time period = 0;
    std::map<std::string, int64_t> facts;
    std::map<std::string, int64_t> delays_ps;
    WireConfig wire;
    /// Stream socket that carries the bytes of a serial line; empty = none.
    std::string regs;
    /// What is asked over a serial line once all input has gone in.
    std::vector<Ask> asks;
    int64_t fact(const std::string& key, int64_t otherwise) const {
        auto i = facts.find(key);
        return i == facts.end() ? otherwise : i->second;
    }
    Time delay(const std::string& pin) const {
        auto i = delays_ps.find(pin);
        return i == delays_ps.end() ? 0 : static_cast<Time>(i->second) * 1000u;
    }
};
struct Config {
    Time until = NEVER, drain = 0;
    std::string trace, summary;
    bool per_frame = false;
    std::vector<ClockConfig> clocks;
    std::vector<ResetConfig> resets;
    std::vector<ResourceConfig> resources;
};

Config read_config(const std::string& path);
