// Requests of every kind between queue pairs of one transport, and what must come of them.
#pragma once
#include "bench.hpp"
#include <array>
#include <cstring>

namespace roce {
using namespace bench;

inline constexpr uint32_t KEY = 3 << 8 | 7;

template <class D> struct Side {
    int slot, client;
    uint32_t qpn;
    uint64_t local, remote; // 64 KiB each: what it sends from, what it owns at the peer
    unsigned posted = 0, done = 0, received = 0, wanted = 0;
    std::deque<typename D::Work> open;
    std::deque<std::pair<uint64_t, uint32_t>> sends; // what the peer must receive next
    std::vector<std::function<void()>> checks;
    std::deque<std::pair<uint64_t, int>> buffers; // posted receives
    uint64_t added = 0;
    std::vector<uint64_t> olds;
};

// Drives two pairs of queue pairs of `t` until each has had `count` requests completed; what the wire does is the driver's.
template <class D> void traffic(D& t, int pmtu, unsigned count) {
    for (auto& b : t.memory) b = uint8_t(rng());
    t.region(3, 7, 1, 0x17, 0, t.memory.size());
    std::array<Side<D>, 4> side{{{0, 0, 0x100, 0x10000, 0x20000}, {1, 1, 0x201, 0x30000, 0x40000}, {2, 0, 0x302, 0x50000, 0x60000}, {3, 1, 0x403, 0x70000, 0x80000}}};
    uint32_t psn[4];
    for (auto& p : psn) p = 0xffffff - uint32_t(below(40));
    for (int i = 0; i < 4; i++)
        t.open(i, {.qpn = side[i].qpn, .dqpn = side[i ^ 1].qpn, .pmtu = pmtu, .epsn = psn[i ^ 1], .npsn = psn[i], .depth_r = 4, .depth_i = 4, .timeout = 2, .retry = 7, .rnr_retry = 7, .rnr_code = 1});
    std::array<size_t, 2> seen{};
    const uint64_t counter = 0x90000;
    t.store64(counter, 0);
    uint64_t idle = 0;
    for (bool busy = true; busy && idle < 200000;) {
        t.cycles(1);
        idle++;
        t.wire();
        busy = false;
        for (auto& s : side) {
            Side<D>& peer = side[s.slot ^ 1];
            if (s.posted < count || s.done < s.posted) busy = true;
            // As many requests as the queue takes; the buffers of each are its own.
            while (s.posted < count && s.open.size() < 6 && t.post[s.client].size() < 20) {
                typename D::Work w{.op = 0, .id = int(s.posted)};
                const uint32_t at = (s.posted % 60) * 1024;
                w.length = chance(20) ? below(4) : below(1024);
                w.laddr = s.local + at + below(4);
                w.raddr = s.remote + at + below(4);
                w.length = std::min<uint32_t>(w.length, 1020);
                w.rkey = KEY;
                const int what = below(10);
                w.op = what < 3 ? 0 : what < 6 ? 4 : what < 8 ? 2 : what < 9 ? 7 : 6;
                if (w.op == 7) w.op = 3;
                w.imm = uint32_t(rng());
                if (w.op == 6) { w.length = 8; w.raddr = counter; w.swap = 1; }
                // Data are fresh where they are read from.
                const uint64_t source = w.op == 4 ? w.raddr : w.laddr;
                if (w.op != 6)
                    for (uint32_t i = 0; i < w.length; i++) t.memory[source + i] = uint8_t(rng());
                if (w.op == 2 || w.op == 3) {
                    const uint64_t buffer = 0xa0000 + s.slot * 0x10000 + at;
                    peer.buffers.push_back({buffer, int(s.posted)});
                    t.receive(peer.client, peer.qpn, int(s.posted), buffer, 1024);
                }
                t.work(s.client, s.qpn, w);
                s.open.push_back(w);
                s.posted++;
            }
        }
        for (int c = 0; c < 2; c++)
            for (; seen[c] < t.cq[c].size(); seen[c]++) {
                idle = 0;
                const auto& e = t.cq[c][seen[c]];
                Side<D>* s = nullptr;
                for (auto& x : side) if (x.qpn == e[1]) s = &x;
                CHECK(s && s->client == c, "a completion of nobody: %x", e[1]);
                if (!s) continue;
                Side<D>& peer = side[s->slot ^ 1];
                CHECK(e[0] >> 28 == 0, "status %u of queue pair %x", e[0] >> 28, e[1]);
                if (e[0] >> 22 & 1) {
                    CHECK(!s->buffers.empty() && (e[0] & 0xffff) == uint32_t(s->buffers.front().second), "receives out of order");
                    if (!s->buffers.empty()) s->buffers.pop_front();
                    s->received++;
                    continue;
                }
                CHECK(!s->open.empty() && (e[0] & 0xffff) == uint32_t(s->open.front().id) && (e[0] >> 24 & 15) == uint32_t(s->open.front().op), "completions out of order");
                if (s->open.empty()) continue;
                const typename D::Work w = s->open.front();
                s->open.pop_front();
                s->done++;
                CHECK(e[2] == w.length, "length %u, not %u", e[2], w.length);
                if (w.op == 0) CHECK(!std::memcmp(&t.memory[w.laddr], &t.memory[w.raddr], w.length), "WRITE %d of %u bytes", w.id, w.length);
                if (w.op == 4) CHECK(!std::memcmp(&t.memory[w.laddr], &t.memory[w.raddr], w.length), "READ %d of %u bytes", w.id, w.length);
                if (w.op == 2 || w.op == 3) CHECK(!std::memcmp(&t.memory[w.laddr], &t.memory[0xa0000 + s->slot * 0x10000 + (w.id % 60) * 1024], w.length), "SEND %d of %u bytes", w.id, w.length);
                if (w.op == 6) s->olds.push_back(t.load64(w.laddr));
                (void)peer;
            }
    }
    std::vector<uint64_t> olds;
    for (auto& s : side) {
        CHECK(s.done == count, "queue pair %x: %u of %u done, state %d", s.qpn, s.done, count, t.state(s.slot));
        olds.insert(olds.end(), s.olds.begin(), s.olds.end());
    }
    std::sort(olds.begin(), olds.end());
    for (size_t i = 0; i < olds.size(); i++) CHECK(olds[i] == i, "atomic %zu got %llu", i, (unsigned long long)olds[i]);
    CHECK(t.load64(counter) == olds.size(), "%llu additions, not %zu", (unsigned long long)t.load64(counter), olds.size());
}
} // namespace roce
