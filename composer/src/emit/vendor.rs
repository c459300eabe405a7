//! Projects for the vendor's tools, where no open flow makes a bitstream.

use serde::Serialize;
use tera::{Context, Tera};

use super::controller;
use crate::diag::Diagnostic;
use crate::manifest::board::{Board, BoardClock, Dir, Resource, TopPort};

/// What a Vivado project is made of. Paths are relative to the folder of the script.
#[derive(Clone, Debug)]
pub struct VivadoProject<'a> {
    /// Name of the project.
    pub design: &'a str,
    /// Top module.
    pub top: &'a str,
    /// SystemVerilog files in compile order.
    pub sources: &'a [String],
    /// The constraint file.
    pub xdc: &'a str,
    /// Resources behind the vendor's IP that the project uses.
    pub vendor_ip: &'a [Resource],
}

#[derive(Serialize)]
struct VendorIp {
    resource: String,
    name: String,
    module: String,
    ip: String,
}

/// What stands for a hard MAC of a rate: the module of project `io`, the black box in it, and the IP behind that.
struct HardMac {
    module: &'static str,
    ip_module: &'static str,
    ip: &'static str,
}

fn hard_mac(resource: &Resource) -> HardMac {
    if resource.rates_mbps().into_iter().max().unwrap_or(0) >= 100_000 {
        HardMac { module: "hard_mac_100g", ip_module: "hard_mac_100g_ip", ip: "xilinx.com:ip:cmac_usplus" }
    } else {
        HardMac { module: "hard_mac_10g", ip_module: "hard_mac_10g_ip", ip: "xilinx.com:ip:xxv_ethernet" }
    }
}

/// Module of project `io` that stands for a resource's hard MAC; `None` for a memory, whose controller is at the board level as it is.
pub fn shim(resource: &Resource) -> Option<&'static str> {
    (!controller::is_memory(resource)).then(|| hard_mac(resource).module)
}

/// What the vendor calls the IP behind a resource.
pub(super) fn ip_name(resource: &Resource) -> String {
    let fact = if controller::is_memory(resource) { "controller" } else { "mac" };
    resource.facts.get(fact).and_then(|f| f.value.as_str()).unwrap_or("not known").to_owned()
}

impl VivadoProject<'_> {
    /// The Tcl script for `vivado -mode batch -source`: non-project flow from sources to bitstream, with reports.
    ///
    /// # Errors
    /// `GW0212` if the template cannot be rendered.
    pub fn tcl(&self, board: &Board) -> Result<String, Diagnostic> {
        let ip = |resource: &Resource| {
            let (module, ip) = if controller::is_memory(resource) {
                (controller::module(resource), controller::ip(resource))
            } else {
                let HardMac { ip_module, ip, .. } = hard_mac(resource);
                (ip_module.to_owned(), ip.to_owned())
            };
            VendorIp { resource: resource.name.value.clone(), name: ip_name(resource), module, ip }
        };
        let mut context = Context::new();
        context.insert("design", self.design);
        context.insert("board", &board.name.value);
        context.insert("part", &board.part.number.value);
        context.insert("top", self.top);
        context.insert("sources", self.sources);
        context.insert("xdc", self.xdc);
        context.insert("vendor_ip", &self.vendor_ip.iter().map(ip).collect::<Vec<_>>());
        render("vivado.tcl", include_str!("../../../templates/vendor/vivado.tcl.tera"), &context)
    }
}

/// The level above the top module on a board with hard MACs or memory controllers: the design, the IP and its pins.
#[derive(Clone, Debug)]
pub struct BoardLevel {
    /// Module name, the top of the vendor's project.
    pub module: String,
    /// SystemVerilog.
    pub text: String,
    /// Its ports that have pins, for the constraint file.
    pub ports: Vec<TopPort>,
    /// Oscillator that starts the IP; it needs a clock constraint, unless the design has it already.
    pub init_clock: BoardClock,
}

#[derive(Serialize)]
struct Port {
    name: String,
    dir: &'static str,
    range: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Signal {
    pin: String,
    wire: String,
    range: Option<String>,
}

#[derive(Serialize)]
struct Mac {
    name: String,
    mac: String,
    module: &'static str,
    signals: Vec<Signal>,
}

#[derive(Serialize)]
struct Init {
    p: String,
    n: Option<String>,
}

/// The pins of a cage: name of the port, key in the resource's `vendor` table, direction.
const CAGE: [(&str, &str, Dir); 6] = [
    ("ref_p", "ref-p", Dir::In),
    ("ref_n", "ref-n", Dir::In),
    ("gt_rx_p", "rx-p", Dir::In),
    ("gt_rx_n", "rx-n", Dir::In),
    ("gt_tx_p", "tx-p", Dir::Out),
    ("gt_tx_n", "tx-n", Dir::Out),
];

/// Writes the board level. `ports` are those of the module `top`, the signals of `vendor_ip` among them.
///
/// # Errors
/// `GW0213` if the board has no second oscillator to start the IP with, `GW0212` if the template cannot be rendered.
pub fn board_level(board: &Board, design: &str, top: &str, ports: &[TopPort], vendor_ip: &[Resource]) -> Result<BoardLevel, Diagnostic> {
    let used = |clock: &&BoardClock| !ports.iter().any(|p| p.name == clock.name.value);
    let Some(init_clock) = board.clocks.iter().find(used).cloned() else {
        let message = format!("board `{}` has no free oscillator to start the vendor's IP with", board.name.value);
        return Err(Diagnostic::error("GW0213", message)
            .at(&board.name.span)
            .help("hard MACs and memory controllers need a clock besides the design's own"));
    };
    // Their signals are wires here; the width is that of the design's port.
    let inner = |name: &str| vendor_ip.iter().any(|m| m.pins.iter().any(|p| name == format!("{}_{}", m.name.value, p.spec.name)));
    let mut outer: Vec<TopPort> = ports.iter().filter(|p| !inner(&p.name)).cloned().collect();
    outer.extend(init_clock.top_ports());
    let (mut macs, mut memories) = (Vec::new(), Vec::new());
    for resource in vendor_ip {
        let name = &resource.name.value;
        let signal = |pin: &str| {
            let wire = format!("{name}_{pin}");
            let port = ports.iter().find(|p| p.name == wire)?;
            Some(Signal { pin: pin.to_owned(), range: range(port), wire })
        };
        let signals: Vec<Signal> = resource.pins.iter().filter_map(|p| signal(&p.spec.name)).collect();
        if controller::is_memory(resource) {
            outer.extend(controller::pins(resource));
            memories.push(controller::Memory::new(resource, signals));
            continue;
        }
        let module = hard_mac(resource).module;
        let lanes = if module == "hard_mac_100g" { 4 } else { 1 };
        for (port, key, dir) in CAGE {
            let locations = resource.vendor.get(key).map(locations).unwrap_or_default();
            let bus = port.starts_with("gt_");
            let width = if bus { lanes } else { 1 };
            outer.push(TopPort { name: format!("{name}_{port}"), dir, bus, width, locations, io: None, attrs: Default::default() });
        }
        macs.push(Mac { name: name.clone(), mac: ip_name(resource), module, signals });
    }
    let reset = board.resets.iter().find(|r| ports.iter().any(|p| p.name == r.name.value));
    let reset = reset.map_or_else(|| "1'b0".to_owned(), |r| format!("{}{}", if r.active_low { "~" } else { "" }, r.name.value));
    let module = format!("{}_board", design.replace('-', "_"));
    let mut context = Context::new();
    context.insert("design", design);
    context.insert("board", &board.name.value);
    context.insert("module", &module);
    context.insert("top", top);
    context.insert("reset", &reset);
    context.insert("macs", &macs);
    context.insert("memories", &memories);
    let second = init_clock.pin_n.as_ref().map(|_| format!("{}_n", init_clock.name.value));
    context.insert("init", &Init { p: init_clock.name.value.clone(), n: second });
    context.insert("connections", &ports.iter().map(|p| &p.name).collect::<Vec<_>>());
    let port = |p: &TopPort| Port {
        name: p.name.clone(),
        dir: match p.dir {
            Dir::In => "input ",
            Dir::Out => "output",
            Dir::InOut => "inout ",
        },
        range: range(p),
    };
    context.insert("ports", &outer.iter().map(port).collect::<Vec<_>>());
    let text = render("board.sv", include_str!("../../../templates/vendor/board.sv.tera"), &context)?;
    outer.retain(|p| !p.locations.is_empty());
    Ok(BoardLevel { module, text, ports: outer, init_clock })
}

/// One pin or a list of them, from bit 0 upwards.
pub(super) fn locations(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(pin) => vec![pin.clone()],
        serde_json::Value::Array(pins) => pins.iter().filter_map(|p| p.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// The packed range of a port that is an array.
pub(super) fn range(port: &TopPort) -> Option<String> {
    port.bus.then(|| format!("[{}:0]", port.width.saturating_sub(1)))
}

/// Renders a template that is part of the program, without escaping.
pub(super) fn render(name: &str, template: &str, context: &Context) -> Result<String, Diagnostic> {
    let mut tera = Tera::default();
    tera.autoescape_on(Vec::new());
    let text = tera.add_raw_template(name, template).and_then(|()| tera.render(name, context));
    text.map_err(|e| {
        let mut message = format!("cannot write `{name}`: {e}");
        let mut cause = std::error::Error::source(&e);
        while let Some(inner) = cause {
            message.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        Diagnostic::error("GW0212", message)
    })
}
