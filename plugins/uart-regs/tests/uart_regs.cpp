// top: bench_uart_regs
// param: TICK=32768
// slow-param: TICK = 16384, 5461, 805
//
// A terminal on the line and a register file with errors and waits behind the bus: every command, bursts, refused and lost
// bytes, broken stop bits, glitches, a clock that is off by 2.5 %, and commands sent without waiting for the answers.
#include <map>

#include "bench.hpp"

using bench::below;

namespace {

const double BIT = 8.0 * 65536 / TICK; // clock cycles

/// The far end of the line, one call a clock cycle.
struct Terminal {
    std::deque<int> out;     // bytes to send; bit 8: with a broken stop bit; -1: a glitch; -2: a bit of silence
    std::deque<uint8_t> in;  // bytes received
    double speed = 1.0;      // own clock against the nominal one
    double sent = 0, heard = -1;
    int frame = -1, bits = 0, collected = 0;
    bool previous = true;

    bool drive() {
        if (frame < 0) {
            if (out.empty()) return true;
            int next = out.front();
            out.pop_front();
            sent = 0;
            if (next == -1) frame = 0x3fe, bits = 1, glitch = true;
            else if (next == -2) frame = 1, bits = 1, glitch = false;
            else frame = (next & 0x100 ? 0 : 1) << 9 | (next & 0xff) << 1, bits = 10, glitch = false;
            if (next >= 0 && next & 0x100) frame |= 1 << 10, bits = 11; // the line recovers before the next start bit
        }
        double length = glitch ? BIT * 0.3 : BIT * speed;
        bool level = frame >> int(sent / length) & 1;
        sent += 1;
        if (sent >= length * bits) frame = -1;
        return level;
    }
    void listen(bool line) {
        if (heard < 0) {
            if (previous && !line) heard = 0, collected = 0;
        } else {
            double before = heard / BIT, now = (heard + 1) / BIT;
            heard += 1;
            int bit = int(now - 0.5);
            if (now >= 0.5 && int(before + 0.5) != int(now + 0.5)) {
                if (bit == 0) CHECK(!line, "the start bit is short");
                else if (bit <= 8) collected |= line << (bit - 1);
                else {
                    CHECK(line, "the stop bit is 0");
                    in.push_back(uint8_t(collected));
                    heard = -1;
                }
            }
        }
        previous = line;
    }
    bool glitch = false;
};

/// Registers with waits: SLVERR from 0x8000, DECERR from 0xc000.
struct Registers {
    std::map<uint32_t, uint32_t> words;
    unsigned reads = 0, writes = 0;
    int read_wait = -1, write_wait = -1;
    bool prompt = false; // no waits
    bool aw = false, w = false;
    uint32_t read_address = 0, write_address = 0, write_value = 0;
    static unsigned response(uint32_t address) { return address >= 0xc000 ? 3 : address >= 0x8000 ? 2 : 0; }

    void drive(Vdut& dut) {
        dut.arready = read_wait < 0 && (prompt || bench::chance(30));
        dut.awready = !aw && (prompt || bench::chance(30));
        dut.wready = !w && (prompt || bench::chance(30));
        if (read_wait > 0) --read_wait;
        if (write_wait > 0) --write_wait;
        dut.rvalid = read_wait == 0;
        dut.rdata = dut.rvalid ? words[read_address] : uint32_t(bench::rng());
        dut.rresp = dut.rvalid ? response(read_address) : below(4);
        dut.bvalid = write_wait == 0;
        dut.bresp = dut.bvalid ? response(write_address) : below(4);
    }
    void sample(Vdut& dut) {
        if (dut.rvalid && dut.rready) read_wait = -1;
        if (dut.bvalid && dut.bready) write_wait = -1, aw = w = false;
        if (dut.arvalid && dut.arready) read_address = dut.araddr, read_wait = 1 + below(20), ++reads;
        bool had = aw && w;
        if (dut.awvalid && dut.awready) aw = true, write_address = dut.awaddr;
        if (dut.wvalid && dut.wready) {
            w = true;
            write_value = dut.wdata;
            CHECK(dut.wstrb == 15, "strobes %x", dut.wstrb);
        }
        if (aw && w && !had) {
            write_wait = prompt ? 1 : 1 + below(20);
            ++writes;
            if (response(write_address) == 0) words[write_address] = write_value;
        }
    }
};

struct Bench {
    bench::Sim<> sim;
    Terminal terminal;
    Registers registers;

    Bench() {
        sim.dut.rx = 1;
        sim.dut.rst = 1;
        sim.clock(
            sim.dut.clk, 10000,
            [this] {
                if (sim.dut.rst) return;
                registers.sample(sim.dut);
                terminal.listen(sim.dut.tx);
            },
            [this] {
                registers.drive(sim.dut);
                sim.dut.rx = terminal.drive();
            });
        sim.run(100000);
        sim.dut.rst = 0;
        bits(20);
    }
    void bits(double n) { sim.run(uint64_t(n * BIT * 10000)); }
    void send(std::initializer_list<int> bytes) { terminal.out.insert(terminal.out.end(), bytes); }
    void sevens(uint32_t value, int bytes) {
        for (int k = 0; k < bytes; ++k) terminal.out.push_back(uint64_t(value) >> (7 * k) & 0x7f);
    }
    void set_address(uint32_t address) {
        sevens(address / 4, 2);
        send({0x81});
    }
    void write(uint32_t value) {
        sevens(value, 5);
        send({0x82});
    }
    int byte() {
        if (!sim.until(uint64_t(400 * BIT * 10000), [this] { return !terminal.in.empty(); })) return -1;
        int value = terminal.in.front();
        terminal.in.pop_front();
        return value;
    }
    void expect(int wanted, const char* what) {
        int got = byte();
        CHECK(got == wanted, "%s: answered %x, not %x", what, got, wanted);
    }
    uint32_t word() {
        uint64_t value = 0;
        for (int k = 0; k < 5; ++k) {
            int b = byte();
            CHECK(b >= 0 && b < 0x80, "data byte %d is %x", k, b);
            value |= uint64_t(b & 0x7f) << (7 * k);
        }
        CHECK(value >> 32 == 0, "more than 32 bits");
        return uint32_t(value);
    }
    void silence(const char* what) {
        while (!terminal.out.empty()) bits(10);
        bits(40);
        CHECK(terminal.in.empty(), "%s: %zu bytes came", what, terminal.in.size());
    }
};

uint32_t any_address() { return below(3) ? 4 * below(64) : 4 * below(16384); }

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    Bench b;
    Registers& r = b.registers;
    const int rounds = TICK > 4000 ? 60 : 10;

    b.send({0x80});
    b.expect(0x80, "ping");
    b.silence("ping");
    bench::ok("ping");

    for (int i = 0; i < rounds; ++i) {
        b.terminal.speed = 0.975 + 0.05 * double(below(1001)) / 1000;
        uint32_t address = any_address(), value = uint32_t(bench::rng());
        unsigned response = Registers::response(address);
        b.set_address(address);
        b.expect(0x80, "address");
        if (bench::chance(50)) {
            b.write(value);
            b.expect(0x80 | response, "write");
            CHECK(r.write_address == address && r.write_value == value, "%08x was written to %04x", r.write_value, r.write_address);
        } else {
            r.words[address] = value;
            b.send({0xc0});
            b.expect(0x80 | response, "read");
            uint32_t got = b.word();
            CHECK(got == value && r.read_address == address, "read %08x at %04x, not %08x at %04x", got, r.read_address, value, address);
        }
    }
    b.terminal.speed = 1.0;
    bench::ok("reads and writes");

    for (int i = 0; i < (TICK > 4000 ? 6 : 1); ++i) {
        uint32_t count = i == 0 ? 64 : 1 + below(64), address = 4 * below(4000), before = r.reads;
        for (uint32_t k = 0; k < count + 1; ++k) r.words[address + 4 * k] = uint32_t(bench::rng());
        b.set_address(address);
        b.expect(0x80, "address");
        b.send({int(0xc0 | (count - 1))});
        for (uint32_t k = 0; k < count; ++k) {
            b.expect(0x80, "burst");
            uint32_t got = b.word();
            CHECK(got == r.words[address + 4 * k], "word %u of the burst is %08x", k, got);
        }
        b.silence("burst");
        CHECK(r.reads - before == count, "%u reads for a burst of %u", r.reads - before, count);
        b.send({0xc0}); // the address has moved on
        b.expect(0x80, "after the burst");
        CHECK(b.word() == r.words[address + 4 * count], "the word after the burst is wrong");
    }
    bench::ok("bursts");

    // A lost or an extra byte: refused, nothing happens, and the next command is right again.
    for (int arguments : {0, 1, 2, 3, 4, 6, 7, 12}) {
        unsigned writes = r.writes, reads = r.reads;
        for (int k = 0; k < arguments; ++k) b.send({int(below(128))});
        b.send({0x82});
        b.expect(0x81, "a write with too few or too many bytes");
        if (arguments != 2) {
            for (int k = 0; k < arguments; ++k) b.send({int(below(128))});
            b.send({arguments ? 0xc0 : 0x81});
            b.expect(0x81, "a read with arguments, an address without");
        }
        CHECK(r.writes == writes && r.reads == reads, "a refused command reached the bus");
    }
    for (int command : {0x83, 0x84, 0x90, 0xbf}) {
        b.send({command});
        b.expect(0x81, "no command");
    }
    b.send({0x12, 0x34, 0x56, 0x83, 0x80});
    b.expect(0x81, "resync");
    b.expect(0x80, "resync");
    bench::ok("refused commands");

    // A broken stop bit spoils the command that the byte belongs to; a broken command is not heard.
    {
        unsigned writes = r.writes;
        b.sevens(5, 4);
        b.send({0x05 | 0x100, 0x82});
        b.expect(0x81, "a broken argument");
        b.sevens(5, 5);
        b.send({0x82 | 0x100});
        b.silence("a broken command");
        b.send({0x82});
        b.expect(0x81, "after a broken command");
        CHECK(r.writes == writes, "a broken write reached the bus");
        b.send({-1, -2, -1, -2, -2});
        b.silence("glitches");
        b.send({0x80});
        b.expect(0x80, "after glitches");
    }
    bench::ok("broken bytes");

    // Commands sent without waiting, with a bus that takes less than a bit's time: answers come in order.
    {
        r.prompt = true;
        std::vector<std::pair<uint32_t, uint32_t>> sent;
        for (int i = 0; i < 12; ++i) {
            uint32_t address = 4 * below(64), value = uint32_t(bench::rng());
            b.set_address(address);
            b.write(value);
            b.write(~value);
            sent.emplace_back(address, value);
        }
        for (auto& [address, value] : sent) {
            b.expect(0x80, "address in a row");
            b.expect(0x80, "write in a row");
            b.expect(0x80, "write in a row");
        }
        auto& [address, value] = sent.back();
        CHECK(r.words[address] == value && r.words[address + 4] == ~value, "the last writes in a row are wrong");
        b.silence("in a row");
    }
    r.prompt = false;
    bench::ok("commands in a row");

    // Sent during a long answer: what waits too long is broken, never mistaken for something else.
    {
        unsigned writes = r.writes;
        b.send({0xc7});
        b.write(0x12345678);
        for (int k = 0; k < 8; ++k) {
            b.expect(0x80, "a burst that is spoken into");
            b.word();
        }
        b.silence("spoken into");
        b.send({0x82});
        b.expect(0x81, "a write after what was lost");
        CHECK(r.writes == writes, "a write was made of what was lost");
    }
    bench::ok("commands during an answer");
    return bench::end();
}
