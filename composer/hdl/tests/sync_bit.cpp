// top: gw::sync_bit
// param: W=1 STAGES=2
// param: W=5 STAGES=3
//
// What goes in comes out after exactly STAGES edges, bit by bit, and never without an edge.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Vdut d;
    d.clk = d.i = 0;
    d.eval();
    std::deque<unsigned> chain;
    for (int n = 0; n < 10000; n++) {
        d.i = below(1u << W);
        const unsigned before = d.o;
        d.eval();
        CHECK(d.o == before, "a way from input to output without a clock");
        chain.push_back(d.i);
        d.clk = 1;
        d.eval();
        const unsigned after = d.o;
        d.clk = 0;
        d.i = below(1u << W);
        d.eval();
        CHECK(d.o == after, "the falling edge counts");
        if (chain.size() > STAGES) chain.pop_front();
        if (chain.size() == STAGES) CHECK(d.o == chain.front(), "%x came out, not %x", d.o, chain.front());
    }
    ok("10000 edges");
    return end();
}
