// top: gw::bench_axil_counters
// param: COUNTERS=16 PENDING_W=1
// param: COUNTERS=11 PENDING_W=2
// param: COUNTERS=3 PENDING_W=4 INC_W=3
//
// Random events within what the pending bits hold, random reads and writes with random waits, against a model that counts.
#include "cycle.hpp"

#ifndef INC_W
#define INC_W 1
#endif

static const int SLOTS = COUNTERS > 8 ? 16 : COUNTERS > 4 ? 8 : COUNTERS > 2 ? 4 : 2;
static const int ROUND = SLOTS + 1;

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    auto& random = bench::rng;
    Vdut dut;

    uint32_t model[COUNTERS] = {};      // every event up to now
    std::deque<uint32_t> recent[COUNTERS]; // increments of the last round, so that the bank's promise holds
    uint32_t control[2] = {0x11111111u, 0x22222222u};
    uint64_t cycle = 0;

    dut.clk = 0;
    dut.rst = 1;
    dut.increment = 0;
    dut.arvalid = dut.awvalid = dut.wvalid = 0;
    dut.rready = dut.bready = 0;
    dut.status[0] = 0x5eed0001u;
    dut.status[1] = 0xffffffffu;
    auto clock = [&] {
        bench::cycle(dut);
        ++cycle;
    };
    dut.eval();
    for (int i = 0; i < 3; ++i) clock();
    dut.rst = 0;
    dut.eval();

    enum { NONE, ASK, WAIT } read = NONE, write = NONE;
    uint32_t read_address = 0, write_address = 0, write_value = 0;
    uint32_t at_ask[COUNTERS] = {}; // the model when the read began
    std::vector<uint32_t> since_ask[2]; // what the control words were since then
    uint64_t since = 0, reads = 0, writes = 0, latest = 0;
    bool busy = true; // phases with and without events

    for (; cycle < 60000;) {
        if (cycle % 4096 == 0) busy = !busy;
        uint64_t increment = 0;
        for (int i = 0; i < COUNTERS; ++i) {
            uint32_t sum = 0;
            for (uint32_t old : recent[i]) sum += old;
            uint32_t room = (1u << PENDING_W) - 1 - sum;
            uint32_t most = (1u << INC_W) - 1 < room ? (1u << INC_W) - 1 : room;
            uint32_t now = busy && most && random() % 3 == 0 ? random() % (most + 1) : 0;
            if (busy && i == 0) now = most; // one counter as fast as it goes
            increment |= uint64_t(now) << (i * INC_W);
            model[i] += now;
            recent[i].push_back(now);
            if (int(recent[i].size()) == ROUND) recent[i].pop_front();
        }
        dut.increment = increment;

        if (read == NONE && random() % 4 == 0) {
            read = ASK;
            read_address = random() % (SLOTS + 4);
            since = cycle;
            for (int i = 0; i < COUNTERS; ++i) at_ask[i] = model[i];
            for (int i = 0; i < 2; ++i) since_ask[i] = {control[i]};
            dut.araddr = 0x1000 + 4 * read_address;
            dut.arvalid = 1;
        }
        if (write == NONE && random() % 8 == 0) {
            write = ASK;
            write_address = random() % (SLOTS + 4);
            write_value = random();
            dut.awaddr = 0x1000 + 4 * write_address;
            dut.wdata = write_value;
            dut.awvalid = random() % 2;
            dut.wvalid = random() % 2;
        } else if (write == ASK) {
            dut.awvalid = 1;
            dut.wvalid = 1;
        }
        dut.rready = random() % 2;
        dut.bready = random() % 2;
        dut.eval();

        bool ar = dut.arvalid && dut.arready, r = dut.rvalid && dut.rready;
        bool aw = dut.awvalid && dut.awready, w = dut.wvalid && dut.wready, b = dut.bvalid && dut.bready;
        CHECK(aw == w, "the write channels are taken apart");
        CHECK(!dut.rvalid || read == WAIT, "an answer that nobody asked for");
        CHECK(!dut.bvalid || write == WAIT, "a write answer that nobody asked for");
        if (r) {
            uint32_t i = read_address, value = dut.rdata;
            CHECK(dut.rresp == 0, "rresp %u", dut.rresp);
            if (i < COUNTERS) {
                CHECK(value - at_ask[i] + (1u << PENDING_W) <= model[i] - at_ask[i] + (1u << PENDING_W), "counter %u is %u, asked at %u, now %u", i,
                      value, at_ask[i], model[i]);
                if (!busy && since % 4096 > 2 * unsigned(ROUND) && cycle / 4096 == since / 4096) CHECK(value == model[i], "counter %u is %u, not %u", i, value, model[i]);
            } else if (i < unsigned(SLOTS)) {
                CHECK(value == 0, "a counter that does not exist reads %08x", value);
            } else if (i < unsigned(SLOTS) + 2) {
                CHECK(value == (i == unsigned(SLOTS) ? 0x5eed0001u : 0xffffffffu), "status word %u reads %08x", i - SLOTS, value);
            } else {
                bool seen = false;
                for (uint32_t old : since_ask[i - SLOTS - 2]) seen |= value == old;
                CHECK(seen, "control word %u reads %08x, is %08x", i - SLOTS - 2, value, control[i - SLOTS - 2]);
            }
            ++reads;
        }
        clock();
        if (ar) {
            read = WAIT;
            dut.arvalid = 0;
            if (cycle - since > latest) latest = cycle - since;
        }
        if (r) read = NONE;
        if (aw) {
            write = WAIT;
            dut.awvalid = dut.wvalid = 0;
            if (write_address >= unsigned(SLOTS) + 2) {
                control[write_address - SLOTS - 2] = write_value;
                since_ask[write_address - SLOTS - 2].push_back(write_value);
                CHECK(dut.written == 1u << (write_address - SLOTS - 2), "written is %x", dut.written);
            } else {
                CHECK(dut.written == 0, "written is %x", dut.written);
            }
        } else {
            CHECK(dut.written == 0, "written is %x without a write", dut.written);
        }
        if (b) write = NONE, ++writes;
        for (int i = 0; i < 2; ++i) CHECK(dut.control[i] == control[i], "control word %d is %08x, not %08x", i, dut.control[i], control[i]);
    }
    CHECK(reads > 500 && writes > 200, "only %lu reads and %lu writes", (unsigned long)reads, (unsigned long)writes);
    CHECK(latest <= unsigned(ROUND) + 3, "a read took %lu cycles", (unsigned long)latest);
    std::printf("%lu reads, %lu writes, slowest read %lu cycles, counter 0 at %u\n", (unsigned long)reads, (unsigned long)writes,
                (unsigned long)latest, model[0]);
    bench::ok("counts, words and answers");
    return bench::end();
}
