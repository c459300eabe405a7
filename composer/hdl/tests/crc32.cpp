// top: gw::crc32
// param: W = 8, 32, 512
// param: W=32 PIPE=1
// slow-param: W = 16, 64, 128
//
// Against the bitwise definition: every length from 0 to 3 beats and random ones, back to back and with gaps; the latency as documented.
#include "bench.hpp"

using namespace bench;

#ifndef PIPE
#define PIPE (W > 64)
#endif

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    constexpr unsigned B = W / 8;
    unsigned log2 = 0;
    while (1u << log2 < B) log2++;
    const unsigned latency = PIPE ? 5 + log2 : 1;
    uint8_t err = 0, ready = 1;
    auto in = source(d.i_data, d.i_keep, d.i_last, err, d.i_valid, ready, B);
    std::deque<std::pair<uint32_t, uint64_t>> expected;
    uint64_t cycle = 0, checked = 0;
    auto sample = [&] {
        cycle++;
        in.sample();
        if (d.rst) return;
        if (d.o_valid) {
            CHECK(!expected.empty(), "a CRC out of nothing");
            if (!expected.empty()) {
                auto [crc, at] = expected.front();
                expected.pop_front();
                CHECK(d.o_crc == crc, "got %08x, not %08x", d.o_crc, crc);
                CHECK(cycle == at + latency, "came after %llu cycles", (unsigned long long)(cycle - at));
                checked++;
            }
        }
        if (in.accepted && d.i_last) {
            const auto& b = in.queue.front().bytes;
            expected.push_back({b.empty() ? 0 : crc32(b.data(), b.size()), cycle});
        }
    };
    sim.clock(d.clk, 10000, sample, [&] { if (!d.rst) in.drive(); else d.i_valid = 0; });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    for (unsigned n = 0; n <= 3 * B; n++) in.queue.push_back({random_bytes(n)});
    CHECK(sim.until(100000000, [&] { return in.queue.empty(); }), "not taken");
    sim.run(500000);
    ok("every length up to three beats");
    in.percent = 60;
    for (int i = 0; i < 300; i++) in.queue.push_back({random_bytes(below(6 * B + 1))});
    CHECK(sim.until(1000000000, [&] { return in.queue.empty(); }), "not taken");
    sim.run(500000);
    CHECK(expected.empty() && checked == 3 * B + 301, "%llu checked, %zu missing", (unsigned long long)checked, expected.size());
    ok("random lengths and gaps");
    return end();
}
