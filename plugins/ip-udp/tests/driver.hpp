// Drives `bench_core`: frames in and out on the Ethernet side, clients on the other.
#pragma once
#include "model.hpp"
#include "verilated.h"
#include <deque>
#include <functional>

namespace net {

// Fields of a port of any width that Verilator makes.
template <class T> uint64_t field(const T& s, int at, int bits) {
    if constexpr (std::is_integral_v<T>) {
        return (uint64_t(s) >> at) & (bits == 64 ? ~0ull : (1ull << bits) - 1);
    } else {
        uint64_t v = 0;
        for (int i = 0; i < bits; i++) v |= uint64_t(s[(at + i) / 32] >> ((at + i) % 32) & 1) << i;
        return v;
    }
}
template <class T> void assign(T& s, int at, int bits, uint64_t v) {
    if constexpr (std::is_integral_v<T>) {
        uint64_t m = (bits == 64 ? ~0ull : (1ull << bits) - 1) << at;
        s = T((uint64_t(s) & ~m) | (v << at & m));
    } else {
        for (int i = 0; i < bits; i++) {
            uint32_t& w = s[(at + i) / 32];
            w = (w & ~(1u << (at + i) % 32)) | uint32_t(v >> i & 1) << (at + i) % 32;
        }
    }
}

[[noreturn]] inline void fail(const std::string& what) {
    std::printf("FAIL: %s\n", what.c_str());
    std::exit(1);
}
inline void check(bool ok, const std::string& what) {
    if (!ok) fail(what);
}
inline std::string hex(const Bytes& b) {
    std::string s;
    char t[4];
    for (uint8_t x : b) { std::snprintf(t, 4, "%02x", x); s += t; }
    return s;
}

struct Frame {
    Bytes data;
    bool err = false;
    uint64_t at = 0; // cycle of the first beat (in: not before)
};

struct Send {
    Datagram d; // dst_ip, ports, id, df, tos, ttl, checksum, data; err aborts
    int length = -1; // another length than data has
    int mode = 2;
};

template <class Top, int WIDTH, int CLIENTS> struct Driver {
    static constexpr int B = WIDTH / 8;
    Top* top = new Top;
    uint64_t cycle = 0;
    std::mt19937_64 rng;

    // Ethernet side.
    std::deque<Frame> in;
    std::vector<Frame> out;
    size_t in_at = 0;
    int in_gap = 0; // per cent of cycles without a beat
    std::function<bool()> tx_ready = [] { return true; };
    std::function<void(const Frame&)> on_frame = [](const Frame&) {};
    Frame now;
    bool in_frame = false;
    std::array<uint64_t, 15> rx_events{};
    std::array<uint64_t, 7> tx_events{};
    uint64_t icmp_lost = 0;
    std::array<uint64_t, CLIENTS> client_lost{};
    uint64_t rx_begin = 0, rx_first_out = 0;

    // Clients.
    struct Client {
        std::deque<Datagram> got;
        std::deque<Send> send;
        std::deque<int> status;
        Datagram now;
        bool busy = false;
        size_t sent = 0;
        int stall = 0; // per cent of cycles not ready
        bool stuck = false;
        int pause = 0; // per cent of cycles in which it has no beat to send
        bool offered = false;
    };
    std::array<Client, CLIENTS> client;

    explicit Driver(uint64_t seed) : rng(seed) {
        std::printf("W=%d N=%d seed=%llu\n", WIDTH, CLIENTS, (unsigned long long)seed);
        top->rst = 1;
        for (int i = 0; i < 4; i++) { top->clk = 0; top->eval(); top->clk = 1; top->eval(); }
        top->rst = 0;
        top->clk = 0;
        top->eval();
    }

    int percent() { return int(rng() % 100); }

    void step() {
        // Outputs are registers or depend on `tx_ready` only: drive, settle, look, clock.
        bool offer = !in.empty() && (in_at > 0 || in.front().at <= cycle) && percent() >= in_gap;
        top->rx_valid = offer;
        if (offer) {
            const Frame& f = in.front();
            if (in_at == 0) rx_begin = cycle;
            for (int k = 0; k < B; k++) {
                assign(top->rx_data, 8 * k, 8, in_at + k < f.data.size() ? f.data[in_at + k] : uint8_t(rng()));
                assign(top->rx_keep, k, 1, in_at + k < f.data.size());
            }
            top->rx_last = in_at + B >= f.data.size();
            top->rx_err = top->rx_last ? f.err : rng() & 1;
        }
        top->tx_ready = tx_ready();
        for (int i = 0; i < CLIENTS; i++) drive(i);
        top->eval();

        check(top->rx_ready, "rx_ready is always 1");
        if (offer) {
            in_at += B;
            if (in_at >= in.front().data.size()) { in.pop_front(); in_at = 0; }
        }
        if (top->tx_valid && top->tx_ready) {
            if (!in_frame) now = Frame{{}, false, cycle};
            in_frame = true;
            bool ended = false;
            for (int k = 0; k < B; k++) {
                if (field(top->tx_keep, k, 1)) {
                    check(!ended, "tkeep has a hole");
                    now.data.push_back(uint8_t(field(top->tx_data, 8 * k, 8)));
                } else {
                    check(top->tx_last && k > 0, "tkeep is full before the last beat");
                    ended = true;
                }
            }
            if (top->tx_last) {
                now.err = top->tx_err;
                out.push_back(now);
                on_frame(now);
                in_frame = false;
            }
        } else if (top->tx_ready) {
            check(!in_frame, "a frame paused");
        }
        for (int i = 0; i < 15; i++) rx_events[i] += top->rx_event >> i & 1;
        check(__builtin_popcount(top->rx_event) <= 1, "one event per frame");
        for (int i = 0; i < 7; i++) tx_events[i] += top->tx_event >> i & 1;
        icmp_lost += top->icmp_lost;
        for (int i = 0; i < CLIENTS; i++) watch(i);

        top->clk = 1;
        top->eval();
        top->clk = 0;
        top->eval();
        cycle++;
    }

    void drive(int i) {
        Client& c = client[i];
        assign(top->u_rx_ready, i, 1, !c.stuck && percent() >= c.stall);
        bool valid = !c.send.empty() && (c.offered || c.pause == 0 || percent() >= c.pause);
        c.offered = valid;
        assign(top->u_tx_valid, i, 1, valid);
        if (!valid) return;
        const Send& s = c.send.front();
        const Datagram& d = s.d;
        for (int k = 0; k < B; k++) {
            assign(top->u_tx_data, i * WIDTH + 8 * k, 8, c.sent + k < d.data.size() ? d.data[c.sent + k] : uint8_t(rng()));
            assign(top->u_tx_keep, i * B + k, 1, c.sent + k < d.data.size());
        }
        bool last = c.sent + B >= d.data.size();
        assign(top->u_tx_last, i, 1, last);
        assign(top->u_tx_err, i, 1, last ? d.err : rng() & 1);
        int u = i * 131;
        assign(top->u_tx_user, u + 99, 32, d.dst_ip);
        assign(top->u_tx_user, u + 83, 16, d.src_port);
        assign(top->u_tx_user, u + 67, 16, d.dst_port);
        assign(top->u_tx_user, u + 51, 16, uint64_t(s.length < 0 ? int(d.data.size()) : s.length));
        assign(top->u_tx_user, u + 35, 16, d.id);
        assign(top->u_tx_user, u + 34, 1, d.df);
        assign(top->u_tx_user, u + 26, 8, d.tos);
        assign(top->u_tx_user, u + 18, 8, d.ttl);
        assign(top->u_tx_user, u + 2, 16, d.checksum);
        assign(top->u_tx_user, u + 0, 2, uint64_t(s.mode));
    }

    void watch(int i) {
        Client& c = client[i];
        client_lost[i] += field(top->client_lost, i, 1);
        if (field(top->u_tx_done, i, 1)) c.status.push_back(int(field(top->u_tx_status, 2 * i, 2)));
        if (field(top->u_tx_valid, i, 1) && field(top->u_tx_ready, i, 1)) {
            c.offered = false;
            c.sent += B;
            if (c.sent >= c.send.front().d.data.size()) { c.send.pop_front(); c.sent = 0; }
        }
        if (!field(top->u_rx_valid, i, 1) || !field(top->u_rx_ready, i, 1)) return;
        int u = i * 162;
        Datagram d;
        d.src_ip = uint32_t(field(top->u_rx_user, u + 130, 32));
        d.dst_ip = uint32_t(field(top->u_rx_user, u + 98, 32));
        d.src_port = uint16_t(field(top->u_rx_user, u + 82, 16));
        d.dst_port = uint16_t(field(top->u_rx_user, u + 66, 16));
        size_t length = field(top->u_rx_user, u + 50, 16);
        d.id = uint16_t(field(top->u_rx_user, u + 34, 16));
        d.evil = field(top->u_rx_user, u + 33, 1);
        d.df = field(top->u_rx_user, u + 32, 1);
        d.tos = uint8_t(field(top->u_rx_user, u + 24, 8));
        d.ttl = uint8_t(field(top->u_rx_user, u + 16, 8));
        d.checksum = uint16_t(field(top->u_rx_user, u, 16));
        Bytes data = c.busy ? c.now.data : Bytes();
        bool last = field(top->u_rx_last, i, 1);
        bool ended = false;
        for (int k = 0; k < B; k++) {
            if (field(top->u_rx_keep, i * B + k, 1)) {
                check(!ended, "client: tkeep has a hole");
                data.push_back(uint8_t(field(top->u_rx_data, i * WIDTH + 8 * k, 8)));
            } else {
                check(last, "client: tkeep is full before the last beat");
                ended = true;
            }
        }
        if (c.busy) {
            d.data = c.now.data;
            check(d == c.now, "client: sidebands are constant");
        } else {
            rx_first_out = cycle;
        }
        d.data = data;
        c.now = d;
        c.busy = !last;
        if (!last) return;
        d.err = field(top->u_rx_err, i, 1);
        check(d.err || d.data.size() == length, "client: length tells the number of bytes");
        c.got.push_back(d);
    }

    void run(uint64_t cycles) {
        for (uint64_t i = 0; i < cycles; i++) step();
    }
    // Until all that was offered is in and nothing has come out for a while.
    void settle(uint64_t quiet = 150) {
        uint64_t still = 0;
        size_t had = out.size();
        while (still < quiet) {
            step();
            bool work = !in.empty() || in_frame || out.size() != had;
            for (auto& c : client) work = work || !c.send.empty();
            had = out.size();
            still = work ? 0 : still + 1;
        }
    }
};

} // namespace net
