// top: bench_core
// param: W=8
// param: W=32
// param: W=512
// slow-param: W=16
// slow-param: W=64
// slow-param: W=64 MTU=9000
// slow-param: W=128
// slow-param: W=256
//
// Every kind of frame, good and hostile, against the model of `model.hpp`; every length; every kind of datagram to send.
#include "Vdut.h"
#include "driver.hpp"
#include <algorithm>
using namespace net;

#ifndef W
#define W 32
#endif
#ifndef CLIENT_COUNT
#define CLIENT_COUNT 1
#endif
#ifndef MTU
#define MTU 1500
#endif
using D = Driver<Vdut, W, CLIENT_COUNT>;

static Host host;

static Bytes noise(D& d, size_t n) {
    Bytes b(n);
    for (auto& x : b) x = uint8_t(d.rng());
    return b;
}

// Bits of `tx_event`.
enum { MALFORMED, NO_ROUTE, MISS, ARP_REPLY, ARP_REQUEST, TX_ICMP, TX_UDP };

static bool is_request(const Bytes& f, uint32_t* whom = nullptr) {
    if (f.size() != 42 || get(f, 12, 2) != 0x0806 || get(f, 20, 2) != 1) return false;
    Bytes want = arp(0xffffffffffffull, 1, OUR_MAC, OUR_IP, 0xffffffffffffull, get(f, 38, 4));
    check(f == want, "ARP request\n" + hex(f) + "\nexpected\n" + hex(want));
    if (whom) *whom = get(f, 38, 4);
    return true;
}

// One frame, settled, against the model. Padded frames and frames as they are.
static void one(D& d, const Bytes& f, bool err, const std::string& what) {
    Verdict v = host.hear(f, err);
    auto before = d.rx_events;
    d.out.clear();
    d.in.push_back({f, err, 0});
    d.settle();
    // Answers to strangers make us ask for their address.
    d.out.erase(std::remove_if(d.out.begin(), d.out.end(), [](const Frame& f) { return is_request(f.data); }), d.out.end());
    for (int e = 0; e < 15; e++) {
        uint64_t want = before[e] + (e == v.event);
        if (d.rx_events[e] != want)
            fail(what + ": event " + std::to_string(e) + " is " + std::to_string(d.rx_events[e] - before[e]) + ", expected event " + std::to_string(v.event) + "\n" + hex(f));
    }
    check(d.out.size() == (v.answer ? 1 : 0), what + ": answers: " + std::to_string(d.out.size()) + "\n" + hex(f));
    if (v.answer && d.out.back().data != *v.answer)
        fail(what + ": answer\n" + hex(d.out.back().data) + "\nexpected\n" + hex(*v.answer));
    if (v.answer) check(!d.out.back().err, what + ": answer aborted");
    for (int i = 0; i < CLIENT_COUNT; i++) {
        auto& got = d.client[i].got;
        while (!got.empty() && got.front().err) got.pop_front();
        size_t want = v.event == UDP && v.client == i;
        check(got.size() == want, what + ": datagrams: " + std::to_string(got.size()) + " expected " + std::to_string(want));
        if (want && !(got.front() == v.datagram)) fail(what + ": datagram differs\n" + hex(got.front().data) + "\n" + hex(v.datagram.data));
        got.clear();
    }
}

static void good(D& d, const std::string& after) {
    Ip h;
    one(d, pad(udp(h, 1000, 7, noise(d, d.rng() % 40))), false, "good datagram after " + after);
    one(d, pad(ping(h, 77, uint16_t(d.rng()), noise(d, d.rng() % 60))), false, "good ping after " + after);
}

static void learn(D& d) {
    one(d, pad(arp(0xffffffffffffull, 1, PEER_MAC, PEER_IP, 0, OUR_IP)), false, "ARP request");
}


static Send datagram(D& d, uint32_t to, size_t n) {
    Send s;
    s.d.dst_ip = to;
    s.d.src_port = uint16_t(d.rng()); s.d.dst_port = uint16_t(d.rng());
    s.d.id = uint16_t(d.rng()); s.d.df = d.rng() & 1;
    s.d.tos = uint8_t(d.rng()); s.d.ttl = uint8_t(d.rng());
    s.d.checksum = uint16_t(d.rng());
    s.d.data = noise(d, n);
    s.mode = d.rng() & 1 ? 2 : 0;
    return s;
}

static Bytes on_wire(const Send& s, uint64_t mac) {
    Ip h;
    h.dmac = mac; h.smac = OUR_MAC; h.src = OUR_IP; h.dst = s.d.dst_ip;
    h.id = s.d.id; h.flags = s.d.df ? 0x4000 : 0; h.tos = s.d.tos; h.ttl = s.d.ttl;
    Bytes b = udp(h, s.d.src_port, s.d.dst_port, s.d.data, false);
    set16(b, 40, s.mode == 2 ? s.d.checksum : 0);
    return b;
}

static int send(D& d, int i, const Send& s) {
    d.client[i].send.push_back(s);
    d.settle();
    check(d.client[i].status.size() == 1, "tx_done once");
    int status = d.client[i].status.front();
    d.client[i].status.pop_front();
    return status;
}

// A datagram that must go out as it is told.
static void sent(D& d, const Send& s, uint64_t mac, const std::string& what) {
    size_t outs = d.out.size();
    int status = send(d, 0, s);
    check(status == 0, what + ": status " + std::to_string(status));
    check(d.out.size() == outs + 1 && !d.out.back().err, what + ": one frame");
    if (d.out.back().data != on_wire(s, mac)) fail(what + "\n" + hex(d.out.back().data) + "\nexpected\n" + hex(on_wire(s, mac)));
}

static void test_arp(D& d) {
    const uint32_t far = 0x08080808, gateway = 0xc0a807fe;
    const uint64_t gateway_mac = 0x020000000001ull;
    uint32_t whom = 0;
    // Nobody is known: refused, with a question to the network.
    check(send(d, 0, datagram(d, PEER_IP, 20)) == 1, "no address yet");
    check(d.out.size() == 1 && is_request(d.out[0].data, &whom) && whom == PEER_IP, "asks for the peer");
    // Asked again at once: refused, silence.
    check(send(d, 0, datagram(d, PEER_IP, 20)) == 1, "still no address");
    check(d.out.size() == 1, "asks once");
    // Another host may be asked for a little later, the same one only after the long gap.
    d.run(1100);
    check(send(d, 0, datagram(d, far, 20)) == 1, "gateway unknown");
    check(d.out.size() == 2 && is_request(d.out[1].data, &whom) && whom == gateway, "asks for the gateway");
    d.run(66000);
    check(send(d, 0, datagram(d, far, 20)) == 1, "gateway still unknown");
    check(d.out.size() == 3, "asks for the gateway again");
    // The gateway answers.
    one(d, pad(arp(OUR_MAC, 2, gateway_mac, gateway, OUR_MAC, OUR_IP)), false, "ARP reply");
    Send s = datagram(d, far, 33);
    check(send(d, 0, s) == 0 && d.out.back().data == on_wire(s, gateway_mac), "through the gateway");
    // Gratuitous and foreign ARP teach nothing, and get no answer.
    one(d, pad(arp(0xffffffffffffull, 1, PEER_MAC, PEER_IP, 0, PEER_IP)), false, "gratuitous request");
    one(d, pad(arp(0xffffffffffffull, 2, PEER_MAC, PEER_IP, PEER_MAC, PEER_IP)), false, "gratuitous reply");
    one(d, pad(arp(0xffffffffffffull, 1, PEER_MAC, 0x0a000001, 0, OUR_IP)), false, "request from another network");
    one(d, pad(arp(0xffffffffffffull, 2, PEER_MAC, PEER_IP, 0, OUR_IP)), false, "reply by broadcast");
    one(d, pad(arp(0xffffffffffffull, 1, PEER_MAC, PEER_IP, 0, OUR_IP)), true, "request with a wrong FCS");
    d.run(1100);
    check(send(d, 0, datagram(d, PEER_IP, 1)) == 1, "learnt nothing");
    d.out.clear();
    // A probe for our address is answered; so is an ordinary request, which also teaches.
    one(d, arp(0xffffffffffffull, 1, PEER_MAC, 0, 0, OUR_IP), false, "probe, unpadded");
    learn(d);
    s = datagram(d, PEER_IP, 1);
    check(send(d, 0, s) == 0 && d.out.back().data == on_wire(s, PEER_MAC), "to the peer");
    // A new address replaces the old one; another host at the same place of the cache too.
    one(d, pad(arp(OUR_MAC, 2, PEER_MAC + 1, PEER_IP, OUR_MAC, OUR_IP)), false, "new address");
    s = datagram(d, PEER_IP, 2);
    check(send(d, 0, s) == 0 && d.out.back().data == on_wire(s, PEER_MAC + 1), "to the new address");
    one(d, pad(arp(OUR_MAC, 2, PEER_MAC + 2, PEER_IP + 16, OUR_MAC, OUR_IP)), false, "same place");
    d.run(66000);
    check(send(d, 0, datagram(d, PEER_IP, 3)) == 1, "replaced");
    s = datagram(d, PEER_IP + 16, 3);
    sent(d, s, PEER_MAC + 2, "to the newest");
    // Broadcast needs no address.
    for (uint32_t all : {0xffffffffu, OUR_IP | 255}) {
        s = datagram(d, all, 5);
        check(send(d, 0, s) == 0 && d.out.back().data == on_wire(s, 0xffffffffffffull), "broadcast");
    }
    learn(d);
}

static void test_lengths(D& d) {
    Ip h;
    size_t most = MTU - 28;
    for (size_t n = 0; n <= most; n += n < 200 || n + 70 > most || most < 2000 ? 1 : 1 + d.rng() % 97) {
        h.id = uint16_t(d.rng()); h.tos = uint8_t(d.rng()); h.ttl = uint8_t(d.rng());
        std::string at = " of " + std::to_string(n);
        bool padded = d.rng() & 1;
        Bytes f = udp(h, uint16_t(d.rng()), 7, noise(d, n), d.rng() % 4);
        one(d, padded ? pad(f, uint8_t(d.rng())) : f, false, "datagram" + at);
        f = ping(h, uint16_t(d.rng()), uint16_t(d.rng()), noise(d, n));
        one(d, padded ? pad(f, uint8_t(d.rng())) : f, false, "ping" + at);
        Send s = datagram(d, PEER_IP, n);
        int status = send(d, 0, s);
        check(status == 0 && !d.out.back().err, "sent" + at);
        if (d.out.back().data != on_wire(s, PEER_MAC)) fail("sent" + at + "\n" + hex(d.out.back().data) + "\n" + hex(on_wire(s, PEER_MAC)));
        d.out.clear();
    }
    // Above the MTU.
    one(d, udp(h, 1, 7, noise(d, most + 1)), false, "datagram above the MTU");
    good(d, "datagram above the MTU");
    // Checksum 0xf7ff: that of the answer is zero, which goes out as 0xffff.
    one(d, pad(ping(h, 0, 0, Bytes())), false, "ping whose answer is all zeros");
    one(d, pad(ping(h, 0x1234, 0xedcb, Bytes())), false, "ping whose answer sums up to 0xffff");
    one(d, ping(h, 1, 1, noise(d, most + 1)), false, "ping above the MTU");
    good(d, "ping above the MTU");
    one(d, udp(h, 1, 7, noise(d, 20000)), false, "jumbo");
    good(d, "jumbo");
    size_t outs = d.out.size();
    check(send(d, 0, datagram(d, PEER_IP, most + 1)) == 2 && d.out.size() == outs, "too long to send");
    Send s = datagram(d, PEER_IP, most);
    check(send(d, 0, s) == 0 && d.out.back().data == on_wire(s, PEER_MAC), "longest to send");
}

// Aborts: another number of bytes than said, or terr. The frame, if any, ends in terr.
static void test_aborts(D& d) {
    for (int i = 0; i < 300; i++) {
        size_t n = d.rng() % 150;
        Send s = datagram(d, PEER_IP, n);
        if (i % 3 == 0) {
            s.d.err = true;
        } else {
            do s.length = int(n) + int(d.rng() % 80) - 40;
            while (s.length < 0 || s.length == int(n));
        }
        size_t outs = d.out.size();
        uint64_t bad = d.tx_events[MALFORMED];
        check(send(d, 0, s) == 2 && d.tx_events[MALFORMED] == bad + 1, "abort is told and counted");
        check(d.out.size() == outs + 1 && d.out.back().err, "abort ends in terr");
        s = datagram(d, PEER_IP, d.rng() % 150);
        check(send(d, 0, s) == 0 && !d.out.back().err && d.out.back().data == on_wire(s, PEER_MAC), "good after an abort");
    }
}

static void test_hostile(D& d) {
    Ip h;
    Bytes data = noise(d, 100);
    Bytes base[2] = {udp(h, 1000, 7, data), ping(h, 9, 9, data)};
    for (Bytes& f : base) {
        // Truncated at every byte, with a good and a wrong FCS.
        for (size_t n = 1; n < f.size(); n++) {
            for (bool err : {false, true}) {
                one(d, Bytes(f.begin(), f.begin() + long(n)), err, "truncated at " + std::to_string(n));
                good(d, "truncated at " + std::to_string(n));
            }
        }
        one(d, f, true, "wrong FCS");
        good(d, "wrong FCS");
        // Every bit of the headers, and some of the rest, flipped; with and without a corrected IP checksum.
        for (size_t bit = 0; bit < 8 * 50; bit++) {
            for (bool fix : {false, true}) {
                Bytes g = f;
                g[bit / 8] ^= uint8_t(1 << bit % 8);
                if (fix && bit / 8 >= 14 && bit / 8 < 34) fix_ip(g);
                one(d, g, false, "bit " + std::to_string(bit));
            }
            good(d, "bit " + std::to_string(bit));
        }
    }
    // Lengths, of both headers, against each other and the frame.
    for (int i = 0; i < 400; i++) {
        Bytes f = udp(h, 1000, 7, noise(d, d.rng() % 60), i & 1);
        if (i & 2) set16(f, 16, uint16_t(get(f, 16, 2) + d.rng() % 41 - 20));
        if (i & 4) set16(f, 38, uint16_t(get(f, 38, 2) + d.rng() % 41 - 20));
        if (i & 8) f = pad(f, 0x5a);
        if (i & 16) f.resize(f.size() + d.rng() % 100, 0xa5);
        fix_ip(f);
        one(d, f, false, "lengths, case " + std::to_string(i));
        good(d, "lengths, case " + std::to_string(i));
    }
    for (uint16_t n : {0, 7, 8, 9, 0x7fff, 0xffff}) {
        Bytes f = udp(h, 1, 7, noise(d, 30));
        set16(f, 38, n);
        one(d, f, false, "UDP length");
        set16(f, 38, 38);
        set16(f, 16, n);
        fix_ip(f);
        one(d, f, false, "total length");
        good(d, "length");
    }
    // Fragments, options, VLAN, other networks, protocols, addresses.
    for (uint16_t flags : {0x2000, 0x0001, 0x1fff, 0x3000, 0x00b9, 0x8000, 0xc000, 0x4000}) {
        h.flags = flags;
        one(d, udp(h, 1, 7, data), false, "flags");
        one(d, ping(h, 1, 7, data), false, "flags");
        good(d, "flags");
    }
    h = Ip();
    for (uint8_t version : {0x46, 0x4f, 0x44, 0x40, 0x65, 0x05}) {
        Bytes f = udp(h, 1, 7, noise(d, 90));
        f[14] = version;
        if ((version & 15) > 5) f.insert(f.begin() + 34, (version & 15) * 4 - 20, 1);
        fix_ip(f);
        one(d, f, false, "version and header length");
        good(d, "version and header length");
    }
    for (uint16_t tag : {0x8100, 0x88a8}) {
        Bytes f = udp(h, 1, 7, data);
        Bytes t;
        put(t, tag, 2); put(t, 5, 2);
        f.insert(f.begin() + 12, t.begin(), t.end());
        one(d, f, false, "VLAN");
        good(d, "VLAN");
    }
    for (uint16_t type : {0x86dd, 0x0000, 0x0027, 0x0801, 0x88cc}) {
        Bytes f = udp(h, 1, 7, data);
        set16(f, 12, type);
        one(d, f, false, "EtherType");
    }
    for (uint64_t mac : {0x01005e000001ull, 0x333300000001ull, 0x024757000000ull, 0xfffffffffffeull, 0xffffffffffffull}) {
        h = Ip();
        h.dmac = mac;
        for (uint32_t ip : {OUR_IP, OUR_IP | 255, 0xffffffffu, 0xe0000001u, OUR_IP + 1}) {
            h.dst = ip;
            one(d, udp(h, 1, 7, data), false, "addresses");
            one(d, ping(h, 1, 7, data), false, "addresses");
        }
        one(d, pad(arp(mac, 1, PEER_MAC, PEER_IP, 0, OUR_IP)), false, "ARP to another address");
    }
    h = Ip();
    for (uint8_t proto : {0, 2, 6, 16, 33, 255}) {
        h.proto = proto;
        one(d, ip(h, data), false, "protocol");
    }
    h = Ip();
    for (uint8_t type : {0, 3, 8, 9, 13}) {
        for (uint8_t code : {0, 1}) one(d, ping(h, 1, 1, data, type, code), false, "ICMP type");
    }
    for (int port : {0, 6, 8, 9, 15, 16, 0x0700, 0xffff}) one(d, udp(h, 1, uint16_t(port), data), false, "port");
    good(d, "all that");
}

// Storms: frames back to back, each judged by the model; counts and answers in order.
static void test_storm(D& d, int frames) {
    Host judge = host;
    std::array<uint64_t, 15> want = d.rx_events;
    std::vector<Bytes> answers;
    std::vector<Datagram> datagrams;
    Ip h;
    for (int i = 0; i < frames; i++) {
        Bytes f;
        h = Ip();
        switch (d.rng() % 6) {
        case 0: f = ping(h, uint16_t(d.rng()), uint16_t(d.rng()), noise(d, d.rng() % 80)); break;
        case 1: f = udp(h, uint16_t(d.rng()), uint16_t(7 + d.rng() % 11), noise(d, d.rng() % 80)); break;
        case 2: f = udp(h, uint16_t(d.rng()), 7, noise(d, d.rng() % 300), d.rng() & 1); break;
        case 3: f = noise(d, 1 + d.rng() % 100); break;
        case 4: f = ping(h, 1, 2, noise(d, d.rng() % 300)); f.resize(1 + d.rng() % f.size()); break;
        default: f = udp(h, 1, 7, noise(d, d.rng() % 80)); f[14 + d.rng() % (f.size() - 14)] ^= uint8_t(1 << d.rng() % 8); break;
        }
        if (d.rng() & 1) f = pad(f);
        bool err = d.rng() % 8 == 0;
        Verdict v = judge.hear(f, err);
        want[v.event]++;
        if (v.event == UDP && v.client == 0) datagrams.push_back(v.datagram);
        if (v.event == ICMP && v.answer) answers.push_back(*v.answer);
        d.in.push_back({f, err, 0});
    }
    d.out.clear();
    d.in_gap = 30;
    d.settle(3000);
    d.in_gap = 0;
    for (int e = 0; e < 15; e++)
        if (d.rx_events[e] != want[e]) std::printf("event %d: %llu, expected %llu\n", e, (unsigned long long)d.rx_events[e], (unsigned long long)want[e]);
    for (int e = 0; e < 15; e++) check(d.rx_events[e] == want[e], "storm: event " + std::to_string(e) + ": " + std::to_string(d.rx_events[e]) + ", expected " + std::to_string(want[e]));
    size_t k = 0;
    for (auto& got : d.client[0].got) {
        if (got.err) continue;
        check(k < datagrams.size() && got == datagrams[k], "storm: datagram " + std::to_string(k));
        k++;
    }
    check(k == datagrams.size(), "storm: datagrams");
    for (auto& c : d.client) c.got.clear();
    k = 0;
    size_t others = 0;
    for (auto& f : d.out) {
        if (k < answers.size() && f.data == answers[k]) k++;
        else others++;
    }
    // The responder may have had no room for all of them (the storm is faster than the wire): those are counted.
    check(k + d.icmp_lost >= answers.size() && k > 0, "storm: answers");
    std::printf("storm: %zu of %zu pings answered, %llu without room, %zu other frames\n", k, answers.size(), (unsigned long long)d.icmp_lost, others);
    good(d, "a storm");
}

int main(int argc, char** argv) {
    D d(seed_of(argc, argv));
    host.mtu = MTU;
    host.clients = CLIENT_COUNT;
    test_arp(d);
    good(d, "ARP");
    Ip h;
    one(d, udp(h, 1000, 7, noise(d, 100)), false, "datagram");
    std::printf("latency: frame's first beat to datagram's first beat: %llu cycles\n", (unsigned long long)(d.rx_first_out - d.rx_begin));
    test_storm(d, 3000);
    test_lengths(d);
    test_aborts(d);
    test_hostile(d);
    test_storm(d, 3000);
    std::printf("PASS after %llu cycles\n", (unsigned long long)d.cycle);
}
