// top: read_mux
// param: W = 32, 512
//
// Two readers with random bursts and pauses: each gets its own data in order, an address that the memory has seen stays, and every
// burst of `a` that waits goes before a later one of `b`.
#include "bench.hpp"

using namespace bench;

namespace {

struct Client {
    uint32_t addr = 0;
    unsigned len = 0;
    bool asking = false;
    std::deque<std::pair<uint32_t, unsigned>> expected;  // beats to come: address of the burst, beat; from bit 31 on the last
    uint64_t got = 0;
};

uint32_t content(uint32_t addr, unsigned beat) { return addr * 2654435761u + beat * 40503u; }

template <class Port>
uint32_t low(const Port& p) {
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= uint32_t(get_byte(p, i)) << (8 * i);
    return v;
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    Client c[2];
    std::deque<std::pair<uint32_t, unsigned>> memory;  // bursts asked for
    unsigned at = 0, percent[2] = {50, 50}, speed = 50, passed = 0, worst = 0;
    bool held = false, shown = false;
    uint32_t was = 0;
    auto sample = [&] {
        if (d.rst) return;
        if (held) CHECK(d.m_arvalid && d.m_araddr == was, "an address that waits changed");
        held = d.m_arvalid && !d.m_arready;
        was = d.m_araddr;
        CHECK(!(d.a_arready && d.b_arready && d.a_arvalid && d.b_arvalid), "both are taken");
        const bool taken[2] = {d.a_arvalid && d.a_arready, d.b_arvalid && d.b_arready};
        CHECK(taken[0] + taken[1] == (d.m_arvalid && d.m_arready), "taken by one and not by the other");
        passed = !d.a_arvalid || taken[0] ? 0 : passed + taken[1];
        worst = std::max(worst, passed);
        for (int i = 0; i < 2; i++)
            if (taken[i]) {
                CHECK(d.m_araddr == c[i].addr && d.m_arlen == c[i].len, "client %d: another address", i);
                for (unsigned k = 0; k <= c[i].len; k++) c[i].expected.push_back({c[i].addr, k | (k == c[i].len) << 31});
                memory.push_back({c[i].addr, c[i].len});
                c[i].asking = false;
            }
        auto beat = [&](int i, bool valid, bool ready, uint32_t data, bool last, unsigned resp) {
            if (!valid) return;
            CHECK(!c[i].expected.empty(), "client %d: data out of nothing", i);
            if (c[i].expected.empty() || !ready) return;
            auto [addr, k] = c[i].expected.front();
            CHECK(data == content(addr, k & 0x7fffffff) && last == (k >> 31) && resp == (addr & 3), "client %d: wrong data", i);
            c[i].expected.pop_front();
            c[i].got++;
        };
        CHECK(!(d.a_rvalid && d.b_rvalid), "data for both");
        CHECK((d.a_rvalid && d.a_rready) + (d.b_rvalid && d.b_rready) == (d.m_rvalid && d.m_rready), "a beat lost or made");
        beat(0, d.a_rvalid, d.a_rready, low(d.a_rdata), d.a_rlast, d.a_rresp);
        beat(1, d.b_rvalid, d.b_rready, low(d.b_rdata), d.b_rlast, d.b_rresp);
        if (d.m_rvalid && d.m_rready) {
            shown = false;
            if (at++ == memory.front().second) at = 0, memory.pop_front();
        }
    };
    auto drive = [&] {
        for (int i = 0; i < 2; i++)
            if (!c[i].asking && !d.rst && chance(percent[i])) c[i] = {uint32_t(rng()), unsigned(below(4)), true, c[i].expected, c[i].got};
        d.a_arvalid = c[0].asking, d.a_araddr = c[0].addr, d.a_arlen = uint8_t(c[0].len);
        d.b_arvalid = c[1].asking, d.b_araddr = c[1].addr, d.b_arlen = uint8_t(c[1].len);
        d.a_rready = !percent[0] || chance(percent[0]), d.b_rready = chance(percent[1]);
        d.m_arready = chance(speed);
        shown = shown || (!memory.empty() && chance(speed));
        d.m_rvalid = shown;
        if (shown) {
            const uint32_t v = content(memory.front().first, at);
            for (int i = 0; i < 4; i++) set_byte(d.m_rdata, i, uint8_t(v >> (8 * i)));
            d.m_rlast = at == memory.front().second;
            d.m_rresp = memory.front().first & 3;
        }
    };
    sim.clock(d.clk, 10000, sample, drive);
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    for (int round = 0; round < 20; round++) {
        percent[0] = 5 + unsigned(below(96)), percent[1] = 5 + unsigned(below(96)), speed = 5 + unsigned(below(96));
        const uint64_t before[2] = {c[0].got, c[1].got};
        sim.run(20000000);
        CHECK(c[0].got > before[0] && c[1].got >= before[1], "nothing is read");
    }
    // With `a` asking for nothing more all is for `b`.
    percent[0] = 0, percent[1] = 100, speed = 100;
    sim.run(1000000);
    const uint64_t before = c[1].got;
    sim.run(10000000);
    CHECK(c[1].got - before >= 990, "%llu beats in 1000 cycles", (unsigned long long)(c[1].got - before));
    CHECK(worst <= 1, "%u bursts of b went before one of a", worst);
    std::printf("%llu and %llu beats\n", (unsigned long long)c[0].got, (unsigned long long)c[1].got);
    ok("two readers");
    return end();
}
