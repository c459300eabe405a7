// top: bench_gmii
// param: W=32
//
// The MAC at GMII's pins: frames both ways at line rate; the transmit clock is in the middle of the data; rx_er, wrong FCS; `tx_er` never; counters over the bus.
#include "pins.hpp"

using namespace pins;

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    System<W> sys{sim};
    sys.clock(16000);
    std::deque<Line> lines;
    size_t at = 0;
    unsigned gap = 20;
    sim.clock(d.clk_rx, 8000, {}, [&] {
        d.rx_dv = d.rx_er = 0;
        d.rx_data = below(256);
        if (gap && gap--) return;
        if (lines.empty()) return;
        auto& line = lines.front();
        d.rx_dv = 1;
        d.rx_data = line.bytes[at];
        d.rx_er = line.error && at == line.bytes.size() / 2;
        if (++at == line.bytes.size()) {
            gap = 12;
            at = 0;
            lines.pop_front();
        }
    }, below(8000));
    // The PHY samples at the rising edge of gtx_clk, and what it samples stays half a period before and after.
    std::vector<Bytes> seen;
    Bytes open;
    uint64_t rises = 0, last_rise = 0, last_change = 0;
    bool high = false, awake = false;
    unsigned pins = 0;
    sim.clock(d.clk_tx, 8000, {}, {}, below(8000));
    auto watch = [&] {
        if (!awake) return;
        const unsigned now = d.tx_data | d.tx_en << 8;
        CHECK(d.tx_er == 0, "tx_er is set");
        if (now != pins) {
            CHECK(now_ps - last_rise == 4000, "the data change %llu ps after the clock's edge", (unsigned long long)(now_ps - last_rise));
            last_change = now_ps;
            pins = now;
        }
        if (d.gtx_clk && !high) {
            if (rises) CHECK(now_ps - last_rise == 8000, "a clock period of %llu ps", (unsigned long long)(now_ps - last_rise));
            CHECK(now_ps - last_change >= 4000, "the data change %llu ps before the clock's edge", (unsigned long long)(now_ps - last_change));
            last_rise = now_ps;
            rises++;
            if (now >> 8) open.push_back(now & 255);
            else if (!open.empty()) {
                seen.push_back(open);
                open.clear();
            }
        }
        high = d.gtx_clk;
    };
    auto run = [&](uint64_t ps) {
        const uint64_t stop = now_ps + ps;
        while (now_ps < stop) {
            sim.step();
            watch();
        }
    };
    sys.run = run;
    d.rst_sys = d.rst_rx = d.rst_tx = 1;
    run(1000000);
    d.rst_sys = d.rst_rx = d.rst_tx = 0;
    run(1000000);
    pins = d.tx_data | d.tx_en << 8;
    high = d.gtx_clk;
    while (!(d.gtx_clk && !high)) {
        high = d.gtx_clk;
        sim.step();
    }
    high = true;
    last_rise = now_ps;
    rises = 1;
    awake = true;
    for (int round = 0; round < 6; round++) {
        std::vector<Packet> expected, sent;
        uint32_t good = 0, fcs = 0, error = 0, aborted = 0;
        const uint32_t before[] = {sys.reg(0), sys.reg(4), sys.reg(20), sys.reg(24), sys.reg(28)};
        for (int i = 0; i < 60; i++) {
            Packet p{random_bytes(60 + below(chance(20) ? 1459 : 100))};
            Line line = framed(p.bytes);
            if (round && chance(20)) {
                line.error = true;
                p.err = true;
                error++;
            } else if (round && chance(20)) {
                line.bytes[8 + below(line.bytes.size() - 8)] ^= 1 << below(8);
                p.err = true;
                fcs++;
            } else good++;
            lines.push_back(line);
            expected.push_back(p);
            Packet t{random_bytes(14 + below(chance(20) ? 1505 : 100)), round && chance(20)};
            aborted += t.err;
            sys.in.queue.push_back(t);
            sent.push_back(t);
        }
        while (!lines.empty() || !sys.in.queue.empty()) run(100000);
        run(30000000);
        sys.received(expected, "in");
        left(seen, sent, "out");
        const uint32_t after[] = {sys.reg(0), sys.reg(4), sys.reg(20), sys.reg(24), sys.reg(28)}, want[] = {good, fcs, error, 60 - aborted, aborted};
        for (int i = 0; i < 5; i++) CHECK(after[i] - before[i] == want[i], "counter %d went on by %u, not %u", i, after[i] - before[i], want[i]);
    }
    CHECK(rises > 10000, "the transmit clock stands");
    ok("frames both ways at the pins");
    return end();
}
