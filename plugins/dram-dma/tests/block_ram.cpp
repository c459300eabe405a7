// top: bench_block_ram
// param: W = 8, 32, 512
// slow-param: W = 16, 64, 128, 256
//
// Random bursts with random strobes in both directions, every byte compared, addresses outside refused; then a beat on every
// cycle of both directions; then the counters.
#include "axi4.hpp"

using bench::below;

namespace {

constexpr uint64_t BASE = 0x40004000, SIZE = 0x4000;
constexpr unsigned B = W / 8;

struct Bench {
    bench::Sim<> sim;
    axi4::Client<Vdut> memory{sim.dut, B};

    Bench() {
        auto& d = sim.dut;
        d.rst = 1;
        memory.reset();
        d.reg_arvalid = 0;
        sim.clock(d.clk, 10000, [this] { if (!sim.dut.rst) memory.sample(); }, [this] { if (!sim.dut.rst) memory.drive(); });
        sim.run(100000);
        d.rst = 0;
        sim.run(100000);
    }

    /// A burst inside of 4096 bytes of the memory.
    uint64_t place(unsigned& beats) {
        beats = unsigned(1 + below(below(4) ? 16 : 256));
        beats = std::min<unsigned>(beats, 4096 / B);
        const uint64_t page = below(SIZE / 4096) * 4096;
        return BASE + page + below(4096 / B - beats + 1) * B;
    }

    void random_bursts(unsigned count) {
        unsigned beats;
        for (unsigned i = 0; i < count; ++i) {
            memory.read_percent = unsigned(10 + below(91)), memory.write_percent = unsigned(10 + below(91)), memory.take_percent = unsigned(10 + below(91));
            for (int k = 0; k < 8; ++k) {
                uint64_t at = place(beats);
                memory.read(at, beats);
                // Half of the writes go to one small place, so that reads meet them.
                at = place(beats);
                if (below(2)) at = BASE + below(8) * B, beats = std::min(beats, 24u);
                memory.write(at, beats, below(2) ? 100 : unsigned(below(101)));
                if (below(2)) memory.read(BASE + below(8) * B, std::min(beats, 24u));
                const uint64_t outside[] = {BASE - 4096, BASE + SIZE, 0, BASE ^ 0x80000000, 0xfffff000};
                if (below(4) == 0) memory.read(outside[below(5)], 1 + unsigned(below(4)), true);
                if (below(4) == 0) memory.write(outside[below(5)], 1 + unsigned(below(4)), 100, true);
            }
            CHECK(sim.until(10000ull * 1000000, [&] { return memory.idle(); }), "bursts hang");
        }
        // At rest: every byte.
        memory.read_percent = memory.take_percent = 100;
        for (uint64_t at = 0; at < SIZE; at += 8 * B) memory.read(BASE + at, 8);
        CHECK(sim.until(10000ull * 1000000, [&] { return memory.idle(); }), "reading all hangs");
    }

    void full_rate(unsigned beats) {
        memory.read_percent = memory.write_percent = memory.take_percent = 100;
        const unsigned bursts = 4096 / beats;
        const uint64_t from = memory.cycle, read = memory.read_beats, written = memory.write_beats;
        for (unsigned i = 0; i < bursts; ++i) memory.read(BASE + i * beats * B % SIZE, beats), memory.write(BASE + i * beats * B % SIZE, beats);
        CHECK(sim.until(10000ull * 1000000, [&] { return memory.idle(); }), "bursts hang");
        const uint64_t took = memory.cycle - from, r = memory.read_beats - read, w = memory.write_beats - written;
        CHECK(r == bursts * beats && w == r && took < r + 16, "%llu beats of bursts of %u took %llu cycles", (unsigned long long)r, beats, (unsigned long long)took);
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
    b.random_bursts(400);
    bench::ok("random bursts");
    m.read_longest = m.write_longest = 0;
    m.read_percent = m.write_percent = m.take_percent = 100;
    m.read(BASE, 1);
    CHECK(b.sim.until(1000000, [&] { return m.idle(); }), "a read hangs");
    m.write(BASE, 1);
    CHECK(b.sim.until(1000000, [&] { return m.idle(); }), "a write hangs");
    CHECK(m.read_longest <= 4 && m.write_longest <= 4, "read after %llu cycles, answer after %llu", (unsigned long long)m.read_longest, (unsigned long long)m.write_longest);
    for (unsigned beats : {1u, 2u, 16u, std::min(256u, 4096 / B)}) b.full_rate(beats);
    bench::ok("a beat per cycle");
    b.sim.run(1000000);
    const uint64_t want[] = {m.reads, m.writes, m.read_beats, m.write_beats, m.refused_reads, m.refused_writes};
    for (unsigned i = 0; i < 6; ++i) CHECK(b.counter(i) == uint32_t(want[i]), "counter %u is %u, not %llu", i, b.counter(i), (unsigned long long)want[i]);
    bench::ok("counters");
    return bench::end();
}
