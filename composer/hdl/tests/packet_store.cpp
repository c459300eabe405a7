// top: gw::bench_packet_store
// param: W=32 BYTES=2048
// param: W=512 BYTES=2048
//
// `tx`: packets leave in one piece with their `tuser`, aborted and too long ones never do, the store answers each itself and does not hear the
// provider's answers. `rx` passes through in the same cycle.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    constexpr unsigned B = W / 8;
    d.u_rvalid = d.d_tvalid = d.u_done = 0;
    auto in = source(d.d_tdata, d.d_tkeep, d.d_tlast, d.d_terr, d.d_tvalid, d.d_tready, B);
    auto out = sink(d.u_tdata, d.u_tkeep, d.u_tlast, d.u_terr, d.u_tvalid, d.u_tready, B);
    in.user = [&](uint64_t u) { d.d_tuser = u & 7; };
    out.user = [&] { return static_cast<uint64_t>(d.u_tuser); };
    std::deque<int> answers;
    uint64_t holes = 0, passed = 0;
    sim.clock(d.clk, 10000, [&] {
        if (d.rst) return;
        in.sample();
        if (!d.u_tvalid && d.u_tready && out.beats) holes++;
        out.sample();
        if (d.d_done) answers.push_back(d.d_status);
        CHECK(!d.u_tvalid || !d.u_tlast || !d.u_terr, "an aborted packet leaves");
        bool same = d.d_rvalid == d.u_rvalid && d.u_rready == d.d_rready && d.d_rlast == d.u_rlast && d.d_rerr == d.u_rerr && d.d_ruser == d.u_ruser;
        for (unsigned k = 0; k < B; k++) same = same && get_byte(d.d_rdata, k) == get_byte(d.u_rdata, k) && get_byte(d.d_rkeep, k / 8) == get_byte(d.u_rkeep, k / 8);
        CHECK(same, "rx does not pass through");
        passed += d.d_rvalid && d.d_rready;
    }, [&] {
        if (d.rst) return;
        in.drive();
        out.drive();
        for (unsigned k = 0; k < B; k++) set_byte(d.u_rdata, k, static_cast<uint8_t>(rng()));
        for (unsigned k = 0; k < B / 8 + (B % 8 != 0); k++) set_byte(d.u_rkeep, k, static_cast<uint8_t>(rng() & (B < 8 ? (1u << B) - 1 : 255)));
        d.u_rlast = chance(30);
        d.u_rerr = chance(30);
        d.u_ruser = below(32);
        d.u_rvalid = chance(50);
        d.d_rready = chance(50);
        d.u_done = chance(50);
        d.u_status = below(4);
    });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    for (int round = 0; round < 12; round++) {
        in.percent = 1 + below(100);
        out.percent = 1 + below(100);
        std::vector<Packet> sent;
        for (int i = 0; i < 60; i++) sent.push_back({random_bytes(chance(10) ? BYTES + 1 + below(3 * B) : chance(10) ? BYTES : below(BYTES)), chance(20), below(8)});
        in.queue.assign(sent.begin(), sent.end());
        CHECK(sim.until(60000000000, [&] { return in.queue.empty(); }), "stuck");
        out.percent = 100;
        sim.run(40000ull * BYTES);
        CHECK(answers.size() == sent.size(), "%zu answers to %zu packets", answers.size(), sent.size());
        std::vector<Packet> expected;
        for (size_t i = 0; i < std::min(sent.size(), answers.size()); i++) {
            const bool stays = sent[i].err || sent[i].bytes.size() > BYTES;
            CHECK(answers[i] == (stays ? 2 : 0), "packet %zu of %zu bytes: answer %d", i, sent[i].bytes.size(), answers[i]);
            if (!stays) expected.push_back(sent[i]);
        }
        CHECK(out.got.size() == expected.size(), "%zu packets, not %zu", out.got.size(), expected.size());
        for (size_t i = 0; i < std::min(out.got.size(), expected.size()); i++) CHECK(out.got[i] == expected[i], "packet %zu differs", i);
        out.got.clear();
        answers.clear();
    }
    CHECK(holes == 0, "%llu holes in packets", (unsigned long long)holes);
    CHECK(passed > 1000, "rx was idle");
    ok("random packets");
    return end();
}
