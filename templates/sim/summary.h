// What a run found, as JSON for the composer.
#pragma once
#include <string>
#include <vector>

#include "types.h"

struct ResourceSummary {
    std::string name, cls;
    const Stats* stats;
    std::string shown;
    std::vector<uint8_t> heard;
};
struct Summary {
    Time time = 0;
    uint64_t evals = 0;
    double wall_seconds = 0;
    std::string ended_by;
    std::vector<ResourceSummary> resources;
    std::vector<Fatal> errors;
    uint64_t violations() const;
};

/// To `path`, or to stdout where it is empty. `per_frame` adds the latency of every frame.
bool write_summary(const Summary& s, const std::string& path, bool per_frame);
