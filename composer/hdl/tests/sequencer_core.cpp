// top: gw::sequencer_core
// param: PROGRAM_A=8 DATA_A=9 INS=4 OUTS=4
// param: PROGRAM_A=11 DATA_A=10 INS=1 OUTS=3
//
// Random programs against a model of the instruction set: the address of every instruction, every word that leaves and every word that is taken.
#include "bench.hpp"

using namespace bench;

namespace {

enum Op { LD, AND, OR, XOR, ADD, SUB, ADC, CMP, LEA, TST, LEX, LEY, ROR, ST, LDX, LDY, IN, TIN, TAX, TAY, OUT, TOUT, OUTL, RET, JMP, CALL, BZ, BNZ, BC, BNC, BN, BP };

const unsigned DATA = 1u << DATA_A, PROGRAM = 1u << PROGRAM_A;

struct Word { uint32_t data; bool last; };

/// The instruction set. `step` does one instruction; what depends on the outside is given.
struct Model {
    uint32_t a = 0, result = 0, x = 0, y = 0, pc = 0;
    bool carry = false;
    unsigned top = 0;
    uint32_t stack[16] = {};
    std::vector<uint32_t> ram = std::vector<uint32_t>(DATA);

    void reset() { pc = 0, top = 0; }
    /// Registers without a reset start anywhere; what a program sees of them must be set first.
    void step(uint16_t i, Word in, bool flag) {
        const unsigned op = i >> 11, mode = i >> 9 & 3;
        uint32_t ea = i & 0x1ff;
        if (mode == 1 || mode == 2) ea = (ea & 0x100 ? ea | ~0x1ffu : ea) + (mode == 1 ? x : y);
        ea &= DATA - 1;
        const uint32_t b = mode == 3 ? ea : ram[ea];
        const uint32_t next = (pc + 1) % PROGRAM, target = i & (PROGRAM - 1);
        auto sum = [&](uint64_t other, bool c) {
            const uint64_t s = uint64_t{a} + (other & 0xffffffff) + c;
            carry = s >> 32;
            return static_cast<uint32_t>(s);
        };
        auto load = [&](uint32_t v) { a = result = v; };
        const unsigned turn = i & 2 ? 8 : 1;
        bool jump = false;
        switch (op) {
        case LD: load(b); break;
        case AND: load(a & b); break;
        case OR: load(a | b); break;
        case XOR: load(a ^ b); break;
        case ADD: load(sum(b, false)); break;
        case SUB: load(sum(~b, true)); break;
        case ADC: load(sum(b, carry)); break;
        case CMP: result = sum(~b, true); break;
        case TST: result = a & b; break;
        case LEA: load(ea); break;
        case LEX: x = ea; break;
        case LEY: y = ea; break;
        case LDX: x = b & (DATA - 1); break;
        case LDY: y = b & (DATA - 1); break;
        case ROR: load(a >> turn | a << (32 - turn)); break;
        case TAX: x = a & (DATA - 1); break;
        case TAY: y = a & (DATA - 1); break;
        case ST: ram[ea] = a; break;
        case IN: load(in.data), carry = in.last; break;
        case TIN: case TOUT: carry = flag; break;
        case JMP: jump = true; break;
        case CALL: jump = true, top = (top + 1) % 16, stack[top] = next; break;
        case BZ: jump = result == 0; break;
        case BNZ: jump = result != 0; break;
        case BC: jump = carry; break;
        case BNC: jump = !carry; break;
        case BN: jump = result >> 31; break;
        case BP: jump = !(result >> 31); break;
        default: break;
        }
        if (op == RET) pc = stack[top], top = (top + 15) % 16;
        else pc = jump ? target : next;
    }
};

uint16_t instruction(unsigned op) {
    const unsigned modes = static_cast<unsigned>(below(4)) << 9;
    switch (op) {
    case ROR: case TAX: case TAY: return static_cast<uint16_t>(op << 11 | below(4));
    case IN: case TIN: return static_cast<uint16_t>(op << 11 | below(INS));
    case OUT: case OUTL: case TOUT: return static_cast<uint16_t>(op << 11 | below(OUTS));
    case JMP: case CALL: case BZ: case BNZ: case BC: case BNC: case BN: case BP: return static_cast<uint16_t>(op << 11 | below(PROGRAM));
    // Few addresses, so that what was stored is loaded.
    default: return static_cast<uint16_t>(op << 11 | modes | (chance(70) ? below(8) | (chance(30) ? 0x1f8 : 0) : below(512)));
    }
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Sim<> sim;
    auto& d = sim.dut;
    std::vector<uint16_t> program(PROGRAM);
    Model model;
    std::deque<Word> inputs[INS];
    unsigned in_percent = 50, out_percent = 50;
    bool flag = false, open = false, fetched = false;
    uint16_t fetched_word = 0;
    Word word{};
    uint64_t done = 0, outs = 0, ins = 0;

    auto data = [&](unsigned i) -> uint32_t { return get_byte(d.in_data, 4 * i) | get_byte(d.in_data, 4 * i + 1) << 8 | get_byte(d.in_data, 4 * i + 2) << 16 | static_cast<uint32_t>(get_byte(d.in_data, 4 * i + 3)) << 24; };
    auto offer = [&](unsigned i) {
        const uint32_t v = static_cast<uint32_t>(rng());
        for (unsigned k = 0; k < 4; k++) set_byte(d.in_data, 4 * i + k, static_cast<uint8_t>(v >> (8 * k)));
        d.in_last = static_cast<uint8_t>((d.in_last & ~(1u << i)) | below(2) << i);
    };
    unsigned held = 0;  // inputs whose word waits
    unsigned phase = 0; // cycles since the instruction came
    auto sample = [&] {
        if (d.rst) return;
        const uint16_t now = d.instruction;
        const unsigned op = now >> 11;
        if (open) {
            phase++;
            // Cycle 1 decodes, 2 has the operand.
            if (op == TIN && phase == 2) flag = d.in_valid >> (now & 31) & 1;
            if (op == TOUT && phase == 2) flag = d.out_ready >> (now & 31) & 1;
        }
        for (unsigned i = 0; i < INS; i++)
            if (d.in_ready >> i & 1) {
                CHECK(open && op == IN && (now & 31) == i, "asks for a word of port %u at instruction %04x", i, now);
                if (d.in_valid >> i & 1) word = {data(i), static_cast<bool>(d.in_last >> i & 1)}, ins++;
            }
        for (unsigned i = 0; i < OUTS; i++)
            if (d.out_valid >> i & 1) {
                CHECK(open && (op == OUT || op == OUTL) && (now & 31) == i, "gives to port %u at instruction %04x", i, now);
                CHECK(d.out_data == model.a, "gives %08x, not %08x", d.out_data, model.a);
                CHECK(d.out_last == (op == OUTL), "last is %d", d.out_last);
                outs += d.out_ready >> i & 1;
            }
        if (d.fetch) {
            if (open) {
                model.step(now, word, flag);
                done++;
                CHECK(op == IN || op == OUT || op == OUTL || phase == 3, "an instruction took %u cycles", phase);
            }
            CHECK(d.address == model.pc, "instruction at %x after %04x, not at %x", d.address, now, model.pc);
            model.pc = d.address;
            fetched = true;
            fetched_word = program[d.address];
            open = true;
            phase = 0;
        }
    };
    auto drive = [&] {
        if (fetched) d.instruction = fetched_word;
        fetched = false;
        // A word that was offered stays until it is taken; the ports were sampled before the edge.
        for (unsigned i = 0; i < INS; i++)
            if (!(held >> i & 1)) {
                if (chance(in_percent)) offer(i), d.in_valid |= static_cast<uint8_t>(1u << i);
                else d.in_valid &= static_cast<uint8_t>(~(1u << i));
            }
        held = 0;
        d.out_ready = 0;
        for (unsigned i = 0; i < OUTS; i++) d.out_ready |= static_cast<uint8_t>(chance(out_percent) << i);
        d.eval();
        for (unsigned i = 0; i < INS; i++)
            if ((d.in_valid >> i & 1) && !(d.in_ready >> i & 1)) held |= 1u << i;
    };
    sim.clock(d.clk, 10000, sample, drive);

    for (unsigned round = 0; round < 60; round++) {
        in_percent = round % 3 == 0 ? 100 : 10 + static_cast<unsigned>(below(80));
        out_percent = round % 3 == 0 ? 100 : 10 + static_cast<unsigned>(below(80));
        for (auto& i : program) i = instruction(static_cast<unsigned>(below(32)));
        // The registers without a reset, so that the model knows them.
        size_t at = 0;
        auto set = [&](unsigned op, unsigned argument) { program[at++] = static_cast<uint16_t>(op << 11 | argument); };
        for (unsigned i = 0; i < 16; i++) set(CALL, static_cast<unsigned>(at) + 1);
        set(LD, 3 << 9 | 5), set(ADD, 3 << 9 | 1), set(LEX, 3), set(LEY, 100);
        open = false;
        fetched = false;
        d.rst = 1;
        model.reset();
        sim.run(50000);
        d.rst = 0;
        sim.run(100'000'000);
    }
    CHECK(done > 20000 && ins > 300 && outs > 300, "only %llu instructions, %llu words in, %llu out", (unsigned long long)done, (unsigned long long)ins, (unsigned long long)outs);
    std::printf("%llu instructions, %llu words in, %llu words out\n", (unsigned long long)done, (unsigned long long)ins, (unsigned long long)outs);
    ok("random programs");
    return end();
}
