// top: bench_core
// param: W=32 AGE=16384
// param: W=32 AGE=0
// slow-param: W=8 AGE=12345
// slow-param: W=512 AGE=16384
//
// Addresses age: with T = 2 * 16 * AGE cycles, one that nobody has confirmed is asked for again between T/2 and T, by who uses it, and serves on;
// it is forgotten between T and 3T/2. AGE=0: never.
#include "Vdut.h"
#include "driver.hpp"
using namespace net;

#ifndef W
#define W 32
#endif
#ifndef AGE
#define AGE 0
#endif
using D = Driver<Vdut, W, 1>;
static const uint64_t T = 2ull * 16 * AGE;
// Cycles between two datagrams of the tests; the requests for one host are at least this far apart.
static const uint64_t STEP = 4000, REPEAT = 65536;

static bool is_request(const Bytes& f, uint32_t whom) { return f == arp(0xffffffffffffull, 1, OUR_MAC, OUR_IP, 0xffffffffffffull, whom); }

// One datagram to `to`: its status. Frames to `mac` and requests for `to` are all that may come out; the latter are counted.
static int send(D& d, uint32_t to, uint64_t mac, int& requests) {
    Send s;
    s.d.dst_ip = to;
    s.d.src_port = 7; s.d.dst_port = uint16_t(d.rng()); s.d.ttl = 64;
    for (size_t n = d.rng() % 40; n > 0; n--) s.d.data.push_back(uint8_t(d.rng()));
    s.mode = 0;
    d.out.clear();
    d.client[0].send.push_back(s);
    d.settle();
    check(d.client[0].status.size() == 1, "tx_done once");
    int status = d.client[0].status.front();
    d.client[0].status.pop_front();
    Ip h;
    h.dmac = mac; h.smac = OUR_MAC; h.src = OUR_IP; h.dst = to; h.id = 0; h.flags = 0;
    int sent = 0;
    for (auto& f : d.out) {
        if (is_request(f.data, to)) requests++;
        else check(f.data == udp(h, 7, s.d.dst_port, s.d.data, false), "another frame: " + hex(f.data)), sent++;
    }
    check(sent == (status == 0), "the datagram goes out or is refused");
    return status;
}

static void reply(D& d, uint32_t ip, uint64_t mac) {
    d.in.push_back({pad(arp(OUR_MAC, 2, mac, ip, OUR_MAC, OUR_IP)), false, 0});
    d.settle();
}

// Uses `to`, just confirmed, over and over: when it is asked for first, and when it is forgotten.
static void unconfirmed(D& d, uint32_t to, uint64_t mac) {
    uint64_t start = d.cycle, asked = 0, last = 0;
    for (;;) {
        int requests = 0;
        int status = send(d, to, mac, requests);
        uint64_t now = d.cycle - start;
        if (requests) {
            check(requests == 1, "one request");
            check(asked == 0 || now - last >= REPEAT - STEP, "asked again after " + std::to_string(now - last));
            if (!asked) asked = now;
            last = now;
        }
        if (status == 1) {
            check(now > T && now <= 3 * T / 2 + STEP, "forgotten after " + std::to_string(now));
            check(asked > T / 2 && asked <= T + STEP, "asked after " + std::to_string(asked));
            std::printf("T = %llu: asked after %llu, forgotten after %llu\n", (unsigned long long)T, (unsigned long long)asked, (unsigned long long)now);
            return;
        }
        check(status == 0 && now <= 2 * T, "it serves until it is forgotten");
        d.run(d.rng() % STEP);
    }
}

int main(int argc, char** argv) {
    D d(seed_of(argc, argv));
    d.run(50); // the address cache empties itself
    int requests = 0;
    check(send(d, PEER_IP, PEER_MAC, requests) == 1 && requests == 1, "not known, asked for");
    reply(d, PEER_IP, PEER_MAC);
    requests = 0;
#if AGE == 0
    for (int k = 0; k < 20; k++) {
        d.run(200000);
        check(send(d, PEER_IP, PEER_MAC, requests) == 0 && requests == 0, "never asked for again");
    }
#else
    for (int k = 0; k < 3; k++) {
        unconfirmed(d, PEER_IP, PEER_MAC);
        reply(d, PEER_IP, PEER_MAC);
        d.run(d.rng() % T / 4);
        reply(d, PEER_IP, PEER_MAC + 1);
        requests = 0;
        check(send(d, PEER_IP, PEER_MAC + 1, requests) == 0 && requests == 0, "confirmed");
        reply(d, PEER_IP, PEER_MAC);
    }
    // A peer that answers is asked once in its time, and never lost.
    reply(d, PEER_IP, PEER_MAC);
    uint64_t start = d.cycle;
    int asked = 0;
    while (d.cycle - start < 6 * T) {
        requests = 0;
        check(send(d, PEER_IP, PEER_MAC, requests) == 0, "who answers is not forgotten");
        if (requests) reply(d, PEER_IP, PEER_MAC), asked++;
        d.run(d.rng() % STEP);
    }
    check(asked >= 5 && asked <= 12, "asked " + std::to_string(asked) + " times in six times its time");
    // Another place of the cache ages by itself; what nobody has used for long has not become young again.
    reply(d, PEER_IP, PEER_MAC);
    d.run(T / 2 + T / 8);
    reply(d, PEER_IP + 8, PEER_MAC + 8);
    d.run(T);
    requests = 0;
    check(send(d, PEER_IP, PEER_MAC, requests) == 1, "the older one is forgotten");
    check(send(d, PEER_IP + 8, PEER_MAC + 8, requests) == 0, "the younger one is not");
    for (int k = 0; k < 8; k++) {
        d.run(T / 4 + d.rng() % T);
        requests = 0;
        check(send(d, PEER_IP, PEER_MAC, requests) == 1 && requests == 1, "forgotten for good");
    }
#endif
    std::printf("PASS after %llu cycles\n", (unsigned long long)d.cycle);
}
