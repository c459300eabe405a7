// top: gw::request_rank
// param: M=3 PRIORITY=433
// param: M=4 PRIORITY=0
// param: M=5 PRIORITY=10887
//
// Random requests, granted to a random one of those that may be. Only the highest that are asked for may, and of those one that was not served in this
// round, except in one grant of 8: that goes by turns. Nobody who keeps asking waits for more than 8 x M grants; with all of them asking all the time, equals
// are served equally often and the lowest get their turns.
#include "bench.hpp"

using namespace bench;

namespace {

unsigned priority(unsigned m) { return static_cast<unsigned>(PRIORITY) >> 3 * m & 7; }

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    d.want = d.given = d.who = 0;
    unsigned count = 0, waited[M] = {}, busy = 50, served = 0, last = 0, longest = 0, gone = 0;
    uint64_t grants = 0, to[M] = {};
    sim.clock(d.clk, 10000, [&] {
        if (d.rst || !d.given) return;
        CHECK(d.choice >> d.who & 1, "want %x: %u is granted, may be %x", d.want, d.who, d.choice);
        unsigned top = 0, highest = 0;
        for (unsigned m = 0; m < M; m++)
            if (d.want >> m & 1) highest = std::max(highest, priority(m));
        for (unsigned m = 0; m < M; m++) top |= (d.want >> m & 1 && priority(m) == highest) << m;
        if (count % 8 == 7) {
            do last = (last + 1) % M; while (!(d.want >> last & 1));
            CHECK(d.choice == 1u << last, "want %x: %x, not %u, whose turn it is", d.want, d.choice, last);
        } else {
            const unsigned fresh = top & ~served;
            CHECK(d.choice == (fresh ? fresh : top), "want %x: %x, not %x", d.want, d.choice, fresh ? fresh : top);
            for (unsigned m = 0; m < M && !fresh; m++)
                if (priority(m) == highest) served &= ~(1u << m);
            served |= 1u << d.who;
        }
        count++;
        grants++;
        to[d.who]++;
        for (unsigned m = 0; m < M; m++) {
            waited[m] = m == d.who || !(d.want >> m & 1) ? 0 : waited[m] + 1;
            CHECK(waited[m] < 8 * M, "%u waited for %u grants", m, waited[m]);
            longest = std::max(longest, waited[m]);
        }
        if (!chance(busy)) gone = 1u << d.who;
    }, [&] {
        if (d.rst) return;
        d.want &= ~gone;
        gone = 0;
        for (unsigned m = 0; m < M; m++)
            if (chance(busy)) d.want |= 1u << m;
        d.given = 0;
        sim.dut.eval();
        if (!d.want || !chance(70)) return;
        d.given = 1;
        d.who = static_cast<uint8_t>(below(M));
        while (!(d.choice >> d.who & 1)) {
            d.who = (d.who + 1) % M;
            if (!d.choice) break;
        }
    });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    for (int round = 0; round < 20; round++) {
        busy = 5 + static_cast<unsigned>(below(90));
        sim.run(20000000);
    }
    CHECK(grants > 10000, "%llu grants", (unsigned long long)grants);
    std::printf("%llu grants, longest wait %u\n", (unsigned long long)grants, longest);
    ok("priority, and nobody waits for ever");
    busy = 100;
    sim.run(10000000);
    const uint64_t before = grants;
    for (auto& n : to) n = 0;
    sim.run(200000000);
    unsigned highest = 0;
    for (unsigned m = 0; m < M; m++) highest = std::max(highest, priority(m));
    double first = 0, most = 0, least = 1;
    for (unsigned m = 0; m < M; m++) {
        const double share = double(to[m]) / double(grants - before);
        if (priority(m) == highest) first += share, most = std::max(most, share), least = std::min(least, share);
        else CHECK(share > 0.9 / (8 * M) && share < 1.1 / (8 * M), "request %u, of less priority, has %.4f of the grants", m, share);
    }
    CHECK(first >= 7.0 / 8 && most - least < 0.01, "the highest have %.3f of the grants, between %.3f and %.3f each", first, least, most);
    ok("shares of those that always ask");
    return end();
}
