// Models: what the pins of a resource are soldered to.
#pragma once
#include <functional>
#include <memory>

#include "config.h"
#include "design.h"
#include "wire.h"

class Model {
public:
    virtual ~Model() = default;
    /// Time of its next action.
    virtual Time next() const { return NEVER; }
    /// At `next()`, before the design is evaluated: samples outputs as they were, drives clocks.
    virtual void before(Time) {}
    /// At `next()`, after the design was evaluated: drives inputs that follow a clock.
    virtual void after(Time) {}
    /// After every evaluation: watches outputs whose edges count.
    virtual void watch(Time) {}
    virtual bool watches() const { return false; }
    /// Reset has ended: frames may come.
    virtual void start(Time) {}
    virtual Wire* wire() { return nullptr; }
    virtual Stats* stats() { return nullptr; }
    /// Nothing more will come in by itself.
    virtual bool idle() const { return true; }
    /// All input has gone in and nothing moves any more: what is left to do before the run ends.
    virtual void finish(Time) {}
    virtual bool finished() const { return true; }
    /// What the asks of `config.h` brought.
    virtual std::vector<uint8_t> heard() const { return {}; }
    /// Value shown at exit, such as the lamps; empty = none.
    virtual std::string shown() const { return ""; }
    /// Whether somebody outside expects simulated time not to run ahead of the wall clock.
    virtual bool real_time() const { return false; }
    virtual void close() {}
};

/// The inward half of an Ethernet wire: fetches frames and gives each its place in time.
class Inlet {
public:
    Inlet(Wire& w, Time byte) : wire(w), byte_time(byte) {}
    void begin(Time now) {
        base = free_at = now;
        started = true;
    }
    /// Starts the next frame if it begins at or before `now`. A line whose symbols follow a clock puts the first one `on_edge`:
    /// it starts now, and the gap after it counts from there.
    bool take(Time now, Frame& into, Time& start, bool on_edge) {
        if (!started) return false;
        if (!have && (wire.exact() || skip-- == 0)) {
            have = wire.receive(held);
            skip = 0;
            if (have) {
                Time earliest = wire.live() ? now : wire.exact() ? (held.not_before > base ? held.not_before : base) : base + held.not_before;
                Time after_gap = free_at == base ? base : free_at + held.gap * byte_time;
                held_start = earliest > after_gap ? earliest : after_gap;
            } else {
                skip = LOOK_EVERY;
            }
        }
        if (!have || held_start > now) return false;
        start = on_edge ? now : held_start;
        into = std::move(held);
        have = false;
        free_at = start + (into.preamble + 1 + into.bytes.size()) * byte_time;
        wire.entered(start, free_at);
        return true;
    }
    bool idle() const { return !have && wire.ended(); }

private:
    /// Clock cycles between looks at a silent wire: one costs as much as ten evaluations of a small design.
    static constexpr unsigned LOOK_EVERY = 64;
    Wire& wire;
    unsigned skip = 0;
    Time byte_time, base = 0, free_at = 0, held_start = 0;
    Frame held;
    bool have = false, started = false;
};

/// A pin of a resource; `Fatal` if the top lacks it and it is needed.
Pin pin_of(Design& design, const ResourceConfig& r, const std::string& pin, bool needed = true);

std::unique_ptr<Wire> open_wire(const WireConfig& w);
std::unique_ptr<Model> make_stream(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_rgmii(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_gmii(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_mii(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_uart(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_sdram(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_axi4(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_leds(Design&, const ResourceConfig&);
std::unique_ptr<Model> make_model(Design&, const ResourceConfig&);
