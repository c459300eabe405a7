// An AXI4 memory that checks what it is asked, with random pauses and errors.
#pragma once

#include "bench.hpp"

namespace rx {

template <class Dut, unsigned B>
struct Memory {
    Dut& d;
    bench::Bytes bytes;
    unsigned percent = 100;   // chance of taking something in a cycle
    unsigned errors = 0;      // chance of an error per burst, in percent
    bool stalled = false;
    uint64_t beats = 0, bursts = 0, bad_reads = 0;
    std::vector<bool> bad_bursts{};  // of writes, in order

    struct Burst { uint64_t addr; unsigned beats; };
    struct Beat { bench::Bytes data; std::vector<bool> strb; bool last; };
    std::deque<Burst> aw{};
    std::deque<Beat> w{};
    std::deque<bool> b{};      // responses owed: error
    std::deque<Burst> ar{};
    unsigned at = 0;           // beats of the burst at the front
    uint64_t most = 0;
    bool aw_held = false, w_held = false;
    uint64_t aw_was = 0;
    bench::Bytes w_was{};

    explicit Memory(Dut& dut, size_t size) : d(dut), bytes(size) { for (auto& x : bytes) x = uint8_t(bench::rng()); }

    void sample() {
        using bench::fail;
        if (d.awvalid) {
            const uint64_t now = uint64_t(d.awaddr) << 8 | d.awlen;
            if (aw_held && now != aw_was) fail("memory", __LINE__, "a waiting address changed");
            aw_was = now;
        } else if (aw_held) fail("memory", __LINE__, "awvalid fell");
        aw_held = d.awvalid && !d.awready;
        if (d.awvalid && d.awready) {
            const uint64_t first = d.awaddr, end = first + (d.awlen + 1) * B - 1;
            if (first % B) fail("memory", __LINE__, "address %llx", (unsigned long long)first);
            if (d.awlen > 15) fail("memory", __LINE__, "%u beats", d.awlen + 1);
            if (first >> 12 != end >> 12) fail("memory", __LINE__, "%llx to %llx crosses 4 KiB", (unsigned long long)first, (unsigned long long)end);
            if (end >= bytes.size()) fail("memory", __LINE__, "%llx is outside", (unsigned long long)end), std::exit(1);
            aw.push_back({first, d.awlen + 1u});
            bursts++;
        }
        if (d.wvalid) {
            Beat beat{bench::Bytes(B), std::vector<bool>(B), bool(d.wlast)};
            for (unsigned i = 0; i < B; i++) beat.data[i] = bench::get_byte(d.wdata, i), beat.strb[i] = bench::get_byte(d.wstrb, i / 8) >> (i % 8) & 1;
            if (w_held && beat.data != w_was) fail("memory", __LINE__, "a waiting beat changed");
            w_was = beat.data;
            if (d.wready) w.push_back(beat), beats++;
        } else if (w_held) fail("memory", __LINE__, "wvalid fell");
        w_held = d.wvalid && !d.wready;
        if (d.bvalid && d.bready) b.pop_front();
        if (d.arvalid && d.arready) {
            if (d.araddr % B || d.arlen != (B < 8 ? 8 / B - 1 : 0) || d.araddr % (B < 8 ? 8 : B)) fail("memory", __LINE__, "read of %llx, %u", (unsigned long long)d.araddr, d.arlen);
            ar.push_back({d.araddr, d.arlen + 1u});
        }
        if (d.rvalid && d.rready) {
            if (d.rresp & 2) bad_read = true;
            if (d.rlast) bad_reads += bad_read, bad_read = false, ar.pop_front(), r_at = 0;
            else r_at++;
        }
        // Writes happen in order, when address and data are there.
        while (!aw.empty() && !w.empty()) {
            const Beat beat = w.front();
            w.pop_front();
            const uint64_t to = aw.front().addr + at * B;
            for (unsigned i = 0; i < B; i++)
                if (beat.strb[i]) bytes[to + i] = beat.data[i];
            at++;
            if (beat.last != (at == aw.front().beats)) fail("memory", __LINE__, "wlast on beat %u of %u", at, aw.front().beats);
            if (at == aw.front().beats) {
                at = 0;
                aw.pop_front();
                const bool bad = bench::chance(errors);
                bad_bursts.push_back(bad);
                b.push_back(bad);
            }
        }
        most = std::max<uint64_t>(most, b.size());
    }

    bool busy() const { return !aw.empty() || !w.empty() || !b.empty() || !ar.empty(); }

    bool bad_read = false;
    unsigned r_at = 0;
    bool b_on = false, r_on = false;

    void drive() {
        auto go = [&] { return !stalled && bench::chance(percent); };
        d.awready = go() && aw.size() < 4;
        d.wready = go() && w.size() < 32;
        // A response offered stays until it is taken; bready and what was offered were seen by `sample`.
        if (b.empty()) b_on = false;
        b_on = !b.empty() && (b_shown == b_count(b) ? b_on : false);
        if (!b_on && !b.empty() && go()) b_on = true, b_shown = b_count(b), d.bresp = b.front() ? 2 : 0;
        d.bvalid = b_on;
        if (!r_keep()) {
            r_on = !ar.empty() && b.empty() && aw.empty() && go();
            if (r_on) {
                for (unsigned i = 0; i < B; i++) bench::set_byte(d.rdata, i, bytes[ar.front().addr + r_at * B + i]);
                d.rresp = bench::chance(errors) ? 2 : 0;
                d.rlast = r_at + 1 == ar.front().beats;
                r_seen = {ar.size(), r_at};
            }
        }
        d.rvalid = r_on;
        d.arready = go() && ar.size() < 2;
    }

    // `drive` keeps what was offered and not taken.
    uint64_t b_shown = 0;
    std::pair<size_t, unsigned> r_seen{};
    uint64_t b_count(const std::deque<bool>&) const { return b_done + 0; }
    uint64_t b_done = 0;
    bool r_keep() const { return r_on && !r_taken; }
    bool r_taken = false;

    /// Called before `sample`: which handshakes happen.
    void note() {
        r_taken = d.rvalid && d.rready;
        if (d.bvalid && d.bready) b_done++;
    }
};

}  // namespace rx
