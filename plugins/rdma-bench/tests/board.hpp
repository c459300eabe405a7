// What is around `rdma_bench`: the transport, the connection manager, the memory, and peers that connect and send commands.
//
// The transport executes the requests of each queue pair in order, each after a random time, on the memory and on what the peer offers.
#pragma once

#include <array>
#include <map>

#include "streams.hpp"

namespace board {

using namespace world;

constexpr uint32_t BASE = 0x4000, SLOTS = 4, MESSAGES = 128, BUFFER = 16384, BUFFER_AT = BASE + SLOTS * MESSAGES, SIZE = BUFFER_AT + BUFFER - BASE, KEY = 0x305;
constexpr unsigned DEPTH = 8, COMPLETIONS = 32;
enum Op { WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CMP_SWAP, FETCH_ADD, IN_TURN };
enum Status { SUCCESS = 0, FLUSHED = 5, ACCESS = 10, INVALID = 0x100 };
enum Flags { FILL = 1, CHECK_IT = 2, INVERT = 4, GIVEN = 8 };
enum Register {
    STATE, ACTIVE, NEWEST, STATUS, DONE, CYCLES_HIGH, CYCLES_LOW, LEAST, MOST, WRONG, ERRORS, RUNS, REFUSED, ACCEPTED, CLOSED, KEYS, KEY_QP,
    OP = 32, REG_SIZE, COUNT, REG_DEPTH, RKEY, ADDRESS_HIGH, ADDRESS_LOW, FLAGS, OFFSET, SPAN, SEED, OPERAND_HIGH, OPERAND_LOW, COMPARE_HIGH, COMPARE_LOW, QP, START,
};

/// Byte `i` of the pattern.
inline uint8_t pattern(uint32_t seed, uint32_t i) {
    const uint32_t y = seed + i / 4 * 0x9e3779b9u;
    return uint8_t((y ^ y >> 15) >> 8 * (i % 4));
}

/// A command, in the order of its record.
struct Command {
    uint32_t op = WRITE, size = 0, count = 1, depth = 1, rkey = 0;
    uint64_t address = 0;
    uint32_t flags = 0, offset = 0, span = 0, seed = 0;
    uint64_t operand = 0, compare = 0;

    std::vector<uint32_t> words() const {
        return {op, size, count, depth, rkey, uint32_t(address >> 32), uint32_t(address), flags, offset, span, seed, uint32_t(operand >> 32), uint32_t(operand),
                uint32_t(compare >> 32), uint32_t(compare)};
    }
    uint32_t whole() const { return span ? span : size; }
};

/// What a run has shown from outside.
struct Seen {
    unsigned posted = 0, completed = 0, most = 0; // `most`: outstanding at a time
    std::deque<uint64_t> times{};
    uint64_t first = 0, last = 0, least_latency = UINT64_MAX, most_latency = 0;
};

/// Somebody who connects.
struct Peer {
    uint32_t qpn = 0; // 0: not connected
    bool accepted = false, ended = false;
    uint64_t address = 0;
    uint32_t key = 0;
    Bytes memory{};
    std::vector<Bytes> messages{}; // from the bench's SENDs
    std::vector<std::array<uint32_t, 7>> results{};
    std::vector<uint32_t> immediates{};
    Seen seen{};

    /// Offers `bytes` random bytes; some lie across the border of 2^32.
    void offer(size_t bytes) {
        key = uint32_t(bench::rng());
        address = below(3) ? bench::rng() >> 1 : (bench::rng() >> 34 << 32) - below(bytes + 1);
        address &= ~7ull;
        memory = bench::random_bytes(bytes);
    }
};

struct Work {
    unsigned op;
    uint32_t id, address, length, key;
    uint64_t remote;
    uint32_t immediate;
    uint64_t operand, compare;
};
struct Qp {
    uint32_t qpn = 0;
    Peer* peer = nullptr;
    bool failed = false, open = false, receive = false;
    unsigned places = 0;
    std::deque<Work> sq{};
    std::deque<Bytes> incoming{};
};

struct Board {
    bench::Sim<> sim;
    Vdut& d = sim.dut;
    Feed cq{d.cq_data, d.cq_last, d.cq_valid, d.cq_ready};
    Feed evt{d.evt_data, d.evt_last, d.evt_valid, d.evt_ready};
    Feed keys{d.keys_data, d.keys_last, d.keys_valid, d.keys_ready};
    Drain post{d.post_data, d.post_last, d.post_valid, d.post_ready};
    Drain req{d.req_data, d.req_last, d.req_valid, d.req_ready};
    Bytes memory = bench::random_bytes(SIZE);
    Qp qps[SLOTS];
    struct Owner {
        Qp* qp;
        bool request;
    };
    std::deque<Owner> waiting{}; // owners of the completions under way
    uint32_t generation = 0;
    uint64_t cycle = 0;
    unsigned percent = 50;   // of the streams
    unsigned speed = 3;      // chance per cycle that the transport executes a request
    unsigned memory_speed = 50;
    uint32_t refuses = 0;    // an address whose accesses end in an error
    bool fresh = true; // the next word of `cq` begins a completion
    std::function<void()> on_cycle = [] {};

    Board() {
        post.whole = [this](const auto& r) { posted(r); };
        req.whole = [this](const auto& r) { asked(r); };
        cq.ended = [this] {
            if (waiting.front().qp) waiting.front().qp->places--;
            waiting.pop_front();
            fresh = true;
        };
        d.rst = 1;
        d.cq_valid = d.evt_valid = d.keys_valid = 0;
        d.m_bvalid = d.m_rvalid = d.m_awready = d.m_wready = d.m_arready = 0;
        d.r_awvalid = d.r_arvalid = d.r_bready = d.r_rready = 0;
        sim.clock(d.clk, 10000, [this] { if (!d.rst) sample(); }, [this] { if (!d.rst) drive(); });
        sim.run(100000);
        d.rst = 0;
    }

    uint8_t* at(uint32_t address) { return &memory[address - BASE]; }

    // ---- connections
    bool connect(Peer& peer) {
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            Qp& q = qps[slot];
            if (q.qpn) continue;
            q = Qp{};
            q.qpn = ++generation << 2 | slot;
            q.peer = &peer;
            peer.qpn = q.qpn;
            peer.accepted = peer.ended = false;
            std::vector<uint32_t> event{1u << 28 | 18516, q.qpn, 0x0a000001u + slot};
            event.resize(17);
            evt.give(event);
            return true;
        }
        return false;
    }
    Qp* find(uint32_t qpn) {
        Qp& q = qps[qpn % SLOTS];
        return qpn && q.qpn == qpn ? &q : nullptr;
    }
    /// The queue pair of a peer is gone, and the bench hears of it.
    void disconnect(Peer& peer) {
        Qp* q = find(peer.qpn);
        if (!q) return;
        for (auto& owner : waiting)
            if (owner.qp == q) owner.qp = nullptr;
        *q = Qp{};
        evt.give({3u << 28, peer.qpn});
        peer.qpn = 0;
        peer.ended = true;
    }
    void asked(const std::vector<uint32_t>& r) {
        CHECK(r.size() >= 2, "a request of %zu words", r.size());
        Qp* q = find(r[1]);
        if (!q) return;
        if (r[0] == 4u << 28) return disconnect(*q->peer);
        CHECK(r[0] == 2u << 28 && !q->peer->accepted, "request %08x", r[0]);
        CHECK(q->receive, "accepted before a receive was posted");
        CHECK(r == (std::vector<uint32_t>{2u << 28, q->qpn, 0, BUFFER_AT, KEY, BUFFER}), "private data");
        q->peer->accepted = q->open = true;
        evt.give({2u << 28, r[1], 0x0a000001, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    }
    void send(Peer& peer, const Bytes& message) {
        if (Qp* q = find(peer.qpn)) q->incoming.push_back(message);
    }
    /// The first `words` words of a command.
    void send(Peer& peer, const Command& c, size_t words = 15) {
        Bytes message;
        for (size_t i = 0; i < words; i++) put32(message, c.words()[i]);
        send(peer, message);
    }

    // ---- transport
    void posted(const std::vector<uint32_t>& r) {
        Qp* q = find(r[1]);
        if (!q) return;
        q->places++;
        unsigned all = 0;
        for (auto& other : qps) all += other.places;
        CHECK(all <= COMPLETIONS, "%u completions reserved", all);
        if (r[0] >> 28 == 1) {
            CHECK(r.size() == 5 && r[4] == 64 && r[2] == BASE + MESSAGES * (q->qpn % SLOTS) && r[3] == 0, "a receive of %zu words", r.size());
            CHECK(!q->receive, "two receives");
            if (q->failed) return complete(*q, FLUSHED, SEND, true, r[0] & 0xffff, 0, false);
            q->receive = true;
            return;
        }
        CHECK(r[0] >> 28 == 0 && (r[0] >> 23 & 1), "record %08x", r[0]);
        const bool result = r[0] >> 15 & 1;
        CHECK(r.size() == (result ? 5 : 13) && r[3] == 0, "a request of %zu words", r.size());
        const uint32_t from = result ? BASE : BUFFER_AT, to = BASE + (result ? BUFFER_AT - BASE : SIZE);
        CHECK(r[2] >= from && r[4] <= to - from && r[2] - from <= to - from - r[4], "%u bytes at %x", r[4], r[2]);
        auto w = [&](size_t i) { return i < r.size() ? r[i] : 0; };
        auto w64 = [&](size_t i) { return uint64_t(w(i + 1)) << 32 | w(i); };
        Work work{r[0] >> 24 & 15, r[0] & 0xffff, r[2], r[4], w(5), w64(6), w(8), w64(9), w64(11)};
        if (!result) {
            Seen& s = q->peer->seen;
            CHECK((r[0] & 0x7fff) == (s.posted & 0x7fff), "id %x of request %u", r[0] & 0xffff, s.posted);
            if (s.posted++ == 0) s.first = cycle;
            s.times.push_back(cycle);
            s.most = std::max(s.most, s.posted - s.completed);
        }
        if (q->failed) return complete(*q, FLUSHED, work.op, false, work.id, 0, !result);
        q->sq.push_back(work);
    }
    void complete(Qp& q, unsigned status, unsigned op, bool receive, uint32_t id, uint32_t bytes, bool request) {
        cq.give({status << 28 | op << 24 | uint32_t(receive) << 22 | id, q.qpn, bytes, uint32_t(bench::rng())});
        waiting.push_back({&q, request});
    }
    void fail(Qp& q, unsigned status) {
        q.failed = true;
        if (below(2) && q.receive) complete(q, FLUSHED, SEND, true, 0x8000, 0, false), q.receive = false;
        for (auto& w : q.sq) {
            complete(q, status, w.op, false, w.id, 0, w.id < 0x8000);
            status = FLUSHED;
        }
        if (q.receive) complete(q, FLUSHED, SEND, true, 0x8000, 0, false);
        q.receive = false;
        q.sq.clear();
    }
    void execute(Qp& q) {
        const Work w = q.sq.front();
        Peer& p = *q.peer;
        uint8_t* here = at(w.address);
        uint8_t* there = nullptr;
        if (w.op != SEND && w.op != SEND_IMM && w.length) {
            if (w.key != p.key || w.remote - p.address > p.memory.size() || w.length > p.memory.size() - (w.remote - p.address)) return fail(q, ACCESS);
            there = &p.memory[w.remote - p.address];
        }
        q.sq.pop_front();
        switch (w.op) {
            case WRITE_IMM: p.immediates.push_back(w.immediate); [[fallthrough]];
            case WRITE: std::copy_n(here, w.length, there); break;
            case READ: std::copy_n(there, w.length, here); break;
            case SEND_IMM: p.immediates.push_back(w.immediate); [[fallthrough]];
            case SEND: {
                Bytes m(here, here + w.length);
                if (w.id < 0x8000) {
                    p.messages.push_back(m);
                } else {
                    CHECK(m.size() == 28, "a result of %zu bytes", m.size());
                    std::array<uint32_t, 7> words;
                    for (size_t i = 0; i < 7; i++) words[i] = get32(m, 4 * i);
                    p.results.push_back(words);
                }
                break;
            }
            case CMP_SWAP:
            case FETCH_ADD: {
                CHECK(w.length == 8 && w.remote % 8 == 0, "an atomic of %u bytes", w.length);
                uint64_t old = 0, value;
                for (int i = 7; i >= 0; i--) old = old << 8 | there[i];
                value = w.op == FETCH_ADD ? old + w.operand : old == w.compare ? w.operand : old;
                for (int i = 0; i < 8; i++) here[i] = uint8_t(old >> 8 * i), there[i] = uint8_t(value >> 8 * i);
                break;
            }
            default: CHECK(false, "opcode %u", w.op);
        }
        complete(q, SUCCESS, w.op, false, w.id, w.length, w.id < 0x8000);
    }
    void work(Qp& q) {
        if (!q.qpn || q.failed || !q.open) return;
        if (!q.sq.empty() && chance(80)) {
            execute(q);
        } else if (!q.incoming.empty() && q.receive) {
            const Bytes message = q.incoming.front();
            q.incoming.pop_front();
            if (message.size() > 64) return fail(q, 9);
            std::copy(message.begin(), message.end(), at(BASE + MESSAGES * (q.qpn % SLOTS)));
            q.receive = false;
            complete(q, SUCCESS, SEND, true, 0x8000, uint32_t(message.size()), false);
        }
    }

    // ---- signals
    struct Burst {
        uint32_t address = 0;
        unsigned beats = 0; // still to come
    } write, read;
    std::deque<std::pair<uint32_t, bool>> written; // data beats
    bool answered = false, beat = false;

    void sample() {
        cycle++;
        if (d.cq_valid && fresh && waiting.front().request && waiting.front().qp) {
            // Its first word is there.
            Seen& s = waiting.front().qp->peer->seen;
            const uint64_t latency = cycle - s.times.front();
            s.times.pop_front();
            s.completed++;
            s.last = cycle;
            if (cq.words.front().first >> 28 == 0) s.least_latency = std::min(s.least_latency, latency), s.most_latency = std::max(s.most_latency, latency);
        }
        if (d.cq_valid) fresh = false;
        cq.sample(), evt.sample(), post.sample(), req.sample(), keys.sample();
        auto legal = [&](uint32_t address, unsigned length) {
            CHECK(address % 4 == 0 && address >= BASE && address - BASE + 4 * length <= SIZE, "%u words at %x", length, address);
            CHECK(address / 4096 == (address + 4 * length - 1) / 4096, "a burst across 4096");
        };
        if (d.m_awvalid && d.m_awready) {
            CHECK(!write.beats, "two addresses");
            write = {d.m_awaddr, d.m_awlen + 1u};
            legal(write.address, write.beats);
        }
        if (d.m_wvalid && d.m_wready) {
            CHECK(d.m_wstrb == 15, "strobes");
            written.push_back({d.m_wdata, d.m_wlast});
        }
        if (d.m_arvalid && d.m_arready) {
            CHECK(!read.beats, "two reads");
            read = {d.m_araddr, d.m_arlen + 1u};
            legal(read.address, read.beats);
        }
        answered = d.m_bvalid && d.m_bready;
        beat = d.m_rvalid && d.m_rready;
        if (r_write && d.r_awready) r_write = false;
        if (r_read && d.r_arready) r_read = false;
        if (d.r_bvalid && d.r_bready) r_done = true, r_value = d.r_bresp;
        if (d.r_rvalid && d.r_rready) r_done = true, r_value = d.r_rdata;
    }

    void drive() {
        on_cycle();
        if (chance(speed)) work(qps[below(SLOTS)]);
        cq.drive(percent), evt.drive(percent), post.drive(percent), req.drive(percent), keys.drive(percent);
        if (answered) d.m_bvalid = 0, write.beats = 0, written.clear();
        if (beat) d.m_rvalid = 0, read.address += 4, read.beats--;
        d.m_awready = !write.beats && chance(memory_speed), d.m_wready = chance(memory_speed), d.m_arready = !read.beats && chance(memory_speed);
        if (write.beats && written.size() == write.beats && !d.m_bvalid && chance(memory_speed)) {
            for (size_t i = 0; i < write.beats; i++) {
                CHECK(written[i].second == (i + 1 == write.beats), "wlast");
                for (unsigned k = 0; k < 4; k++) *at(write.address + uint32_t(4 * i) + k) = uint8_t(written[i].first >> 8 * k);
            }
            d.m_bresp = refuses >= write.address && refuses < write.address + 4 * write.beats ? 2 : 0;
            d.m_bvalid = 1;
        }
        if (read.beats && !d.m_rvalid && chance(memory_speed)) d.m_rvalid = 1;
        d.m_rlast = read.beats == 1;
        d.m_rresp = read.address == refuses ? 3 : 0;
        d.m_rdata = uint32_t(bench::rng());
        if (d.m_rvalid) {
            d.m_rdata = 0;
            for (unsigned k = 0; k < 4; k++) d.m_rdata |= uint32_t(*at(read.address + k)) << 8 * k;
        }
        d.r_awvalid = r_write, d.r_arvalid = r_read;
        d.r_bready = chance(50), d.r_rready = chance(50);
    }

    // ---- registers
    bool r_write = false, r_read = false, r_done = false;
    uint32_t r_value = 0;

    uint32_t access(bool write_it, uint32_t index, uint32_t value, unsigned strobes) {
        (write_it ? d.r_awaddr : d.r_araddr) = uint16_t(0x300 + 4 * index);
        d.r_wdata = value;
        d.r_wstrb = uint8_t(strobes);
        r_done = false;
        (write_it ? r_write : r_read) = true;
        CHECK(sim.until(50'000'000, [&] { return r_done; }), "register %u does not answer", index);
        return r_value;
    }
    uint32_t get(uint32_t index) { return access(false, index, 0, 0); }
    /// Writes a register; the response.
    uint32_t set(uint32_t index, uint32_t value, unsigned strobes = 15) { return access(true, index, value, strobes); }

    template <class Condition>
    bool until(Condition condition) { return sim.until(20'000'000'000, condition); }
    void rest() {
        CHECK(until([&] { return cq.words.empty() && evt.words.empty() && keys.words.empty() && !d.cq_valid && !d.evt_valid; }), "not at rest");
        sim.run(20'000'000);
    }
};

}  // namespace board
