// An SDR SDRAM chip, bit true, at its pins: stores and gives words, and refuses what its data sheet forbids.
//
// Used by the simulation harness and by benches. Bursts of one word (mode register: length 1, sequential), CAS latency 2 or 3, no
// automatic precharge, no power-down, no self refresh: any of those is a fault. Times are picoseconds.
#pragma once
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

class SdramChip {
public:
    struct Geometry {
        unsigned banks = 4, rows = 2048, columns = 256;
    };
    /// The slowest of the usual grades of a 2M x 32 chip, with margin.
    struct Timing {
        uint64_t rp = 20000, rcd = 20000, ras = 45000, rc = 70000, rfc = 70000, rrd = 14000, wr = 15000;
        unsigned wr_cycles = 2, mrd_cycles = 2;
        /// From the clock edge to valid data, and for how long after the next edge they stay.
        uint64_t access = 5400, hold = 2500;
        uint64_t refresh = 15625000;    // mean time between refreshes
        uint64_t power_up = 200000000;  // 0: not looked at
        unsigned refreshes_before_mode = 2;
    };
    /// What the chip does with the bus: drives `data` from `from` to `until`.
    struct Word {
        uint64_t from, until, data;
    };

    explicit SdramChip(Geometry g) : geometry(g), bank(g.banks), words(size_t(g.banks) * g.rows * g.columns) {}

    Timing timing{};
    /// The first fault; empty = none.
    std::string fault;
    uint64_t reads = 0, writes = 0, activates = 0, refreshes = 0;

    /// A word by its number: row, bank, column from the highest bits down.
    uint64_t& word(uint64_t n) { return words[n]; }
    size_t size() const { return words.size(); }

    /// A rising edge of the clock with `cke` = 1 and `cs_n` = 0. `mask` has a bit per byte, 1 = leave it; `driven` tells that
    /// the other side drives all of `dq`.
    void edge(uint64_t now, bool ras_n, bool cas_n, bool we_n, unsigned ba, unsigned a, unsigned mask, uint64_t dq, bool driven) {
        ++cycle;
        while (!out.empty() && out.front().until + 4 * timing.access < now) out.pop_front();
        const unsigned command = ras_n << 2 | cas_n << 1 | unsigned(we_n);
        // Before the first NOP the other side is in reset.
        awake = awake || command == 7;
        if (command == 7 || !awake) return;
        check_refresh(now);
        if (timing.power_up && now < timing.power_up) wrong(now, "a command %u us after power-up", unsigned(now / 1000000));
        if (now < busy_until) wrong(now, "a command %u ns before the refresh is over", unsigned((busy_until - now) / 1000));
        if (cycle < mode_cycle + timing.mrd_cycles && mode_set) wrong(now, "a command too early after the mode was set");
        ba %= geometry.banks;
        Bank& b = bank[ba];
        switch (command) {
        case 3: activate(now, b, a); break;
        case 5: read(now, b, ba, a); break;
        case 4: write(now, b, ba, a, mask, dq, driven); break;
        case 2:
            for (unsigned i = 0; i < geometry.banks; ++i)
                if (a >> 10 & 1 || i == ba) precharge(now, bank[i]);
            closed_once = closed_once || (a >> 10 & 1);
            break;
        case 1:
            for (auto& k : bank) idle(now, k, "a refresh");
            if (!closed_once) wrong(now, "a refresh before all banks were precharged");
            busy_until = now + timing.rfc;
            ++refreshes;
            ++refreshed;
            break;
        case 0:
            for (auto& k : bank) idle(now, k, "a mode");
            if (refreshes < timing.refreshes_before_mode) wrong(now, "the mode after %u refreshes", unsigned(refreshes));
            latency = a >> 4 & 7;
            if ((latency != 2 && latency != 3) || (a & 15) != 0 || a >> 7 != 0) wrong(now, "mode %x", a);
            if (!mode_set) set_at = now, refreshed = 0;
            mode_set = true;
            mode_cycle = cycle;
            break;
        default: wrong(now, "command %u", command);
        }
    }

    /// The clock's period, for the time at which read data are valid.
    void clock_period(uint64_t ps) { period = ps; }

    /// Words that the chip gives; those long past are forgotten.
    const std::deque<Word>& driving() const { return out; }

    /// To be called when the other side drives the bus: the chip must not.
    void contend(uint64_t now) {
        for (auto& w : out)
            if (now >= w.from - timing.access / 2 && now < w.until) wrong(now, "both sides drive the bus");
    }

private:
    struct Bank {
        bool open = false;
        unsigned row = 0;
        uint64_t activated = 0, precharged = 0, written = 0, written_cycle = 0;
    };
    Geometry geometry;
    std::vector<Bank> bank;
    std::vector<uint64_t> words;
    std::deque<Word> out;
    uint64_t cycle = 16, busy_until = 0, mode_cycle = 0, last_activate = 0, set_at = 0, refreshed = 0, period = 10000;
    unsigned latency = 0;
    bool mode_set = false, closed_once = false, awake = false;

    template <class... Values>
    void wrong(uint64_t now, const char* format, Values... values) {
        if (!fault.empty()) return;
        char text[160], all[200];
        std::snprintf(text, sizeof text, format, values...);
        std::snprintf(all, sizeof all, "%llu ps: %s", static_cast<unsigned long long>(now), text);
        fault = all;
    }
    /// Two refreshes may be late; chips of this kind stand eight.
    void check_refresh(uint64_t now) {
        if (mode_set && refreshed + 2 < (now - set_at) / timing.refresh) wrong(now, "only %u refreshes", unsigned(refreshed));
    }
    void idle(uint64_t now, const Bank& b, const char* what) {
        if (b.open) wrong(now, "%s while a row is open", what);
        else if (now < b.precharged + timing.rp && b.precharged) wrong(now, "%s %u ns after a precharge", what, unsigned((now - b.precharged) / 1000));
    }
    void activate(uint64_t now, Bank& b, unsigned a) {
        if (!mode_set) wrong(now, "a row before the mode is set");
        idle(now, b, "a row");
        if (b.activated && now < b.activated + timing.rc) wrong(now, "rows of one bank %u ns apart", unsigned((now - b.activated) / 1000));
        if (last_activate && now < last_activate + timing.rrd) wrong(now, "rows %u ns apart", unsigned((now - last_activate) / 1000));
        if (a >= geometry.rows) wrong(now, "row %u", a);
        b.open = true;
        b.row = a % geometry.rows;
        b.activated = last_activate = now;
        ++activates;
    }
    void precharge(uint64_t now, Bank& b) {
        if (!b.open) return;
        if (now < b.activated + timing.ras) wrong(now, "a precharge %u ns after the row was opened", unsigned((now - b.activated) / 1000));
        if (b.written && (now < b.written + timing.wr || cycle < b.written_cycle + timing.wr_cycles)) wrong(now, "a precharge %u ns after a write", unsigned((now - b.written) / 1000));
        b.open = false;
        b.precharged = now;
    }
    uint64_t* column(uint64_t now, const Bank& b, unsigned ba, unsigned a) {
        if (!b.open) wrong(now, "a column of bank %u, which has no open row", ba);
        if (now < b.activated + timing.rcd) wrong(now, "a column %u ns after its row", unsigned((now - b.activated) / 1000));
        if (a >> 10 & 1) wrong(now, "automatic precharge");
        if ((a & 1023) >= geometry.columns) wrong(now, "column %u", a & 1023);
        return &words[(uint64_t(b.row) * geometry.banks + ba) * geometry.columns + a % geometry.columns];
    }
    void read(uint64_t now, Bank& b, unsigned ba, unsigned a) {
        const uint64_t first = now + (latency - 1) * period + timing.access;
        out.push_back({first, now + latency * period + timing.hold, *column(now, b, ba, a)});
        ++reads;
    }
    void write(uint64_t now, Bank& b, unsigned ba, unsigned a, unsigned mask, uint64_t dq, bool driven) {
        if (!driven) wrong(now, "a write without data");
        for (auto& w : out)
            if (now < w.until) wrong(now, "a write while a read's word is on the bus");
        uint64_t* to = column(now, b, ba, a);
        for (unsigned i = 0; i < 8; ++i)
            if (!(mask >> i & 1)) *to = (*to & ~(0xffull << 8 * i)) | (dq & 0xffull << 8 * i);
        b.written = now;
        b.written_cycle = cycle;
        ++writes;
    }
};
