// Time, pins, frames: what models and wires agree on.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

/// Simulated time in femtoseconds; 64 bits last for five hours.
using Time = uint64_t;
constexpr Time NEVER = std::numeric_limits<Time>::max();

/// A port of the Verilated top. Its storage is 1, 2, 4 or 8 bytes, or an array of
/// 32-bit words, always little endian, so byte 0 holds bits 7:0.
struct Pin {
    uint8_t* at = nullptr;
    /// Bits of the storage, at least those of the port.
    unsigned bits = 0;

    explicit operator bool() const { return at != nullptr; }
    unsigned storage() const { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : (bits + 31) / 32 * 4; }
    /// The lowest 64 bits.
    uint64_t get() const {
        uint64_t v = 0;
        std::memcpy(&v, at, storage() < 8 ? storage() : 8);
        return v;
    }
    /// For ports of at most 64 bits.
    void set(uint64_t v) const { std::memcpy(at, &v, storage() < 8 ? storage() : 8); }
    /// Sets all bytes: `n` from `data`, the rest 0. Bits above the width stay 0 because widths are multiples of 8.
    void set_bytes(const uint8_t* data, unsigned n) const {
        std::memcpy(at, data, n);
        std::memset(at + n, 0, storage() - n);
    }
    /// Sets the lowest `n` bits, clears the rest.
    void set_ones(unsigned n) const {
        std::memset(at, 0, storage());
        std::memset(at, 0xff, n / 8);
        if (n % 8) at[n / 8] = static_cast<uint8_t>((1u << (n % 8)) - 1);
    }
    /// Number of ones from bit 0 up to the first zero.
    unsigned ones() const {
        unsigned n = 0;
        while (n < bits && (at[n / 8] >> (n % 8) & 1)) n++;
        return n;
    }
};

/// A frame on its way into the design.
struct Frame {
    /// All that is on the wire between SFD and the end, FCS included.
    std::vector<uint8_t> bytes;
    /// Earliest time of the first preamble bit; 0 = as soon as the wire allows.
    Time not_before = 0;
    /// Bytes of 0x55 before the SFD; the standard has 7.
    unsigned preamble = 7;
    uint8_t sfd = 0xd5;
    /// Bytes of idle before the preamble; the standard has 12.
    unsigned gap = 12;
    /// Byte at which rx_er is raised (from the first after the SFD), -1 = none.
    int64_t error_at = -1;
};

/// What came out of the design.
struct Sent {
    /// From SFD to FCS exclusive. `good` tells whether the FCS was right.
    std::vector<uint8_t> bytes;
    uint8_t fcs[4] = {0, 0, 0, 0};
    bool good = true;
    /// First bit of the preamble.
    Time start = 0;
    /// First byte after the SFD.
    Time first_byte = 0;
    Time end = 0;
};

/// Ethernet's CRC-32 over `n` bytes; the FCS is its four bytes, lowest first.
uint32_t crc32(const uint8_t* data, size_t n);
/// Whether the last four bytes are the FCS of those before them.
bool fcs_good(const std::vector<uint8_t>& bytes);
/// Pads to 60 bytes and adds the FCS.
void pad_and_seal(std::vector<uint8_t>& bytes);
/// Text of a time, such as `1.234567 us`.
std::string show(Time t);

/// Ends the run with a message of its own page in docs/errors.
struct Fatal {
    std::string code, message, help;
};

/// Counters of one resource; the names are those of the summary.
struct Stats {
    uint64_t frames_in = 0, good_in = 0, bytes_in = 0, dropped_in = 0;
    uint64_t frames_out = 0, bytes_out = 0, bad_out = 0, short_gaps = 0, underruns = 0;
    uint64_t undelivered = 0;
    uint64_t violations = 0;
    std::vector<std::string> first_violations;
    /// Good frames: time of the last byte in, in order.
    std::vector<Time> in_end;
    /// Good frames out: time of the first byte, in order.
    std::vector<Time> out_first;
    /// After so many good frames in, so many were not yet answered.
    std::vector<std::pair<uint64_t, int64_t>> backlog;
    Time last_activity = 0;

    void came_in(const Frame& f, bool good, Time end);
    void went_out(const Sent& s);
    void violation(const std::string& text);
};
