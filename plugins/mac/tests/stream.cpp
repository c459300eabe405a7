// top: bench_stream
// param: W=32 PHY_W=8
// param: W=512 PHY_W=512
// slow-param: W=8 PHY_W=8
// slow-param: W=64 PHY_W=64
// slow-param: W=128 PHY_W=512
// slow-param: W=32 PHY_W=64
//
// The stream side: every length both ways, frames of one beat back to back, padding, runts, oversize, `terr`, counters over the bus.
#include "bench.hpp"

using namespace bench;

static constexpr unsigned MAX_FRAME = 1518;
static constexpr unsigned WIDE = W > PHY_W ? W : PHY_W;
// The system side carries what the PHY's side does.
static constexpr uint64_t PHY_PS = 3106, SYS_PS = W >= PHY_W ? (W == PHY_W ? 3104 : 3106 * (W / PHY_W) / 2) : 3106 / (PHY_W / W) / 2 * 2 - 2;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    d.p_rvalid = d.tx_tvalid = d.arvalid = d.rready = 0;
    uint8_t always = 1;
    auto p_in = source(d.p_rdata, d.p_rkeep, d.p_rlast, d.p_rerr, d.p_rvalid, always, PHY_W / 8);
    auto p_out = sink(d.p_tdata, d.p_tkeep, d.p_tlast, d.p_terr, d.p_tvalid, d.p_tready, PHY_W / 8);
    auto s_in = source(d.tx_tdata, d.tx_tkeep, d.tx_tlast, d.tx_terr, d.tx_tvalid, d.tx_tready, W / 8);
    auto s_out = sink(d.rx_tdata, d.rx_tkeep, d.rx_tlast, d.rx_terr, d.rx_tvalid, d.rx_tready, W / 8);
    bool hold = false;
    uint64_t holes = 0, beats = 0, done = 0;
    sim.clock(d.clk_sys, SYS_PS, [&] {
        if (d.rst_sys) return;
        s_in.sample();
        s_out.sample();
        done += d.tx_done;
    }, [&] {
        if (d.rst_sys) return;
        s_in.drive();
        s_out.drive();
    }, below(3000));
    sim.clock(d.clk_phy, PHY_PS, [&] {
        if (d.rst_phy) return;
        p_in.sample();
        p_out.sample();
        if (!d.p_tvalid && d.p_tready && p_out.beats) holes++;
        beats += d.p_tvalid && d.p_tready;
    }, [&] {
        if (d.rst_phy) return;
        if (!hold) p_in.drive();
        p_out.drive();
    }, below(3000));
    d.rst_sys = d.rst_phy = 1;
    sim.run(100000);
    d.rst_sys = d.rst_phy = 0;
    sim.run(100000);
    auto reg = [&](unsigned address) {
        d.araddr = address;
        d.arvalid = 1;
        d.rready = 1;
        CHECK(sim.until(1000000, [&] { return d.rvalid; }), "no answer on the bus");
        // The answer is taken at the next edge of the clock.
        const uint32_t value = d.rdata;
        d.arvalid = 0;
        sim.run(4 * SYS_PS);
        return value;
    };
    std::vector<Packet> expected;
    auto rx_settle = [&](const char* what) {
        CHECK(sim.until(20000000000, [&] { return p_in.queue.empty(); }), "%s: stuck", what);
        sim.run(1000000);
        CHECK(s_out.got.size() == expected.size(), "%s: %zu frames, not %zu", what, s_out.got.size(), expected.size());
        for (size_t i = 0; i < std::min(s_out.got.size(), expected.size()); i++)
            CHECK(s_out.got[i] == expected[i], "%s: frame %zu of %zu bytes came as %zu bytes, err %d (not %d)", what, i, expected[i].bytes.size(), s_out.got[i].bytes.size(), s_out.got[i].err, expected[i].err);
        s_out.got.clear();
        expected.clear();
        ok(what);
    };
    auto arrive = [&](size_t n, bool err, bool bad) {
        Packet p{random_bytes(n), err};
        p_in.queue.push_back(p);
        p.err = bad;
        expected.push_back(p);
    };
    for (size_t n = 60; n <= MAX_FRAME; n++) arrive(n, false, false);
    rx_settle("every length in, back to back");
    for (int i = 0; i < 2000; i++) arrive(60 + below(5), false, false);
    rx_settle("2000 shortest frames in, back to back");
    CHECK(reg(0) == MAX_FRAME - 59 + 2000, "rx_good reads %u", reg(0));
    for (int i = 0; i < 100; i++) {
        const bool err = chance(50);
        arrive(60 + below(300), err, err);
    }
    const uint32_t wrong = std::count_if(expected.begin(), expected.end(), [](auto& p) { return p.err; });
    rx_settle("frames with terr");
    CHECK(reg(4) == wrong, "rx_fcs reads %u, not %u", reg(4), wrong);
    for (size_t n = 1; n < 60; n++) {
        arrive(n, false, true);
        arrive(60, false, false);
    }
    rx_settle("runts");
    CHECK(reg(8) == 59, "rx_runt reads %u", reg(8));
    for (int i = 0; i < 30; i++) {
        arrive(MAX_FRAME + 1 + below(2 * PHY_W), false, true);
        arrive(60 + below(100), false, false);
    }
    rx_settle("oversize");
    CHECK(reg(12) == 30, "rx_oversize reads %u", reg(12));

    std::vector<Packet> sent;
    auto tx_settle = [&](const char* what) {
        CHECK(sim.until(20000000000, [&] { return s_in.queue.empty(); }), "%s: stuck", what);
        sim.run(2000000);
        CHECK(p_out.got.size() == sent.size(), "%s: %zu frames, not %zu", what, p_out.got.size(), sent.size());
        for (size_t i = 0; i < std::min(p_out.got.size(), sent.size()); i++) {
            Packet p = sent[i];
            if (p.bytes.size() < 60) p.bytes.resize(60);
            CHECK(p_out.got[i] == p, "%s: frame %zu of %zu bytes came as %zu bytes, err %d (not %d)", what, i, sent[i].bytes.size(), p_out.got[i].bytes.size(), p_out.got[i].err, p.err);
        }
        CHECK(holes == 0, "%s: %llu holes in frames", what, (unsigned long long)holes);
        p_out.got.clear();
        sent.clear();
        ok(what);
    };
    auto send = [&](size_t n, bool err = false) {
        Packet p{random_bytes(n), err};
        s_in.queue.push_back(p);
        sent.push_back(p);
    };
    p_out.percent = 60;
    for (size_t n = 1; n <= MAX_FRAME; n++) send(n);
    tx_settle("every length out");
    CHECK(done == MAX_FRAME, "%llu answers", (unsigned long long)done);
    for (int i = 0; i < 200; i++) send(1 + below(300), chance(50));
    tx_settle("aborted frames have terr");
    if (W == PHY_W && W == 512) {
        p_out.percent = 100;
        for (int i = 0; i < 1000; i++) send(1 + below(64));
        const uint64_t start = now_ps;
        sim.until(20000000000, [&] { return p_out.got.size() == 1000; });
        CHECK(now_ps - start < 1100 * PHY_PS, "1000 frames of one beat took %llu cycles", (unsigned long long)((now_ps - start) / PHY_PS));
        tx_settle("a frame of one beat per cycle");
    }
    return end();
}
