// top: tx_back
// param: W=32 START=64
// param: W=512 START=4096
// slow-param: W=32 START=4096
// slow-param: W=64 START=64
// slow-param: W=64 START=4096
// slow-param: W=128 START=4096
// slow-param: W=256 START=4096
// slow-param: W=512 START=64
//
// Jobs of every opcode, length and alignment against the model, on memories and links of many kinds; a packet never has a hole.
#include "tx_model.hpp"

#ifndef W
#define W 32
#endif
#ifndef START
#define START 64
#endif

using bench::below;
using bench::Bytes;
using bench::chance;

namespace {

constexpr unsigned B = W / 8;
const uint8_t OPCODES[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x64, 0x81};

struct Want {
    tx::Job job;
    Bytes bytes;
    bool err;
    uint64_t given = 0;  // cycle in which the job was offered
};

/// How the link takes beats; `wire`: as bytes of frames, with the 66 bytes that each has besides.
enum class Link { always, random, wire };

struct Bench {
    bench::Sim<> sim;
    Vdut& d = sim.dut;
    tx::Memory<Vdut> memory{d, B};
    uint64_t cycle = 0;

    std::deque<Want> jobs;                 // not yet taken
    std::deque<Want> sending, reporting;   // taken; sent or under way, `done` not seen
    unsigned job_percent = 100;
    std::deque<uint32_t> mad;
    unsigned mad_percent = 100;
    bool job_offered = false, mad_offered = false;

    Link link = Link::always;
    unsigned percent = 100;
    double credit = 0;                     // of `wire`, in beats
    bool open = false, held = false, early_done = false;
    Bytes got, held_data;
    uint64_t user_first[3] = {};
    uint64_t first_valid = 0, last_beat = 0, packets = 0, taken_at = 0;

    unsigned done_late = 3;                // most cycles from the last beat to `i_done`
    unsigned status_percent = 10;
    struct Fate { uint64_t due; unsigned status; };
    std::deque<Fate> fates;
    std::deque<unsigned> told;             // statuses that were given, not yet in `done`
    unsigned sent_not_done = 0;
    uint64_t done_count = 0, faults = 0;
    int finish_ahead = 0;                  // `finished` - order of the newest job

    uint64_t user(unsigned from, unsigned bits) const {
        uint64_t v = 0;
        for (unsigned i = 0; i < bits; i++) v |= uint64_t(d.o_user[(from + i) / 32] >> ((from + i) % 32) & 1) << i;
        return v;
    }

    void sample() {
        if (d.rst) return;
        cycle++;
        memory.sample();
        if (d.job_valid && d.job_ready) {
            sending.push_back(jobs.front());
            jobs.pop_front();
            job_offered = false;
            taken_at = cycle;
        }
        if (d.mad_valid && d.mad_ready) mad.pop_front(), mad_offered = false;

        if (d.done) {
            CHECK(!reporting.empty() && !told.empty(), "done without a packet");
            if (!reporting.empty() && !told.empty()) {
                const Want& w = reporting.front();
                CHECK(d.done_slot == w.job.slot, "done of slot %u, not %u", d.done_slot, w.job.slot);
                CHECK(d.done_status == told.front(), "status %u, not %u", d.done_status, told.front());
                CHECK(d.fault == w.err, "fault %u", d.fault);
                if (d.fault) CHECK(d.fault_slot == w.job.slot, "fault of another slot");
                faults += d.fault;
                reporting.pop_front(), told.pop_front();
                done_count++;
            }
        } else {
            CHECK(!d.fault, "a fault without a packet");
        }

        if (held) CHECK(d.o_valid, "valid fell before ready");
        if (open && d.o_ready) CHECK(d.o_valid, "a hole after %zu bytes of packet %lu, START=%d", got.size(), (unsigned long)packets, START);
        held = d.o_valid && !d.o_ready;
        if (d.o_valid && !open && !first_valid) first_valid = cycle;
        if (d.o_valid && d.o_ready) beat();
        if (link == Link::wire) credit = std::min(credit + (W == 32 ? 0.5 : 1.0), 1.999);
    }

    void beat() {
        CHECK(!sending.empty(), "a packet without a job");
        if (sending.empty()) return;
        const uint64_t u[3] = {user(0, 64), user(64, 64), user(128, 3)};
        if (open) CHECK(!std::memcmp(u, user_first, sizeof u), "user changes in a packet");
        else std::memcpy(user_first, u, sizeof u);
        unsigned n = 0;
        for (unsigned i = 0; i < B; i++) {
            const bool keep = bench::get_byte(d.o_keep, i / 8) >> (i % 8) & 1;
            CHECK(!keep || n == i, "keep has a hole");
            if (keep) got.push_back(bench::get_byte(d.o_data, i)), n++;
        }
        CHECK(d.o_last || n == B, "a short beat before the last");
        CHECK(n != 0, "an empty beat");
        if (!open && chance(20)) {  // its fate is told before its end
            fates.push_back({cycle + 1 + below(3), unsigned(chance(status_percent) ? 1 + below(3) : 0)});
            early_done = true;
        }
        if (link == Link::wire) credit -= double(n + (open ? 0 : 66)) / B;
        open = !d.o_last;
        if (!d.o_last) return;
        const Want& w = sending.front();
        CHECK(d.o_err == w.err, "err %u of opcode %02x, %u bytes at %llx", d.o_err, w.job.opcode, w.job.length, (unsigned long long)w.job.addr);
        if (!w.err && got != w.bytes) {
            size_t k = 0;
            while (k < got.size() && k < w.bytes.size() && got[k] == w.bytes[k]) k++;
            bench::fail(__FILE__, __LINE__, "opcode %02x, %u bytes at %llx, source %u: differs at byte %zu; %zu bytes, not %zu", w.job.opcode, w.job.length, (unsigned long long)w.job.addr,
                        w.job.source, k, got.size(), w.bytes.size());
        }
        CHECK(user(99, 32) == w.job.dst_ip && user(83, 16) == w.job.src_port && user(67, 16) == 4791 && user(51, 16) == w.bytes.size(), "address, ports or length: %llx %llx %llx %llu",
              (unsigned long long)user(99, 32), (unsigned long long)user(83, 16), (unsigned long long)user(67, 16), (unsigned long long)user(51, 16));
        CHECK(user(35, 16) == 0 && user(34, 1) == 1 && user(26, 8) == 0 && user(18, 8) == 64 && user(0, 18) == 0, "id, flags, ToS, TTL or checksum");
        got.clear();
        packets++;
        last_beat = cycle;
        reporting.push_back(w);
        sending.pop_front();
        if (!early_done) fates.push_back({cycle + 1 + below(done_late), unsigned(chance(status_percent) ? 1 + below(3) : 0)});
        early_done = false;
    }

    void drive() {
        if (d.rst) return;
        memory.drive();
        if (!job_offered && !jobs.empty() && chance(job_percent)) {
            job_offered = true;
            jobs.front().given = cycle;
            tx::set_job(d.job, jobs.front().job);
        }
        d.job_valid = job_offered;
        if (!mad_offered) mad_offered = !mad.empty() && chance(mad_percent);
        d.mad_valid = mad_offered;
        d.mad_data = mad_offered ? mad.front() : uint32_t(bench::rng());
        d.mad_last = 0;
        d.o_ready = link == Link::always || (link == Link::random ? chance(percent) : credit > 1e-9);
        d.i_done = 0;
        d.i_status = below(4);
        if (!fates.empty() && fates.front().due <= cycle) {
            d.i_done = 1;
            d.i_status = fates.front().status;
            told.push_back(fates.front().status);
            fates.pop_front();
        }
    }

    tx::Job random_job(uint8_t opcode) {
        tx::Job j;
        j.dst_ip = uint32_t(bench::rng()), j.src_port = uint16_t(bench::rng()), j.opcode = opcode;
        j.se = chance(50), j.ackreq = chance(50), j.becn = chance(50);
        j.pkey = uint16_t(bench::rng()), j.dqpn = bench::rng() & 0xffffff, j.psn = bench::rng() & 0xffffff;
        for (auto& e : j.ext) e = uint32_t(bench::rng());
        j.order = d.finished;
        j.slot = uint8_t(bench::rng());
        return j;
    }

    /// Adds a job; its payload is what the memory has, or a datagram, or zeros.
    void add(tx::Job j, bool err = false) {
        Bytes payload(j.length);
        if (j.source == tx::MEMORY) payload = tx::memory_bytes(j.addr, j.length);
        if (j.source == tx::MAD) {
            payload = bench::random_bytes(j.length);
            for (unsigned i = 0; i < j.length; i += 4) mad.push_back(uint32_t(payload[i]) << 24 | payload[i + 1] << 16 | payload[i + 2] << 8 | payload[i + 3]);
        }
        jobs.push_back({j, tx::packet(j, payload), err});
    }

    void add_memory(uint8_t opcode, uint64_t addr, unsigned length) {
        tx::Job j = random_job(opcode);
        j.source = tx::MEMORY, j.addr = addr, j.length = length;
        add(j, length && memory.bad_from < memory.bad_to && overlaps(addr, length));
    }

    bool overlaps(uint64_t addr, unsigned length) const {
        const uint64_t from = addr / B * B, to = (addr + length + B - 1) / B * B;
        return from < (memory.bad_to + B - 1) / B * B && to > memory.bad_from / B * B;
    }

    /// A short packet without payload from the memory.
    void add_short() {
        static const uint8_t list[] = {0x11, 0x11, 0x11, 0x0c, 0x12, 0x13, 0x14, 0x04, 0x0a};
        tx::Job j = random_job(chance(10) ? 0x81 : list[below(sizeof list)]);
        j.length = j.opcode == 0x81 ? 16 : 0;
        j.source = j.opcode == 0x81 ? tx::ZEROS : chance(50) ? tx::NONE : tx::MEMORY;
        add(j);
    }

    void add_mad() {
        tx::Job j = random_job(0x64);
        j.source = tx::MAD, j.length = 256, j.addr = bench::rng();
        add(j);
    }

    void settle(uint64_t cycles = 400000) {
        const bool all = sim.until(cycles * 10000, [&] { return jobs.empty() && sending.empty() && reporting.empty(); });
        CHECK(all, "stuck: %zu jobs, %zu under way, %zu without a report", jobs.size(), sending.size(), reporting.size());
        if (!all) std::exit(1);
        CHECK(memory.idle() && mad.empty(), "something is left over");
        sim.run(20 * 10000);
    }

    static uint64_t place(unsigned offset) { return below(1 << 18) * 64 + offset; }

    // ---- The parts

    void every_opcode() {
        for (unsigned offset = 0; offset < B; offset += 1) {
            for (uint8_t op : OPCODES) {
                for (int k = 0; k < (B > 8 ? 1 : 4); k++) {
                    const unsigned length = chance(10) ? 4096 - below(2 * B) : chance(70) ? below(3 * B + 2) : below(600);
                    add_memory(op, place(offset), length);
                }
            }
            if (chance(20)) settle();
        }
        settle();
    }

    void lengths(unsigned from, unsigned to) {
        for (unsigned n = from; n <= to; n++) add_memory(OPCODES[below(sizeof OPCODES)], place(unsigned(below(B))), n);
        settle();
    }

    void mixed(unsigned count) {
        for (unsigned i = 0; i < count; i++) {
            switch (below(8)) {
                case 0: case 1: case 2: add_short(); break;
                case 3: add_mad(); break;
                case 4: add_memory(OPCODES[below(sizeof OPCODES)], place(unsigned(below(64))), 1024); break;
                default: add_memory(OPCODES[below(sizeof OPCODES)], place(unsigned(below(64))), unsigned(below(700))); break;
            }
        }
        settle();
    }

    void errors() {
        for (int round = 0; round < 40; round++) {
            memory.bad_from = place(unsigned(below(64)));
            memory.bad_to = memory.bad_from + 1 + below(40);
            for (int i = 0; i < 4; i++) {
                add_memory(OPCODES[below(sizeof OPCODES)], memory.bad_from + 50 - below(400), 1 + unsigned(below(400)));
                if (chance(50)) add_short();
                if (chance(10)) add_mad();
            }
            settle();
        }
        memory.bad_from = 1, memory.bad_to = 0;
        CHECK(faults > 30, "only %lu faults", (unsigned long)faults);
    }

    void orders() {
        for (int round = 0; round < 60; round++) {
            d.finished = uint8_t(bench::rng());
            const unsigned ahead = 1 + unsigned(below(100));
            tx::Job j = random_job(0x10);
            j.source = tx::MEMORY, j.addr = place(unsigned(below(64))), j.length = 1 + unsigned(below(300));
            j.order = uint8_t(d.finished + ahead);
            const uint64_t before = packets;
            bool asked = false;
            memory.asked = [&](uint64_t, uint64_t) { asked = true; };
            const bool first_short = chance(50);
            if (first_short) add_short();
            add(j);
            sim.run(400 * 10000);
            CHECK(!asked && packets == before + first_short, "read before its turn, or a short packet before it waited");
            for (unsigned i = 0; i < ahead; i++) {
                CHECK(!asked, "read %u writes too early", ahead - i);
                d.finished++;
                if (i + 1 < ahead) sim.run(3 * 10000);
            }
            settle();
            CHECK(asked, "never read");
        }
        memory.asked = [](uint64_t, uint64_t) {};
    }

    /// Cycles from the cycle in which the job is offered to the one in which the first beat is.
    uint64_t latency(const std::function<void()>& make) {
        uint64_t worst = 0;
        for (int i = 0; i < 20; i++) {
            sim.run((1 + below(20)) * 10000);
            first_valid = 0;
            make();
            sim.until(2000 * 10000, [&] { return first_valid != 0; });
            worst = std::max(worst, first_valid - (sending.empty() ? reporting.back() : sending.front()).given - 1);
            settle();
        }
        return worst;
    }

    /// Cycles per packet of `length` bytes back to back.
    double rate(unsigned length, unsigned offset, unsigned count) {
        auto next = [&](unsigned i) { add_memory(0x0e, place(0) / 4096 * 4096 + (offset + i * length) % 4096 / B * B + offset % B, length); };
        for (unsigned i = 0; i < count; i++) next(i);
        uint64_t from = 0, to = 0, base = packets;
        sim.until(10000ull * count * 10000, [&] {
            if (!from && packets == base + 10) from = last_beat;
            if (packets == base + count) to = last_beat;
            return to != 0;
        });
        settle();
        return double(to - from) / (count - 10);
    }

    void rates() {
        link = Link::wire;
        status_percent = 0;
        for (unsigned latency : {10u, 60u}) {
            for (unsigned length : {256u, 1024u, 4096u}) {
                for (unsigned offset : {0u, 1u, B - 1}) {
                    memory.latency = latency;
                    const double ideal = (length + 16 + 66) / double(B) * (W == 32 ? 2 : 1), is = rate(length, offset, 50);
                    std::printf("%u bytes, offset %u, memory latency %u: %.2f cycles a packet, wire %.2f, %.2f%%\n", length, offset % B, latency, is, ideal, 100 * ideal / is);
                    // One whole payload fills the FIFO of this one: the next can start only when its last beats have found room.
                    const bool filled = W == 32 && START >= 4096 && length == 4096;
                    CHECK(length < 1024 || is <= ideal / (filled ? 0.96 : 0.99), "slower than the wire");
                }
            }
        }
        link = Link::always;
        status_percent = 10;
    }

    void all() {
        link = Link::always;
        memory.latency = 10;
        const uint64_t ack = latency([&] { tx::Job j = random_job(0x11); add(j); });
        const uint64_t write = latency([&] { add_memory(0x0a, place(0), 64); });
        std::printf("from job to first beat: %lu cycles without payload, %lu with 64 bytes and a memory latency of %u\n", (unsigned long)ack, (unsigned long)write, memory.latency);
        CHECK(W != 32 || ack <= 3, "a short packet waits");
        bench::ok("latency");
        rates();
        bench::ok("rates");

        for (int chaos = 0; chaos < 4; chaos++) {
            // A memory that stalls as it likes is for a part that stores the whole payload.
            if (START >= 4096) {
                memory.latency = unsigned(below(40)), memory.jitter = unsigned(below(30)), memory.percent = chaos & 1 ? 40 : 100;
                link = chaos & 2 ? Link::random : Link::always;
            } else {
                memory.latency = unsigned(below(60)), memory.stall = chaos & 1 ? (W == 32 ? 2 : 1) * START / B * 3 / 4 : 0, memory.every = W == 32 ? 64 : 1024;
                link = chaos & 2 || memory.stall ? Link::wire : Link::always;
            }
            percent = 30 + unsigned(below(60));
            job_percent = chaos == 3 ? 10 : 100;
            mad_percent = 20 + unsigned(below(80));
            every_opcode();
            mixed(300);
            errors();
            orders();
        }
        lengths(0, W == 32 ? 400 : 200);
        lengths(4096 - 2 * B - 2, 4096);
        for (int i = 0; i < 40; i++) lengths(unsigned(below(4090)), 0), add_memory(0x10, place(unsigned(below(64))), unsigned(below(4097)));
        settle();
        bench::ok("packets");
        std::printf("%lu packets in %lu cycles, %lu faults\n", (unsigned long)packets, (unsigned long)cycle, (unsigned long)faults);
    }

    Bench() {
        d.rst = 1;
        d.src_ip = tx::OUR_IP;
        d.job_valid = d.mad_valid = d.rvalid = d.arready = d.o_ready = d.i_done = 0;
        d.finished = uint8_t(bench::rng());
        sim.clock(d.clk, 10000, [this] { sample(); }, [this] { drive(); });
        sim.run(100000);
        d.rst = 0;
        all();
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    tx::prove_icrc();
    bench::ok("ICRC of captured frames");
    Bench b;
    return bench::end();
}
