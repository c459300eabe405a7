// top: in_band
//
// A status counts once it was said eight times in a row between frames; what comes inside frames, with errors, or less often changes nothing.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Vdut d;
    d.clk = d.dv = d.er = d.d = 0;
    d.rst = 1;
    d.eval();
    auto edge = [&] {
        d.clk = 1;
        d.eval();
        d.clk = 0;
        d.eval();
        now_ps += 8000;
    };
    edge();
    edge();
    d.rst = 0;
    CHECK(d.link == 0, "a link after reset");
    int said = -1;      // the nibble that was said last
    unsigned times = 0; // so often in a row
    int known = -1;     // the last that counts
    uint64_t changes = 0;
    for (int round = 0; round < 20000; round++) {
        // One thing for some cycles: a status, a frame, a false carrier.
        const bool dv = chance(30), er = chance(10);
        const unsigned value = below(16), cycles = 1 + below(12);
        for (unsigned n = 0; n < cycles; n++) {
            d.dv = dv;
            d.er = er;
            d.d = dv || er ? below(16) : value;
            edge();
            if (dv || er) continue;
            // Said eight times, it is shown on the next cycle without a frame, whatever that one says.
            if (times >= 8) {
                changes += known != said;
                known = said;
            }
            times = int(d.d) == said ? times + 1 : 1;
            said = d.d;
            if (known < 0) CHECK(d.link == 0, "a link that nobody has said");
            else CHECK((d.full << 3 | d.speed << 1 | d.link) == unsigned(known), "shows %x, not %x", d.full << 3 | d.speed << 1 | d.link, known);
        }
    }
    CHECK(changes > 100, "too little happened");
    ok("20000 pieces");
    return end();
}
