// top: gw::bench_axi4_arbiter
// param: BLOCK=0 RANKED=0
// param: BLOCK=1 RANKED=0
// param: BLOCK=1 RANKED=1
//
// Three clients with random bursts on a slow memory. In turns one of them stops in the middle of reads, of write data or before
// its answers; the others go on, and what each reads is what it wrote. Then two clients and a memory that takes 60 cycles to
// answer: it is busy for 9 of 10 cycles in both directions. With `RANKED` client 0 has priority 1, the others 6: of three that ask all the time the others
// share seven grants of eight and their turns, client 0 has its turns, and none waits for more than 24 bursts.
#include "bench.hpp"

using bench::below;
using bench::chance;

namespace {

constexpr unsigned WORDS = 256;  // per client
constexpr unsigned BURST = 16;

struct Client {
    std::vector<uint32_t> words = std::vector<uint32_t>(WORDS);
    bool stuck = false;
    // The read under way.
    bool reading = false, read_taken = false;
    unsigned read_at = 0, read_beats = 0, read_got = 0, read_id = 0;
    // The write under way.
    bool writing = false, write_taken = false;
    unsigned write_at = 0, write_beats = 0, write_sent = 0, write_id = 0;
    std::vector<uint32_t> data, strobes;
    uint64_t last_progress = 0, reads = 0, writes = 0;
};

/// Answers in order, `latency` cycles after the address or the last beat.
struct Memory {
    struct Burst {
        unsigned at, left;
        uint64_t from;
    };
    std::vector<uint32_t> words = std::vector<uint32_t>(3 * WORDS);
    std::deque<Burst> reads, writes;
    std::deque<uint64_t> answers;
    uint64_t read_beats = 0, write_beats = 0;
    unsigned longest = 0; // bursts under way
};

struct Bench {
    bench::Sim<> sim;
    Client clients[3];
    Memory memory;
    uint64_t cycle = 0, longest = 0;
    int victim = -1;
    bool stop = false;   // no new bursts, nobody is stuck
    bool smooth = false; // no pauses
    bool single = false; // then: bursts of one beat, of three clients
    uint64_t read_grants[3] = {}, write_grants[3] = {}, read_passed[3] = {}, write_passed[3] = {}, most_passed = 0;
    uint64_t sent[3] = {}, got[3] = {};

    void sample() {
        auto& d = sim.dut;
        if (d.rst) return;
        for (int i = 0; i < 3 && single; ++i) {
            if (d.c_arready[i]) granted(i, read_grants, read_passed);
            if (d.c_awready[i]) granted(i, write_grants, write_passed);
        }
        for (int i = 0; i < 3 && smooth; ++i) {
            sent[i] += d.c_wvalid[i] && d.c_wready[i];
            got[i] += d.c_rvalid[i] && d.c_rready[i];
        }
        for (int i = 0; i < 3 && !smooth; ++i) {
            Client& c = clients[i];
            bool progress = false;
            if (d.c_arvalid[i] && d.c_arready[i]) c.read_taken = true;
            if (d.c_rvalid[i]) CHECK(c.reading && c.read_taken, "client %d: data that it did not ask for", i);
            if (d.c_rvalid[i] && d.c_rready[i]) {
                CHECK(d.c_rdata[i] == c.words[c.read_at + c.read_got], "client %d: word %u is %08x, not %08x", i, c.read_at + c.read_got, d.c_rdata[i],
                      c.words[c.read_at + c.read_got]);
                CHECK(d.c_rid[i] == c.read_id && d.c_rresp[i] == 0, "client %d: id or response", i);
                ++c.read_got;
                CHECK(d.c_rlast[i] == (c.read_got == c.read_beats), "client %d: last on beat %u of %u", i, c.read_got, c.read_beats);
                if (c.read_got == c.read_beats) c.reading = false, ++c.reads, progress = true;
            }
            if (d.c_awvalid[i] && d.c_awready[i]) c.write_taken = true;
            if (d.c_wvalid[i] && d.c_wready[i]) ++c.write_sent;
            if (d.c_bvalid[i]) CHECK(c.writing && c.write_taken && c.write_sent == c.write_beats, "client %d: an answer too early", i);
            if (d.c_bvalid[i] && d.c_bready[i]) {
                CHECK(d.c_bid[i] == c.write_id && d.c_bresp[i] == 0, "client %d: id or response", i);
                for (unsigned k = 0; k < c.write_beats; ++k) {
                    uint32_t mask = 0;
                    for (int b = 0; b < 4; ++b) mask |= c.strobes[k] >> b & 1 ? 0xffu << 8 * b : 0;
                    uint32_t& word = c.words[c.write_at + k];
                    word = (word & ~mask) | (c.data[k] & mask);
                }
                c.writing = false;
                ++c.writes;
                progress = true;
            }
            if (progress || c.stuck || stop) c.last_progress = cycle;
            longest = std::max(longest, cycle - c.last_progress);
        }
        Memory& m = memory;
        if (d.m_rvalid) CHECK(d.m_rready, "the memory has to wait for a client");
        if (d.m_rvalid && d.m_rready) {
            ++m.read_beats;
            ++m.reads.front().at;
            if (--m.reads.front().left == 0) m.reads.pop_front();
        }
        const uint64_t ready = cycle + (single ? 4 : smooth ? 60 : below(30));
        if (d.m_arvalid && d.m_arready) m.reads.push_back({d.m_araddr / 4u, d.m_arlen + 1u, ready});
        if (d.m_awvalid && d.m_awready) m.writes.push_back({d.m_awaddr / 4u, d.m_awlen + 1u, 0});
        m.longest = std::max<unsigned>(m.longest, m.reads.size());
        if (d.m_bvalid && d.m_bready) m.answers.pop_front();
        if (d.m_wvalid && d.m_wready) {
            CHECK(!m.writes.empty(), "write data before the address"); // this memory takes none
            auto& w = m.writes.front();
            ++m.write_beats;
            for (int b = 0; b < 4; ++b)
                if (d.m_wstrb >> b & 1) m.words[w.at] = (m.words[w.at] & ~(0xffu << 8 * b)) | (d.m_wdata & 0xffu << 8 * b);
            ++w.at;
            CHECK(d.m_wlast == (--w.left == 0), "last on the wrong beat");
            if (w.left == 0) m.writes.pop_front(), m.answers.push_back(ready);
        }
        ++cycle;
    }

    /// A burst of client `i` is passed on, the others are not.
    void granted(int i, uint64_t (&grants)[3], uint64_t (&passed)[3]) {
        ++grants[i];
        for (int k = 0; k < 3; ++k) passed[k] = k == i ? 0 : passed[k] + 1, most_passed = std::max(most_passed, passed[k]);
    }

    void drive() {
        auto& d = sim.dut;
        if (d.rst) return;
        if (smooth) {
            drive_smooth();
            drive_memory();
            return;
        }
        if (stop ? cycle % 4000 == 1 : cycle % 4000 == 0) {
            victim = stop ? -1 : int(below(4)) - 1;
            for (int i = 0; i < 3; ++i) clients[i].stuck = i == victim, clients[i].last_progress = cycle;
        }
        for (int i = 0; i < 3; ++i) {
            Client& c = clients[i];
            bool go = !(c.stuck && cycle % 4000 > 200);
            // A write and a read of one client at a time never touch the same words.
            if (!c.reading && go && !stop && chance(50)) {
                c.reading = true;
                c.read_taken = false;
                c.read_beats = 1 + below(BURST);
                c.read_at = c.writing ? (c.write_at < WORDS / 2 ? WORDS / 2 : 0) + below(WORDS / 2 - BURST) : below(WORDS - BURST);
                c.read_got = 0;
                c.read_id = below(2);
                d.c_araddr[i] = 4 * (WORDS * i + c.read_at);
                d.c_arlen[i] = c.read_beats - 1;
                d.c_arid[i] = c.read_id;
            }
            d.c_arvalid[i] = c.reading && !c.read_taken;
            d.c_rready[i] = go && chance(60);
            bool apart = !c.reading || c.read_at + BURST <= WORDS / 2 || c.read_at >= WORDS / 2;
            if (!c.writing && go && !stop && apart && chance(50)) {
                c.writing = true;
                c.write_taken = false;
                c.write_beats = 1 + below(BURST);
                unsigned half = c.reading ? (c.read_at < WORDS / 2 ? WORDS / 2 : 0) : (chance(50) ? WORDS / 2 : 0);
                c.write_at = half + below(WORDS / 2 - BURST);
                c.write_sent = 0;
                c.write_id = below(2);
                c.data.clear();
                c.strobes.clear();
                for (unsigned k = 0; k < c.write_beats; ++k) c.data.push_back(uint32_t(bench::rng())), c.strobes.push_back(below(4) ? 15 : below(16));
                d.c_awaddr[i] = 4 * (WORDS * i + c.write_at);
                d.c_awlen[i] = c.write_beats - 1;
                d.c_awid[i] = c.write_id;
            }
            d.c_awvalid[i] = c.writing && !c.write_taken;
            bool held = d.c_wvalid[i] && c.writing && c.write_sent < c.write_beats && d.c_wdata[i] == c.data[c.write_sent];
            bool beat = c.writing && c.write_sent < c.write_beats && (held || (go && chance(70)));
            d.c_wvalid[i] = beat;
            if (beat) {
                d.c_wdata[i] = c.data[c.write_sent];
                d.c_wstrb[i] = c.strobes[c.write_sent];
                d.c_wlast[i] = c.write_sent + 1 == c.write_beats;
            }
            d.c_bready[i] = go && chance(60);
        }
        drive_memory();
    }

    void drive_memory() {
        auto& d = sim.dut;
        Memory& m = memory;
        d.m_arready = m.reads.size() < 16 && (smooth || chance(50));
        d.m_rvalid = !m.reads.empty() && m.reads.front().from <= cycle && (smooth || chance(70));
        d.m_rdata = m.reads.empty() ? 0 : m.words[m.reads.front().at];
        d.m_rlast = !m.reads.empty() && m.reads.front().left == 1;
        d.m_rid = 0;
        d.m_rresp = 0;
        d.m_awready = smooth || (m.writes.size() < 2 && chance(50));
        d.m_wready = !m.writes.empty() && (smooth || chance(70));
        d.m_bvalid = !m.answers.empty() && m.answers.front() <= cycle;
        d.m_bid = 0;
        d.m_bresp = 0;
    }

    /// Two clients without pauses: reads of the lower half of their words, writes of the upper, 16 beats each.
    void drive_smooth() {
        auto& d = sim.dut;
        for (int i = 0; i < 3; ++i) {
            d.c_arvalid[i] = d.c_awvalid[i] = d.c_wvalid[i] = single || i < 2;
            d.c_araddr[i] = 4 * WORDS * i;
            d.c_awaddr[i] = 4 * (WORDS * i + WORDS / 2);
            d.c_arlen[i] = d.c_awlen[i] = single ? 0 : BURST - 1;
            d.c_wlast[i] = single || sent[i] % BURST == BURST - 1;
            d.c_rready[i] = d.c_bready[i] = 1;
        }
    }

    Bench() {
        auto& d = sim.dut;
        d.rst = 1;
        for (int i = 0; i < 3; ++i) d.c_arvalid[i] = d.c_awvalid[i] = d.c_wvalid[i] = d.c_rready[i] = d.c_bready[i] = 0;
        d.m_arready = d.m_rvalid = d.m_awready = d.m_wready = d.m_bvalid = 0;
        sim.clock(d.clk, 10000, [this] { sample(); }, [this] { drive(); });
        sim.run(100000);
        d.rst = 0;
        sim.run(1500000000);
        stop = true;
        sim.run(100000000);
        CHECK(memory.reads.empty() && memory.writes.empty() && memory.answers.empty(), "bursts under way that nobody asked for");
    }

    /// Shares of the cycles in which the memory is busy, for two clients in both directions.
    void two_at_full_rate() {
        smooth = true;
        sim.run(10000000);
        const uint64_t from = cycle, read = memory.read_beats, written = memory.write_beats, first = got[0], second = got[1];
        sim.run(100000000);
        const double cycles = double(cycle - from), r = double(memory.read_beats - read), w = double(memory.write_beats - written);
        std::printf("busy for reads %.3f, for writes %.3f of the time, %u reads under way\n", r / cycles, w / cycles, memory.longest);
        CHECK(r >= 0.9 * cycles && w >= 0.9 * cycles, "less than 9 of 10 cycles");
        const double share = double(got[0] - first) / double(got[0] - first + got[1] - second);
        // With a priority what the other has no room for is left for the first: half of it, with buffers that just hold what this latency asks for.
        CHECK(share > (RANKED ? 0.02 : 0.45) && share < 0.55, "one client has %.2f of the reads", share);
    }

    /// Three clients that ask for bursts of a beat all the time: what each has of the grants, and how many a client waits for.
    void three_at_full_rate() {
        auto& d = sim.dut;
        // Without what is under way of the longer bursts.
        d.rst = 1;
        for (int i = 0; i < 3; ++i) d.c_arvalid[i] = d.c_awvalid[i] = d.c_wvalid[i] = 0;
        memory = Memory{};
        d.m_rvalid = d.m_bvalid = 0;
        sim.run(100000);
        d.rst = 0;
        single = true;
        sim.run(10000000);
        for (int i = 0; i < 3; ++i) read_grants[i] = write_grants[i] = read_passed[i] = write_passed[i] = 0;
        most_passed = 0;
        sim.run(100000000);
        for (auto* grants : {&read_grants, &write_grants}) {
            const double all = double((*grants)[0] + (*grants)[1] + (*grants)[2]);
            CHECK(all > 4000, "only %.0f grants", all);
            for (int i = 0; i < 3; ++i) {
                // Of 24 grants 21 go by priority and one to each by turns.
                const double expected = RANKED ? (i == 0 ? 1.0 / 24 : 11.5 / 24) : 1.0 / 3, share = double((*grants)[i]) / all;
                CHECK(share > 0.97 * expected && share < 1.03 * expected, "client %d has %.4f of the grants, not %.4f", i, share, expected);
            }
        }
        CHECK(most_passed < 24, "a client waited for %lu bursts", (unsigned long)most_passed);
        std::printf("client 0 has %.4f of the reads, longest wait %lu bursts\n", double(read_grants[0]) / double(read_grants[0] + read_grants[1] + read_grants[2]), (unsigned long)most_passed);
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    Bench b;
    for (auto& c : b.clients) CHECK(c.reads > 500 && c.writes > 500, "only %lu reads and %lu writes", (unsigned long)c.reads, (unsigned long)c.writes);
    CHECK(b.longest < 600, "a client that is not stuck waited %lu cycles", (unsigned long)b.longest);
    std::printf("%lu cycles, longest wait %lu\n", (unsigned long)b.cycle, (unsigned long)b.longest);
    bench::ok("bursts of three clients, one stuck");
    b.two_at_full_rate();
    bench::ok("two clients, a slow memory that is never idle");
    b.three_at_full_rate();
    bench::ok(RANKED ? "three clients, one of less priority" : "three clients, by turns");
    return bench::end();
}
