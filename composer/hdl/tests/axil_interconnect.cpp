// top: gw::bench_axil_interconnect
//
// Two masters on three blocks that answer at once, slowly, too late or never. Every access must be answered, in bounded
// time, by the right block or with the right error, and no late answer may be taken for another's.
#include "cycle.hpp"

static const unsigned TIMEOUT = 64;
static const uint32_t BASE[3] = {0x0000, 0x0040, 0x0100};
static const uint32_t SIZE[3] = {0x40, 0x40, 0x100};

enum Mode { PROMPT, SLOW, LATE, DEAD, HALF };

struct Block {
    Mode mode = PROMPT;
    uint32_t memory[64] = {};
    bool reading = false, have_aw = false, have_w = false;
    uint32_t read_address = 0, write_address = 0, write_value = 0;
    uint32_t nonce = 0;
    unsigned wait = 0;
    uint64_t changed = 0; // cycle of the last change of mode
};

struct Master {
    bool busy = false, write = false, w_first = false;
    uint32_t address = 0, value = 0;
    uint64_t since = 0;
    bool accepted = false;
    unsigned accesses = 0, okay = 0, slverr = 0, decerr = 0;
};

static int block_of(uint32_t address) {
    for (int n = 0; n < 3; ++n)
        if (address >= BASE[n] && address < BASE[n] + SIZE[n]) return n;
    return -1;
}

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    auto& random = bench::rng;
    Vdut dut;
    Block block[3];
    Master master[2];
    uint64_t cycle = 0, slowest = 0;

    auto clock = [&] {
        bench::cycle(dut);
        ++cycle;
    };
    dut.clk = 0;
    dut.rst = 1;
    for (int m = 0; m < 2; ++m) dut.m_arvalid[m] = dut.m_awvalid[m] = dut.m_wvalid[m] = dut.m_rready[m] = dut.m_bready[m] = 0;
    for (int n = 0; n < 3; ++n) dut.b_arready[n] = dut.b_awready[n] = dut.b_wready[n] = dut.b_rvalid[n] = dut.b_bvalid[n] = 0;
    dut.eval();
    for (int i = 0; i < 3; ++i) clock();
    dut.rst = 0;

    bool stuck = false; // master 1 does not fetch its answers
    while (cycle < 400000) {
        if (cycle % 5000 == 0) {
            stuck = random() % 3 == 0;
            for (auto& b : block)
                if (!b.have_aw && !b.have_w) b.mode = Mode(random() % (cycle < 300000 ? 4 : 5)), b.changed = cycle;
            block[0].mode = random() % 2 ? PROMPT : SLOW; // this block always works
        }
        for (int m = 0; m < 2; ++m) {
            Master& a = master[m];
            if (!a.busy && random() % 4 == 0) {
                a.busy = true;
                a.accepted = false;
                a.write = random() % 2;
                a.address = random() % 0x220 & ~3u;
                if (random() % 16 == 0) a.address |= 0x4000;
                a.value = random();
                a.since = cycle;
                ++a.accesses;
                dut.m_araddr[m] = dut.m_awaddr[m] = a.address;
                dut.m_wdata[m] = a.value;
                dut.m_arvalid[m] = !a.write;
                a.w_first = random() % 2;
                dut.m_awvalid[m] = a.write && !a.w_first;
                dut.m_wvalid[m] = a.write && a.w_first;
            } else if (a.busy && !a.accepted && a.write && random() % 2) {
                dut.m_awvalid[m] = dut.m_wvalid[m] = 1;
            }
            bool hold = stuck && m == 1;
            dut.m_rready[m] = !hold && random() % 2;
            dut.m_bready[m] = !hold && random() % 2;
        }
        for (int n = 0; n < 3; ++n) {
            Block& b = block[n];
            bool idle = !b.reading && !(b.have_aw && b.have_w);
            bool eager = b.mode == PROMPT || b.mode == LATE || b.mode == HALF || (b.mode == SLOW && random() % 4 == 0);
            dut.b_arready[n] = idle && b.mode != DEAD && eager;
            dut.b_awready[n] = idle && b.mode != DEAD && eager && !b.have_aw;
            dut.b_wready[n] = idle && b.mode != DEAD && b.mode != HALF && (b.mode != SLOW || random() % 4 == 0) && !b.have_w;
            if (b.wait) --b.wait;
            dut.b_rvalid[n] = b.reading && !b.wait;
            dut.b_rdata[n] = b.read_address << 16 | (b.nonce & 0xffff);
            dut.b_rresp[n] = 0;
            dut.b_bvalid[n] = b.have_aw && b.have_w && !b.wait;
            dut.b_bresp[n] = 0;
        }
        dut.eval();

        bool fetched[2] = {}, taken[2] = {};
        for (int m = 0; m < 2; ++m) {
            Master& a = master[m];
            taken[m] = a.write ? dut.m_awvalid[m] && dut.m_awready[m] : dut.m_arvalid[m] && dut.m_arready[m];
            CHECK(!taken[m] || !a.write || (dut.m_wvalid[m] && dut.m_wready[m]), "master %d: address taken without data", m);
            CHECK(!dut.m_rvalid[m] || (a.accepted && !a.write), "master %d: a read answer that it does not wait for", m);
            CHECK(!dut.m_bvalid[m] || (a.accepted && a.write), "master %d: a write answer that it does not wait for", m);
            // The end of an access, before anything else can be written.
            if (taken[m] && a.write && block_of(a.address) == 0)
                CHECK(block[0].memory[a.address / 4] == a.value, "a write of %08x to %04x got lost", a.value, a.address);
            fetched[m] = a.write ? dut.m_bvalid[m] && dut.m_bready[m] : dut.m_rvalid[m] && dut.m_rready[m];
            if (!fetched[m]) continue;
            unsigned response = a.write ? dut.m_bresp[m] : dut.m_rresp[m];
            int n = block_of(a.address);
            if (n < 0) {
                CHECK(response == 3, "no block at %04x answers %u", a.address, response);
                ++a.decerr;
            } else if (response == 0) {
                Block& b = block[n];
                CHECK(a.since <= b.changed || (b.mode != DEAD && b.mode != LATE), "block %d cannot have answered", n);
                if (!a.write) {
                    uint32_t data = dut.m_rdata[m];
                    CHECK(data >> 16 == a.address, "read of %04x answers for %04x", a.address, data >> 16);
                }
                ++a.okay;
            } else {
                CHECK(response == 2, "answer %u", response);
                CHECK(n != 0, "the block that works was answered for");
                ++a.slverr;
            }
        }
        int asked = 0;
        for (int n = 0; n < 3; ++n) {
            Block& b = block[n];
            asked += dut.b_arvalid[n] || dut.b_awvalid[n] || dut.b_wvalid[n];
            if (dut.b_arvalid[n]) CHECK(block_of(dut.b_araddr[n]) == n, "block %d is asked for %04x", n, dut.b_araddr[n]);
            if (dut.b_awvalid[n]) CHECK(block_of(dut.b_awaddr[n]) == n, "block %d is asked for %04x", n, dut.b_awaddr[n]);
            if (b.reading && dut.b_rvalid[n] && dut.b_rready[n]) b.reading = false;
            if (dut.b_bvalid[n] && dut.b_bready[n]) b.have_aw = b.have_w = false;
            bool began = false;
            if (dut.b_arvalid[n] && dut.b_arready[n]) {
                b.reading = began = true;
                b.read_address = dut.b_araddr[n];
                ++b.nonce;
            }
            if (dut.b_awvalid[n] && dut.b_awready[n]) b.have_aw = began = true, b.write_address = dut.b_awaddr[n];
            if (dut.b_wvalid[n] && dut.b_wready[n]) b.have_w = began = true, b.write_value = dut.b_wdata[n];
            if (began) {
                b.wait = b.mode == LATE ? 100 + random() % 200 : b.mode == SLOW ? random() % 20 : 1 + random() % 2;
                if (b.have_aw && b.have_w) b.memory[(b.write_address - BASE[n]) / 4] = b.write_value;
            }
        }
        CHECK(asked <= 1, "two blocks are asked at once");
        clock();
        for (int m = 0; m < 2; ++m) {
            Master& a = master[m];
            if (taken[m]) {
                a.accepted = true;
                dut.m_arvalid[m] = dut.m_awvalid[m] = dut.m_wvalid[m] = 0;
                uint64_t took = cycle - a.since;
                if (took > slowest) slowest = took;
                CHECK(took < 2 * (TIMEOUT + 10) + 30, "master %d waited %lu cycles", m, (unsigned long)took);
            }
            if (fetched[m]) a.busy = false;
        }
        for (int m = 0; m < 2; ++m)
            CHECK(!master[m].busy || master[m].accepted || cycle - master[m].since < 2 * (TIMEOUT + 10) + 30, "master %d starves", m);
    }
    for (int m = 0; m < 2; ++m) {
        Master& a = master[m];
        std::printf("master %d: %u accesses, %u okay, %u slverr, %u decerr\n", m, a.accesses, a.okay, a.slverr, a.decerr);
        CHECK(a.okay > 1000 && a.slverr > 100 && a.decerr > 100, "too few of a kind to say anything");
    }
    std::printf("slowest access %lu cycles\n", (unsigned long)slowest);
    bench::ok("every access answered");
    return bench::end();
}
