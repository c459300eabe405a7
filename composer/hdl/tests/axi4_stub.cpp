// top: gw::bench_axi4_stub
//
// Every burst ends, with zeros and DECERR.
#include "axi4.hpp"

int main(int argc, char** argv) {
    bench::begin(argc, argv);
    bench::Sim<> sim;
    axi4::Client<Vdut> client{sim.dut, 4};
    auto& d = sim.dut;
    d.rst = 1;
    client.reset();
    sim.clock(d.clk, 10000, [&] { if (!d.rst) client.sample(); }, [&] { if (!d.rst) client.drive(); });
    sim.run(100000);
    d.rst = 0;
    for (int i = 0; i < 200; ++i) {
        client.read_percent = client.write_percent = client.take_percent = unsigned(10 + bench::below(91));
        client.read(bench::below(1 << 30), unsigned(1 + bench::below(256)), true);
        client.write(bench::below(1 << 30), unsigned(1 + bench::below(256)), 50, true);
        if (bench::below(2)) CHECK(sim.until(1000000000, [&] { return client.idle(); }), "a burst hangs");
    }
    CHECK(sim.until(10000000000, [&] { return client.idle(); }), "a burst hangs");
    CHECK(client.reads == 200 && client.writes == 200, "bursts are missing");
    bench::ok("every burst is refused");
    return bench::end();
}
