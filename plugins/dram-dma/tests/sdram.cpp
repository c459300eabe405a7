// top: bench_sdram
// param: MASKS=0 SYS=16000 PADS=4000
// param: MASKS=1 SYS=13333 PADS=4000
// slow-param: MASKS=0 SYS=8000 PADS=2700
// slow-param: MASKS=0 SYS=20000 PADS=6000
//
// The controller on a bit-true model of the chip that knows the times of the data sheet: random bursts with random strobes in both
// directions, every byte compared; refused addresses; the rate of both directions together; the longest wait of a read beside writes;
// parts of words that follow each other. SYS is the system clock's period, PADS the delay from the FPGA's registers to the chip and
// back, in ps.
#include "axi4.hpp"
#include "sdram_chip.h"

using bench::below;

namespace {

constexpr uint64_t BASE = 0x40000000, SIZE = 8 << 20, RAM = 10000;

struct Bench {
    bench::Sim<> sim;
    axi4::Client<Vdut> memory{sim.dut, 4};
    SdramChip chip{SdramChip::Geometry{}};
    bool chip_clk = false;

    Bench() {
        auto& d = sim.dut;
        d.rst = d.rst_ram = 1;
        memory.reset();
        d.reg_arvalid = 0;
        for (size_t i = 0; i < chip.size(); ++i) chip.word(i) = uint32_t(bench::rng());
        sim.clock(d.clk, SYS, [this] { if (!sim.dut.rst) memory.sample(); }, [this] { if (!sim.dut.rst) memory.drive(); }, below(SYS));
        // What the pins show stands for half a period before the chip's edge, so the order at one instant does not count.
        sim.clock(d.clk_ram, RAM, [this] { before_edge(); }, [] {});
        // The chip's edge is the falling one of `clk_ram`.
        sim.clock(tick, RAM, [this] { chip_edge(); }, [] {}, RAM / 2);
        sim.run(300000);
        d.rst = d.rst_ram = 0;
    }

    uint8_t tick = 0;

    /// The word on the bus as the FPGA's input register sees it: PADS late, and anything between two words.
    void before_edge() {
        auto& d = sim.dut;
        uint32_t value = uint32_t(bench::rng());
        for (auto& w : chip.driving())
            if (bench::now_ps >= w.from + PADS && bench::now_ps < w.until + PADS) value = uint32_t(w.data);
        d.dq_i = value;
        d.eval();
    }

    void chip_edge() {
        auto& d = sim.dut;
        if (d.rst) return;
        CHECK(d.dq_oe == 0 || d.dq_oe == 0xffffffff, "some pins are driven");
        if (d.dq_oe) chip.contend(bench::now_ps);
        chip.edge(bench::now_ps, d.ras_n, d.cas_n, d.we_n, d.ba, d.a, MASKS ? d.dm : 0, d.dq_o, d.dq_oe != 0);
        if (!chip.fault.empty()) {
            CHECK(false, "the chip: %s", chip.fault.c_str());
            std::exit(1);
        }
    }

    void rest(uint64_t ps = 40000000000) { CHECK(sim.until(ps, [&] { return memory.idle(); }), "bursts hang"); }

    void smooth() { memory.read_percent = memory.write_percent = memory.take_percent = 100; }

    void random_bursts(unsigned rounds) {
        for (unsigned i = 0; i < rounds; ++i) {
            memory.read_percent = unsigned(20 + below(81)), memory.write_percent = unsigned(20 + below(81)), memory.take_percent = unsigned(20 + below(81));
            const uint64_t home = below(SIZE / 4096) * 4096;
            for (int k = 0; k < 10; ++k) {
                const auto place = [&](unsigned beats) {
                    const uint64_t page = below(4) ? home : below(SIZE / 4096) * 4096;
                    return BASE + page + below((below(2) ? 64 : 1024) > beats ? (below(2) ? 65 : 1025 - beats) : 1025 - beats) * 4;
                };
                const auto beats = [] { return unsigned(1 + below(below(3) ? 20 : 256)); };
                unsigned n = beats();
                uint64_t at = place(n);
                if (at % 4096 + n * 4 <= 4096) memory.read(at, n);
                n = beats();
                at = place(n);
                if (at % 4096 + n * 4 <= 4096) memory.write(at, n, below(3) ? 100 : unsigned(below(101)));
                if (below(8) == 0) memory.read(below(2) ? BASE - 64 : BASE + SIZE, 1 + unsigned(below(8)), true);
                if (below(8) == 0) memory.write(below(2) ? BASE - 64 : BASE + SIZE, 1 + unsigned(below(8)), 100, true);
            }
            if (below(3) == 0) rest();
            if (below(10) == 0) sim.run(below(50000000));
        }
        rest();
        for (size_t i = 0; i < chip.size(); ++i)
            for (unsigned b = 0; b < 4; ++b) {
                const uint64_t at = BASE + 4 * i + b;
                if (memory.history.written(at)) CHECK(uint8_t(chip.word(i) >> 8 * b) == memory.history.at(at), "the chip has another byte at %llx", (unsigned long long)at);
            }
    }

    /// Streams in both directions from different places, MB/s of each.
    void rate(unsigned beats, bool reads, bool writes, bool mixed, double least) {
        smooth();
        const uint64_t from = bench::now_ps, r = memory.read_beats, w = memory.write_beats;
        const uint64_t span = 1 << 20;
        for (unsigned i = 0; i < 65536 / beats; ++i) {
            const uint64_t there = uint64_t(i) * beats * 4 % span;
            if (reads) memory.read(BASE + (mixed ? below(4 * span / 4096) * 4096 : there), beats);
            if (writes) memory.write(BASE + SIZE / 2 + (mixed ? below(4 * span / 4096) * 4096 : there), beats);
        }
        // The last of one direction has nobody beside it: measure while both go on.
        CHECK(sim.until(40000000000, [&] { return (!reads || memory.to_read.empty()) && (!writes || memory.to_write.empty()); }) , "bursts hang");
        const double us = double(bench::now_ps - from) / 1e6;
        const double mr = double(memory.read_beats - r) * 4 / us, mw = double(memory.write_beats - w) * 4 / us;
        std::printf("bursts of %u%s: reads %.1f, writes %.1f, together %.1f MB/s\n", beats, mixed ? ", a row each" : "", mr, mw, mr + mw);
        CHECK(mr + mw >= least, "less than %.0f MB/s", least);
        rest();
    }

    /// Single reads at random times beside a stream of writes, whole words or parts: the longest wait.
    void waits(bool parts) {
        smooth();
        memory.read_longest = 0;
        for (unsigned i = 0; i < 3000; ++i) {
            while (memory.to_write.size() < 8) memory.write(BASE + below(SIZE / 4096) * 4096, 32, parts ? 50 : 100);
            memory.read(BASE + below(SIZE / 4) * 4, 1);
            CHECK(sim.until(100000000, [&] { return memory.to_read.empty() && memory.reading.empty(); }), "a read hangs");
            sim.run(below(2000000));
        }
        std::printf("longest wait of a read beside writes%s: %.0f ns\n", parts ? " of parts of words" : "", double(memory.read_longest) * SYS / 1000);
        CHECK(memory.read_longest * SYS <= 550000, "longer than promised");
        rest();
    }

    /// One word in parts, as packets that follow each other leave it: each but the first needs no read.
    void kept_word() {
        smooth();
        memory.under_way = 1;
        const uint64_t before = chip.reads;
        const auto strobes = [&](uint8_t mask) {
            for (unsigned i = 0; i < 4; ++i) memory.to_write.back().strobe[i] = mask >> i & 1;
        };
        for (int k = 0; k < 4; ++k) memory.write(BASE + 0x1234, 1), strobes(uint8_t(1 << k));
        rest();
        CHECK(chip.reads == before + (MASKS ? 0 : 1), "%llu reads for one word in four parts", (unsigned long long)(chip.reads - before));
        // A word that nothing is written to is not the last that was written.
        memory.write(BASE + 0x1234, 1), strobes(0);
        memory.write(BASE + 0x1234, 1), strobes(4);
        memory.write(BASE + 0x5678, 1), strobes(0);
        memory.write(BASE + 0x5678, 1), strobes(4);
        rest();
        memory.under_way = 8;
        memory.read(BASE + 0x1234, 1);
        memory.read(BASE + 0x5678, 1);
        rest();
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    Bench b;
    b.random_bursts(400);
    std::printf("%llu reads, %llu writes, %llu rows, %llu refreshes\n", (unsigned long long)b.chip.reads, (unsigned long long)b.chip.writes, (unsigned long long)b.chip.activates,
                (unsigned long long)b.chip.refreshes);
    bench::ok("random bursts");
    b.kept_word();
    bench::ok("parts of one word");
    b.rate(32, true, true, false, SYS <= 16000 ? 303 : 0);
    b.rate(16, true, true, false, SYS <= 16000 ? 303 : 0);
    b.rate(256, true, true, false, SYS <= 16000 ? 303 : 0);
    b.rate(32, true, true, true, 0);
    b.rate(32, true, false, false, 0);
    b.rate(32, false, true, false, 0);
    bench::ok("both directions at once");
    b.waits(false);
    b.waits(true);
    return bench::end();
}
