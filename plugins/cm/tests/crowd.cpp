// top: bench_cm
// param: TICK=1 SLOTS=4
// param: TICK=4 SLOTS=16
//
// Many connections: 2000 one after the other on 4 queue pairs, peers that come back without goodbye, peers that are gone, half-open connections,
// applications that do not listen, random and damaged datagrams, the services of the class.
#include "peer.hpp"

using namespace bench;
using namespace peer;

namespace {

const unsigned N = SLOTS == 4 ? 2000 : 200;

void one_after_the_other(Bench& b) {
    b.percent = 100;
    std::map<uint32_t, unsigned> seen;
    for (unsigned i = 0; i < N; i++) {
        Remote far{b};
        far.comm = 0x1000 + i;
        far.qpn = 17 + i;
        far.connect(7174, 0);
        CHECK(seen[far.board_qpn]++ == 0 && far.board_qpn > 1, "connection %u has queue pair %06x again", i, far.board_qpn);
        if (i % 3 == 0) {
            b.ask(0, {4u << 28, far.board_qpn});
            b.expect(DREQ, "goodbye");
            b.heard(0, DISCONNECTED, "goodbye");
            if (i % 2) b.send(far.address, far.named(DREP));
            else b.goodbyes[far.comm] = true;
        } else {
            far.leave(0);
        }
        if (failures) return;
    }
    b.percent = 50;
    b.run(200000 * TICK);
    b.tx.clear();
    const unsigned ups = b.counter(UPS);
    CHECK(ups == N, "%u connections came up, then %u", ups, b.counter(UPS));
    ok("2000 connections");
}

/// A machine that is switched off and comes back with the same queue pair: the old connection ends, the new one is made.
void without_goodbye(Bench& b) {
    Remote far{b};
    far.comm = 0x20000;
    far.connect(7174, 0);
    for (unsigned i = 0; i < 6; i++) {
        const uint32_t old = far.board_qpn;
        far.comm++;
        b.send(far.address, far.req(7174));
        CHECK(b.heard(0, DISCONNECTED, "comes back")[1] == old, "another ended");
        CHECK(b.state(old) == RESET || b.fields[old % SLOTS][QPN] != old, "the old queue pair lives");
        const Words r = b.heard(0, REQUEST, "comes back");
        b.ask(0, {2u << 28, r[1]});
        far.take(b.expect(REP, "comes back"));
        far.rtu();
        b.heard(0, ESTABLISHED, "comes back");
    }
    far.leave(0);
    ok("peers that come back");
}

/// Every second machine is gone; another one finds a place. Then all live, and the next is refused.
void full(Bench& b) {
    std::vector<Remote> far;
    for (unsigned i = 0; i <= SLOTS; i++) {
        far.push_back({b});
        far[i].address += i, far[i].guid[1] += i, far[i].comm = 0x30000 + i, far[i].qpn = 17;
    }
    for (unsigned i = 0; i < SLOTS; i++) far[i].connect(7174, 0);
    b.run(70000 * TICK); // since the last time that somebody looked
    b.send(far[SLOTS].address, far[SLOTS].req(7174));
    // Each is asked for a sign of life, by its REP; those with odd numbers give one.
    unsigned asked[SLOTS] = {};
    const uint64_t until = b.cycles + 15000 * SLOTS;
    while (b.cycles < until) {
        const Datagram g = b.next(4000);
        if (!g.attribute()) continue;
        CHECK(g.attribute() == REP, "message %x", g.attribute());
        for (unsigned i = 0; i < SLOTS; i++)
            if (g.data(1) == far[i].comm) {
                asked[i]++;
                if (i % 2) far[i].rtu();
            }
    }
    for (unsigned i = 0; i < SLOTS; i++) CHECK(asked[i] == (i % 2 ? 1u : 3u), "peer %u was asked %u times", i, asked[i]);
    for (unsigned n = 0; n < SLOTS / 2; n++) {
        const uint32_t gone = b.heard(0, DISCONNECTED, "gone")[1];
        CHECK(std::any_of(far.begin(), far.begin() + SLOTS, [&](const Remote& f) { return (&f - far.data()) % 2 == 0 && f.board_qpn == gone; }), "another ended");
    }
    far[SLOTS].connect(7174, 0);
    for (unsigned i = 0; i < SLOTS; i += 2)
        if (far[i].comm += 10, i != 2) far[i].connect(7174, 0);
    // All are there and say so, if they are asked; then the REQ, repeated, is refused.
    Datagram refusal{};
    for (int round = 0; round < 3 && !refusal.attribute(); round++) {
        b.send(far[2].address, far[2].req(7174));
        while (const unsigned attribute = b.until([&] { return !b.tx.empty(); }, 20000) ? b.tx.front().attribute() : 0) {
            const Datagram g = b.next();
            if (attribute == REJ) refusal = g;
            for (auto& f : far)
                if (attribute == REP && g.data(1) == f.comm) f.rtu();
        }
    }
    CHECK(refusal.data(2) == 1 && refusal.data(1) == far[2].comm, "message %x, reason %u", refusal.attribute(), refusal.data(2));
    for (unsigned i = 0; i <= SLOTS; i++)
        if (i != 2) far[i].leave(0);
    ok("no free queue pair");
}

/// All queue pairs are taken and their peers have just been asked for a sign of life. One leaves: its place is free for the REQ that comes right
/// behind its DREQ. While the application has still to hear of the end, a REQ gets silence, not a refusal, and finds the place when it is repeated.
void room_again(Bench& b) {
    b.run(70000 * TICK); // since the last time that somebody looked
    std::vector<Remote> far;
    for (unsigned i = 0; i <= SLOTS; i++) {
        far.push_back({b});
        far[i].guid[1] += i, far[i].comm = 0x38000 + i, far[i].qpn = 33;
    }
    for (unsigned i = 0; i < SLOTS; i++) far[i].connect(7174, 0);
    b.send(far[SLOTS].address, far[SLOTS].req(7174));
    for (unsigned i = 0; i < SLOTS; i++) {
        const uint32_t comm = b.expect(REP, "a sign of life").data(1);
        for (auto& f : far)
            if (f.comm == comm) f.rtu();
    }
    b.quiet("all have answered");

    const auto welcome = [&](Remote& f, const char* what) {
        const Words r = b.heard(0, REQUEST, what);
        b.ask(0, {2u << 28, r[1]});
        f.take(b.expect(REP, what));
        f.rtu();
        b.heard(0, ESTABLISHED, what);
    };
    // At every phase of the program's loop.
    for (unsigned i = 0; i < 2 * SLOTS; i++) {
        Remote &gone = far[i % (SLOTS + 1)], &next = far[(i + SLOTS) % (SLOTS + 1)];
        next.comm += 0x100;
        b.run(bench::below(200));
        gone.dreq();
        b.send(next.address, next.req(7174));
        b.expect(DREP, "room again");
        b.heard(0, DISCONNECTED, "room again");
        welcome(next, "room again");
        if (failures) return;
    }
    // Two leave while the application does not listen: the first event waits in its FIFO, the second in its slot. Nobody is refused meanwhile.
    Remote &gone = far[2 * SLOTS % (SLOTS + 1)], &other = far[(2 * SLOTS + 1) % (SLOTS + 1)], &next = far[3 * SLOTS % (SLOTS + 1)];
    b.listening[0] = false;
    for (Remote* f : {&gone, &other}) {
        f->dreq();
        b.expect(DREP, "room later");
        f->comm += 0x100;
    }
    next.comm += 0x100;
    b.send(next.address, next.req(7174));
    b.send(gone.address, gone.req(7174));
    b.quiet("room later");
    b.listening[0] = true;
    // Events of different connections come in any order.
    CHECK(b.until([&] { return b.told[0].size() == 3; }), "%zu events, not 3", b.told[0].size());
    const auto asked = std::find_if(b.told[0].begin(), b.told[0].end(), [](const Words& w) { return w[0] >> 28 == REQUEST; });
    if (asked != b.told[0].end()) std::rotate(b.told[0].begin(), asked, asked + 1);
    const Words request = b.heard(0, REQUEST, "room later");
    b.heard(0, DISCONNECTED, "room later");
    b.heard(0, DISCONNECTED, "room later");
    b.told[0].push_back(request);
    welcome(next, "room later");
    b.send(gone.address, gone.req(7174));
    welcome(gone, "room later");
    for (auto& f : far)
        if (&f != &other) f.leave(0);
    ok("room again when a peer has gone");
}

/// REQs without RTU fill all slots; the oldest that has had to wait gives way.
void half_open(Bench& b) {
    std::vector<Remote> far;
    std::vector<uint32_t> qpns;
    for (unsigned i = 0; i <= SLOTS; i++) {
        far.push_back({b});
        far[i].guid[1] += i, far[i].comm = 0x40000 + i;
        if (i == SLOTS) break;
        b.send(far[i].address, far[i].req(7174));
        qpns.push_back(b.heard(0, REQUEST, "half open")[1]);
        b.ask(0, {2u << 28, qpns[i]});
        far[i].take(b.expect(REP, "half open"));
    }
    // Fresh ones stay.
    b.send(far[SLOTS].address, far[SLOTS].req(7174));
    CHECK(b.expect(REJ, "half open").data(2) == 1, "another reason");
    for (unsigned i = 0; i < SLOTS; i++) b.expect(REP, "no RTU", 100000);
    b.send(far[SLOTS].address, far[SLOTS].req(7174));
    b.heard(0, DISCONNECTED, "evicted");
    const Words r = b.heard(0, REQUEST, "a place");
    b.ask(0, {2u << 28, r[1]});
    far[SLOTS].take(b.expect(REP, "a place"));
    far[SLOTS].rtu();
    b.heard(0, ESTABLISHED, "a place");
    // The others run out of patience.
    unsigned gone = 0;
    const uint64_t limit = b.cycles + 17ull * 70000;
    while (gone < SLOTS - 1 && b.cycles < limit) {
        b.run(1000);
        b.tx.clear();
        while (!b.told[0].empty()) gone += b.told[0].front()[0] >> 28 == DISCONNECTED, b.told[0].pop_front();
    }
    CHECK(gone == SLOTS - 1, "%u half-open connections ended", gone);
    far[SLOTS].leave(0);
    ok("half-open connections");
}

/// An application that does not listen holds up nobody, and hears everything in the end.
void deaf(Bench& b) {
    b.listening[0] = false;
    // More events than fit into its FIFO, if they were put there; of most REQs it never hears.
    for (unsigned i = 0; i < 6; i++) {
        Remote gone{b};
        gone.comm = 0x50100 + i, gone.guid[1] += 10 + i;
        b.send(gone.address, gone.req(7174));
        b.run(12000);
        gone.rej(0, 4);
        b.run(12000);
    }
    Remote one{b}, two{b};
    one.comm = 0x50000, two.comm = 0x50001;
    one.guid[1]++, two.guid[1] += 2;
    b.send(one.address, one.req(7174));
    b.run(12000);
    two.connect(18515, 1);
    two.leave(1);
    // It writes a whole record while its events wait.
    b.ask(0, {1u << 28 | 5, 0x0a000009, 7174});
    const Datagram req = b.expect(REQ, "deaf");
    Mad rej = message(REJ);
    rej[7] = req.data(0), rej[8] = 8;
    b.send(0x0a000009, rej);
    b.run(10000);
    b.listening[0] = true;
    b.run(20000);
    unsigned heard[5] = {};
    Words r(2);
    for (const Words& w : b.told[0]) {
        heard[w[0] >> 28]++;
        if (w[0] >> 28 == REQUEST) r = w;
        if (w[0] >> 28 == FAILED) CHECK(w[1] == 8, "reason %u", w[1]);
    }
    b.told[0].clear();
    CHECK(heard[REQUEST] == 2 && heard[DISCONNECTED] == 1 && heard[FAILED] == 1, "%u, %u and %u events", heard[REQUEST], heard[DISCONNECTED], heard[FAILED]);
    // It never answers the REQUEST: the far end hears of it.
    const Datagram g = b.expect(REJ, "no answer", 100000 * TICK);
    CHECK((g.data(2) & 0xffff) == 4, "reason %u", g.data(2) & 0xffff);
    CHECK(b.heard(0, DISCONNECTED, "no answer")[1] == r[1], "another ended");
    ok("an application that does not listen");
}

void services(Bench& b) {
    // SIDR.
    Mad m = message(SIDR_REQ);
    m[2] = 5, m[3] = 6, m[6] = 0x777, m[9] = 0x01111234;
    b.send(0x0a000002, m);
    Datagram g = b.expect(SIDR_REP, "SIDR");
    CHECK(g.data(0) == 0x777 && g.data(1) >> 24 == 1 && g.data(4) == 0x01111234, "SIDR_REP %08x %08x %08x", g.data(0), g.data(1), g.data(4));
    // ClassPortInfo, and what there is not.
    for (unsigned attribute : {1u, 0x12u}) {
        m = message(REQ);
        m[0] = 0x01070201, m[3] = 42, m[4] = attribute << 16;
        b.send(0x0a000002, m, 9);
        g = b.next();
        CHECK(g.mad[0] == 0x01070281 && g.mad[3] == 42 && g.mad[4] == attribute << 16 && g.qpn == 9, "GetResp %08x", g.mad[0]);
        CHECK(g.mad[1] == (attribute == 1 ? 0u : 0x000c0000u), "status %08x", g.mad[1]);
        CHECK(g.data(0) == (attribute == 1 ? 0x01020000u : 0u), "ClassPortInfo %08x", g.data(0));
    }
    ok("SIDR and ClassPortInfo");
}

/// Whatever comes, the next good REQ works.
void noise(Bench& b) {
    for (unsigned i = 0; i < 300; i++) {
        Remote far{b};
        Mad m = chance(50) ? far.req(7174) : far.named(static_cast<Attribute>(REQ + below(16)));
        if (chance(50)) m[7] = static_cast<uint32_t>(rng());
        // Never a REQ that is right.
        m[8 + below(4)] ^= 1u << below(32);
        m[9] = 0x01060000 | (8000 + static_cast<uint32_t>(below(1000)));
        if (chance(30)) m[below(6)] ^= 1u << below(32);
        if (chance(80)) {
            b.send(far.address, m);
        } else {
            const size_t n = 1 + below(80);
            for (size_t k = 0; k < n; k++) b.rx.push_back({static_cast<uint32_t>(rng()), k + 1 == n});
        }
        if (chance(20)) b.events.push_back(static_cast<uint32_t>(rng()));
        if (chance(20)) {
            Words w(1 + below(20));
            for (auto& x : w) x = static_cast<uint32_t>(rng());
            if (w[0] >> 28 == 1) w[0] = 0;
            b.ask(static_cast<unsigned>(below(APPS)), w);
        }
    }
    CHECK(b.until([&] { return b.rx.empty() && b.events.empty() && b.asks[0].empty() && b.asks[1].empty(); }, 3000000), "noise is not taken");
    b.run(12000);
    b.tx.clear();
    for (unsigned i = 0; i < APPS; i++) CHECK(b.told[i].empty(), "noise became event %08x", b.told[i].front()[0]);
    Remote far{b};
    far.comm = 0x60000;
    far.connect(7471, 1);
    far.leave(1);
    ok("noise");
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Bench b;
    one_after_the_other(b);
    without_goodbye(b);
    full(b);
    room_again(b);
    if (SLOTS == 4) half_open(b); // more take longer to make than a timeout
    deaf(b);
    services(b);
    noise(b);
    return end();
}
