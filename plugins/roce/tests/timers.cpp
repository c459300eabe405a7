// top: bench_engine
// param: QPS=4 TICK=4
//
// The RNR timers that nobody waits for on a wire, with a tick of 4 cycles.
#include "cases.hpp"

// Milliseconds of the timer codes. InfiniBand Architecture Specification 1.4, table 45.
static constexpr double MS[32] = {655.36, .01,  .02,  .03,  .04,   .06,   .08,   .12,   .16,   .24,   .32,   .48,   .64,   .96,    1.28,   1.92,
                                  2.56,   3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

// Code 0 was taken for no time: it is the longest. No code ends before its time, or more than a twentieth and 50 ticks after it.
static void rnr_code_0_is_the_longest() {
    for (int code : {0, 1, 2, 5, 9, 13, 16, 19, 22, 25, 31}) {
        D t;
        std::vector<uint64_t> sent;
        t.on_job = [&](const Unit&) { sent.push_back(t.cycle); };
        t.open(0, {.qpn = QPN, .dqpn = PEER, .timeout = 0, .retry = 7});
        t.work(0, QPN, {.op = 2, .id = 1, .laddr = 0x3000, .length = 4});
        t.cycles(200);
        CHECK(sent.size() == 1, "%zu packets", sent.size());
        t.packet(ACK, QPN, 0, false, {uint32_t(0x20 | code) << 24}, {});
        const uint64_t start = t.cycle, timer = uint64_t(MS[code] * 1000 / 4.096 * 4);
        t.sim.until(16000 * (2 * timer + 2000), [&] { return sent.size() > 1; });
        CHECK(sent.size() == 2 && sent[1] - start >= timer && sent[1] - start <= timer + timer / 20 + 200, "code %d, %llu cycles: again after %llu", code, (unsigned long long)timer,
              (unsigned long long)(sent.back() - start));
    }
    ok("RNR code 0 is the longest");
}

int main(int argc, char** argv) {
    begin(argc, argv);
    rnr_code_0_is_the_longest();
    return end();
}
