// Drives `bench_roce`: two applications, a memory, and a wire that leads back to the transport itself.
#pragma once
#include "engine.hpp"

using namespace roce;

static constexpr int B = W / 8;

struct Frame {
    Bytes data;
    uint32_t src = 0x0a000001, dst = 0, length = 0;
    uint16_t sport = 0, dport = 0, id = 0;
    int df = 0, tos = 0, ttl = 0;
};

struct Loop {
    using Work = roce::Work;
    using Setup = roce::Setup;
    Sim<Vdut> sim;
    Vdut& d = sim.dut;
    std::vector<uint8_t> memory = std::vector<uint8_t>(1 << 20);
    std::array<std::deque<uint32_t>, 2> post;
    std::array<std::deque<bool>, 2> post_ends;
    std::array<std::vector<std::array<uint32_t, 4>>, 2> cq;
    std::array<std::vector<uint32_t>, 2> partial;
    uint64_t cycle = 0;

    // CNPs that were sent, and those that were offered: the queue pairs that they name.
    std::vector<uint32_t> cnps, congestion;
    bool takes = true;

    // The wire.
    unsigned drop = 0, corrupt = 0, repeat = 0, late = 0, stall = 0;
    bool marks = false; // congestion experienced
    std::multimap<uint64_t, Frame> flight;
    std::deque<Frame> in;
    size_t in_at = 0;
    Frame out;
    bool in_packet = false;
    // `ip-udp` sends preamble and headers before it takes the first beat, and FCS and gap behind the last: 66 bytes of the wire's time.
    static constexpr unsigned BEFORE = 50 / B, AFTER = 66 / B + 1 - BEFORE;
    uint64_t gap = 0, lead = BEFORE, sent = 0, lost = 0, half = 0;
    std::deque<uint64_t> dones;
    // Beats between received packets: none is harder than a wire can be.
    unsigned apart = 0, apart_left = 0;

    // The memory: one write and one read burst at a time, each after `latency`. A packet may start before all its payload is there, so
    // reads have a worst stall, as `START` wants: `latency`, and REFUSED cycles until the address is taken.
    static constexpr unsigned REFUSED = 8;
    unsigned latency = 5, refused = 0;
    struct Burst { uint32_t addr; int beats; uint64_t at; };
    std::deque<Burst> aw, ar;
    std::deque<uint64_t> b;
    int w_beat = 0, r_beat = 0;

    Loop() {
        d.rx_valid = d.tx_ready = d.tx_done = d.cmd_valid = d.bvalid = d.rvalid = 0;
        d.awready = d.wready = d.arready = 0;
        d.post_valid = 0;
        d.cq_ready = 3;
        d.congestion_ready = d.regs_arvalid = 0;
        sim.clock(d.clk, 16000, [this] { sample(); }, [this] { drive(); });
        d.rst = 1;
        sim.run(160000);
        d.rst = 0;
        sim.run(16000 * 40);
    }
    uint64_t load64(uint64_t a) {
        uint64_t v = 0;
        for (int i = 0; i < 8; i++) v |= uint64_t(memory[a + i]) << 8 * i;
        return v;
    }
    void store64(uint64_t a, uint64_t v) {
        for (int i = 0; i < 8; i++) memory[a + i] = uint8_t(v >> 8 * i);
    }
    void sample() {
        cycle++;
        if (d.rst) return;
        // Transmit.
        if (d.tx_valid && d.tx_ready) {
            if (!in_packet) {
                out = Frame{};
                out.dst = get(d.tx_user, 99, 32);
                out.sport = get(d.tx_user, 83, 16);
                out.dport = get(d.tx_user, 67, 16);
                out.length = get(d.tx_user, 51, 16);
                out.id = get(d.tx_user, 35, 16);
                out.df = get(d.tx_user, 34, 1);
                out.tos = get(d.tx_user, 26, 8);
                out.ttl = get(d.tx_user, 18, 8);
            }
            in_packet = true;
            for (int i = 0; i < B; i++)
                if (get(d.tx_keep, i, 1)) out.data.push_back(get_byte(d.tx_data, i));
            if (d.tx_last) {
                in_packet = false;
                sent++;
                gap = AFTER;
                lead = BEFORE;
                dones.push_back(cycle + 3);
                CHECK(!d.tx_err, "an aborted packet");
                CHECK(out.length == out.data.size(), "length %u of %zu", out.length, out.data.size());
                if (out.data[0] == CNP) cnps.push_back(out.data[5] << 16 | out.data[6] << 8 | out.data[7]);
                for (int copies = below(1000) < repeat ? 2 : 1; copies; copies--) {
                    if (below(1000) < drop) { lost++; continue; }
                    Frame f = out;
                    if (marks) f.tos |= 3;
                    if (below(1000) < corrupt) { lost++; f.data[below(f.data.size())] ^= 1 << below(8); }
                    flight.emplace(cycle + 10 + (late && below(1000) < 50 ? below(late) : 0), f);
                }
            }
        } else if (d.tx_ready) {
            CHECK(!in_packet, "a hole in a packet");
        }
        if (d.rx_valid && d.rx_ready) {
            in_at += B;
            if (in_at >= in.front().data.size()) { in.pop_front(); in_at = 0; apart_left = apart; }
        }
        if (d.congestion_valid && d.congestion_ready) congestion.push_back(d.congestion_qpn);
        // Memory.
        if (d.awvalid && d.awready) {
            CHECK((d.awaddr & 0xfff) / B + d.awlen + 1 <= 4096u / B, "a write burst across 4 KiB");
            aw.push_back({d.awaddr / B * B, d.awlen + 1, 0});
        }
        if (d.wvalid && d.wready) {
            w_pending.push_back({});
            for (int i = 0; i < B; i++) w_pending.back().push_back({get_byte(d.wdata, i), bool(get(d.wstrb, i, 1))});
            w_last.push_back(d.wlast);
        }
        while (!aw.empty() && !w_pending.empty()) {
            for (int i = 0; i < B; i++)
                if (w_pending.front()[i].second) memory[(aw.front().addr + w_beat * B + i) % memory.size()] = w_pending.front()[i].first;
            w_beat++;
            CHECK(w_last.front() == (w_beat == aw.front().beats), "wlast");
            if (w_last.front()) { aw.pop_front(); w_beat = 0; b.push_back(cycle + 1 + below(latency)); }
            w_pending.pop_front();
            w_last.pop_front();
        }
        if (d.bvalid && d.bready) b.pop_front();
        if (d.arvalid && d.arready) {
            CHECK((d.araddr & 0xfff) / B + d.arlen + 1 <= 4096u / B, "a read burst across 4 KiB");
            ar.push_back({d.araddr / B * B, d.arlen + 1, cycle + 1 + below(latency)});
        }
        if (d.rvalid && d.rready) {
            if (++r_beat == ar.front().beats) { ar.pop_front(); r_beat = 0; }
        }
        for (int i = 0; i < 2; i++) {
            if ((d.post_valid >> i & 1) && (d.post_ready >> i & 1)) { post[i].pop_front(); post_ends[i].pop_front(); }
            if ((d.cq_valid >> i & 1) && (d.cq_ready >> i & 1)) {
                partial[i].push_back(uint32_t(d.cq_data >> 32 * i));
                if (d.cq_last >> i & 1) {
                    CHECK(partial[i].size() == 4, "a completion of %zu words", partial[i].size());
                    std::array<uint32_t, 4> c{};
                    std::copy_n(partial[i].begin(), 4, c.begin());
                    cq[i].push_back(c);
                    partial[i].clear();
                }
            }
        }
    }
    std::deque<std::vector<std::pair<uint8_t, bool>>> w_pending;
    std::deque<bool> w_last;

    void drive() {
        if (d.rst) return;
        // At 1G a word every second cycle.
        half++;
        const bool beat = W > 32 || half % 2;
        if (gap) { if (beat) gap--; d.tx_ready = 0; }
        else if (lead) { if (beat && d.tx_valid) lead--; d.tx_ready = 0; }
        else d.tx_ready = beat;
        d.tx_done = 0;
        if (!dones.empty() && dones.front() <= cycle) { dones.pop_front(); d.tx_done = 1; }
        d.rx_valid = beat && !in.empty() && !apart_left;
        if (beat && apart_left) apart_left--;
        if (!in.empty()) {
            const Frame& f = in.front();
            for (int i = 0; i < B; i++) {
                set_byte(d.rx_data, i, in_at + i < f.data.size() ? f.data[in_at + i] : uint8_t(rng()));
            }
            for (int i = 0; i < B; i++) {
                const bool keep = in_at + i < f.data.size();
                if constexpr (std::is_integral_v<std::remove_reference_t<decltype(d.rx_keep)>>) d.rx_keep = (d.rx_keep & ~(decltype(d.rx_keep + 0ull))(1ull << i)) | uint64_t(keep) << i;
                else put(d.rx_keep, i, 1, keep);
            }
            d.rx_last = in_at + B >= f.data.size();
            d.rx_err = 0;
            put(d.rx_user, 130, 32, f.src);
            put(d.rx_user, 98, 32, f.dst);
            put(d.rx_user, 82, 16, f.sport);
            put(d.rx_user, 66, 16, f.dport);
            put(d.rx_user, 50, 16, f.data.size());
            put(d.rx_user, 34, 16, f.id);
            put(d.rx_user, 33, 1, 0);
            put(d.rx_user, 32, 1, f.df);
            put(d.rx_user, 24, 8, f.tos);
            put(d.rx_user, 16, 8, f.ttl);
            put(d.rx_user, 0, 16, 0);
        }
        d.congestion_ready = takes && chance(50);
        d.awready = !chance(stall);
        d.wready = !chance(stall);
        d.arready = ar.size() < 4 && (refused == REFUSED || !chance(stall));
        refused = d.arready || ar.size() >= 4 ? 0 : refused + 1;
        d.bvalid = !b.empty() && b.front() <= cycle;
        d.rvalid = !ar.empty() && ar.front().at <= cycle;
        if (d.rvalid) {
            for (int i = 0; i < B; i++) set_byte(d.rdata, i, memory[(ar.front().addr + r_beat * B + i) % memory.size()]);
            d.rlast = r_beat + 1 == ar.front().beats;
        }
        d.post_valid = 0;
        for (int i = 0; i < 2; i++)
            if (!post[i].empty()) {
                d.post_valid |= 1 << i;
                d.post_data = (d.post_data & ~(0xffffffffull << 32 * i)) | uint64_t(post[i].front()) << 32 * i;
                d.post_last = (d.post_last & ~(1 << i)) | post_ends[i].front() << i;
            }
    }
    void wire() {
        while (!flight.empty() && flight.begin()->first <= cycle) {
            in.push_back(flight.begin()->second);
            flight.erase(flight.begin());
        }
    }
    void cycles(uint64_t n) { sim.run(16000 * n); }
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
    uint32_t counter(int index) {
        d.regs_araddr = 4 * index;
        d.regs_arvalid = 1;
        uint32_t value = 0;
        bool taken = false, done = false;
        for (int n = 0; n < 200 && !done; n++) {
            d.eval();
            taken = d.regs_arready;
            done = d.regs_rvalid;
            value = d.regs_rdata;
            cycles(1);
            if (taken) d.regs_arvalid = 0;
        }
        CHECK(done, "counter %d is not read", index);
        return value;
    }
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
    void receive(int client, uint32_t qpn, int id, uint64_t addr, uint32_t length) { record(client, receive_record(qpn, id, addr, length)); }
    void work(int client, uint32_t qpn, const Work& w) { record(client, work_record(qpn, w)); }
};
