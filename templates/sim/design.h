// The Verilated design, as the harness sees it.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "types.h"

class Design {
public:
    virtual ~Design() = default;
    virtual void eval() = 0;
    /// Opens a trace; the extension was decided when the simulator was built.
    virtual void trace_open(const std::string& path) = 0;
    /// Records the state at `t`.
    virtual void dump(Time t) = 0;
    virtual void close() = 0;

    std::map<std::string, Pin> pins;
    bool traced = false;
};

/// Defined in the generated binding.
std::unique_ptr<Design> make_design();
