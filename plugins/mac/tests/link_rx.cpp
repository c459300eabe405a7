// top: bench_link
// param: W=32
// slow-param: W = 8, 64
//
// Receive at 125 MHz, one byte per cycle: good frames of every length, back to back at line rate; wrong FCS, errors, runts,
// truncation at every byte, oversize, broken preambles; a client that stops.
#include "bench.hpp"

using namespace bench;

// 1 Gbit/s at 8 bits, twice that at 32, 3.2 times at 64.
static constexpr uint64_t SYS_PS = W == 8 ? 8000 : W == 32 ? 16000 : 20000;

static constexpr unsigned MAX_FRAME = 1518;

struct Line {
    Bytes bytes;  // preamble to FCS
    bool error = false;
    unsigned gap = 12;
};

static Line framed(Bytes b) {
    Line line;
    line.bytes.assign(7, 0x55);
    line.bytes.push_back(0xd5);
    line.bytes.insert(line.bytes.end(), b.begin(), b.end());
    const uint32_t c = crc32(b.data(), b.size());
    for (int i = 0; i < 4; i++) line.bytes.push_back(static_cast<uint8_t>(c >> (8 * i)));
    return line;
}

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    constexpr unsigned B = W / 8;
    d.rx_ce = d.tx_ce = 1;
    d.shut = d.rx_dv = d.rx_er = d.tx_tvalid = 0;
    auto out = sink(d.rx_tdata, d.rx_tkeep, d.rx_tlast, d.rx_terr, d.rx_tvalid, d.rx_tready, B);
    uint64_t events[10] = {};
    sim.clock(d.clk_sys, SYS_PS, [&] {
        if (d.rst_sys) return;
        out.sample();
        for (int i = 0; i < 10; i++) events[i] += d.events >> i & 1;
    }, [&] { out.drive(); }, below(8000));
    std::deque<Line> lines;
    size_t at = 0;
    unsigned gap = 20;
    sim.clock(d.clk_rx, 8000, {}, [&] {
        d.rx_dv = d.rx_er = 0;
        d.rx_d = 0xdd;
        if (gap) {
            gap--;
            return;
        }
        if (lines.empty()) return;
        auto& line = lines.front();
        d.rx_dv = 1;
        d.rx_d = line.bytes[at];
        d.rx_er = line.error && at == line.bytes.size() / 2;
        if (++at == line.bytes.size()) {
            gap = line.gap;
            at = 0;
            lines.pop_front();
        }
    });
    sim.clock(d.clk_tx, 8000, {}, {});
    d.rst_sys = d.rst_rx = d.rst_tx = 1;
    sim.run(1000000);
    d.rst_sys = d.rst_rx = d.rst_tx = 0;
    sim.run(1000000);
    std::vector<Packet> expected;
    uint64_t counted[10] = {};
    auto settle = [&](const char* what) {
        CHECK(sim.until(60000000000, [&] { return lines.empty(); }), "%s: line stuck", what);
        sim.run(2000000);
        for (int i = 0; i < 10; i++) CHECK(events[i] == counted[i], "%s: event %d counted %llu times, not %llu", what, i, (unsigned long long)events[i], (unsigned long long)counted[i]);
        CHECK(out.got.size() == expected.size(), "%s: %zu frames, not %zu", what, out.got.size(), expected.size());
        for (size_t i = 0; i < std::min(out.got.size(), expected.size()); i++)
            CHECK(out.got[i] == expected[i], "%s: frame %zu of %zu bytes came as %zu bytes, err %d (not %d)", what, i, expected[i].bytes.size(), out.got[i].bytes.size(), out.got[i].err, expected[i].err);
        CHECK(out.open.bytes.empty(), "%s: a frame has no end", what);
        out.got.clear();
        expected.clear();
        ok(what);
    };
    auto good = [&](size_t n) {
        Packet p{random_bytes(n)};
        lines.push_back(framed(p.bytes));
        expected.push_back(p);
        counted[0]++;
    };
    auto bad = [&](Line line, int why, bool seen) {
        lines.push_back(line);
        if (seen) expected.push_back({{}, true});
        counted[why]++;
    };
    for (size_t n = 60; n <= MAX_FRAME; n++) good(n);
    settle("every length back to back at line rate");
    for (int i = 0; i < 200; i++) {
        good(60 + below(300));
        lines.back().gap = 1 + below(3);
    }
    settle("gaps of one to three bytes");
    for (int i = 0; i < 20; i++) {
        good(60 + below(100));
        lines.back().bytes.erase(lines.back().bytes.begin(), lines.back().bytes.begin() + below(8));
    }
    settle("short preambles");
    for (int i = 0; i < 100; i++) {
        Line l = framed(random_bytes(60 + below(200)));
        l.bytes[8 + below(l.bytes.size() - 8)] ^= 1 << below(8);
        bad(l, 1, true);
        good(60 + below(70));
    }
    settle("wrong FCS, and the next frame is good");
    for (int i = 0; i < 50; i++) {
        Line l = framed(random_bytes(60 + below(200)));
        l.error = true;
        bad(l, 5, true);
        good(60 + below(70));
    }
    settle("rx_er");
    for (size_t n = 0; n < 60; n++) {
        bad(framed(random_bytes(n)), 2, n > 0);
        good(60);
    }
    settle("runts with a good FCS");
    for (size_t n = 8; n < 8 + 104; n++) {  // whole: 100 bytes and FCS
        Line l = framed(random_bytes(100));
        l.bytes.resize(n);
        if (n == 8) {
            // Nothing behind the start delimiter.
            bad(l, 2, false);
        } else {
            bad(l, n < 8 + 64 ? 2 : 1, n > 8 + 4);
        }
        good(60);
    }
    settle("truncated at every byte");
    for (int i = 0; i < 20; i++) {
        bad(framed(random_bytes(MAX_FRAME + 1 + below(2000))), 3, true);
        good(60);
    }
    settle("oversize");
    for (int i = 0; i < 20; i++) {
        Line l = framed(random_bytes(60 + below(100)));
        l.bytes[below(7)] = 0x5d;
        bad(l, 5, false);
        good(60);
    }
    settle("broken preambles");
    // The client stops: frames are lost whole, all are counted, and the next is good.
    for (int round = 0; round < 10; round++) {
        const size_t n = 60 + below(800), frames = 20;
        out.percent = 0;
        for (size_t i = 0; i < frames; i++) lines.push_back(framed(random_bytes(n)));
        sim.until(60000000000, [&] { return lines.empty(); });
        sim.run(1000000);
        out.percent = 100;
        sim.run(5000000);
        size_t fine = 0, broken = 0;
        for (auto& p : out.got) (p.err ? broken : fine)++;
        CHECK(fine == events[0] - counted[0], "%zu good frames seen, %llu counted", fine, (unsigned long long)(events[0] - counted[0]));
        CHECK(fine + events[4] - counted[4] == frames, "%zu passed and %llu lost of %zu", fine, (unsigned long long)(events[4] - counted[4]), frames);
        CHECK(broken <= 1, "%zu broken frames", broken);
        counted[0] = events[0];
        counted[4] = events[4];
        out.got.clear();
        good(60 + below(100));
        settle("after a stop of the client");
    }
    return end();
}
