// top: gw::gray_pointer
// param: GRAY_W = 3, 4, 5, 9
//
// Every step changes one bit, 2^GRAY_W steps visit every value once and end where they began; `advance` = 0 holds, `clear` and reset go to 0.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Vdut d;
    d.clk = d.clear = d.advance = 0;
    d.rst = 1;
    d.eval();
    auto edge = [&] {
        d.clk = 1;
        d.eval();
        d.clk = 0;
        d.eval();
        now_ps += 10000;
    };
    edge();
    d.rst = 0;
    for (int round = 0; round < 8; round++) {
        CHECK(d.value == 0, "starts at %x", d.value);
        std::vector<bool> seen(1u << GRAY_W);
        for (unsigned step = 0; step < 1u << GRAY_W; step++) {
            CHECK(!seen[d.value], "%x comes twice", d.value);
            seen[d.value] = true;
            const unsigned before = d.value;
            d.advance = 0;
            for (uint64_t wait = below(4); wait--;) edge();
            CHECK(d.value == before, "steps without being told");
            d.advance = 1;
            edge();
            CHECK(__builtin_popcount(before ^ d.value) == 1, "from %x to %x", before, d.value);
        }
        CHECK(d.value == 0, "ends at %x", d.value);
        // From anywhere back to 0, and the order is the same from there.
        for (uint64_t steps = below(1u << GRAY_W); steps--;) edge();
        d.advance = chance(50);
        (chance(50) ? d.clear : d.rst) = 1;
        edge();
        d.clear = d.rst = 0;
        d.advance = 0;
        d.eval();
    }
    ok("whole rounds");
    return end();
}
