// top: bench_engine
// param: QPS=4
// param: QPS=64
//
// Two pairs of queue pairs talk to each other over a wire that drops, repeats, delays and reorders: every byte and every atomic comes out right.
#include "engine.hpp"
#include "traffic.hpp"

using namespace roce;

struct D : Driver<Vdut> {
    std::multimap<uint64_t, Unit> flight;
    void wire() {
        while (!flight.empty() && flight.begin()->first <= cycle) {
            in.push_back(flight.begin()->second);
            flight.erase(flight.begin());
        }
    }
};

static void run(unsigned drop, unsigned repeat, unsigned delay, int pmtu, unsigned count) {
    std::printf("drop %u/1000 repeat %u/1000 delay %u pmtu %d\n", drop, repeat, delay, pmtu);
    D t;
    auto& flight = t.flight;
    t.job_stall = below(50);
    t.write_delay = 1 + below(200);
    uint64_t sent = 0, lost = 0;
    t.on_job = [&](const Unit& p) {
        sent++;
        CHECK(int8_t(t.next_issued - uint8_t(p.order)) >= 0, "order lies ahead");
        for (int copies = below(1000) < repeat ? 2 : 1; copies; copies--) {
            if (below(1000) < drop) { lost++; continue; }
            Unit u = p;
            u.ip = 0x0a000001;
            const uint64_t least = 10 + p.length / 4;
            flight.emplace(t.cycle + least + (below(1000) < 50 ? below(delay) : 0), u);
        }
    };
    traffic(t, pmtu, count);
    std::printf("  %llu packets, %llu lost, %llu cycles, duplicates %llu, NAKs %llu, timeouts %llu\n", (unsigned long long)sent, (unsigned long long)lost, (unsigned long long)t.cycle, (unsigned long long)t.happened[1],
                (unsigned long long)t.happened[2], (unsigned long long)t.happened[9]);
}

int main(int argc, char** argv) {
    begin(argc, argv);
    run(0, 0, 1, 1, 100);
    ok("no loss");
    for (int i = 0; i < 3; i++) run(0, 20, 400, 1 + below(2), 100);
    ok("repeated and reordered");
    for (unsigned drop : {1, 10, 50}) run(drop, 10, 200, 1, 200);
    ok("lost");
    return end();
}
