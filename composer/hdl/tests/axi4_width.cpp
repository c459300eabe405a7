// top: gw::bench_axi4_width
// param: C=32 W=64
// param: C=32 W=512
// param: C=8 W=32
// param: C=64 W=256
//
// Random bursts at every lane with random strobes, every byte compared, on a memory with pauses that checks its side of the bus;
// then on one that takes an address when it has all of its data; then without pauses, where a client's beat must pass on every cycle.
#include "axi4.hpp"

using bench::below;
using bench::chance;

namespace {

constexpr unsigned SIZE = 16384, CB = C / 8, WB = W / 8;

struct Memory {
    struct Burst {
        unsigned at, left, id;
        uint64_t from;
    };
    Vdut& d;
    std::vector<uint8_t> bytes = std::vector<uint8_t>(SIZE);
    std::deque<Burst> reads{}, writes{}, answers{};
    unsigned percent = 100, latency = 5;
    uint64_t cycle = 0;
    bool rvalid = false, bvalid = false;
    /// Takes an address when it has the burst's data.
    bool data_first = false;
    struct Word {
        std::array<uint8_t, WB> data;
        std::array<bool, WB> strobe;
        bool last;
    };
    std::deque<Word> words{};

    static unsigned word(unsigned address) { return address / WB * WB; }

    void sample() {
        ++cycle;
        if (d.m_rvalid && d.m_rready) {
            rvalid = false;
            reads.front().at += WB;
            if (--reads.front().left == 0) reads.pop_front();
        }
        if (d.m_arvalid && d.m_arready) {
            reads.push_back({word(d.m_araddr), d.m_arlen + 1u, d.m_arid, cycle + latency});
            CHECK(d.m_araddr / 4096 == (word(d.m_araddr) + d.m_arlen * WB) / 4096, "a read across 4096 bytes");
        }
        if (d.m_bvalid && d.m_bready) bvalid = false, answers.pop_front();
        if (d.m_wvalid && d.m_wready) {
            Word word{};
            for (unsigned i = 0; i < WB; ++i) {
                word.data[i] = uint8_t(bench::get_byte(d.m_wdata, i));
                word.strobe[i] = bench::get_byte(d.m_wstrb, i / 8) >> (i % 8) & 1;
            }
            word.last = d.m_wlast;
            words.push_back(word);
        }
        if (d.m_awvalid && d.m_awready) writes.push_back({word(d.m_awaddr), d.m_awlen + 1u, d.m_awid, 0});
        while (!writes.empty() && !words.empty()) {
            auto& w = writes.front();
            for (unsigned i = 0; i < WB; ++i)
                if (words.front().strobe[i]) bytes[w.at + i] = words.front().data[i];
            w.at += WB;
            CHECK(words.front().last == (--w.left == 0), "last on the wrong word");
            words.pop_front();
            if (w.left == 0) answers.push_back(w), answers.back().from = cycle + latency, writes.pop_front();
        }
    }

    void drive() {
        d.m_arready = chance(percent);
        rvalid = rvalid || (!reads.empty() && reads.front().from <= cycle && chance(percent));
        d.m_rvalid = rvalid;
        if (rvalid) {
            for (unsigned i = 0; i < WB; ++i) bench::set_byte(d.m_rdata, i, bytes[reads.front().at + i]);
            d.m_rlast = reads.front().left == 1;
            d.m_rid = uint8_t(reads.front().id);
        }
        d.m_rresp = 0;
        const bool whole = std::any_of(words.begin(), words.end(), [](const Word& w) { return w.last; });
        d.m_awready = (!data_first || whole) && chance(percent);
        d.m_wready = (data_first ? !whole : !writes.empty()) && chance(percent);
        bvalid = bvalid || (!answers.empty() && answers.front().from <= cycle && chance(percent));
        d.m_bvalid = bvalid;
        if (bvalid) d.m_bid = uint8_t(answers.front().id);
        d.m_bresp = 0;
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    bench::Sim<> sim;
    auto& d = sim.dut;
    axi4::Client<Vdut> client{d, CB};
    Memory memory{d};
    d.rst = 1;
    client.reset();
    d.m_arready = d.m_rvalid = d.m_awready = d.m_wready = d.m_bvalid = 0;
    sim.clock(d.clk, 10000, [&] { if (!d.rst) client.sample(), memory.sample(); }, [&] { if (!d.rst) client.drive(), memory.drive(); });
    sim.run(100000);
    d.rst = 0;
    const auto rest = [&] { CHECK(sim.until(10000000000, [&] { return client.idle(); }), "bursts hang"); };
    for (uint64_t at = 0; at < SIZE; at += 4 * CB) client.write(at, 4);
    rest();
    for (int i = 0; i < 600; ++i) {
        client.read_percent = unsigned(10 + below(91)), client.write_percent = unsigned(10 + below(91)), client.take_percent = unsigned(10 + below(91));
        memory.percent = unsigned(10 + below(91)), memory.latency = unsigned(below(30));
        if (i == 300) rest(), memory.data_first = true;
        for (int k = 0; k < 6; ++k) {
            const unsigned beats = unsigned(1 + below(below(3) ? 4 : std::min(256u, 4096 / CB)));
            const auto place = [&] { return (below(2) ? 0 : below(SIZE / 4096) * 4096) + below(below(2) ? 4 * WB / CB : 4096 / CB - beats + 1) * CB; };
            const auto fits = [&](uint64_t at) { return at % 4096 + beats * CB <= 4096; };
            uint64_t at = place();
            if (fits(at)) client.read(at, beats);
            at = place();
            if (fits(at)) client.write(at, beats, below(2) ? 100 : unsigned(below(101)));
        }
        if (below(4) == 0) rest();
    }
    rest();
    memory.data_first = false;
    memory.percent = client.read_percent = client.write_percent = client.take_percent = 100;
    for (uint64_t at = 0; at < SIZE; at += 8 * CB) client.read(at, 8);
    rest();
    for (unsigned i = 0; i < SIZE; ++i) CHECK(memory.bytes[i] == client.history.at(i), "byte %x of the memory is %02x, not %02x", i, memory.bytes[i], client.history.at(i));
    bench::ok("random bursts");
    memory.latency = 4;
    client.under_way = 16;
    for (unsigned beats : {1u, 3u, 16u}) {
        const uint64_t from = client.cycle, r = client.read_beats;
        for (unsigned i = 0; i < 200; ++i) client.read(below(200) * CB, beats), client.write(2048 + below(200) * CB, beats);
        rest();
        const uint64_t took = client.cycle - from, done = client.read_beats - r;
        CHECK(took < done + done / 20 + 40, "%u beats a burst: %llu beats took %llu cycles", beats, (unsigned long long)done, (unsigned long long)took);
    }
    bench::ok("a beat per cycle");
    return bench::end();
}
