// top: gw::event_cdc
// param: GRAY_W = 3, 4
//
// Every event comes out once, at many ratios of clocks and in bursts of all that may be on their way; either side is reset alone; a clock that stands.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    const uint64_t ratios[][2] = {{8000, 8000}, {8000, 16000}, {8000, 4100}, {16000, 3106}, {3106, 40000}, {40000, 8002}};
    for (auto& ratio : ratios) {
        Sim<> sim;
        auto& d = sim.dut;
        uint64_t in = 0, out = 0;
        unsigned percent = 0;
        d.i = 0;
        sim.clock(d.clk_i, ratio[0], [&] { in += !d.rst_i && d.i; }, [&] {
            // No more than 2^GRAY_W - 1 on their way.
            d.i = !d.rst_i && !d.rst_o && in + 1 - out <= (1u << GRAY_W) - 1 && chance(percent);
        }, below(4000));
        sim.clock(d.clk_o, ratio[1], [&] {
            if (!d.rst_o) out += d.o;
        }, [] {}, below(4000));
        const uint64_t slow = std::max(ratio[0], ratio[1]);
        auto settle = [&](const char* what) {
            percent = 0;
            sim.run(40 * slow);
            CHECK(in == out, "%s at %llu/%llu ps: %llu in, %llu out", what, (unsigned long long)ratio[0], (unsigned long long)ratio[1], (unsigned long long)in, (unsigned long long)out);
            in = out = 0;
        };
        d.rst_i = d.rst_o = 1;
        sim.run(20 * slow);
        d.rst_i = d.rst_o = 0;
        sim.run(20 * slow);
        for (int round = 0; round < 20; round++) {
            percent = round % 2 ? 100 : 1 + below(100);
            sim.run((100 + below(100)) * slow);
            CHECK(in > 0, "no events");
            settle("random");
        }
        // All that may be on their way in one burst, while the other clock stands.
        for (int round = 0; round < 20; round++) {
            auto& receiver = sim.clocks[1];
            const uint64_t next = receiver.next;
            receiver.next = UINT64_MAX;
            percent = 100;
            sim.run(3 * (1u << GRAY_W) * ratio[0]);
            CHECK(in == (1u << GRAY_W) - 1, "%llu events in a burst", (unsigned long long)in);
            percent = 0;
            sim.run(ratio[0] * (1 + below(10)));
            receiver.next = std::max(next, now_ps + 1);
            settle("burst while the clock stands");
        }
        // One side alone is reset: what was not on its way then is neither lost nor made up.
        for (int round = 0; round < 20; round++) {
            percent = 50;
            sim.run(below(50) * slow);
            settle("before a reset");
            auto& reset = round % 2 ? d.rst_i : d.rst_o;
            reset = 1;
            sim.run((8 + below(8)) * slow);
            reset = 0;
            sim.run(8 * slow);
            CHECK(out == 0, "a reset makes %llu events", (unsigned long long)out);
            percent = 70;
            sim.run(50 * slow);
            CHECK(in > 0, "no events");
            settle("after a reset");
        }
    }
    ok("six ratios of clocks");
    return end();
}
