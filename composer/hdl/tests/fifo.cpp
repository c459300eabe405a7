// top: gw::fifo
// param: W=8 DEPTH=16 BLOCK=0
// param: W=36 DEPTH=64 BLOCK=1
// param: W=32 DEPTH=4 BLOCK=0
//
// Order and content under random pushes and pops, capacity, and one word per cycle when both sides are willing.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    std::deque<uint64_t> model;
    unsigned push_chance = 50, pop_chance = 50;
    uint64_t pushed = 0, popped = 0, longest = 0;
    const uint64_t mask = W == 64 ? ~0ull : (1ull << W) - 1;
    auto sample = [&] {
        if (d.rst) return;
        if (d.o_valid && d.o_ready) {
            CHECK(!model.empty(), "a word out of nothing");
            if (model.empty()) return;
            CHECK(static_cast<uint64_t>(d.o_data) == model.front(), "got %llx, not %llx", (unsigned long long)d.o_data, (unsigned long long)model.front());
            model.pop_front();
            popped++;
        }
        if (d.i_valid && d.i_ready) {
            model.push_back(d.i_data);
            pushed++;
        }
        longest = std::max<uint64_t>(longest, model.size());
    };
    auto drive = [&] {
        d.i_valid = chance(push_chance);
        d.i_data = rng() & mask;
        d.o_ready = chance(pop_chance);
    };
    sim.clock(d.clk, 10000, sample, drive);
    d.rst = 1;
    sim.run(50000);
    d.rst = 0;
    for (int i = 0; i < 40; i++) {
        push_chance = below(101);
        pop_chance = below(101);
        sim.run(2000000);
    }
    ok("order under random pushes and pops");
    push_chance = 100;
    pop_chance = 0;
    sim.run(2000000);
    CHECK(model.size() == DEPTH + (BLOCK ? 2 : 0), "holds %zu words", model.size());
    ok("capacity");
    pop_chance = 100;
    sim.run(1000000);
    const uint64_t before = popped;
    sim.run(10000000);
    CHECK(popped - before >= 999, "%llu words in 1000 cycles", (unsigned long long)(popped - before));
    ok("a word per cycle");
    push_chance = 0;
    sim.run(2000000);
    CHECK(model.empty() && !d.o_valid, "not empty at the end");
    ok("drains");
    return end();
}
