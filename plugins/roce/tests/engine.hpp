// Drives `bench_engine`: packets in, jobs out, commands, posted records and completions.
#pragma once
#include "bench.hpp"
#include <array>
#include <map>

namespace roce {
using namespace bench;

// Fields of packed ports, by the place of their lowest bit.
template <class T> uint64_t get(const T& port, int at, int bits) {
    uint64_t v = 0;
    for (int i = 0; i < bits; i++) {
        uint64_t bit;
        if constexpr (std::is_integral_v<T>) bit = uint64_t(port) >> (at + i) & 1;
        else bit = port[(at + i) / 32] >> ((at + i) % 32) & 1;
        v |= bit << i;
    }
    return v;
}
template <class T> void put(T& port, int at, int bits, uint64_t v) {
    for (int i = 0; i < bits; i++) {
        uint32_t& w = port[(at + i) / 32];
        w = (w & ~(1u << (at + i) % 32)) | uint32_t(v >> i & 1) << (at + i) % 32;
    }
}

enum : uint8_t {
    SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY,
    WRITE_ONLY_IMM, READ_REQUEST, RESP_FIRST, RESP_MIDDLE, RESP_LAST, RESP_ONLY, ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD, SEND_LAST_INV = 0x16, SEND_ONLY_INV, CNP = 0x81,
};

struct Unit {
    uint8_t opcode = 0;
    bool se = false, ackreq = false, ce = false;
    uint32_t dqpn = 0, psn = 0, ip = 0, pkey = 0xffff;
    std::array<uint32_t, 7> ext{};
    Bytes data;
    // As a job: where the payload is.
    uint64_t addr = 0;
    int length = 0, source = 0, order = 0, slot = 0;
    uint8_t syndrome() const { return ext[0] >> 24; }
};

struct Taken {
    int action;
    uint64_t addr;
    int slot;
};

struct Setup {
    uint32_t qpn, dqpn, ip = 0x0a000001;
    int pmtu = 3;
    uint32_t epsn = 0, npsn = 0;
    int depth_r = 4, depth_i = 4, timeout = 0, retry = 7, rnr_retry = 7, rnr_code = 1, pd = 1, rights = 7, state = 3;
};

struct Work {
    int op, id = 0;
    uint64_t laddr = 0;
    uint32_t length = 0, rkey = 0;
    uint64_t raddr = 0;
    uint32_t imm = 0;
    uint64_t swap = 0, compare = 0;
    bool signalled = true;
};

// A queue pair through the control commands of `t`.
template <class T> void open(T& t, int slot, const Setup& s) {
    t.set(slot, 0, 1);
    t.set(slot, 1, s.qpn);
    t.set(slot, 2, s.dqpn);
    t.set(slot, 3, s.ip);
    t.set(slot, 4, s.pmtu << 16 | 0xc123);
    t.set(slot, 5, s.epsn);
    t.set(slot, 6, s.npsn);
    t.set(slot, 7, s.depth_i << 8 | s.depth_r);
    t.set(slot, 8, s.rnr_code << 16 | s.rnr_retry << 12 | s.retry << 8 | s.timeout);
    t.set(slot, 9, 0xffff0000 | s.rights << 8 | s.pd);
    t.set(slot, 0, s.state);
}
inline std::vector<uint32_t> region_record(int index, int variant, int pd, int access, uint64_t base, uint64_t length) {
    return {2u << 28 | uint32_t(index), uint32_t(access << 16 | pd << 8 | variant), uint32_t(base), uint32_t(base >> 32), uint32_t(length), uint32_t(length >> 32)};
}
inline std::vector<uint32_t> receive_record(uint32_t qpn, int id, uint64_t addr, uint32_t length) {
    return {1u << 28 | uint32_t(id), qpn, uint32_t(addr), uint32_t(addr >> 32), length};
}
inline std::vector<uint32_t> work_record(uint32_t qpn, const Work& w) {
    return {uint32_t(w.op) << 24 | uint32_t(w.signalled) << 23 | uint32_t(w.id), qpn, uint32_t(w.laddr), uint32_t(w.laddr >> 32), w.length, w.rkey, uint32_t(w.raddr),
            uint32_t(w.raddr >> 32), w.imm, uint32_t(w.swap), uint32_t(w.swap >> 32), uint32_t(w.compare), uint32_t(w.compare >> 32)};
}

template <class Dut> struct Driver {
    Sim<Dut> sim;
    Dut& d = sim.dut;
    std::deque<Unit> in, jobs;
    std::vector<Taken> taken;
    std::deque<uint32_t> events;
    std::array<std::deque<uint32_t>, 2> post;
    std::array<std::vector<std::array<uint32_t, 4>>, 2> cq;
    std::array<std::vector<uint32_t>, 2> partial;
    std::array<bool, 2> stuck{};
    std::array<uint64_t, 16> happened{};
    std::vector<uint32_t> congestion; // queue pairs that CNPs have named
    std::vector<uint8_t> memory = std::vector<uint8_t>(1 << 20);
    std::function<void(const Unit&)> on_job = [](const Unit&) {};
    std::deque<std::pair<uint64_t, bool>> writes; // cycles at which accepted writes will be done; an atomic operation
    unsigned write_delay = 20, job_stall = 0;
    uint64_t cycle = 0;
    int jobs_open = 0;
    uint64_t atomic_old = 0;
    uint32_t ip = 0x0a000001;

    Driver() {
        d.take_ready = 1;
        d.mad_room = 1;
        d.packet_valid = d.cmd_valid = d.rx_fault = d.atomic_done = d.job_done = 0;
        d.issued = d.finished = 0;
        d.job_ready = 1;
        d.post_valid = 0;
        d.cq_ready = 3;
        sim.clock(d.clk, 16000, [this] { sample(); }, [this] { drive(); });
        d.rst = 1;
        sim.run(160000);
        d.rst = 0;
        sim.run(16000 * 40);
    }

    uint64_t load64(uint64_t a) {
        uint64_t v = 0;
        for (int i = 0; i < 8; i++) v |= uint64_t(memory[(a + i) % memory.size()]) << 8 * i;
        return v;
    }
    void store64(uint64_t a, uint64_t v) {
        for (int i = 0; i < 8; i++) memory[(a + i) % memory.size()] = uint8_t(v >> 8 * i);
    }

    void sample() {
        cycle++;
        if (d.rst) return;
        for (int i = 0; i < 16; i++) happened[i] += d.happened >> i & 1;
        if (d.happened >> 10 & 1) congestion.push_back(d.event_data & 0xffffff);
        if (d.take) {
            CHECK(d.packet_valid, "takes a packet that is not there");
            const Unit& p = in.front();
            taken.push_back({d.take_action, d.take_addr, d.take_slot});
            if (std::getenv("TRACE")) std::printf("%8llu   take %d of %06x op %02x psn %06x ext %08x %08x %08x %08x len %zu\n", (unsigned long long)cycle, d.take_action, p.dqpn, p.opcode, p.psn, p.ext[0], p.ext[1], p.ext[2], p.ext[3], p.data.size());
            if (d.take_action == 1 && !p.data.empty()) {
                for (size_t i = 0; i < p.data.size(); i++) memory[(d.take_addr + i) % memory.size()] = p.data[i];
                next_issued++;
                writes.push_back({cycle + 1 + below(write_delay), false});
            }
            if (d.take_action == 3) {
                atomic_old = load64(d.take_addr);
                auto w64 = [&](int i) { return uint64_t(p.ext[i]) << 32 | p.ext[i + 1]; };
                if (p.opcode == CMP_SWAP) { if (atomic_old == w64(5)) store64(d.take_addr, w64(3)); }
                else if (p.opcode == FETCH_ADD) store64(d.take_addr, atomic_old + w64(3));
                else store64(d.take_addr, w64(1));
                next_issued++;
                writes.push_back({cycle + 1 + below(write_delay), true});
            }
            in.pop_front();
        }
        if (d.job_valid && d.job_ready) {
            Unit p;
            p.opcode = get(d.job, 386, 8);
            p.se = get(d.job, 385, 1);
            p.ackreq = get(d.job, 384, 1);
            p.dqpn = get(d.job, 343, 24);
            p.psn = get(d.job, 319, 24);
            p.ip = get(d.job, 410, 32);
            for (int i = 0; i < 7; i++) p.ext[i] = get(d.job, 95 + 32 * (6 - i), 32);
            p.source = get(d.job, 93, 2);
            p.addr = get(d.job, 29, 64);
            p.length = get(d.job, 16, 13);
            p.order = get(d.job, 8, 8);
            p.slot = get(d.job, 0, 8);
            if (p.source == 1) for (int i = 0; i < p.length; i++) p.data.push_back(memory[(p.addr + i) % memory.size()]);
            else CHECK(p.length == 0 || p.source == 3, "payload out of nothing");
            if (std::getenv("TRACE")) std::printf("%8llu job to %06x op %02x psn %06x ext %08x %08x %08x %08x len %zu\n", (unsigned long long)cycle, p.dqpn, p.opcode, p.psn, p.ext[0], p.ext[1], p.ext[2], p.ext[3], p.data.size());
            jobs.push_back(p);
            jobs_open++;
            on_job(p);
        }
        if (d.event_valid) events.push_back(d.event_data);
        for (int i = 0; i < 2; i++) {
            if ((d.post_valid >> i & 1) && (d.post_ready >> i & 1)) { post[i].pop_front(); post_ends[i].pop_front(); }
            if ((d.cq_valid >> i & 1) && (d.cq_ready >> i & 1)) {
                partial[i].push_back(uint32_t(d.cq_data >> 32 * i));
                CHECK((d.cq_last >> i & 1) == (partial[i].size() == 4), "a completion of %zu words", partial[i].size());
                if (d.cq_last >> i & 1) {
                    std::array<uint32_t, 4> c{};
                    std::copy_n(partial[i].begin(), 4, c.begin());
                    cq[i].push_back(c);
                    partial[i].clear();
                }
            }
        }
    }
    uint8_t next_issued = 0;
    std::array<std::deque<bool>, 2> post_ends;
    std::function<bool()> deliver = [] { return true; };

    void drive() {
        if (d.rst) return;
        d.issued = next_issued;
        d.atomic_done = 0;
        if (!writes.empty() && writes.front().first <= cycle) {
            if (writes.front().second) {
                d.atomic_done = 1;
                d.atomic_value = atomic_old;
            }
            writes.pop_front();
            d.finished++;
        }
        d.job_done = 0;
        if (jobs_open && chance(30)) { jobs_open--; d.job_done = 1; }
        d.job_ready = jobs_open < 3 && !chance(job_stall);
        d.packet_valid = !in.empty();
        if (!in.empty()) {
            const Unit& p = in.front();
            put(d.packet, 0, 13, p.data.size());
            for (int i = 0; i < 7; i++) put(d.packet, 13 + 32 * (6 - i), 32, p.ext[i]);
            put(d.packet, 237, 32, p.ip);
            put(d.packet, 269, 2, p.ce);
            put(d.packet, 271, 24, p.psn);
            put(d.packet, 295, 1, p.ackreq);
            put(d.packet, 296, 24, p.dqpn);
            put(d.packet, 320, 16, p.pkey);
            put(d.packet, 336, 1, p.se);
            put(d.packet, 337, 8, p.opcode);
        }
        d.post_valid = 0;
        d.cq_ready = 0;
        for (int i = 0; i < 2; i++) {
            if (!post[i].empty()) {
                d.post_valid |= 1 << i;
                d.post_data = (d.post_data & ~(0xffffffffull << 32 * i)) | uint64_t(post[i].front()) << 32 * i;
                d.post_last = (d.post_last & ~(1 << i)) | post_ends[i].front() << i;
            }
            if (!stuck[i]) d.cq_ready |= 1 << i;
        }
    }

    void cycles(uint64_t n) { sim.run(16000 * n); }
    void quiet(uint64_t limit = 20000) {
        // Nothing happens for a while.
        for (uint64_t still = 0, n = 0; still < 200 && n < limit; n++) {
            const size_t before = jobs.size() + taken.size() + cq[0].size() + cq[1].size();
            cycles(1);
            still = before == jobs.size() + taken.size() + cq[0].size() + cq[1].size() && in.empty() ? still + 1 : 0;
        }
    }
    uint32_t command(int slot, int field, bool write, uint32_t data = 0) {
        d.cmd_valid = 1;
        d.cmd_write = write;
        d.cmd_addr = slot << 4 | field;
        d.cmd_data = data;
        uint32_t answer = 0;
        bool done = false;
        for (int n = 0; n < 20000 && !done; n++) {
            d.eval();
            done = d.cmd_ready;
            answer = d.rsp_data;
            cycles(1);
        }
        CHECK(done, "command %d of %d is never done", field, slot);
        d.cmd_valid = 0;
        return answer;
    }
    void set(int slot, int field, uint32_t data) { command(slot, field, true, data); }
    int state(int slot) { return command(slot, 0, false) & 7; }

    using Setup = roce::Setup;
    void open(int slot, const Setup& s) { roce::open(*this, slot, s); }
    void record(int client, std::vector<uint32_t> words) {
        for (size_t i = 0; i < words.size(); i++) {
            post[client].push_back(words[i]);
            post_ends[client].push_back(i + 1 == words.size());
        }
    }
    void region(int index, int variant, int pd, int access, uint64_t base, uint64_t length) {
        record(0, region_record(index, variant, pd, access, base, length));
        sim.until(16000 * 2000, [&] { return post[0].empty(); });
        cycles(20);
    }
    void receive(int client, uint32_t qpn, int id, uint64_t addr, uint32_t length) {
        record(client, receive_record(qpn, id, addr, length));
    }
    using Work = roce::Work;
    void work(int client, uint32_t qpn, const Work& w) {
        record(client, work_record(qpn, w));
    }
    void packet(uint8_t opcode, uint32_t qpn, uint32_t psn, bool ackreq, std::array<uint32_t, 7> ext, Bytes data) {
        Unit p;
        p.opcode = opcode;
        p.dqpn = qpn;
        p.psn = psn & 0xffffff;
        p.ackreq = ackreq;
        p.ext = ext;
        p.data = std::move(data);
        p.ip = ip;
        in.push_back(p);
    }
};
} // namespace roce
