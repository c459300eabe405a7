// top: bench_axil_cdc
//
// Reads and writes across two clocks, the block's slower, faster and drifting, against a model; every access is answered once.
#include "bench.hpp"

namespace {

struct Bench {
    bench::Sim<> sim;
    uint32_t model[4] = {}, control = 0;
    bool reading = false, writing = false, read_taken = false, write_taken = false;
    uint32_t address = 0, value = 0, low[4] = {};
    unsigned reads = 0, writes = 0;

    void near_sample() {
        auto& d = sim.dut;
        if (d.rst_s) return;
        CHECK(!d.rvalid || read_taken, "a read answer that nobody waits for");
        CHECK(!d.bvalid || write_taken, "a write answer that nobody waits for");
        if (d.arvalid && d.arready) read_taken = true;
        if (d.awvalid && d.awready) {
            CHECK(d.wvalid && d.wready, "the address is taken without the data");
            write_taken = true;
        }
        if (d.rvalid && d.rready) {
            CHECK(d.rresp == 0, "rresp %u", d.rresp);
            if (address < 4) CHECK(d.rdata >= low[address] && d.rdata <= model[address], "counter %u is %u, between %u and %u", address, d.rdata, low[address], model[address]);
            else CHECK(d.rdata == control, "the control word is %08x, not %08x", d.rdata, control);
            reading = read_taken = false;
            ++reads;
        }
        if (d.bvalid && d.bready) {
            CHECK(d.bresp == (address < 4 ? 2 : 0), "bresp %u", d.bresp);
            CHECK(address < 4 || d.control == value, "%08x was written, %08x arrived", value, d.control);
            if (address >= 4) control = value;
            writing = write_taken = false;
            ++writes;
        }
    }
    void near_drive() {
        auto& d = sim.dut;
        if (read_taken) d.arvalid = 0;
        if (write_taken) d.awvalid = d.wvalid = 0;
        if (!d.rst_s && !reading && !writing && bench::chance(20)) {
            address = bench::below(5);
            if (bench::chance(50)) {
                reading = true;
                // What is pending counts once it is visited.
                for (int i = 0; i < 4; ++i) low[i] = model[i] ? model[i] - 1 : 0;
                d.araddr = 4 * address;
                d.arvalid = 1;
            } else {
                writing = true;
                value = uint32_t(bench::rng());
                d.awaddr = 4 * address;
                d.wdata = value;
                d.awvalid = d.wvalid = 1;
            }
        }
        d.rready = bench::chance(50);
        d.bready = bench::chance(50);
    }
    int wait[4] = {};
    void far_drive() {
        auto& d = sim.dut;
        d.increment = 0;
        for (int i = 0; i < 4; ++i) {
            if (wait[i]) --wait[i];
            else if (!d.rst_d && bench::chance(30)) {
                d.increment |= 1 << i;
                ++model[i];
                wait[i] = 5; // one event a round of five slots
            }
        }
    }

    Bench(uint64_t near, uint64_t far) {
        auto& d = sim.dut;
        d.rst_s = d.rst_d = 1;
        d.arvalid = d.awvalid = d.wvalid = d.rready = d.bready = d.increment = 0;
        sim.clock(d.clk_s, near, [this] { near_sample(); }, [this] { near_drive(); });
        sim.clock(d.clk_d, far, nullptr, [this] { far_drive(); }, 1234);
        sim.run(20 * std::max(near, far));
        d.rst_s = d.rst_d = 0;
        sim.run(20000 * std::max(near, far));
        CHECK(reads > 200 && writes > 200, "only %u reads and %u writes", reads, writes);
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    for (auto [near, far] : std::vector<std::pair<uint64_t, uint64_t>>{{10000, 10006}, {8000, 31000}, {40000, 3102}, {13334, 8000}}) Bench(near, far);
    bench::ok("accesses across clocks");
    return bench::end();
}
