// Frames as bytes on a line with preamble, SFD, FCS and gaps: what MII, GMII and RGMII carry.
#pragma once
#include "model.h"

/// What a line carries in one byte time.
struct Symbol {
    uint8_t data = 0;
    bool valid = false, error = false;
};

/// Towards the design: one symbol per byte time.
class LineIn {
public:
    LineIn(Inlet& i, Stats& s) : inlet(i), counts(s) {}
    Symbol next(Time now);
    bool active() const { return busy; }

private:
    Inlet& inlet;
    Stats& counts;
    Frame frame;
    bool busy = false;
    size_t at = 0;
};

/// From the design: one symbol per byte time.
class LineOut {
public:
    LineOut(Wire& w, Stats& s, Time byte) : wire(w), counts(s), byte_time(byte) {}
    void put(Time now, Symbol s);

private:
    void finish(Time now);
    Wire& wire;
    Stats& counts;
    Time byte_time;
    std::vector<uint8_t> bytes;
    bool error = false;
    Time start = 0, ended = 0;
    uint64_t gap = 1000;
};
