// Class `axi4-memory`: the memory of `axi4_memory.h` behind a controller that comes from elsewhere, on its own clock.
//
// Latency and refresh are those of the facts of the same names; where a board does not say them, a refresh as DDR4 of 8 Gb has it (JESD79-4: tREFI 7.8 us,
// tRFC1 350 ns), and a latency that is an assumption.
#include "axi4_memory.h"
#include "model.h"

namespace {
class Axi4 final : public Model {
public:
    Axi4(Design& d, const ResourceConfig& r)
        : name(r.name), clk(d.pins.at(r.clock_port)), awid(pin_of(d, r, "awid")), awaddr(pin_of(d, r, "awaddr")), awlen(pin_of(d, r, "awlen")),
          awvalid(pin_of(d, r, "awvalid")), awready(pin_of(d, r, "awready")), wdata(pin_of(d, r, "wdata")), wstrb(pin_of(d, r, "wstrb")),
          wlast(pin_of(d, r, "wlast")), wvalid(pin_of(d, r, "wvalid")), wready(pin_of(d, r, "wready")), bid(pin_of(d, r, "bid")), bresp(pin_of(d, r, "bresp")),
          bvalid(pin_of(d, r, "bvalid")), bready(pin_of(d, r, "bready")), arid(pin_of(d, r, "arid")), araddr(pin_of(d, r, "araddr")),
          arlen(pin_of(d, r, "arlen")), arvalid(pin_of(d, r, "arvalid")), arready(pin_of(d, r, "arready")), rid(pin_of(d, r, "rid")),
          rdata(pin_of(d, r, "rdata")), rresp(pin_of(d, r, "rresp")), rlast(pin_of(d, r, "rlast")), rvalid(pin_of(d, r, "rvalid")),
          rready(pin_of(d, r, "rready")), bytes(static_cast<unsigned>(r.fact("data-bits", 512)) / 8), high(r.period / 2), low(r.period - r.period / 2),
          memory(bytes, static_cast<uint64_t>(r.fact("mbytes", 1)) << 20, static_cast<uint64_t>(r.fact("seed", 1))) {
        const auto cycles = [&](const char* fact, int64_t ns) { return static_cast<uint64_t>(r.fact(fact, ns)) * 1000000 / r.period; };
        memory.pace.stall_percent = static_cast<unsigned>(r.fact("stall-percent", 25));
        memory.pace.latency = cycles("latency-ns", 100);
        memory.pace.pause_every = cycles("refresh-every-ns", 7800);
        memory.pace.pause_for = cycles("refresh-ns", 350);
    }
    Time next() const override { return edge; }
    void before(Time now) override {
        level = !level;
        if (level) clock(now);
        clk.set(level);
        edge = now + (level ? high : low);
    }
    void after(Time) override {
        if (!level) return;
        const auto& o = memory.out;
        awready.set(o.awready), wready.set(o.wready), arready.set(o.arready);
        bvalid.set(o.bvalid), bid.set(o.bid), bresp.set(0);
        rvalid.set(o.rvalid), rlast.set(o.rlast), rid.set(o.rid), rresp.set(0);
        if (o.rvalid) rdata.set_bytes(o.rdata.data(), bytes);
    }
    std::string shown() const override {
        return std::to_string(memory.read_beats) + " words read, " + std::to_string(memory.write_beats) + " written, " + std::to_string(memory.pauses) + " refreshes";
    }

private:
    void clock(Time now) {
        Axi4Memory::Master m;
        m.ar = {(arvalid.get() & 1) != 0, araddr.get(), static_cast<unsigned>(arlen.get()), static_cast<unsigned>(arid.get())};
        m.aw = {(awvalid.get() & 1) != 0, awaddr.get(), static_cast<unsigned>(awlen.get()), static_cast<unsigned>(awid.get())};
        m.w.valid = (wvalid.get() & 1) != 0;
        if (m.w.valid) {
            m.w.last = (wlast.get() & 1) != 0;
            m.w.bytes.assign(wdata.at, wdata.at + bytes);
            m.w.strobe.assign(wstrb.at, wstrb.at + (bytes + 7) / 8);
        }
        m.rready = (rready.get() & 1) != 0;
        m.bready = (bready.get() & 1) != 0;
        memory.edge(m);
        if (!memory.fault.empty())
            throw Fatal{"GW0722", "`" + name + "`: at " + show(now) + ": " + memory.fault, "a client of the memory breaks a rule of AXI4"};
    }

    std::string name;
    Pin clk, awid, awaddr, awlen, awvalid, awready, wdata, wstrb, wlast, wvalid, wready, bid, bresp, bvalid, bready;
    Pin arid, araddr, arlen, arvalid, arready, rid, rdata, rresp, rlast, rvalid, rready;
    unsigned bytes;
    Time high, low;
    Axi4Memory memory;
    Time edge = 0;
    bool level = false;
};
}  // namespace

std::unique_ptr<Model> make_axi4(Design& d, const ResourceConfig& r) { return std::make_unique<Axi4>(d, r); }
