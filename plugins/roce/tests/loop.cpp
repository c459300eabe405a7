// top: bench_roce
// param: W=32
// slow-param: W=64
// slow-param: W=512
//
// The whole transport talks to itself over a wire that drops, corrupts, repeats, delays and reorders, with a memory that stalls.
#include "loop.hpp"
#include "traffic.hpp"

static void run(const char* what, std::function<void(Loop&)> setting, int pmtu, unsigned count) {
    Loop t;
    setting(t);
    for (auto& b : t.memory) b = uint8_t(rng());
    traffic(t, pmtu, count);
    std::printf("  %s: %llu packets, %llu lost, %llu cycles\n", what, (unsigned long long)t.sent, (unsigned long long)t.lost, (unsigned long long)t.cycle);
}

int main(int argc, char** argv) {
    begin(argc, argv);
    for (int pmtu : {1, 3}) run("clean", [](Loop&) {}, pmtu, 60);
    ok("clean");
    run("stalls", [](Loop& t) { t.stall = 50; t.latency = 60; }, 2, 60);
    ok("a memory that stalls");
    run("repeats", [](Loop& t) { t.repeat = 20; t.late = 500; }, 1, 60);
    for (unsigned loss : {1, 10, 50}) run("losses", [&](Loop& t) { t.drop = loss; t.corrupt = loss; t.latency = 1 + below(40); }, 1, 100);
    ok("a bad wire");
    return end();
}
