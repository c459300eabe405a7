// top: bench_core
// param: W=8 CLIENT_COUNT=2 COMPUTE=2
// param: W=32 CLIENT_COUNT=2 COMPUTE=2
// param: W=512 CLIENT_COUNT=2 COMPUTE=2
// slow-param: W=16 CLIENT_COUNT=2 COMPUTE=2
// slow-param: W=64 CLIENT_COUNT=2 COMPUTE=2
// slow-param: W=64 CLIENT_COUNT=2 COMPUTE=2 MTU=9000
// slow-param: W=128 CLIENT_COUNT=2 COMPUTE=2
// slow-param: W=256 CLIENT_COUNT=2 COMPUTE=2
// slow-param: W=32 CLIENT_COUNT=2 COMPUTE=3
//
// UDP checksums that the provider computes, against those of `model.hpp`: every length, sums that come out as 0, all modes in turn, aborts,
// a client that pauses, and full rate beside a client that has none computed.
#include "Vdut.h"
#include "driver.hpp"
using namespace net;

#ifndef W
#define W 32
#endif
#ifndef MTU
#define MTU 1500
#endif
using D = Driver<Vdut, W, 2>;
static const size_t MOST = MTU - 28;
// Nothing happens for longer than this: a datagram that is refused passes without a sign.
static const uint64_t QUIET = 300 + MOST / (W / 8);
// The client with the store.
static const int I = 1;

enum { NONE, COMPUTED, GIVEN };

static Send datagram(D& d, size_t n, int mode) {
    Send s;
    s.d.dst_ip = d.rng() & 1 ? PEER_IP : 0xffffffff;
    s.d.src_port = uint16_t(d.rng()); s.d.dst_port = uint16_t(d.rng());
    s.d.id = uint16_t(d.rng()); s.d.df = d.rng() & 1;
    s.d.tos = uint8_t(d.rng()); s.d.ttl = uint8_t(d.rng());
    s.d.checksum = uint16_t(d.rng());
    for (size_t i = 0; i < n; i++) s.d.data.push_back(uint8_t(d.rng()));
    s.mode = mode;
    return s;
}

static Bytes on_wire(const Send& s) {
    Ip h;
    h.dmac = s.d.dst_ip == PEER_IP ? PEER_MAC : 0xffffffffffffull; h.smac = OUR_MAC; h.src = OUR_IP; h.dst = s.d.dst_ip;
    h.id = s.d.id; h.flags = s.d.df ? 0x4000 : 0; h.tos = s.d.tos; h.ttl = s.d.ttl;
    Bytes b = udp(h, s.d.src_port, s.d.dst_port, s.d.data, s.mode == COMPUTED);
    if (s.mode == GIVEN) set16(b, 40, s.d.checksum);
    return b;
}

// Sends them back to back; each must go out as it is told, in order.
static void sent(D& d, int i, const std::vector<Send>& all, const std::string& what) {
    d.out.clear();
    for (auto& s : all) d.client[i].send.push_back(s);
    d.settle(QUIET);
    check(d.client[i].status.size() == all.size(), what + ": tx_done once per datagram");
    for (int s : d.client[i].status) check(s == 0, what + ": status");
    d.client[i].status.clear();
    check(d.out.size() == all.size(), what + ": frames");
    for (size_t k = 0; k < all.size(); k++) {
        check(!d.out[k].err, what + ": aborted");
        if (d.out[k].data != on_wire(all[k])) fail(what + ", " + std::to_string(k) + "\n" + hex(d.out[k].data) + "\nexpected\n" + hex(on_wire(all[k])));
    }
}

static void test_lengths(D& d) {
    for (size_t n = 0; n <= MOST;) {
        std::vector<Send> some;
        for (int k = 0; k < 50 && n <= MOST; k++, n += n < 300 || n + 70 > MOST ? 1 : 1 + d.rng() % 37) some.push_back(datagram(d, n, COMPUTED));
        sent(d, I, some, "lengths up to " + std::to_string(n - 1));
    }
}

// A payload whose last whole word makes the checksum come out as 0, which goes out as 0xffff; and its neighbours, 1 and 0xfffe.
static void test_zero(D& d) {
    for (size_t n : {2, 3, 4, 5, 17, 18, 63, 64, 65, 66, 200, 201}) {
        for (uint16_t want : {0, 1, 0xfffe}) {
            Send s = datagram(d, n, COMPUTED);
            size_t at = n / 2 * 2 - 2;
            set16(s.d.data, at, 0);
            // With this word 0 the sum is ~c; the word that is missing to ~want is the difference of the two, the carry going round.
            uint16_t c = uint16_t(get(on_wire(s), 40, 2));
            set16(s.d.data, at, fold(uint32_t(c) + uint16_t(~want)));
            check(get(on_wire(s), 40, 2) == (want ? want : 0xffff), "the bench's own word");
            sent(d, I, {s}, "checksum " + std::to_string(want));
            check(get(d.out.back().data, 40, 2) == (want ? want : 0xffff), "checksum " + std::to_string(want));
        }
    }
    // All ones, all zeros: carries on every beat, and none.
    for (uint8_t fill : {0x00, 0xff}) {
        Send s = datagram(d, MOST, COMPUTED);
        std::fill(s.d.data.begin(), s.d.data.end(), fill);
        sent(d, I, {s}, "constant bytes");
    }
}

static void test_modes(D& d) {
    std::vector<Send> all;
    for (int k = 0; k < 300; k++) all.push_back(datagram(d, d.rng() % 4 ? d.rng() % 100 : d.rng() % (MOST + 1), int(d.rng() % 3)));
    sent(d, I, all, "all modes");
    // A client that pauses: its frames do not (the driver looks at that).
    d.client[I].pause = 60;
    sent(d, I, all, "a client that pauses");
    d.client[I].pause = 0;
    // The other client has nothing computed, unless it asked for it too.
    all.clear();
    for (int k = 0; k < 50; k++) all.push_back(datagram(d, d.rng() % 200, d.rng() & 1 ? GIVEN : NONE));
    sent(d, 0, all, "the other client");
#if COMPUTE == 2
    Send s = datagram(d, 100, COMPUTED), none = s;
    none.mode = NONE;
    d.out.clear();
    d.client[0].send.push_back(s);
    d.settle();
    d.client[0].status.clear();
    check(d.out.size() == 1 && d.out[0].data == on_wire(none), "who has not asked for it gets none computed");
#endif
}

// Another number of bytes than said, terr, longer than the MTU by claim, by bytes and by both: told once, and the next one is good.
static void test_aborts(D& d) {
    for (int k = 0; k < 400; k++) {
        Send s = datagram(d, d.rng() % 150, k & 1 ? COMPUTED : NONE);
        bool refused = false;
        switch (k % 5) {
        case 0: s.d.err = true; break;
        case 1: do s.length = int(s.d.data.size()) + int(d.rng() % 80) - 40; while (s.length < 0 || s.length == int(s.d.data.size())); break;
        case 2: s.d.data.resize(MOST + 1 + d.rng() % 300); refused = true; break;
        case 3: s.d.data.resize(MOST + 1 + d.rng() % 300); s.length = int(d.rng() % (MOST + 1)); break;
        case 4: s.length = int(MOST + 1 + d.rng() % 50000); refused = true; break;
        }
        Send next = datagram(d, d.rng() % 150, COMPUTED);
        d.out.clear();
        d.client[I].pause = k % 7 ? 0 : 30;
        d.client[I].send.push_back(s);
        d.client[I].send.push_back(next);
        d.settle(QUIET);
        std::string what = "abort " + std::to_string(k);
        auto& status = d.client[I].status;
        check(status.size() == 2 && status[0] == 2 && status[1] == 0, what + ": told " + std::to_string(status.size()) + " times, " + std::to_string(status.empty() ? -1 : status[0]) + ", " + std::to_string(status.empty() ? -1 : status.back()));
        status.clear();
        check(d.out.size() == (refused ? 1 : 2), what + ": frames");
        if (!refused) check(d.out[0].err, what + " ends in terr");
        check(!d.out.back().err && d.out.back().data == on_wire(next), what + ": the next one");
    }
    d.client[I].pause = 0;
}

// Back to back, a beat leaves on nearly every cycle: no slower than the header before each payload asks for, whatever the length.
static void test_rate(D& d) {
    const int B = W / 8, count = 200;
    for (size_t n : {size_t(0), size_t(1), size_t(18), size_t(64), MOST}) {
        std::vector<Send> all;
        for (int k = 0; k < count; k++) all.push_back(datagram(d, n, COMPUTED));
        sent(d, I, all, "rate");
        uint64_t took = d.out.back().at - d.out.front().at;
        uint64_t beats = (42 + n + B - 1) / B * (count - 1);
        std::printf("%zu bytes: %.2f cycles a frame, %zu beats\n", n, double(took) / (count - 1), (42 + n + B - 1) / B);
        check(took <= beats + beats / 50 + 2 * count, "full rate at " + std::to_string(n) + " bytes");
    }
    // Both clients at once, in turn.
    for (int i : {0, 1})
        for (int k = 0; k < 100; k++) d.client[i].send.push_back(datagram(d, d.rng() % 200, i == I ? COMPUTED : NONE));
    std::array<std::deque<Send>, 2> left{d.client[0].send, d.client[1].send};
    d.out.clear();
    d.settle(QUIET);
    check(d.out.size() == 200, "both clients");
    for (auto& f : d.out) {
        int i = !left[0].empty() && f.data == on_wire(left[0].front()) ? 0 : 1;
        check(!left[size_t(i)].empty() && f.data == on_wire(left[size_t(i)].front()), "both clients: a frame of nobody");
        left[size_t(i)].pop_front();
    }
}

int main(int argc, char** argv) {
    D d(seed_of(argc, argv));
    d.run(50); // the address cache empties itself
    d.in.push_back({pad(arp(0xffffffffffffull, 1, PEER_MAC, PEER_IP, 0, OUR_IP)), false, 0});
    d.settle();
    test_zero(d);
    test_modes(d);
    test_aborts(d);
    test_lengths(d);
    test_rate(d);
    std::printf("PASS after %llu cycles\n", (unsigned long long)d.cycle);
}
