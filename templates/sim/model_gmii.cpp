// Classes `gmii` (8 bits, transmit clock from the design) and `mii` (4 bits, both clocks from the PHY).
#include "line.h"

namespace {
class Ethernet : public Model {
public:
    Ethernet(Design& d, const ResourceConfig& r)
        : clk(d.pins.at(r.clock_port)), rx_dv(pin_of(d, r, "rx_dv")), rx_er(pin_of(d, r, "rx_er")), rx_data(pin_of(d, r, "rx_data")),
          tx_en(pin_of(d, r, "tx_en")), tx_er(pin_of(d, r, "tx_er", false)), tx_data(pin_of(d, r, "tx_data")), high(r.period / 2),
          low(r.period - r.period / 2), byte_time(r.cls == "mii" ? 2 * r.period : r.period), end(open_wire(r.wire)),
          inlet(*end, byte_time), in(inlet, counts), out(*end, counts, byte_time) {}

    Time next() const override { return edge; }
    void start(Time now) override { inlet.begin(now); }
    Wire* wire() override { return end.get(); }
    Stats* stats() override { return &counts; }
    bool idle() const override { return inlet.idle() && !in.active(); }
    void close() override { end->close(); }

protected:
    void drive(const Symbol& s, unsigned data) {
        rx_dv.set(s.valid);
        rx_er.set(s.error);
        rx_data.set(data);
    }
    Pin clk, rx_dv, rx_er, rx_data, tx_en, tx_er, tx_data;
    Time high, low, byte_time;
    std::unique_ptr<Wire> end;
    Stats counts;
    Inlet inlet;
    LineIn in;
    LineOut out;
    Time edge = 0;
    bool level = false;
};

class Gmii final : public Ethernet {
public:
    Gmii(Design& d, const ResourceConfig& r) : Ethernet(d, r), gtx_clk(pin_of(d, r, "gtx_clk")) {}
    void before(Time now) override {
        level = !level;
        clk.set(level);
        edge = now + (level ? high : low);
    }
    void after(Time now) override {
        if (!level) return;
        Symbol s = in.next(now);
        drive(s, s.data);
    }
    bool watches() const override { return true; }
    // The PHY takes what was there before the edge: data that change with it belong to the next.
    void watch(Time now) override {
        bool c = gtx_clk.get() & 1;
        if (c && !was_clk) out.put(now, was);
        was_clk = c;
        was = {static_cast<uint8_t>(tx_data.get()), static_cast<bool>(tx_en.get() & 1), tx_er && (tx_er.get() & 1)};
    }

private:
    Pin gtx_clk;
    bool was_clk = false;
    Symbol was;
};

class Mii final : public Ethernet {
public:
    Mii(Design& d, const ResourceConfig& r) : Ethernet(d, r), tx_clk(pin_of(d, r, "tx_clk")) {}
    void before(Time now) override {
        level = !level;
        if (level) take(now);
        clk.set(level);
        tx_clk.set(level);
        edge = now + (level ? high : low);
    }
    void after(Time now) override {
        if (!level) return;
        if (!second) current = in.next(now);
        drive(current, second ? current.data >> 4 : current.data & 15);
        second = current.valid && !second;
    }

private:
    void take(Time now) {
        bool en = tx_en.get() & 1;
        if (!en) {
            // Half a byte more than whole ones is dribble; the FCS decides.
            half = false;
            idle_nibbles++;
            if (was_en || idle_nibbles % 2 == 0) out.put(now, {});
            if (was_en) idle_nibbles = 0;
            was_en = false;
            return;
        }
        was_en = true;
        unsigned d = tx_data.get() & 15;
        if (half) out.put(now - byte_time / 2, {static_cast<uint8_t>(d << 4 | low_nibble), true, tx_er && (tx_er.get() & 1)});
        low_nibble = d;
        half = !half;
    }
    Pin tx_clk;
    bool second = false, half = false, was_en = false;
    unsigned low_nibble = 0, idle_nibbles = 0;
    Symbol current;
};
}  // namespace

std::unique_ptr<Model> make_gmii(Design& d, const ResourceConfig& r) { return std::make_unique<Gmii>(d, r); }
std::unique_ptr<Model> make_mii(Design& d, const ResourceConfig& r) { return std::make_unique<Mii>(d, r); }
