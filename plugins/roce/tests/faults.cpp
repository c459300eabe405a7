// top: bench_engine
// param: QPS=4
//
// Faults that others had and that the wire alone does not show well, each a case by its name.
#include "cases.hpp"

// A repeated atomic got its remembered answer whatever its key said: it must have every right that the first one had, else silence.
static void repeated_atomic_is_checked() {
    D t;
    t.region(1, 0x55, 1, 0x17, 0x1000, 0x8000);
    t.region(2, 0x66, 1, 0x13, 0x1000, 0x8000); // no atomics
    t.region(3, 0x77, 2, 0x17, 0x1000, 0x8000); // another domain
    const uint32_t KEY = 1 << 8 | 0x55;
    t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = 7});
    t.store64(0x1100, 1000);
    auto add = [](uint64_t va, uint32_t key) { return std::array<uint32_t, 7>{uint32_t(va >> 32), uint32_t(va), key, 0, 5, 0, 0}; };
    auto r = give(t, FETCH_ADD, 7, true, add(0x1100, KEY), {});
    CHECK(r.size() == 1 && r[0].opcode == ATOMIC_ACK && r[0].ext[2] == 1000, "the first one");
    struct Bad { const char* what; uint64_t va; uint32_t key; };
    const Bad bad[] = {
        {"variant", 0x1100, KEY ^ 1},       {"no region", 0x1100, 4 << 8},     {"index", 0x1100, 0xff00 << 8 | 0x55}, {"no right", 0x1100, 2 << 8 | 0x66}, {"domain", 0x1100, 3 << 8 | 0x77},
        {"below", 0xff8, KEY},              {"above", 0x9000, KEY},            {"2^32", 0x100001100, KEY},            {"2^64", 0xfffffffffffffff8, KEY},   {"unaligned", 0x1101, KEY},
    };
    for (const auto& b : bad) {
        r = give(t, FETCH_ADD, 7, true, add(b.va, b.key), {});
        CHECK(r.empty(), "%s: opcode %x", b.what, r[0].opcode);
        CHECK(t.taken.size() == 1 && t.taken[0].action == 0, "%s: executed", b.what);
    }
    EXPECT_NOTHING(give(t, FETCH_ADD, 7, true, add(0x1100, KEY), random_bytes(4)));
    r = give(t, FETCH_ADD, 7, true, add(0x1100, KEY), {});
    CHECK(r.size() == 1 && r[0].opcode == ATOMIC_ACK && r[0].psn == 7 && r[0].ext[2] == 1000 && t.load64(0x1100) == 1005, "the right one again");
    // A key that was taken back is no key.
    t.region(1, 0x56, 1, 0x17, 0x1000, 0x8000);
    EXPECT_NOTHING(give(t, FETCH_ADD, 7, true, add(0x1100, KEY), {}));
    CHECK(t.state(0) == 3, "the queue pair is harmed");
    ok("repeated atomic is checked");
}

// The first tick of a timer is a partial one: a timeout that counts it is too short. It may last four times as long (InfiniBand
// Architecture Specification 1.4, 9.7.6.1.3).
static void timeout_is_never_short() {
    for (int code : {1, 2, 4}) {
        for (unsigned phase = 0; phase < 16; phase++) {
            D t;
            std::vector<uint64_t> sent;
            t.on_job = [&](const Unit&) { sent.push_back(t.cycle); };
            t.open(0, {.qpn = QPN, .dqpn = PEER, .timeout = code, .retry = 7});
            t.cycles(phase * 17 + 1);
            t.work(0, QPN, {.op = 0, .id = 1, .laddr = 0x3000, .length = 4, .rkey = 1, .raddr = 0});
            const uint64_t agreed = 256u << code;
            t.cycles(9 * agreed);
            CHECK(sent.size() >= 3, "%zu packets", sent.size());
            for (size_t i = 1; i < sent.size(); i++)
                CHECK(sent[i] - sent[i - 1] >= agreed && sent[i] - sent[i - 1] <= 4 * agreed, "timeout %d, phase %u: again after %llu cycles of %llu", code, phase, (unsigned long long)(sent[i] - sent[i - 1]),
                      (unsigned long long)agreed);
        }
    }
    ok("timeout is never short");
}

// PSNs were compared as plain numbers: what is behind the wrap was taken for a duplicate, and a duplicate for what is ahead.
static void responder_psn_wraps() {
    D t;
    t.region(1, 0x55, 1, 0x17, 0x1000, 0x8000);
    const uint32_t KEY = 1 << 8 | 0x55;
    for (uint32_t first : {0xfffffdu, 0xfffffeu, 0xffffffu, 0u}) {
        t.set(0, 0, 0);
        t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = first});
        auto write = [&](uint32_t n) { return give(t, WRITE_ONLY, first + n, true, reth(0x1000, KEY, 4), random_bytes(4)); };
        EXPECT_ACK(write(0), first, 0x1f);
        EXPECT_ACK(write(3), first + 1, 0x60); // ahead, on the other side
        EXPECT_ACK(write(1), first + 1, 0x1f);
        EXPECT_ACK(write(0), first + 1, 0x1f); // behind
        CHECK(t.taken[0].action == 0, "a duplicate is written");
        auto r = give(t, READ_REQUEST, first + 2, true, reth(0x1000, KEY, 4096), {});
        CHECK(r.size() == 4, "%zu responses", r.size());
        for (size_t i = 0; i < r.size(); i++) CHECK(r[i].psn == ((first + 2 + i) & 0xffffff), "response %zu has PSN %x", i, r[i].psn);
        r = give(t, READ_REQUEST, first + 4, true, reth(0x1800, KEY, 2048), {});
        CHECK(r.size() == 2 && r[0].psn == ((first + 4) & 0xffffff) && r[0].addr == 0x1800, "a READ again, from its third packet on");
        EXPECT_ACK(write(6), first + 6, 0x1f);
    }
    ok("responder PSN wraps");
}

// A WRITE with immediate completed nothing: its receive request is used up, with the immediate and the length of the whole message; without
// one it gets an RNR NAK, and no byte of that packet is written.
static void write_with_immediate_completes() {
    D t;
    t.region(1, 0x55, 1, 0x17, 0x1000, 0x8000);
    const uint32_t KEY = 1 << 8 | 0x55;
    t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = 20});
    EXPECT_ACK(give(t, WRITE_ONLY_IMM, 20, true, reth(0x1000, KEY, 8, 5), random_bytes(8)), 20, 0x21);
    CHECK(t.taken[0].action == 0, "written without a receive request");
    t.receive(1, QPN, 7, 0, 0);
    t.receive(1, QPN, 8, 0, 0);
    t.quiet();
    EXPECT_ACK(give(t, WRITE_ONLY_IMM, 20, true, reth(0x1000, KEY, 8, 5), random_bytes(8)), 20, 0x1f);
    CHECK(give(t, WRITE_FIRST, 21, false, reth(0x1000, KEY, 1100), random_bytes(1024)).empty(), "ACK unasked");
    CHECK(t.cq[1].size() == 1, "%zu completions before the second immediate", t.cq[1].size());
    EXPECT_ACK(give(t, WRITE_LAST_IMM, 22, true, {6}, random_bytes(76)), 22, 0x1f);
    CHECK(t.cq[1].size() == 2, "%zu completions", t.cq[1].size());
    for (size_t i = 0; i < t.cq[1].size(); i++) {
        const auto& c = t.cq[1][i];
        CHECK(c[0] == (1u << 23 | 1u << 22 | (7 + i)) && c[1] == QPN && c[2] == (i ? 1100 : 8) && c[3] == 5 + i, "completion %08x %x %u %x", c[0], c[1], c[2], c[3]);
    }
    EXPECT_ACK(give(t, WRITE_ONLY_IMM, 23, true, reth(0x1000, KEY, 8, 7), random_bytes(8)), 23, 0x21);
    ok("WRITE with immediate completes");
}

// Completions were lost when the queue was full: a place is reserved first, so SENDs stop at an RNR NAK, every accepted one completes in
// order, and another application's queue pair goes on meanwhile.
static void completions_do_not_overflow() {
    D t;
    t.open(0, {.qpn = QPN, .dqpn = PEER});
    t.open(1, {.qpn = QPN + 1, .dqpn = PEER + 1});
    t.stuck[1] = true;
    constexpr int POSTED = 100;
    for (int i = 0; i < POSTED; i++) t.receive(1, QPN, i, 0x20000 + 64 * i, 64);
    t.cycles(256 * 8);
    int accepted = 0;
    auto send = [&] {
        auto r = give(t, SEND_ONLY, accepted, true, {}, Bytes(16, uint8_t(accepted)));
        t.cycles(256 * 4); // those that found no room are tried again at each tick
        return !r.empty() && r[0].syndrome() == 0x1f;
    };
    while (accepted < POSTED && send()) accepted++;
    CHECK(accepted >= 16 && accepted < POSTED, "%d SENDs were accepted, and none of their completions taken", accepted);
    CHECK(t.cq[1].empty(), "a completion nobody took");
    // The other one.
    for (int i = 0; i < 40; i++) {
        t.work(0, QPN + 1, {.op = 0, .id = i, .laddr = 0x3000, .length = 4});
        t.cycles(256 * 2);
        t.packet(ACK, QPN + 1, i, false, {0x1f000000}, {});
        t.quiet();
    }
    CHECK(t.cq[0].size() == 40, "%zu of 40 completions beside a full queue", t.cq[0].size());
    // All come, and the rest is accepted.
    t.stuck[1] = false;
    t.cycles(256 * 8);
    CHECK(t.cq[1].size() == size_t(accepted), "%zu of %d completions", t.cq[1].size(), accepted);
    while (accepted < POSTED && send()) accepted++;
    CHECK(accepted == POSTED, "%d of %d SENDs", accepted, POSTED);
    t.quiet();
    CHECK(t.cq[1].size() == POSTED, "%zu of %d completions", t.cq[1].size(), POSTED);
    for (size_t i = 0; i < t.cq[1].size(); i++) CHECK((t.cq[1][i][0] & 0xffff) == i && t.memory[0x20000 + 64 * i] == i, "completion %zu is of %u", i, t.cq[1][i][0] & 0xffff);
    ok("completions do not overflow");
}

// A reserved opcode of the reliable connection got silence: it is a request that cannot be done, NAK invalid request, in its turn; before that a
// sequence NAK, behind that silence.
static void reserved_opcode_is_refused() {
    for (uint8_t opcode : {0x15, 0x18, 0x1b, 0x1f}) {
        D t;
        t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = 5});
        EXPECT_NOTHING(give(t, opcode, 4, true, {}, random_bytes(16)));
        EXPECT_ACK(give(t, opcode, 6, true, {}, random_bytes(16)), 5, 0x60);
        CHECK(t.state(0) == 3, "in error too early");
        EXPECT_ACK(give(t, opcode, 5, true, {}, random_bytes(16)), 5, 0x61);
        CHECK(t.state(0) == 6 && t.taken[0].action == 0, "opcode %02x is done", opcode);
        EXPECT_NOTHING(give(t, SEND_ONLY, 5, true, {}, {}));
    }
    ok("reserved opcode is refused");
}

// A response that does not fit what was asked was dropped, and asked for again until the retries ran out: it ends the queue pair, its request with
// bad response, the next one flushed, and nothing of it is written.
static void wrong_response_ends_the_queue_pair() {
    const std::array<uint32_t, 7> ack = {0x1f000000};
    struct Bad { const char* what; uint8_t opcode; size_t length; };
    const Bad bad[] = {{"middle", RESP_MIDDLE, 1024}, {"last", RESP_LAST, 1024}, {"only", RESP_ONLY, 1024}, {"short", RESP_FIRST, 1020}, {"long", RESP_FIRST, 1028}, {"nothing", RESP_FIRST, 0}, {"atomic", ATOMIC_ACK, 0}};
    for (const auto& b : bad) {
        D t;
        t.open(0, {.qpn = QPN, .dqpn = PEER, .npsn = 30});
        t.work(0, QPN, {.op = 4, .id = 1, .laddr = 0x5000, .length = 2000, .rkey = 1, .raddr = 0});
        t.work(0, QPN, {.op = 0, .id = 2, .laddr = 0x3000, .length = 4, .rkey = 1, .raddr = 0});
        t.cycles(200);
        EXPECT_NOTHING(give(t, b.opcode, 30, false, ack, random_bytes(b.length)));
        CHECK(t.state(0) == 6 && t.happened[15] == 1, "%s: not in error", b.what);
        CHECK(t.cq[0].size() == 2 && t.cq[0][0][0] == (7u << 28 | 4u << 24 | 1) && t.cq[0][1][0] == (5u << 28 | 2), "%s: %zu completions", b.what, t.cq[0].size());
    }
    D t;
    t.open(0, {.qpn = QPN, .dqpn = PEER, .npsn = 30});
    t.work(0, QPN, {.op = 6, .id = 3, .laddr = 0x5000, .length = 8, .rkey = 1, .raddr = 0});
    t.cycles(100);
    EXPECT_NOTHING(give(t, RESP_ONLY, 30, false, ack, random_bytes(8)));
    CHECK(t.state(0) == 6 && t.cq[0].size() == 1 && t.cq[0][0][0] == (7u << 28 | 6u << 24 | 3), "READ data for an atomic");
    ok("wrong response ends the queue pair");
}

// Sequence NAKs were obeyed without end: each without progress uses up a retry, as a timeout does.
static void naks_use_up_the_retries() {
    D t;
    t.open(0, {.qpn = QPN, .dqpn = PEER, .npsn = 30, .retry = 3});
    t.work(0, QPN, {.op = 0, .id = 1, .laddr = 0x3000, .length = 2048, .rkey = 1, .raddr = 0});
    t.cycles(200);
    const std::array<uint32_t, 7> nak = {0x60000000};
    for (int i = 0; i < 3; i++) CHECK(give(t, ACK, 30, false, nak, {}).size() == 2, "NAK %d is not obeyed", i);
    // Progress: one packet is retired, and all retries are there again, this one taken.
    for (int i = 0; i < 3; i++) CHECK(give(t, ACK, 31, false, nak, {}).size() == 1, "NAK %d after progress is not obeyed", i);
    CHECK(give(t, ACK, 31, false, nak, {}).empty() && t.state(0) == 6, "one NAK too many");
    CHECK(t.cq[0].size() == 1 && t.cq[0][0][0] == (12u << 28 | 1), "retries exceeded");
    ok("NAKs use up the retries");
}

// A READ or atomic that came again was answered again, and so were all behind it that nobody had asked for.
static void only_what_comes_again_is_answered_again() {
    D t;
    t.region(1, 0x55, 1, 0x17, 0x1000, 0x8000);
    const uint32_t KEY = 1 << 8 | 0x55;
    t.open(0, {.qpn = QPN, .dqpn = PEER, .epsn = 10});
    // READs of one, two and one packets, and an atomic.
    struct { uint8_t opcode; uint32_t psn; std::array<uint32_t, 7> ext; size_t jobs; } const asked[] = {
        {READ_REQUEST, 10, reth(0x1000, KEY, 16), 1}, {READ_REQUEST, 11, reth(0x1100, KEY, 2000), 2}, {FETCH_ADD, 13, {0, 0x1800, KEY, 0, 5, 0, 0}, 1}, {READ_REQUEST, 14, reth(0x1200, KEY, 16), 1},
    };
    auto ask = [&](int i) { return give(t, asked[i].opcode, asked[i].psn, true, asked[i].ext, {}); };
    for (int i = 0; i < 4; i++) CHECK(ask(i).size() == asked[i].jobs, "request %d", i);
    for (int i : {3, 2, 1, 0, 1, 3, 0}) {
        auto r = ask(i);
        CHECK(r.size() == asked[i].jobs && r[0].psn == asked[i].psn, "request %d again: %zu answers, the first has PSN %u", i, r.size(), r.empty() ? 0 : r[0].psn);
    }
    // Its second packet on.
    auto r = give(t, READ_REQUEST, 12, true, reth(0x1500, KEY, 976), {});
    CHECK(r.size() == 1 && r[0].psn == 12 && r[0].length == 976, "the rest of a READ: %zu answers", r.size());
    // Several in a row, each is answered; then a new one.
    t.jobs.clear();
    for (int i = 0; i < 3; i++) t.packet(asked[i].opcode, QPN, asked[i].psn, true, asked[i].ext, {});
    t.packet(READ_REQUEST, QPN, 15, true, reth(0x1300, KEY, 16), {});
    t.quiet();
    std::vector<uint32_t> psns;
    for (const auto& j : t.jobs) if (psns.empty() || psns.back() < j.psn) psns.push_back(j.psn);
    CHECK((psns == std::vector<uint32_t>{10, 11, 12, 13, 15}), "three again and one new: %zu answers in order", psns.size());
    ok("only what comes again is answered again");
}

int main(int argc, char** argv) {
    begin(argc, argv);
    repeated_atomic_is_checked();
    timeout_is_never_short();
    responder_psn_wraps();
    write_with_immediate_completes();
    completions_do_not_overflow();
    reserved_opcode_is_refused();
    wrong_response_ends_the_queue_pair();
    naks_use_up_the_retries();
    only_what_comes_again_is_answered_again();
    return end();
}
