// top: bench_cm
// param: TICK=1 SLOTS=4
//
// Connections that others make: whole ones from captures of Linux, compared field by field; every refusal; repeated, lost, crossing and
// late messages.
#include "peer.hpp"

using namespace bench;
using namespace peer;

namespace {

/// REQ to DREP as captured between two Linux machines, with the board in place of the second.
void capture_of_rping(Bench& b) {
    const uint32_t far = 0x0a000002;
    b.send(far, captured::rping_req);
    const Words r = b.heard(0, REQUEST, "rping");
    CHECK(r[0] == (1u << 28 | 7174) && r[2] == far, "REQUEST %08x from %08x", r[0], r[2]);
    for (unsigned i = 3; i < 17; i++) CHECK(r[i] == captured::rping_req[6 + 44 + i - 3], "private data %u: %08x", i - 3, r[i]);
    const uint32_t qpn = r[1];
    const auto& f = b.fields[qpn % SLOTS];
    CHECK(qpn > 1 && qpn < 1u << 24, "queue pair %06x", qpn);
    CHECK(f[STATE] == INIT && f[QPN] == qpn && f[DEST] == 0x11 && f[PEER] == far, "state %u, queue pairs %06x %06x, peer %08x", f[STATE], f[QPN], f[DEST], f[PEER]);
    CHECK(f[PATH] >> 16 == 3 && (f[PATH] & 0xc000) == 0xc000, "path %08x", f[PATH]);
    CHECK(f[SQ_PSN] == 0xd573bc, "first PSN to send %06x", f[SQ_PSN]);
    CHECK(f[DEPTHS] == (1 << 8 | 1), "depths %08x", f[DEPTHS]);
    CHECK((f[TIMERS] & 0xffff) == (7 << 12 | 7 << 8 | 19), "timers %08x", f[TIMERS]);
    CHECK(f[RIGHTS] == 0xffff0700, "rights %08x", f[RIGHTS]);

    Words accept = {2u << 28, qpn};
    for (unsigned i = 0; i < 14; i++) accept.push_back(static_cast<uint32_t>(rng()));
    b.ask(0, accept);
    const Datagram rep = b.expect(REP, "rping");
    CHECK(rep.address == far && rep.qpn == 1, "REP goes to %08x, %u", rep.address, rep.qpn);
    const uint32_t comm = rep.data(0);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t linux_has = captured::rping_rep[i];
        switch (static_cast<int>(i) - 6) {
        case 0: CHECK(rep.mad[i] != 0, "communication ID 0"); break;
        case 3: CHECK(rep.mad[i] == qpn << 8, "REP with queue pair %08x", rep.mad[i]); break;
        case 5: CHECK(rep.mad[i] == f[RQ_PSN] << 8, "REP starts at %08x, the transport at %06x", rep.mad[i], f[RQ_PSN]); break;
        case 7: CHECK(rep.mad[i] == 0x004757ff, "GUID %08x", rep.mad[i]); break;
        case 8: CHECK(rep.mad[i] == 0xfe000001, "GUID %08x", rep.mad[i]); break;
        case 9: case 10: case 11: case 12: case 13: case 14: case 15: case 16: case 17: case 18: case 19: case 20: case 21: case 22:
            CHECK(rep.mad[i] == accept[2 + i - 15], "private data %u: %08x", i - 15, rep.mad[i]);
            break;
        default: CHECK(rep.mad[i] == linux_has, "REP word %u: %08x, Linux has %08x", i, rep.mad[i], linux_has);
        }
    }
    CHECK(b.state(qpn) == RTR, "after REP in state %u", b.state(qpn));
    Mad rtu = captured::rping_rtu;
    rtu[7] = comm;
    b.send(far, rtu);
    const Words e = b.heard(0, ESTABLISHED, "rping");
    CHECK(e[0] == (2u << 28 | 7174) && e[1] == qpn && e[2] == far, "ESTABLISHED %08x %06x %08x", e[0], e[1], e[2]);
    for (unsigned i = 3; i < 17; i++) CHECK(e[i] == 0, "ESTABLISHED with private data");
    CHECK(b.state(qpn) == RTS, "after RTU in state %u", b.state(qpn));
    Mad dreq = captured::rping_dreq;
    dreq[7] = comm;
    dreq[8] = qpn << 8;
    b.send(far, dreq);
    const Datagram drep = b.expect(DREP, "rping");
    for (unsigned i = 0; i < 64; i++) CHECK(drep.mad[i] == (i == 6 ? comm : captured::rping_drep[i]), "DREP word %u: %08x", i, drep.mad[i]);
    CHECK(b.reset_at[qpn % SLOTS] != 0 && b.state(qpn) == RESET, "DREP while the queue pair is in state %u", b.state(qpn));
    CHECK(b.heard(0, DISCONNECTED, "rping")[1] == qpn, "DISCONNECTED of another");
    // A DREQ once more, as if the DREP had been lost.
    b.send(far, dreq);
    b.expect(DREP, "a DREQ again");
    b.quiet("after rping");
    ok("a whole connection of rping");
}

/// The two connections of perftest -R, with its depths of 0 and 128.
void capture_of_perftest(Bench& b) {
    std::vector<Datagram> reps;
    for (const Mad* req : {&captured::perftest_req, &captured::perftest_req_2}) {
        b.send(0x0a000002, *req);
        const Words r = b.heard(1, REQUEST, "perftest");
        CHECK((r[0] & 0xffff) == 18515, "REQUEST for %u", r[0] & 0xffff);
        b.ask(1, {2u << 28, r[1]});
        reps.push_back(b.expect(REP, "perftest"));
        const uint32_t asked = (*req)[14] & 255, word = reps.back().data(6);
        CHECK(word >> 24 == std::min<uint32_t>((*req)[15] & 255, 4), "responder resources %u", word >> 24);
        CHECK((word >> 16 & 255) == std::min<uint32_t>(asked, 4), "initiator depth %u of %u", word >> 16 & 255, asked);
    }
    CHECK(reps[0].data(3) != reps[1].data(3), "one queue pair for two connections");
    const Mad* requests[] = {&captured::perftest_req, &captured::perftest_req_2};
    for (unsigned i = 0; i < 2; i++) {
        Mad dreq = message(DREQ);
        dreq[6] = (*requests[i])[6];
        dreq[7] = reps[i].data(0);
        dreq[8] = reps[i].data(3);
        b.send(0x0a000002, dreq);
        b.expect(DREP, "perftest");
        b.heard(1, DISCONNECTED, "perftest");
    }
    ok("two connections of perftest");
}

void refusals(Bench& b) {
    Remote far{b};
    auto refused = [&](const char* what, const Mad& m, unsigned reason) {
        b.send(far.address, m);
        const Datagram g = b.expect(REJ, what);
        CHECK(g.data(0) == 0 && g.data(1) == m[6] && g.data(2) == reason, "%s: REJ %08x %08x %08x, not reason %u", what, g.data(0), g.data(1), g.data(2), reason);
        CHECK(g.mad[2] == m[2] && g.mad[3] == m[3], "%s: another transaction", what);
        b.quiet(what, 2000);
    };
    refused("nobody listens", far.req(4000), 8);
    Mad m = far.req(7174);
    m[9] = 0x01111c06;
    refused("the UDP port space", m, 8);
    m = far.req(7174), m[8] = 1;
    refused("a service ID with high bits", m, 8);
    m = far.req(7174), m[16] |= 2;
    refused("unreliable connections", m, 9);
    for (unsigned mtu : {0u, 4u, 5u, 6u, 15u}) {
        m = far.req(7174), m[18] = (m[18] & ~0xf000u) | mtu << 12;
        refused("path MTU", m, 26);
    }
    m = far.req(7174), m[41] = 0x00600000;
    refused("an IP CM header of IPv6", m, 5);
    m = far.req(7174), m[41] |= 1u << 24;
    refused("another version of the IP CM header", m, 5);
    m = far.req(7174), m[18] &= 0xffff;
    refused("P_Key 0", m, 5);
    m = far.req(7174), m[0] = 0x01070103;
    refused("another version of the class", m, 31);

    // The application says no, with private data.
    b.send(far.address, far.req(7471));
    const Words r = b.heard(1, REQUEST, "consumer");
    Words reject = {3u << 28, r[1]};
    for (unsigned i = 0; i < 14; i++) reject.push_back(static_cast<uint32_t>(rng()));
    b.ask(1, reject);
    const Datagram g = b.expect(REJ, "consumer");
    CHECK(g.data(1) == far.comm && g.data(2) == 28, "REJ %08x, reason %u", g.data(1), g.data(2));
    for (unsigned i = 0; i < 14; i++) CHECK(g.data(21 + i) == reject[2 + i], "private data %u: %08x", i, g.data(21 + i));
    b.quiet("after a consumer's REJ", 2000);
    CHECK(b.state(r[1]) == RESET, "a refused queue pair is in state %u", b.state(r[1]));
    for (unsigned mtu : {1u, 2u, 3u}) {
        far.comm++;
        m = far.req(7174), m[18] = (m[18] & ~0xf000u) | mtu << 12;
        b.send(far.address, m);
        const Words q = b.heard(0, REQUEST, "smaller MTU");
        CHECK(b.fields[q[1] % SLOTS][PATH] >> 16 == mtu, "path MTU %u", b.fields[q[1] % SLOTS][PATH] >> 16);
        b.ask(0, {3u << 28, q[1]});
        b.expect(REJ, "smaller MTU");
    }
    ok("refusals");
}

void repeats(Bench& b) {
    Remote far{b};
    far.comm += 100;
    // A REQ again before the application has answered, after REP, and when established.
    b.send(far.address, far.req(7174));
    const Words r = b.heard(0, REQUEST, "repeats");
    b.send(far.address, far.req(7174));
    b.quiet("a REQ again while the application thinks");
    Words accept = {2u << 28, r[1], 0x11111111};
    b.ask(0, accept);
    const Datagram first = b.expect(REP, "repeats");
    far.take(first);
    for (int i = 0; i < 3; i++) {
        b.send(far.address, far.req(7174));
        const Datagram again = b.expect(REP, "a REQ again");
        CHECK(again.mad == first.mad, "the second REP differs");
    }
    // No RTU: the REP comes again.
    const Datagram late = b.expect(REP, "no RTU", 200000);
    CHECK(late.mad == first.mad, "the REP after a timeout differs");
    far.rtu();
    b.heard(0, ESTABLISHED, "repeats");
    far.rtu();
    b.quiet("a second RTU");
    b.send(far.address, far.req(7174));
    CHECK(b.expect(REP, "a REQ to a connection").mad == first.mad, "the REP of a connection differs");
    far.leave(0);
    b.send(far.address, far.req(7174));
    b.quiet("an old REQ in timewait");
    b.run(1 << 14);
    b.send(far.address, far.req(7174));
    b.ask(0, {3u << 28, b.heard(0, REQUEST, "after timewait")[1]});
    b.expect(REJ, "after timewait");
    // Data instead of the RTU.
    far.comm++;
    b.send(far.address, far.req(7174));
    b.ask(0, {2u << 28, b.heard(0, REQUEST, "data first")[1]});
    far.take(b.expect(REP, "data first"));
    b.events.push_back(1u << 28 | far.board_qpn);
    b.heard(0, ESTABLISHED, "data first");
    far.rtu();
    b.quiet("RTU after data");
    far.leave(0);
    ok("repeated messages");
}

void goodbyes(Bench& b) {
    Remote far{b};
    far.comm += 200;
    // The application ends it.
    far.connect(7174, 0);
    b.ask(0, {4u << 28, far.board_qpn});
    Datagram g = b.expect(DREQ, "disconnect");
    CHECK(g.data(0) == far.board_comm && g.data(1) == far.comm && g.data(2) == far.qpn << 8, "DREQ %08x %08x %08x", g.data(0), g.data(1), g.data(2));
    CHECK(b.state(far.board_qpn) == RESET, "DREQ in state %u", b.state(far.board_qpn));
    b.heard(0, DISCONNECTED, "disconnect");
    g = b.expect(DREQ, "DREQ again", 200000);
    b.send(far.address, far.named(DREP));
    b.quiet("after DREP", 200000);
    // Both at once.
    far.comm++;
    far.connect(7174, 0);
    b.ask(0, {4u << 28, far.board_qpn});
    b.expect(DREQ, "crossing");
    b.heard(0, DISCONNECTED, "crossing");
    far.dreq();
    b.expect(DREP, "crossing");
    b.send(far.address, far.named(DREP));
    b.quiet("after crossing DREQs", 200000);
    // Nobody answers the DREQ: four of them, then peace.
    far.comm++;
    far.connect(7174, 0);
    b.ask(0, {4u << 28, far.board_qpn});
    b.heard(0, DISCONNECTED, "no DREP");
    for (int i = 0; i < 4; i++) b.expect(DREQ, "no DREP", 200000);
    b.quiet("after four DREQs", 200000);
    // A DREQ for what never was.
    far.board_comm = 0x123456;
    far.dreq();
    g = b.expect(DREP, "unknown");
    CHECK(g.data(0) == 0x123456 && g.data(1) == far.comm, "DREP %08x %08x", g.data(0), g.data(1));
    // The transport gives up.
    far.comm++;
    far.connect(7174, 0);
    b.events.push_back(2u << 28 | far.board_qpn);
    b.expect(DREQ, "error");
    b.heard(0, DISCONNECTED, "error");
    b.send(far.address, far.named(DREP));
    // The far end refuses the REP.
    far.comm++;
    b.send(far.address, far.req(7174));
    b.ask(0, {2u << 28, b.heard(0, REQUEST, "REJ of REP")[1]});
    far.take(b.expect(REP, "REJ of REP"));
    far.rej(1, 28);
    b.heard(0, DISCONNECTED, "REJ of REP");
    CHECK(b.state(far.board_qpn) == RESET, "after REJ in state %u", b.state(far.board_qpn));
    // It gives up before it has seen the REP.
    far.comm++;
    b.send(far.address, far.req(7174));
    b.ask(0, {2u << 28, b.heard(0, REQUEST, "REJ of REQ")[1]});
    far.take(b.expect(REP, "REJ of REQ"));
    far.board_comm = 0;
    far.rej(0, 4);
    b.heard(0, DISCONNECTED, "REJ of REQ");
    b.quiet("after goodbyes", 200000);
    ok("goodbyes");
}

/// Depths cross over and are no more than there is.
void depths(Bench& b) {
    Remote far{b};
    far.comm += 400;
    const unsigned asked[][2] = {{128, 128}, {0, 0}, {16, 2}, {1, 255}, {4, 5}};
    for (const auto& [responder, initiator] : asked) {
        far.comm++;
        Mad m = far.req(7174);
        m[14] = (m[14] & ~255u) | responder, m[15] = (m[15] & ~255u) | initiator;
        b.send(far.address, m);
        const Words r = b.heard(0, REQUEST, "depths");
        b.ask(0, {2u << 28, r[1]});
        const Datagram rep = b.expect(REP, "depths");
        far.take(rep);
        const unsigned serves = std::min(initiator, 4u), asks = std::min(responder, 4u);
        CHECK(rep.data(6) >> 16 == (serves << 8 | asks), "REP %08x to %u and %u", rep.data(6), responder, initiator);
        CHECK(b.fields[r[1] % SLOTS][DEPTHS] == (asks << 8 | serves), "depths %08x to %u and %u", b.fields[r[1] % SLOTS][DEPTHS], responder, initiator);
        far.leave(0);
    }
    ok("depths");
}

/// Messages with the right IDs from another address, or with wrong IDs from the right one, change nothing.
void strangers(Bench& b) {
    Remote far{b};
    far.comm += 300;
    b.send(far.address, far.req(7174));
    b.ask(0, {2u << 28, b.heard(0, REQUEST, "strangers")[1]});
    far.take(b.expect(REP, "strangers"));
    Remote other = far;
    other.address++;
    Remote guess = far;
    guess.comm++;
    for (Remote* r : {&other, &guess}) {
        r->rtu();
        r->rej(1, 28);
        b.send(r->address, r->named(DREP));
        Mad mra = r->named(MRA);
        mra[8] = 1u << 30 | 20u << 19;
        b.send(r->address, mra);
        b.run(12000);
        CHECK(b.state(far.board_qpn) == RTR, "a stranger made the state %u", b.state(far.board_qpn));
    }
    b.quiet("strangers before RTU", 1000);
    b.expect(REP, "the timer goes on", 70000);
    far.rtu();
    b.heard(0, ESTABLISHED, "strangers");
    for (Remote* r : {&other, &guess}) {
        r->dreq();
        const Datagram g = b.expect(DREP, "a stranger's DREQ");
        CHECK(g.address == r->address, "DREP goes to %08x", g.address);
        r->rej(1, 28);
        b.quiet("strangers");
        CHECK(b.state(far.board_qpn) == RTS, "a stranger made the state %u", b.state(far.board_qpn));
    }
    far.leave(0);
    ok("strangers");
}

/// The counters know what has happened so far.
void counters(Bench& b) {
    const unsigned counted[] = {REQS, REPS, RTUS, SERVICE, MTU, CONSUMER, OTHER, DREQS, UPS, TIMEOUTS};
    for (unsigned c : counted) CHECK(b.counter(c) != 0, "counter %u is 0", c);
    CHECK(b.counter(SERVICE) == 3 && b.counter(MTU) == 5, "%u and %u refusals", b.counter(SERVICE), b.counter(MTU));
    CHECK(b.counter(NO_QP) == 0 && b.counter(MALFORMED) == 0, "%u and %u that never were", b.counter(NO_QP), b.counter(MALFORMED));
    ok("counters");
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Bench b;
    capture_of_rping(b);
    capture_of_perftest(b);
    refusals(b);
    repeats(b);
    goodbyes(b);
    depths(b);
    strangers(b);
    counters(b);
    return end();
}
