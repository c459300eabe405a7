// top: gw::bench_stubs
//
// Each stub against a neighbour that does anything at any time: what a stub must not do it never does, what it must take it always takes. The stub of
// a packets provider answers every packet with 3; the one of registers answers every access with DECERR, as soon as it can be taken.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    d.tx_valid = d.awvalid = d.wvalid = d.arvalid = d.bready = d.rready = 0;
    uint64_t reads = 0, writes = 0, read_answers = 0, write_answers = 0, packets = 0;
    unsigned waits_r = 0, waits_w = 0;
    bool asks_r = true, asks_w = true;
    bool took_ar = false, took_w = false;
    sim.clock(d.clk, 10000, [&] {
        if (d.rst) return;
        for (int word = 0; word < int(sizeof(d.zero) / 4); word++) CHECK(d.zero[word] == 0, "word %d of what must be 0 is %x", word, d.zero[word]);
        CHECK(d.one == 0xffff, "a stub refuses: %x", d.one);
        const bool ends = d.tx_valid && d.tx_last;
        CHECK(d.tx_done == ends && (!ends || d.tx_status == 3), "a packet's answer: done %d, status %d", d.tx_done, d.tx_status);
        packets += ends;
        took_ar = d.arvalid && d.arready;
        took_w = d.awvalid && d.awready;
        CHECK(took_w == (d.wvalid && d.wready), "address and data are taken apart");
        CHECK(!d.rvalid || (d.rdata == 0 && d.rresp == 3), "a read gives %x, %d", d.rdata, d.rresp);
        CHECK(!d.bvalid || d.bresp == 3, "a write gives %d", d.bresp);
        CHECK(!d.rvalid || read_answers < reads, "an answer to no read");
        CHECK(!d.bvalid || write_answers < writes, "an answer to no write");
        waits_r = d.arvalid && !d.arready && !(d.rvalid && !d.rready) ? waits_r + 1 : 0;
        waits_w = d.awvalid && d.wvalid && !d.awready && !(d.bvalid && !d.bready) ? waits_w + 1 : 0;
        CHECK(waits_r < 3 && waits_w < 3, "the bus hangs");
        reads += took_ar;
        writes += took_w;
        read_answers += d.rvalid && d.rready;
        write_answers += d.bvalid && d.bready;
    }, [&] {
        if (d.rst) return;
        d.noise = rng();
        d.tx_valid = chance(50);
        d.tx_last = chance(30);
        // A valid stays until it is taken.
        if (took_ar || !d.arvalid) d.arvalid = asks_r && chance(50);
        if (took_w || !d.awvalid) d.awvalid = asks_w && chance(50);
        if (took_w || !d.wvalid) d.wvalid = (asks_w || d.awvalid) && chance(50);
        d.rready = chance(50);
        d.bready = chance(50);
    });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    sim.run(200000000);
    asks_r = false;
    asks_w = false;
    sim.run(10000000);
    CHECK(reads > 1000 && writes > 1000 && packets > 1000, "too little happened");
    CHECK(reads == read_answers, "%llu reads, %llu answers", (unsigned long long)reads, (unsigned long long)read_answers);
    CHECK(writes == write_answers, "%llu writes, %llu answers", (unsigned long long)writes, (unsigned long long)write_answers);
    ok("20000 cycles");
    return end();
}
