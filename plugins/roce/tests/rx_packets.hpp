// RoCEv2 packets as a receiver sees them, and what is right about them: independent of the hardware, proven on captured frames.
#pragma once

#include "bench.hpp"

namespace rx {

using bench::below;
using bench::Bytes;
using bench::chance;

/// Sideband of a datagram.
struct About {
    uint32_t src_ip = 0, dst_ip = 0;
    uint16_t src_port = 0, dst_port = 4791, length = 0, id = 0, checksum = 0;
    uint8_t flags = 0, tos = 0, ttl = 0;  // flags: evil 2, df 1

    static About random() {
        About a;
        a.src_ip = uint32_t(bench::rng());
        a.dst_ip = uint32_t(bench::rng());
        a.src_port = uint16_t(bench::rng());
        a.id = uint16_t(bench::rng());
        a.checksum = uint16_t(bench::rng());
        a.flags = uint8_t(below(4));
        a.tos = uint8_t(bench::rng());
        a.ttl = uint8_t(bench::rng());
        return a;
    }
};

/// A UDP payload with its sideband.
struct Datagram {
    About about;
    Bytes bytes;
    bool err = false;
};

inline uint32_t be(const Bytes& b, size_t at, size_t n) {
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) v = v << 8 | b.at(at + i);
    return v;
}
inline void put(Bytes& b, uint64_t v, size_t n) {
    while (n--) b.push_back(uint8_t(v >> (8 * n)));
}

/// The ICRC over `n` bytes of the payload.
inline uint32_t icrc(const About& a, const Bytes& payload, size_t n) {
    Bytes c(8, 0xff);
    put(c, 0x45ff, 2);
    put(c, a.length + 28u, 2);
    put(c, a.id, 2);
    put(c, uint32_t(a.flags) << 14, 2);
    put(c, 0xff11ffff, 4);
    put(c, a.src_ip, 4);
    put(c, a.dst_ip, 4);
    put(c, a.src_port, 2);
    put(c, a.dst_port, 2);
    put(c, a.length + 8u, 2);
    put(c, 0xffff, 2);
    for (size_t i = 0; i < n; i++) c.push_back(i == 4 ? 0xff : payload[i]);
    return bench::crc32(c.data(), c.size());
}

/// Sets the length, appends the ICRC.
inline void seal(Datagram& d) {
    d.about.length = uint16_t(d.bytes.size() + 4);
    const uint32_t c = icrc(d.about, d.bytes, d.bytes.size());
    for (int i = 0; i < 4; i++) d.bytes.push_back(uint8_t(c >> (8 * i)));
}

/// From an Ethernet frame.
inline Datagram from_frame(const Bytes& f) {
    Datagram d;
    About& a = d.about;
    a.src_ip = be(f, 26, 4);
    a.dst_ip = be(f, 30, 4);
    a.src_port = uint16_t(be(f, 34, 2));
    a.dst_port = uint16_t(be(f, 36, 2));
    a.length = uint16_t(be(f, 38, 2) - 8);
    a.id = uint16_t(be(f, 18, 2));
    a.checksum = uint16_t(be(f, 40, 2));
    a.flags = uint8_t(be(f, 20, 1) >> 6);
    a.tos = f[15];
    a.ttl = f[22];
    d.bytes.assign(f.begin() + 42, f.begin() + 42 + a.length);
    return d;
}

/// Bytes of extension headers by opcode: InfiniBand Architecture Specification, chapter 9.
inline size_t ext_bytes(uint8_t opcode) {
    switch (opcode) {
        case 0x03: case 0x05: case 0x09: return 4;            // ImmDt
        case 0x06: case 0x0a: case 0x0c: return 16;           // RETH
        case 0x0b: return 20;                                 // RETH, ImmDt
        case 0x0d: case 0x0f: case 0x10: case 0x11: return 4;  // AETH
        case 0x12: return 12;                                 // AETH, AtomicAckETH
        case 0x13: case 0x14: return 28;                      // AtomicETH
        case 0x16: case 0x17: return 4;                       // IETH
        case 0x64: return 8;                                  // DETH
        default: return 0;
    }
}

enum Verdict { GOOD, BAD_FRAME, MALFORMED, BAD_ICRC };

/// What a receiver has to find.
inline Verdict judge(const Datagram& d) {
    const Bytes& b = d.bytes;
    if (d.err) return BAD_FRAME;
    if (b.size() % 4 || b.size() < 16) return MALFORMED;
    if (b[0] >> 5 && b[0] != 0x64 && b[0] != 0x81) return MALFORMED;
    if (b[1] & 15) return MALFORMED;
    const size_t pad = b[1] >> 4 & 3, around = 16 + ext_bytes(b[0]) + pad;
    if (b.size() < around || b.size() - around > 4096) return MALFORMED;
    uint32_t stored = 0;
    for (int i = 0; i < 4; i++) stored |= uint32_t(b[b.size() - 4 + i]) << (8 * i);
    return icrc(d.about, b, b.size() - 4) == stored ? GOOD : BAD_ICRC;
}

inline Bytes payload(const Datagram& d) {
    const size_t from = 12 + ext_bytes(d.bytes[0]);
    return Bytes(d.bytes.begin() + long(from), d.bytes.end() - 4 - (d.bytes[1] >> 4 & 3));
}

/// A good packet with `n` bytes of payload.
inline Datagram packet(uint8_t opcode, uint32_t psn, size_t n, const Bytes* ext = nullptr) {
    Datagram d;
    d.about = About::random();
    const size_t pad = (4 - n % 4) % 4;
    put(d.bytes, opcode, 1);
    put(d.bytes, (bench::rng() & 0xc0) | pad << 4, 1);
    put(d.bytes, bench::rng(), 2);
    put(d.bytes, bench::rng(), 4);
    put(d.bytes, (bench::rng() & 0xff000000) | psn, 4);
    const Bytes e = ext ? *ext : bench::random_bytes(ext_bytes(opcode));
    d.bytes.insert(d.bytes.end(), e.begin(), e.end());
    const Bytes p = bench::random_bytes(n + pad);
    d.bytes.insert(d.bytes.end(), p.begin(), p.end());
    seal(d);
    return d;
}

}  // namespace rx
