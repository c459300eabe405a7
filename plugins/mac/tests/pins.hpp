// What the benches of the pin modules share: frames with preamble and FCS, the system side, the register bus.
#pragma once
#include "bench.hpp"

namespace pins {

using namespace bench;

/// What is on the line: preamble to FCS; `error`: rx_er in the middle.
struct Line {
    Bytes bytes;
    bool error = false;
};

inline Line framed(const Bytes& b) {
    Line line;
    line.bytes.assign(7, 0x55);
    line.bytes.push_back(0xd5);
    line.bytes.insert(line.bytes.end(), b.begin(), b.end());
    const uint32_t c = crc32(b.data(), b.size());
    for (int i = 0; i < 4; i++) line.bytes.push_back(static_cast<uint8_t>(c >> (8 * i)));
    return line;
}

/// The system side of a MAC, and what was sent and must come.
template <unsigned WIDTH>
struct System {
    Sim<>& sim;
    Vdut& d = sim.dut;
    using Data = decltype(Vdut::f_tdata);
    using Keep = decltype(Vdut::f_tkeep);
    Source<std::remove_reference_t<Data>, std::remove_reference_t<Keep>> in = source(d.f_tdata, d.f_tkeep, d.f_tlast, d.f_terr, d.f_tvalid, d.f_tready, WIDTH / 8);
    Sink<std::remove_reference_t<Data>, std::remove_reference_t<Keep>> out = sink(d.f_rdata, d.f_rkeep, d.f_rlast, d.f_rerr, d.f_rvalid, d.f_rready, WIDTH / 8);
    uint64_t done[4] = {};
    bool taken = false, answered = false;
    uint32_t value = 0;
    /// Lets time pass; a bench that watches pins puts its own here.
    std::function<void(uint64_t)> run = [this](uint64_t ps) { sim.run(ps); };

    void clock(uint64_t period) {
        d.f_tvalid = d.arvalid = 0;
        sim.clock(d.clk_sys, period, [this] {
            if (d.rst_sys) return;
            in.sample();
            out.sample();
            if (d.f_tdone) done[d.f_tstatus]++;
            taken = d.arvalid && d.arready;
            if (d.rvalid) {
                value = d.rdata;
                answered = true;
            }
        }, [this] {
            if (d.rst_sys) return;
            in.drive();
            out.drive();
            if (taken) d.arvalid = 0;
        }, below(period));
    }

    uint32_t reg(unsigned address) {
        d.araddr = address;
        d.arvalid = 1;
        d.eval();
        answered = false;
        run(2000000);
        CHECK(answered, "no answer on the bus");
        return value;
    }

    /// Frames that came in against those expected; of one with `err` only that counts.
    void received(const std::vector<Packet>& expected, const char* what) {
        CHECK(out.got.size() == expected.size(), "%s: %zu frames, not %zu", what, out.got.size(), expected.size());
        for (size_t i = 0; i < std::min(out.got.size(), expected.size()); i++)
            CHECK(out.got[i] == expected[i], "%s: frame %zu of %zu bytes came as %zu, err %d", what, i, expected[i].bytes.size(), out.got[i].bytes.size(), out.got[i].err);
        out.got.clear();
    }
};

/// What left by the pins, preamble to FCS, against the frames that were given to the MAC.
inline void left(std::vector<Bytes>& seen, const std::vector<Packet>& sent, const char* what) {
    CHECK(seen.size() == sent.size(), "%s: %zu frames, not %zu", what, seen.size(), sent.size());
    for (size_t i = 0; i < std::min(seen.size(), sent.size()); i++) {
        Bytes padded = sent[i].bytes;
        if (padded.size() < 60) padded.resize(60);
        const bool same = seen[i] == framed(padded).bytes;
        CHECK(same != sent[i].err, "%s: frame %zu of %zu bytes is %s", what, i, sent[i].bytes.size(), same ? "good" : "wrong");
    }
    seen.clear();
}

}  // namespace pins
