// Wires: where a model's frames come from and go to.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "types.h"

class Wire {
public:
    virtual ~Wire() = default;
    /// Fetches the next frame if there is one now. Only called while the model has room.
    virtual bool receive(Frame& into) = 0;
    /// Takes a frame that the design sent; `false` = not delivered (no peer).
    virtual bool send(const Sent& frame) = 0;
    /// Whether nothing will ever come in any more.
    virtual bool ended() const { return false; }
    /// Whether simulated time must not run ahead of the wall clock.
    virtual bool live() const { return false; }
    /// Whether frames come at exact simulated times and the wire is to be asked at every opportunity.
    virtual bool exact() const { return false; }
    /// A frame of the wire's is on its way: first preamble bit, last FCS bit.
    virtual void entered(Time, Time) {}
    /// Simulated time up to which the peer lets the run go on.
    virtual Time horizon() const { return NEVER; }
    /// Waits for the peer to move the horizon; a signal ends the wait, too.
    virtual void await(Time) {}
    /// Frames that wait for the peer to take them; delivers what it can.
    virtual size_t pending() { return 0; }
    /// Descriptor to sleep on, -1 = none.
    virtual int descriptor() const { return -1; }
    virtual void close() {}
};

std::unique_ptr<Wire> open_unix(const std::string& local, const std::string& remote);
std::unique_ptr<Wire> open_tap(const std::string& interface);
std::unique_ptr<Wire> open_pcap(const std::string& in, const std::string& out);
/// `events` is the compact file that the composer expands a pattern to.
std::unique_ptr<Wire> open_pattern(const std::string& events, const std::string& out);
/// A stream socket on which the peer grants simulated time.
std::unique_ptr<Wire> open_step(const std::string& path);
/// A wire with nobody at its end.
std::unique_ptr<Wire> open_nothing();
