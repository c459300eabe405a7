// The transport, the applications and the far ends of a connection manager under test.
#pragma once

#include <array>
#include <map>
#include <string>

#include "bench.hpp"
#include "captured.hpp"

namespace peer {

using captured::Mad;
using Words = std::vector<uint32_t>;

enum Attribute { REQ = 0x10, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP };
enum Field { STATE, QPN, DEST, PEER, PATH, RQ_PSN, SQ_PSN, DEPTHS, TIMERS, RIGHTS };
enum State { RESET, INIT, RTR, RTS };
enum Event { REQUEST = 1, ESTABLISHED, DISCONNECTED, FAILED };
enum Counter { REQS, REPS, RTUS, NO_QP, SERVICE, MTU, CONSUMER, OTHER, REJS, DREQS, UPS, MRAS, TIMEOUTS, MALFORMED, STALE, SIDRS };

/// A datagram with its address and queue pair.
struct Datagram {
    uint32_t address, qpn;
    Mad mad;
    unsigned attribute() const { return mad[4] >> 16; }
    /// Word of the data behind the header.
    uint32_t data(unsigned i) const { return mad[6 + i]; }
};

const unsigned APPS = 2;
/// Period in ps; a tick is `TICK` cycles, so that times are short.
const uint64_t CYCLE = 10000;

struct Bench {
    bench::Sim<> sim;
    Vdut& d = sim.dut;

    // Transport.
    uint32_t fields[SLOTS][10] = {};
    struct Command { unsigned slot, field; uint32_t value; uint64_t at; };
    std::vector<Command> commands;
    std::deque<uint32_t> events;
    std::deque<std::pair<uint32_t, bool>> rx;
    std::deque<Datagram> tx;
    Words tx_open;
    std::map<uint32_t, bool> goodbyes; // communication IDs whose DREP was lost
    unsigned percent = 50;
    uint64_t cycles = 0;
    // When the queue pair of a slot was reset last.
    uint64_t reset_at[SLOTS] = {};

    // Applications.
    std::deque<std::pair<uint32_t, bool>> asks[APPS];
    std::deque<Words> told[APPS];
    Words told_open[APPS];
    bool listening[APPS] = {true, true};

    bool rx_taken = false, event_taken = false, ask_taken[APPS] = {};

    Bench() {
        d.rst = 1;
        d.arvalid = 0;
        d.rready = 1;
        sim.clock(d.clk, CYCLE, [this] { sample(); }, [this] { drive(); });
        run(5);
        d.rst = 0;
    }

    void run(uint64_t n) { sim.run(n * CYCLE); }

    template <class Condition>
    bool until(Condition condition, uint64_t n = 60000) { return sim.until(n * CYCLE, condition); }

    void sample() {
        cycles++;
        rx_taken = event_taken = false;
        for (auto& t : ask_taken) t = false;
        if (d.rst) return;
        if (d.cmd_valid && d.cmd_ready) command();
        rx_taken = d.rx_valid && d.rx_ready;
        event_taken = d.event_valid && d.event_ready;
        if (d.tx_valid && d.tx_ready) {
            tx_open.push_back(d.tx_data);
            if (d.tx_last) {
                CHECK(tx_open.size() == 66, "a datagram of %zu words", tx_open.size());
                Datagram g{tx_open[0], tx_open[1], {}};
                for (unsigned i = 0; i < 64 && i + 2 < tx_open.size(); i++) g.mad[i] = tx_open[i + 2];
                tx_open.clear();
                // A goodbye whose answer was lost comes again; it is answered in the end.
                if (g.attribute() == DREQ && goodbyes.count(g.data(1))) {
                    Mad drep = g.mad;
                    drep[4] = DREP << 16;
                    std::swap(drep[6], drep[7]);
                    if (bench::chance(70)) send(g.address, drep);
                } else {
                    tx.push_back(g);
                }
            }
        }
        for (unsigned i = 0; i < APPS; i++) {
            ask_taken[i] = (d.req_valid >> i & 1) && (d.req_ready >> i & 1);
            if ((d.evt_valid >> i & 1) && (d.evt_ready >> i & 1)) {
                told_open[i].push_back(static_cast<uint32_t>(d.evt_data >> (32 * i)));
                if (d.evt_last >> i & 1) {
                    told[i].push_back(told_open[i]);
                    told_open[i].clear();
                }
            }
        }
    }

    void command() {
        const unsigned slot = d.cmd_addr >> 4, field = d.cmd_addr & 15;
        CHECK(d.cmd_write && slot < SLOTS && field < 10, "command to slot %u, field %u", slot, field);
        if (slot >= SLOTS || field >= 10) return;
        if (field == STATE && d.cmd_data == INIT) std::fill(std::begin(fields[slot]), std::end(fields[slot]), 0);
        if (field == STATE && d.cmd_data == RESET) reset_at[slot] = cycles;
        if (field != STATE) CHECK(fields[slot][STATE] == INIT, "field %u written in state %u", field, fields[slot][STATE]);
        if (field == STATE && d.cmd_data == RTS) CHECK(fields[slot][STATE] == RTR || fields[slot][STATE] == RTS, "RTS after state %u", fields[slot][STATE]);
        fields[slot][field] = d.cmd_data;
        commands.push_back({slot, field, d.cmd_data, cycles});
    }

    void drive() {
        auto stream = [&](std::deque<std::pair<uint32_t, bool>>& queue, bool taken, bool valid) {
            if (taken) queue.pop_front();
            return !queue.empty() && ((valid && !taken) || bench::chance(percent));
        };
        d.cmd_ready = bench::chance(percent);
        d.tx_ready = bench::chance(percent);
        d.rx_valid = stream(rx, rx_taken, d.rx_valid);
        d.rx_data = rx.empty() ? 0 : rx.front().first;
        d.rx_last = !rx.empty() && rx.front().second;
        if (event_taken) events.pop_front();
        d.event_valid = !events.empty();
        d.event_data = events.empty() ? 0 : events.front();
        uint8_t valid = 0, last = 0, ready = 0;
        uint64_t data = 0;
        for (unsigned i = 0; i < APPS; i++) {
            valid |= static_cast<uint8_t>(stream(asks[i], ask_taken[i], d.req_valid >> i & 1) << i);
            if (!asks[i].empty()) {
                data |= static_cast<uint64_t>(asks[i].front().first) << (32 * i);
                last |= static_cast<uint8_t>(asks[i].front().second << i);
            }
            ready |= static_cast<uint8_t>((listening[i] && bench::chance(percent)) << i);
        }
        d.req_valid = valid;
        d.req_data = data;
        d.req_last = last;
        d.evt_ready = ready;
    }

    void send(uint32_t address, const Mad& mad, uint32_t qpn = 1) {
        rx.push_back({address, false});
        rx.push_back({qpn, false});
        for (unsigned i = 0; i < 64; i++) rx.push_back({mad[i], i == 63});
    }

    void ask(unsigned app, const Words& words) {
        for (size_t i = 0; i < words.size(); i++) asks[app].push_back({words[i], i + 1 == words.size()});
    }

    /// The next datagram that leaves; one without attribute if none does.
    Datagram next(uint64_t n = 60000) {
        if (!until([&] { return !tx.empty(); }, n)) return {};
        const Datagram g = tx.front();
        tx.pop_front();
        return g;
    }

    Datagram expect(Attribute attribute, const char* what, uint64_t n = 60000) {
        const Datagram g = next(n);
        CHECK(g.attribute() == attribute && g.mad[0] == 0x01070203, "%s: a message %x, not %x", what, g.attribute(), attribute);
        return g;
    }

    Words heard(unsigned app, Event event, const char* what, uint64_t n = 60000) {
        if (!until([&] { return !told[app].empty(); }, n)) {
            bench::fail(__FILE__, __LINE__, "%s: no event at application %u", what, app);
            return Words(17);
        }
        Words w = told[app].front();
        told[app].pop_front();
        CHECK(w[0] >> 28 == event, "%s: event %08x, not %u", what, w[0], event);
        const size_t sizes[] = {0, 17, 17, 2, 2};
        CHECK(w.size() == sizes[event], "%s: an event of %zu words", what, w.size());
        w.resize(17);
        return w;
    }

    /// Nothing leaves and nobody hears anything.
    void quiet(const char* what, uint64_t n = 12000) {
        run(n);
        CHECK(tx.empty(), "%s: a message %x", what, tx.front().attribute());
        tx.clear();
        for (unsigned i = 0; i < APPS; i++) {
            CHECK(told[i].empty(), "%s: event %08x at application %u", what, told[i].front()[0], i);
            told[i].clear();
        }
    }

    unsigned state(uint32_t qpn) { return fields[qpn % SLOTS][QPN] == qpn ? fields[qpn % SLOTS][STATE] : 99; }

    uint32_t counter(unsigned i) {
        d.araddr = static_cast<uint16_t>(4 * i);
        d.arvalid = 1;
        uint32_t value = 0;
        until([&] { return d.arready; }, 100);
        run(1);
        d.arvalid = 0;
        until([&] { value = d.rdata; return d.rvalid; }, 100);
        run(2);
        return value;
    }
};

inline Mad message(Attribute attribute) {
    Mad m{};
    m[0] = 0x01070203;
    m[4] = static_cast<uint32_t>(attribute) << 16;
    return m;
}

/// A far end and its connection.
struct Remote {
    Bench& b;
    uint32_t address = 0x0a000002, guid[2] = {0x505400ff, 0xfe000002};
    uint32_t comm = 0x9633d4c4, qpn = 0x11, psn = 0xd573bc;
    uint32_t tid[2] = {2, 0xc4d43396};
    // What the board told.
    uint32_t board_comm = 0, board_qpn = 0, board_psn = 0;

    /// A REQ as Linux makes it, for a port; what is different is put in by the caller.
    Mad req(unsigned port) const {
        Mad m = captured::rping_req;
        m[2] = tid[0], m[3] = tid[1];
        m[6] = comm;
        m[9] = 0x01060000 | port;
        m[10] = guid[0], m[11] = guid[1];
        m[14] = qpn << 8 | 1;
        m[17] = psn << 8 | 16 << 3 | 7; // answers within 2^16 ticks
        m[23] = address;
        return m;
    }
    Mad named(Attribute attribute) const {
        Mad m = message(attribute);
        m[2] = tid[0], m[3] = tid[1];
        m[6] = comm, m[7] = board_comm;
        return m;
    }
    void rtu() { b.send(address, named(RTU)); }
    void dreq() {
        Mad m = named(DREQ);
        m[8] = board_qpn << 8;
        b.send(address, m);
    }
    void rej(unsigned about, unsigned reason) {
        Mad m = named(REJ);
        m[8] = about << 30 | reason;
        b.send(address, m);
    }
    /// Takes in a REP.
    void take(const Datagram& g) {
        board_comm = g.data(0);
        board_qpn = g.data(3) >> 8;
        board_psn = g.data(5) >> 8;
        CHECK(g.data(1) == comm, "REP for %08x, not %08x", g.data(1), comm);
        CHECK(g.address == address && g.qpn == 1, "REP goes to %08x, %u", g.address, g.qpn);
        CHECK(g.mad[2] == tid[0] && g.mad[3] == tid[1], "REP has another transaction");
        CHECK(b.state(board_qpn) == RTR || b.state(board_qpn) == RTS, "REP while the queue pair %06x is in state %u", board_qpn, b.state(board_qpn));
    }
    /// From REQ to ESTABLISHED; which application answers, with what.
    void connect(unsigned port, unsigned app, const Words& data = Words(14)) {
        b.send(address, req(port));
        const Words r = b.heard(app, REQUEST, "connect");
        Words accept = {2u << 28, r[1]};
        accept.insert(accept.end(), data.begin(), data.end());
        b.ask(app, accept);
        take(b.expect(REP, "connect"));
        CHECK(board_qpn == r[1], "REP has queue pair %06x, REQUEST %06x", board_qpn, r[1]);
        rtu();
        const Words e = b.heard(app, ESTABLISHED, "connect");
        CHECK((e[0] & 0xffff) == port && e[1] == board_qpn && e[2] == address, "ESTABLISHED %08x %08x %08x", e[0], e[1], e[2]);
        CHECK(b.state(board_qpn) == RTS, "established in state %u", b.state(board_qpn));
    }
    /// The far end says goodbye.
    void leave(unsigned app) {
        dreq();
        const Datagram g = b.expect(DREP, "leave");
        CHECK(g.data(0) == board_comm && g.data(1) == comm && g.address == address, "DREP %08x %08x", g.data(0), g.data(1));
        const Words e = b.heard(app, DISCONNECTED, "leave");
        CHECK(e[1] == board_qpn, "DISCONNECTED of %06x, not %06x", e[1], board_qpn);
        CHECK(b.state(board_qpn) == RESET, "left in state %u", b.state(board_qpn));
    }
};

}  // namespace peer
