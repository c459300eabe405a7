// top: bench_memory_words
//
// Random addresses, loads and stores against a memory in C++ that takes its time with every channel; errors of the memory; what AXI wants of a master.
#include <map>

#include "bench.hpp"

using namespace bench;

namespace {

struct Memory {
    Vdut& d;
    std::map<uint32_t, uint32_t> words{}; // by address, first byte lowest
    bool has_address = false, has_data = false, reading = false, write_fails = false, read_fails = false;
    uint32_t write_at = 0, write_data = 0, read_at = 0, writes = 0, reads = 0;
    unsigned percent = 50;
    // What a valid that waits must not change.
    bool aw_waits = false, w_waits = false, ar_waits = false;
    uint32_t aw_held = 0, w_held = 0, ar_held = 0;
    bool answered = false, read = false;

    void sample() {
        if (aw_waits) CHECK(d.awvalid && d.awaddr == aw_held, "aw changed");
        if (w_waits) CHECK(d.wvalid && d.wdata == w_held, "w changed");
        if (ar_waits) CHECK(d.arvalid && d.araddr == ar_held, "ar changed");
        aw_waits = d.awvalid && !d.awready, w_waits = d.wvalid && !d.wready, ar_waits = d.arvalid && !d.arready;
        aw_held = d.awaddr, w_held = d.wdata, ar_held = d.araddr;
        if (d.awvalid && d.awready) {
            CHECK(!has_address && d.awlen == 0 && d.awaddr % 4 == 0, "address %x", d.awaddr);
            has_address = true, write_at = d.awaddr;
        }
        if (d.wvalid && d.wready) {
            CHECK(!has_data && d.wstrb == 15 && d.wlast, "data");
            has_data = true, write_data = d.wdata;
        }
        if (d.arvalid && d.arready) {
            CHECK(!reading && d.arlen == 0 && d.araddr % 4 == 0, "address %x", d.araddr);
            reading = true, read_at = d.araddr;
        }
        answered = d.bvalid && d.bready;
        read = d.rvalid && d.rready;
    }
    void drive() {
        if (answered) d.bvalid = 0, has_address = has_data = false, writes++;
        if (read) d.rvalid = 0, reading = false, reads++;
        d.awready = chance(percent), d.wready = chance(percent), d.arready = chance(percent);
        if (has_address && has_data && !d.bvalid && chance(percent)) {
            write_fails = chance(10);
            if (!write_fails) words[write_at] = write_data;
            d.bvalid = 1, d.bresp = write_fails ? 2 + below(2) : 0;
        }
        if (reading && !d.rvalid && chance(percent)) {
            read_fails = chance(10);
            d.rvalid = 1, d.rresp = read_fails ? 2 + below(2) : 0, d.rdata = words[read_at];
        }
        if (!d.rvalid) d.rdata = uint32_t(rng());
    }
};

uint32_t swap(uint32_t x) { return __builtin_bswap32(x); }

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    Memory m{d};
    d.address_valid = d.store_valid = d.load_wanted = 0;
    d.awready = d.wready = d.arready = d.bvalid = d.rvalid = 0;
    bool done = false, failed = false;
    uint32_t loaded = 0;
    auto sample = [&] {
        if (d.rst) return;
        m.sample();
        done = d.store_valid && d.store_ready || d.load_wanted && d.load_valid;
        failed = d.failed;
        loaded = d.load_data;
        CHECK(!failed || done, "a failure of nothing");
    };
    auto drive = [&] {
        if (d.rst) return;
        m.drive();
        d.address_valid = 0;
        if (done) d.store_valid = d.load_wanted = 0;
    };
    sim.clock(d.clk, 10000, sample, drive);
    d.rst = 1;
    sim.run(50000);
    d.rst = 0;
    sim.run(50000);

    std::map<uint32_t, uint32_t> expected;
    uint32_t at = 0, loads = 0, stores = 0;
    for (int i = 0; i < 20000; i++) {
        m.percent = unsigned(10 + i / 2000 * 10);
        if (i == 0 || chance(20)) {
            // A few places, also at the end of all.
            at = (below(2) ? 0x1000u : 0xfffffff0u) + uint32_t(below(4)) * 4;
            d.data = at | uint32_t(below(4));
            d.address_valid = 1;
            sim.run(10000);
        }
        const bool store = below(2);
        const uint32_t value = uint32_t(rng());
        d.data = value;
        (store ? d.store_valid : d.load_wanted) = 1;
        done = false;
        CHECK(sim.until(10'000'000, [&] { return done; }), "hangs");
        if (store) {
            stores++;
            CHECK(failed == m.write_fails, "failure of a store");
            if (!m.write_fails) expected[at] = value;
        } else {
            loads++;
            CHECK(failed == m.read_fails, "failure of a load");
            CHECK(loaded == (expected.count(at) ? expected[at] : 0), "%x at %x, not %x", loaded, at, expected[at]);
        }
        at += 4;
        sim.run(below(3) * 10000);
        CHECK(m.writes + d.bvalid == stores && m.reads + d.rvalid == loads, "%u writes for %u stores, %u reads for %u loads", m.writes, stores, m.reads, loads);
    }
    for (auto [where, value] : expected) CHECK(m.words[where] == swap(value), "%x in memory at %x, not %x", m.words[where], where, swap(value));
    std::printf("%u stores, %u loads, %zu words\n", stores, loads, expected.size());
    ok("words");
    return end();
}
