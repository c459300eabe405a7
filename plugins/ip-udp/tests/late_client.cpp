// top: bench_late_client
// param: W=32 DEPTH=64
// slow-param: W=512 DEPTH=32
//
// A client that is late, with and without `fifo` on its link: bursts of datagrams back to back that fit in the FIFO arrive whole with it; without it the
// provider drops or cuts them, and counts each. A burst that is longer than the FIFO loses with it, too, and is counted.
#include "bench.hpp"

using namespace bench;

namespace {

constexpr unsigned B = W / 8;

size_t beats(const Packet& p) { return (p.bytes.size() + B - 1) / B; }

size_t good(const std::vector<Packet>& list) {
    return static_cast<size_t>(std::count_if(list.begin(), list.end(), [](const Packet& p) { return !p.err; }));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    d.in_valid = d.ready = 0;
    uint8_t always = 1, unused = 0;
    auto in = source(d.in_data, d.in_keep, d.in_last, unused, d.in_valid, always, B);
    auto plain = sink(d.data, d.keep, d.last, d.err, d.valid, d.ready, B);
    auto late = sink(d.f_data, d.f_keep, d.f_last, d.f_err, d.f_valid, d.ready, B);
    in.user = [&](uint64_t u) { d.in_user[0] = static_cast<uint32_t>(u); };
    plain.user = [&] { return static_cast<uint64_t>(d.user[0]); };
    late.user = [&] { return static_cast<uint64_t>(d.f_user[0]); };
    size_t lost[2] = {};
    unsigned percent = 100;
    sim.clock(d.clk, 10000, [&] {
        if (d.rst) return;
        for (unsigned i = 0; i < 2; i++) lost[i] += d.lost >> i & 1;
        in.sample();
        plain.sample();
        late.sample();
    }, [&] {
        if (d.rst) return;
        in.drive();
        d.in_first = d.in_valid && in.at == 0;
        d.ready = chance(percent);
    });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    size_t all = 0, without = 0;
    for (int round = 0; round < 60; round++) {
        // The last rounds are twice as long as the FIFO, with a client that stands still.
        const bool over = round >= 50;
        std::vector<Packet> sent;
        for (size_t left = over ? 2 * DEPTH : DEPTH; left;) {
            Packet p{random_bytes(1 + below(6 * B)), false, below(1u << 31)};
            if (beats(p) > left) p.bytes.resize(left * B);
            left -= beats(p);
            sent.push_back(p);
        }
        lost[0] = lost[1] = 0;
        percent = over || round % 3 == 0 ? 0 : static_cast<unsigned>(below(70));
        in.queue.assign(sent.begin(), sent.end());
        CHECK(sim.until(40000ull * DEPTH, [&] { return in.queue.empty(); }), "the provider is stopped");
        sim.run(50000);
        percent = 100;
        sim.run(20000ull * DEPTH + 100000);
        CHECK(good(plain.got) + lost[0] == sent.size(), "without: %zu of %zu arrive, %zu counted", good(plain.got), sent.size(), lost[0]);
        CHECK(good(late.got) + lost[1] == sent.size(), "with: %zu of %zu arrive, %zu counted", good(late.got), sent.size(), lost[1]);
        if (over) {
            CHECK(lost[1] > 0, "a burst of twice the FIFO cannot fit");
        } else {
            all += sent.size();
            without += lost[0];
            CHECK(lost[1] == 0 && late.got.size() == sent.size(), "%zu of %zu lost in a burst that fits", lost[1], sent.size());
            for (size_t i = 0; i < std::min(sent.size(), late.got.size()); i++) CHECK(late.got[i] == sent[i], "datagram %zu differs", i);
        }
        plain.got.clear();
        late.got.clear();
    }
    CHECK(without > all / 4, "%zu of %zu lost without the FIFO: the client is not late", without, all);
    std::printf("%zu datagrams in bursts that fit: %zu lost without the FIFO, none with it\n", all, without);
    ok("a late client with a FIFO loses nothing");
    return end();
}
