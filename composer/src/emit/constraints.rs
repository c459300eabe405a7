//! Constraint files: LPF for nextpnr, XDC for Vivado.
//!
//! The composer's own plan is turned into a [`Constraints`], which says everything in neutral terms; [`Constraints::lpf`] and
//! [`Constraints::xdc`] write it through the templates in `templates/constraints/`.

use std::collections::BTreeMap;

use serde::Serialize;
use tera::Context;

use crate::diag::Diagnostic;
use crate::manifest::board::{Board, Dir, Resource, TopPort};
use crate::plugin::types::{Timing, TimingRule};

/// What carries a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockAt {
    /// A port of the top level.
    Port(String),
    /// A net that a PLL drives.
    PllNet(String),
    /// A net that nothing known to the tools drives (a hard MAC's clock).
    Net(String),
}

/// A clock and its frequency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockLine {
    /// Where.
    pub at: ClockAt,
    /// Frequency in Hz.
    pub hz: u64,
    /// Remark, one line; may be empty.
    pub comment: String,
}

/// Set-up and hold of ports against a clock that travels with them, at both edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoDelay {
    /// Ports, `in` or `out` all of them.
    pub ports: Vec<String>,
    /// Direction of the ports.
    pub dir: Dir,
    /// Port of the clock; for outputs it is made here.
    pub clock: String,
    /// Latest change after the clock's edge (inputs), or set-up at the far side (outputs), in ps.
    pub max_ps: i64,
    /// Earliest change (inputs), or negative hold at the far side (outputs), in ps.
    pub min_ps: i64,
    /// Where the figures come from.
    pub comment: String,
}

/// Everything that goes into a constraint file.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    /// Name of the project.
    pub design: String,
    /// Ports of the top level.
    pub ports: Vec<TopPort>,
    /// Every clock.
    pub clocks: Vec<ClockLine>,
    /// Source-synchronous ports.
    pub delays: Vec<IoDelay>,
    /// Timing exceptions.
    pub exceptions: Vec<Timing>,
    /// Resources behind the vendor's IP: hard MACs and memory controllers.
    pub vendor_ip: Vec<Resource>,
}

#[derive(Serialize)]
struct Clock {
    port: bool,
    primary: bool,
    name: String,
    label: String,
    mhz: String,
    period_ns: String,
    comment: String,
}

#[derive(Serialize)]
struct Attr {
    key: String,
    value: String,
}

#[derive(Serialize)]
struct Bit {
    port: String,
    pin: String,
    attrs: Vec<Attr>,
}

#[derive(Serialize)]
struct Exception {
    rule: &'static str,
    command: &'static str,
    start: String,
    end: String,
    ns: Option<String>,
    value: Option<String>,
    why: String,
}

#[derive(Serialize)]
struct Delay {
    ports: Vec<String>,
    direction: &'static str,
    generated: bool,
    clock: String,
    max_ns: String,
    min_ns: String,
    comment: String,
}

#[derive(Serialize)]
struct VendorIp {
    resource: String,
    ip: String,
    pins: BTreeMap<String, String>,
}

/// A number without trailing zeros.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn ns(ps: i64) -> String {
    format!("{:.3}", ps as f64 / 1000.0)
}

/// RGMII 2.0, timing at the receiver: data valid 1.0 ns before and after the (delayed) clock's edge.
const RGMII_RECEIVER_PS: i64 = 1000;
/// RGMII, timing at the transmitter without delay: data within 0.5 ns of the clock's edge.
const RGMII_SKEW_PS: i64 = 500;
/// Half a period of 125 MHz: one bit.
const RGMII_BIT_PS: i64 = 4000;
/// What clock and data of RGMII should be apart by.
const RGMII_DELAY_PS: i64 = 2000;

/// The timing of an RGMII port, from the delays of the board file. Where the board does not say what the PHY adds, it is
/// taken to add what makes 2 ns of the whole: nothing else can work.
pub fn rgmii_delays(resource: &Resource) -> Vec<IoDelay> {
    let name = &resource.name.value;
    let fact = |key: &str| resource.integer(key);
    let phy_rx = fact("phy-rx-delay-ps").unwrap_or(RGMII_DELAY_PS);
    let phy_tx = fact("phy-tx-delay-ps").unwrap_or((RGMII_DELAY_PS - fact("tx-delay-ps").unwrap_or(0)).max(0));
    let said = |key: &str| if fact(key).is_some() { "as the board file says" } else { "so that the whole is 2 ns" };
    vec![
        IoDelay {
            ports: vec![format!("{name}_rx_ctl"), format!("{name}_rx_data[*]")],
            dir: Dir::In,
            clock: format!("{name}_rx_clk"),
            max_ps: RGMII_BIT_PS - phy_rx + RGMII_SKEW_PS,
            min_ps: RGMII_BIT_PS - phy_rx - RGMII_SKEW_PS,
            comment: format!("{name}: the PHY (or the board) delays rx_clk by {} ns, {}; skew 0.5 ns", ns(phy_rx), said("phy-rx-delay-ps")),
        },
        IoDelay {
            ports: vec![format!("{name}_tx_ctl"), format!("{name}_tx_data[*]")],
            dir: Dir::Out,
            clock: format!("{name}_tx_clk"),
            max_ps: RGMII_RECEIVER_PS - phy_tx,
            min_ps: -(RGMII_RECEIVER_PS + phy_tx),
            comment: format!(
                "{name}: the PHY (or the board) delays tx_clk by {} ns, {}; it needs 1 ns on both sides",
                ns(phy_tx),
                said("phy-tx-delay-ps")
            ),
        },
    ]
}

/// An attribute as XDC spells it.
fn xdc_attr(key: &str, value: &str) -> (String, String) {
    match (key, value) {
        ("SLEWRATE", v) => ("SLEW".to_owned(), v.to_owned()),
        ("PULLMODE", "UP") => ("PULLTYPE".to_owned(), "PULLUP".to_owned()),
        ("PULLMODE", "DOWN") => ("PULLTYPE".to_owned(), "PULLDOWN".to_owned()),
        ("PULLMODE", v) => ("PULLTYPE".to_owned(), v.to_owned()),
        _ => (key.to_owned(), value.to_owned()),
    }
}

fn bits(ports: &[TopPort], io_key: &str, rename: impl Fn(&str, &str) -> (String, String)) -> Vec<Bit> {
    let mut list = Vec::new();
    for port in ports {
        for (index, pin) in port.locations.iter().enumerate() {
            let name = if port.bus { format!("{}[{index}]", port.name) } else { port.name.clone() };
            let io = port.io.iter().map(|io| Attr { key: io_key.to_owned(), value: io.clone() });
            let attrs = io.chain(port.attrs.iter().map(|(k, v)| {
                let (key, value) = rename(k, v);
                Attr { key, value }
            }));
            list.push(Bit { port: name, pin: pin.clone(), attrs: attrs.collect() });
        }
    }
    list
}

impl Constraints {
    /// The `.lpf` file for nextpnr.
    ///
    /// # Errors
    /// `GW0211` where a port has no pin.
    pub fn lpf(&self, board: &Board) -> Result<String, Diagnostic> {
        let bits = bits(&self.ports, "IO_TYPE", |k, v| (k.to_owned(), v.to_owned()));
        self.render(board, "lpf", include_str!("../../../templates/constraints/lpf.tera"), &bits)
    }

    /// The `.xdc` file for Vivado.
    ///
    /// # Errors
    /// `GW0211` where a port has no pin.
    pub fn xdc(&self, board: &Board) -> Result<String, Diagnostic> {
        let bits = bits(&self.ports, "IOSTANDARD", xdc_attr);
        self.render(board, "xdc", include_str!("../../../templates/constraints/xdc.tera"), &bits)
    }

    fn render(&self, board: &Board, name: &str, template: &str, bits: &[Bit]) -> Result<String, Diagnostic> {
        if let Some(port) = self.ports.iter().find(|p| p.locations.len() != p.width as usize) {
            let message = format!("port `{}` has {} bits and {} pins", port.name, port.width, port.locations.len());
            return Err(Diagnostic::error("GW0211", message)
                .at(&board.name.span)
                .help("a bitstream needs a board with pins: choose another board"));
        }
        let mut context = Context::new();
        context.insert("design", &self.design);
        context.insert("board", &board.name.value);
        context.insert("part", &board.part.number.value);
        context.insert("sysconfig", &board.flow.sysconfig);
        context.insert("bits", bits);
        context.insert("clocks", &self.clocks.iter().map(clock).collect::<Vec<_>>());
        context.insert("delays", &self.delays.iter().map(delay).collect::<Vec<_>>());
        context.insert("exceptions", &self.exceptions.iter().map(exception).collect::<Vec<_>>());
        context.insert("vendor_ip", &self.vendor_ip.iter().map(vendor_ip).collect::<Vec<_>>());
        super::vendor::render(name, template, &context)
    }
}

fn clock(line: &ClockLine) -> Clock {
    let (port, primary, name) = match &line.at {
        ClockAt::Port(name) => (true, true, name),
        ClockAt::PllNet(name) => (false, false, name),
        ClockAt::Net(name) => (false, true, name),
    };
    Clock {
        port,
        primary,
        name: name.clone(),
        label: name.rsplit(['/', '.']).next().unwrap_or(name).to_owned(),
        mhz: trimmed(line.hz as f64 / 1e6, 6),
        period_ns: format!("{:.3}", 1e9 / line.hz.max(1) as f64),
        comment: line.comment.clone(),
    }
}

fn delay(delay: &IoDelay) -> Delay {
    Delay {
        ports: delay.ports.iter().map(|p| if p.contains('[') { format!("{{{p}}}") } else { p.clone() }).collect(),
        direction: if delay.dir == Dir::In { "input" } else { "output" },
        generated: delay.dir != Dir::In,
        clock: delay.clock.clone(),
        max_ns: ns(delay.max_ps),
        min_ns: ns(delay.min_ps),
        comment: delay.comment.clone(),
    }
}

fn exception(timing: &Timing) -> Exception {
    let (rule, command, value) = match timing.rule {
        TimingRule::FalsePath => ("false path", "set_false_path", None),
        TimingRule::MaxDelay => ("max delay", "set_max_delay -datapath_only", Some(format!("{:.3}", timing.value_ps as f64 / 1000.0))),
        // `value_ps` is a time in every rule; a multicycle path is bounded by that time.
        TimingRule::Multicycle => ("multicycle", "set_max_delay", Some(format!("{:.3}", timing.value_ps as f64 / 1000.0))),
    };
    Exception {
        rule,
        command,
        start: timing.start.clone(),
        end: timing.end.clone(),
        ns: value.clone(),
        value,
        why: timing.why.replace('\n', " "),
    }
}

fn vendor_ip(resource: &Resource) -> VendorIp {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(s) => Some(s.clone()),
        serde_json::Value::Array(list) => Some(list.iter().filter_map(|v| v.as_str()).collect::<Vec<_>>().join(" ")),
        // The pins of a memory are ports of the board level.
        _ => None,
    };
    // So are the lanes and the reference clock of a cage.
    let pins = resource.vendor.iter().filter(|(k, _)| !k.ends_with("-p") && !k.ends_with("-n") && *k != "ip");
    VendorIp {
        resource: resource.name.value.clone(),
        ip: super::vendor::ip_name(resource),
        pins: pins.filter_map(|(k, v)| Some((k.clone(), text(v)?))).collect(),
    }
}

#[cfg(test)]
#[path = "constraints_tests.rs"]
mod tests;
