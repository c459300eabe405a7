// top: gw::fifo_async
// param: W=9 DEPTH=16 OUT_REG=0
// param: W=40 DEPTH=16 OUT_REG=1
// param: W=16 DEPTH=4 OUT_REG=0
// param: W=40 DEPTH=16 OUT_REG=1 IN_REG=1
//
// Order and content between clocks of many ratios; a clock that is absent; a reset of one side alone.
#include "bench.hpp"

using namespace bench;

static void ratio(uint64_t period_i, uint64_t period_o) {
    Sim<> sim;
    auto& d = sim.dut;
    std::deque<uint64_t> model;
    unsigned push_chance = 100, pop_chance = 100;
    uint64_t popped = 0;
    const uint64_t mask = (1ull << W) - 1;
    sim.clock(d.clk_i, period_i, [&] {
        if (!d.rst_i && d.i_valid && d.i_ready) model.push_back(d.i_data);
    }, [&] {
        d.i_valid = chance(push_chance);
        d.i_data = rng() & mask;
    }, below(period_i));
    sim.clock(d.clk_o, period_o, [&] {
        if (d.rst_o || !d.o_valid || !d.o_ready) return;
        CHECK(!model.empty() && model.front() == static_cast<uint64_t>(d.o_data), "wrong word");
        if (!model.empty()) model.pop_front();
        popped++;
    }, [&] { d.o_ready = chance(pop_chance); }, below(period_o));
    d.rst_i = d.rst_o = 1;
    sim.run(20 * std::max(period_i, period_o));
    d.rst_i = 0;
    d.rst_o = 0;
    for (int i = 0; i < 10; i++) {
        sim.run(300 * std::max(period_i, period_o));
        push_chance = below(101);
        pop_chance = below(101);
    }
    push_chance = pop_chance = 100;
    sim.run(50 * std::max(period_i, period_o));
    const uint64_t before = popped;
    sim.run(1000 * std::max(period_i, period_o));
    if (DEPTH >= 16) CHECK(popped - before >= 995, "%llu words in 1000 cycles of the slower clock", (unsigned long long)(popped - before));
    push_chance = 0;
    sim.run(100 * (period_i + period_o));
    CHECK(model.empty(), "%zu words stay behind", model.size());
    // One side is reset while words wait: nothing old may come out, and it goes on.
    push_chance = 100;
    pop_chance = 0;
    sim.run(50 * (period_i + period_o));
    pop_chance = 100;
    (below(2) ? d.rst_i : d.rst_o) = 1;
    sim.run(20 * (period_i + period_o));
    push_chance = 0;
    sim.run(60 * (period_i + period_o));
    model.clear();
    d.rst_i = d.rst_o = 0;
    sim.run(20 * (period_i + period_o));
    CHECK(!d.o_valid, "a word from before the reset");
    model.clear();
    push_chance = 100;
    const uint64_t again = popped;
    sim.run(100 * (period_i + period_o));
    CHECK(popped > again + 10, "does not go on after the reset of one side");
}

int main(int argc, char** argv) {
    begin(argc, argv);
    ratio(8000, 8000);
    ratio(8000, 16000);
    ratio(16000, 8000);
    ratio(8000, 8002);
    ratio(3106, 40000);
    ratio(40000, 3106);
    ok("order, rate and a reset of one side at six ratios");
    // The writer's clock is absent while the reader runs.
    Sim<> sim;
    auto& d = sim.dut;
    d.rst_i = 1;
    d.rst_o = 1;
    d.i_valid = 1;
    d.o_ready = 1;
    bool seen = false;
    sim.clock(d.clk_o, 10000, [&] { seen |= !d.rst_o && d.o_valid; }, {});
    sim.run(100000);
    d.rst_o = 0;
    sim.run(1000000);
    CHECK(!seen, "words come from a side that has no clock");
    ok("absent clock");
    return end();
}
