// top: bench_wire
// param: W=32
// param: W=512
// slow-param: W = 8, 64
//
// Frames back to back on the wire's own schedule: a frame of L bytes owns (max(L, 60) + 24) x 8 / rate. Every one must be
// echoed, byte for byte, and what is under way after the last frame must be no more than early on.
#include "model.hpp"
#include "Vdut.h"
#include "verilated.h"
#include <deque>
using namespace net;

#ifndef W
#define W 32
#endif
#ifndef MTU
#define MTU 1500
#endif
static const size_t BEAT = W / 8;
// Cycles per byte on the wire: 1 Gb/s at 125 MHz, at 62.5 MHz; 10 Gb/s at 156.25 MHz; 100 Gb/s at 322.265625 MHz.
static const uint64_t NUM = W == 512 ? 33 : 1;
static const uint64_t DEN = W == 8 ? 1 : W == 32 ? 2 : W == 64 ? 8 : 1280;

static Vdut* top;
static std::mt19937_64 rng;
static uint64_t cycle;

[[noreturn]] static void fail(const std::string& what) {
    std::printf("FAIL: %s (cycle %llu)\n", what.c_str(), (unsigned long long)cycle);
    std::exit(1);
}

template <class T> static void set_byte(T& s, size_t k, uint8_t v) {
    if constexpr (std::is_integral_v<T>) s = T((uint64_t(s) & ~(0xffull << (8 * k))) | uint64_t(v) << (8 * k));
    else s[k / 4] = (s[k / 4] & ~(0xffu << (8 * (k % 4)))) | uint32_t(v) << (8 * (k % 4));
}
template <class T> static uint8_t get_byte(const T& s, size_t k) {
    if constexpr (std::is_integral_v<T>) return uint8_t(uint64_t(s) >> (8 * k));
    else return uint8_t(s[k / 4] >> (8 * (k % 4)));
}

struct Wire {
    std::deque<Bytes> offered;  // not yet echoed, whole
    std::deque<uint64_t> since; // when each was due, in units of 1 / DEN cycles
    Bytes in, out;
    size_t at = 0;
    bool in_frame = false;
    uint64_t due = 0;      // of the next frame in, in units of 1 / DEN cycles
    uint64_t free_at = 0;  // when the wire out is free again
    size_t sent = 0, echoed = 0;
    std::vector<uint64_t> lag; // from a frame's due time to its echo's last beat, in units

    static uint64_t owns(size_t length) { return (std::max<size_t>(length, 60) + 24) * NUM; }

    // One cycle. `more` makes the next frame.
    template <class F> void step(F&& more, size_t count) {
        if (at == 0 && in.empty() && sent < count && due <= cycle * DEN) {
            in = more();
            offered.push_back(in);
            since.push_back(due);
            due = std::max(due, (cycle - (cycle ? 1 : 0)) * DEN) + owns(in.size());
            sent++;
        }
        top->rx_valid = !in.empty();
        if (!in.empty()) {
            uint64_t keep = 0;
            for (size_t k = 0; k < BEAT; k++) {
                bool has = at + k < in.size();
                set_byte(top->rx_data, k, has ? in[at + k] : uint8_t(0x5a));
                keep |= uint64_t(has) << k;
            }
            top->rx_keep = decltype(top->rx_keep)(keep);
            top->rx_last = at + BEAT >= in.size();
            top->rx_err = 0;
            at += BEAT;
            if (at >= in.size()) { in.clear(); at = 0; }
        }
        top->tx_ready = in_frame || free_at <= cycle * DEN;
        top->eval();
        if (top->tx_valid && top->tx_ready) {
            if (!in_frame) out.clear();
            in_frame = true;
            for (size_t k = 0; k < BEAT; k++)
                if (uint64_t(top->tx_keep) >> k & 1) out.push_back(get_byte(top->tx_data, k));
            if (top->tx_last) done();
        } else if (in_frame) {
            fail("a frame paused");
        }
        top->clk = 1;
        top->eval();
        top->clk = 0;
        top->eval();
        cycle++;
    }

    void done() {
        in_frame = false;
        size_t beats = (out.size() + BEAT - 1) / BEAT;
        uint64_t began = (cycle + 1 - beats) * DEN;
        // The wire is busy from the first beat on; the schedule of a busy wire knows fractions of a cycle.
        free_at = (began >= free_at + DEN ? began : std::max(free_at, began > DEN ? began - DEN : 0)) + owns(out.size());
        if (offered.empty()) fail("a frame too many");
        const Bytes& f = offered.front();
        Bytes want = f;
        size_t payload = get(f, 38, 2) - 8;
        want.resize(42 + payload);
        std::swap_ranges(want.begin(), want.begin() + 6, want.begin() + 6);
        std::swap_ranges(want.begin() + 26, want.begin() + 30, want.begin() + 30);
        std::swap_ranges(want.begin() + 34, want.begin() + 36, want.begin() + 36);
        set16(want, 18, 0);
        fix_ip(want);
        if (top->tx_err) fail("an echo aborted");
        if (out != want) {
            size_t k = 0;
            while (k < out.size() && k < want.size() && out[k] == want[k]) k++;
            fail("echo " + std::to_string(echoed) + " of " + std::to_string(payload) + " bytes differs at byte " + std::to_string(k) + ", has " + std::to_string(out.size()) + " bytes, "
                 + std::to_string(want.size()) + " expected");
        }
        lag.push_back(cycle * DEN - since.front());
        offered.pop_front();
        since.pop_front();
        echoed++;
    }
};

static Bytes datagram(size_t n) {
    Bytes data(n);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t r = rng();
        for (size_t k = i; k < n && k < i + 8; k++) data[k] = uint8_t(r >> (8 * (k - i)));
    }
    return pad(udp(Ip(), uint16_t(1024 + rng() % 60000), 7, data, rng() & 1));
}

// `count` frames of lengths that `length` draws. What is under way is looked at after `early` frames and after all.
template <class F> static void run(const std::string& name, size_t count, size_t early, bool mixed, F&& length, bool say) {
    Wire w;
    w.due = w.free_at = cycle * DEN;
    size_t under_way[2] = {0, 0}, seen = 0;
    uint64_t guard = 0;
    while (w.echoed < count) {
        size_t before = w.sent;
        w.step([&] { return datagram(length()); }, count);
        if (w.sent != before && (w.sent == early || w.sent == count)) under_way[seen++] = w.sent - w.echoed;
        if (w.sent == count && ++guard > 40000) fail(name + ": " + std::to_string(count - w.echoed) + " frames lost");
    }
    uint64_t a = w.lag[early - 1], b = w.lag[count - 1], most = *std::max_element(w.lag.begin(), w.lag.end());
    // A frame's time is not a whole number of cycles: the same lag may be seen a cycle apart. In a mix it depends on the longest frame before.
    uint64_t slack = mixed ? 2 * Wire::owns(MTU + 14) : 2 * DEN;
    if (b > a + slack) fail(name + ": lag grew from " + std::to_string(double(a) / double(DEN)) + " to " + std::to_string(double(b) / double(DEN)) + " cycles");
    if (!mixed && under_way[1] > under_way[0] + (DEN > 1 ? 1 : 0)) fail(name + ": backlog grew");
    if (say)
        std::printf("%s: %zu frames, under way after %zu: %zu, after %zu: %zu; lag %.1f, %.1f cycles, most %.1f\n", name.c_str(), count, early, under_way[0], count, under_way[1],
                    double(a) / double(DEN), double(b) / double(DEN), double(most) / double(DEN));
}

int main(int argc, char** argv) {
    uint64_t seed = seed_of(argc, argv);
    rng.seed(seed);
    std::printf("W=%d seed=%llu\n", W, (unsigned long long)seed);
    top = new Vdut;
    top->rst = 1;
    for (int i = 0; i < 4; i++) { top->clk = 0; top->eval(); top->clk = 1; top->eval(); }
    top->rst = 0;
    top->clk = 0;
    top->net_arvalid = 0;
    top->eval();

    // After reset the address cache empties itself, one entry a cycle or two; what it hears before is forgotten.
    top->rx_valid = 0;
    top->tx_ready = 1;
    for (int i = 0; i < 200; i++) { top->clk = 1; top->eval(); top->clk = 0; top->eval(); cycle++; }

    // Let it learn our address.
    Bytes ask = pad(arp(0xffffffffffffull, 1, PEER_MAC, PEER_IP, 0, OUR_IP));
    for (size_t at = 0; at < ask.size(); at += BEAT) {
        uint64_t keep = 0;
        for (size_t k = 0; k < BEAT && at + k < ask.size(); k++) { set_byte(top->rx_data, k, ask[at + k]); keep |= 1ull << k; }
        top->rx_keep = decltype(top->rx_keep)(keep);
        top->rx_last = at + BEAT >= ask.size();
        top->rx_valid = 1;
        top->rx_err = 0;
        top->tx_ready = 1;
        top->clk = 1; top->eval(); top->clk = 0; top->eval(); cycle++;
    }
    top->rx_valid = 0;
    for (int i = 0; i < 300; i++) { top->clk = 1; top->eval(); top->clk = 0; top->eval(); cycle++; }

    const size_t most = MTU - 28;
    for (size_t n : {size_t(0), size_t(18), size_t(19), size_t(22), size_t(23), size_t(86), size_t(87)})
        run("payload " + std::to_string(n), 10000, 100, false, [=] { return n; }, true);
    run("mix of all lengths", 10000, 100, true, [=] { return rng() % (most + 1); }, true);
    run("mix of short and longest", 10000, 100, true, [=] { return rng() % 8 ? rng() % 30 : most; }, true);
    // Every length; at 8 bits, where a frame takes many cycles, a random part of them.
    size_t lengths = 0;
    for (size_t n = 0; n <= most; n += W == 8 ? 1 + rng() % 8 : 1, lengths++) run("payload " + std::to_string(n), 60, 20, false, [=] { return n; }, false);
    std::printf("%zu lengths, 60 frames each\n", lengths);
    run("payload " + std::to_string(most), 10000, 100, false, [=] { return most; }, true);
    std::printf("PASS after %llu cycles\n", (unsigned long long)cycle);
}
