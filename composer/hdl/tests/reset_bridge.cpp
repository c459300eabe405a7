// top: gw::reset_bridge
// param: STAGES = 2, 4
//
// Asserted at once, also without a clock; released exactly STAGES edges after `arst`; a short `arst` at any time counts as a whole one.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Vdut d;
    d.clk = d.arst = 0;
    d.eval();
    auto edge = [&] {
        now_ps += 10000;
        d.clk = 1;
        d.eval();
        d.clk = 0;
        d.eval();
    };
    for (int i = 0; i < 2000; i++) {
        // The clock stands, low or high, or runs for a while.
        d.clk = chance(50);
        d.eval();
        d.arst = 1;
        d.eval();
        CHECK(d.rst == 1, "not asserted without a clock");
        const bool held = chance(50);
        if (held)
            for (uint64_t n = below(10); n--;) {
                edge();
                CHECK(d.rst == 1, "released while it is asked for");
            }
        d.arst = 0;
        d.eval();
        CHECK(d.rst == 1, "released without a clock");
        d.clk = 0;
        d.eval();
        // A new request on the way starts the count again.
        const unsigned edges = chance(30) ? unsigned(below(STAGES)) : STAGES + unsigned(below(20));
        for (unsigned n = 1; n <= edges; n++) {
            edge();
            CHECK(d.rst == (n < STAGES), "rst is %d after %u edges", d.rst, n);
        }
    }
    ok("2000 resets");
    return end();
}
