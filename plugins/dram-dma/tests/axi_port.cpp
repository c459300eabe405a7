// top: bench_axi_port
// param: W=32 SIZE_LOG2=14 BASE=1073758208
// param: W=512 SIZE_LOG2=14 BASE=1073758208
// param: W=128 SIZE_LOG2=32 BASE=0
//
// Random bursts with random strobes in both directions, every byte compared, addresses outside refused, before a controller with pauses that
// checks its side of the bus, whatever order it wants a write's address and data in; then without pauses, a beat on every cycle of both directions;
// then the counters.
#include "axi4.hpp"
#include "axi4_memory.h"

using bench::below;

namespace {

constexpr uint64_t FIRST = BASE, SIZE = 1ull << SIZE_LOG2;
constexpr unsigned B = W / 8;
/// Of a large memory only the ends are tried.
constexpr uint64_t PLACE = 8192;

struct Bench {
    bench::Sim<> sim;
    axi4::Client<Vdut> memory{sim.dut, B};
    Axi4Memory controller{B, SIZE, bench::rng()};

    Bench() {
        auto& d = sim.dut;
        d.rst = 1;
        memory.reset();
        d.reg_arvalid = 0;
        d.m_arready = d.m_rvalid = d.m_awready = d.m_wready = d.m_bvalid = d.m_rresp = d.m_bresp = 0;
        sim.clock(d.clk, 10000, [this] { if (!sim.dut.rst) memory.sample(), sample(); }, [this] { if (!sim.dut.rst) memory.drive(), drive(); });
        sim.run(100000);
        d.rst = 0;
        sim.run(100000);
    }

    void sample() {
        auto& d = sim.dut;
        Axi4Memory::Master m;
        m.ar = {d.m_arvalid != 0, d.m_araddr, d.m_arlen, d.m_arid};
        m.aw = {d.m_awvalid != 0, d.m_awaddr, d.m_awlen, d.m_awid};
        m.w.valid = d.m_wvalid;
        m.w.last = d.m_wlast;
        for (unsigned i = 0; i < B; ++i) m.w.bytes.push_back(bench::get_byte(d.m_wdata, i));
        for (unsigned i = 0; i < (B + 7) / 8; ++i) m.w.strobe.push_back(bench::get_byte(d.m_wstrb, i));
        m.rready = d.m_rready;
        m.bready = d.m_bready;
        controller.edge(m);
        CHECK(controller.fault.empty(), "the controller: %s", controller.fault.c_str());
        CHECK(!d.m_arvalid || (d.m_arid == 0 && d.m_araddr % B == 0), "a read of %llx, id %u", (unsigned long long)d.m_araddr, d.m_arid);
        CHECK(!d.m_awvalid || (d.m_awid == 0 && d.m_awaddr % B == 0), "a write of %llx, id %u", (unsigned long long)d.m_awaddr, d.m_awid);
    }
    void drive() {
        auto& d = sim.dut;
        const auto& o = controller.out;
        d.m_arready = o.arready, d.m_awready = o.awready, d.m_wready = o.wready;
        d.m_bvalid = o.bvalid, d.m_bid = uint8_t(o.bid);
        d.m_rvalid = o.rvalid, d.m_rlast = o.rlast, d.m_rid = uint8_t(o.rid);
        for (unsigned i = 0; o.rvalid && i < B; ++i) bench::set_byte(d.m_rdata, i, o.rdata[i]);
    }

    /// A burst inside of 4096 bytes at one of the ends.
    uint64_t place(unsigned& beats) {
        beats = std::min(unsigned(1 + below(below(4) ? 16 : 256)), 4096 / B);
        const uint64_t page = below(PLACE / 4096) * 4096;
        return FIRST + (below(2) ? page : SIZE - PLACE + page) + below(4096 / B - beats + 1) * B;
    }

    void rest() { CHECK(sim.until(10000ull * 1000000, [&] { return memory.idle(); }), "bursts hang"); }

    void random_bursts(unsigned count) {
        constexpr Axi4Memory::Order ORDERS[] = {Axi4Memory::Order::Any, Axi4Memory::Order::AddressFirst, Axi4Memory::Order::DataFirst};
        unsigned beats;
        for (unsigned i = 0; i < count; ++i) {
            memory.read_percent = unsigned(10 + below(91)), memory.write_percent = unsigned(10 + below(91)), memory.take_percent = unsigned(10 + below(91));
            memory.under_way = unsigned(1 + below(40));
            controller.pace.stall_percent = unsigned(below(90)), controller.pace.latency = below(60);
            controller.pace.pause_every = 300, controller.pace.pause_for = below(100);
            for (int k = 0; k < 8; ++k) {
                uint64_t at = place(beats);
                memory.read(at, beats);
                // Half of the writes go to one small place, so that reads meet them.
                at = place(beats);
                if (below(2)) at = FIRST + below(8) * B, beats = std::min(beats, 24u);
                memory.write(at, beats, below(2) ? 100 : unsigned(below(101)));
                if (below(2)) memory.read(FIRST + below(8) * B, std::min(beats, 24u));
                const uint64_t outside[] = {FIRST - 4096, FIRST + SIZE, 0, FIRST ^ 0x80000000, 0xfffff000};
                if (SIZE_LOG2 < 32 && below(4) == 0) memory.read(outside[below(5)], 1 + unsigned(below(4)), true);
                if (SIZE_LOG2 < 32 && below(4) == 0) memory.write(outside[below(5)], 1 + unsigned(below(4)), 100, true);
            }
            // What is under way keeps its order of address and data.
            if (below(4) == 0) rest(), controller.pace.order = ORDERS[below(3)];
        }
        rest();
        memory.read_percent = memory.take_percent = 100;
        for (uint64_t at = 0; at < PLACE; at += 8 * B) memory.read(FIRST + at, 8), memory.read(FIRST + SIZE - PLACE + at, 8);
        rest();
    }

    void full_rate(unsigned beats) {
        memory.read_percent = memory.write_percent = memory.take_percent = 100;
        memory.under_way = 16;
        controller.pace = {};
        controller.pace.stall_percent = 0, controller.pace.latency = 4;
        const unsigned bursts = 4096 / beats;
        const uint64_t from = memory.cycle, read = memory.read_beats, written = memory.write_beats;
        for (unsigned i = 0; i < bursts; ++i) memory.read(FIRST + i * beats * B % PLACE, beats), memory.write(FIRST + i * beats * B % PLACE, beats);
        rest();
        const uint64_t took = memory.cycle - from, r = memory.read_beats - read, w = memory.write_beats - written;
        CHECK(r == bursts * beats && w == r && took < r + 40, "%llu beats of bursts of %u took %llu cycles", (unsigned long long)r, beats, (unsigned long long)took);
    }

    uint32_t counter(unsigned i) {
        auto& d = sim.dut;
        d.reg_araddr = uint16_t(4 * i);
        d.reg_arvalid = 1;
        CHECK(sim.until(10000000, [&] { return d.reg_arready; }), "no register");
        sim.run(10000);
        d.reg_arvalid = 0;
        CHECK(sim.until(10000000, [&] { return d.reg_rvalid; }), "no value");
        const uint32_t value = d.reg_rdata;
        sim.run(20000);
        return value;
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    Bench b;
    auto& m = b.memory;
    b.random_bursts(300);
    bench::ok("random bursts");
    for (unsigned beats : {2u, 16u, std::min(256u, 4096 / B)}) b.full_rate(beats);
    bench::ok("a beat per cycle");
    b.sim.run(1000000);
    const uint64_t want[] = {m.reads, m.writes, m.read_beats, m.write_beats, m.refused_reads, m.refused_writes};
    for (unsigned i = 0; i < 6; ++i) CHECK(b.counter(i) == uint32_t(want[i]), "counter %u is %u, not %llu", i, b.counter(i), (unsigned long long)want[i]);
    bench::ok("counters");
    return bench::end();
}
