// top: bench_core
// param: W=32 CLIENT_COUNT=2
// slow-param: W=32 CLIENT_COUNT=1
// slow-param: W=32 CLIENT_COUNT=9
// slow-param: W=512 CLIENT_COUNT=9
//
// Several clients on one provider: everyone gets what is theirs, in turn, and one that is stuck, or too slow, harms nobody but itself.
#include "Vdut.h"
#include "driver.hpp"
using namespace net;

#ifndef W
#define W 32
#endif
#ifndef CLIENT_COUNT
#define CLIENT_COUNT 1
#endif
using D = Driver<Vdut, W, CLIENT_COUNT>;

static Bytes noise(D& d, size_t n) {
    Bytes b(n);
    for (auto& x : b) x = uint8_t(d.rng());
    return b;
}

// Datagrams to all clients, back to back; `slow` takes no beat, or one in so many cycles.
static void test_receive(D& d, int slow, int stall) {
    std::array<std::vector<Datagram>, CLIENT_COUNT> want;
    Host host;
    host.clients = CLIENT_COUNT;
    const int frames = 4000;
    uint64_t lost = d.client_lost[size_t(slow < 0 ? 0 : slow)];
    for (auto& c : d.client) { c.stuck = false; c.stall = 0; c.got.clear(); }
    if (slow >= 0) {
        d.client[size_t(slow)].stuck = stall == 100;
        d.client[size_t(slow)].stall = stall;
    }
    for (int i = 0; i < frames; i++) {
        Bytes f = pad(udp(Ip(), uint16_t(d.rng()), uint16_t(7 + d.rng() % CLIENT_COUNT), noise(d, d.rng() % 200), d.rng() & 1));
        Verdict v = host.hear(f, false);
        check(v.event == UDP, "model");
        want[size_t(v.client)].push_back(v.datagram);
        d.in.push_back({f, false, 0});
    }
    while (!d.in.empty()) d.step();
    d.run(200);
    for (int i = 0; i < CLIENT_COUNT; i++) {
        auto& got = d.client[size_t(i)].got;
        auto& all = want[size_t(i)];
        std::string who = "client " + std::to_string(i);
        if (i != slow) {
            check(got.size() == all.size(), who + " got " + std::to_string(got.size()) + " of " + std::to_string(all.size()));
            for (size_t k = 0; k < all.size(); k++) check(got[k] == all[k], who + ": datagram " + std::to_string(k));
            continue;
        }
        // Released, it gets the end of what it has begun, and that is no datagram cut short without terr.
        d.client[size_t(i)].stuck = false;
        d.client[size_t(i)].stall = 0;
        d.run(50);
        size_t good = 0, k = 0;
        for (auto& g : got) {
            if (g.err) continue;
            while (k < all.size() && !(all[k] == g)) k++;
            check(k < all.size(), who + ": a datagram that nobody sent");
            k++;
            good++;
        }
        uint64_t now_lost = d.client_lost[size_t(i)] - lost;
        check(good + now_lost == all.size(), who + ": " + std::to_string(good) + " good and " + std::to_string(now_lost) + " lost of " + std::to_string(all.size()));
        check(now_lost > 0, who + " lost nothing");
        std::printf("slow client %d (%d%% stalled): %zu good, %llu lost of %zu\n", i, stall, good, (unsigned long long)now_lost, all.size());
        // And it is well again.
        got.clear();
        Bytes f = pad(udp(Ip(), 5, uint16_t(7 + i), noise(d, 77)));
        d.in.push_back({f, false, 0});
        d.run(300);
        check(got.size() == 1 && got[0] == host.hear(f, false).datagram, who + " is well again");
    }
}

// All clients send at once: every datagram goes out whole, in its client's order, each client as often as the others.
static void test_send(D& d) {
    const size_t each = 200;
    d.out.clear();
    for (int i = 0; i < CLIENT_COUNT; i++) {
        for (size_t k = 0; k < each; k++) {
            Send s;
            s.d.dst_ip = PEER_IP;
            s.d.src_port = uint16_t(7 + i);
            s.d.dst_port = uint16_t(k);
            s.d.ttl = 64;
            s.d.data = noise(d, d.rng() % 120);
            s.mode = 0;
            d.client[size_t(i)].send.push_back(s);
        }
    }
    std::array<std::deque<Send>, CLIENT_COUNT> sent;
    for (int i = 0; i < CLIENT_COUNT; i++) sent[size_t(i)] = d.client[size_t(i)].send;
    // The wire takes pauses between frames.
    int pause = 0;
    d.on_frame = [&](const Frame&) { pause = int(d.rng() % 20); };
    d.tx_ready = [&] { return d.in_frame || pause-- <= 0; };
    d.settle(300);
    d.on_frame = [](const Frame&) {};
    d.tx_ready = [] { return true; };
    check(d.out.size() == each * CLIENT_COUNT, "all sent: " + std::to_string(d.out.size()));
    std::array<size_t, CLIENT_COUNT> count{};
    for (size_t k = 0; k < d.out.size(); k++) {
        const Bytes& f = d.out[k].data;
        size_t i = get(f, 34, 2) - 7;
        check(i < CLIENT_COUNT && !sent[i].empty() && !d.out[k].err, "a frame of nobody");
        Ip h;
        h.dmac = PEER_MAC; h.smac = OUR_MAC; h.src = OUR_IP; h.dst = PEER_IP; h.id = 0; h.flags = 0;
        check(f == udp(h, sent[i].front().d.src_port, sent[i].front().d.dst_port, sent[i].front().d.data, false), "frame " + std::to_string(k));
        sent[i].pop_front();
        count[i]++;
        if (k % (CLIENT_COUNT * 20) == CLIENT_COUNT * 20 - 1)
            for (int j = 0; j < CLIENT_COUNT; j++) check(count[size_t(j)] + 2 >= (k + 1) / CLIENT_COUNT, "client " + std::to_string(j) + " waits longer than the others");
    }
    for (int i = 0; i < CLIENT_COUNT; i++) {
        auto& status = d.client[size_t(i)].status;
        check(status.size() == each, "tx_done once per datagram");
        for (int s : status) check(s == 0, "status");
        status.clear();
    }
}

int main(int argc, char** argv) {
    D d(seed_of(argc, argv));
    d.in.push_back({pad(arp(0xffffffffffffull, 1, PEER_MAC, PEER_IP, 0, OUR_IP)), false, 0});
    d.settle();
    test_receive(d, -1, 0);
    for (int i : {0, CLIENT_COUNT / 2, CLIENT_COUNT - 1}) {
        test_receive(d, i, 100);
        test_receive(d, i, 60);
    }
    test_send(d);
    std::printf("PASS after %llu cycles\n", (unsigned long long)d.cycle);
}
