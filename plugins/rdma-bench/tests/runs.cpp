// top: bench_rdma_bench
//
// Runs of every operation, started by messages and by registers: every byte that moves, every field of the result, times to the cycle; commands that make
// no sense, requests that fail, peers that go at any time.
#include "board.hpp"

using namespace board;

namespace {

/// A command that fits the peer's memory, of which `room` bytes are used.
Command random_command(const Peer& p) {
    Command c;
    c.op = uint32_t(below(8));
    const bool atomic = c.op == CMP_SWAP || c.op == FETCH_ADD;
    c.size = atomic ? 8 : uint32_t(below(4) ? below(400) : below(4097));
    c.count = uint32_t(1 + below(20));
    c.depth = uint32_t(below(12));
    c.rkey = p.key;
    c.span = below(2) ? 0 : uint32_t(std::min<uint64_t>(c.size * (1 + below(5)) + (atomic ? 0 : below(20)), 8192));
    if (c.span < c.size) c.span = 0;
    c.offset = uint32_t(below(3) ? below(BUFFER - c.whole() + 1) : BUFFER - c.whole());
    c.address = p.address + below(p.memory.size() - c.whole() + 1) / (atomic ? 8 : 1) * (atomic ? 8 : 1);
    c.seed = uint32_t(bench::rng());
    c.operand = bench::rng(), c.compare = below(2) ? bench::rng() : 0;
    if (c.op <= SEND_IMM) c.flags = FILL | (below(2) ? INVERT : 0) | (below(2) ? CHECK_IT : 0);
    if (c.op == IN_TURN) c.flags = FILL | CHECK_IT;
    if (c.op == READ) c.flags = CHECK_IT | (below(2) ? FILL : 0) | (below(2) ? INVERT : 0);
    return c;
}

/// What a run must do, on copies of both memories.
struct Model {
    Bytes here, there, sent;
    uint32_t wrong = 0;
    std::vector<Bytes> messages{};

    Model(Board& b, const Peer& p, const Command& c) : here(b.memory), there(p.memory), sent() {
        const uint32_t start = BUFFER_AT - BASE + c.offset, whole = c.whole(), first = start / 64 * 64, seed = c.flags & INVERT ? ~c.seed : c.seed;
        if (c.flags & FILL && whole)
            for (uint32_t i = first; i < (start + whole + 63) / 64 * 64; i++) here[i] = pattern(seed, i - first);
        uint32_t at = 0;
        for (uint32_t n = 0; n < c.count; n++) {
            uint8_t *h = &here[start] + at, *t = there.data() + (c.address - p.address) + at;
            if (c.op <= WRITE_IMM || (c.op == IN_TURN && n % 2 == 0)) std::copy_n(h, c.size, t);
            if (c.op == READ || (c.op == IN_TURN && n % 2)) std::copy_n(t, c.size, h);
            if (c.op == SEND || c.op == SEND_IMM) messages.push_back(Bytes(h, h + c.size));
            if (c.op == CMP_SWAP || c.op == FETCH_ADD) {
                uint64_t old = 0;
                for (int i = 7; i >= 0; i--) old = old << 8 | t[i];
                const uint64_t value = c.op == FETCH_ADD ? old + c.operand : old == c.compare ? c.operand : old;
                for (int i = 0; i < 8; i++) h[i] = uint8_t(old >> 8 * i), t[i] = uint8_t(value >> 8 * i);
            }
            if (c.op != IN_TURN || n % 2) at += c.size;
            if (at + c.size > whole) at = 0;
        }
        if (c.flags & CHECK_IT && whole)
            for (uint32_t word = start / 4; word <= (start + whole - 1) / 4; word++) {
                bool differs = false;
                for (uint32_t i = std::max(start, 4 * word); i < std::min(start + whole, 4 * word + 4); i++) differs |= here[i] != pattern(c.seed, i - first);
                wrong += differs;
            }
    }
};

/// A run is over: `result` against what was seen from outside and against the model.
void compare(Board& b, const Peer& p, const Command& c, const Model& m, const std::array<uint32_t, 7>& result) {
    const Seen& s = p.seen;
    const uint32_t depth = c.depth == 0 || c.depth > DEPTH ? DEPTH : c.depth;
    CHECK(s.posted == c.count && s.completed == c.count, "%u posted, %u completed of %u", s.posted, s.completed, c.count);
    CHECK(s.most <= depth, "%u outstanding, depth %u", s.most, depth);
    CHECK(result[0] == 0 && result[1] == c.count, "status %x, %u of %u done", result[0], result[1], c.count);
    CHECK((uint64_t(result[2]) << 32 | result[3]) == s.last - s.first, "%u cycles, %llu seen", result[3], (unsigned long long)(s.last - s.first));
    CHECK(result[4] == s.least_latency && result[5] == s.most_latency, "latency %u to %u, %llu to %llu seen", result[4], result[5],
          (unsigned long long)s.least_latency, (unsigned long long)s.most_latency);
    CHECK(result[6] == m.wrong, "op %u size %u span %u offset %u: %u words wrong, not %u", c.op, c.size, c.span, c.offset, result[6], m.wrong);
    CHECK(std::equal(m.here.begin() + (BUFFER_AT - BASE), m.here.end(), b.memory.begin() + (BUFFER_AT - BASE)), "op %u size %u span %u: the board's memory", c.op, c.size, c.span);
    CHECK(p.memory == m.there, "op %u size %u span %u: the peer's memory", c.op, c.size, c.span);
    CHECK(p.messages == m.messages, "%zu messages, not %zu, or other ones", p.messages.size(), m.messages.size());
    if (c.op == WRITE_IMM || c.op == SEND_IMM) {
        CHECK(p.immediates.size() == c.count, "%zu immediates", p.immediates.size());
        for (uint32_t i = 0; i < p.immediates.size(); i++) CHECK(p.immediates[i] == i, "immediate %u", p.immediates[i]);
    }
}

/// Memory of the peer as a READ wants it, a few words of it spoilt or not.
void prepare(Peer& p, const Command& c) {
    p.seen = {}, p.messages.clear(), p.immediates.clear(), p.results.clear();
    if (c.op != READ) return;
    const uint32_t skew = (BUFFER_AT + c.offset) % 64;
    for (uint32_t i = 0; i < c.whole(); i++) p.memory[c.address - p.address + i] = pattern(c.seed, i + skew);
    if (c.whole() && below(2))
        for (uint64_t n = below(4); n; n--) p.memory[c.address - p.address + below(c.whole())] ^= uint8_t(1u << below(8));
}

void by_message(Board& b, Peer& p, unsigned count) {
    unsigned wrong = 0;
    for (unsigned n = 0; n < count; n++) {
        b.percent = unsigned(20 + below(81)), b.speed = unsigned(2 + below(99)), b.memory_speed = unsigned(20 + below(81));
        const Command c = random_command(p);
        prepare(p, c);
        const Model m(b, p, c);
        b.send(p, c);
        CHECK(b.until([&] { return !p.results.empty() || p.ended; }), "op %u size %u count %u: no result", c.op, c.size, c.count);
        CHECK(p.results.size() == 1, "%zu results", p.results.size());
        if (p.results.empty()) return;
        compare(b, p, c, m, p.results[0]);
        wrong += m.wrong != 0 && c.op == READ;
    }
    CHECK(wrong > count / 40, "only %u READs with wrong words", wrong);
    bench::ok("runs by message");
}

void by_register(Board& b, Peer& p, unsigned count) {
    for (unsigned n = 0; n < count; n++) {
        b.percent = unsigned(20 + below(81)), b.speed = unsigned(2 + below(60));
        const Command c = random_command(p);
        prepare(p, c);
        const Model m(b, p, c);
        const auto words = c.words();
        for (uint32_t i = 0; i < words.size(); i++) CHECK(b.set(OP + i, words[i]) == 0, "register %u", OP + i);
        CHECK(b.set(QP, below(2) ? p.qpn : 0) == 0 && b.set(START, 1) == 0, "the run is refused");
        bool busy = false;
        for (;;) {
            const bool before = b.get(STATE) != 0;
            const uint32_t response = b.set(SEED, c.seed);
            if (!before) break;
            busy |= response == 2;
            CHECK(response == 2 || b.get(STATE) == 0, "a register is written during a run");
        }
        std::array<uint32_t, 7> result;
        for (uint32_t i = 0; i < 7; i++) result[i] = b.get(STATUS + i);
        compare(b, p, c, m, result);
        if (c.count > 10 && c.depth == 1) CHECK(busy, "nobody was refused");
        CHECK(p.results.empty(), "a result for nobody");
    }
    bench::ok("runs by registers");
}

/// The loop is fast enough: 64 KiB at 100 Gbit/s and 250 MHz are 1337 cycles, 4 KiB at 1 Gbit/s and 62.5 MHz 2089, at 10 Gbit/s and 156.25 MHz 522.
void rate(Board& b, Peer& p) {
    b.percent = b.speed = b.memory_speed = 100;
    Command c;
    c.size = 64, c.count = 2000, c.depth = DEPTH, c.rkey = p.key, c.address = p.address;
    prepare(p, c);
    b.send(p, c, 8);
    CHECK(b.until([&] { return !p.results.empty(); }), "no result");
    const double each = double(p.results[0][3]) / c.count;
    std::printf("%.0f cycles for a message\n", each);
    CHECK(each < 520, "%.0f cycles for a message", each);
    c.count = 30;
    for (uint32_t depth : {1u, 2u, 5u, 8u, 0u, 9u}) {
        const uint32_t most = depth == 0 || depth > DEPTH ? DEPTH : depth;
        c.depth = depth;
        prepare(p, c);
        b.speed = 100;
        b.send(p, c);
        CHECK(b.until([&] { return p.seen.posted != 0; }), "no request");
        b.speed = 0;
        b.sim.run(100'000'000);
        CHECK(p.seen.posted - p.seen.completed == most, "%u outstanding at depth %u", p.seen.posted - p.seen.completed, depth);
        b.speed = 100;
        CHECK(b.until([&] { return !p.results.empty(); }), "no result");
        CHECK(p.seen.most == most, "%u outstanding at depth %u", p.seen.most, depth);
    }
    bench::ok("rate and depth");
}

void refused(Board& b, Peer& p) {
    b.percent = 50, b.speed = 20, b.memory_speed = 50;
    const Command good = [&] { Command c; c.size = 64, c.count = 2, c.rkey = p.key, c.address = p.address; return c; }();
    std::vector<Command> wrong(9, good);
    wrong[0].op = 8 + uint32_t(below(100)), wrong[1].count = 0, wrong[2].op = CMP_SWAP, wrong[3].op = FETCH_ADD, wrong[3].size = 4, wrong[4].size = BUFFER + 1, wrong[5].span = 63;
    wrong[6].offset = BUFFER - 63, wrong[7].span = 0xffffffff, wrong[8].offset = 0xffffffc0;
    const uint32_t before = b.get(REFUSED);
    unsigned count = 0;
    auto expect = [&](uint32_t status) {
        CHECK(b.until([&] { return !p.results.empty() || p.ended; }), "no answer");
        CHECK(p.results.size() == 1 && p.results[0][0] == status, "status %x, not %x", p.results.empty() ? 0 : p.results[0][0], status);
        count += status == INVALID;
    };
    for (auto& c : wrong) {
        prepare(p, c);
        b.send(p, c);
        expect(INVALID);
        CHECK(p.seen.posted == 0, "a request of a command that makes no sense");
    }
    for (size_t bytes : {0u, 1u, 28u, 31u, 33u, 61u, 64u}) {
        prepare(p, good);
        b.send(p, bench::random_bytes(bytes));
        expect(INVALID);
    }
    for (size_t words = 8; words <= 15; words++) {
        prepare(p, good);
        b.send(p, good, words);
        expect(0);
    }
    for (uint32_t i = 0; i < 15; i++) CHECK(b.set(OP + i, wrong[0].words()[i]) == 0, "register %u", i);
    CHECK(b.set(QP, p.qpn) == 0 && b.set(START, 1) == 2 && b.get(STATUS) == INVALID, "a run that makes no sense");
    CHECK(b.set(OP, WRITE) == 0 && b.set(QP, p.qpn + SLOTS) == 0 && b.set(START, 1) == 2, "a run of nobody's");
    CHECK(b.set(ACTIVE, 1) == 2 && b.set(SEED, 1, 7) == 2, "writes that are none");
    count++;
    CHECK(b.get(REFUSED) - before == count, "%u refused, not %u", b.get(REFUSED) - before, count);
    bench::ok("commands that make no sense");
}

/// Errors of the memory count as wrong words: a fill ends the run, a check goes on.
void refusing(Board& b, Peer& p) {
    Command c;
    c.size = 1000, c.rkey = p.key, c.address = p.address, c.flags = FILL | CHECK_IT;
    for (unsigned n = 0; n < 10; n++) {
        c.op = n % 2 ? READ : WRITE, c.flags = n % 2 ? CHECK_IT : FILL;
        c.offset = uint32_t(below(64));
        prepare(p, c);
        if (c.op == READ)
            for (uint32_t i = 0; i < c.size; i++) p.memory[i] = pattern(c.seed, i + (BUFFER_AT + c.offset) % 64);
        b.refuses = BUFFER_AT + 64 + 4 * uint32_t(below(200));
        b.send(p, c);
        CHECK(b.until([&] { return !p.results.empty(); }), "no result");
        CHECK(p.results[0][0] == 0 && p.results[0][1] == n % 2 && p.results[0][6] == 1, "%u done, %u wrong", p.results[0][1], p.results[0][6]);
    }
    b.refuses = 0;
    bench::ok("a memory that refuses");
}

void keys(Board& b, Peer& p) {
    Command c;
    c.size = 256, c.count = 3, c.flags = GIVEN | FILL, c.seed = 5;
    auto run = [&](uint32_t status) {
        prepare(p, c);
        b.send(p, c);
        CHECK(b.until([&] { return !p.results.empty() || p.ended; }), "no answer");
        CHECK(p.results.size() == 1 && p.results[0][0] == status, "status %x, not %x", p.results.empty() ? 0 : p.results[0][0], status);
    };
    run(INVALID);
    b.keys.give({1u << 31 | 77, 1, 2, 3, 4});
    b.keys.give({1u << 31 | 78, p.key, uint32_t(p.address), uint32_t(p.address >> 32), 0});
    b.keys.give({77, 0, 0, 0, 0});
    b.rest();
    run(0);
    for (uint32_t i = 0; i < c.size; i++) CHECK(p.memory[i] == pattern(5, i + BUFFER_AT % 64), "byte %u", i);
    b.keys.give({78, 0, 0, 0, 0});
    b.rest();
    run(INVALID);
    CHECK(b.get(KEYS) == 2 && b.get(KEY_QP) == 0, "keys");
    bench::ok("keys that are given");
}

/// Requests that fail end the connection, with the first status in the registers.
void failing(Board& b) {
    for (int n = 0; n < 20; n++) {
        b.percent = unsigned(20 + below(81)), b.speed = unsigned(2 + below(99));
        Peer p;
        p.offer(4096);
        CHECK(b.connect(p) && b.until([&] { return p.accepted; }), "no connection");
        Command c;
        c.op = below(2) ? WRITE : READ, c.size = 100, c.span = 1000, c.count = 100, c.depth = uint32_t(1 + below(8)), c.rkey = p.key;
        // The last messages of the span lie outside.
        const uint32_t inside = uint32_t(below(10));
        c.address = p.address + p.memory.size() - 100 * inside - below(100);
        const uint32_t errors = b.get(ERRORS);
        b.send(p, c);
        CHECK(b.until([&] { return p.ended; }), "the board does not disconnect");
        b.rest();
        CHECK(b.get(STATE) == 0 && b.get(STATUS) == ACCESS && b.get(DONE) == inside, "state %u, status %x, %u done of %u", b.get(STATE), b.get(STATUS), b.get(DONE), inside);
        CHECK(b.get(ERRORS) - errors == p.seen.posted - inside, "%u errors of %u", b.get(ERRORS) - errors, p.seen.posted - inside);
        CHECK(p.results.empty() && b.get(ACTIVE) == 0, "after an error");
    }
    Peer p;
    CHECK(b.connect(p) && b.until([&] { return p.accepted; }), "no connection");
    b.send(p, bench::random_bytes(65));
    CHECK(b.until([&] { return p.ended; }), "the board does not disconnect");
    bench::ok("requests that fail");
}

/// Many peers, each with a command at a time; some go when they like.
void crowd(Board& b, unsigned rounds) {
    struct Guest : Peer {
        Command command{};
        bool waits = false;
    };
    std::vector<std::unique_ptr<Guest>> all;
    unsigned begun = 0, answered = 0;
    b.on_cycle = [&] {
        if (below(200) == 0 && begun < rounds) {
            auto g = std::make_unique<Guest>();
            g->offer(8192);
            if (b.connect(*g)) all.push_back(std::move(g)), begun++;
        }
        for (auto& g : all) {
            if (!g->accepted || g->ended) continue;
            if (g->waits && !g->results.empty()) {
                const auto& r = g->results[0];
                CHECK(g->results.size() == 1 && r[0] == 0 && r[1] == g->command.count, "status %x, %u of %u done", r[0], r[1], g->command.count);
                g->waits = false, answered++;
            }
            if (!g->waits && below(100) == 0) {
                if (below(4) == 0) {
                    b.disconnect(*g);
                    continue;
                }
                g->command = random_command(*g);
                g->results.clear(), g->messages.clear(), g->immediates.clear(), g->seen = {};
                g->waits = true;
                b.send(*g, g->command);
            } else if (below(100000) == 0) {
                if (below(2)) b.disconnect(*g);
                else if (Qp* q = b.find(g->qpn); !q->failed) b.fail(*q, ACCESS);
            }
        }
    };
    CHECK(b.sim.until(2'000'000'000'000, [&] { return begun == rounds && std::all_of(all.begin(), all.end(), [](auto& g) { return g->ended; }); }), "somebody hangs");
    b.on_cycle = [] {};
    b.rest();
    CHECK(b.get(ACTIVE) == 0 && b.get(STATE) == 0 && b.get(NEWEST) == 0, "%u connections left, state %u", b.get(ACTIVE), b.get(STATE));
    CHECK(b.get(ACCEPTED) == b.get(CLOSED), "%u accepted, %u closed", b.get(ACCEPTED), b.get(CLOSED));
    CHECK(answered > begun / 3, "%u answers for %u peers", answered, begun);
    std::printf("%u peers, %u answers\n", begun, answered);
    bench::ok("many peers");
}

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    Board b;
    Peer p;
    p.offer(20000);
    CHECK(b.connect(p) && b.until([&] { return p.accepted; }), "no connection");
    rate(b, p);
    by_message(b, p, 300);
    by_register(b, p, 40);
    refused(b, p);
    refusing(b, p);
    keys(b, p);
    b.disconnect(p);
    b.rest();
    failing(b);
    for (unsigned speed : {3u, 30u}) {
        b.percent = 60, b.speed = speed, b.memory_speed = 70;
        crowd(b, 60);
    }
    return bench::end();
}
