// Class `stream`: the client side of a hard MAC. Whole frames without preamble and FCS, at the link's pace.
#include "model.h"

namespace {
class Stream final : public Model {
public:
    Stream(Design& d, const ResourceConfig& r)
        : clk(d.pins.at(r.clock_port)), rx_data(pin_of(d, r, "rx_tdata")), rx_keep(pin_of(d, r, "rx_tkeep")), rx_last(pin_of(d, r, "rx_tlast")),
          rx_err(pin_of(d, r, "rx_terr")), rx_valid(pin_of(d, r, "rx_tvalid")), rx_ready(pin_of(d, r, "rx_tready", false)),
          tx_data(pin_of(d, r, "tx_tdata")), tx_keep(pin_of(d, r, "tx_tkeep")), tx_last(pin_of(d, r, "tx_tlast")),
          tx_err(pin_of(d, r, "tx_terr")), tx_valid(pin_of(d, r, "tx_tvalid")), tx_ready(pin_of(d, r, "tx_tready")), beat(r.width / 8),
          high(r.period / 2), low(r.period - r.period / 2), byte_time(8000000000ull / static_cast<Time>(r.fact("mbps", 1000))),
          depth(beat * 4 < 64 ? 64 : beat * 4), end(open_wire(r.wire)), inlet(*end, byte_time), edge(0) {}

    Time next() const override { return edge; }
    void start(Time now) override { inlet.begin(now); }
    Wire* wire() override { return end.get(); }
    Stats* stats() override { return &counts; }
    bool idle() const override { return inlet.idle() && !active; }
    void close() override { end->close(); }

    void before(Time now) override {
        rising = !level;
        level = rising;
        if (rising) {
            took_rx = rx_valid.get() && (!rx_ready || rx_ready.get());
            took_tx = tx_valid.get() && tx_ready.get();
            if (took_tx) accept(now);
        }
        clk.set(level);
        edge = now + (rising ? high : low);
    }
    void after(Time now) override {
        if (!rising) return;
        receive(now);
        tx_ready.set(room(now));
    }

private:
    void receive(Time now) {
        if (rx_valid.get() && !took_rx) {
            // A hard MAC has a small buffer behind it; after eight beats the frame is lost.
            if (active && !overflow && now > due() + 8 * (high + low)) overflow = true;
            return;
        }
        rx_valid.set(0);
        if (!active) {
            if (!inlet.take(now, frame, begun, false)) return;
            active = true;
            overflow = false;
            at = 0;
            good = fcs_good(frame.bytes) && frame.error_at < 0 && frame.sfd == 0xd5 && frame.bytes.size() >= 64;
            size = static_cast<unsigned>(frame.bytes.size() > 4 ? frame.bytes.size() - 4 : 0);
        }
        if (now < due()) return;
        unsigned n = size - at < beat ? size - at : beat;
        bool last = at + n >= size || overflow;
        rx_data.set_bytes(frame.bytes.data() + at, n);
        rx_keep.set_ones(n);
        rx_last.set(last);
        rx_err.set(last && (!good || overflow));
        rx_valid.set(1);
        at += n;
        if (last) {
            active = false;
            if (overflow) counts.dropped_in++;
            counts.came_in(frame, good && !overflow, now);
        }
    }
    /// When all bytes of the next beat have arrived.
    Time due() const { return begun + (frame.preamble + 1 + (size - at < beat ? size : at + beat)) * byte_time; }

    void accept(Time now) {
        if (out.empty() && !in_frame) {
            in_frame = true;
            out_start = now > out_free ? now : out_free;
            torn = false;
        } else if (now > out_start + (8 + out.size()) * byte_time) {
            // The wire wanted this byte already.
            if (!torn) counts.underruns++;
            torn = true;
        }
        unsigned n = tx_keep.ones();
        if (n > beat) n = beat;
        out.insert(out.end(), tx_data.at, tx_data.at + n);
        if (!tx_last.get()) return;
        Sent s;
        s.good = !torn && !tx_err.get();
        if (out.size() < 60) out.resize(60, 0);
        s.bytes = std::move(out);
        s.start = out_start;
        s.first_byte = out_start + 8 * byte_time;
        s.end = out_start + (8 + s.bytes.size() + 4) * byte_time;
        out_end = s.end;
        out_free = s.end + 12 * byte_time;
        out.clear();
        in_frame = false;
        counts.went_out(s);
        if (!end->send(s)) counts.undelivered++;
    }
    /// Whether the MAC's buffer takes another beat at the next edge.
    bool room(Time now) const {
        Time fill;
        if (in_frame) {
            Time from = out_start + 8 * byte_time;
            Time gone = now > from ? (now - from) / byte_time : 0;
            fill = out.size() > gone ? out.size() - gone : 0;
        } else {
            fill = out_end > now ? (out_end - now) / byte_time : 0;
        }
        return fill + 2 * beat <= depth;
    }

    Pin clk, rx_data, rx_keep, rx_last, rx_err, rx_valid, rx_ready, tx_data, tx_keep, tx_last, tx_err, tx_valid, tx_ready;
    unsigned beat;
    Time high, low, byte_time;
    unsigned depth;
    std::unique_ptr<Wire> end;
    Inlet inlet;
    Stats counts;
    Time edge;
    bool level = false, rising = false, took_rx = false, took_tx = false;
    Frame frame;
    bool active = false, overflow = false, good = false;
    unsigned at = 0, size = 0;
    Time begun = 0;
    std::vector<uint8_t> out;
    bool in_frame = false, torn = false;
    Time out_start = 0, out_free = 0, out_end = 0;
};
}  // namespace

std::unique_ptr<Model> make_stream(Design& d, const ResourceConfig& r) { return std::make_unique<Stream>(d, r); }
