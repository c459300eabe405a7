//! The plugin interface as plain Rust data: one type per type of
//! `plugins/wit/0.1.0/plugin.wit`, with the same names and meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Properties of a port or peer, by name.
pub type Props = BTreeMap<String, Json>;

/// How bad a plugin's diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginSeverity {
    /// The instance cannot be used as configured.
    Error,
    /// It can, but likely not as meant.
    Warning,
    /// A remark.
    Note,
}

/// What a plugin says about its parameters; the host turns `pointer` into a place in the TOML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginDiagnostic {
    /// How bad it is.
    pub severity: PluginSeverity,
    /// The plugin's own code, shown beside the host's.
    pub code: String,
    /// JSON Pointer into the parameters, such as `/mtu`; empty for the instance as a whole.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

/// Which adapters the host may put on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `kinds::packets`: width converters, crossings, stores.
    Packets,
    /// AXI4.
    Memory,
    /// AXI4-Lite.
    Registers,
    /// Plain signals: none.
    Wires,
}

/// A kind that a plugin brings or names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    /// Such as `gateweave/ip-udp@1`.
    pub id: String,
    /// Which adapters are legal.
    pub protocol: Protocol,
    /// Veryl text of the interface or package in project `kinds`; empty for kinds that the composer has.
    pub veryl: String,
    /// JSON Schema of the properties of its ports. A property with `"x-exclusive": true` is a list whose
    /// members no two clients of one provider may share.
    pub props_schema: Json,
}

/// Who a plugin is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Name as in `plugin = "..."`.
    pub name: String,
    /// Semantic version.
    pub version: String,
    /// One line.
    pub summary: String,
    /// JSON Schema of the parameters.
    pub params_schema: Json,
    /// Kinds it brings.
    pub kinds: Vec<Kind>,
}

/// Which end of a link a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Offers.
    Provider,
    /// Needs.
    Client,
}

/// Where a domain's clock comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The system clock that the planner chooses.
    System,
    /// A clock of its own.
    Ask {
        /// Frequency in Hz.
        hz: u64,
        /// How far off it may be, parts per million.
        tolerance_ppm: u32,
        /// Phase against the system clock, millidegrees.
        phase_mdeg: i32,
    },
    /// The clock that comes in on a port.
    FromPort(String),
    /// The clock of whatever a port is linked to.
    FromPeer(String),
}

/// A clock domain of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Name; ports `clk_<name>` and `rst_<name>` of the top module.
    pub name: String,
    /// Where its clock comes from.
    pub clock: Clock,
}

/// A port of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Name, also of the port of the top module.
    pub name: String,
    /// Kind id.
    pub kind: String,
    /// Which end.
    pub role: Role,
    /// Fewest links.
    pub links_min: u32,
    /// Most links; above 1 the module takes an array of modports.
    pub links_max: u32,
    /// Data widths in bits that it can have, the preferred first; empty where the kind has none.
    pub widths: Vec<u32>,
    /// Domain that it runs in.
    pub domain: String,
    /// Rate that it must carry, in 1/1000 Gbit/s; 0 for no demand.
    pub gbps_milli: u64,
    /// Properties shown to the peer.
    pub props: Props,
}

/// What an instance looks like from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Clock domains.
    pub domains: Vec<Domain>,
    /// Ports.
    pub ports: Vec<Port>,
    /// Tables, of which `registers` is the register block.
    pub tables: Json,
}

/// The other end of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Own port.
    pub port: String,
    /// Which link of that port.
    pub index: u32,
    /// Instance at the other end (`board` for a board resource).
    pub instance: String,
    /// What the peer's port says of itself.
    pub props: Props,
}

/// A settled link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wired {
    /// Own port.
    pub port: String,
    /// Which link of that port.
    pub index: u32,
    /// Data width in bits at this end.
    pub width: u32,
    /// Own domain.
    pub domain: String,
    /// Frequency of that domain in Hz.
    pub hz: u64,
    /// The other end.
    pub peer: Peer,
}

/// What the output is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A bitstream or a vendor's project.
    Fpga,
    /// Verilator.
    Simulation,
    /// Lint only.
    Lint,
}

/// The settled plan of one instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Instance name.
    pub instance: String,
    /// What every global name of templated or SystemVerilog sources starts with.
    pub prefix: String,
    /// Parameters, canonical.
    pub params: Json,
    /// Board facts.
    pub board: Json,
    /// What for.
    pub target: Target,
    /// Links.
    pub links: Vec<Wired>,
    /// Byte address of the register block, if there is a bus.
    pub register_base: Option<u64>,
    /// Width of register data.
    pub register_data_bits: u32,
}

/// Language of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Veryl.
    Veryl,
    /// SystemVerilog.
    SystemVerilog,
}

/// What a source is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Part of the design.
    Design,
    /// Simulation model.
    SimModel,
    /// Testbench.
    Testbench,
}

/// A source that a plugin emits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginSource {
    /// Path below the plugin's folder in the output, such as `rx.veryl`.
    pub path: String,
    /// Language.
    pub language: Language,
    /// What for.
    pub purpose: Purpose,
    /// Text.
    pub text: String,
}

/// A timing exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimingRule {
    /// Not timed.
    FalsePath,
    /// At most `value_ps`.
    MaxDelay,
    /// More than one cycle.
    Multicycle,
}

/// A timing exception with its reason. The nets must exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Which.
    pub rule: TimingRule,
    /// From.
    pub start: String,
    /// To.
    pub end: String,
    /// Picoseconds.
    pub value_ps: u64,
    /// Why it is right.
    pub why: String,
}

/// What `generate` returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Name of the top module in the plugin's Veryl project.
    pub top: String,
    /// Parameters of the top module in order: a JSON number or boolean becomes a literal, a string is
    /// taken as a Veryl expression (`"48'h024757000001"`), a list becomes an array literal.
    pub parameters: Vec<(String, Json)>,
    /// Sources.
    pub sources: Vec<PluginSource>,
    /// Timing exceptions.
    pub timing: Vec<Timing>,
    /// Documentation, Markdown.
    pub docs: String,
}
