// top: gw::bench_packet_rx_fifo
// param: W=32 DEPTH=64 BLOCK=1
// param: W=512 DEPTH=16 BLOCK=0
// slow-param: W=8 DEPTH=1024 BLOCK=1
//
// A provider that never waits: a packet whose first beat finds the link not ready is dropped and counted, as the contract has it. Bursts of up to
// `DEPTH` beats at full rate lose nothing, whatever the client does meanwhile, even nothing; what comes beyond is dropped whole and counted, and
// the rest arrives. The same client without the FIFO loses. `tx` and its answers pass through in the same cycle.
#include "bench.hpp"

using namespace bench;

namespace {

constexpr unsigned B = W / 8;

unsigned beats(const Packet& p) { return p.bytes.empty() ? 1 : static_cast<unsigned>((p.bytes.size() + B - 1) / B); }

/// Packets of `total` beats together, of up to `longest` bytes each.
std::vector<Packet> burst(unsigned total, size_t longest) {
    std::vector<Packet> list;
    while (total) {
        Packet p{random_bytes(below(longest + 1)), chance(20), below(32)};
        if (beats(p) > total) p.bytes.resize(size_t(total) * B);
        total -= beats(p);
        list.push_back(std::move(p));
    }
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    d.u_rvalid = d.d_tvalid = d.u_done = 0;
    auto in = source(d.u_rdata, d.u_rkeep, d.u_rlast, d.u_rerr, d.u_rvalid, d.u_rready, B);
    auto out = sink(d.d_rdata, d.d_rkeep, d.d_rlast, d.d_rerr, d.d_rvalid, d.d_rready, B);
    in.user = [&](uint64_t u) { d.u_ruser = u & 31; };
    out.user = [&] { return static_cast<uint64_t>(d.d_ruser); };
    std::vector<Packet> passed;  // what the provider did not drop
    uint64_t dropped = 0, waits = 0, without = 0, answers = 0;
    bool busy = false;           // without the FIFO: the client has not taken the last beat yet
    sim.clock(d.clk, 10000, [&] {
        if (d.rst) return;
        if (d.u_rvalid && in.at == 0 && d.u_rready) passed.push_back(in.queue.front());
        waits += d.u_rvalid && !d.u_rready;
        // What the register of a provider without the FIFO would lose, the client as ready as it is.
        const bool taken = d.d_rready;
        if (d.u_rvalid && in.at == 0 && busy && !taken) without++;
        busy = (busy && !taken) || d.u_rvalid;
        in.sample();
        out.sample();
        // The provider gives up a packet that nobody takes.
        if (in.offered && !in.accepted && in.at == 0) {
            in.queue.pop_front();
            in.offered = false;
            dropped++;
        }
        bool same = d.u_tvalid == d.d_tvalid && d.d_tready == d.u_tready && d.u_tlast == d.d_tlast && d.u_terr == d.d_terr && d.u_tuser == d.d_tuser;
        same = same && d.d_done == d.u_done && d.d_status == d.u_status;
        for (unsigned k = 0; k < B; k++) same = same && get_byte(d.u_tdata, k) == get_byte(d.d_tdata, k) && get_byte(d.u_tkeep, k / 8) == get_byte(d.d_tkeep, k / 8);
        CHECK(same, "tx does not pass through");
        answers += d.d_done;
    }, [&] {
        if (d.rst) return;
        in.drive();
        out.drive();
        for (unsigned k = 0; k < B; k++) set_byte(d.d_tdata, k, static_cast<uint8_t>(rng()));
        for (unsigned k = 0; k < B / 8 + (B % 8 != 0); k++) set_byte(d.d_tkeep, k, static_cast<uint8_t>(rng() & (B < 8 ? (1u << B) - 1 : 255)));
        d.d_tlast = chance(30);
        d.d_terr = chance(30);
        d.d_tuser = below(8);
        d.d_tvalid = chance(50);
        d.u_tready = chance(50);
        d.u_done = chance(20);
        d.u_status = below(4);
    });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    auto arrived = [&](const std::vector<Packet>& expected, const char* what) {
        const bool all = sim.until(20000ull * 2000 * DEPTH, [&] { return in.queue.empty() && out.got.size() >= expected.size(); });
        sim.run(100000);
        CHECK(all && out.got.size() == expected.size(), "%s: %zu packets, not %zu", what, out.got.size(), expected.size());
        for (size_t i = 0; i < std::min(out.got.size(), expected.size()); i++)
            CHECK(out.got[i] == expected[i] && out.got[i].bytes == expected[i].bytes, "%s: packet %zu of %zu bytes differs", what, i, expected[i].bytes.size());
        out.got.clear();
        passed.clear();
    };
    for (int round = 0; round < 40; round++) {
        // A client that stands still, or is slow, for as long as a burst takes that just fits.
        out.percent = round % 4 == 0 ? 0 : static_cast<unsigned>(below(60));
        const auto sent = burst(DEPTH - static_cast<unsigned>(round % 3 ? below(DEPTH) : 0), round % 2 ? 3 * B : B * DEPTH / 2);
        in.queue.assign(sent.begin(), sent.end());
        CHECK(sim.until(20000ull * DEPTH, [&] { return in.queue.empty(); }), "the burst takes more than its time");
        out.percent = 1 + static_cast<unsigned>(below(100));
        arrived(sent, "burst");
        CHECK(dropped == 0 && waits == 0, "%llu packets lost, %llu cycles waited", (unsigned long long)dropped, (unsigned long long)waits);
    }
    CHECK(without > 30, "the client would have lost only %llu packets without the FIFO", (unsigned long long)without);
    std::printf("without the FIFO %llu packets lost, with it none\n", (unsigned long long)without);
    ok("a slow client loses nothing in bursts that fit");
    // A client that stands still: what fits is kept, what is beyond is dropped whole.
    for (int round = 0; round < 10; round++) {
        out.percent = 0;
        dropped = 0;
        const auto sent = burst(4 * DEPTH, B);
        in.queue.assign(sent.begin(), sent.end());
        CHECK(sim.until(80000ull * DEPTH, [&] { return in.queue.empty(); }), "the provider is stopped");
        const auto kept = passed;
        CHECK(kept.size() + dropped == sent.size() && kept.size() >= DEPTH && kept.size() <= DEPTH + 2, "%zu packets of a beat kept, %llu dropped", kept.size(), (unsigned long long)dropped);
        out.percent = 100;
        arrived(kept, "overload");
    }
    ok("a client that stands still stops nobody");
    // Full rate.
    in.percent = out.percent = 100;
    const auto sent = burst(8 * DEPTH, 3 * B);
    in.queue.assign(sent.begin(), sent.end());
    waits = 0;
    const uint64_t start = now_ps;
    arrived(sent, "full rate");
    CHECK(waits == 0 && (now_ps - start) / 10000 <= 8 * DEPTH + 40, "%llu cycles for %u beats", (unsigned long long)((now_ps - start) / 10000), 8 * DEPTH);
    CHECK(answers > 50, "no answers");
    ok("a beat on every cycle");
    return end();
}
