// top: bench_cm
// param: TICK=1 SLOTS=4
//
// Calls of the board: the REQ compared with one of Linux, answers, refusals, lost messages, no free queue pair.
#include "peer.hpp"

using namespace bench;
using namespace peer;

namespace {

const uint32_t FAR = 0x0a000002;

Words connect(unsigned tag, unsigned port, const Words& data) {
    Words w = {1u << 28 | tag, FAR, port};
    w.insert(w.end(), data.begin(), data.end());
    return w;
}

/// What Linux answers to a REQ: the captured REP with the IDs of this call.
Mad rep_to(const Datagram& req, uint32_t comm) {
    Mad m = captured::rping_rep;
    m[2] = req.mad[2], m[3] = req.mad[3];
    m[6] = comm;
    m[7] = req.data(0);
    return m;
}

Mad named(Attribute attribute, uint32_t comm, const Datagram& req) {
    Mad m = message(attribute);
    m[2] = req.mad[2], m[3] = req.mad[3];
    m[6] = comm, m[7] = req.data(0);
    return m;
}

void call(Bench& b) {
    Words data;
    for (unsigned i = 0; i < 14; i++) data.push_back(static_cast<uint32_t>(rng()));
    b.ask(0, connect(0x2345, 7174, data));
    const Datagram req = b.expect(REQ, "call");
    CHECK(req.address == FAR && req.qpn == 1, "REQ goes to %08x, %u", req.address, req.qpn);
    const uint32_t qpn = req.data(8) >> 8;
    const auto& f = b.fields[qpn % SLOTS];
    CHECK(f[STATE] == INIT && f[QPN] == qpn && f[PEER] == FAR && f[RIGHTS] == 0xffff0700, "state %u, queue pair %06x, peer %08x", f[STATE], f[QPN], f[PEER]);
    // What Linux wrote in its own REQ, with this side's numbers.
    const Mad& linux_has = captured::rping_req;
    for (unsigned i = 0; i < 58; i++) {
        uint32_t want = linux_has[6 + i];
        switch (i) {
        case 0: CHECK(req.data(0) != 0, "communication ID 0"); continue;
        case 4: want = 0x004757ff; break;
        case 5: want = 0xfe000001; break;
        case 8: want = qpn << 8 | 4; break;
        case 9: want = 4; break;
        case 10: want = 14 << 3; break; // a bench's time instead of 20
        case 11: want = f[RQ_PSN] << 8 | 14 << 3 | 7; break;
        case 17: case 39: want = 0x0a000001; break;
        case 21: case 43: want = FAR; break;
        case 22: CHECK((req.data(22) & 0xfff) == 0, "flow label %08x", req.data(22)); continue;
        case 35: CHECK(req.data(35) >> 16 == 0x40 && (req.data(35) & 0xffff) != 0, "IP CM header %08x", req.data(35)); continue;
        default: if (i >= 44) want = data[i - 44];
        }
        CHECK(req.data(i) == want, "REQ word %u: %08x, not %08x", i, req.data(i), want);
    }
    // Again after a while, the same.
    const Datagram again = b.expect(REQ, "no answer", 30000);
    CHECK(again.mad == req.mad, "the second REQ differs");
    // MRA: the far end needs longer.
    Mad mra = named(MRA, 77, req);
    mra[8] = 17u << 19;
    b.send(FAR, mra);
    b.quiet("after MRA", 1 << 17);
    // REP with private data.
    Mad rep = rep_to(req, 77);
    for (unsigned i = 0; i < 14; i++) rep[15 + i] = static_cast<uint32_t>(rng());
    rep[12] = 2u << 24 | 1u << 16 | 0x78a0; // 2 and 1, RNR retries 5
    b.send(FAR, rep);
    const Datagram rtu = b.expect(RTU, "call");
    CHECK(rtu.data(0) == req.data(0) && rtu.data(1) == 77 && rtu.mad[3] == req.mad[3], "RTU %08x %08x", rtu.data(0), rtu.data(1));
    const Words e = b.heard(0, ESTABLISHED, "call");
    CHECK(e[0] == (2u << 28 | 0x2345) && e[1] == qpn && e[2] == FAR, "ESTABLISHED %08x %08x %08x", e[0], e[1], e[2]);
    for (unsigned i = 0; i < 14; i++) CHECK(e[3 + i] == rep[15 + i], "private data %u: %08x", i, e[3 + i]);
    CHECK(f[STATE] == RTS && f[DEST] == 0x11 && f[SQ_PSN] == 0x6ea5a6, "state %u, queue pair %06x, PSN %06x", f[STATE], f[DEST], f[SQ_PSN]);
    CHECK(f[DEPTHS] == (2 << 8 | 1), "depths %08x", f[DEPTHS]);
    CHECK((f[TIMERS] & 0xffff) == (5 << 12 | 7 << 8 | 19), "timers %08x", f[TIMERS]);
    // The RTU was lost.
    b.send(FAR, rep);
    CHECK(b.expect(RTU, "a REP again").mad == rtu.mad, "the second RTU differs");
    b.quiet("established");
    // The far end leaves.
    Mad dreq = named(DREQ, 77, req);
    dreq[8] = qpn << 8;
    b.send(FAR, dreq);
    b.expect(DREP, "call");
    b.heard(0, DISCONNECTED, "call");
    b.quiet("after a call");
    // A REP for nobody.
    b.send(FAR, rep);
    const Datagram rej = b.expect(REJ, "REP for nobody");
    CHECK(rej.data(1) == 77 && rej.data(2) == (1u << 30 | 6), "REJ %08x %08x", rej.data(1), rej.data(2));
    ok("a call");
}

void refused(Bench& b) {
    for (unsigned reason : {8u, 28u, 1u}) {
        b.ask(1, connect(reason, 7174, {}));
        const Datagram req = b.expect(REQ, "refused");
        Mad rej = named(REJ, 0, req);
        rej[8] = reason;
        b.send(FAR, rej);
        const Words e = b.heard(1, FAILED, "refused");
        CHECK(e[0] == (4u << 28 | reason) && e[1] == reason, "FAILED %08x %u, not %u", e[0], e[1], reason);
        CHECK(b.state(req.data(8) >> 8) == RESET, "refused in state %u", b.state(req.data(8) >> 8));
    }
    // Nobody answers: 16 REQs, then a REJ that names our GUID, since the far end may not know our ID.
    b.ask(1, connect(9, 7174, {}));
    for (int i = 0; i < 16; i++) b.expect(REQ, "nobody", 40000);
    const Datagram rej = b.expect(REJ, "nobody", 40000);
    CHECK((rej.data(2) & 0xffff) == 4 && (rej.data(2) >> 17 & 127) == 8 && rej.data(3) == 0x004757ff && rej.data(4) == 0xfe000001, "REJ %08x %08x %08x", rej.data(2), rej.data(3), rej.data(4));
    const Words e = b.heard(1, FAILED, "nobody");
    CHECK(e[0] == (4u << 28 | 9) && e[1] == 4, "FAILED %08x %u", e[0], e[1]);
    b.quiet("after nobody", 100000);
    ok("refused calls");
}

void crowded(Bench& b) {
    std::vector<Datagram> reqs;
    for (unsigned i = 0; i < SLOTS; i++) {
        b.ask(0, connect(i, 7174, {}));
        reqs.push_back(b.expect(REQ, "crowded"));
        b.send(FAR, rep_to(reqs[i], 100 + i));
        b.expect(RTU, "crowded");
        CHECK((b.heard(0, ESTABLISHED, "crowded")[0] & 0xffff) == i, "another tag");
    }
    b.ask(1, connect(99, 7174, {}));
    const Words e = b.heard(1, FAILED, "no queue pair");
    CHECK(e[0] == (4u << 28 | 99) && e[1] == 1, "FAILED %08x %u", e[0], e[1]);
    // Applications cannot end each other's connections.
    b.ask(1, {4u << 28, reqs[0].data(8) >> 8});
    b.quiet("a stranger's DISCONNECT");
    for (unsigned i = 0; i < SLOTS; i++) {
        b.ask(0, {4u << 28, reqs[i].data(8) >> 8});
        CHECK(b.expect(DREQ, "crowded").data(1) == 100 + i, "DREQ to another");
        b.send(FAR, named(DREP, 100 + i, reqs[i]));
        b.heard(0, DISCONNECTED, "crowded");
    }
    b.quiet("after all calls", 100000);
    ok("all queue pairs call");
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Bench b;
    call(b);
    refused(b);
    crowded(b);
    return end();
}
