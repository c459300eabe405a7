//! Resource classes: what pins, facts and clocks a kind of board resource has.
//!
//! A class is a file `boards/classes/<name>.toml`. A board's resource names its
//! class, and gives pin locations and facts for what the class lists.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

use super::read::{Doc, Table, Value};
use crate::diag::{Diagnostic, Diagnostics, Span, Spanned};

/// Schema version of class, family and board files.
pub const SCHEMA: u64 = 1;

/// Direction of a pin, seen from the FPGA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// Into the FPGA.
    In,
    /// Out of the FPGA.
    Out,
    /// Both; the interface has `_i`, `_o` and `_oe`.
    InOut,
}

impl Dir {
    /// As written in TOML.
    pub fn as_str(self) -> &'static str {
        match self {
            Dir::In => "in",
            Dir::Out => "out",
            Dir::InOut => "inout",
        }
    }
}

/// How wide a pin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Always so many bits.
    Fixed(u32),
    /// From so many to so many bits, as the board has them.
    Between(u32, u32),
    /// The data width of the link divided by this (1: data, 8: byte enables).
    Link(u32),
}

impl Width {
    /// Whether a resource may have `bits` of it.
    pub fn allows(self, bits: u32) -> bool {
        match self {
            Width::Fixed(w) => bits == w,
            Width::Between(low, high) => (low..=high).contains(&bits),
            Width::Link(_) => true,
        }
    }
}

/// What an output does while nobody drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Low.
    Zero,
    /// High.
    One,
    /// High impedance (of an `inout`).
    HighZ,
}

/// A pin (or bus) of a class.
#[derive(Clone, Debug)]
pub struct ClassPin {
    /// Name, also of the interface's signal.
    pub name: String,
    /// Direction.
    pub dir: Dir,
    /// Width.
    pub width: Width,
    /// The fact of the resource that says its width, and what it is divided by.
    pub width_fact: Option<(String, u32)>,
    /// Whether it is the interface's clock.
    pub clock: bool,
    /// Signal of the interface, where that is not the pin's name (the clock pin is `clk`). Empty for a pin that
    /// the board has and the interface has not: it gets no port.
    pub signal: String,
    /// Parameter of the interface that is this pin's width.
    pub param: Option<String>,
    /// Whether a board may lack it.
    pub optional: bool,
    /// What it does while nobody drives it (outputs of shared resources).
    pub idle: Option<Idle>,
    /// One line.
    pub doc: String,
}

/// Type of one value of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactType {
    /// Integer.
    Integer,
    /// Text.
    String,
    /// True or false.
    Boolean,
}

impl FactType {
    fn name(self) -> &'static str {
        match self {
            FactType::Integer => "an integer",
            FactType::String => "a string",
            FactType::Boolean => "a boolean",
        }
    }

    fn fits(self, json: &Json) -> bool {
        match self {
            FactType::Integer => json.is_i64() || json.is_u64(),
            FactType::String => json.is_string(),
            FactType::Boolean => json.is_boolean(),
        }
    }
}

/// A fact that resources of a class have.
#[derive(Clone, Debug)]
pub struct FactSpec {
    /// Type of a value.
    pub kind: FactType,
    /// Whether a list of values is allowed.
    pub many: bool,
    /// Whether every resource must say it.
    pub required: bool,
    /// Allowed values; empty for any.
    pub values: Vec<Json>,
    /// One line with the unit.
    pub doc: String,
}

impl FactSpec {
    /// Checks a value.
    ///
    /// # Errors
    /// What would be right.
    pub fn check(&self, json: &Json) -> Result<(), String> {
        let one = |v: &Json| {
            if !self.kind.fits(v) {
                return Err(if self.many { format!("{} or a list of them", self.kind.name()) } else { self.kind.name().to_owned() });
            }
            if !self.values.is_empty() && !self.values.contains(v) {
                return Err(format!("one of {}", self.values.iter().map(Json::to_string).collect::<Vec<_>>().join(", ")));
            }
            Ok(())
        };
        match json.as_array() {
            Some(list) if self.many && !list.is_empty() => list.iter().try_for_each(one),
            _ => one(json),
        }
    }
}

/// A resource class.
#[derive(Clone, Debug)]
pub struct Class {
    /// Name.
    pub name: String,
    /// Kind of link, such as `gateweave/rgmii@1`.
    pub kind: String,
    /// One line.
    pub summary: String,
    /// Whether resources of the class may stand under `shared`.
    pub shared: bool,
    /// Whether its resources have no locations of their own (simulation, hard MACs).
    pub virtual_pins: bool,
    /// Pins in file order.
    pub pins: Vec<ClassPin>,
    /// Facts by name.
    pub facts: BTreeMap<String, FactSpec>,
    /// Frequency of the clock pins in Hz by rate in Mbit/s.
    pub clock_hz: BTreeMap<u64, u64>,
    /// Data width of the link in bits by rate in Mbit/s, where the rate decides it.
    pub data_width: BTreeMap<u64, u32>,
    /// Place of the file.
    pub span: Span,
}

impl Class {
    /// Reads a class file.
    ///
    /// # Errors
    /// `GW01xx` for TOML, `GW0202` for another schema, `GW0204` for a word that is not one of those allowed.
    pub fn load(path: &Path) -> Result<Class, Diagnostics> {
        let doc = Doc::open(path)?;
        let class = read(&doc);
        let diagnostics = doc.finish();
        match class {
            Some(class) if !diagnostics.has_errors() => Ok(class),
            _ => Err(diagnostics),
        }
    }

    /// Name of the interface in project `kinds`: `gateweave/phy-stream@1` is `phy_stream`.
    pub fn interface(&self) -> String {
        let name = self.kind.rsplit('/').next().unwrap_or(&self.kind);
        name.split('@').next().unwrap_or(name).replace('-', "_")
    }

    /// The pin of that name.
    pub fn pin(&self, name: &str) -> Option<&ClassPin> {
        self.pins.iter().find(|p| p.name == name)
    }

    /// The pin that is the interface's clock.
    pub fn clock_pin(&self) -> Option<&ClassPin> {
        self.pins.iter().find(|p| p.clock)
    }
}

/// Checks the `schema` key.
pub(super) fn schema(root: &Table<'_>) {
    if let Some(value) = root.need("schema")
        && let Some(found) = value.integer()
        && found.value != SCHEMA as i64
    {
        let message = format!("schema {} is not known", found.value);
        root.push(Diagnostic::error("GW0202", message).at(&found.span).help(format!("this version reads schema = {SCHEMA}")));
    }
}

/// A string that must be one of `allowed`; else `GW0204`.
pub(super) fn one_of<T: Copy>(value: &Value<'_>, allowed: &[(&str, T)]) -> Option<Spanned<T>> {
    let text = value.string()?;
    match allowed.iter().find(|(name, _)| *name == text.value) {
        Some((_, found)) => Some(text.map(|_| *found)),
        None => {
            value.push(
                Diagnostic::error("GW0204", format!("`{}` cannot be `{}`", value.name, text.value))
                    .at(&text.span)
                    .nearest(&text.value, allowed.iter().map(|(name, _)| *name)),
            );
            None
        }
    }
}

pub(super) fn text_of(table: &Table<'_>, key: &str) -> Option<String> {
    Some(table.need(key)?.string()?.value)
}

fn flag(table: &Table<'_>, key: &str) -> bool {
    table.get(key).and_then(|v| v.boolean()).is_some_and(|b| b.value)
}

fn read(doc: &Doc) -> Option<Class> {
    let root = doc.root();
    schema(&root);
    let head = root.need("class")?.table()?;
    let name = text_of(&head, "name");
    let kind = text_of(&head, "kind");
    let summary = text_of(&head, "summary");
    let shared = flag(&head, "shared");
    let virtual_pins = flag(&head, "virtual");
    head.finish();
    let mut pins = Vec::new();
    if let Some(table) = root.get("pin").and_then(|v| v.table()) {
        for (key, value) in table.entries() {
            pins.extend(read_pin(key.value, &value));
        }
    }
    let mut facts = BTreeMap::new();
    if let Some(table) = root.get("fact").and_then(|v| v.table()) {
        for (key, value) in table.entries() {
            if let Some(fact) = read_fact(&value) {
                facts.insert(key.value, fact);
            }
        }
    }
    let clock_hz = by_rate(&root, "clock-hz");
    let data_width = by_rate(&root, "data-width").into_iter().filter_map(|(k, v)| Some((k, u32::try_from(v).ok()?))).collect();
    root.finish();
    let span = Span { file: doc.file().clone(), range: 0..0 };
    Some(Class { name: name?, kind: kind?, summary: summary?, shared, virtual_pins, pins, facts, clock_hz, data_width, span })
}

/// A table of integers by rate in Mbit/s.
fn by_rate(root: &Table<'_>, key: &str) -> BTreeMap<u64, u64> {
    let mut map = BTreeMap::new();
    let Some(table) = root.get(key).and_then(|v| v.table()) else { return map };
    for (rate, value) in table.entries() {
        match rate.value.parse::<u64>() {
            Ok(mbps) => {
                if let Some(v) = value.unsigned(1..=u64::MAX / 2) {
                    map.insert(mbps, v.value);
                }
            }
            Err(_) => {
                let message = format!("`{}` is not a rate in Mbit/s", rate.value);
                root.push(Diagnostic::error("GW0204", message).at(&rate.span).help("write a number, such as \"1000\""));
            }
        }
    }
    map
}

fn read_pin(name: String, value: &Value<'_>) -> Option<ClassPin> {
    let table = value.table()?;
    let dir = table.need("dir").and_then(|v| one_of(&v, &[("in", Dir::In), ("out", Dir::Out), ("inout", Dir::InOut)]));
    let bits = |key: &str| table.get(key).and_then(|v| v.unsigned(1..=1024)).map(|w| w.value as u32);
    let width_fact = table.get("width-fact").and_then(|v| v.string()).map(|s| (s.value, bits("width-over").unwrap_or(1)));
    let (exact, low, high, link) = (bits("width"), bits("width-min"), bits("width-max"), bits("link-width-over"));
    let width = match (exact, low, high, link) {
        (_, _, _, Some(over)) => Width::Link(over),
        (_, Some(low), Some(high), _) => Width::Between(low, high),
        (exact, ..) => Width::Fixed(exact.unwrap_or(1)),
    };
    let (clock, optional) = (flag(&table, "clock"), flag(&table, "optional"));
    let signal = table.get("signal").and_then(|v| v.string()).map(|s| s.value);
    let signal = signal.unwrap_or_else(|| if clock { "clk".to_owned() } else { name.clone() });
    let param = table.get("param").and_then(|v| v.string()).map(|s| s.value);
    let idle = table.get("idle").and_then(|v| one_of(&v, &[("0", Idle::Zero), ("1", Idle::One), ("z", Idle::HighZ)]));
    let doc = text_of(&table, "doc");
    table.finish();
    Some(ClassPin { name, dir: dir?.value, width, width_fact, clock, signal, param, optional, idle: idle.map(|i| i.value), doc: doc? })
}

fn read_fact(value: &Value<'_>) -> Option<FactSpec> {
    let table = value.table()?;
    let kinds = [("integer", FactType::Integer), ("string", FactType::String), ("boolean", FactType::Boolean)];
    let kind = table.need("type").and_then(|v| one_of(&v, &kinds));
    let (many, required) = (flag(&table, "many"), flag(&table, "required"));
    let values = table.get("values").and_then(|v| v.to_json().as_array().cloned()).unwrap_or_default();
    let doc = text_of(&table, "doc");
    table.finish();
    Some(FactSpec { kind: kind?.value, many, required, values, doc: doc? })
}
