// top: bench_link
// param: W=32
// slow-param: W = 8, 64
//
// Transmit at 125 MHz: every length, back to back in exactly max(L, 60) + 24 byte times; padding, FCS and gap; aborted frames,
// frames that run dry, empty ones, and the closed state.
#include "bench.hpp"

using namespace bench;

// 1 Gbit/s at 8 bits, twice that at 32, 3.2 times at 64.
static constexpr uint64_t SYS_PS = W == 8 ? 8000 : W == 32 ? 16000 : 20000;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    constexpr unsigned B = W / 8;
    d.rx_ce = d.tx_ce = 1;
    d.shut = d.rx_dv = d.rx_er = d.tx_tvalid = 0;
    auto in = source(d.tx_tdata, d.tx_tkeep, d.tx_tlast, d.tx_terr, d.tx_tvalid, d.tx_tready, B);
    uint64_t events[10] = {}, done[4] = {};
    bool stall = false;
    sim.clock(d.clk_sys, SYS_PS, [&] {
        if (d.rst_sys) return;
        in.sample();
        for (int i = 0; i < 10; i++) events[i] += d.events >> i & 1;
        if (d.tx_done) done[d.tx_status]++;
    }, [&] {
        if (d.rst_sys) {
            d.tx_tvalid = 0;
            return;
        }
        in.drive();
        if (stall && in.at > 0) in.percent = 10;
    }, below(8000));
    sim.clock(d.clk_rx, 8000, {}, {});
    struct Seen {
        Bytes bytes;  // behind the preamble, with FCS
        uint64_t start;
        unsigned gap;
    };
    std::vector<Seen> seen;
    Bytes open;
    uint64_t cycle = 0, start = 0;
    unsigned idle = 100, gap = 0;
    sim.clock(d.clk_tx, 8000, [&] {
        cycle++;
        if (d.rst_tx) return;
        if (d.tx_en) {
            if (open.empty()) {
                start = cycle;
                gap = idle;
            }
            open.push_back(d.tx_d);
            idle = 0;
        } else {
            idle++;
            if (!open.empty()) {
                bool preamble = open.size() > 8 && open[7] == 0xd5;
                for (int i = 0; i < 7; i++) preamble = preamble && open[i] == 0x55;
                CHECK(preamble, "no preamble");
                seen.push_back({Bytes(open.begin() + 8, open.end()), start, gap});
                open.clear();
            }
        }
    }, {});
    d.rst_sys = d.rst_rx = d.rst_tx = 1;
    sim.run(1000000);
    d.rst_sys = d.rst_rx = d.rst_tx = 0;
    sim.run(1000000);
    auto good_fcs = [](const Bytes& b) {
        const uint32_t c = crc32(b.data(), b.size() - 4);
        for (int i = 0; i < 4; i++)
            if (b[b.size() - 4 + i] != static_cast<uint8_t>(c >> (8 * i))) return false;
        return true;
    };
    std::vector<Packet> sent;
    auto settle = [&](const char* what, bool paced) {
        CHECK(sim.until(60000000000, [&] { return in.queue.empty(); }), "%s: stuck", what);
        sim.run(20000000);
        CHECK(seen.size() == sent.size(), "%s: %zu frames, not %zu", what, seen.size(), sent.size());
        for (size_t i = 0; i < std::min(seen.size(), sent.size()); i++) {
            const auto& b = seen[i].bytes;
            const size_t n = std::max<size_t>(sent[i].bytes.size(), 60);
            CHECK(good_fcs(b) != sent[i].err, "%s: frame %zu of %zu bytes has FCS %s", what, i, sent[i].bytes.size(), sent[i].err ? "right" : "wrong");
            if (!sent[i].err) {
                CHECK(b.size() == n + 4, "%s: frame %zu of %zu bytes came as %zu", what, i, sent[i].bytes.size(), b.size());
                Bytes padded = sent[i].bytes;
                padded.resize(n);
                CHECK(b.size() == n + 4 && std::equal(padded.begin(), padded.end(), b.begin()), "%s: wrong bytes", what);
            }
            CHECK(seen[i].gap >= 12, "%s: gap of %u bytes", what, seen[i].gap);
            if (paced && i) {
                const size_t before = std::max<size_t>(sent[i - 1].bytes.size(), 60);
                CHECK(seen[i].start - seen[i - 1].start == before + 24, "%s: frame of %zu bytes took %llu byte times", what, before, (unsigned long long)(seen[i].start - seen[i - 1].start));
            }
        }
        seen.clear();
        sent.clear();
        ok(what);
    };
    auto send = [&](size_t n, bool err = false) {
        Packet p{random_bytes(n), err};
        in.queue.push_back(p);
        sent.push_back(p);
    };
    for (size_t n = 1; n <= 1518; n++) send(n);
    settle("every length back to back", true);
    CHECK(events[6] == 1518 && done[0] == 1518, "%llu frames counted, %llu answered", (unsigned long long)events[6], (unsigned long long)done[0]);
    for (int i = 0; i < 300; i++) send(1 + below(80));
    settle("short frames back to back", true);
    for (int i = 0; i < 100; i++) send(1 + below(200), chance(50));
    const uint64_t aborted = std::count_if(sent.begin(), sent.end(), [](auto& p) { return p.err; });
    settle("aborted frames end with a wrong FCS", true);
    CHECK(events[7] == aborted && done[2] == aborted, "%llu aborts counted, not %llu", (unsigned long long)events[7], (unsigned long long)aborted);
    // A frame whose source stops in the middle.
    for (int i = 0; i < 20; i++) {
        in.percent = 100;
        stall = true;
        Packet p{random_bytes(1000), false};
        in.queue.push_back(p);
        CHECK(sim.until(60000000000, [&] { return in.queue.empty(); }), "stuck");
        stall = false;
        in.percent = 100;
        sim.run(20000000);
        CHECK(seen.size() == 1 && !good_fcs(seen[0].bytes), "a frame that ran dry has no wrong FCS");
        CHECK(events[8] == static_cast<uint64_t>(i + 1), "%llu dry frames counted, not %d", (unsigned long long)events[8], i + 1);
        seen.clear();
        send(60 + below(200));
        settle("the frame after one that ran dry", true);
    }
    // An empty frame is refused, the next is sent.
    const uint64_t refused = done[2];
    in.queue.push_back({});
    send(70);
    settle("an empty frame is refused", true);
    CHECK(done[2] == refused + 1, "no answer to an empty frame");
    // Closed: frames are taken and thrown away.
    d.shut = 1;
    sim.run(1000000);
    for (int i = 0; i < 20; i++) in.queue.push_back({random_bytes(1 + below(300))});
    CHECK(sim.until(60000000000, [&] { return in.queue.empty(); }), "a closed MAC blocks its client");
    sim.run(1000000);
    CHECK(seen.empty() && done[3] == 20 && events[9] == 20, "closed: %zu frames sent, %llu refused", seen.size(), (unsigned long long)done[3]);
    d.shut = 0;
    sim.run(1000000);
    send(100);
    settle("closed and opened again", true);
    return end();
}
