//! `project.toml`: the file that a user writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::read::{Doc, Table, Value};
use crate::compose::rate::{MAX_FRAME_BYTES, MIN_FRAME_BYTES};
use crate::diag::{Diagnostic, Diagnostics, Span, Spanned};

/// Name of the project file in a project's folder.
pub const FILE_NAME: &str = "project.toml";

/// Largest system clock that a project may ask for, in Hz.
const HZ_MAX: f64 = 1e9;
/// Largest FIFO of a link, in bytes.
const FIFO_MAX: u64 = 1 << 20;
/// Highest priority of a link.
const PRIORITY_MAX: u64 = 7;

/// A project as written, before any plugin was asked.
pub struct Project {
    /// Folder that holds `project.toml`.
    pub dir: PathBuf,
    /// The file, kept for places of parameters.
    pub doc: Doc,
    /// `project.name`.
    pub name: Spanned<String>,
    /// `project.board`.
    pub board: Spanned<String>,
    /// Folders with plugins, absolute or relative to the working directory.
    pub plugin_dirs: Vec<Spanned<PathBuf>>,
    /// Folders with board files beside the ones that Gateweave has.
    pub board_dirs: Vec<Spanned<PathBuf>>,
    /// `clocks.NAME`, in Hz; `sys` overrides the planner.
    pub clocks: BTreeMap<String, Spanned<u64>>,
    /// `datapath.width`: overrides the planner's width, in bits.
    pub width: Option<Spanned<u32>>,
    /// `datapath.gbps-milli` is derived from `datapath.gbps`: the link rate where the board leaves it open (board `sim`), in 1/1000 Gbit/s.
    pub gbps_milli: Option<Spanned<u64>>,
    /// `datapath.shortest-frame`: bytes without FCS of the shortest frame for which the rate is promised.
    pub shortest_frame: Option<Spanned<u64>>,
    /// Instances in file order.
    pub instances: Vec<Instance>,
    /// Names of instances that are in the file and could not be read.
    pub unread: Vec<String>,
}

/// `[instance.NAME]`.
#[derive(Clone, Debug)]
pub struct Instance {
    /// NAME.
    pub name: Spanned<String>,
    /// `plugin`.
    pub plugin: Spanned<String>,
    /// `version`, where several versions of a plugin are at hand.
    pub version: Option<Spanned<String>>,
    /// `params`, an empty table where there is none.
    pub params: Json,
    /// Place of `params`, or of the instance.
    pub params_span: Span,
    /// `links`, in file order.
    pub links: Vec<Link>,
    /// `false` where something of it could not be read, so that nothing can be said of what it lacks.
    pub complete: bool,
}

/// A link, written at the client.
#[derive(Clone, Debug)]
pub struct Link {
    /// Own port.
    pub port: Spanned<String>,
    /// `INSTANCE.PORT` or `board.RESOURCE`.
    pub to: Spanned<String>,
    /// Width at the client, in bits.
    pub width: Option<Spanned<u32>>,
    /// `true` forces a clock crossing, `false` refuses one.
    pub crossing: Option<Spanned<bool>>,
    /// Room in bytes of a FIFO towards the client.
    pub fifo: Option<Spanned<u32>>,
    /// Who goes first where several clients share a provider; higher first, 0 where it is not said.
    pub priority: Option<Spanned<u8>>,
}

impl Project {
    /// Reads `dir/project.toml`.
    ///
    /// # Errors
    /// `GW0101` to `GW0106` of the reader, `GW0107` for a schema this version does not know, `GW0108` for a
    /// name that is not an identifier, `GW0109` for a bad link, `GW0110` for a bad frequency.
    pub fn load(dir: &Path) -> Result<Project, Diagnostics> {
        let (project, found) = Self::read(dir)?;
        found.finish(project).map(|(project, _)| project)
    }

    /// The same, but gives what could be read of a file with errors, so that later stages can look at that.
    ///
    /// # Errors
    /// As [`Project::load`], where too little could be read to go on.
    pub fn read(dir: &Path) -> Result<(Project, Diagnostics), Diagnostics> {
        let path = dir.join(FILE_NAME);
        if !path.is_file() {
            let mut diagnostic = Diagnostic::error("GW0101", format!("there is no `{}`", path.display()));
            if dir.is_file() {
                diagnostic = diagnostic.help(format!("PROJECT is the folder that holds `{FILE_NAME}`"));
            } else {
                diagnostic = diagnostic.help("make a project with `gateweave new NAME`");
            }
            return Err(diagnostic.into());
        }
        Self::from_doc(dir, Doc::open(&path)?)
    }

    /// Reads a project from text, as if it were `dir/project.toml`.
    ///
    /// # Errors
    /// As [`Project::load`].
    pub fn parse(dir: &Path, text: String) -> Result<Project, Diagnostics> {
        let (project, found) = Self::from_doc(dir, Doc::parse(&dir.join(FILE_NAME), text)?)?;
        found.finish(project).map(|(project, _)| project)
    }

    fn from_doc(dir: &Path, doc: Doc) -> Result<(Project, Diagnostics), Diagnostics> {
        let root = doc.root();
        let known = read_schema(&root);
        let mut name = None;
        let mut board = None;
        let mut plugin_dirs = Vec::new();
        let mut board_dirs = Vec::new();
        if let Some(table) = root.need("project").and_then(|v| v.table()) {
            name = table.need("name").and_then(|v| v.string()).filter(|n| check_name(&root, n));
            board = table.need("board").and_then(|v| v.string());
            let folders = |key: &str| -> Vec<Spanned<PathBuf>> {
                let list = table.get(key).and_then(|v| v.strings()).unwrap_or_default();
                list.into_iter().map(|s| s.map(|text| dir.join(text))).collect()
            };
            plugin_dirs = folders("plugins");
            board_dirs = folders("boards");
            table.finish();
        }
        let mut clocks = BTreeMap::new();
        if let Some(table) = root.get("clocks").and_then(|v| v.table()) {
            if let Some(hz) = table.get("sys").and_then(|v| frequency(&v)) {
                clocks.insert("sys".to_owned(), hz);
            }
            table.finish();
        }
        let mut width = None;
        let mut gbps_milli = None;
        let mut shortest_frame = None;
        if let Some(table) = root.get("datapath").and_then(|v| v.table()) {
            width = table.get("width").and_then(|v| read_width(&v));
            gbps_milli = table.get("gbps").and_then(|v| v.number()).and_then(|n| {
                if n.value > 0.0 && n.value <= 400.0 {
                    return Some(n.map(|g| (g * 1000.0).round() as u64));
                }
                root.push(Diagnostic::error("GW0106", format!("`datapath.gbps` is {}, outside 0 to 400", n.value)).at(&n.span));
                None
            });
            shortest_frame = table.get("shortest-frame").and_then(|v| v.unsigned(MIN_FRAME_BYTES..=MAX_FRAME_BYTES));
            table.finish();
        }
        let mut instances: Vec<Instance> = Vec::new();
        let mut unread = Vec::new();
        if let Some(table) = root.need("instance").and_then(|v| v.table()) {
            for (key, value) in table.entries() {
                if !check_name(&root, &key) {
                    unread.push(key.value);
                    continue;
                }
                if key.value == "board" {
                    root.push(
                        Diagnostic::error("GW0108", "`board` is the name of the board itself in links")
                            .at(&key.span)
                            .help("choose another name for this instance"),
                    );
                    continue;
                }
                if let Some(twin) = instances.iter().find(|i| i.name.value.replace('-', "_") == key.value.replace('-', "_")) {
                    root.push(
                        Diagnostic::error(
                            "GW0108",
                            format!("`{}` and `{}` have one name in HDL, where `-` is `_`", twin.name.value, key.value),
                        )
                        .at(&key.span)
                        .also(&twin.name.span, "the other one")
                        .help("choose another name for one of them"),
                    );
                }
                let name = key.value.clone();
                match value.table().and_then(|t| read_instance(key, &t)) {
                    Some(instance) => instances.push(instance),
                    None => unread.push(name),
                }
            }
        }
        root.finish();
        let diagnostics = doc.take();
        // A bad name of the project changes nothing that comes later.
        let name = name.or_else(|| Some(Spanned { value: "project".to_owned(), span: board.as_ref()?.span.clone() }));
        match (name, board) {
            (Some(name), Some(board)) if known => Ok((
                Project {
                    dir: dir.to_owned(),
                    doc,
                    name,
                    board,
                    plugin_dirs,
                    board_dirs,
                    clocks,
                    width,
                    gbps_milli,
                    shortest_frame,
                    instances,
                    unread,
                },
                diagnostics,
            )),
            _ => Err(diagnostics),
        }
    }

    /// Place of a parameter that a JSON Pointer names, or of the nearest thing around it that is there.
    pub fn param_span(&self, instance: &Instance, pointer: &str) -> Span {
        let mut path = vec!["instance".to_owned(), instance.name.value.clone(), "params".to_owned()];
        path.extend(pointer.split('/').skip(1).map(|p| p.replace("~1", "/").replace("~0", "~")));
        let found = self.doc.span_at(&path);
        found.unwrap_or_else(|| instance.params_span.clone())
    }
}

/// Whether the rest of the file can be understood.
fn read_schema(root: &Table<'_>) -> bool {
    if let Some(schema) = root.need("schema").and_then(|v| v.integer())
        && schema.value != 1
    {
        root.push(
            Diagnostic::error("GW0107", format!("schema {} is not known to this version", schema.value))
                .at(&schema.span)
                .help("write `schema = 1`"),
        );
        return false;
    }
    true
}

fn check_name(root: &Table<'_>, name: &Spanned<String>) -> bool {
    let mut chars = name.value.chars();
    let good = chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
        && name.value.len() <= 32;
    if !good {
        root.push(
            Diagnostic::error("GW0108", format!("`{}` is not a name", name.value))
                .at(&name.span)
                .help("a name is a lower-case letter, then up to 31 lower-case letters, digits, `-` or `_`"),
        );
    }
    good
}

fn read_width(value: &Value<'_>) -> Option<Spanned<u32>> {
    let bits = value.unsigned(8..=512)?;
    if bits.value.is_power_of_two() {
        return Some(bits.map(|b| b as u32));
    }
    value.push(
        Diagnostic::error("GW0106", format!("`{}` is {}, not a datapath width", value.name, bits.value))
            .at(&bits.span)
            .help("a width is 8, 16, 32, 64, 128, 256 or 512 bits"),
    );
    None
}

/// A frequency: `"62.5 MHz"`, `"125MHz"`, `"50000 kHz"`, or a number of Hz.
fn frequency(value: &Value<'_>) -> Option<Spanned<u64>> {
    if let Some(hz) = value.item.as_integer() {
        if hz > 0 && (hz as f64) <= HZ_MAX {
            return Some(value.spanned(hz as u64));
        }
    } else {
        let text = value.string()?;
        let digits = text.value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
        let scale = match text.value[digits.len()..].trim().to_ascii_lowercase().as_str() {
            "hz" => Some(1.0),
            "khz" => Some(1e3),
            "mhz" => Some(1e6),
            "ghz" => Some(1e9),
            _ => None,
        };
        if let (Ok(number), Some(scale)) = (digits.trim().parse::<f64>(), scale) {
            let hz = number * scale;
            if hz.is_finite() && hz >= 1.0 && hz <= HZ_MAX {
                return Some(value.spanned(hz.round() as u64));
            }
        }
    }
    let written = value.item.as_str().map_or_else(|| value.item.to_string(), |text| format!("\"{text}\""));
    value.push(
        Diagnostic::error("GW0110", format!("`{}` is {}, not a frequency", value.name, written.trim()))
            .at(&value.span)
            .help("write it like \"62.5 MHz\", above 0 and up to 1 GHz"),
    );
    None
}

fn read_instance(name: Spanned<String>, table: &Table<'_>) -> Option<Instance> {
    let before = table.recorded();
    let plugin = table.need("plugin").and_then(|v| v.string());
    let version = table.get("version").and_then(|v| v.string());
    let mut params = Json::Object(serde_json::Map::new());
    let mut params_span = name.span.clone();
    if let Some(value) = table.get("params")
        && value.table().is_some()
    {
        params = value.to_json();
        params_span = value.span.clone();
    }
    let mut links = Vec::new();
    if let Some(table) = table.get("links").and_then(|v| v.table()) {
        for (port, value) in table.entries() {
            if let Some(list) = value.items() {
                links.extend(list.iter().filter_map(|v| read_link(&port, v)));
            } else {
                links.extend(read_link(&port, &value));
            }
        }
    }
    table.finish();
    let complete = table.recorded() == before;
    Some(Instance { name, plugin: plugin?, version, params, params_span, links, complete })
}

fn read_link(port: &Spanned<String>, value: &Value<'_>) -> Option<Link> {
    let mut link = Link { port: port.clone(), to: port.clone(), width: None, crossing: None, fifo: None, priority: None };
    if value.item.as_table_like().is_some() {
        let table = value.table()?;
        let to = table.need("to").and_then(|v| v.string());
        link.width = table.get("width").and_then(|v| read_width(&v));
        link.crossing = table.get("crossing").and_then(|v| v.boolean());
        link.fifo = table.get("fifo").and_then(|v| v.unsigned(1..=FIFO_MAX)).map(|n| n.map(|n| n as u32));
        link.priority = table.get("priority").and_then(|v| v.unsigned(0..=PRIORITY_MAX)).map(|n| n.map(|n| n as u8));
        table.finish();
        link.to = to?;
    } else {
        link.to = value.string()?;
    }
    let parts: Vec<&str> = link.to.value.split('.').collect();
    if parts.len() != 2 || parts.iter().any(|p| p.is_empty()) {
        value.push(
            Diagnostic::error("GW0109", format!("`{}` does not name a port", link.to.value))
                .at(&link.to.span)
                .help("write `INSTANCE.PORT`, or `board.RESOURCE`"),
        );
        return None;
    }
    Some(link)
}
