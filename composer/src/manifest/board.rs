//! Boards: part, clocks, resources with their pins and facts.
//!
//! A board is a file `<name>.toml`; beside it stand `classes/` and `families/`.
//! [`find`] looks a name up, [`Board::load`] reads a file, [`Claims`] refuses
//! two uses of one pin in one project.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};

pub use super::class::{Class, ClassPin, Dir, Idle, Width};
use super::class::{one_of, schema};
use super::family::hz_of_mhz;
pub use super::family::{Device, Family};
use super::read::{Doc, Table, Value};
use crate::compose::pll::PllLimits;
use crate::diag::{Diagnostic, Diagnostics, Span, Spanned};

/// The FPGA.
#[derive(Clone, Debug)]
pub struct Part {
    /// Family, such as `ecp5`.
    pub family: Spanned<String>,
    /// Device, such as `LFE5U-25F`.
    pub device: Spanned<String>,
    /// Package as the tools call it, such as `CABGA381`.
    pub package: Spanned<String>,
    /// Speed grade.
    pub speed: Spanned<String>,
    /// Whole part number, as on the chip or as the vendor's tool wants it.
    pub number: Spanned<String>,
}

/// How a bitstream is made and loaded.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Whether the open tools make a bitstream.
    pub open: bool,
    /// Command that loads a bitstream, without the file name; empty if none is known.
    pub loader: Vec<String>,
    /// Configuration settings of the chip (`SYSCONFIG` of an LPF).
    pub sysconfig: BTreeMap<String, String>,
}

/// An oscillator.
#[derive(Clone, Debug)]
pub struct BoardClock {
    /// Name, also of the port.
    pub name: Spanned<String>,
    /// Pin, the positive one of a pair. Absent on a board without pins.
    pub pin: Option<Spanned<String>>,
    /// Negative pin, where the tools want it named; its port is `<name>_n`, and `io::diff_in` makes one clock of both.
    pub pin_n: Option<Spanned<String>>,
    /// Frequency in Hz.
    pub hz: u64,
    /// I/O standard.
    pub io: Option<String>,
    /// Further attributes.
    pub attrs: BTreeMap<String, String>,
}

/// A reset button.
#[derive(Clone, Debug)]
pub struct BoardReset {
    /// Name, also of the port.
    pub name: Spanned<String>,
    /// Pin. Absent on a board without pins.
    pub pin: Option<Spanned<String>>,
    /// Whether pressed is low.
    pub active_low: bool,
    /// I/O standard.
    pub io: Option<String>,
    /// Further attributes, the pull among them.
    pub attrs: BTreeMap<String, String>,
}

/// A pin (or bus) of a resource.
#[derive(Clone, Debug)]
pub struct ResourcePin {
    /// What the class says of it.
    pub spec: ClassPin,
    /// Place of its key.
    pub span: Span,
    /// Locations from bit 0 upwards; empty on a board without pins.
    pub locations: Vec<Spanned<String>>,
    /// I/O standard.
    pub io: Option<String>,
    /// Further attributes, such as `SLEWRATE` = `FAST`.
    pub attrs: BTreeMap<String, String>,
}

impl ResourcePin {
    /// Width in bits; for a pin without locations that of the class, or `link` (the link's data width) divided as the class says.
    pub fn width(&self, link: u32) -> u32 {
        match (self.locations.len(), self.spec.width) {
            (0, Width::Fixed(w)) => w,
            (0, Width::Between(_, high)) => high,
            (0, Width::Link(over)) => link / over.max(1),
            (n, _) => n as u32,
        }
    }
}

/// Something on the board with pins.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Name, the first part of its ports' names.
    pub name: Spanned<String>,
    /// Whether it stands under `shared`: one driver, many users.
    pub shared: bool,
    /// Its class.
    pub class: Arc<Class>,
    /// Names of the shared resources that belong to it.
    pub uses: Vec<Spanned<String>>,
    /// Facts with their places, checked against the class.
    pub facts: BTreeMap<String, Spanned<Json>>,
    /// Pins in file order.
    pub pins: Vec<ResourcePin>,
    /// Remark for people.
    pub note: Option<String>,
    /// Properties that only the vendor's flow needs (pins of a hard MAC).
    pub vendor: BTreeMap<String, Json>,
}

impl Resource {
    /// Link rates in Mbit/s that it can have, the usual one first; empty for a class without rates.
    pub fn rates_mbps(&self) -> Vec<u64> {
        match self.facts.get("mbps").map(|f| &f.value) {
            Some(Json::Array(list)) => list.iter().filter_map(Json::as_u64).collect(),
            Some(value) => value.as_u64().into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Frequency in Hz of its clock pins at a rate.
    pub fn clock_hz(&self, mbps: u64) -> Option<u64> {
        self.class.clock_hz.get(&mbps).copied()
    }

    /// Frequency in Hz that its clock has whatever the rate: the fact `clock-hz`.
    pub fn own_clock_hz(&self) -> Option<u64> {
        self.facts.get("clock-hz")?.value.as_u64()
    }

    /// Data width in bits that its class fixes at a rate (class `stream`).
    pub fn data_width(&self, mbps: u64) -> Option<u32> {
        self.class.data_width.get(&mbps).copied()
    }

    /// A fact that is an integer.
    pub fn integer(&self, fact: &str) -> Option<i64> {
        self.facts.get(fact)?.value.as_i64()
    }

    /// The pin of that name.
    pub fn pin(&self, name: &str) -> Option<&ResourcePin> {
        self.pins.iter().find(|p| p.spec.name == name)
    }
}

/// A port of the top level, or the clock or reset pins behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopPort {
    /// Name: `<resource>_<pin>`, or that of the clock or reset.
    pub name: String,
    /// Direction.
    pub dir: Dir,
    /// Whether it is an array, even of one bit.
    pub bus: bool,
    /// Width in bits.
    pub width: u32,
    /// Locations from bit 0 upwards; empty on a board without pins.
    pub locations: Vec<String>,
    /// I/O standard.
    pub io: Option<String>,
    /// Further attributes.
    pub attrs: BTreeMap<String, String>,
}

/// A board.
#[derive(Clone, Debug)]
pub struct Board {
    /// Name, that of the file.
    pub name: Spanned<String>,
    /// Revision of the hardware.
    pub revision: Option<String>,
    /// One line.
    pub summary: String,
    /// Where the pins come from.
    pub source: String,
    /// What has been tried, such as `not run on hardware`.
    pub status: String,
    /// The FPGA.
    pub part: Part,
    /// The family's figures.
    pub family: Arc<Family>,
    /// The device's figures.
    pub device: Device,
    /// How a bitstream is made and loaded.
    pub flow: Flow,
    /// Oscillators in file order; the first is the default.
    pub clocks: Vec<BoardClock>,
    /// Reset buttons in file order; the first is the default.
    pub resets: Vec<BoardReset>,
    /// Shared resources in file order.
    pub shared: Vec<Resource>,
    /// Resources in file order.
    pub resources: Vec<Resource>,
    /// Place of the file.
    pub span: Span,
}

/// Every board in `dirs`, by name; of two with one name that in the earlier folder.
pub fn list(dirs: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let mut boards = BTreeMap::new();
    for dir in dirs {
        let Ok(entries) = std::fs::read_dir(dir) else { continue };
        for path in entries.flatten().map(|e| e.path()) {
            if path.extension().is_some_and(|e| e == "toml")
                && let Some(name) = path.file_stem().and_then(|s| s.to_str())
            {
                boards.entry(name.to_owned()).or_insert(path);
            }
        }
    }
    boards
}

/// The file of a board, looked up in `dirs` in their order. `at` is where the name stands in the project.
///
/// # Errors
/// `GW0201` with the nearest name.
pub fn find(dirs: &[PathBuf], name: &str, at: Option<&Span>) -> Result<PathBuf, Diagnostic> {
    let mut boards = list(dirs);
    boards.remove(name).ok_or_else(|| {
        let error = Diagnostic::error("GW0201", format!("there is no board `{name}`")).nearest(name, boards.keys().map(String::as_str));
        match at {
            Some(span) => error.at(span),
            None => error,
        }
    })
}

impl Board {
    /// Reads a board file, with the classes and families that stand beside it.
    ///
    /// # Errors
    /// Every error of the file: `GW01xx` for TOML, `GW02xx` for what a board must obey.
    pub fn load(path: &Path) -> Result<(Board, Diagnostics), Diagnostics> {
        Board::load_in(path, &[])
    }

    /// The same, where classes and families are looked up beside the file first and then in `dirs`.
    ///
    /// # Errors
    /// As [`Board::load`].
    pub fn load_in(path: &Path, dirs: &[PathBuf]) -> Result<(Board, Diagnostics), Diagnostics> {
        let doc = Doc::open(path)?;
        let mut roots = vec![path.parent().unwrap_or(Path::new("")).to_owned()];
        roots.extend_from_slice(dirs);
        let mut reader = Reader { roots, classes: BTreeMap::new(), file: doc.file().clone(), pinless: false };
        let board = reader.board(&doc);
        let diagnostics = doc.finish();
        match board {
            Some(board) => diagnostics.finish(board),
            None => Err(diagnostics),
        }
    }

    /// The resource of that name.
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|r| *r.name == name)
    }

    /// The resource of that name, or `GW0208` with the nearest name. `at` is where it is asked for.
    ///
    /// # Errors
    /// `GW0208`.
    pub fn need_resource(&self, name: &str, at: &Span) -> Result<&Resource, Diagnostic> {
        self.resource(name).ok_or_else(|| {
            Diagnostic::error("GW0208", format!("board `{}` has no resource `{name}`", self.name.value))
                .at(at)
                .nearest(name, self.resources.iter().map(|r| r.name.as_str()))
                .also(&self.name.span, "the board")
        })
    }

    /// The shared resource of that name.
    pub fn shared_resource(&self, name: &str) -> Option<&Resource> {
        self.shared.iter().find(|r| *r.name == name)
    }

    /// The shared resources that belong to a resource.
    pub fn shared_of(&self, resource: &Resource) -> Vec<&Resource> {
        resource.uses.iter().filter_map(|u| self.shared_resource(u)).collect()
    }

    /// The default oscillator.
    pub fn default_clock(&self) -> Option<&BoardClock> {
        self.clocks.first()
    }

    /// The reset button that a project has when it asks for none: the first whose pin nobody has claimed. Claim the
    /// resources first: on some boards the button shares its pin with a serial line.
    pub fn free_reset(&self, claims: &Claims) -> Option<&BoardReset> {
        self.resets.iter().find(|r| r.pin.as_ref().is_none_or(|p| !claims.has_pin(p)))
    }

    /// The oscillator of that name.
    pub fn clock(&self, name: &str) -> Option<&BoardClock> {
        self.clocks.iter().find(|c| *c.name == name)
    }

    /// What the PLLs can do at this speed grade; `None` for a board without (simulation).
    pub fn pll_limits(&self) -> Option<&PllLimits> {
        self.family.plls.get(&self.part.speed.value)
    }

    /// Sensible system clocks in Hz, the preferred first.
    pub fn system_clocks(&self) -> &[u64] {
        self.family.system_clocks.get(&self.part.speed.value).map_or(&[], Vec::as_slice)
    }

    /// The Yosys command that synthesizes for it, such as `synth_ecp5`; `None` for simulation.
    pub fn yosys_synth(&self) -> Option<&str> {
        self.device.yosys.as_deref().or(self.family.yosys.as_deref())
    }

    /// Whether it has no pins at all.
    pub fn is_simulation_only(&self) -> bool {
        self.part.family.value == "sim"
    }

    /// Link to a resource as in a project: `board.eth0` gives `eth0`.
    pub fn resource_of_link(link: &str) -> Option<&str> {
        link.strip_prefix("board.")
    }

    /// What plugins are told of the board: canonical JSON (keys sorted), without places.
    ///
    /// `schema`, `name`, `family`, `device`, `package`, `speed`, `clocks` (name to Hz), `system-clocks-hz`, `resources`: by name `class`,
    /// `kind`, `facts`, `rates-mbps`, `clock-hz` (by rate), `data-width` (by rate), `pins` (name to width), `uses`; `shared`: the same by name.
    pub fn facts_json(&self) -> Json {
        let resources = |list: &[Resource]| -> Json {
            let sorted: BTreeMap<String, Json> = list.iter().map(|r| (r.name.value.clone(), resource_json(r))).collect();
            object(sorted)
        };
        object(BTreeMap::from([
            ("clocks".into(), object(self.clocks.iter().map(|c| (c.name.value.clone(), json!(c.hz))).collect())),
            ("device".into(), json!(self.part.device.value)),
            ("family".into(), json!(self.part.family.value)),
            ("name".into(), json!(self.name.value)),
            ("package".into(), json!(self.part.package.value)),
            ("resources".into(), resources(&self.resources)),
            ("schema".into(), json!(1)),
            ("shared".into(), resources(&self.shared)),
            ("speed".into(), json!(self.part.speed.value)),
            ("system-clocks-hz".into(), json!(self.system_clocks())),
        ]))
    }
}

/// An object whose keys are sorted, whatever map serde_json was built with.
fn object(sorted: BTreeMap<String, Json>) -> Json {
    Json::Object(sorted.into_iter().collect())
}

fn resource_json(resource: &Resource) -> Json {
    let by_rate = |map: &BTreeMap<u64, u64>| object(map.iter().map(|(k, v)| (k.to_string(), json!(v))).collect());
    let widths: BTreeMap<u64, u64> = resource.class.data_width.iter().map(|(k, v)| (*k, u64::from(*v))).collect();
    let pins = resource.pins.iter().filter(|p| !matches!((p.spec.width, p.locations.len()), (Width::Link(_), 0)));
    object(BTreeMap::from([
        ("class".into(), json!(resource.class.name)),
        ("clock-hz".into(), by_rate(&resource.class.clock_hz)),
        ("data-width".into(), by_rate(&widths)),
        ("facts".into(), object(resource.facts.iter().map(|(k, v)| (k.clone(), v.value.clone())).collect())),
        ("kind".into(), json!(resource.class.kind)),
        ("pins".into(), object(pins.map(|p| (p.spec.name.clone(), json!(p.width(0)))).collect())),
        ("rates-mbps".into(), json!(resource.rates_mbps())),
        ("uses".into(), json!(resource.uses.iter().map(|u| &u.value).collect::<Vec<_>>())),
    ]))
}

impl Resource {
    /// Its top-level ports. `link_width` is the data width of its link, for classes whose width the link decides.
    pub fn top_ports(&self, link_width: u32) -> Vec<TopPort> {
        let wired = self.pins.iter().filter(|p| !p.spec.signal.is_empty());
        wired
            .map(|pin| TopPort {
                name: format!("{}_{}", self.name.value, pin.spec.name),
                dir: pin.spec.dir,
                bus: pin.spec.width != Width::Fixed(1),
                width: pin.width(link_width),
                locations: pin.locations.iter().map(|l| l.value.clone()).collect(),
                io: pin.io.clone(),
                attrs: pin.attrs.clone(),
            })
            .collect()
    }
}

fn single(name: String, pin: Option<&Spanned<String>>, io: Option<&String>, attrs: &BTreeMap<String, String>) -> TopPort {
    let locations = pin.map(|p| p.value.clone()).into_iter().collect();
    TopPort { name, dir: Dir::In, bus: false, width: 1, locations, io: io.cloned(), attrs: attrs.clone() }
}

impl BoardClock {
    /// Its top-level ports: one, or two for a pair whose pins are both named.
    pub fn top_ports(&self) -> Vec<TopPort> {
        let mut ports = vec![single(self.name.value.clone(), self.pin.as_ref(), self.io.as_ref(), &self.attrs)];
        if self.pin_n.is_some() {
            ports.push(single(format!("{}_n", self.name.value), self.pin_n.as_ref(), self.io.as_ref(), &self.attrs));
        }
        ports
    }
}

impl BoardReset {
    /// Its top-level port.
    pub fn top_port(&self) -> TopPort {
        single(self.name.value.clone(), self.pin.as_ref(), self.io.as_ref(), &self.attrs)
    }
}

/// The pins that a project uses, each once.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    pins: BTreeMap<String, (String, Span, Span)>,
    resources: BTreeMap<String, Span>,
}

impl Claims {
    /// Nothing claimed yet.
    pub fn new() -> Claims {
        Claims::default()
    }

    /// Whether something has a pin.
    pub fn has_pin(&self, location: &str) -> bool {
        self.pins.contains_key(location)
    }

    /// Claims a clock, for `by` (a place in the project).
    ///
    /// # Errors
    /// `GW0207` for each pin that something else has.
    pub fn clock(&mut self, clock: &BoardClock, by: &Span) -> Result<(), Diagnostics> {
        let pins = clock.pin.iter().chain(&clock.pin_n);
        self.claim(&format!("clock.{}", clock.name.value), pins, by)
    }

    /// Claims a reset button.
    ///
    /// # Errors
    /// `GW0207`.
    pub fn reset(&mut self, reset: &BoardReset, by: &Span) -> Result<(), Diagnostics> {
        self.claim(&format!("reset.{}", reset.name.value), reset.pin.iter(), by)
    }

    /// Claims a resource and the shared ones that belong to it. A resource that is not shared can be claimed once.
    ///
    /// # Errors
    /// `GW0207` for each pin, or for the resource as a whole, that something else has; both places are shown.
    pub fn resource(&mut self, board: &Board, resource: &Resource, by: &Span) -> Result<(), Diagnostics> {
        let name = &resource.name.value;
        if !resource.shared
            && let Some(first) = self.resources.insert(name.clone(), by.clone())
        {
            let error = Diagnostic::error("GW0207", format!("`board.{name}` is claimed twice"))
                .at(by)
                .also(&first, "first claimed here")
                .help("a resource that is not `shared` has one user: remove one of the links");
            return Err(error.into());
        }
        let mut diagnostics = Diagnostics::default();
        let locations = resource.pins.iter().flat_map(|p| &p.locations);
        if let Err(found) = self.claim(&format!("resource.{name}"), locations, by) {
            diagnostics.extend(found);
        }
        for shared in board.shared_of(resource) {
            let locations = shared.pins.iter().flat_map(|p| &p.locations);
            if let Err(found) = self.claim(&format!("shared.{}", shared.name.value), locations, by) {
                diagnostics.extend(found);
            }
        }
        diagnostics.finish(()).map(|_| ())
    }

    fn claim<'a>(&mut self, owner: &str, pins: impl Iterator<Item = &'a Spanned<String>>, by: &Span) -> Result<(), Diagnostics> {
        let mut diagnostics = Diagnostics::default();
        for pin in pins {
            match self.pins.get(&pin.value) {
                Some((other, ..)) if other == owner => {}
                Some((other, other_by, other_pin)) => diagnostics.push(
                    Diagnostic::error("GW0207", format!("pin {} is claimed by `{other}` and by `{owner}`", pin.value))
                        .at(by)
                        .also(other_by, format!("`{other}` is claimed here"))
                        .also(other_pin, format!("pin of `{other}` on the board"))
                        .also(&pin.span, format!("pin of `{owner}` on the board"))
                        .help("the board wires both to this pin, so a project can use one of them"),
                ),
                None => {
                    self.pins.insert(pin.value.clone(), (owner.to_owned(), by.clone(), pin.span.clone()));
                }
            }
        }
        diagnostics.finish(()).map(|_| ())
    }
}

/// Reads one board file.
struct Reader {
    roots: Vec<PathBuf>,
    classes: BTreeMap<String, Option<Arc<Class>>>,
    file: Arc<crate::diag::SourceFile>,
    /// Whether the board exists in simulation only, so that nothing has a location.
    pinless: bool,
}

fn string_of(table: &Table<'_>, key: &str) -> Option<Spanned<String>> {
    table.need(key)?.string()
}

fn maybe(table: &Table<'_>, key: &str) -> Option<Spanned<String>> {
    table.get(key)?.string()
}

/// A string, or an integer as a string (speed grades).
fn word(table: &Table<'_>, key: &str) -> Option<Spanned<String>> {
    let value = table.need(key)?;
    match value.item.as_integer() {
        Some(i) => Some(value.spanned(i.to_string())),
        None => value.string(),
    }
}

/// A table of strings, such as I/O attributes.
fn words(value: Option<Value<'_>>) -> BTreeMap<String, String> {
    let Some(table) = value.and_then(|v| v.table()) else { return BTreeMap::new() };
    table.entries().into_iter().filter_map(|(key, v)| Some((key.value, v.string()?.value))).collect()
}

/// The name of a clock, reset or resource becomes part of HDL names: lower case letters, digits and `_`, first a letter.
fn check_name(key: &Spanned<String>, value: &Value<'_>) {
    let letters = key.value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !letters || !key.value.starts_with(|c: char| c.is_ascii_lowercase()) {
        let message = format!("`{}` cannot be a name in HDL", key.value);
        value.push(Diagnostic::error("GW0204", message).at(&key.span).help("use lower case letters, digits and `_`, first a letter"));
    }
}

impl Reader {
    fn lookup(&self, folder: &str, name: &str) -> Option<PathBuf> {
        self.roots.iter().map(|root| root.join(folder).join(format!("{name}.toml"))).find(|p| p.is_file())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let dirs: Vec<PathBuf> = self.roots.iter().map(|root| root.join(folder)).collect();
        list(&dirs).into_keys().collect()
    }

    fn board(&mut self, doc: &Doc) -> Option<Board> {
        let root = doc.root();
        schema(&root);
        let head = root.need("board").and_then(|v| v.table());
        let part = root.need("part").and_then(|v| v.table());
        self.pinless = part.as_ref().and_then(|t| t.get("family")).is_some_and(|f| f.item.as_str() == Some("sim"));
        let flow = root.need("flow").and_then(|v| v.table()).and_then(|t| read_flow(&t));
        let clocks = self.each(&root, "clock", |_, key, value| read_clock(key, value));
        let resets = self.each(&root, "reset", |_, key, value| read_reset(key, value));
        let shared = self.each(&root, "shared", |reader, key, value| reader.resource(key, value, true));
        let resources = self.each(&root, "resource", |reader, key, value| reader.resource(key, value, false));
        root.finish();
        for resource in resources.iter().chain(&shared) {
            for used in &resource.uses {
                if !shared.iter().any(|s| s.name.value == used.value) {
                    doc.push(
                        Diagnostic::error("GW0206", format!("`shared.{}` is not on this board", used.value))
                            .at(&used.span)
                            .nearest(&used.value, shared.iter().map(|s| s.name.value.as_str())),
                    );
                }
            }
        }
        let head = head?;
        let (name, summary) = (string_of(&head, "name"), string_of(&head, "summary"));
        let revision = maybe(&head, "revision").map(|r| r.value);
        let (source, status) = (string_of(&head, "source"), string_of(&head, "status"));
        head.finish();
        let (part, family) = self.part(&part?)?;
        let device = match family.devices.get(&part.device.value) {
            Some(device) => device.clone(),
            None => {
                doc.push(
                    Diagnostic::error("GW0202", format!("family `{}` has no device `{}`", family.name, part.device.value))
                        .at(&part.device.span)
                        .nearest(&part.device.value, family.devices.keys().map(String::as_str)),
                );
                return None;
            }
        };
        let name = name?;
        let stem = self.file.path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        if stem != name.value {
            let message = format!("the file `{stem}.toml` names its board `{}`", name.value);
            doc.push(Diagnostic::error("GW0204", message).at(&name.span).help("a board has the name of its file"));
        }
        Some(Board {
            name,
            revision,
            summary: summary?.value,
            source: source?.value,
            status: status?.value,
            part,
            family,
            device,
            flow: flow?,
            clocks,
            resets,
            shared,
            resources,
            span: Span { file: self.file.clone(), range: 0..0 },
        })
    }

    fn each<T>(
        &mut self,
        root: &Table<'_>,
        key: &str,
        mut read: impl FnMut(&mut Reader, Spanned<String>, &Value<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(table) = root.get(key).and_then(|v| v.table()) else { return Vec::new() };
        let mut list = Vec::new();
        for (name, value) in table.entries() {
            check_name(&name, &value);
            list.extend(read(self, name, &value));
        }
        list
    }

    fn part(&self, table: &Table<'_>) -> Option<(Part, Arc<Family>)> {
        let family = string_of(table, "family");
        let (device, package) = (string_of(table, "device"), string_of(table, "package"));
        let (speed, number) = (word(table, "speed"), string_of(table, "number"));
        table.finish();
        let family = family?;
        let Some(path) = self.lookup("families", &family.value) else {
            let known = self.names("families");
            table.push(
                Diagnostic::error("GW0202", format!("there is no FPGA family `{}`", family.value))
                    .at(&family.span)
                    .nearest(&family.value, known.iter().map(String::as_str)),
            );
            return None;
        };
        let figures = match Family::load(&path) {
            Ok(figures) => figures,
            Err(found) => {
                found.into_iter().for_each(|d| table.push(d));
                return None;
            }
        };
        let speed = speed?;
        if !figures.system_clocks.contains_key(&speed.value) {
            table.push(
                Diagnostic::error("GW0202", format!("family `{}` has no speed grade `{}`", figures.name, speed.value))
                    .at(&speed.span)
                    .nearest(&speed.value, figures.system_clocks.keys().map(String::as_str)),
            );
        }
        let part = Part { family, device: device?, package: package?, speed, number: number? };
        Some((part, Arc::new(figures)))
    }

    fn class(&mut self, name: &Spanned<String>, value: &Value<'_>) -> Option<Arc<Class>> {
        if let Some(class) = self.classes.get(&name.value) {
            return class.clone();
        }
        let class = match self.lookup("classes", &name.value) {
            Some(path) => match Class::load(&path) {
                Ok(class) => Some(Arc::new(class)),
                Err(found) => {
                    found.into_iter().for_each(|d| value.push(d));
                    None
                }
            },
            None => {
                let known = self.names("classes");
                value.push(
                    Diagnostic::error("GW0203", format!("there is no resource class `{}`", name.value))
                        .at(&name.span)
                        .nearest(&name.value, known.iter().map(String::as_str)),
                );
                return None;
            }
        };
        self.classes.insert(name.value.clone(), class.clone());
        class
    }

    fn resource(&mut self, name: Spanned<String>, value: &Value<'_>, shared: bool) -> Option<Resource> {
        let table = value.table()?;
        let class_name = string_of(&table, "class");
        let uses = table.get("uses").and_then(|v| v.strings()).unwrap_or_default();
        let uses = uses
            .into_iter()
            .filter_map(|u| {
                let Some(name) = u.value.strip_prefix("shared.").map(str::to_owned) else {
                    let message = format!("`{}` is not a shared resource", u.value);
                    table.push(Diagnostic::error("GW0206", message).at(&u.span).help("write `shared.<name>`"));
                    return None;
                };
                Some(u.map(|_| name))
            })
            .collect();
        let io = maybe(&table, "io").map(|s| s.value);
        let attrs = words(table.get("attrs"));
        let note = maybe(&table, "note").map(|s| s.value);
        let vendor = table.get("vendor").map(|v| v.to_json());
        let vendor = vendor.and_then(|v| v.as_object().cloned()).unwrap_or_default().into_iter().collect();
        let (facts, pins) = (table.get("facts"), table.get("pins"));
        let (pin_io, pin_attrs) = (words(table.get("pin-io")), table.get("pin-attrs").and_then(|v| v.table()));
        table.finish();
        let class = self.class(&class_name?, value)?;
        if shared && !class.shared {
            let message = format!("class `{}` cannot be shared", class.name);
            table.push(Diagnostic::error("GW0206", message).at(&name.span).help("move it to `resource`"));
        }
        let facts = read_facts(&class, &table, facts.as_ref());
        let mut pins = read_pins(&class, &table, pins.as_ref(), self.pinless);
        let per_pin: BTreeMap<String, BTreeMap<String, String>> =
            pin_attrs.map(|t| t.entries().into_iter().map(|(k, v)| (k.value, words(Some(v)))).collect()).unwrap_or_default();
        for key in per_pin.keys().chain(pin_io.keys()) {
            if !pins.iter().any(|p| p.spec.name == *key) {
                unknown_pin(&class, &table, key, table.span());
            }
        }
        for pin in &mut pins {
            if let Some((fact, over)) = &pin.spec.width_fact {
                let said = facts.get(fact).and_then(|f| f.value.as_u64()).unwrap_or(1);
                let bits = (said as u32 / over).max(1);
                pin.spec.width = Width::Between(bits, bits);
            }
            pin.io = pin_io.get(&pin.spec.name).or(io.as_ref()).cloned();
            pin.attrs = attrs.clone();
            pin.attrs.extend(per_pin.get(&pin.spec.name).cloned().unwrap_or_default());
        }
        Some(Resource { name, shared, class, uses, facts, pins, note, vendor })
    }
}

fn unknown_pin(class: &Class, table: &Table<'_>, name: &str, span: &Span) {
    table.push(
        Diagnostic::error("GW0205", format!("class `{}` has no pin `{name}`", class.name))
            .at(span)
            .nearest(name, class.pins.iter().map(|p| p.name.as_str())),
    );
}

fn read_facts(class: &Class, table: &Table<'_>, value: Option<&Value<'_>>) -> BTreeMap<String, Spanned<Json>> {
    let mut facts = BTreeMap::new();
    let given = value.and_then(|v| v.table());
    for (name, fact) in given.as_ref().map(|t| t.entries()).unwrap_or_default() {
        let Some(spec) = class.facts.get(&name.value) else {
            table.push(
                Diagnostic::error("GW0209", format!("class `{}` has no fact `{}`", class.name, name.value))
                    .at(&name.span)
                    .nearest(&name.value, class.facts.keys().map(String::as_str)),
            );
            continue;
        };
        let json = fact.to_json();
        match spec.check(&json) {
            Ok(()) => {
                facts.insert(name.value, fact.spanned(json));
            }
            Err(right) => {
                let message = format!("`{}` cannot be {json}", fact.name);
                table.push(Diagnostic::error("GW0209", message).at(&fact.span).help(format!("it is {right}: {}", spec.doc)));
            }
        }
    }
    for (name, spec) in &class.facts {
        let said = given.as_ref().is_some_and(|t| t.get(name).is_some());
        if spec.required && !said {
            table.push(
                Diagnostic::error("GW0209", format!("`{}` lacks the fact `{name}`", table.name()))
                    .at(table.span())
                    .help(format!("class `{}` needs it: {}", class.name, spec.doc)),
            );
        }
    }
    facts
}

fn read_pins(class: &Class, table: &Table<'_>, value: Option<&Value<'_>>, pinless: bool) -> Vec<ResourcePin> {
    let bare = |spec: &ClassPin, span: &Span, locations| ResourcePin {
        spec: spec.clone(),
        span: span.clone(),
        locations,
        io: None,
        attrs: BTreeMap::new(),
    };
    if class.virtual_pins || pinless {
        if let Some(value) = value {
            let message = format!("`{}` has no pins of its own", table.name());
            table.push(Diagnostic::error("GW0205", message).at(&value.span).help("remove them"));
        }
        return class.pins.iter().map(|spec| bare(spec, table.span(), Vec::new())).collect();
    }
    let mut pins: Vec<ResourcePin> = Vec::new();
    let given = value.and_then(|v| v.table());
    let mut places: BTreeMap<String, Span> = BTreeMap::new();
    for (name, pin) in given.as_ref().map(|t| t.entries()).unwrap_or_default() {
        let Some(spec) = class.pin(&name.value) else {
            unknown_pin(class, table, &name.value, &name.span);
            continue;
        };
        let Some(locations) = pin.strings() else { continue };
        if !spec.width.allows(locations.len() as u32) {
            let right = match spec.width {
                Width::Fixed(w) => format!("{w}"),
                Width::Between(low, high) => format!("{low} to {high}"),
                Width::Link(_) => "any number".to_owned(),
            };
            let message = format!("`{}` has {} locations", pin.name, locations.len());
            table.push(
                Diagnostic::error("GW0205", message)
                    .at(&pin.span)
                    .help(format!("class `{}` has {right} bits there, listed from bit 0 upwards", class.name)),
            );
        }
        for location in &locations {
            if let Some(first) = places.insert(location.value.clone(), location.span.clone()) {
                let message = format!("pin {} stands twice in `{}`", location.value, table.name());
                table.push(Diagnostic::error("GW0207", message).at(&location.span).also(&first, "first here"));
            }
        }
        pins.push(bare(spec, &name.span, locations));
    }
    for spec in &class.pins {
        if !spec.optional && !pins.iter().any(|p| p.spec.name == spec.name) {
            let said = given.as_ref().is_some_and(|t| t.get(&spec.name).is_some());
            if !said {
                table.push(
                    Diagnostic::error("GW0205", format!("`{}` lacks the pin `{}`", table.name(), spec.name))
                        .at(table.span())
                        .help(format!("class `{}` needs it: {}", class.name, spec.doc)),
                );
            }
        }
    }
    pins
}

fn read_flow(table: &Table<'_>) -> Option<Flow> {
    let open = table.need("open").and_then(|v| v.boolean());
    let loader = table.get("loader").and_then(|v| v.strings()).unwrap_or_default();
    let sysconfig = words(table.get("sysconfig"));
    table.finish();
    Some(Flow { open: open?.value, loader: loader.into_iter().map(|s| s.value).collect(), sysconfig })
}

fn read_clock(name: Spanned<String>, value: &Value<'_>) -> Option<BoardClock> {
    let table = value.table()?;
    let (pin, pin_n) = (maybe(&table, "pin"), maybe(&table, "pin-n"));
    let io = maybe(&table, "io").map(|s| s.value);
    let attrs = words(table.get("attrs"));
    let mhz = table.need("mhz")?;
    table.finish();
    let hz = hz_of_mhz(mhz.number()?.value);
    if hz.is_none() {
        let message = format!("`{}` is not a frequency in MHz", mhz.name);
        mhz.push(Diagnostic::error("GW0204", message).at(&mhz.span).help("write a positive number, such as 156.25"));
    }
    Some(BoardClock { name, pin, pin_n, hz: hz?, io, attrs })
}

fn read_reset(name: Spanned<String>, value: &Value<'_>) -> Option<BoardReset> {
    let table = value.table()?;
    let pin = maybe(&table, "pin");
    let active = table.need("active").and_then(|v| one_of(&v, &[("low", true), ("high", false)]));
    let io = maybe(&table, "io").map(|s| s.value);
    let mut attrs = words(table.get("attrs"));
    if let Some(pull) = table.get("pull").and_then(|v| one_of(&v, &[("up", "UP"), ("down", "DOWN"), ("none", "NONE")])) {
        attrs.insert("PULLMODE".to_owned(), pull.value.to_owned());
    }
    table.finish();
    Some(BoardReset { name, pin, active_low: active?.value, io, attrs })
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
