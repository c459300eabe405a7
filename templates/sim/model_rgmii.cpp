// Class `rgmii`: the PHY side of RGMII 2.0, with edge times.
//
// The Verilated design has no delays, so the times at the PHY's and at the FPGA's flip-flops are reckoned here: the time
// at which the design changed a pin, plus the planned delay cells, plus what the PHY adds.
#include <deque>

#include "line.h"

namespace {
// RGMII 2.0, table of timing: TskewT at the transmitter's pins without internal delay is at most 500 ps either way,
// TsetupR and TholdR at the receiver 1.0 ns each. The FPGA's input cell: 520 ps each, ECP5 GDDRX1 centred.
constexpr int64_t SKEW_PS = 500, PHY_SETUP_PS = 1000, PHY_HOLD_PS = 1000, FPGA_SETUP_PS = 520, FPGA_HOLD_PS = 520;
constexpr int64_t CENTRED_PS = 2000;

/// Pins that arrive at the PHY together, and when they changed.
class Arrivals {
public:
    Arrivals(const char* n, Pin p, Time d) : name(n), pin(p), delay(d) {
        list.push_back({0, pin.get()});
    }
    void look(Time now) {
        uint64_t v = pin.get();
        if (v == list.back().value) return;
        list.push_back({now + delay, v});
    }
    /// Value at `at`; `missed` tells about changes nearer than the set-up and hold times. Samples come in order.
    uint64_t sample(Time at, Time setup, Time hold, std::string& missed) {
        while (list.size() > 1 && list[1].at <= at) list.pop_front();
        const Change& held = list.front();
        if (held.at + setup > at && held.at > 0)
            missed = std::string(name) + " changed " + show(at - held.at) + " before the clock edge at " + show(at) + ", set-up is " + show(setup);
        else if (list.size() > 1 && list[1].at < at + hold)
            missed = std::string(name) + " changed " + show(list[1].at - at) + " after the clock edge at " + show(at) + ", hold is " + show(hold);
        return held.value;
    }
    Time delay_of() const { return delay; }

private:
    struct Change {
        Time at;
        uint64_t value;
    };
    const char* name;
    Pin pin;
    Time delay;
    std::deque<Change> list;
};

class Rgmii final : public Model {
public:
    Rgmii(Design& d, const ResourceConfig& r)
        : clk(d.pins.at(r.clock_port)), rx_ctl(pin_of(d, r, "rx_ctl")), rx_data(pin_of(d, r, "rx_data")), tx_clk(pin_of(d, r, "tx_clk")),
          ctl("tx_ctl", pin_of(d, r, "tx_ctl"), r.delay("tx_ctl")), data("tx_data", pin_of(d, r, "tx_data"), r.delay("tx_data")),
          end(open_wire(r.wire)), inlet(*end, BYTE), in(inlet, counts), out(*end, counts, BYTE) {
        mbps = r.fact("in-band-mbps", 1000);
        half = mbps == 1000 ? BYTE / 2 : mbps == 100 ? 5 * BYTE / 2 : 50 * BYTE / 2;
        // Bits: link up, speed (2 = 1000, 1 = 100, 0 = 10), full duplex.
        status = static_cast<unsigned>(1 | (mbps == 1000 ? 2 : mbps == 100 ? 1 : 0) << 1 | 8);
        // Where the board file does not know the PHY's delay, the PHY makes up what the FPGA leaves of a quarter period.
        int64_t phy_tx = r.fact("phy-tx-delay-ps", CENTRED_PS - r.fact("tx-delay-ps", 0));
        clock_delay = r.delay("tx_clk") + ps(phy_tx > 0 ? phy_tx : 0);
        setup = ps(r.fact("phy-setup-ps", PHY_SETUP_PS)), hold = ps(r.fact("phy-hold-ps", PHY_HOLD_PS));
        least = data.delay_of() < ctl.delay_of() ? data.delay_of() : ctl.delay_of();
        int64_t phy_rx = r.fact("phy-rx-delay-ps", CENTRED_PS - r.fact("rx-delay-ps", 0));
        receive_window(r, "rx_data", phy_rx);
        receive_window(r, "rx_ctl", phy_rx);
    }

    Time next() const override { return edge; }
    void start(Time now) override {
        inlet.begin(now);
        running = true;
    }
    Wire* wire() override { return end.get(); }
    Stats* stats() override { return &counts; }
    // At another speed than 1000 Mb/s no frame goes in, so none is waited for.
    bool idle() const override { return mbps != 1000 || (inlet.idle() && !in.active()); }
    void close() override { end->close(); }

    void before(Time now) override {
        level = !level;
        clk.set(level);
        edge = now + half;
    }
    // After a falling edge stands what the next rising edge takes, and the other way round.
    void after(Time now) override {
        if (!level) {
            bool was = current.valid;
            current = mbps == 1000 ? in.next(now) : Symbol{};
            if (current.valid && !was)
                for (auto& m : receive_misses) counts.violation(m + ", first clock edge at " + show(now + half));
            if (!current.valid) current.data = static_cast<uint8_t>(status << 4 | status);
        }
        rx_data.set(level ? current.data >> 4 : current.data & 15);
        rx_ctl.set(level ? current.valid != current.error : current.valid);
    }

    bool watches() const override { return true; }
    void watch(Time now) override {
        ctl.look(now);
        data.look(now);
        bool c = tx_clk.get() & 1;
        if (c != was_clk) samples.push_back({now + clock_delay, c});
        was_clk = c;
        // A later change arrives `least` from now at the earliest.
        while (!samples.empty() && samples.front().at + hold <= now + least) {
            take(samples.front());
            samples.pop_front();
        }
    }

private:
    static constexpr Time BYTE = 8000000;
    static Time ps(int64_t v) { return static_cast<Time>(v) * 1000u; }
    struct Sample {
        Time at;
        bool rise;
    };

    /// The clock edge at the FPGA's input cell must be away from every change of the data. A bit lasts 4 ns; which of the two
    /// edges beside a bit takes it depends on the FPGA's clock tree, so the distance counts modulo 4 ns.
    void receive_window(const ResourceConfig& r, const std::string& pin, int64_t phy_rx) {
        constexpr int64_t BIT = 4000;
        int64_t offset = phy_rx + static_cast<int64_t>(r.delay("rx_clk") / 1000) - static_cast<int64_t>(r.delay(pin) / 1000);
        offset = ((offset % BIT) + BIT) % BIT;
        int64_t skew = r.fact("phy-skew-ps", SKEW_PS), before = offset - skew, behind = BIT - offset - skew;
        int64_t need_setup = r.fact("fpga-setup-ps", FPGA_SETUP_PS), need_hold = r.fact("fpga-hold-ps", FPGA_HOLD_PS);
        if (before < need_setup)
            receive_misses.push_back(pin + " is stable for " + std::to_string(before) + " ps before rx_clk at the FPGA, set-up is " + std::to_string(need_setup) + " ps");
        else if (behind < need_hold)
            receive_misses.push_back(pin + " is stable for " + std::to_string(behind) + " ps after rx_clk at the FPGA, hold is " + std::to_string(need_hold) + " ps");
    }

    void take(const Sample& s) {
        std::string missed;
        uint64_t d = data.sample(s.at, setup, hold, missed);
        uint64_t c = ctl.sample(s.at, setup, hold, missed);
        if (!missed.empty() && running) counts.violation(missed);
        if (s.rise) {
            low = static_cast<uint8_t>(d & 15);
            en = c & 1;
        } else {
            out.put(s.at - BYTE / 2, {static_cast<uint8_t>((d & 15) << 4 | low), en, en != static_cast<bool>(c & 1)});
        }
    }

    Pin clk, rx_ctl, rx_data, tx_clk;
    Arrivals ctl, data;
    std::unique_ptr<Wire> end;
    Stats counts;
    Inlet inlet;
    LineIn in;
    LineOut out;
    std::deque<Sample> samples;
    std::vector<std::string> receive_misses;
    Symbol current;
    int64_t mbps;
    unsigned status;
    Time half, clock_delay, setup, hold, least, edge = 0;
    bool level = false, running = false, was_clk = false, en = false;
    uint8_t low = 0;
};
}  // namespace

std::unique_ptr<Model> make_rgmii(Design& d, const ResourceConfig& r) { return std::make_unique<Rgmii>(d, r); }
