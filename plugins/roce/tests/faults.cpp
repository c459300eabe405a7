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

int main(int argc, char** argv) {
    begin(argc, argv);
    repeated_atomic_is_checked();
    timeout_is_never_short();
    return end();
}
