// top: gw::bench_sequencer
//
// A program from the assembler, with code and data from configuration, against the same sums in C++.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    static const uint32_t weights[] = {1, 3, 0x10001 & 511, 7};
    std::deque<uint32_t> input;
    std::vector<uint32_t> expected, got;
    bool taken = false;
    auto sample = [&] {
        taken = !d.rst && d.in_valid && d.in_ready;
        if (!d.rst && d.out_valid && d.out_ready) {
            got.push_back(d.out_data);
            CHECK(d.out_last == (got.size() % 3 == 0), "last is %d at word %zu", d.out_last, got.size());
        }
    };
    auto drive = [&] {
        if (taken) input.pop_front();
        d.in_valid = !input.empty();
        d.in_data = input.empty() ? static_cast<uint32_t>(rng()) : input.front();
        d.out_ready = chance(50);
    };
    sim.clock(d.clk, 10000, sample, drive);
    d.rst = 1;
    sim.run(50000);
    d.rst = 0;
    for (int round = 0; round < 50; round++) {
        const size_t n = 1 + below(12);
        uint32_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            input.push_back(static_cast<uint32_t>(rng()));
            sum += input.back() * weights[i % 4];
        }
        expected.insert(expected.end(), {static_cast<uint32_t>(n), sum, 0x12345678});
        CHECK(sim.until(100'000'000, [&] { return got.size() == expected.size(); }), "no answer in round %d", round);
        CHECK(got == expected, "round %d: %x words, sum %x, not %zx and %x", round, got[got.size() - 3], got[got.size() - 2], n, sum);
    }
    ok("sums of random packets");
    return end();
}
