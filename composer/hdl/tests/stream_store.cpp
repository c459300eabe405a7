// top: gw::stream_store
// param: W=32 DEPTH=64 DROP=0
// param: W=8 DEPTH=128 DROP=1
// param: W=512 DEPTH=16 DROP=0
//
// Whole packets only, without a hole; aborted ones and those longer than the store vanish; full waits or drops as `DROP` says; one answer each.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    constexpr unsigned B = W / 8;
    uint8_t no_err = 0;
    d.i_valid = d.i_user = 0;
    auto in = source(d.i_data, d.i_keep, d.i_last, d.i_err, d.i_valid, d.i_ready, B);
    auto out = sink(d.o_data, d.o_keep, d.o_last, no_err, d.o_valid, d.o_ready, B);
    std::deque<int> answers;
    uint64_t holes = 0;
    sim.clock(d.clk, 10000, [&] {
        if (d.rst) return;
        in.sample();
        if (!d.o_valid && d.o_ready && out.beats) holes++;
        out.sample();
        if (d.done) answers.push_back(d.status);
    }, [&] {
        if (d.rst) return;
        in.drive();
        out.drive();
    });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    for (int round = 0; round < 12; round++) {
        in.percent = 1 + below(100);
        out.percent = 1 + below(100);
        std::vector<Packet> sent;
        for (int i = 0; i < 60; i++) sent.push_back({random_bytes(chance(10) ? DEPTH * B + 1 + below(3 * B) : below(DEPTH * B / 2)), chance(20)});
        in.queue.assign(sent.begin(), sent.end());
        CHECK(sim.until(20000000000, [&] { return in.queue.empty(); }), "stuck");
        out.percent = 100;
        sim.run(DEPTH * 30000 + 1000000);
        CHECK(answers.size() == sent.size(), "%zu answers to %zu packets", answers.size(), sent.size());
        std::vector<Packet> expected;
        for (size_t i = 0; i < std::min(sent.size(), answers.size()); i++) {
            const bool small = sent[i].bytes.size() <= DEPTH * B;
            if (answers[i] == 0) expected.push_back(sent[i]);
            CHECK(answers[i] != 0 || (small && !sent[i].err), "packet %zu was stored", i);
            if (!DROP) CHECK((answers[i] == 0) == (small && !sent[i].err), "packet %zu: answer %d", i, answers[i]);
        }
        CHECK(out.got.size() == expected.size(), "%zu packets, not %zu", out.got.size(), expected.size());
        for (size_t i = 0; i < std::min(out.got.size(), expected.size()); i++) CHECK(out.got[i].bytes == expected[i].bytes, "packet %zu differs", i);
        out.got.clear();
        answers.clear();
    }
    CHECK(holes == 0, "%llu holes in packets", (unsigned long long)holes);
    ok("random packets");
    // Nobody takes anything.
    out.percent = 0;
    in.percent = 100;
    for (int i = 0; i < 20; i++) in.queue.push_back({random_bytes(DEPTH * B / 4)});
    sim.run(DEPTH * 100000);
    if (DROP) CHECK(in.queue.empty() && std::count(answers.begin(), answers.end(), 3) >= 15, "a full store drops: %zu left", in.queue.size());
    else CHECK(!in.queue.empty() && std::count(answers.begin(), answers.end(), 0) == 4, "a full store waits");
    ok("full");
    return end();
}
