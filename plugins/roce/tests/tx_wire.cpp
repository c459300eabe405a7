// top: bench_tx_wire
// param: W=32
// param: W=32 LEAD=0
// param: W=32 LEAD=10
// slow-param: W=64
// slow-param: W=128
// slow-param: W=256
// slow-param: W=512
//
// With LEAD: a packet starts before its payload is there, which comes as late as the headers on the wire and LEAD allow.
// Behind `ip-udp`: the frames that leave are right from the first byte to the ICRC, have no hole, and follow each other at the wire's rate.
#include "model.hpp"
#include "tx_model.hpp"

#ifndef W
#define W 32
#endif
#ifndef LEAD
#define LEAD 1023
#endif

using bench::below;
using bench::Bytes;
using bench::chance;

namespace {

constexpr unsigned B = W / 8;
// Bytes that the wire takes in a cycle: 1 Gb/s at 62.5 MHz, else as many as there are.
constexpr double WIRE = W == 32 ? 2 : B;
// Worst stall of the memory in cycles: preamble and 54 bytes of headers at least, and LEAD, less 6 from the memory to the wire.
constexpr bool EARLY = LEAD < 1023;
constexpr unsigned STALL = EARLY ? unsigned(62 / WIRE) + LEAD - 6 : 60;

struct Bench {
    bench::Sim<> sim;
    Vdut& d = sim.dut;
    tx::Memory<Vdut> memory{d, B};
    uint64_t cycle = 0, frames = 0, first_valid = 0, last_beat = 0, given = 0;
    std::deque<tx::Job> jobs, under_way, reports;
    bool offered = false, open = false;
    double credit = 0;
    Bytes got, hears;
    size_t heard = 0;
    std::deque<unsigned> statuses;

    void sample() {
        if (d.rst) return;
        cycle++;
        memory.sample();
        if (d.job_valid && d.job_ready) {
            if (jobs.front().dst_ip == net::PEER_IP) under_way.push_back(jobs.front());
            reports.push_back(jobs.front());
            jobs.pop_front();
            offered = false;
        }
        if (d.done) {
            CHECK(!reports.empty() && d.done_slot == reports.front().slot, "done of a wrong slot");
            CHECK(!reports.empty() && d.done_status == (reports.front().dst_ip == net::PEER_IP ? 0 : 1), "status %u", d.done_status);
            if (!reports.empty()) reports.pop_front();
        }
        if (open && d.tx_ready) CHECK(d.tx_valid, "a hole in frame %lu after %zu bytes", (unsigned long)frames, got.size());
        if (d.tx_valid && !open && !first_valid) first_valid = cycle;
        const bool first = !open;
        credit = std::min(credit + WIRE, 2.0 * B - 1e-6);
        if (!d.tx_valid || !d.tx_ready) return;
        unsigned n = 0;
        for (unsigned i = 0; i < B; i++)
            if (bench::get_byte(d.tx_keep, i / 8) >> (i % 8) & 1) got.push_back(bench::get_byte(d.tx_data, i)), n++;
        credit -= n;
        if (first) credit -= 8;
        open = !d.tx_last;
        if (open) return;
        credit -= got.size() < 60 ? 76 - got.size() : 16;
        frame();
        got.clear();
    }

    void frame() {
        if (got.size() > 14 && got[12] == 8 && got[13] == 6) return;  // it asks for addresses
        CHECK(!under_way.empty() && !d.tx_err, "a frame too many, or aborted");
        if (under_way.empty()) return;
        const tx::Job& j = under_way.front();
        Bytes want = net::ethernet(net::PEER_MAC, net::OUR_MAC, 0x0800);
        const Bytes p = tx::packet(j, tx::memory_bytes(j.addr, j.source == tx::MEMORY ? j.length : 0)), h = tx::headers(j, p.size(), 0);
        want.insert(want.end(), h.begin(), h.end());
        want.insert(want.end(), p.begin(), p.end());
        net::fix_ip(want);
        CHECK(got == want, "frame %lu, opcode %02x, %u bytes at %llx: %zu bytes, not %zu, or others", (unsigned long)frames, j.opcode, j.length, (unsigned long long)j.addr, got.size(), want.size());
        // What a receiver computes, from the frame alone.
        uint32_t given_icrc;
        std::memcpy(&given_icrc, &got[got.size() - 4], 4);
        CHECK(tx::icrc(Bytes(got.begin() + 14, got.end() - 4)) == given_icrc, "ICRC");
        under_way.pop_front();
        frames++;
        last_beat = cycle;
    }

    void drive() {
        if (d.rst) return;
        memory.drive();
        if (!offered && !jobs.empty()) {
            offered = true;
            given = cycle + 1;
            tx::set_job(d.job, jobs.front());
        }
        d.job_valid = offered;
        d.tx_ready = credit > 0;
        d.rx_valid = heard < hears.size();
        if (d.rx_valid) {
            for (unsigned i = 0; i < B; i++) bench::set_byte(d.rx_data, i, heard + i < hears.size() ? hears[heard + i] : 0);
            for (unsigned i = 0; i < (B + 7) / 8; i++) {
                const size_t left = hears.size() > heard + 8 * i ? hears.size() - heard - 8 * i : 0;
                bench::set_byte(d.rx_keep, i, left >= 8 ? 0xff : static_cast<uint8_t>((1u << left) - 1));
            }
            heard += B;
            d.rx_last = heard >= hears.size();
        }
    }

    void add(uint8_t opcode, uint64_t addr, unsigned length, uint32_t dst = net::PEER_IP) {
        tx::Job j;
        j.dst_ip = dst, j.src_port = uint16_t(0xc000 + below(0x4000)), j.opcode = opcode, j.pkey = 0xffff;
        j.se = chance(50), j.ackreq = chance(50), j.becn = chance(50), j.dqpn = bench::rng() & 0xffffff, j.psn = bench::rng() & 0xffffff;
        for (auto& e : j.ext) e = uint32_t(bench::rng());
        j.source = length ? tx::MEMORY : tx::NONE, j.addr = addr, j.length = length, j.slot = uint8_t(bench::rng());
        jobs.push_back(j);
    }

    void settle() {
        const bool all = sim.until(10000ull * 400000, [&] { return jobs.empty() && under_way.empty() && reports.empty(); });
        CHECK(all, "stuck: %zu jobs, %zu under way, %zu without a report", jobs.size(), under_way.size(), reports.size());
        if (!all) std::exit(1);
        sim.run(100 * 10000);
    }

    double rate(unsigned length, unsigned count) {
        const uint64_t base = frames;
        uint64_t from = 0, to = 0;
        for (unsigned i = 0; i < count; i++) add(length ? 0x0e : 0x11, below(1 << 18) * 64 + below(64), length);
        sim.until(10000ull * 10000 * count, [&] {
            if (!from && frames == base + 10) from = last_beat;
            if (frames == base + count) to = last_beat;
            return to != 0;
        });
        settle();
        return double(to - from) / (count - 10);
    }

    Bench() {
        tx::OUR_IP = net::OUR_IP;
        d.rst = 1;
        d.job_valid = d.rvalid = d.arready = d.tx_ready = d.rx_valid = 0;
        d.finished = 0;
        sim.clock(d.clk, 10000, [this] { sample(); }, [this] { drive(); });
        sim.run(100000);
        d.rst = 0;
        sim.run(300 * 10000);
        hears = net::pad(net::arp(0xffffffffffffull, 1, net::PEER_MAC, net::PEER_IP, 0, net::OUR_IP));
        sim.run(300 * 10000);

        for (unsigned n : {0u, 64u}) {
            first_valid = 0;
            add(n ? 0x0a : 0x11, below(1 << 18) * 64, n);
            settle();
            std::printf("from job to frame with %u bytes from a memory of %u cycles: %lu cycles\n", n, memory.latency, (unsigned long)(first_valid - given));
        }
        memory.latency = STALL;
        for (unsigned n : {0u, 256u, 1024u, 4096u}) {
            const double wire = (n + (n ? 16 : 20) + 66) / WIRE, is = rate(n, 60);
            std::printf("%u bytes: %.2f cycles a frame, wire %.2f, %.2f%%\n", n, is, wire, 100 * wire / is);
            CHECK(n < 1024 || is <= wire / 0.99, "slower than the wire");
        }
        bench::ok("rates");
        const uint8_t opcodes[] = {0x04, 0x06, 0x07, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x17, 0x64};
        for (int i = 0; i < 1500; i++) {
            memory.latency = EARLY && chance(50) ? STALL : unsigned(below(STALL + 1));
            const uint32_t dst = chance(3) ? net::PEER_IP + 1 + uint32_t(below(5)) * 16 : net::PEER_IP;
            const unsigned n = chance(30) ? 0 : unsigned(below(chance(10) ? 4097 : 200));
            add(opcodes[below(sizeof opcodes)], below(1 << 18) * 64 + below(64), n, dst == net::OUR_IP ? net::PEER_IP : dst);
            if (chance(EARLY ? 60 : 5)) settle();
        }
        settle();
        std::printf("%lu frames in %lu cycles\n", (unsigned long)frames, (unsigned long)cycle);
        bench::ok("frames");
    }
};

}  // namespace

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    tx::prove_icrc();
    Bench b;
    return bench::end();
}
