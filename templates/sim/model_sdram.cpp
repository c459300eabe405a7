// Class `sdr-sdram`: the chip of `sdram_chip.h` at its pins.
//
// The Verilated design has no delays. The design's registers change half a period before the chip's clock edge, and a word that the chip
// gives stands at the pins from the edge on at which the chip has it for certain: the wires to the chip and back are
// taken to be shorter than half a period together.
#include "model.h"
#include "sdram_chip.h"

namespace {
SdramChip::Geometry geometry(const ResourceConfig& r) {
    SdramChip::Geometry g;
    g.banks = static_cast<unsigned>(r.fact("banks", g.banks));
    g.rows = static_cast<unsigned>(r.fact("rows", g.rows));
    g.columns = static_cast<unsigned>(r.fact("columns", g.columns));
    return g;
}

class Sdram final : public Model {
public:
    Sdram(Design& d, const ResourceConfig& r)
        : name(r.name), clock(pin_of(d, r, "clock")), ras_n(pin_of(d, r, "ras_n")), cas_n(pin_of(d, r, "cas_n")), we_n(pin_of(d, r, "we_n")),
          cs_n(pin_of(d, r, "cs_n", false)), cke(pin_of(d, r, "cke", false)), ba(pin_of(d, r, "ba")), a(pin_of(d, r, "a")), dm(pin_of(d, r, "dm", false)),
          dq_i(pin_of(d, r, "dq_i")), dq_o(pin_of(d, r, "dq_o")), dq_oe(pin_of(d, r, "dq_oe")), chip(geometry(r)) {
        // The design is not made to wait for the chip's power-up in a simulation.
        chip.timing.power_up = 0;
    }
    bool watches() const override { return true; }
    void watch(Time now) override {
        const bool level = clock.get() & 1;
        if (level && !was) edge(now);
        was = level;
    }
    std::string shown() const override {
        return std::to_string(chip.reads) + " words read, " + std::to_string(chip.writes) + " written, " + std::to_string(chip.activates) + " rows, " +
               std::to_string(chip.refreshes) + " refreshes";
    }

private:
    void edge(Time now) {
        const uint64_t ps = now / 1000;
        if (last) chip.clock_period(ps - last);
        last = ps;
        const bool selected = (!cs_n || !(cs_n.get() & 1)) && (!cke || (cke.get() & 1));
        const uint64_t drives = dq_oe.get();
        if (drives) chip.contend(ps);
        if (selected)
            chip.edge(ps, ras_n.get() & 1, cas_n.get() & 1, we_n.get() & 1, static_cast<unsigned>(ba.get()), static_cast<unsigned>(a.get()),
                      dm ? static_cast<unsigned>(dm.get()) : 0, dq_o.get(), drives != 0);
        for (auto& w : chip.driving())
            if (ps >= w.from && ps < w.until) dq_i.set(w.data);
        if (!chip.fault.empty()) throw Fatal{"GW0721", "`" + name + "`: at " + chip.fault, "the controller breaks a rule of the chip's data sheet"};
    }

    std::string name;
    Pin clock, ras_n, cas_n, we_n, cs_n, cke, ba, a, dm, dq_i, dq_o, dq_oe;
    SdramChip chip;
    uint64_t last = 0;
    bool was = false;
};
}  // namespace

std::unique_ptr<Model> make_sdram(Design& d, const ResourceConfig& r) { return std::make_unique<Sdram>(d, r); }
