//! What the simulation needs to know of a planned design.

use serde::{Deserialize, Serialize};

/// A design that is ready to be simulated: its SystemVerilog, and what the
/// harness drives and watches at the top level's ports.
///
/// Times are femtoseconds. A frequency whose period is not a whole number of
/// femtoseconds is rounded to the nearest: 322.265625 MHz becomes 3103030 fs,
/// 0.1 ppm fast.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimPlan {
    /// Name of the top module as emitted, such as `top_top`.
    pub top: String,
    /// SystemVerilog files, each after those it depends on.
    pub files: Vec<SvFile>,
    /// Clock inputs of the top that the harness drives: board oscillators and planned PLL outputs alike. Clock pins
    /// of resources are not listed here, their model drives them.
    pub clocks: Vec<Clock>,
    /// Reset inputs of the top. All are held until 16 cycles of the slowest clock have passed.
    pub resets: Vec<Reset>,
    /// Board resources with pins on the top.
    pub resources: Vec<Resource>,
}

/// One SystemVerilog file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SvFile {
    /// Relative path, used in Verilator's messages and as file name. Must be unique in the plan.
    pub path: String,
    /// The text.
    pub text: String,
}

/// A clock input of the top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Port of the top, such as `clk25` or `clk_sys`.
    pub port: String,
    /// Period in femtoseconds.
    pub period_fs: u64,
    /// Time of the first rising edge after the start of the simulation, less than the period.
    pub phase_fs: u64,
}

/// A reset input of the top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// Port of the top.
    pub port: String,
    /// Whether 0 resets.
    pub active_low: bool,
}

/// A board resource whose pins are ports of the top, named `<resource>_<pin>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Name on the board, such as `eth0`; what `--wire NAME=` names.
    pub name: String,
    /// Class, such as `rgmii`; decides the model. A class without a model is an error (`GW0703`).
    pub class: String,
    /// Facts of the board file, an object: `mbps`, `rx-delay-ps`, `tx-delay-ps`, `baud`, ...
    #[serde(default)]
    pub facts: serde_json::Value,
    /// Data width in bits, for class `stream`; 0 for classes whose pins fix it.
    #[serde(default)]
    pub width: u32,
    /// Period of the resource's clock in femtoseconds; 0 where the class's facts fix it.
    #[serde(default)]
    pub period_fs: u64,
    /// Input port of the top that carries the resource's clock, where it is not the pin that the class names
    /// (`<name>_clk` for `stream`, `<name>_rx_clk` for `rgmii`, `gmii` and `mii`).
    #[serde(default)]
    pub clock_port: Option<String>,
    /// Delay cells that the design has at pins of this resource. A pin that is not listed has none.
    #[serde(default)]
    pub delays: Vec<PinDelay>,
}

/// A planned delay cell (`io::delay_in`, `io::delay_out`) between a pin and the flip-flop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinDelay {
    /// Pin of the resource, such as `rx_data`; all bits have the same delay.
    pub pin: String,
    /// Picoseconds, as the cell's parameter `PS` says.
    pub ps: u64,
}
