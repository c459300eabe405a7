// What is around `key_exchanger`: the transport, the connection manager, the memory, and peers that connect.
//
// The transport keeps what is posted for each queue pair, executes it after a random time, and checks that it stays inside of the plugin's
// memory and of what the peer has offered. Peers are classes of the benches.
#pragma once

#include <map>
#include <memory>

#include "streams.hpp"

namespace world {

constexpr uint32_t BASE = 0x4000, MESSAGE = 128, SLOTS = 4, BUFFER = 4096, BUFFERS = 3, SIZE = 4 * MESSAGE * SLOTS + BUFFERS * BUFFER;
constexpr unsigned COMPLETIONS = 32;
enum Op { WRITE = 0, SEND = 2, READ = 4 };
enum Status { SUCCESS = 0, FLUSHED = 5, ACCESS = 10 };

/// Memory of a peer that the board may read and write.
struct Region {
    uint64_t address = 0;
    uint32_t key = 0;
    Bytes bytes{};
    bool readable = false, writable = false;
};

struct World;

/// Somebody who connects to the board.
struct Peer {
    World* world = nullptr;
    uint32_t qpn = 0; // of the board's end; 0: not connected
    bool accepted = false, rejected = false, ended = false;
    std::vector<uint32_t> answer{}; // private data of the ACCEPT
    std::map<uint32_t, Region> regions{};

    virtual ~Peer() = default;
    virtual void established() {}
    virtual void message(const Bytes&) {}
    void send(const Bytes& bytes);
    Region& offer(size_t bytes, bool readable, bool writable);
};

struct Receive {
    uint32_t id, address, length;
};
struct Work {
    unsigned op;
    bool signalled;
    uint32_t id, address, length, key;
    uint64_t remote;
};
struct Qp {
    uint32_t qpn = 0;
    Peer* peer = nullptr;
    bool failed = false, open = false;
    unsigned places = 0; // completions reserved or not yet taken
    std::deque<Receive> rq{};
    std::deque<Work> sq{};
    std::deque<Bytes> incoming{};
};

struct World {
    bench::Sim<> sim;
    Vdut& d = sim.dut;
    Feed cq{d.cq_data, d.cq_last, d.cq_valid, d.cq_ready};
    Feed evt{d.evt_data, d.evt_last, d.evt_valid, d.evt_ready};
    Drain post{d.post_data, d.post_last, d.post_valid, d.post_ready};
    Drain req{d.req_data, d.req_last, d.req_valid, d.req_ready};
    Drain keys{d.keys_data, d.keys_last, d.keys_valid, d.keys_ready};
    std::vector<std::vector<uint32_t>> given{}; // records of `keys`
    Bytes memory = bench::random_bytes(SIZE);
    Qp qps[SLOTS];
    std::deque<Qp*> waiting{}; // owners of the completions under way
    uint32_t generation = 0;
    unsigned percent = 50; // of the streams
    unsigned speed = 3;    // chance per cycle that the transport does something
    unsigned not_ready = 0, dropped = 0;
    std::function<void(const std::vector<uint32_t>&)> called = [](const auto&) { bench::fail("world", 0, "nobody was to be called"); };

    World() {
        post.whole = [this](const auto& r) { posted(r); };
        req.whole = [this](const auto& r) { asked(r); };
        keys.whole = [this](const auto& r) { given.push_back(r); };
        cq.ended = [this] {
            if (waiting.front()) waiting.front()->places--;
            waiting.pop_front();
        };
        d.rst = 1;
        d.cq_valid = d.evt_valid = 0;
        d.m_bvalid = d.m_rvalid = d.m_awready = d.m_wready = d.m_arready = 0;
        d.r_awvalid = d.r_arvalid = 0;
        d.r_bready = d.r_rready = 0;
        sim.clock(d.clk, 10000, [this] { if (!d.rst) sample(); }, [this] { if (!d.rst) drive(); });
        sim.run(100000);
        d.rst = 0;
    }

    // ---- connections
    /// A REQ of a peer; false if the board has no free queue pair.
    bool connect(Peer& peer, uint16_t port, std::vector<uint32_t> data = {}) {
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            Qp& q = qps[slot];
            if (q.qpn) continue;
            q = Qp{};
            q.qpn = ++generation << 2 | slot;
            q.peer = &peer;
            peer.world = this;
            peer.qpn = q.qpn;
            peer.accepted = peer.rejected = peer.ended = false;
            data.resize(14);
            std::vector<uint32_t> event{1u << 28 | port, q.qpn, 0x0a000001u + slot};
            event.insert(event.end(), data.begin(), data.end());
            evt.give(event);
            return true;
        }
        return false;
    }

    /// The queue pair of a peer is gone, and the board hears of it.
    void disconnect(Peer& peer) {
        Qp* q = find(peer.qpn);
        if (!q) return;
        for (auto& owner : waiting)
            if (owner == q) owner = nullptr;
        *q = Qp{};
        evt.give({3u << 28, peer.qpn});
        peer.qpn = 0;
        peer.ended = true;
    }

    Qp* find(uint32_t qpn) {
        Qp& q = qps[qpn % SLOTS];
        return qpn && q.qpn == qpn ? &q : nullptr;
    }

    void asked(const std::vector<uint32_t>& r) {
        const unsigned type = r[0] >> 28;
        if (type == 1) return called(r);
        CHECK(r.size() >= 2, "a request of %zu words", r.size());
        Qp* q = find(r[1]);
        if (!q) return;
        Peer& peer = *q->peer;
        if (type == 4) return disconnect(peer);
        CHECK(!peer.accepted && !peer.rejected, "answered twice");
        if (type == 2) {
            CHECK(!q->rq.empty(), "accepted before a receive was posted");
            peer.accepted = q->open = true;
            peer.answer.assign(r.begin() + 2, r.end());
            evt.give({2u << 28, r[1], 0x0a000001, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
            peer.established();
        } else if (type == 3) {
            peer.rejected = true;
            peer.qpn = 0;
            *q = Qp{};
        } else {
            CHECK(false, "request %08x", r[0]);
        }
    }

    // ---- transport
    void posted(const std::vector<uint32_t>& r) {
        CHECK(r.size() >= 5, "a record of %zu words", r.size());
        Qp* q = find(r[1]);
        if (!q) {
            dropped++;
            return;
        }
        q->places++;
        CHECK(q->places <= 6, "%u completions of one connection", q->places);
        unsigned all = 0;
        for (auto& other : qps) all += other.places;
        CHECK(all <= COMPLETIONS, "%u completions reserved", all);
        CHECK(r[3] == 0, "address beyond 32 bits");
        CHECK(r[2] >= BASE && r[4] <= SIZE && r[2] - BASE <= SIZE - r[4], "%u bytes at %x are not ours", r[4], r[2]);
        if (r[0] >> 28 == 1) {
            CHECK(r.size() == 5, "a receive of %zu words", r.size());
            if (q->failed) return complete(*q, FLUSHED, SEND, true, r[0] & 0xffff, 0);
            q->rq.push_back({r[0] & 0xffff, r[2], r[4]});
        } else {
            CHECK(r[0] >> 28 == 0, "record %08x", r[0]);
            auto w = [&](size_t i) { return i < r.size() ? r[i] : 0; };
            Work work{r[0] >> 24 & 15, (r[0] >> 23 & 1) != 0, r[0] & 0xffff, r[2], r[4], w(5), uint64_t(w(7)) << 32 | w(6)};
            if (q->failed) return complete(*q, FLUSHED, work.op, false, work.id, 0);
            q->sq.push_back(work);
        }
    }

    void complete(Qp& q, unsigned status, unsigned op, bool receive, uint32_t id, uint32_t bytes) {
        cq.give({status << 28 | op << 24 | uint32_t(receive) << 22 | id, q.qpn, bytes, uint32_t(bench::rng())});
        waiting.push_back(&q);
    }

    /// The queue pair goes to the error state; the oldest request with `status`.
    void fail(Qp& q, unsigned status) {
        q.failed = true;
        for (auto& w : q.sq) {
            complete(q, status, w.op, false, w.id, 0);
            status = FLUSHED;
        }
        for (auto& r : q.rq) complete(q, FLUSHED, SEND, true, r.id, 0);
        q.sq.clear();
        q.rq.clear();
    }

    uint8_t* at(uint32_t address) { return memory.data() + (address - BASE); }

    /// A message of the peer arrives, or one request is executed.
    void work(Qp& q) {
        if (!q.open || q.failed) return;
        if (!q.incoming.empty() && below(2)) {
            if (q.rq.empty()) {
                not_ready++;
                return;
            }
            const Bytes bytes = q.incoming.front();
            const Receive r = q.rq.front();
            q.incoming.pop_front();
            // The fault is the peer's: of our own requests none has failed.
            if (bytes.size() > r.length) return fail(q, FLUSHED);
            q.rq.pop_front();
            std::copy(bytes.begin(), bytes.end(), at(r.address));
            complete(q, SUCCESS, SEND, true, r.id, uint32_t(bytes.size()));
        } else if (!q.sq.empty()) {
            const Work w = q.sq.front();
            Peer& peer = *q.peer;
            if (w.op == SEND) {
                const Bytes bytes(at(w.address), at(w.address) + w.length);
                retire(q);
                peer.message(bytes);
                return;
            }
            CHECK(w.op == READ || w.op == WRITE, "opcode %u", w.op);
            auto found = peer.regions.find(w.key);
            const bool known = found != peer.regions.end();
            if (!known) return fail(q, ACCESS);
            Region& region = found->second;
            const bool inside = w.remote >= region.address && w.remote - region.address + w.length <= region.bytes.size();
            CHECK(inside && (w.op == READ ? region.readable : region.writable), "%u bytes at %llx", w.length, (unsigned long long)w.remote);
            if (!inside) return fail(q, ACCESS);
            uint8_t* remote = region.bytes.data() + (w.remote - region.address);
            if (w.op == READ) std::copy(remote, remote + w.length, at(w.address));
            else std::copy(at(w.address), at(w.address) + w.length, remote);
            retire(q);
        }
    }
    /// The oldest work request is done.
    void retire(Qp& q) {
        const Work w = q.sq.front();
        q.sq.pop_front();
        if (w.signalled) complete(q, SUCCESS, w.op, false, w.id, w.length);
        else q.places--;
    }

    // ---- memory and registers
    bool aw = false, w = false, ar = false, stored = false, loaded = false;
    uint32_t write_at = 0, write_data = 0, read_at = 0;
    std::function<void()> on_cycle = [] {};

    void sample() {
        cq.sample(), evt.sample(), post.sample(), req.sample(), keys.sample();
        if (d.m_awvalid && d.m_awready) {
            CHECK(!aw, "two addresses");
            aw = true, write_at = d.m_awaddr;
        }
        if (d.m_wvalid && d.m_wready) {
            CHECK(!w && d.m_wstrb == 15, "strobes");
            w = true, write_data = d.m_wdata;
        }
        if (d.m_arvalid && d.m_arready) {
            CHECK(!ar, "two reads");
            ar = true, read_at = d.m_araddr;
        }
        stored = d.m_bvalid && d.m_bready;
        loaded = d.m_rvalid && d.m_rready;
        if (r_write && d.r_awready) r_write = false;
        if (r_read && d.r_arready) r_read = false;
        if (d.r_bvalid && d.r_bready) r_done = true, r_value = d.r_bresp;
        if (d.r_rvalid && d.r_rready) r_done = true, r_value = d.r_rdata;
    }
    bool inside(uint32_t address) { return address % 4 == 0 && address >= BASE && address - BASE <= SIZE - 4; }

    void drive() {
        on_cycle();
        if (chance(speed)) work(qps[below(SLOTS)]);
        cq.drive(percent), evt.drive(percent), post.drive(percent), req.drive(percent), keys.drive(percent);
        if (stored) d.m_bvalid = 0, aw = w = false;
        if (loaded) d.m_rvalid = 0, ar = false;
        d.m_awready = chance(50), d.m_wready = chance(50), d.m_arready = chance(50);
        if (aw && w && !d.m_bvalid && chance(30)) {
            CHECK(inside(write_at), "stored at %x", write_at);
            if (inside(write_at))
                for (unsigned k = 0; k < 4; k++) *at(write_at + k) = uint8_t(write_data >> 8 * k);
            d.m_bvalid = 1;
        }
        if (ar && !d.m_rvalid && chance(30)) {
            CHECK(inside(read_at), "loaded from %x", read_at);
            d.m_rdata = 0;
            if (inside(read_at))
                for (unsigned k = 0; k < 4; k++) d.m_rdata |= uint32_t(*at(read_at + k)) << 8 * k;
            d.m_rvalid = 1;
        }
        if (!d.m_rvalid) d.m_rdata = uint32_t(bench::rng());
        d.r_awvalid = r_write, d.r_arvalid = r_read;
        d.r_bready = chance(50), d.r_rready = chance(50);
    }

    bool r_write = false, r_read = false, r_done = false;
    uint32_t r_value = 0;

    uint32_t access(bool write, uint32_t index, uint32_t value, unsigned strobes) {
        (write ? d.r_awaddr : d.r_araddr) = uint16_t(0x300 + 4 * index);
        d.r_wdata = value;
        d.r_wstrb = uint8_t(strobes);
        r_done = false;
        (write ? r_write : r_read) = true;
        CHECK(sim.until(1'000'000'000, [&] { return r_done; }), "register %u does not answer", index);
        return r_value;
    }
    /// Register `index`.
    uint32_t read(uint32_t index) { return access(false, index, 0, 0); }
    /// Writes a register; the response.
    uint32_t write(uint32_t index, uint32_t value, unsigned strobes = 15) { return access(true, index, value, strobes); }

    template <class Condition>
    bool until(Condition condition) { return sim.until(20'000'000'000, condition); }
    /// Until nothing is under way.
    bool settle() {
        const bool done = until([&] { return cq.words.empty() && evt.words.empty() && !d.cq_valid && !d.evt_valid; });
        sim.run(20'000'000);
        return done;
    }
};

inline void Peer::send(const Bytes& bytes) {
    if (Qp* q = world->find(qpn)) q->incoming.push_back(bytes);
}
inline Region& Peer::offer(size_t bytes, bool readable, bool writable) {
    Region r;
    r.key = uint32_t(bench::rng());
    // Some lie across the border of 2^32.
    r.address = below(4) ? bench::rng() >> 1 : (bench::rng() >> 34 << 32) - below(bytes + 1);
    r.bytes = bench::random_bytes(bytes);
    r.readable = readable, r.writable = writable;
    return regions[r.key] = r;
}

}  // namespace world
