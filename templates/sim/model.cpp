#include "model.h"

Pin pin_of(Design& d, const ResourceConfig& r, const std::string& pin, bool needed) {
    auto i = d.pins.find(r.name + "_" + pin);
    if (i != d.pins.end()) return i->second;
    if (needed) throw Fatal{"GW0704", "the top level has no port `" + r.name + "_" + pin + "` for class `" + r.cls + "`", ""};
    return Pin{};
}

std::unique_ptr<Wire> open_wire(const WireConfig& w) {
    if (w.kind == "unix") return open_unix(w.a, w.b);
    if (w.kind == "tap") return open_tap(w.a);
    if (w.kind == "step") return open_step(w.a);
    if (w.kind == "pcap") return open_pcap(w.a, w.b);
    if (w.kind == "pattern") return open_pattern(w.a, w.b);
    return open_nothing();
}

std::unique_ptr<Model> make_model(Design& d, const ResourceConfig& r) {
    if (r.cls == "stream") return make_stream(d, r);
    if (r.cls == "rgmii") return make_rgmii(d, r);
    if (r.cls == "gmii") return make_gmii(d, r);
    if (r.cls == "mii") return make_mii(d, r);
    if (r.cls == "uart") return make_uart(d, r);
    if (r.cls == "leds") return make_leds(d, r);
    if (r.cls == "sdr-sdram") return make_sdram(d, r);
    if (r.cls == "axi4-memory") return make_axi4(d, r);
    // The management bus: no PHY answers.
    if (r.cls == "mdio") return std::make_unique<Model>();
    throw Fatal{"GW0703", "no model for class `" + r.cls + "` of `" + r.name + "`", ""};
}
