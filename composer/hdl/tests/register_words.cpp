// top: gw::bench_register_words
//
// A program with 64 words that takes its time, behind a master that does too: reads and writes, alone and at once, whole words and parts of them.
#include "cycle.hpp"

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    auto& random = bench::rng;
    Vdut dut;

    dut.clk = 0;
    dut.rst = 1;
    dut.arvalid = dut.awvalid = dut.wvalid = dut.rready = dut.bready = 0;
    dut.in_ready = dut.answer_valid = 0;
    auto clock = [&] { bench::cycle(dut); };
    dut.eval();
    for (int i = 0; i < 3; ++i) clock();
    dut.rst = 0;
    dut.eval();

    // The master: at most one read and one write under way.
    enum { NONE, ASK, WAIT } read = NONE, write = NONE;
    uint32_t read_index = 0, write_index = 0, write_value = 0, strobe = 15;
    uint32_t read_gives = 0, write_gives = 0; // what the answer must be, once the program has given it
    // The program: what it has taken of an access, and the answer that it owes.
    uint32_t words[64] = {};
    bool value_next = false, owes = false, owes_write = false, given = false;
    uint32_t index = 0, answer = 0;
    uint64_t reads = 0, writes = 0, refused = 0, both = 0;

    for (int cycle = 0; cycle < 200000; ++cycle) {
        unsigned lazy = cycle / 20000 % 2 ? 8 : 1; // phases in which nobody waits, and in which all do
        auto chance = [&] { return random() % lazy == 0; };
        if (read == NONE && random() % 3 == 0) {
            read = ASK;
            read_index = random() % 64;
            dut.araddr = uint16_t(random() % 256 * 256 + 4 * read_index);
            dut.arvalid = 1;
        }
        if (write == NONE && random() % 3 == 0) {
            write = ASK;
            write_index = random() % 64;
            write_value = random();
            strobe = random() % 4 ? 15 : random() % 16;
            dut.awaddr = uint16_t(random() % 256 * 256 + 4 * write_index);
            dut.wdata = write_value;
            dut.wstrb = strobe;
            dut.awvalid = random() % 2;
            dut.wvalid = random() % 2;
        } else if (write == ASK) {
            dut.awvalid = dut.awvalid || chance();
            dut.wvalid = dut.wvalid || chance();
        }
        dut.rready = chance();
        dut.bready = chance();
        dut.in_ready = !owes && chance();
        if (owes && !given && chance()) given = true;
        dut.answer_valid = given;
        dut.answer = given ? answer : random();
        dut.eval();
        // The program takes a word for itself only between two accesses, as the sequencer does.
        CHECK(!(dut.in_valid && owes), "a word for the program while it owes an answer");
        both += read == ASK && write == ASK;

        bool taken = dut.in_valid && dut.in_ready, answered = dut.answer_valid && dut.answer_ready;
        bool ar = dut.arvalid && dut.arready, aw = dut.awvalid && dut.awready, w = dut.wvalid && dut.wready;
        bool r = dut.rvalid && dut.rready, b = dut.bvalid && dut.bready;
        CHECK(aw == w, "the write channels are taken apart");
        CHECK(!dut.rvalid || (read == WAIT && given && !owes_write), "a read's answer that nobody gave");
        CHECK(!dut.bvalid || (write == WAIT && given && owes_write), "a write's answer that nobody gave");
        CHECK(answered == (r || b), "the answer is taken when the master takes it");
        CHECK(!ar || (taken && !value_next), "a read is taken without its word");
        CHECK(!aw || (taken && value_next), "a write is taken without its value");
        if (r) CHECK(dut.rresp == 0 && dut.rdata == read_gives, "word %u reads %08x, not %08x", read_index, dut.rdata, read_gives);
        if (b) CHECK(dut.bresp == write_gives, "write of word %u: %u, not %u", write_index, dut.bresp, write_gives);

        bool asks = false;
        if (taken && value_next) {
            CHECK(write == ASK && dut.in_data == write_value, "the value is %08x, not %08x", dut.in_data, write_value);
            CHECK(dut.in_last == (strobe == 15), "last is %u with strobes %x", dut.in_last, strobe);
            if (dut.in_last) words[index] = dut.in_data;
            write_gives = dut.in_last ? 0 : 2;
            answer = (random() & ~3u) | write_gives;
            value_next = false;
            owes = owes_write = asks = true;
        } else if (taken) {
            bool is_write = dut.in_data >> 31;
            index = dut.in_data & 63;
            CHECK((dut.in_data & 0x7fffffc0u) == 0, "the word is %08x", dut.in_data);
            CHECK(is_write ? write == ASK && dut.awvalid && dut.wvalid && index == write_index : read == ASK && index == read_index, "an access that nobody made: %08x", dut.in_data);
            if (is_write) {
                value_next = true;
            } else {
                owes = asks = true;
                owes_write = false;
                answer = read_gives = words[index];
                CHECK(ar, "a read is taken with its word");
            }
        }
        clock();
        if (ar) read = WAIT, dut.arvalid = 0;
        if (aw) write = WAIT, dut.awvalid = dut.wvalid = 0;
        if (r) read = NONE, ++reads;
        if (b) write = NONE, ++writes, refused += write_gives != 0;
        if (answered && !asks) owes = given = false;
    }
    CHECK(reads > 5000 && writes > 5000 && refused > 500 && both > 1000, "only %lu reads, %lu writes, %lu refused, %lu cycles with both", (unsigned long)reads,
          (unsigned long)writes, (unsigned long)refused, (unsigned long)both);
    std::printf("%lu reads, %lu writes, %lu of them refused\n", (unsigned long)reads, (unsigned long)writes, (unsigned long)refused);
    bench::ok("every access once, with its answer");
    return bench::end();
}
