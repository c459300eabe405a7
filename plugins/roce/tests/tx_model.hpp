// What the transmit data path must do, written down a second time: packets, their ICRC, a memory.
#pragma once
#include <cstring>

#include "bench.hpp"
#include "tx_frames.hpp"

namespace tx {

using bench::Bytes;

inline uint32_t OUR_IP = 0x0a000001;
enum Source { NONE, MEMORY, MAD, ZEROS };

/// Members as in `roce_pkg::tx_job_t`.
struct Job {
    uint32_t dst_ip = 0;
    uint16_t src_port = 0;
    uint8_t opcode = 0;
    bool se = false, ackreq = false, becn = false;
    uint16_t pkey = 0;
    uint32_t dqpn = 0, psn = 0;
    uint32_t ext[7] = {};
    unsigned source = NONE;
    uint64_t addr = 0;
    unsigned length = 0;
    uint8_t order = 0, slot = 0;
};

/// Puts a job into the port, the last member in the lowest bits.
template <class Port>
void set_job(Port& port, const Job& j) {
    unsigned at = 0;
    auto put = [&](uint64_t value, unsigned bits) {
        for (unsigned i = 0; i < bits; i++, at++) {
            const uint32_t bit = 1u << (at % 32);
            port[at / 32] = value >> i & 1 ? port[at / 32] | bit : port[at / 32] & ~bit;
        }
    };
    put(j.slot, 8), put(j.order, 8), put(j.length, 13), put(j.addr, 64), put(j.source, 2);
    for (int i = 6; i >= 0; i--) put(j.ext[i], 32);
    put(j.psn, 24), put(j.dqpn, 24), put(j.pkey, 16), put(j.becn, 1), put(j.ackreq, 1), put(j.se, 1), put(j.opcode, 8), put(j.src_port, 16), put(j.dst_ip, 32);
}

/// Bytes of extension headers, by the specification's names.
inline unsigned ext_bytes(uint8_t opcode) {
    enum { IMM = 4, IETH = 4, RETH = 16, AETH = 4, ATOMIC = 28, ATOMIC_ACK = 8, DETH = 8 };
    switch (opcode) {
        case 0x03: case 0x05: case 0x09: return IMM;
        case 0x16: case 0x17: return IETH;
        case 0x06: case 0x0a: case 0x0c: return RETH;
        case 0x0b: return RETH + IMM;
        case 0x0d: case 0x0f: case 0x10: case 0x11: return AETH;
        case 0x12: return AETH + ATOMIC_ACK;
        case 0x13: case 0x14: return ATOMIC;
        case 0x64: return DETH;
        default: return 0;
    }
}

inline void put_be(Bytes& b, uint64_t value, unsigned bytes) {
    while (bytes--) b.push_back(static_cast<uint8_t>(value >> (8 * bytes)));
}

/// ICRC of a packet from its IPv4 header to its pad.
inline uint32_t icrc(Bytes p) {
    for (unsigned i : {1, 8, 10, 11, 26, 27, 32}) p[i] = 0xff;
    p.insert(p.begin(), 8, 0xff);
    return bench::crc32(p.data(), p.size());
}

/// IPv4 and UDP headers as `ip-udp` writes them; checksum left 0.
inline Bytes headers(const Job& j, size_t udp_payload, uint8_t tos) {
    Bytes b;
    put_be(b, 0x45, 1), put_be(b, tos, 1), put_be(b, udp_payload + 28, 2), put_be(b, 0, 2), put_be(b, 0x4000, 2);
    put_be(b, 64, 1), put_be(b, 17, 1), put_be(b, 0, 2), put_be(b, OUR_IP, 4), put_be(b, j.dst_ip, 4);
    put_be(b, j.src_port, 2), put_be(b, 4791, 2), put_be(b, udp_payload + 8, 2), put_be(b, 0, 2);
    return b;
}

/// The UDP payload that a job must become.
inline Bytes packet(const Job& j, const Bytes& payload, uint8_t tos = 0) {
    const unsigned pad = -j.length & 3;
    Bytes p;
    put_be(p, j.opcode, 1), put_be(p, j.se << 7 | 1 << 6 | pad << 4, 1), put_be(p, j.pkey, 2);
    put_be(p, j.becn << 6, 1), put_be(p, j.dqpn, 3), put_be(p, j.ackreq << 7, 1), put_be(p, j.psn, 3);
    for (unsigned i = 0; i < ext_bytes(j.opcode) / 4; i++) put_be(p, j.ext[i], 4);
    p.insert(p.end(), payload.begin(), payload.end());
    p.insert(p.end(), pad, 0);
    Bytes whole = headers(j, p.size() + 4, tos);
    whole.insert(whole.end(), p.begin(), p.end());
    const uint32_t crc = icrc(whole);
    for (int i = 0; i < 4; i++) p.push_back(static_cast<uint8_t>(crc >> (8 * i)));
    return p;
}

/// The model's ICRC against captured frames; a changed byte must change it.
inline void prove_icrc() {
    for (const char* text : captured_frames) {
        Bytes f;
        for (size_t i = 0; text[i]; i += 2) {
            const char two[3] = {text[i], text[i + 1], 0};
            f.push_back(static_cast<uint8_t>(std::strtoul(two, nullptr, 16)));
        }
        Bytes ip(f.begin() + 14, f.end() - 4);
        uint32_t given;
        std::memcpy(&given, &f[f.size() - 4], 4);
        CHECK(icrc(ip) == given, "ICRC of a captured frame of opcode %02x: %08x, not %08x", f[42], icrc(ip), given);
        ip[33 + bench::below(ip.size() - 33)] ^= 0x10;
        CHECK(icrc(ip) != given, "ICRC does not notice a changed byte");
    }
}

/// The byte of the memory at an address.
inline uint8_t memory_byte(uint64_t addr) {
    uint64_t x = (addr + 1) * 0x9e3779b97f4a7c15ull;
    return static_cast<uint8_t>(x >> 56 ^ x >> 31);
}

inline Bytes memory_bytes(uint64_t addr, unsigned length) {
    Bytes b(length);
    for (unsigned i = 0; i < length; i++) b[i] = memory_byte(addr + i);
    return b;
}

/// Answers reads in order: `latency` cycles after the request, plus up to `jitter`; takes requests and gives beats with a chance of
/// `percent`, and is silent for `stall` cycles after every `every` beats.
template <class Dut>
struct Memory {
    Dut& d;
    unsigned bytes;
    unsigned latency = 10, jitter = 0, percent = 100, stall = 0, every = 64, burst = 16;
    /// Beats that touch these addresses come with an error.
    uint64_t bad_from = 1, bad_to = 0;
    std::function<void(uint64_t, uint64_t)> asked = [](uint64_t, uint64_t) {};

    struct Burst {
        uint64_t addr, due;
        unsigned beats;
    };
    std::deque<Burst> queue{};
    uint64_t cycle = 0, beats = 0, quiet = 0;
    bool ar_held = false, r_taken = true;
    uint64_t held_addr = 0;
    unsigned held_len = 0;

    bool idle() const { return queue.empty(); }

    void sample() {
        cycle++;
        if (ar_held) CHECK(d.arvalid && d.araddr == held_addr && d.arlen == held_len, "a request changes before it is taken");
        ar_held = d.arvalid && !d.arready;
        held_addr = d.araddr, held_len = d.arlen;
        if (d.arvalid && d.arready) {
            const uint64_t size = (d.arlen + 1ull) * bytes;
            CHECK(d.arlen < burst, "a burst of %u beats", d.arlen + 1);
            CHECK(d.araddr % bytes == 0, "an address inside a beat");
            CHECK(d.araddr / 4096 == (d.araddr + size - 1) / 4096, "a burst across 4096 bytes");
            queue.push_back({d.araddr, cycle + latency + bench::below(jitter + 1), d.arlen + 1u});
            asked(d.araddr, size);
        }
        r_taken = !d.rvalid || d.rready;
        if (d.rvalid && d.rready) {
            Burst& b = queue.front();
            b.addr += bytes;
            if (--b.beats == 0) queue.pop_front();
            if (stall && ++beats % every == 0) quiet = cycle + stall;
        }
    }

    void drive() {
        d.arready = bench::chance(percent);
        if (!r_taken) return;
        d.rvalid = !queue.empty() && queue.front().due <= cycle && quiet <= cycle && bench::chance(percent);
        const uint64_t addr = queue.empty() ? 0 : queue.front().addr;
        for (unsigned i = 0; i < bytes; i++) bench::set_byte(d.rdata, i, d.rvalid ? memory_byte(addr + i) : static_cast<uint8_t>(bench::rng()));
        d.rlast = d.rvalid && queue.front().beats == 1;
        d.rresp = d.rvalid && addr + bytes > bad_from && addr < bad_to ? 2 + bench::below(2) : 0;
    }
};

}  // namespace tx
