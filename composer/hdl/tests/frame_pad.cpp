// top: gw::frame_pad
// param: W=64
// param: W=512
//
// Frames of every length from 1 to 200 bytes come out with zeros up to 60 and unchanged above, each with its own error flag,
// under random waits on both sides; a frame of 60 bytes or more costs no beat.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    Source<decltype(d.i_tdata), decltype(d.i_tkeep)> source{d.i_tdata, d.i_tkeep, d.i_tlast, d.i_terr, d.i_tvalid, d.i_tready, W / 8};
    Sink<decltype(d.o_tdata), decltype(d.o_tkeep)> sink{d.o_tdata, d.o_tkeep, d.o_tlast, d.o_tuser, d.o_tvalid, d.o_tready, W / 8};
    std::deque<Packet> expected;
    sim.clock(
        d.clk, 6400,
        [&] {
            if (d.rst) return;
            source.sample();
            sink.sample();
        },
        [&] {
            if (d.rst) return;
            source.drive();
            sink.drive();
        });
    d.i_tvalid = d.o_tready = 0;
    auto send = [&](size_t length) {
        Packet p{random_bytes(length), chance(25)};
        source.queue.push_back(p);
        while (p.bytes.size() < 60) p.bytes.push_back(0);
        expected.push_back(p);
    };
    auto drain = [&](const char* what) {
        CHECK(sim.until(10000000000, [&] { return sink.got.size() >= expected.size(); }), "%zu of %zu frames", sink.got.size(), expected.size());
        for (size_t i = 0; i < std::min(sink.got.size(), expected.size()); i++) {
            const Packet &got = sink.got[i], &want = expected[i];
            CHECK(got.bytes == want.bytes && got.err == want.err, "frame %zu: %zu bytes, err %d; not %zu, %d", i, got.bytes.size(), got.err,
                  want.bytes.size(), want.err);
        }
        ok(what);
        sink.got.clear();
        expected.clear();
    };
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    for (size_t length = 1; length <= 200; length++) send(length);
    drain("every length, both sides willing");
    source.percent = 60;
    sink.percent = 50;
    for (int i = 0; i < 2000; i++) send(1 + below(200));
    drain("random lengths, random waits");
    source.percent = sink.percent = 100;
    sim.run(100000);
    const uint64_t start = now_ps;
    for (int i = 0; i < 100; i++) send(60);
    CHECK(sim.until(10000000, [&] { return sink.got.size() >= 100; }), "stuck");
    const uint64_t cycles = (now_ps - start) / 6400, beats = 100 * ((60 + W / 8 - 1) / (W / 8));
    CHECK(cycles <= beats + 2, "%llu cycles for %llu beats", (unsigned long long)cycles, (unsigned long long)beats);
    drain("no beat lost on frames of 60 bytes");
    return end();
}
