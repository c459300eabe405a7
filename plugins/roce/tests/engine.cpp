// top: bench_engine
// param: QPS=4
// param: QPS=64
//
// The rules of responder and requester, case by case.
#include "cases.hpp"

static void responder() {
    D t;
    t.region(1, 0x55, 1, 0x17, 0x1000, 0x8000);
    const uint32_t KEY = 1 << 8 | 0x55;
    uint32_t e = 0xfffffe; // across the wrap
    t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = e, .state = 2});
    CHECK(t.state(0) == 2, "not RTR");
    EXPECT_ACK(give(t, WRITE_ONLY, e, true, reth(0x1000, KEY, 100), random_bytes(100)), e, 0x1f);
    CHECK(t.taken[0].action == 1 && t.taken[0].addr == 0x1000, "not written");
    CHECK(t.events.size() == 1 && t.events[0] == (1u << 28 | QPN), "no event");
    CHECK(t.state(0) == 3, "not RTS");
    e++;
    CHECK(t.jobs[0].ext[0] == 0x1f000001, "MSN %x", t.jobs[0].ext[0]);
    // A message of three packets; only the last asks for an ACK.
    CHECK(give(t, WRITE_FIRST, e, false, reth(0x1003, KEY, 2500), random_bytes(1024)).empty(), "ACK unasked");
    CHECK(t.taken[0].action == 1 && t.taken[0].addr == 0x1003, "first at %llx", (unsigned long long)t.taken[0].addr);
    CHECK(give(t, WRITE_MIDDLE, e + 1, false, {}, random_bytes(1024)).empty(), "ACK unasked");
    CHECK(t.taken[0].addr == 0x1403, "middle at %llx", (unsigned long long)t.taken[0].addr);
    EXPECT_ACK(give(t, WRITE_LAST, e + 2, true, {}, random_bytes(452)), e + 2, 0x1f);
    CHECK(t.taken[0].addr == 0x1803, "last at %llx", (unsigned long long)t.taken[0].addr);
    e += 3;
    ok("WRITE");
    // Ahead: one NAK with the expected PSN, then silence; a duplicate is acknowledged again.
    EXPECT_ACK(give(t, WRITE_ONLY, e + 3, true, reth(0x1000, KEY, 4), random_bytes(4)), e, 0x60);
    EXPECT_NOTHING(give(t, WRITE_ONLY, e + 4, true, reth(0x1000, KEY, 4), random_bytes(4)));
    EXPECT_ACK(give(t, WRITE_ONLY, e - 2, true, reth(0x1000, KEY, 4), random_bytes(4)), e - 1, 0x1f);
    CHECK(t.taken[0].action == 0, "a duplicate is written");
    EXPECT_NOTHING(give(t, WRITE_ONLY, e - 2, true, reth(0x900, KEY, 4), random_bytes(4)));
    EXPECT_NOTHING(give(t, WRITE_ONLY, e - 2, true, reth(0x1000, KEY ^ 1, 4), random_bytes(4)));
    EXPECT_ACK(give(t, WRITE_ONLY, e, true, reth(0x1000, KEY, 4), random_bytes(4)), e, 0x1f);
    e++;
    ok("PSN ahead and behind");
    // READ of three packets, its duplicate from the second on, and an ACK that waits its turn.
    for (size_t i = 0; i < 0x8000; i++) t.memory[0x1000 + i] = uint8_t(rng());
    auto r = give(t, READ_REQUEST, e, true, reth(0x1005, KEY, 2500), {});
    CHECK(r.size() == 3, "%zu responses", r.size());
    if (r.size() == 3) {
        CHECK(r[0].opcode == RESP_FIRST && r[1].opcode == RESP_MIDDLE && r[2].opcode == RESP_LAST, "opcodes");
        CHECK(r[0].addr == 0x1005 && r[1].addr == 0x1405 && r[2].addr == 0x1805 && r[2].length == 452, "addresses");
        for (unsigned i = 0; i < 3; i++) CHECK(r[i].psn == ((e + i) & 0xffffff), "PSN %x", r[i].psn);
    }
    r = give(t, READ_REQUEST, e + 1, true, reth(0x1405, KEY, 1476), {});
    CHECK(r.size() == 2 && r[0].opcode == RESP_FIRST && r[0].psn == ((e + 1) & 0xffffff) && r[0].addr == 0x1405 && r[1].opcode == RESP_LAST && r[1].length == 452, "a READ again");
    EXPECT_NOTHING(give(t, READ_REQUEST, e + 1, true, reth(0x1404, KEY, 1476), {}));
    EXPECT_NOTHING(give(t, READ_REQUEST, e + 1, true, reth(0x1405, KEY ^ 1, 1476), {}));
    EXPECT_NOTHING(give(t, READ_REQUEST, e + 1, true, reth(0x1405, KEY, 1480), {}));
    e += 3;
    t.jobs.clear();
    t.packet(READ_REQUEST, QPN, e, true, reth(0x1000, KEY, 4096), {});
    t.packet(WRITE_ONLY, QPN, e + 4, true, reth(0x1000, KEY, 4), random_bytes(4));
    t.packet(READ_REQUEST, QPN, e + 5, true, reth(0x1000, KEY, 0), {});
    t.quiet();
    CHECK(t.jobs.size() == 6, "%zu jobs", t.jobs.size());
    for (size_t i = 0; i < t.jobs.size(); i++) CHECK(t.jobs[i].psn == ((e + i) & 0xffffff), "job %zu has PSN %x", i, t.jobs[i].psn);
    CHECK(t.jobs[4].opcode == ACK && t.jobs[5].opcode == RESP_ONLY && t.jobs[5].length == 0, "order");
    e += 6;
    ok("READ");
    // SEND needs a receive request.
    EXPECT_ACK(give(t, SEND_ONLY, e, true, {}, random_bytes(16)), e, 0x21);
    EXPECT_NOTHING(give(t, SEND_ONLY, e + 1, true, {}, random_bytes(16)));
    EXPECT_ACK(give(t, SEND_ONLY, e, true, {}, random_bytes(16)), e, 0x21);
    t.receive(1, QPN, 77, 0x20000, 2000);
    t.quiet();
    CHECK(give(t, SEND_FIRST, e, false, {}, random_bytes(1024)).empty(), "ACK unasked");
    CHECK(t.taken[0].addr == 0x20000, "SEND to %llx", (unsigned long long)t.taken[0].addr);
    EXPECT_ACK(give(t, SEND_LAST_IMM, e + 1, true, {0x12345678}, random_bytes(10)), e + 1, 0x1f);
    CHECK(t.taken[0].addr == 0x20400, "SEND to %llx", (unsigned long long)t.taken[0].addr);
    CHECK(t.cq[1].size() == 1, "%zu completions", t.cq[1].size());
    if (t.cq[1].size() == 1) {
        const auto& c = t.cq[1][0];
        CHECK(c[0] == (2u << 24 | 1u << 23 | 1u << 22 | 77) && c[1] == QPN && c[2] == 1034 && c[3] == 0x12345678, "completion %08x %x %u %x", c[0], c[1], c[2], c[3]);
    }
    t.cq[1].clear();
    e += 2;
    t.receive(1, QPN, 78, 0, 0);
    t.quiet();
    EXPECT_ACK(give(t, WRITE_ONLY_IMM, e, true, reth(0x1000, KEY, 8, 0xabcdef01), random_bytes(8)), e, 0x1f);
    CHECK(t.taken[0].addr == 0x1000, "WRITE to %llx", (unsigned long long)t.taken[0].addr);
    CHECK(t.cq[1].size() == 1 && t.cq[1][0][0] == (1u << 23 | 1u << 22 | 78) && t.cq[1][0][2] == 8 && t.cq[1][0][3] == 0xabcdef01, "WRITE with immediate data");
    e++;
    ok("SEND, immediate data, RNR");
    // Atomics; a duplicate gets the saved result.
    t.store64(0x1100, 1000);
    r = give(t, FETCH_ADD, e, true, {0, 0x1100, KEY, 0, 5, 0, 0}, {});
    CHECK(r.size() == 1 && r[0].opcode == ATOMIC_ACK && r[0].ext[1] == 0 && r[0].ext[2] == 1000 && t.load64(0x1100) == 1005, "fetch and add");
    r = give(t, CMP_SWAP, e + 1, true, {0, 0x1100, KEY, 0, 9, 0, 1005}, {});
    CHECK(r.size() == 1 && r[0].ext[2] == 1005 && t.load64(0x1100) == 9, "compare and swap");
    r = give(t, FETCH_ADD, e, true, {0, 0x1100, KEY, 0, 5, 0, 0}, {});
    CHECK(!r.empty() && r[0].opcode == ATOMIC_ACK && r[0].ext[2] == 1000 && r[0].psn == (e & 0xffffff) && t.load64(0x1100) == 9, "an atomic again");
    e += 2;
    ok("atomics");
    // Every fault ends in the right NAK, and the queue pair in error; another goes on.
    struct Bad { const char* what; uint8_t opcode; std::array<uint32_t, 7> ext; size_t length; int syndrome; };
    const Bad bad[] = {
        {"key", WRITE_ONLY, reth(0x1000, KEY ^ 1, 4), 4, 0x62},
        {"no region", WRITE_ONLY, reth(0x1000, 2 << 8, 4), 4, 0x62},
        {"index", READ_REQUEST, reth(0x1000, 0xff00 << 8 | 0x55, 4), 0, 0x62},
        {"one below", WRITE_ONLY, reth(0xfff, KEY, 4), 4, 0x62},
        {"one above", WRITE_ONLY, reth(0x8ffd, KEY, 4), 4, 0x62},
        {"READ one above", READ_REQUEST, reth(0x8ffd, KEY, 4), 0, 0x62},
        {"2^32", WRITE_ONLY, reth(0x100001000, KEY, 4), 4, 0x62},
        {"2^64", READ_REQUEST, reth(0xfffffffffffffffe, KEY, 4), 0, 0x62},
        {"WRITE length", WRITE_ONLY, reth(0x1000, KEY, 5), 4, 0x61},
        {"WRITE first short", WRITE_FIRST, reth(0x1000, KEY, 2000), 1000, 0x61},
        {"WRITE middle out of nothing", WRITE_MIDDLE, {}, 1024, 0x61},
        {"SEND last out of nothing", SEND_LAST, {}, 24, 0x61},
        {"READ too long", READ_REQUEST, reth(0x1000, KEY, 0x80000001), 0, 0x61},
        {"READ with payload", READ_REQUEST, reth(0x1000, KEY, 4), 4, 0x61},
        {"atomic unaligned", FETCH_ADD, {0, 0x1101, KEY, 0, 5, 0, 0}, 0, 0x61},
        {"atomic above", FETCH_ADD, {0, 0x9000, KEY, 0, 5, 0, 0}, 0, 0x62},
    };
    for (const auto& b : bad) {
        t.set(0, 0, 0);
        t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = 100});
        t.events.clear();
        EXPECT_ACK(give(t, b.opcode, 100, true, b.ext, random_bytes(b.length)), 100, b.syndrome);
        CHECK(t.taken.size() == 1 && t.taken[0].action == 0, "%s: written", b.what);
        CHECK(t.state(0) == 6 && t.events.size() == 1 && t.events[0] == (2u << 28 | QPN), "%s: state %d", b.what, t.state(0));
        EXPECT_NOTHING(give(t, WRITE_ONLY, 100, true, reth(0x1000, KEY, 4), random_bytes(4)));
    }
    for (auto [va, length] : {std::pair<uint64_t, uint32_t>{0x8ffc, 4}, {0x1000, 0x8000}, {0x8fff, 1}}) {
        t.set(0, 0, 0);
        t.open(0, {.qpn = QPN, .dqpn = PEER, .pmtu = 5, .epsn = 100});
        r = give(t, READ_REQUEST, 100, true, reth(va, KEY, length), {});
        CHECK(!r.empty() && r[0].opcode != ACK, "inside the region, yet refused");
    }
    ok("bounds, keys, lengths, sequences");
}

static void requester() {
    D t;
    t.open(1, {.qpn = QPN + 1, .dqpn = PEER, .epsn = 5, .npsn = 0xfffffd, .timeout = 1, .retry = 3});
    for (auto& b : t.memory) b = uint8_t(rng());
    auto from = [&](uint8_t opcode, uint32_t psn, std::array<uint32_t, 7> ext, Bytes data = {}) {
        t.packet(opcode, QPN + 1, psn, false, ext, std::move(data));
        t.cycles(60);
    };
    auto aeth = [](uint8_t s) { return std::array<uint32_t, 7>{uint32_t(s) << 24, 0, 0, 0, 0, 0, 0}; };
    t.work(0, QPN + 1, {.op = 0, .id = 1, .laddr = 0x3001, .length = 2500, .rkey = 0xabc, .raddr = 0x1122334455667788});
    t.cycles(150);
    CHECK(t.jobs.size() == 3, "%zu packets", t.jobs.size());
    if (t.jobs.size() == 3) {
        CHECK(t.jobs[0].opcode == WRITE_FIRST && t.jobs[0].psn == 0xfffffd && t.jobs[0].ext[0] == 0x11223344 && t.jobs[0].ext[1] == 0x55667788 && t.jobs[0].ext[2] == 0xabc && t.jobs[0].ext[3] == 2500, "first");
        CHECK(t.jobs[1].opcode == WRITE_MIDDLE && t.jobs[1].psn == 0xfffffe && t.jobs[1].addr == 0x3401, "middle");
        CHECK(t.jobs[2].opcode == WRITE_LAST && t.jobs[2].psn == 0xffffff && t.jobs[2].length == 452 && t.jobs[2].ackreq && t.jobs[2].addr == 0x3801, "last");
    }
    // A NAK for the second packet; then a timeout; then it is acknowledged.
    t.jobs.clear();
    from(ACK, 0xfffffe, aeth(0x60));
    CHECK(t.jobs.size() == 2 && t.jobs[0].opcode == WRITE_MIDDLE && t.jobs[0].addr == 0x3401 && t.jobs[0].psn == 0xfffffe, "go-back-N: %zu", t.jobs.size());
    t.jobs.clear();
    t.cycles(256 * 4);
    CHECK(t.jobs.size() >= 2 && t.jobs[0].psn == 0xfffffe, "no timeout: %zu", t.jobs.size());
    CHECK(t.cq[0].empty(), "completed too early");
    from(ACK, 0xffffff, aeth(0x1f));
    CHECK(t.cq[0].size() == 1 && t.cq[0][0][0] == 1 && t.cq[0][0][2] == 2500, "no completion");
    t.cq[0].clear();
    t.jobs.clear();
    t.cycles(256 * 6);
    CHECK(t.jobs.empty(), "sends what is acknowledged");
    ok("WRITE, NAK, timeout, ACK");
    // READ with a lost response: asked again from there, once.
    t.work(0, QPN + 1, {.op = 4, .id = 2, .laddr = 0x5003, .length = 3000, .rkey = 0xdef, .raddr = 0x7000});
    t.cycles(60);
    CHECK(t.jobs.size() == 1 && t.jobs[0].opcode == READ_REQUEST && t.jobs[0].psn == 0 && t.jobs[0].ext[3] == 3000, "no READ");
    t.jobs.clear();
    Bytes a = random_bytes(1024), b = random_bytes(1024), c = random_bytes(952);
    from(RESP_FIRST, 0, aeth(0x1f), a);
    from(RESP_LAST, 2, aeth(0x1f), c);
    CHECK(t.jobs.size() == 1 && t.jobs[0].opcode == READ_REQUEST && t.jobs[0].psn == 1 && t.jobs[0].ext[1] == 0x7400 && t.jobs[0].ext[3] == 1976, "resumed: %zu op %x psn %x va %x len %u", t.jobs.size(), t.jobs[0].opcode, t.jobs[0].psn, t.jobs[0].ext[1], t.jobs[0].ext[3]);
    from(RESP_LAST, 2, aeth(0x1f), c);
    CHECK(t.jobs.size() == 1, "asked twice for one gap");
    from(RESP_FIRST, 1, aeth(0x1f), b);
    from(RESP_LAST, 2, aeth(0x1f), c);
    CHECK(t.cq[0].size() == 1 && t.cq[0][0][0] == (4u << 24 | 2), "READ is not complete");
    Bytes all = a;
    all.insert(all.end(), b.begin(), b.end());
    all.insert(all.end(), c.begin(), c.end());
    CHECK(std::equal(all.begin(), all.end(), t.memory.begin() + 0x5003), "READ data");
    t.cq[0].clear();
    t.jobs.clear();
    ok("READ, lost response");
    // RNR: nothing until its time, sequence NAKs meanwhile ignored.
    t.work(0, QPN + 1, {.op = 2, .id = 3, .laddr = 0x5000, .length = 16});
    t.cycles(60);
    CHECK(t.jobs.size() == 1 && t.jobs[0].opcode == SEND_ONLY && t.jobs[0].psn == 3, "no SEND");
    t.jobs.clear();
    from(ACK, 3, aeth(0x20 | 5));
    from(ACK, 3, aeth(0x60));
    t.cycles(256 * 10);
    CHECK(t.jobs.empty(), "sends during an RNR timer");
    t.cycles(256 * 12);
    CHECK(!t.jobs.empty() && t.jobs[0].psn == 3, "does not send after the RNR timer");
    from(ACK, 3, aeth(0x1f));
    CHECK(t.cq[0].size() == 1 && t.cq[0][0][0] == (2u << 24 | 3), "SEND is not complete");
    t.cq[0].clear();
    ok("RNR");
    // No answer at all: as many tries as agreed, then everything ends in error, in order.
    t.jobs.clear();
    t.work(0, QPN + 1, {.op = 0, .id = 4, .laddr = 0x3000, .length = 4});
    t.work(0, QPN + 1, {.op = 2, .id = 5, .laddr = 0x3000, .length = 4, .signalled = false});
    t.receive(0, QPN + 1, 6, 0, 100);
    t.cycles(256 * 30);
    CHECK(t.jobs.size() == 2 * 4, "%zu packets", t.jobs.size());
    CHECK(t.cq[0].size() == 3, "%zu completions", t.cq[0].size());
    if (t.cq[0].size() == 3) {
        CHECK(t.cq[0][0][0] == (12u << 28 | 0u << 24 | 4), "%08x", t.cq[0][0][0]);
        CHECK(t.cq[0][1][0] == (5u << 28 | 2u << 24 | 5), "%08x", t.cq[0][1][0]);
        CHECK(t.cq[0][2][0] == (5u << 28 | 2u << 24 | 1u << 22 | 6), "%08x", t.cq[0][2][0]);
    }
    CHECK(t.state(1) == 6, "not in error");
    ok("retries run out");
    for (auto [code, status] : {std::pair<int, uint32_t>{1, 9}, {2, 10}, {3, 11}}) {
        t.set(1, 0, 0);
        t.cq[0].clear();
        t.open(1, {.qpn = QPN + 1, .dqpn = PEER, .npsn = 50});
        t.work(0, QPN + 1, {.op = 0, .id = 7, .laddr = 0x3000, .length = 4});
        t.work(0, QPN + 1, {.op = 0, .id = 8, .laddr = 0x3000, .length = 4});
        t.cycles(150);
        from(ACK, 51, aeth(uint8_t(0x60 | code)));
        t.cycles(100);
        CHECK(t.cq[0].size() == 2 && t.cq[0][0][0] == 7 && t.cq[0][1][0] == (status << 28 | 8), "NAK %d", code);
    }
    ok("NAKs complete in error");
}

// A CNP counts for a queue pair that is connected to its sender, and harms nothing; a marked packet makes one, not more than one in 50 us.
static void congestion() {
    D t;
    t.region(1, 0x55, 1, 0x17, 0x1000, 0x8000);
    const uint32_t KEY = 1 << 8 | 0x55;
    t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = 100});
    t.open(1, {.qpn = QPN + 0x201, .dqpn = PEER + 1, .ip = 0x0a000002, .state = 2});
    t.open(2, {.qpn = QPN + 0x202, .dqpn = PEER + 2, .state = 1});
    uint64_t stray = 0;
    auto cnp = [&](const char* what, uint32_t qpn, uint32_t ip, bool counts, uint32_t pkey = 0xffff) {
        Unit p;
        p.opcode = CNP, p.dqpn = qpn, p.psn = uint32_t(rng()) & 0xffffff, p.ip = ip, p.pkey = pkey, p.data = Bytes(16);
        const size_t before = t.congestion.size();
        t.jobs.clear();
        t.taken.clear();
        t.in.push_back(p);
        t.quiet();
        stray += !counts;
        CHECK(t.jobs.empty() && t.taken.size() == 1 && t.taken[0].action == 0, "%s: not dropped", what);
        CHECK(t.congestion.size() == before + counts && t.happened[10] == t.congestion.size(), "%s: %llu CNPs", what, (unsigned long long)t.happened[10]);
        CHECK(t.happened[0] == stray && t.happened[12] == 0, "%s: %llu packets for nobody, %llu bad datagrams", what, (unsigned long long)t.happened[0], (unsigned long long)t.happened[12]);
        if (counts) CHECK(t.congestion.back() == qpn, "%s: queue pair %x is named", what, t.congestion.back());
    };
    for (int round = 0; round < 2; round++) {
        cnp("RTS", QPN, 0x0a000001, true);
        cnp("RTR", QPN + 0x201, 0x0a000002, true);
        cnp("INIT", QPN + 0x202, 0x0a000001, false);
        cnp("RESET", 3, 0x0a000001, false);
        cnp("an older connection", QPN + 0x100, 0x0a000001, false);
        cnp("another source", QPN + 0x201, 0x0a000001, false);
        cnp("another P_Key", QPN, 0x0a000001, false, 0x8001);
        EXPECT_ACK(give(t, WRITE_ONLY, 100 + round, true, reth(0x1000, KEY, 100), random_bytes(100)), 100 + round, 0x1f);
    }
    t.set(0, 0, 6);
    cnp("ERR", QPN, 0x0a000001, false);
    CHECK(t.state(1) == 2, "a CNP is taken for a request");
    ok("CNPs received");
    t.set(0, 0, 0);
    t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = 100});
    t.cycles(256 * 20);
    t.jobs.clear();
    std::vector<uint64_t> sent;
    t.on_job = [&](const Unit& p) {
        if (p.opcode != CNP) return;
        CHECK(p.dqpn == PEER && p.psn == 0 && p.source == 3 && p.length == 16, "a CNP for %x with PSN %x", p.dqpn, p.psn);
        sent.push_back(t.cycle);
    };
    const uint64_t begin = t.cycle;
    for (uint32_t n = 0; t.cycle < begin + 256 * 60; n++) {
        Unit p;
        p.opcode = WRITE_ONLY, p.dqpn = QPN, p.psn = 100 + n, p.ip = t.ip, p.ce = true, p.ext = reth(0x1000, KEY, 4), p.data = random_bytes(4);
        t.in.push_back(p);
        t.cycles(100);
    }
    t.quiet();
    CHECK(sent.size() >= 4 && t.happened[11] == sent.size(), "%zu CNPs sent, %llu counted", sent.size(), (unsigned long long)t.happened[11]);
    for (size_t i = 1; i < sent.size(); i++) CHECK(sent[i] - sent[i - 1] >= 3125, "the next CNP after %llu cycles", (unsigned long long)(sent[i] - sent[i - 1]));
    ok("CNPs sent");
}

int main(int argc, char** argv) {
    begin(argc, argv);
    responder();
    requester();
    congestion();
    return end();
}
