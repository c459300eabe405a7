// top: bench_mii
// param: W=32
//
// The MAC at MII's pins: the PHY's clocks at any phase and 100 ppm off; frames both ways, preambles with an odd number of nibbles, rx_er, wrong FCS, a nibble
// too many; the data change 0 to 25 ns after the PHY's edge (IEEE 802.3, 22.3.1); the reference clock; counters over the bus.
#include "pins.hpp"

using namespace pins;

// From a flip-flop to its pin at the least: what the PHY sees is that much older. Without it a PHY that is 100 ppm slow could see a change
// some ps before its edge.
static constexpr uint64_t PAD_PS = 1000;

int main(int argc, char** argv) {
    begin(argc, argv);
    for (int turn = 0; turn < 4; turn++) {
        Sim<> sim;
        auto& d = sim.dut;
        System<W> sys{sim};
        sys.clock(16000);
        // Nibbles to come, and which of them has rx_er.
        struct Nibbles {
            Bytes values;
            size_t error = SIZE_MAX;
        };
        std::deque<Nibbles> lines;
        size_t at = 0;
        unsigned gap = 40;
        const uint64_t phy_ps = turn == 0 ? 40000 : turn == 1 ? 39996 : 40004;
        d.rx_dv = d.rx_er = 0;
        sim.clock(d.clk_rx, phy_ps, {}, [&] {
            d.rx_dv = d.rx_er = 0;
            d.rx_data = below(16);
            if (gap && gap--) return;
            if (lines.empty()) return;
            auto& line = lines.front();
            d.rx_dv = 1;
            d.rx_data = line.values[at];
            d.rx_er = at == line.error;
            if (++at == line.values.size()) {
                gap = 24;
                at = 0;
                lines.pop_front();
            }
        }, below(40000));
        sim.clock(d.clk_tx, 8000, {}, {}, below(8000));
        std::vector<Bytes> seen;
        Bytes nibbles;
        unsigned idle = 100, pins = 0, old_pins = 0;
        uint64_t last_rise = 0, last_change = 0, last_ref = 0, refs = 0;
        bool awake = false, ref = false;
        sim.clock(d.tx_clk, phy_ps, [&] {
            if (!awake) return;
            last_rise = now_ps;
            const unsigned there = now_ps < last_change + PAD_PS ? old_pins : pins;
            if (there >> 4) {
                if (nibbles.empty() && !seen.empty()) CHECK(idle >= 24, "a gap of %u nibbles", idle);
                nibbles.push_back(there & 15);
                idle = 0;
                return;
            }
            idle++;
            if (nibbles.empty()) return;
            CHECK(nibbles.size() % 2 == 0, "%zu nibbles", nibbles.size());
            Bytes bytes;
            for (size_t i = 0; i + 1 < nibbles.size(); i += 2) bytes.push_back(static_cast<uint8_t>(nibbles[i] | nibbles[i + 1] << 4));
            seen.push_back(bytes);
            nibbles.clear();
        }, {}, below(40000));
        auto run = [&](uint64_t ps) {
            const uint64_t stop = now_ps + ps;
            while (now_ps < stop) {
                sim.step();
                if (!awake) continue;
                const unsigned now = d.tx_data | d.tx_en << 4;
                if (now != pins) {
                    const uint64_t late = (now_ps + PAD_PS - last_rise) % phy_ps;
                    CHECK(late <= 25000, "the data change %llu ps after the PHY's edge", (unsigned long long)late);
                    last_change = now_ps;
                    old_pins = pins;
                    pins = now;
                }
                if (d.ref_clk != ref) {
                    if (refs++) CHECK(now_ps - last_ref == 20000, "half a period of the reference of %llu ps", (unsigned long long)(now_ps - last_ref));
                    last_ref = now_ps;
                    ref = d.ref_clk;
                }
            }
        };
        sys.run = run;
        d.rst_sys = d.rst_rx = d.rst_tx = 1;
        run(2000000);
        d.rst_sys = d.rst_rx = d.rst_tx = 0;
        run(2000000);
        pins = d.tx_data | d.tx_en << 4;
        ref = d.ref_clk;
        last_rise = now_ps;
        awake = true;
        for (int round = 0; round < 3; round++) {
            std::vector<Packet> expected, sent;
            uint32_t good = 0, fcs = 0, error = 0;
            const uint32_t before[] = {sys.reg(0), sys.reg(4), sys.reg(20), sys.reg(24)};
            for (int i = 0; i < 25; i++) {
                Packet p{random_bytes(60 + below(chance(20) ? 700 : 100))};
                Line line = framed(p.bytes);
                const unsigned what = round ? unsigned(below(5)) : 0;
                if (what == 1) line.bytes[8 + below(line.bytes.size() - 8)] ^= 1 << below(8);
                Nibbles n;
                for (uint8_t b : line.bytes) {
                    n.values.push_back(b & 15);
                    n.values.push_back(b >> 4);
                }
                // PHYs shorten the preamble, to any number of nibbles.
                if (round) n.values.erase(n.values.begin(), n.values.begin() + static_cast<long>(below(14)));
                if (what == 2) n.error = 40 + below(n.values.size() - 60);
                if (what == 3) n.values.push_back(static_cast<uint8_t>(below(16)));
                p.err = what == 1 || what == 2;
                (what == 1 ? fcs : what == 2 ? error : good)++;
                lines.push_back(n);
                expected.push_back(p);
                Packet t{random_bytes(14 + below(chance(20) ? 700 : 100))};
                sys.in.queue.push_back(t);
                sent.push_back(t);
            }
            while (!lines.empty() || !sys.in.queue.empty()) run(1000000);
            run(200000000);
            sys.received(expected, "in");
            left(seen, sent, "out");
            const uint32_t after[] = {sys.reg(0), sys.reg(4), sys.reg(20), sys.reg(24)}, want[] = {good, fcs, error, 25};
            for (int i = 0; i < 4; i++) CHECK(after[i] - before[i] == want[i], "counter %d went on by %u, not %u", i, after[i] - before[i], want[i]);
        }
        CHECK(refs > 10000, "the reference clock stands");
    }
    ok("frames both ways at the pins");
    return end();
}
