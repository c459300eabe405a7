//! The contract's records, with builders.

use serde::Serialize;
use serde_json::Value;

pub use crate::bindings::exports::gateweave::plugin::contract::{
    About, Clock, ClockAsk, Diagnostic, Domain, Kind, Language, Output, Peer, Port, Prop, Protocol, Purpose, Role, Severity, Shape, Source,
    Target, Timing, TimingRule, Wired,
};

use crate::registers::Registers;

/// JSON text of a value. A value that is not representable (a map with keys that are no strings) becomes `null`.
pub(crate) fn json(value: impl Serialize) -> String {
    serde_json::to_value(value).unwrap_or(Value::Null).to_string()
}

fn lookup(props: &[Prop], key: &str) -> Option<Value> {
    let prop = props.iter().find(|p| p.key == key)?;
    serde_json::from_str(&prop.value).ok()
}

impl About {
    /// Adds a kind of link that this plugin brings.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }
}

impl Kind {
    /// A kind: its id (`"maker/name@1"`), its protocol, the Veryl text of its interface in project `kinds`, and the
    /// type of its ports' properties.
    pub fn new<Props: schemars::JsonSchema>(id: &str, protocol: Protocol, veryl: &str) -> Self {
        Self { id: id.into(), protocol, veryl: veryl.into(), props_schema: json(schemars::schema_for!(Props)) }
    }
}

impl Diagnostic {
    /// An error: the plugin's own `code`, the JSON Pointer of the parameter (`"/mtu"`; empty for the instance as a whole), and what is wrong.
    pub fn error(code: &str, pointer: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, code: code.into(), pointer: pointer.into(), message: message.into(), help: None }
    }

    /// A warning. An answer is either a value or diagnostics, so warnings reach the user only beside an error.
    pub fn warning(code: &str, pointer: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, pointer, message) }
    }

    /// Says what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<Diagnostic> for Vec<Diagnostic> {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic]
    }
}

impl Shape {
    /// Nothing yet.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { domains: Vec::new(), ports: Vec::new(), tables: "{}".into() }
    }

    /// Adds a clock domain; the top module has `clk_<name>` and `rst_<name>`, in this order.
    #[must_use]
    pub fn domain(mut self, name: &str, clock: Clock) -> Self {
        self.domains.push(Domain { name: name.into(), clock });
        self
    }

    /// Adds a port; the top module has them in this order.
    #[must_use]
    pub fn port(mut self, port: Port) -> Self {
        self.ports.push(port);
        self
    }

    /// Sets the register block.
    #[must_use]
    pub fn registers(mut self, registers: &Registers) -> Self {
        self.tables = json(serde_json::json!({ "registers": registers }));
        self
    }
}

impl Clock {
    /// A clock of its own: frequency in Hz, how far off it may be in parts per million.
    pub fn ask_hz(hz: u64, tolerance_ppm: u32) -> Self {
        Clock::Ask(ClockAsk { hz, tolerance_ppm, phase_mdeg: 0 })
    }

    /// The clock that comes in on a port.
    pub fn from_port(port: &str) -> Self {
        Clock::FromPort(port.into())
    }

    /// The clock of whatever a port is linked to.
    pub fn from_peer(port: &str) -> Self {
        Clock::FromPeer(port.into())
    }
}

impl Port {
    fn new(name: &str, kind: &str, role: Role, domain: &str) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            role,
            links_min: 1,
            links_max: 1,
            widths: Vec::new(),
            domain: domain.into(),
            gbps_milli: 0,
            props: Vec::new(),
        }
    }

    /// A port that offers `kind`; exactly one link until [`Port::links`] says otherwise.
    pub fn provider(name: &str, kind: &str, domain: &str) -> Self {
        Self::new(name, kind, Role::Provider, domain)
    }

    /// A port that needs `kind`; exactly one link until [`Port::links`] says otherwise.
    pub fn client(name: &str, kind: &str, domain: &str) -> Self {
        Self::new(name, kind, Role::Client, domain)
    }

    /// Fewest and most links. With more than one the module takes an array of modports.
    #[must_use]
    pub fn links(mut self, min: u32, max: u32) -> Self {
        self.links_min = min;
        self.links_max = max;
        self
    }

    /// Data widths in bits that the port can have, the preferred one first.
    #[must_use]
    pub fn widths(mut self, widths: impl IntoIterator<Item = u32>) -> Self {
        self.widths = widths.into_iter().collect();
        self
    }

    /// Rate that the port must carry, in Mbit/s.
    #[must_use]
    pub fn mbps(mut self, mbps: u64) -> Self {
        self.gbps_milli = mbps;
        self
    }

    /// A property that the peer sees.
    #[must_use]
    pub fn prop(mut self, key: &str, value: impl Serialize) -> Self {
        self.props.push(Prop { key: key.into(), value: json(value) });
        self
    }
}

impl Peer {
    /// What the peer's port says of itself under `key`.
    pub fn prop(&self, key: &str) -> Option<Value> {
        lookup(&self.props, key)
    }

    /// The same as an unsigned number.
    pub fn prop_u64(&self, key: &str) -> Option<u64> {
        self.prop(key)?.as_u64()
    }

    /// The same as a string.
    pub fn prop_str(&self, key: &str) -> Option<String> {
        self.prop(key)?.as_str().map(str::to_owned)
    }
}

impl Source {
    /// A file of the crate; see [`sources!`](crate::sources).
    pub fn file(path: &str, text: &str) -> Self {
        let language = if path.ends_with(".veryl") { Language::Veryl } else { Language::SystemVerilog };
        let path = path.strip_prefix("hdl/").unwrap_or(path);
        Self { path: path.into(), language, purpose: Purpose::Design, text: text.into() }
    }

    /// What the source is for.
    #[must_use]
    pub fn purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = purpose;
        self
    }
}

impl Output {
    /// Output whose top module is `top`, by its name in the `.veryl` file.
    pub fn new(top: &str) -> Self {
        Self { top: top.into(), parameters: Vec::new(), sources: Vec::new(), timing: Vec::new(), docs: String::new() }
    }

    /// Sets a parameter of the top module. A number or boolean becomes a literal, a list an array literal, a string
    /// is taken as a Veryl expression such as `"48'h024757000001"`.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl Serialize) -> Self {
        self.parameters.push(Prop { key: name.into(), value: json(value) });
        self
    }

    /// Adds sources.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = Source>) -> Self {
        self.sources.extend(sources);
        self
    }

    /// Adds a timing exception. The nets must exist, and `why` says why it is right.
    #[must_use]
    pub fn timing(mut self, rule: TimingRule, start: &str, end: &str, value_ps: u64, why: &str) -> Self {
        self.timing.push(Timing { rule, start: start.into(), end: end.into(), value_ps, why: why.into() });
        self
    }

    /// Sets the documentation, Markdown.
    #[must_use]
    pub fn docs(mut self, docs: impl Into<String>) -> Self {
        self.docs = docs.into();
        self
    }
}
