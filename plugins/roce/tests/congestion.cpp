// top: bench_roce
// param: W=32
// slow-param: W=64
// slow-param: W=512
//
// Congestion notifications from the wire to the port that offers them, and what becomes of them where nobody takes them.
#include "loop.hpp"
#include "rx_packets.hpp"
#include "traffic.hpp"

static constexpr uint32_t IP = 0x0a000001, FIRST = 0x100, SECOND = 0x201, ABSENT = 0x302;
static constexpr int NO_QUEUE_PAIR = 0, RX_CNP = 10;

// Both connected, with each other.
static void connect(Loop& t) {
    for (auto& b : t.memory) b = uint8_t(rng());
    t.region(3, 7, 1, 0x17, 0, t.memory.size());
    t.open(0, {.qpn = FIRST, .dqpn = SECOND, .ip = IP});
    t.open(1, {.qpn = SECOND, .dqpn = FIRST, .ip = IP});
}

// A CNP, and the time that it takes on the wire.
static void cnp(Loop& t, uint32_t qpn, uint32_t from = IP) {
    rx::Datagram g;
    g.about.src_ip = from;
    g.about.dst_ip = IP;
    g.about.src_port = 0xc123;
    rx::put(g.bytes, CNP, 1);
    rx::put(g.bytes, 0x00ffff, 3);
    rx::put(g.bytes, 0x40000000 | qpn, 4); // BECN
    rx::put(g.bytes, 0, 4 + 16);
    rx::seal(g);
    Frame f;
    f.data = g.bytes;
    f.src = from;
    f.dst = IP;
    f.sport = g.about.src_port;
    f.dport = g.about.dst_port;
    t.in.push_back(f);
    t.cycles(60);
}

// From here to the counters some cycles pass.
static void settle(Loop& t, int cycles = 1000) {
    for (int i = 0; i < cycles; i++) {
        t.cycles(1);
        t.wire();
    }
}

static void offered() {
    Loop t;
    connect(t);
    const std::vector<uint32_t> known{FIRST, SECOND, SECOND, FIRST};
    for (uint32_t qpn : known) {
        cnp(t, qpn);
        cnp(t, ABSENT);
        cnp(t, qpn, IP + 1);
        cnp(t, qpn + 0x400); // a connection that is gone
    }
    settle(t);
    CHECK(t.congestion == known, "%zu of %zu CNPs are offered, or of others", t.congestion.size(), known.size());
    CHECK(t.counter(RX_CNP) == known.size(), "%u are counted", t.counter(RX_CNP));
    CHECK(t.counter(NO_QUEUE_PAIR) == 3 * known.size(), "%u are for nobody", t.counter(NO_QUEUE_PAIR));
    CHECK(t.sent == 0, "%llu answers", (unsigned long long)t.sent);
    ok("known queue pairs are offered, unknown ones are not");
}

static void nobody_takes_them() {
    Loop t;
    connect(t);
    t.takes = false;
    std::vector<uint32_t> kept;
    for (int i = 0; i < 20; i++) {
        const uint32_t qpn = chance(50) ? FIRST : SECOND;
        if (i < 16) kept.push_back(qpn);
        cnp(t, qpn);
        if (i % 4 == 3) t.work(0, FIRST, {.op = 0, .id = i, .laddr = 0x1000, .length = 2000, .rkey = 3 << 8 | 7, .raddr = uint64_t(0x8000 + 0x1000 * i)});
    }
    settle(t, 20000);
    CHECK(t.counter(RX_CNP) == 20, "%u are counted", t.counter(RX_CNP));
    CHECK(t.congestion.empty() && t.d.congestion_valid, "%zu taken by nobody", t.congestion.size());
    CHECK(t.cq[0].size() == 5, "%zu of 5 WRITEs complete beside them", t.cq[0].size());
    for (size_t i = 0; i < t.cq[0].size(); i++) {
        CHECK(t.cq[0][i][0] == 4 * i + 3, "completion %08x", t.cq[0][i][0]);
        CHECK(!std::memcmp(&t.memory[0x1000], &t.memory[0x8000 + 0x1000 * (4 * i + 3)], 2000), "WRITE %zu", i);
    }
    t.takes = true;
    settle(t);
    CHECK(t.congestion == kept, "%zu are kept, not the first %zu", t.congestion.size(), kept.size());
    cnp(t, SECOND);
    settle(t);
    CHECK(t.congestion.size() == 17 && t.congestion.back() == SECOND && t.counter(RX_CNP) == 21, "%zu after that", t.congestion.size());
    ok("nobody takes them");
}

// Every packet is marked on its way.
static void marked() {
    Loop t;
    t.marks = true;
    t.apart = Loop::BEFORE + Loop::AFTER; // the counters lose none at the wire's rate
    traffic(t, 1, 60);
    settle(t);
    CHECK(t.cnps.size() > 4, "%zu CNPs are sent", t.cnps.size());
    CHECK(t.congestion == t.cnps, "of %zu CNPs %zu are offered, or of others", t.cnps.size(), t.congestion.size());
    CHECK(t.counter(RX_CNP) == t.cnps.size() && t.counter(RX_CNP + 1) == t.cnps.size(), "%u of %u", t.counter(RX_CNP), t.counter(RX_CNP + 1));
    std::printf("  %zu CNPs, %llu packets\n", t.cnps.size(), (unsigned long long)t.sent);
    ok("a wire that marks");
}

int main(int argc, char** argv) {
    begin(argc, argv);
    offered();
    nobody_takes_them();
    marked();
    return end();
}
