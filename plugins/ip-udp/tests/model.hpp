// What an IPv4 host must do with a frame, written independently of the HDL: the benches compare against it.
#pragma once
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace net {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t OUR_MAC = 0x024757000001ull;
constexpr uint32_t OUR_IP  = 0xc0a80702;
constexpr uint32_t GATEWAY = 0xc0a807fe;
constexpr uint64_t PEER_MAC = 0x525400123456ull;
constexpr uint32_t PEER_IP = 0xc0a80701;

// Bits of `rx_event`.
enum Event {
    NO_PORT, ICMP_BAD, UDP_CHECKSUM, PROTOCOL, FRAGMENT, IP_OPTION, IP_CHECKSUM, OTHER, ETHERTYPE, VLAN, BAD_LENGTH, BAD_FRAME, ARP, ICMP, UDP
};

inline void put(Bytes& b, uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; i--) b.push_back(uint8_t(value >> (8 * i)));
}
inline void set16(Bytes& b, size_t at, uint16_t v) { b[at] = uint8_t(v >> 8); b[at + 1] = uint8_t(v); }
inline uint32_t get(const Bytes& b, size_t at, int bytes) {
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | b[at + i];
    return v;
}
inline uint32_t add(const Bytes& b, size_t from, size_t to, uint32_t sum = 0) {
    for (size_t i = from; i < to; i++) sum += (i - from) % 2 ? b[i] : b[i] << 8;
    return sum;
}
inline uint16_t fold(uint32_t s) {
    while (s >> 16) s = (s & 0xffff) + (s >> 16);
    return uint16_t(s);
}

inline Bytes ethernet(uint64_t dst, uint64_t src, uint16_t type) {
    Bytes b;
    put(b, dst, 6); put(b, src, 6); put(b, type, 2);
    return b;
}

struct Ip {
    uint64_t dmac = OUR_MAC, smac = PEER_MAC;
    uint32_t src = PEER_IP, dst = OUR_IP;
    uint8_t proto = 17, ttl = 64, tos = 0;
    uint16_t id = 0x1234, flags = 0x4000;
};

inline Bytes ip(const Ip& h, const Bytes& body) {
    Bytes b = ethernet(h.dmac, h.smac, 0x0800);
    b.push_back(0x45); b.push_back(h.tos);
    put(b, 20 + body.size(), 2); put(b, h.id, 2); put(b, h.flags, 2);
    b.push_back(h.ttl); b.push_back(h.proto);
    put(b, 0, 2); put(b, h.src, 4); put(b, h.dst, 4);
    set16(b, 24, uint16_t(~fold(add(b, 14, 34))));
    b.insert(b.end(), body.begin(), body.end());
    return b;
}
inline void fix_ip(Bytes& b) {
    set16(b, 24, 0);
    set16(b, 24, uint16_t(~fold(add(b, 14, 34))));
}

inline Bytes udp(const Ip& h, uint16_t sport, uint16_t dport, const Bytes& data, bool checksum = true) {
    Bytes u;
    put(u, sport, 2); put(u, dport, 2); put(u, 8 + data.size(), 2); put(u, 0, 2);
    u.insert(u.end(), data.begin(), data.end());
    if (checksum) {
        uint32_t pseudo = (h.src >> 16) + (h.src & 0xffff) + (h.dst >> 16) + (h.dst & 0xffff) + 17 + uint32_t(u.size());
        uint16_t c = uint16_t(~fold(add(u, 0, u.size(), pseudo)));
        set16(u, 6, c ? c : 0xffff);
    }
    return ip(h, u);
}

inline Bytes ping(Ip h, uint16_t ident, uint16_t number, const Bytes& data, uint8_t type = 8, uint8_t code = 0) {
    h.proto = 1;
    Bytes p{type, code};
    put(p, 0, 2); put(p, ident, 2); put(p, number, 2);
    p.insert(p.end(), data.begin(), data.end());
    set16(p, 2, uint16_t(~fold(add(p, 0, p.size()))));
    return ip(h, p);
}

inline Bytes arp(uint64_t dmac, uint16_t op, uint64_t sha, uint32_t spa, uint64_t tha, uint32_t tpa) {
    Bytes b = ethernet(dmac, sha, 0x0806);
    put(b, 0x0001080006040000ull | op, 8);
    put(b, sha, 6); put(b, spa, 4); put(b, tha, 6); put(b, tpa, 4);
    return b;
}

inline Bytes pad(Bytes b, uint8_t fill = 0) {
    while (b.size() < 60) b.push_back(fill);
    return b;
}

struct Datagram {
    uint32_t src_ip = 0, dst_ip = 0;
    uint16_t src_port = 0, dst_port = 0, id = 0, checksum = 0;
    bool evil = false, df = false;
    uint8_t tos = 0, ttl = 0;
    Bytes data;
    bool err = false;
    bool operator==(const Datagram& o) const {
        return src_ip == o.src_ip && dst_ip == o.dst_ip && src_port == o.src_port && dst_port == o.dst_port && id == o.id
            && checksum == o.checksum && evil == o.evil && df == o.df && tos == o.tos && ttl == o.ttl && data == o.data && err == o.err;
    }
};

struct Verdict {
    Event event = OTHER;
    // ICMP and ARP: the answer. UDP: what client `client` is given; may be given with err = true for UDP_CHECKSUM and BAD_FRAME.
    std::optional<Bytes> answer;
    int client = -1;
    Datagram datagram;
};

struct Host {
    size_t mtu = 1500;
    int clients = 1;
    int other = -1; // client of all other ports
    std::map<int, std::pair<uint32_t, uint64_t>> cache; // index -> host, MAC

    std::optional<uint64_t> lookup(uint32_t host) const {
        auto i = cache.find(int(host & 15));
        if (i == cache.end() || i->second.first != (host & 255)) return std::nullopt;
        return i->second.second;
    }

    // `bad` = wrong FCS.
    Verdict hear(const Bytes& f, bool bad) {
        Verdict v;
        if (bad) { v.event = BAD_FRAME; return v; }
        if (f.size() < 42) { v.event = BAD_LENGTH; return v; }
        uint64_t dmac = uint64_t(get(f, 0, 2)) << 32 | get(f, 2, 4);
        bool us = dmac == OUR_MAC, all = dmac == 0xffffffffffffull;
        uint16_t type = uint16_t(get(f, 12, 2));
        if (!us && !all) return v;
        if (type == 0x8100 || type == 0x88a8) { v.event = VLAN; return v; }
        if (type == 0x0806) {
            uint32_t spa = get(f, 28, 4), op = get(f, 20, 2);
            bool near = spa >> 8 == OUR_IP >> 8;
            if (get(f, 14, 4) != 0x00010800 || get(f, 18, 2) != 0x0604 || get(f, 38, 4) != OUR_IP) return v;
            if (!(op == 1 && (near || spa == 0)) && !(op == 2 && near && us)) return v;
            v.event = ARP;
            uint64_t sha = uint64_t(get(f, 22, 2)) << 32 | get(f, 24, 4);
            cache[int(spa & 15)] = {spa & 255, sha};
            if (op == 1) v.answer = arp(sha, 2, OUR_MAC, OUR_IP, sha, spa), std::copy(f.begin() + 28, f.begin() + 32, v.answer->begin() + 38);
            return v;
        }
        if (type != 0x0800) { v.event = ETHERTYPE; return v; }
        if (f[14] >> 4 != 4) { v.event = IP_CHECKSUM; return v; }
        if ((f[14] & 15) != 5) { v.event = IP_OPTION; return v; }
        uint32_t total = get(f, 16, 2), src = get(f, 26, 4), dst = get(f, 30, 4);
        if (total < 28 || total > mtu || f.size() < 14 + total) { v.event = BAD_LENGTH; return v; }
        if (fold(add(f, 14, 34)) != 0xffff) { v.event = IP_CHECKSUM; return v; }
        bool is_udp = f[23] == 17;
        bool broadcast = dst == 0xffffffff || dst == (OUR_IP | 255);
        if (!(us && dst == OUR_IP) && !(all && broadcast && is_udp)) return v;
        if (get(f, 20, 2) & 0x3fff) { v.event = FRAGMENT; return v; }
        if (f[23] == 1) {
            if (f[34] != 8 || f[35] != 0) { v.event = ICMP_BAD; return v; }
            if (fold(add(f, 34, 14 + total)) != 0xffff) { v.event = ICMP_BAD; return v; }
            v.event = ICMP;
            auto mac = lookup(src >> 8 == OUR_IP >> 8 ? src : GATEWAY);
            if (src == 0xffffffff || src == (OUR_IP | 255)) mac = 0xffffffffffffull;
            if (mac) {
                Ip h;
                h.dmac = *mac; h.smac = OUR_MAC; h.src = OUR_IP; h.dst = src; h.ttl = 64; h.id = uint16_t(get(f, 38, 2)); h.flags = 0x4000;
                v.answer = ping(h, uint16_t(get(f, 38, 2)), uint16_t(get(f, 40, 2)), Bytes(f.begin() + 42, f.begin() + 14 + total), 0);
                // A checksum that is zero goes out as 0xffff: valid for every message, 0 is not for one of zeros.
                if (get(*v.answer, 36, 2) == 0) (*v.answer)[36] = (*v.answer)[37] = 0xff;
            }
            return v;
        }
        if (!is_udp) { v.event = PROTOCOL; return v; }
        uint32_t length = get(f, 38, 2);
        if (length < 8 || length + 20 > total) { v.event = BAD_LENGTH; return v; }
        int port = int(get(f, 36, 2));
        v.client = port >= 7 && port < 7 + std::min(clients, 9) ? port - 7 : other;
        if (v.client < 0) { v.event = NO_PORT; return v; }
        Datagram& d = v.datagram;
        d = {src, dst, uint16_t(get(f, 34, 2)), uint16_t(port), uint16_t(get(f, 18, 2)), uint16_t(get(f, 40, 2)), bool(f[20] & 0x80), bool(f[20] & 0x40), f[15], f[22],
             Bytes(f.begin() + 42, f.begin() + 34 + length), false};
        uint32_t pseudo = (src >> 16) + (src & 0xffff) + (dst >> 16) + (dst & 0xffff) + 17 + length;
        if (d.checksum != 0 && fold(add(f, 34, 34 + length, pseudo)) != 0xffff) { v.event = UDP_CHECKSUM; d.err = true; return v; }
        v.event = UDP;
        return v;
    }
};

// The seed of a run: the argument, else GATEWEAVE_SEED, else a new one.
inline uint64_t seed_of(int argc, char** argv) {
    const char* text = argc > 1 ? argv[1] : std::getenv("GATEWEAVE_SEED");
    return text ? std::strtoull(text, nullptr, 0) : std::random_device()();
}

} // namespace net
