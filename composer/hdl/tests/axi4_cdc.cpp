// top: gw::bench_axi4_cdc
// param: W = 32, 512
//
// A client and a memory on clocks of many ratios: random bursts with random strobes in both directions, every byte compared, on a memory
// with pauses that checks its side of the bus, whatever order it wants a write's address and data in; then without pauses, where a beat must pass on every cycle of
// the slower clock, and the time that a read takes more is what the planner reckons with.
#include "axi4.hpp"
#include "axi4_memory.h"

using bench::below;

namespace {

constexpr unsigned B = W / 8, SIZE = 16384;

struct Bench {
    bench::Sim<> sim;
    axi4::Client<Vdut> client{sim.dut, B};
    Axi4Memory memory{B, 1 << 20, bench::rng()};
    uint64_t near, far;

    Bench(uint64_t client_ps, uint64_t memory_ps) : near(client_ps), far(memory_ps) {
        auto& d = sim.dut;
        d.rst = d.rst_memory = 1;
        client.reset();
        d.m_arready = d.m_rvalid = d.m_awready = d.m_wready = d.m_bvalid = d.m_rresp = d.m_bresp = 0;
        sim.clock(d.clk, near, [this] { if (!sim.dut.rst) client.sample(); }, [this] { if (!sim.dut.rst) client.drive(); });
        sim.clock(d.clk_memory, far, [this] { if (!sim.dut.rst_memory) sample(); }, [this] { if (!sim.dut.rst_memory) drive(); }, below(far));
        sim.run(20 * std::max(near, far));
        d.rst = d.rst_memory = 0;
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
        memory.edge(m);
        CHECK(memory.fault.empty(), "the memory: %s", memory.fault.c_str());
    }
    void drive() {
        auto& d = sim.dut;
        const auto& o = memory.out;
        d.m_arready = o.arready, d.m_awready = o.awready, d.m_wready = o.wready;
        d.m_bvalid = o.bvalid, d.m_bid = uint8_t(o.bid);
        d.m_rvalid = o.rvalid, d.m_rlast = o.rlast, d.m_rid = uint8_t(o.rid);
        for (unsigned i = 0; o.rvalid && i < B; ++i) bench::set_byte(d.m_rdata, i, o.rdata[i]);
    }

    uint64_t slow() const { return std::max(near, far); }
    void rest() { CHECK(sim.until(200000 * slow(), [&] { return client.idle(); }), "bursts hang"); }

    void random_bursts(unsigned rounds) {
        constexpr Axi4Memory::Order ORDERS[] = {Axi4Memory::Order::Any, Axi4Memory::Order::AddressFirst, Axi4Memory::Order::DataFirst};
        for (unsigned i = 0; i < rounds; ++i) {
            client.read_percent = unsigned(10 + below(91)), client.write_percent = unsigned(10 + below(91)), client.take_percent = unsigned(10 + below(91));
            memory.pace.stall_percent = unsigned(below(90)), memory.pace.latency = below(40);
            memory.pace.pause_every = 200, memory.pace.pause_for = below(60);
            for (int k = 0; k < 6; ++k) {
                const unsigned beats = std::min(unsigned(1 + below(below(4) ? 16 : 256)), 4096 / B);
                const auto place = [&] { return below(2) ? below(8) * B : below(SIZE / 4096) * 4096 + below(4096 / B - beats + 1) * B; };
                const auto fits = [&](uint64_t at) { return at % 4096 + beats * B <= 4096; };
                uint64_t at = place();
                if (fits(at)) client.read(at, beats);
                at = place();
                if (fits(at)) client.write(at, beats, below(2) ? 100 : unsigned(below(101)));
            }
            rest();
            memory.pace.order = ORDERS[below(3)];
        }
        for (unsigned i = 0; i < SIZE; ++i)
            if (client.history.written(i)) CHECK(memory.byte(i) == client.history.at(i), "byte %x of the memory is %02x, not %02x", i, memory.byte(i), client.history.at(i));
    }

    void full_rate() {
        client.read_percent = client.write_percent = client.take_percent = 100;
        memory.pace = {};
        memory.pace.stall_percent = 0, memory.pace.latency = 0;
        // A read alone: one cycle to hand the address over, one for the beat, and what the crossing may take (`CROSSING` of the planner).
        client.read_longest = 0;
        for (int i = 0; i < 20; ++i) {
            client.read(0, 1);
            rest();
            sim.run(below(20 * slow()));
        }
        const uint64_t took = client.read_longest * near, most = 6 * near + 6 * far;
        CHECK(took <= most, "a read took %llu ps, not %llu", (unsigned long long)took, (unsigned long long)most);
        client.under_way = 16;
        const uint64_t from = bench::now_ps;
        const unsigned beats = 16, bursts = 60;
        for (unsigned i = 0; i < bursts; ++i) client.read(i % 16 * beats * B % SIZE, beats), client.write(i % 16 * beats * B % SIZE, beats);
        rest();
        const uint64_t cycles = (bench::now_ps - from) / slow();
        CHECK(cycles < bursts * beats + 60, "%u beats each way took %llu cycles", bursts * beats, (unsigned long long)cycles);
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    for (auto [near, far] : std::vector<std::pair<uint64_t, uint64_t>>{{16000, 3332}, {3102, 3332}, {4000, 16000}, {10000, 10006}, {8000, 8000}}) {
        Bench b(near, far);
        b.random_bursts(40);
        b.full_rate();
    }
    bench::ok("bursts across clocks");
    return bench::end();
}
