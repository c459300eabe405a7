// top: gw::bench_packet_chain
// param: W=32 D=8
// param: W=512 D=64
// slow-param: W=8 D=64
// slow-param: W=64 D=512
//
// Slice, crossing, block RAM FIFO and width converter of a packets link in a row, both ways: order, bytes, `tkeep`, `tuser`, `terr`,
// packets without bytes, random waits; full rate when nobody waits; the answers of the provider.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    for (int turn = 0; turn < 3; turn++) {
        Sim<> sim;
        auto& d = sim.dut;
        d.u_rvalid = d.d_tvalid = d.u_done = d.u_status = 0;
        auto up_in = source(d.u_rdata, d.u_rkeep, d.u_rlast, d.u_rerr, d.u_rvalid, d.u_rready, W / 8);
        auto up_out = sink(d.u_tdata, d.u_tkeep, d.u_tlast, d.u_terr, d.u_tvalid, d.u_tready, W / 8);
        auto down_in = source(d.d_tdata, d.d_tkeep, d.d_tlast, d.d_terr, d.d_tvalid, d.d_tready, D / 8);
        auto down_out = sink(d.d_rdata, d.d_rkeep, d.d_rlast, d.d_rerr, d.d_rvalid, d.d_rready, D / 8);
        up_in.user = [&](uint64_t u) { d.u_ruser = u & 31; };
        down_in.user = [&](uint64_t u) { d.d_tuser = u & 7; };
        up_out.user = [&] { return static_cast<uint64_t>(d.u_tuser); };
        down_out.user = [&] { return static_cast<uint64_t>(d.d_ruser); };
        const uint64_t up_ps = 6000, down_ps = turn == 0 ? 6000 : turn == 1 ? 4100 : 9900;
        std::deque<int> answers;
        size_t answered = 0;
        size_t awake = 0; // cycles of the provider's side since reset
        sim.clock(d.clk_up, up_ps, [&] {
            if (d.rst_up) return;
            up_in.sample();
            up_out.sample();
            if (d.u_done) answers.push_back(d.u_status);
        }, [&] {
            if (d.rst_up) return;
            up_in.drive();
            up_out.drive();
            // Both sides of the answers' FIFO must have left reset: no provider has answered a packet by then.
            d.u_done = ++awake > 32 && chance(20);
            d.u_status = below(4);
        }, below(4000));
        sim.clock(d.clk_down, down_ps, [&] {
            if (d.rst_down) return;
            down_in.sample();
            down_out.sample();
            if (d.d_done) {
                CHECK(!answers.empty() && answers.front() == d.d_status, "wrong answer");
                if (!answers.empty()) answers.pop_front();
                answered++;
            }
        }, [&] {
            if (d.rst_down) return;
            down_in.drive();
            down_out.drive();
        }, below(4000));
        d.rst_up = d.rst_down = 1;
        sim.run(200000);
        d.rst_up = d.rst_down = 0;
        sim.run(200000);
        for (int round = 0; round < 6; round++) {
            std::vector<Packet> rx, tx;
            up_in.percent = round ? 1 + below(100) : 100;
            down_in.percent = round ? 1 + below(100) : 100;
            up_out.percent = round ? 1 + below(100) : 100;
            down_out.percent = round ? 1 + below(100) : 100;
            const size_t longest = 3 * std::max(W, D) / 8 + 2;
            for (size_t n = 0; n <= longest; n++) {
                rx.push_back({random_bytes(round ? below(longest + 1) : n), chance(30), below(32)});
                tx.push_back({random_bytes(round ? below(longest + 1) : n), chance(30), below(8)});
            }
            up_in.queue.assign(rx.begin(), rx.end());
            down_in.queue.assign(tx.begin(), tx.end());
            CHECK(sim.until(20000000000, [&] { return down_out.got.size() == rx.size() && up_out.got.size() == tx.size(); }), "stuck: %zu of %zu, %zu of %zu", down_out.got.size(), rx.size(), up_out.got.size(), tx.size());
            for (size_t i = 0; i < std::min(rx.size(), down_out.got.size()); i++)
                CHECK(down_out.got[i].bytes == rx[i].bytes && down_out.got[i] == rx[i], "rx packet %zu of %zu bytes differs", i, rx[i].bytes.size());
            for (size_t i = 0; i < std::min(tx.size(), up_out.got.size()); i++)
                CHECK(up_out.got[i].bytes == tx[i].bytes && up_out.got[i] == tx[i], "tx packet %zu of %zu bytes differs", i, tx[i].bytes.size());
            down_out.got.clear();
            up_out.got.clear();
        }
        CHECK(answered > 20, "%zu answers came through", answered);
        // Full rate: the narrow side is never idle while a long packet passes.
        if (turn == 0) {
            up_in.percent = down_in.percent = up_out.percent = down_out.percent = 100;
            const size_t bytes = 16384;
            up_in.queue.push_back({random_bytes(bytes)});
            down_in.queue.push_back({random_bytes(bytes)});
            const uint64_t start = now_ps;
            CHECK(sim.until(20000000000, [&] { return down_out.got.size() == 1 && up_out.got.size() == 1; }), "stuck");
            const uint64_t cycles = (now_ps - start) / up_ps, least = bytes / (std::min(W, D) / 8);
            CHECK(cycles < least + 60, "%zu bytes took %llu cycles, at least %llu", bytes, (unsigned long long)cycles, (unsigned long long)least);
        }
    }
    ok("three ratios of clocks, both ways");
    return end();
}
