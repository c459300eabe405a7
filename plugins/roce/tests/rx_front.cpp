// top: rx_front
// param: W = 32, 512
// slow-param: W = 64, 128, 256
//
// Packets from a model that is first proven on frames of Linux: every field, every byte that reaches the memory and none besides, every
// length and alignment, truncations at every byte, flipped bits, atomic operations, datagrams, a memory that stalls and fails, line rate.
#include "captures.hpp"
#include "rx_memory.hpp"
#include "rx_packets.hpp"

using namespace bench;
using namespace rx;

namespace {

constexpr unsigned B = W / 8;
constexpr size_t SIZE = 1 << 17;  // of the memory
enum Action { DROP, WRITE, MAD, ATOMIC };

struct Todo {
    Action action;
    uint64_t addr;
    uint8_t slot;
    Bytes payload;
    uint8_t opcode;
    uint64_t swap, compare;
};

uint64_t load(const Bytes& m, uint64_t at) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v |= uint64_t(m[at + i]) << (8 * i);
    return v;
}

struct Bench {
    Sim<> sim;
    Vdut& d = sim.dut;
    Memory<Vdut, B> memory{sim.dut, SIZE};
    Bytes want = memory.bytes;

    // The link.
    std::deque<Datagram> queue;
    size_t at = 0;
    bool offered = false, accepted = false;
    unsigned percent = 100;
    std::function<bool()> pace;  // instead of `percent`: may a beat come now?
    bool must_take = false;      // i_ready has to be 1 then
    uint64_t last_beat = 0;

    // Packets sent that are not yet presented; all counts.
    std::deque<Datagram> sent;
    uint64_t expected[4] = {}, seen[4] = {}, overflows = 0, missed = 0, presented = 0;

    // The engine.
    unsigned slow = 0;      // most cycles before a decision
    unsigned wait = 0;
    bool shown = false, decide = true;
    bool allow_mad = true;
    int only_action = -1;
    std::function<uint64_t(size_t)> address = [](size_t n) { return below(SIZE - n - B); };
    Datagram now;
    std::deque<Todo> todo;  // actions on the memory that are not finished
    bool issuing = false;
    uint8_t issued = 0, finished = 0;
    uint64_t done = 0, atomics = 0, faults = 0, latency_most = 0, latency_sum = 0, latency_count = 0;
    size_t fault_burst = 0, mads_open = 0;
    std::vector<std::vector<uint32_t>> mads;
    std::vector<uint32_t> mad;
    size_t mad_count = 0;
    unsigned mad_percent = 100;
    uint64_t cycle = 0, faults_of_front = 0;

    uint64_t field(unsigned low, unsigned width) const {
        uint64_t v = 0;
        for (unsigned i = 0; i < width; i++) v |= uint64_t(d.packet[(low + i) / 32] >> ((low + i) % 32) & 1) << i;
        return v;
    }

    void offer() {
        const Datagram& p = queue.front();
        const size_t n = std::min<size_t>(B, p.bytes.size() - at);
        for (unsigned i = 0; i < B; i++) set_byte(d.i_data, i, i < n ? p.bytes[at + i] : uint8_t(rng()));
        for (unsigned i = 0; i < (B + 7) / 8; i++) {
            const unsigned left = n > 8 * i ? unsigned(n - 8 * i) : 0;
            set_byte(d.i_keep, i, left >= 8 ? 0xff : uint8_t((1u << left) - 1));
        }
        d.i_last = at + n >= p.bytes.size();
        d.i_err = d.i_last ? p.err : chance(50);
        const About& a = p.about;
        const std::pair<uint64_t, unsigned> fields[] = {{a.src_ip, 32}, {a.dst_ip, 32}, {a.src_port, 16}, {a.dst_port, 16}, {a.length, 16}, {a.id, 16}, {a.flags, 2}, {a.tos, 8}, {a.ttl, 8}, {a.checksum, 16}};
        unsigned bit = 162;
        for (unsigned i = 0; i < 6; i++) d.i_user[i] = 0;
        for (auto [value, width] : fields)
            for (unsigned k = width; k--;) {
                bit--;
                d.i_user[bit / 32] |= uint32_t(value >> k & 1) << (bit % 32);
            }
    }

    void drive_link() {
        if (accepted) {
            at += B;
            if (at >= queue.front().bytes.size()) {
                const Verdict v = judge(queue.front());
                expected[v]++;
                if (v == GOOD) sent.push_back(queue.front());
                queue.pop_front();
                at = 0;
                last_beat = cycle;
            }
            offered = false;
        }
        if (!offered) offered = !queue.empty() && (pace ? pace() : chance(percent));
        d.i_valid = offered;
        if (offered) offer();
        else d.i_last = uint8_t(rng() & 1), d.i_err = uint8_t(rng() & 1);
    }

    void check_fields() {
        while (!sent.empty() && be(sent.front().bytes, 9, 3) != field(271, 24)) sent.pop_front(), missed++;
        if (sent.empty()) {
            fail("front", __LINE__, "a packet out of nothing, psn %llx", (unsigned long long)field(271, 24));
            std::exit(1);
        }
        now = sent.front();
        sent.pop_front();
        const Bytes& b = now.bytes;
        CHECK(field(337, 8) == b[0], "opcode");
        CHECK(field(336, 1) == unsigned(b[1] >> 7), "se");
        CHECK(field(320, 16) == be(b, 2, 2), "pkey");
        CHECK(field(296, 24) == be(b, 5, 3), "dqpn");
        CHECK(field(295, 1) == unsigned(b[8] >> 7), "ackreq");
        CHECK(field(270, 1) == unsigned(b[4] >> 6 & 1), "becn");
        CHECK(field(269, 1) == unsigned((now.about.tos & 3) == 3), "ce");
        CHECK(field(237, 32) == now.about.src_ip, "source");
        for (size_t i = 0; i < ext_bytes(b[0]) / 4; i++) CHECK(field(unsigned(13 + 32 * (6 - i)), 32) == be(b, 12 + 4 * i, 4), "opcode %02x: word %zu of the extension headers", b[0], i);
        CHECK(field(0, 13) == payload(now).size(), "length %llu, not %zu", (unsigned long long)field(0, 13), payload(now).size());
        presented++;
        const uint64_t latency = cycle - last_beat;
        if (queue.empty() && !offered) latency_most = std::max(latency_most, latency), latency_sum += latency, latency_count++;
    }

    Bytes was_packet;
    Bytes snapshot() const {
        Bytes s;
        for (unsigned i = 0; i < 11; i++) for (int k = 0; k < 4; k++) s.push_back(uint8_t(d.packet[i] >> (8 * k)));
        return s;
    }

    void take() {
        const uint8_t opcode = now.bytes[0];
        const Bytes data = payload(now);
        Action action = opcode == 0x64 && data.size() == 256 && allow_mad && d.mad_room ? MAD
                        : opcode == 0x13 || opcode == 0x14 || (opcode == 0x12 && chance(80)) ? ATOMIC
                        : opcode != 0x64 && opcode != 0x81 && chance(90) ? WRITE : DROP;
        if (only_action >= 0) action = Action(only_action);
        Todo t{action, address(data.size()), uint8_t(rng()), data, opcode, 0, 0};
        if (action == ATOMIC) {
            const bool put = opcode == 0x12;
            if (put) t.addr = address(8);
            else t.addr &= ~7ull;
            t.swap = uint64_t(be(now.bytes, put ? 16 : 24, 4)) << 32 | be(now.bytes, put ? 20 : 28, 4);
            if (!put) t.compare = uint64_t(be(now.bytes, 32, 4)) << 32 | be(now.bytes, 36, 4);
        }
        d.take = 1;
        d.take_action = action;
        d.take_addr = t.addr | (rng() << 32);
        d.take_slot = t.slot;
        if (action == MAD) {
            std::vector<uint32_t> m{now.about.src_ip, be(now.bytes, 16, 4) & 0xffffff};
            for (int i = 0; i < 64; i++) m.push_back(be(data, 4 * i, 4));
            mads.push_back(m);
        }
        if (action == ATOMIC || (action == WRITE && !data.empty())) {
            todo.push_back(t);
            issuing = true;
        }
    }

    void sample() {
        if (d.rst) return;
        cycle++;
        if (d.i_valid || d.packet_valid || d.awvalid || d.wvalid || memory.busy()) quiet_since = cycle;
        memory.note();
        accepted = d.i_valid && d.i_ready;
        if (must_take && d.i_valid && !d.i_ready) fail("front", __LINE__, "not ready at line rate");
        seen[BAD_FRAME] += d.bad_frame;
        seen[MALFORMED] += d.malformed;
        seen[BAD_ICRC] += d.bad_icrc;
        overflows += d.overflow;
        CHECK(d.bad_frame + d.malformed + d.bad_icrc + d.overflow <= 1, "two events");
        CHECK(d.issued == issued, "issued %u, not %u", d.issued, issued);
        issued = uint8_t(issued + issuing);
        issuing = false;

        // A fault or the value of an atomic operation comes before `finished` counts it.
        if (d.fault_valid) {
            faults++;
            CHECK(!todo.empty() && d.fault_slot == todo.front().slot, "fault of slot %02x", d.fault_slot);
        }
        if (d.atomic_done) {
            CHECK(!todo.empty() && todo.front().action == ATOMIC && !atomic_seen, "an atomic operation out of turn");
            if (!todo.empty()) {
                CHECK(d.atomic_slot == todo.front().slot, "slot of an atomic operation");
                if (todo.front().opcode != 0x12 && !d.fault_valid && !fault_seen) CHECK(d.atomic_value == load(want, todo.front().addr), "atomic value %llx, not %llx", (unsigned long long)d.atomic_value, (unsigned long long)load(want, todo.front().addr));
            }
            atomic_seen = true;
        }
        if (d.fault_valid) fault_seen = true;
        if (d.finished != finished) {
            CHECK(d.finished == uint8_t(finished + 1) && !todo.empty(), "finished steps from %u to %u, %zu under way", finished, d.finished, todo.size());
            finished = d.finished;
            if (!todo.empty()) finish();
        }

        if (d.mad_valid && d.mad_ready) {
            mad.push_back(d.mad_data);
            CHECK(d.mad_last == (mad.size() == 66), "mad_last on word %zu", mad.size());
            if (d.mad_last) {
                CHECK(mad_count < mads.size() && mad == mads[mad_count], "datagram %zu is wrong", mad_count);
                mad_count++;
                mad.clear();
            }
        }
        if (d.packet_valid && !d.take) {
            if (!shown) {
                check_fields();
                wait = unsigned(below(slow + 1));
                shown = true;
                was_packet = snapshot();
            }
            CHECK(was_packet == snapshot(), "the packet presented changes");
        } else if (d.take) {
            shown = false;
            if (!d.packet_valid) fail("front", __LINE__, "bench: take of nothing");
        }
        memory.sample();
    }
    bool atomic_seen = false, fault_seen = false;

    void finish() {
        const Todo t = todo.front();
        todo.pop_front();
        done++;
        if (t.action == WRITE) {
            std::copy(t.payload.begin(), t.payload.end(), want.begin() + long(t.addr));
        } else {
            atomics++;
            CHECK(atomic_seen, "an atomic operation gave no value");
            const uint64_t old = load(want, t.addr);
            const uint64_t result = t.opcode == 0x12 ? t.swap : t.opcode == 0x14 ? old + t.swap : old == t.compare ? t.swap : old;
            // After a fault the write may have happened or not; if the read failed it has not.
            const uint64_t is = load(memory.bytes, t.addr);
            const uint64_t now = !fault_seen || is != old ? result : old;
            for (int i = 0; i < 8; i++) want[t.addr + i] = uint8_t(now >> (8 * i));
        }
        atomic_seen = fault_seen = false;
        const size_t n = t.action == ATOMIC ? 8 : t.payload.size();
        for (const Todo& o : todo) {
            const size_t m = o.action == ATOMIC ? 8 : o.payload.size();
            if (t.addr < o.addr + m && o.addr < t.addr + n) return;
        }
        CHECK(std::equal(want.begin() + long(t.addr), want.begin() + long(t.addr + n), memory.bytes.begin() + long(t.addr)), "%zu bytes at %llx finished and wrong", n,
              (unsigned long long)t.addr);
    }

    void drive() {
        drive_link();
        memory.drive();
        d.mad_ready = chance(mad_percent);
        d.take = 0;
        d.take_action = uint8_t(below(4));
        if (!shown || !d.packet_valid) return;
        if (wait) wait--;
        else if (decide && d.take_ready) take();
    }

    void start() {
        sim.clock(d.clk, 10000, [this] { sample(); }, [this] { if (d.rst) idle(); else drive(); });
        d.rst = 1;
        sim.run(100000);
        d.rst = 0;
    }
    void idle() { d.i_valid = d.take = d.awready = d.wready = d.arready = d.bvalid = d.rvalid = d.mad_ready = 0; }

    void send(const Datagram& p) { queue.push_back(p); }

    /// Everything sent is dealt with, and the memory is what it has to be.
    void settle(const char* what) {
        const bool in_time = sim.until(400000000000, [&] { return queue.empty() && !shown && todo.empty() && mad_count == mads.size() && !d.packet_valid && quiet() && mad.empty(); });
        CHECK(in_time, "%s: hangs with %zu to send, %zu sent, %zu to do, %zu of %zu datagrams", what, queue.size(), sent.size(), todo.size(), mad_count, mads.size());
        if (!in_time) std::exit(1);
        missed += sent.size();
        sent.clear();
        for (int v = 1; v < 4; v++) CHECK(seen[v] == expected[v], "%s: event %d: %llu, not %llu", what, v, (unsigned long long)seen[v], (unsigned long long)expected[v]);
        CHECK(presented + overflows == expected[GOOD] && missed == overflows, "%s: %llu presented, %llu missed, %llu overflows of %llu", what, (unsigned long long)presented,
              (unsigned long long)missed, (unsigned long long)overflows, (unsigned long long)expected[GOOD]);
        size_t wrong = 0;
        while (wrong < SIZE && want[wrong] == memory.bytes[wrong]) wrong++;
        CHECK(wrong == SIZE, "%s: the memory differs at %zx", what, wrong);
        CHECK(d.issued == d.finished, "%s: issued and finished", what);
        ok(what);
    }
    uint64_t quiet_since = 0;
    bool quiet() const { return !offered && cycle > quiet_since + 40; }
};

Bench* b;
uint32_t psn = 1;

const uint8_t OPCODES[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x1f, 0x64, 0x81};

Datagram any(size_t most) {
    const uint8_t opcode = OPCODES[below(sizeof OPCODES)];
    if (opcode == 0x64 && chance(80)) return packet(opcode, psn++, 256);
    if (opcode == 0x13 || opcode == 0x14) return packet(opcode, psn++, 0);
    return packet(opcode, psn++, below(most + 1));
}

/// The schedule of a link: frames back to back, a beat when its bytes have come.
struct Line {
    double bytes_per_cycle, due = 0;
    uint64_t begun = 0;
    explicit Line(double rate) : bytes_per_cycle(rate) { due = double(b->cycle) * rate; }
    bool operator()() {
        const double now = double(b->cycle) * bytes_per_cycle;
        // Preamble, headers and the beat itself.
        const size_t n = b->queue.front().bytes.size();
        const bool there = now >= due + 8 + 42 + double(std::min<size_t>(b->at + B, n));
        if (there && b->at + B >= n) due += double(std::max<size_t>(n + 42, 60) + 24);
        return there;
    }
};

void line_rate(const char* what, double rate, unsigned engine, const std::function<Datagram()>& next, int count) {
    for (int i = 0; i < count; i++) b->send(next());
    const uint64_t before = b->overflows;
    b->slow = engine;
    b->pace = Line(rate);
    b->must_take = true;
    b->settle(what);
    b->must_take = false;
    b->pace = nullptr;
    CHECK(b->overflows == before, "%s: %llu overflows", what, (unsigned long long)(b->overflows - before));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    b = new Bench;
    b->start();

    // The model and the hardware on what Linux sends.
    unsigned frames = 0;
    for (const char* hex : captured) {
        Bytes f;
        for (const char* p = hex; *p; p += 2) f.push_back(uint8_t(std::stoi(std::string(p, 2), nullptr, 16)));
        Datagram g = from_frame(f);
        CHECK(judge(g) == GOOD, "captured frame %u, opcode %02x", frames, g.bytes[0]);
        const size_t byte = below(g.bytes.size() - 4);
        if (byte != 4) {
            Datagram broken = g;
            broken.bytes[byte] ^= uint8_t(1 << below(8));
            CHECK(judge(broken) != GOOD, "the model passes a flipped bit");
        }
        b->send(g);
        frames++;
        b->settle("a captured frame");
        if (failures) return end();
    }
    std::printf("%u captured frames; latency %.2f cycles, at most %llu\n", frames, double(b->latency_sum) / double(b->latency_count), (unsigned long long)b->latency_most);

    // Latency with a word every second cycle.
    b->pace = [] { return b->cycle % 2 == 0; };
    b->latency_most = 0;
    for (int i = 0; i < 40; i++) b->send(packet(0x0a, psn++, 1 + below(300))), b->settle("one packet");
    b->pace = nullptr;
    std::printf("latency of packets with 36 bytes and more: at most %llu cycles\n", (unsigned long long)b->latency_most);
    CHECK(b->latency_most <= (W == 32 ? 3 : 7), "latency");

    for (uint8_t opcode : OPCODES) b->send(packet(opcode, psn++, opcode == 0x64 ? 256 : 64));
    b->settle("every opcode");

    // Lengths and alignments.
    for (unsigned n = 0; n <= 4096; n = n < 3 * B + 20 || n > 4090 ? n + 1 : n + 1 + unsigned(below(80))) b->send(packet(OPCODES[6 + below(6)] == 0x0c ? 0x0a : uint8_t(6 + below(6)), psn++, n));
    b->settle("lengths");
    for (unsigned a = 0; a < B; a += 1 + unsigned(below(B / 16)))
        for (int i = 0; i < (W == 32 ? 100 : 24); i++) b->send(packet(uint8_t(6 + below(6)), psn++, below(3 * B + 2)));
    unsigned lane = 0;
    b->address = [&](size_t n) { return below((SIZE - n - B) / B) * B + lane++ % B; };
    b->memory.percent = 70;
    b->settle("alignments");
    b->address = [](size_t n) { return below(SIZE - n - B); };

    // Everything mixed, with a slow memory, a slow engine and pauses.
    for (unsigned round = 0; round < 6; round++) {
        b->memory.percent = 20 + unsigned(below(81));
        b->percent = 20 + unsigned(below(81));
        b->slow = unsigned(below(30));
        b->mad_percent = 10 + unsigned(below(91));
        for (int i = 0; i < 150; i++) b->send(any(chance(80) ? 100 : 1500));
        b->settle("a mix");
    }

    // Atomic operations on few words.
    b->address = [](size_t n) { return n ? below(96) : below(8) * 8; };
    for (int i = 0; i < 300; i++) {
        Datagram g = packet(uint8_t(0x12 + below(3)), psn++, 0);
        if (g.bytes[0] == 0x13 && chance(70)) {  // compares with what is there now, which is often what is there then
            const uint64_t v = load(b->want, below(8) * 8);
            for (int k = 0; k < 8; k++) g.bytes[32 + k] = uint8_t(v >> (8 * (7 - k)));
            if (chance(50)) for (int k = 0; k < 8; k++) g.bytes[24 + k] = g.bytes[32 + k];
            g.bytes.resize(40);
            seal(g);
        }
        b->send(g);
        if (chance(30)) b->send(packet(0x0a, psn++, 1 + below(40)));
        if (chance(10)) b->settle("atomic operations");
    }
    b->settle("atomic operations");
    b->address = [](size_t n) { return below(SIZE - n - B); };

    // Truncations at every byte, with the ICRC that is there then and with a right one; a good packet after each.
    b->percent = 100;
    b->memory.percent = 100;
    b->slow = 3;
    for (uint8_t opcode : OPCODES) {
        const Datagram whole = packet(opcode, psn++, below(24));
        for (size_t n = 0; n < whole.bytes.size(); n++) {
            Datagram cut = whole;
            cut.bytes.resize(n);
            cut.about.length = uint16_t(n);
            b->send(cut);
            b->send(packet(0x0a, psn++, below(8)));
            if (n >= 12 && n % 4 == 0) {
                const uint32_t p = psn++;
                for (int k = 0; k < 3; k++) cut.bytes[9 + k] = uint8_t(p >> (8 * (2 - k)));
                seal(cut);
                b->send(cut);
                b->send(packet(0x0a, psn++, below(8)));
            }
        }
        b->only_action = opcode >= 0x12 && opcode <= 0x14 ? DROP : -1;
        b->settle("truncations");
        b->only_action = -1;
    }

    // A flipped bit anywhere: in the payload, in what the ICRC covers of the headers.
    for (int i = 0; i < 600; i++) {
        Datagram g = any(60);
        if (chance(70)) g.bytes[below(g.bytes.size())] ^= uint8_t(1 << below(8));
        else switch (below(6)) {
            case 0: g.about.src_ip ^= 1u << below(32); break;
            case 1: g.about.dst_ip ^= 1u << below(32); break;
            case 2: g.about.src_port ^= uint16_t(1 << below(16)); break;
            case 3: g.about.id ^= uint16_t(1 << below(16)); break;
            case 4: g.about.flags ^= uint8_t(1 << below(2)); break;
            default: g.about.tos = uint8_t(rng()), g.about.ttl = uint8_t(rng()), g.about.checksum = uint16_t(rng());
        }
        b->send(g);
        if (chance(30)) b->send(any(60));
    }
    b->settle("flipped bits");
    // Wrong on purpose, with a right ICRC.
    for (int i = 0; i < 400; i++) {
        Datagram g = packet(uint8_t(rng()), psn++, below(40));
        g.bytes.resize(g.bytes.size() - 4);
        if (chance(50)) g.bytes[1] ^= uint8_t(1 << below(6));
        if (chance(20)) g.bytes.resize(g.bytes.size() + 4 * below(1030), 0x55);
        seal(g);
        if (chance(10)) {  // a provider may cut what it drops
            g.err = true;
            if (chance(50)) g.bytes.resize(1 + below(g.bytes.size()));
        }
        b->send(g);
    }
    b->only_action = WRITE;
    b->settle("wrong fields");
    b->only_action = -1;
    for (size_t n : {4096u, 4097u, 4100u, 8191u, 8192u, 9000u, 20000u}) b->send(packet(0x07, psn++, n)), b->send(packet(0x07, psn++, 5));
    b->settle("long packets");
    // A packet larger than the receive RAM comes while one waits for its decision.
    b->decide = false;
    b->send(packet(0x07, psn++, 4096));
    b->send(packet(0x07, psn++, 20000));
    b->sim.run(200000000);
    CHECK(b->queue.empty() && b->shown, "a packet waits");
    b->decide = true;
    b->settle("one too long behind one that waits");

    // The memory stands still until the receive RAM is full: whole packets are lost, counted, and nothing else is.
    for (int round = 0; round < 3; round++) {
        const uint64_t lost = b->overflows;
        b->memory.stalled = true;
        for (int i = 0; i < 40; i++) b->send(packet(uint8_t(7 + below(2)), psn++, 1 + below(4096)));
        b->decide = true;
        b->sim.run(400000000);
        b->memory.stalled = false;
        b->settle("a stall");
        CHECK(b->overflows > lost || round, "nothing was lost");
    }
    // Nearly: room comes in the middle of packets.
    b->memory.percent = 12;
    for (int i = 0; i < 60; i++) b->send(packet(0x07, psn++, 1 + below(chance(50) ? 4096 : 600)));
    b->settle("a slow memory");
    b->memory.percent = 100;
    std::printf("%llu packets lost for want of room\n", (unsigned long long)b->overflows);

    // A backlog leaves at one beat per cycle.
    for (int i = 0; i < 12; i++) b->send(packet(0x07, psn++, 1000 + below(24)));
    b->slow = 0;
    b->memory.percent = 100;
    b->memory.stalled = true;
    b->sim.run(100000000);
    CHECK(b->queue.empty(), "a backlog of 12 packets has no room");
    const uint64_t beats = b->memory.beats, from = b->cycle;
    b->memory.stalled = false;
    CHECK(b->sim.until(1000000000, [] { return b->todo.empty(); }), "the backlog does not leave");
    const double share = double(b->memory.beats - beats) / double(b->cycle - from);
    std::printf("a backlog leaves at %.3f beats per cycle\n", share);
    CHECK(share > (W == 32 ? 0.97 : W == 512 ? 0.8 : 0.88), "slow");
    b->settle("a backlog");
    b->slow = 3;

    // Errors of the memory.
    b->memory.errors = 20;
    for (int i = 0; i < 300; i++) b->send(chance(30) ? packet(uint8_t(0x12 + below(3)), psn++, 0) : any(200));
    b->settle("faults");
    b->memory.errors = 0;
    CHECK(b->faults >= uint64_t(std::count(b->memory.bad_bursts.begin(), b->memory.bad_bursts.end(), true)), "%llu faults of %zu", (unsigned long long)b->faults,
          size_t(std::count(b->memory.bad_bursts.begin(), b->memory.bad_bursts.end(), true)));

    // Line rate.
    const double rate = W == 32 ? 2 : W == 64 ? 8 : W == 128 ? 12.5 : W == 256 ? 25 : 50;
    const unsigned engine = W == 32 ? 25 : 6;
    b->mad_percent = 100;
    line_rate("line rate, 1024 bytes", rate, engine, [] { return packet(0x07, psn++, 1024); }, 100);
    line_rate("line rate, 4096 bytes", rate, engine, [] { return packet(0x07, psn++, 4096); }, 30);
    line_rate("line rate, 256 bytes", rate, W == 32 ? engine : 2, [] { return packet(0x07, psn++, 256); }, W >= 512 ? 0 : 100);
    if (W <= 64) line_rate("line rate, shortest", rate, W == 32 ? engine : 2, [] { return packet(chance(50) ? 0x07 : 0x11, psn++, 0); }, 300);
    if (W == 32) line_rate("line rate, mix", rate, 15, [] { return packet(uint8_t(chance(30) ? 0x11 : 0x07), psn++, below(200)); }, 300);
    std::printf("%llu packets, %llu actions, %llu atomic operations, %zu datagrams, %llu faults, %llu cycles\n", (unsigned long long)b->presented, (unsigned long long)b->done,
                (unsigned long long)b->atomics, b->mad_count, (unsigned long long)b->faults, (unsigned long long)b->cycle);
    return end();
}
