// top: bench_key_exchanger
//
// Echo, key exchange, the server of ucmatose and the client of rping, each alone, then all at once with peers that go.
#include "world.hpp"

using namespace world;

namespace {

enum Registers { ACCEPTED, REJECTED, CLOSED, ACTIVE, ERRORS, ROUNDS, ECHOED, MESSAGES, KEYS, KEY_QP, KEY_RKEY, KEY_LOW, KEY_HIGH, KEY_LENGTH };
enum { CLIENT = 14, CLIENT_FAILED, CLIENT_REASON, CLIENT_ROUNDS, CLIENT_WRONG, PEER_ADDRESS = 32, PEER_PORT, PEER_SIZE, PEER_ROUNDS };
constexpr uint32_t OWN_HIGH = 0x12, OWN_KEY = 0x305;

/// `rdma_client`, again and again.
struct Echo : Peer {
    unsigned rounds = 1, done = 0, window = 1;
    std::deque<Bytes> sent{};
    void next() {
        sent.push_back(bench::random_bytes(below(4) ? 16 : below(MESSAGE + 1)));
        send(sent.back());
    }
    void established() override {
        for (unsigned i = 0; i < window; i++) next();
    }
    void message(const Bytes& bytes) override {
        CHECK(bytes == sent.front(), "echo %u of %zu bytes differs", done, sent.front().size());
        sent.pop_front();
        done++;
        if (done + sent.size() < rounds) next();
        if (done == rounds) world->disconnect(*this);
    }
};

/// `ucmatose -s ADDRESS`.
struct Ucmatose : Peer {
    unsigned got = 0;
    bool broken = false;
    void message(const Bytes& bytes) override {
        CHECK(bytes.size() == 100, "%zu bytes", bytes.size());
        if (++got == 10)
            for (int i = 0; i < 10; i++) send(bench::random_bytes(100));
        CHECK(got <= 10, "%u messages", got);
    }
};

/// A host that gives its keys.
struct Host : Peer {
    std::vector<Bytes> answers{};
    void message(const Bytes& bytes) override { answers.push_back(bytes); }
};

/// `rping -s`.
struct Server : Peer {
    bool second = false, spoil = false, silent = false;
    unsigned rounds = 0;
    size_t size = 0;
    uint32_t address = 0;
    Bytes data{};
    void message(const Bytes& m) override {
        CHECK(m.size() == 16 && get32(m, 0) == OWN_HIGH && get32(m, 8) == OWN_KEY && get32(m, 12) == size, "%zu bytes, address %x, key %x, size %x", m.size(), get32(m, 0), get32(m, 8), get32(m, 12));
        address = get32(m, 4);
        CHECK(address >= BASE + 4 * MESSAGE * SLOTS && address + size <= BASE + SIZE, "buffer at %x", address);
        if (silent) return;
        uint8_t* at = world->at(address);
        if (!second) {
            Bytes before = data;
            data.assign(at, at + size);
            CHECK(data.back() == 0 && std::count(data.begin(), data.end(), 0) == 1, "the buffer is no text");
            CHECK(before != data, "the same text twice");
        } else {
            CHECK(std::all_of(at, at + size, [](uint8_t b) { return b == 0; }), "the buffer is not cleared");
            std::copy(data.begin(), data.end(), at);
            if (spoil) at[below(size)] ^= uint8_t(1 << below(8));
            rounds++;
        }
        second = !second;
        send(bench::random_bytes(16));
    }
};

void rest(World& w) {
    CHECK(w.settle(), "not at rest");
    CHECK(w.read(ACTIVE) == 0, "%u connections left", w.read(ACTIVE));
}

void echo(World& w) {
    Echo c[SLOTS];
    for (auto& x : c) {
        x.rounds = 100, x.window = unsigned(1 + below(4));
        CHECK(w.connect(x, 7471), "no queue pair");
    }
    CHECK(w.until([&] { return std::all_of(c, c + SLOTS, [](auto& x) { return x.ended; }); }), "echo hangs");
    for (auto& x : c) CHECK(x.done == 100, "%u echoes", x.done);
    rest(w);
    CHECK(w.read(ECHOED) == 400, "%u counted", w.read(ECHOED));
    bench::ok("echo");
}

void ucmatose(World& w) {
    Ucmatose c[SLOTS];
    for (auto& x : c) CHECK(w.connect(x, 7472), "no queue pair");
    CHECK(w.until([&] { return std::all_of(c, c + SLOTS, [](auto& x) { return x.ended; }); }), "ucmatose hangs");
    for (auto& x : c) CHECK(x.got == 10, "%u messages", x.got);
    rest(w);
    CHECK(w.read(MESSAGES) == 40, "%u counted", w.read(MESSAGES));
    // One more than was agreed.
    Ucmatose rude;
    CHECK(w.connect(rude, 7472) && w.until([&] { return rude.accepted; }), "not accepted");
    for (int i = 0; i < 11; i++) rude.send({});
    CHECK(w.until([&] { return rude.ended; }), "ucmatose does not end");
    rest(w);
    bench::ok("ucmatose");
}

void keys(World& w) {
    w.given.clear();
    std::vector<uint32_t> data;
    std::vector<std::vector<uint32_t>> expected;
    Host h;
    CHECK(w.connect(h, 18515), "no queue pair");
    const uint32_t qpn = h.qpn;
    auto record = [&](uint32_t key, uint32_t high, uint32_t low, uint32_t length) { expected.push_back({1u << 31 | qpn, key, low, high, length}); };
    CHECK(w.until([&] { return h.accepted; }), "not accepted");
    CHECK(h.answer == (std::vector<uint32_t>{0x12, 0, 0x305, 1 << 20, 0x34, 0x8000, 0x400, 64, 0, 0, 0, 0, 0, 0}), "private data");
    // Messages of none to ten records, then one of rping's form.
    for (int i = 0; i < 20; i++) {
        Bytes m;
        for (uint64_t n = below(11); n; n--) {
            const uint32_t key = uint32_t(bench::rng()), high = uint32_t(bench::rng()), low = uint32_t(bench::rng());
            put32(m, key), put32(m, high), put32(m, low);
            record(key, high, low, 0);
        }
        h.send(m);
    }
    h.send([] { Bytes m; put32(m, 7), put32(m, 8), put32(m, 9), put32(m, 10); return m; }());
    record(9, 7, 8, 10);
    CHECK(w.until([&] { return w.given.size() == expected.size() && h.answers.size() == 1; }), "%zu keys of %zu", w.given.size(), expected.size());
    CHECK(w.given == expected, "keys differ");
    const Bytes& a = h.answers[0];
    CHECK(a.size() == 16 && get32(a, 0) == 0x12 && get32(a, 4) == 0 && get32(a, 8) == 0x305 && get32(a, 12) == 1 << 20, "answer");
    CHECK(w.read(KEYS) == expected.size() && w.read(KEY_QP) == (1u << 31 | qpn) && w.read(KEY_RKEY) == 9 && w.read(KEY_LOW) == 8 && w.read(KEY_HIGH) == 7 && w.read(KEY_LENGTH) == 10, "registers");
    w.disconnect(h);
    rest(w);
    expected.push_back({qpn, 0, 0, 0, 0});
    CHECK(w.given == expected, "the end of the keys");
    CHECK(w.read(KEY_QP) == qpn, "register key_qp is %x", w.read(KEY_QP));

    // In private data: none to four records.
    for (unsigned n = 0; n <= 4; n++) {
        w.given.clear(), expected.clear();
        Host p;
        std::vector<uint32_t> words;
        const uint32_t next = (w.generation + 1) << 2;
        for (unsigned i = 0; i < n; i++) {
            words.insert(words.end(), {100 + i, 200 + i, 300 + i});
            expected.push_back({1u << 31 | next, 100 + i, 300 + i, 200 + i, 0});
        }
        CHECK(w.connect(p, 18515, words) && p.qpn == next, "no queue pair");
        CHECK(w.until([&] { return p.accepted; }), "not accepted");
        w.sim.run(10'000'000);
        CHECK(w.given == expected, "keys of private data, %u", n);
        // Eleven bytes are no record.
        if (n == 2) p.send(bench::random_bytes(23));
        else w.disconnect(p);
        CHECK(w.until([&] { return p.ended; }), "does not end");
        rest(w);
    }
    bench::ok("keys");
}

/// A call of the board, with the peer that answers; null: nobody.
void call(World& w, Server* s, uint32_t size, uint32_t rounds) {
    w.called = [&w, s, size](const std::vector<uint32_t>& r) {
        CHECK(r.size() == 3 && r[0] == 1u << 28 && r[1] == 0x0a000002 && r[2] == 7174, "CONNECT");
        if (!s) return w.evt.give({4u << 28, 8});
        s->size = size;
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            Qp& q = w.qps[slot];
            if (q.qpn) continue;
            q = Qp{};
            q.qpn = s->qpn = ++w.generation << 2 | slot;
            q.peer = s;
            q.open = true;
            s->world = &w;
            w.evt.give({2u << 28, q.qpn, r[1], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
            return;
        }
        w.evt.give({4u << 28, 1});
    };
    CHECK(w.write(PEER_ADDRESS, 0x0a000002) == 0 && w.write(PEER_PORT, 7174) == 0 && w.write(PEER_SIZE, size) == 0, "registers");
    CHECK(w.write(PEER_ROUNDS, rounds) == 0, "the call is refused");
}

void client(World& w) {
    uint32_t rounds = 0;
    for (uint32_t size : {4u, 8u, 64u, 1000u, BUFFER}) {
        Server s;
        call(w, &s, size, 5);
        CHECK(w.write(PEER_ROUNDS, 1) == 2, "two calls at a time");
        CHECK(w.until([&] { return s.ended; }), "the client hangs at %u bytes in round %u", size, s.rounds);
        CHECK(s.rounds == 5, "%u rounds", s.rounds);
        rest(w);
        rounds += 5;
        CHECK(w.read(CLIENT) == 0 && w.read(CLIENT_ROUNDS) == rounds && w.read(CLIENT_WRONG) == 0, "%u rounds, %u words wrong", w.read(CLIENT_ROUNDS), w.read(CLIENT_WRONG));
    }
    Server s;
    s.spoil = true;
    call(w, &s, 256, 3);
    CHECK(w.until([&] { return s.ended; }), "the client hangs");
    rest(w);
    CHECK(w.read(CLIENT_WRONG) == 3, "%u words wrong", w.read(CLIENT_WRONG));

    call(w, nullptr, 256, 3);
    rest(w);
    CHECK(w.read(CLIENT) == 0 && w.read(CLIENT_FAILED) == 1 && w.read(CLIENT_REASON) == 8, "a call that fails");
    for (uint32_t wrong : {0u, 3u, 6u, BUFFER + 4}) CHECK(w.write(PEER_SIZE, wrong) == 0 && w.write(PEER_ROUNDS, 1) == 2, "size %u", wrong);

    // Gone at any time; what it walks through ends with it.
    for (int i = 0; i < 30; i++) {
        Server gone;
        gone.silent = below(4) == 0;
        call(w, &gone, 64, 100);
        CHECK(w.until([&] { return gone.qpn != 0; }), "no connection");
        w.sim.run(below(50'000'000));
        Qp* q = w.find(gone.qpn);
        if (below(2)) w.fail(*q, ACCESS);
        else w.disconnect(gone);
        CHECK(w.until([&] { return gone.ended; }), "the client does not hang up");
        rest(w);
        CHECK(w.read(CLIENT) == 0, "a client is left");
    }
    bench::ok("client of rping");
}

/// A call goes on while others come and go.
void together(World& w) {
    std::vector<std::unique_ptr<Peer>> all;
    Server s;
    const uint32_t before = w.read(CLIENT_ROUNDS);
    call(w, &s, 512, 40);
    unsigned begun = 0, served = 0;
    w.on_cycle = [&] {
        if (below(500) == 0) {
            std::unique_ptr<Peer> p;
            uint16_t port = 0;
            switch (below(3)) {
                case 0: p = std::make_unique<Echo>(), static_cast<Echo&>(*p).rounds = unsigned(1 + below(10)), port = 7471; break;
                case 1: p = std::make_unique<Ucmatose>(), port = 7472; break;
                default: p = std::make_unique<Host>(), port = 18515; break;
            }
            // The call needs a queue pair.
            if (s.qpn && w.connect(*p, port)) all.push_back(std::move(p)), begun++;
        }
        Qp& q = w.qps[below(SLOTS)];
        if (below(3000) == 0 && q.qpn && q.peer != &s) w.disconnect(*q.peer);
    };
    CHECK(w.sim.until(400'000'000'000, [&] { return s.ended; }), "the client hangs in round %u", s.rounds);
    w.on_cycle = [] {};
    for (auto& p : all) {
        if (Echo* e = dynamic_cast<Echo*>(p.get())) served += e->done == e->rounds;
        if (Ucmatose* u = dynamic_cast<Ucmatose*>(p.get())) served += u->got == 10;
        if (dynamic_cast<Host*>(p.get())) w.disconnect(*p);
    }
    CHECK(w.until([&] { return std::all_of(all.begin(), all.end(), [](auto& p) { return p->ended; }); }), "somebody hangs");
    rest(w);
    CHECK(w.read(CLIENT_ROUNDS) - before == 40 && s.rounds == 40, "%u rounds", s.rounds);
    CHECK(served > begun / 10, "%u of %u served", served, begun);
    std::printf("%u connections beside 40 rounds of the client, %u served to the end\n", begun, served);
    bench::ok("all together");
}

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    World w;
    echo(w);
    ucmatose(w);
    keys(w);
    client(w);
    for (unsigned percent : {50u, 100u}) {
        w.percent = percent;
        w.speed = percent == 100 ? 30 : 3;
        together(w);
    }
    std::printf("%u times not ready, %u records for queue pairs that were gone\n", w.not_ready, w.dropped);
    return bench::end();
}
