// top: gw::turn
// param: M = 1, 2, 3, 5, 8
//
// Every pair of requests and last one: the next in the circle that wants, the same again if nobody does; nobody waits for more than M - 1 others.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Vdut d;
    for (unsigned want = 0; want < 1u << M; want++)
        for (unsigned last = 0; last < M; last++) {
            d.want = want;
            d.last = last;
            d.eval();
            unsigned next = last;
            for (unsigned k = 1; k <= M; k++)
                if (want >> ((last + k) % M) & 1) {
                    next = (last + k) % M;
                    break;
                }
            CHECK(d.next == next, "want %x, last %u: %u, not %u", want, last, d.next, next);
        }
    ok("every case");
    unsigned waited[M] = {}, last = 0, want = 0;
    for (int i = 0; i < 20000; i++) {
        want |= below(1u << M);
        d.want = want;
        d.last = last;
        d.eval();
        if (!want) continue;
        last = d.next;
        CHECK(want >> last & 1, "a turn of one who does not want");
        want &= ~(1u << last);
        for (unsigned k = 0; k < M; k++) {
            waited[k] = want >> k & 1 ? waited[k] + 1 : 0;
            CHECK(waited[k] < M, "%u waited for %u others", k, waited[k]);
        }
    }
    ok("nobody waits too long");
    return end();
}
