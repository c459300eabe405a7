// top: bench_key_exchanger
//
// rping's client against the server: every byte compared; several at once; peers that go in mid-exchange, requests that fail, messages
// that are none. At the end nothing is left: every buffer can be had again.
#include "world.hpp"

using namespace world;

namespace {

enum Registers { ACCEPTED, REJECTED, CLOSED, ACTIVE, ERRORS, ROUNDS, ECHOED };
constexpr uint16_t PORT = 7174;

unsigned rounds_done = 0;

/// `rping -c`.
struct Client : Peer {
    size_t size = 64;
    unsigned rounds = 1, done = 0;
    bool second = false;
    uint32_t source = 0, target = 0;
    unsigned extra = 0; // bytes that the second buffer has more

    void advertise(const Region& r, size_t bytes) {
        Bytes m;
        put32(m, r.address >> 32), put32(m, r.address), put32(m, r.key), put32(m, bytes);
        send(m);
    }
    void begin() {
        regions.clear();
        Region& r = offer(size, true, false);
        source = r.key;
        second = false;
        advertise(r, size);
    }
    void established() override { begin(); }
    void message(const Bytes& bytes) override {
        CHECK(bytes.size() == 16, "%zu bytes", bytes.size());
        if (!second) {
            Region& r = offer(size + extra, false, true);
            target = r.key;
            // It may be changed now: it has been read.
            original = regions[source].bytes;
            for (auto& b : regions[source].bytes) b = uint8_t(bench::rng());
            second = true;
            advertise(regions[target], size + extra);
            return;
        }
        const Bytes& got = regions[target].bytes;
        CHECK(std::equal(original.begin(), original.end(), got.begin()), "round %u of %zu bytes differs", done, size);
        rounds_done++;
        if (++done < rounds) begin();
        else world->disconnect(*this);
    }
    Bytes original{};
};

/// Connects and runs to the end.
void whole(World& w, Client& c) {
    c.done = 0;
    CHECK(w.connect(c, PORT), "no queue pair");
    CHECK(w.until([&] { return c.ended || c.rejected; }), "rping hangs after %u rounds of %zu bytes", c.done, c.size);
    CHECK(c.accepted && c.done == c.rounds, "%u rounds of %u", c.done, c.rounds);
}

void sizes(World& w) {
    for (size_t size : {size_t(0), size_t(1), size_t(4), size_t(63), size_t(64), size_t(1023), size_t(4096), size_t(below(4097))}) {
        Client c;
        c.size = size;
        c.rounds = unsigned(1 + below(10));
        c.extra = unsigned(below(3));
        whole(w, c);
    }
    bench::ok("sizes up to the buffer's");
}

void crowd(World& w) {
    Client c[SLOTS];
    for (auto& x : c) {
        x.size = 1 + below(BUFFER);
        x.rounds = 50;
        CHECK(w.connect(x, PORT), "no queue pair");
    }
    CHECK(w.until([&] { return std::all_of(c, c + SLOTS, [](auto& x) { return x.ended || x.rejected; }); }), "several at once hang");
    for (unsigned i = 0; i < SLOTS; i++) CHECK(c[i].rejected == (i >= BUFFERS) && (c[i].rejected || c[i].done == 50), "connection %u: %u rounds", i, c[i].done);
    bench::ok("as many at once as there are buffers, one more is refused");
}

/// Peers that break the rules are disconnected, by the board.
void rude(World& w) {
    const uint32_t errors = w.read(ERRORS);
    for (int kind = 0; kind < 5; kind++) {
        Client c;
        c.size = kind == 0 ? BUFFER + 1 : 100;
        c.rounds = 1000000;
        CHECK(w.connect(c, PORT), "no queue pair");
        CHECK(w.until([&] { return c.accepted; }), "not accepted");
        if (kind == 1) c.send(bench::random_bytes(15));
        if (kind == 2) c.send(bench::random_bytes(12)), c.send({});
        if (kind == 3) c.send(bench::random_bytes(MESSAGE + 1));
        if (kind == 4) {
            CHECK(w.until([&] { return c.done == 3; }), "no rounds");
            c.regions.clear();
        }
        CHECK(w.until([&] { return c.ended; }), "case %d: the board does not disconnect", kind);
        CHECK(w.settle(), "not at rest");
    }
    CHECK(w.read(ERRORS) - errors == 4, "%u errors counted", w.read(ERRORS) - errors);
    CHECK(w.read(ACTIVE) == 0, "%u connections left", w.read(ACTIVE));
    bench::ok("messages and buffers that are wrong end the connection");
}

/// Connections that come and go at any time, with failures.
void churn(World& w, unsigned count) {
    std::vector<std::unique_ptr<Client>> all;
    unsigned begun = 0, over = 0;
    auto start = [&] {
        auto c = std::make_unique<Client>();
        c->size = below(3) ? 1 + below(200) : 1 + below(BUFFER);
        c->rounds = unsigned(1 + below(20));
        if (w.connect(*c, PORT)) all.push_back(std::move(c)), begun++;
    };
    w.on_cycle = [&] {
        if (begun < count && below(300) == 0) start();
        if (below(2000) == 0) {
            Qp& q = w.qps[below(SLOTS)];
            if (!q.qpn) return;
            switch (below(3)) {
                case 0: w.disconnect(*q.peer); break;
                case 1: if (q.open && !q.failed) w.fail(q, ACCESS); break;
                default: if (!q.open) w.disconnect(*q.peer); break;
            }
        }
    };
    auto ended = [&] {
        over = 0;
        for (auto& c : all) over += c->ended || c->rejected;
        return begun == count && over == begun;
    };
    CHECK(w.sim.until(400'000'000'000, ended), "%u of %u connections hang", begun - over, begun);
    w.on_cycle = [] {};
    CHECK(w.settle(), "not at rest");
    CHECK(w.read(ACTIVE) == 0, "%u connections left", w.read(ACTIVE));
    bench::ok("connections that come and go");
}

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    World w;
    sizes(w);
    crowd(w);
    rude(w);
    for (unsigned percent : {100u, 30u, 60u}) {
        w.percent = percent;
        w.speed = percent == 30 ? 100 : 2;
        churn(w, 150);
        crowd(w);
    }
    CHECK(w.settle(), "not at rest");
    CHECK(w.read(ACCEPTED) == w.read(CLOSED), "%u accepted, %u closed", w.read(ACCEPTED), w.read(CLOSED));
    // The last SEND of a round may be lost with its connection.
    CHECK(w.read(ROUNDS) >= rounds_done && w.read(ROUNDS) < rounds_done + 400, "%u rounds counted, %u done", w.read(ROUNDS), rounds_done);
    CHECK(w.write(ACCEPTED, 1) == 2 && w.write(40, 1, 3) == 2 && w.write(40, 77) == 0 && w.read(40) == 77, "writes of registers");
    std::printf("%u rounds, %u times not ready, %u records for queue pairs that were gone\n", rounds_done, w.not_ready, w.dropped);
    return bench::end();
}
