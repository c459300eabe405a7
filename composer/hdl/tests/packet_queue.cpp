// top: gw::packet_queue
// param: W=32 BYTES=3000 INFO=64
// param: W=8 BYTES=600 INFO=40
// param: W=512 BYTES=3000 INFO=64
// slow-param: W=64 BYTES=3000 INFO=64
// slow-param: W=128 BYTES=3000 INFO=64
//
// Packets of every length with their information, bad ones, more than there is room for: what comes out is what went in, whole, in order; each good
// one comes out or is lost; a reader that stands; a reader that never waits sees no hole.
#include "bench.hpp"

using namespace bench;

static constexpr unsigned B = W / 8;

struct Item {
    Bytes bytes;
    uint64_t info;
    bool err;
    bool operator==(const Item& o) const { return bytes == o.bytes && info == o.info; }
};

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    std::deque<Item> queue;
    std::vector<Item> good, got;
    Bytes open;
    unsigned in_percent = 100, out_percent = 100;
    size_t at = 0, beats = 0;
    uint64_t lost = 0, holes = 0;
    bool held = false;
    d.in_valid = d.out_ready = 0;
    sim.clock(d.clk, 10000, [&] {
        if (d.rst) return;
        if (d.in_valid && d.in_ready) {
            at += B;
            if (d.in_last) {
                if (!queue.front().err) good.push_back(queue.front());
                queue.pop_front();
                at = 0;
            }
            held = false;
        }
        lost += d.lost;
        if (!d.out_valid && d.out_ready && beats) holes++;
        if (!d.out_valid || !d.out_ready) return;
        for (unsigned k = 0; k < B; k++)
            if (get_byte(d.out_keep, k / 8) >> (k % 8) & 1) open.push_back(get_byte(d.out_data, k));
        beats++;
        if (!d.out_last) {
            CHECK(open.size() == beats * B, "a beat before the last is not full");
            return;
        }
        CHECK(open.size() == d.out_length, "%zu bytes, and a length of %u", open.size(), d.out_length);
        got.push_back({open, d.out_info, false});
        open.clear();
        beats = 0;
    }, [&] {
        if (d.rst) return;
        d.out_ready = chance(out_percent);
        if (held) return;
        held = !queue.empty() && chance(in_percent);
        d.in_valid = held;
        if (!held) return;
        const Item& item = queue.front();
        for (unsigned k = 0; k < B; k++) set_byte(d.in_data, k, at + k < item.bytes.size() ? item.bytes[at + k] : static_cast<uint8_t>(rng()));
        d.in_first = at == 0;
        d.in_last = at + B >= item.bytes.size();
        d.in_err = d.in_last ? item.err : chance(50);
        d.in_info = item.info;
        d.in_length = item.bytes.size();
    });
    d.rst = 1;
    sim.run(100000);
    d.rst = 0;
    auto send = [&](size_t bytes, bool err = false) { queue.push_back({random_bytes(bytes), below(1ull << (INFO - 1)) << 1 | below(2), err}); };
    // `may_lose`: some of the good packets may be missing, each with its pulse.
    auto settle = [&](const char* what, bool may_lose) {
        CHECK(sim.until(40000000000, [&] { return queue.empty(); }), "%s: stuck", what);
        out_percent = 100;
        sim.run(40000000 + 80000ull * BYTES);
        CHECK(got.size() + lost == good.size(), "%s: %zu of %zu, %llu lost", what, got.size(), good.size(), (unsigned long long)lost);
        CHECK(may_lose || lost == 0, "%s: %llu lost", what, (unsigned long long)lost);
        size_t k = 0;
        for (auto& item : got) {
            while (k < good.size() && !(good[k] == item)) k++;
            CHECK(k < good.size(), "%s: a packet of %zu bytes that nobody sent", what, item.bytes.size());
            k++;
        }
        CHECK(beats == 0, "%s: half a packet", what);
        good.clear();
        got.clear();
        lost = 0;
        ok(what);
    };
    for (size_t n = 0; n <= BYTES / 2; n += n < 5 * B ? 1 : 1 + below(B)) send(n);
    holes = 0;
    settle("every length", false);
    CHECK(holes == 0, "%llu holes in packets", (unsigned long long)holes);
    for (int i = 0; i < 300; i++) send(below(chance(50) ? 3 * B : BYTES / 4), chance(40));
    settle("bad packets leave nothing behind", false);
    for (int round = 0; round < 10; round++) {
        in_percent = 1 + below(100);
        out_percent = 1 + below(100);
        for (int i = 0; i < 100; i++) send(below(chance(50) ? 3 * B : BYTES / 2), chance(20));
        settle("random waits", true);
    }
    in_percent = 100;
    // What is promised fits while nobody reads.
    for (size_t parts = 1; parts <= 3; parts++) {
        out_percent = 0;
        for (size_t i = 0; i < parts; i++) send(BYTES / parts);
        settle("all that must fit", false);
    }
    if (W > 64) {
        out_percent = 0;
        for (int i = 0; i < 28; i++) send(below(B + 1));
        settle("as many packets as must fit", false);
    }
    // Far more than fits, long and short.
    for (int round = 0; round < 12; round++) {
        out_percent = 0;
        const size_t most = round % 3 == 0 ? 1 : round % 3 == 1 ? B + 1 : BYTES;
        for (int i = 0; i < (most == BYTES ? 20 : 2000); i++) send(below(most + 1), chance(10));
        CHECK(sim.until(40000000000, [&] { return queue.empty(); }), "a full queue blocks");
        CHECK(lost > 0, "nothing was lost of packets up to %zu bytes", most);
        settle("far more than fits", true);
        send(BYTES / 2);
        send(0);
        settle("and it is well again", false);
    }
    return end();
}
