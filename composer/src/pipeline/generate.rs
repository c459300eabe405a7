//! From the plan to files: HDL, constraints, register documents, diagram, report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::elaborate::{Elaborated, elaborate};
use super::parallel;
use super::stamp::Stamp;
use crate::cache::{self, Cache};
use crate::compose::graph::{End, Graph};
use crate::compose::plan::{self, Choice};
use crate::compose::registers;
use crate::diag::{Diagnostic, Diagnostics};
use crate::emit::constraints::{ClockAt, ClockLine};
use crate::emit::{self, top};
use crate::hdl;
use crate::manifest::board::Resource;
use crate::plugin::merge;
use crate::plugin::types::{Language, Output, Peer, Plan as PluginPlan, Purpose, Role, Target, Wired};

/// Name of the file that pins register addresses, beside `project.toml`.
pub const REGISTERS_LOCK: &str = "registers.lock";

const HARD_MAC_10G_IP: &str = include_str!("../../hdl/io/xcu/hard_mac_10g_ip.sv");
const HARD_MAC_100G_IP: &str = include_str!("../../hdl/io/xcu/hard_mac_100g_ip.sv");

/// What `generate` is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the project.
    pub dir: PathBuf,
    /// Folder for the output.
    pub out: Option<PathBuf>,
    /// What the HDL is for.
    pub target: Target,
}

/// What `generate` made or found unchanged.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Generated {
    /// Project name.
    pub name: String,
    /// Output folder.
    pub out: PathBuf,
    /// Top module, as emitted.
    pub top: String,
    /// SystemVerilog files in order, below `out`.
    pub system_verilog: Vec<PathBuf>,
    /// All files, below `out`.
    pub files: Vec<PathBuf>,
    /// Calls into plugins that this run made.
    pub plugin_calls: u64,
    /// Veryl passes that this run made.
    pub hdl_passes: u64,
    /// Whether everything was still as the last run left it.
    pub unchanged: bool,
}

impl Generated {
    /// The register map, `None` where the design has no registers.
    pub fn registers(&self) -> Option<Json> {
        let path = self.files.iter().find(|path| path.ends_with("registers.json"))?;
        serde_json::from_slice(&std::fs::read(self.out.join(path)).ok()?).ok()
    }
}

/// Generates, unless nothing has changed since the last run.
///
/// # Errors
/// Everything that is wrong with the project.
pub fn generate(options: &Options, cache: &Cache) -> Result<(Generated, Diagnostics), Diagnostics> {
    let key = stamp_key(options);
    let memo = memo_path(options, cache);
    if let Some((generated, stamp)) = read_memo(&memo)
        && stamp.holds(&key, &generated.out)
    {
        let generated = Generated { plugin_calls: 0, hdl_passes: 0, unchanged: true, ..generated };
        return Ok((generated, Diagnostics::default()));
    }
    let elaborated = elaborate(&options.dir, cache)?;
    let out = super::out_dir(&elaborated.project, options.out.as_deref());
    let design = Design::make(elaborated, options.target)?;
    let (files, top, system_verilog) = design.files()?;
    write_all(&out, &files)?;
    if let Some(lock) = &design.registers.lock {
        let path = options.dir.join(REGISTERS_LOCK);
        cache::write_atomic(&path, lock.as_bytes())
            .map_err(|e| Diagnostic::error("GW0111", format!("cannot write `{}`: {e}", path.display())))?;
    }
    let generated = Generated {
        name: design.elaborated.project.name.value.clone(),
        out: out.clone(),
        top,
        system_verilog,
        files: files.keys().cloned().collect(),
        plugin_calls: design.elaborated.host.calls(),
        hdl_passes: 1,
        unchanged: false,
    };
    let mut inputs = design.elaborated.inputs.clone();
    inputs.push(options.dir.join(REGISTERS_LOCK));
    let mut stamp = Stamp::of_inputs(key, &inputs);
    stamp.outputs = files.iter().map(|(path, bytes)| (path.clone(), cache::sha256(bytes.as_bytes()))).collect();
    write_memo(&memo, &generated, &stamp);
    let mut warnings = design.elaborated.warnings;
    warnings.extend(design.registers.warnings);
    Ok((generated, warnings))
}

fn stamp_key(options: &Options) -> String {
    let target = match options.target {
        Target::Fpga => "fpga",
        Target::Simulation => "simulation",
        Target::Lint => "lint",
    };
    format!("{} {target} {}", program(), options.out.as_deref().map(|p| p.display().to_string()).unwrap_or_default())
}

/// Which program this is: another build may generate something else under the same version.
fn program() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let built =
        file.ok().map(|m| (m.len(), m.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default()));
    format!("{} {built:?}", crate::version())
}

/// The memo of the last run of a project stands in the cache: by folder and target.
fn memo_path(options: &Options, cache: &Cache) -> PathBuf {
    let dir = std::fs::canonicalize(&options.dir).unwrap_or_else(|_| options.dir.clone());
    let here = std::env::current_dir().unwrap_or_default();
    let name = format!("{}\n{}\n{}", dir.display(), here.display(), stamp_key(options));
    cache.root().join("memo").join(format!("{}.json", &cache::sha256(name.as_bytes())[..32]))
}

fn read_memo(path: &Path) -> Option<(Generated, Stamp)> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// A memo that cannot be written costs time, nothing else.
fn write_memo(path: &Path, generated: &Generated, stamp: &Stamp) {
    if let Ok(bytes) = serde_json::to_vec(&(generated, stamp)) {
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = cache::write_atomic(path, &bytes);
    }
}

/// Writes the files and removes generated ones of an earlier run that are no longer made.
fn write_all(out: &Path, files: &BTreeMap<PathBuf, String>) -> Result<(), Diagnostics> {
    let trouble =
        |path: &Path, e: &std::io::Error| Diagnostics::from(Diagnostic::error("GW0111", format!("cannot write `{}`: {e}", path.display())));
    let hdl = out.join("hdl");
    let mut stale = Vec::new();
    collect(&hdl, &mut stale);
    for path in stale {
        if let Ok(below) = path.strip_prefix(out)
            && !files.contains_key(below)
        {
            std::fs::remove_file(&path).map_err(|e| trouble(&path, &e))?;
        }
    }
    for (below, text) in files {
        let path = out.join(below);
        if std::fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            continue;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| trouble(parent, &e))?;
        }
        cache::write_atomic(&path, text.as_bytes()).map_err(|e| trouble(&path, &e))?;
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Everything of one target, before it is text.
pub struct Design {
    /// The plan and what it came from.
    pub elaborated: Elaborated,
    /// What each node generated.
    pub outputs: Vec<Output>,
    /// What each node was asked with.
    pub plans: Vec<PluginPlan>,
    /// Veryl project of each node.
    pub projects: Vec<String>,
    /// Register blocks.
    pub registers: registers::Map,
    /// Blocks and masters in the order of the interconnect.
    pub bus: top::RegisterBus,
    /// Resources in use.
    pub resources: Vec<top::ResourceUse>,
    /// Clock sources.
    pub clocks: emit::clocks::Clocks,
    /// What for.
    pub target: Target,
}

impl Design {
    /// Allocates registers, makes clocks, and lets every plugin generate.
    ///
    /// # Errors
    /// Of the register allocation, the PLL search and the plugins.
    pub fn make(elaborated: Elaborated, target: Target) -> Result<Design, Diagnostics> {
        let (registers, bus) = registers_of(&elaborated)?;
        let clocks = emit::clocks::plan(&elaborated.board, &elaborated.plan, target, elaborated.reset.as_ref(), &elaborated.project)?;
        let resources = resources(&elaborated.graph, &elaborated);
        let mut diagnostics = Diagnostics::default();
        let mut outputs = Vec::new();
        let mut plans = Vec::new();
        let mut projects = Vec::new();
        let facts = elaborated.board.facts_json();
        for (index, node) in elaborated.graph.nodes.iter().enumerate() {
            let project = veryl_project(&node.about.name, &node.about.version);
            let block = registers.block(&node.instance.name.value).filter(|_| !bus.masters.is_empty());
            let mut links = elaborated.plan.wired(&elaborated.graph, index, &elaborated.board_plan.ports);
            links.extend(register_links(&elaborated, &bus, index));
            plans.push(PluginPlan {
                instance: node.instance.name.value.clone(),
                prefix: format!("{project}_{}_", top::ident(&node.instance.name.value)),
                params: node.params.clone(),
                board: facts.clone(),
                target,
                links,
                register_base: block.map(|b| b.base),
                register_data_bits: 32,
            });
            projects.push(project);
        }
        let answers = parallel::map(&plans, |index, plan| elaborated.plugins[index].generate(plan));
        for (node, answer) in elaborated.graph.nodes.iter().zip(answers) {
            match answer {
                Ok(output) => outputs.push(output),
                Err(found) => diagnostics.extend(super::elaborate::failure(&elaborated.project, &node.instance, &found)),
            }
        }
        let ((), _) = diagnostics.finish(())?;
        Ok(Design { elaborated, outputs, plans, projects, registers, bus, resources, clocks, target })
    }

    /// All output files with their texts, the emitted top module, and the SystemVerilog files in order.
    ///
    /// # Errors
    /// `GW0501` for HDL that does not pass Veryl.
    #[allow(clippy::type_complexity)]
    pub fn files(&self) -> Result<(BTreeMap<PathBuf, String>, String, Vec<PathBuf>), Diagnostics> {
        let e = &self.elaborated;
        let name = top::ident(&e.project.name.value);
        let title = format!("{} on {}", e.project.name.value, e.board.name.value);
        let model = top::build(&top::TopInput {
            name: &name,
            title: &title,
            graph: &e.graph,
            plan: &e.plan,
            kinds: &e.kinds,
            outputs: &self.outputs,
            projects: &self.projects,
            resources: &self.resources,
            idle: &self.idle(),
            clocks: &self.clocks.tree,
            registers: &self.bus,
            target: self.target,
        });
        let text = top::render(&model).map_err(|m| Diagnostic::error("GW0502", format!("the top level is not valid Veryl: {m}")))?;

        let mut sources = self.library();
        let mut foreign = Vec::new();
        self.plugin_sources(&mut sources, &mut foreign)?;
        let top_path = format!("top/{name}.veryl");
        sources.push(hdl::Source { project: "top".to_owned(), path: top_path, text, library: false });
        let compiled = hdl::compile("top", &sources, &[]).map_err(|m| self.hdl_errors(&m))?;

        let base = match self.target {
            Target::Simulation => PathBuf::from("sim/hdl"),
            _ => PathBuf::from("hdl"),
        };
        let mut files = BTreeMap::new();
        let mut ordered = Vec::new();
        for (path, text) in foreign {
            ordered.push(base.join(&path));
            files.insert(base.join(path), text);
        }
        for emitted in &compiled.files {
            let path = base.join(&emitted.path);
            files.insert(path.clone(), emitted.text.clone());
            let veryl = Path::new(&emitted.path).with_extension("veryl");
            if let Some(source) = sources.iter().find(|s| Path::new(&s.path) == veryl) {
                files.insert(base.join(veryl), source.text.clone());
            }
            ordered.push(path);
        }
        let list = ordered.iter().map(|p| p.strip_prefix(&base).unwrap_or(p).display().to_string() + "\n").collect::<String>();
        files.insert(base.join("files.f"), list);
        files.insert(base.join("lint.vlt"), crate::assets::template("lint.vlt").to_owned());
        let top = format!("top_{name}");
        if self.target == Target::Simulation {
            let plan = super::simulate::sim_plan(self, &top);
            files.insert("sim/plan.json".into(), pretty(&json!(plan)));
            if !self.registers.blocks.is_empty() {
                let made = emit::registers::files(&self.elaborated.project.name.value, &self.registers)?;
                files.insert("sim/registers.json".into(), made.json);
            }
        } else {
            self.documents(&mut files)?;
            if let Some(level) = self.constraints(&mut files, &mut ordered)? {
                let list = ordered.iter().map(|p| p.strip_prefix(&base).unwrap_or(p).display().to_string() + "\n").collect::<String>();
                files.insert(base.join("files.f"), list);
                return Ok((files, level, ordered));
            }
        }
        Ok((files, top, ordered))
    }

    /// Shared pins of the board that nobody drives.
    fn idle(&self) -> Vec<top::IdlePin> {
        let board = &self.elaborated.board;
        let used: Vec<_> = self.resources.iter().filter_map(|u| board.resource(&u.name)).collect();
        emit::clocks::idle_pins(board, &used)
    }

    /// The composer's library and the kinds of the plugins.
    fn library(&self) -> Vec<hdl::Source> {
        let family = match self.target {
            Target::Fpga => self.elaborated.board.family.name.as_str(),
            _ => "sim",
        };
        let mut sources = hdl::library(family);
        for kind in self.elaborated.kinds.values().filter(|k| k.from.is_some() && !k.kind.veryl.is_empty()) {
            let file = kind.kind.id.replace(['/', '@'], "_");
            sources.push(hdl::Source {
                project: "kinds".to_owned(),
                path: format!("kinds/{file}.veryl"),
                text: kind.kind.veryl.clone(),
                library: false,
            });
        }
        sources
    }

    /// Sources of the plugins: those of all instances of one version of a plugin together, each file once.
    fn plugin_sources(&self, sources: &mut Vec<hdl::Source>, foreign: &mut Vec<(PathBuf, String)>) -> Result<(), Diagnostics> {
        let wanted = |purpose: Purpose| purpose == Purpose::Design || self.target == Target::Simulation && purpose == Purpose::SimModel;
        let mut groups: BTreeMap<&String, Vec<(&PluginPlan, Output)>> = BTreeMap::new();
        for ((project, plan), output) in self.projects.iter().zip(&self.plans).zip(&self.outputs) {
            let mut output = output.clone();
            output.sources.retain(|s| wanted(s.purpose));
            groups.entry(project).or_default().push((plan, output));
        }
        let mut diagnostics = Diagnostics::default();
        for (project, group) in groups {
            let group: Vec<(&PluginPlan, &Output)> = group.iter().map(|(plan, output)| (*plan, output)).collect();
            let merged = match merge::sources(&group) {
                Ok(merged) => merged,
                Err((name, error)) => {
                    let instance = self.elaborated.graph.nodes.iter().map(|n| &n.instance).find(|i| i.name.value == name);
                    let who = instance.map_or_else(|| format!("instance `{name}`"), super::elaborate::who);
                    diagnostics.push(error.diagnostic(&who, instance.map(|i| &i.plugin.span)));
                    continue;
                }
            };
            for source in merged {
                let path = format!("{project}/{}", source.path);
                if source.language == Language::Veryl {
                    sources.push(hdl::Source { project: project.clone(), path, text: source.text, library: false });
                } else {
                    foreign.push((PathBuf::from(path), source.text));
                }
            }
        }
        diagnostics.finish(()).map(|((), _)| ())
    }

    /// Veryl's messages, with the instance that the file belongs to.
    fn hdl_errors(&self, messages: &[hdl::HdlMessage]) -> Diagnostics {
        let errors = messages.iter().filter(|m| m.error).map(|m| {
            let place = match (&m.path, m.at) {
                (Some(path), Some((line, column))) => format!("{path}:{line}:{column}: "),
                (Some(path), None) => format!("{path}: "),
                _ => String::new(),
            };
            let owner = m.path.as_deref().and_then(|p| p.split('/').next());
            let index = owner.and_then(|o| self.projects.iter().position(|p| p == o));
            let mut diagnostic = Diagnostic::error("GW0501", format!("{place}{} ({})", m.message, m.code));
            if let Some(index) = index {
                let instance = &self.elaborated.graph.nodes[index].instance;
                diagnostic.message = format!("instance `{}`: {}", instance.name.value, diagnostic.message);
                diagnostic = diagnostic.at(&instance.plugin.span);
            }
            match &m.help {
                Some(help) => diagnostic.help(help.clone()),
                None => diagnostic,
            }
        });
        Diagnostics(errors.collect())
    }

    fn documents(&self, files: &mut BTreeMap<PathBuf, String>) -> Result<(), Diagnostics> {
        let e = &self.elaborated;
        let name = &e.project.name.value;
        if !self.registers.blocks.is_empty() {
            let made = emit::registers::files(name, &self.registers)?;
            files.insert("registers.json".into(), made.json);
            files.insert("registers.h".into(), made.header);
            files.insert("registers.svd".into(), made.svd);
            files.insert("registers.md".into(), made.markdown);
        }
        files.insert("plan.json".into(), pretty(&self.plan_json()));
        files.insert("diagram.svg".into(), crate::report::diagram::svg(&e.graph, &e.plan, &e.kinds));
        Ok(())
    }

    /// The constraint file; for a board without an open flow the vendor's script as well. Where the board has hard MACs or
    /// memory controllers, the level above the design that holds them: its module is returned, and its files are added to `ordered`.
    fn constraints(&self, files: &mut BTreeMap<PathBuf, String>, ordered: &mut Vec<PathBuf>) -> Result<Option<String>, Diagnostics> {
        let e = &self.elaborated;
        if e.board.is_simulation_only() {
            return Ok(None);
        }
        let name = top::ident(&e.project.name.value);
        let used: Vec<_> = self
            .resources
            .iter()
            .filter_map(|u| {
                let link = e
                    .plan
                    .links
                    .iter()
                    .find(|l| matches!(&e.graph.edges[l.edge].provider, End::Board { resource } if *resource == u.name))?;
                Some((e.board.resource(&u.name)?, link.provider.width))
            })
            .collect();
        let timing: Vec<_> = self.outputs.iter().flat_map(|o| o.timing.iter().cloned()).collect();
        let mut all = emit::clocks::constraints(&name, &e.board, &e.plan, &self.clocks, e.reset.as_ref(), &used, &timing);
        if e.board.flow.open {
            files.insert(format!("{name}.lpf").into(), all.lpf(&e.board)?);
            return Ok(None);
        }
        let design_top = format!("top_{name}");
        let mut vendor_top = design_top.clone();
        let mut sources: Vec<String> = ordered.iter().map(|p| p.display().to_string()).collect();
        let mut level_module = None;
        if !all.vendor_ip.is_empty() {
            let level = emit::vendor::board_level(&e.board, &name, &design_top, &all.ports, &all.vendor_ip)?;
            let oscillator = ClockAt::Port(level.init_clock.name.value.clone());
            if !all.clocks.iter().any(|c| c.at == oscillator) {
                all.clocks.push(ClockLine { at: oscillator, hz: level.init_clock.hz, comment: "start-up of the vendor's IP".to_owned() });
            }
            all.ports = level.ports;
            let path = PathBuf::from(format!("hdl/{}.sv", level.module));
            let (shims, black_boxes) = self.vendor_files(&all.vendor_ip)?;
            for (shim, text) in shims {
                if !files.contains_key(&shim) {
                    files.insert(shim.clone(), text);
                    sources.push(shim.display().to_string());
                    ordered.push(shim);
                }
            }
            sources.push(path.display().to_string());
            // Vivado takes the user's wrappers in place of the black boxes; lint and Yosys read these.
            for (black_box, text) in black_boxes {
                files.insert(black_box.clone(), text);
                ordered.push(black_box);
            }
            files.insert(path.clone(), level.text);
            ordered.push(path);
            vendor_top = level.module.clone();
            level_module = Some(level.module);
        }
        let xdc = format!("{name}.xdc");
        files.insert(xdc.clone().into(), all.xdc(&e.board)?);
        let project =
            emit::vendor::VivadoProject { design: &name, top: &vendor_top, sources: &sources, xdc: &xdc, vendor_ip: &all.vendor_ip };
        files.insert(format!("{name}.tcl").into(), project.tcl(&e.board)?);
        Ok(level_module)
    }

    /// The stream shims of hard MACs with what they need, and the black boxes of the vendor's IP.
    #[allow(clippy::type_complexity)]
    fn vendor_files(&self, vendor_ip: &[Resource]) -> Result<(Vec<(PathBuf, String)>, Vec<(PathBuf, String)>), Diagnostics> {
        let mut modules: Vec<&str> = vendor_ip.iter().filter_map(emit::vendor::shim).collect();
        modules.sort_unstable();
        modules.dedup();
        let mut shims = Vec::new();
        if !modules.is_empty() {
            let mut sources = self.library();
            sources.retain(|s| s.project != "io" || modules.iter().any(|m| s.path.ends_with(&format!("/{m}.veryl"))));
            let compiled = hdl::compile("io", &sources, &[]).map_err(|m| self.hdl_errors(&m))?;
            shims.extend(compiled.files.into_iter().map(|f| (Path::new("hdl").join(f.path), f.text)));
        }
        let file = |module: &str| PathBuf::from(format!("hdl/black_box/{module}.sv"));
        let macs = modules.iter().map(|m| {
            let text = if *m == "hard_mac_100g" { HARD_MAC_100G_IP } else { HARD_MAC_10G_IP };
            (file(&format!("{m}_ip")), text.to_owned())
        });
        let mut boxes: Vec<(PathBuf, String)> = macs.collect();
        for memory in vendor_ip.iter().filter(|r| emit::controller::is_memory(r)) {
            let (module, text) = emit::controller::black_box(memory)?;
            boxes.push((file(&module), text));
        }
        Ok((shims, boxes))
    }

    /// The plan as data: for `report.json` and `graph --format json`.
    pub fn plan_json(&self) -> Json {
        plan_json(&self.elaborated, &self.registers)
    }
}

/// Pretty JSON with a final line feed.
pub fn pretty(json: &Json) -> String {
    serde_json::to_string_pretty(json).unwrap_or_default() + "\n"
}

/// Instances, links, clocks and choices as data.
pub fn plan_json(e: &Elaborated, registers: &registers::Map) -> Json {
    let clock = |index: Option<usize>| index.and_then(|c| e.plan.clocks.get(c)).map(|c| c.name.clone());
    let links: Vec<Json> = e
        .plan
        .links
        .iter()
        .map(|link| {
            let edge = &e.graph.edges[link.edge];
            json!({
                "client": plan::end_name(&e.graph, &edge.client),
                "provider": plan::end_name(&e.graph, &edge.provider),
                "kind": edge.kind,
                "client-width": link.client.width,
                "provider-width": link.provider.width,
                "client-clock": clock(link.client.clock),
                "provider-clock": clock(link.provider.clock),
                "adapters": link.adapters.iter().map(|a| format!("{a:?}")).collect::<Vec<_>>(),
                "priority": link.priority,
            })
        })
        .collect();
    let instances: Vec<Json> = e
        .graph
        .nodes
        .iter()
        .map(|n| {
            let block = registers.block(&n.instance.name.value);
            json!({ "name": n.instance.name.value, "plugin": n.about.name, "version": n.about.version, "summary": n.about.summary,
                "register-base": block.map(|b| b.base), "params": n.params })
        })
        .collect();
    let clocks: Vec<Json> = e
        .plan
        .clocks
        .iter()
        .map(|c| json!({ "name": c.name, "hz": c.hz, "phase-mdeg": c.phase_mdeg, "from": c.resource.as_deref().unwrap_or("pll") }))
        .collect();
    let choices: &[Choice] = &e.plan.choices;
    json!({
        "project": e.project.name.value, "board": e.board.name.value, "gbps": e.plan.gbps_milli as f64 / 1000.0,
        "instances": instances, "links": links, "clocks": clocks, "choices": choices,
    })
}

/// `<name>_<version>` with `_` for what an identifier cannot have.
pub fn veryl_project(name: &str, version: &str) -> String {
    format!("{name}_{version}").replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

fn registers_of(e: &Elaborated) -> Result<(registers::Map, top::RegisterBus), Diagnostics> {
    let providers = plan::register_ports(&e.graph, &e.kinds, Role::Provider);
    let masters = plan::register_ports(&e.graph, &e.kinds, Role::Client);
    let mut diagnostics = Diagnostics::default();
    let mut tables = Vec::new();
    let mut owners = Vec::new();
    for (node, port) in providers {
        let n = &e.graph.nodes[node];
        let name = n.instance.name.value.clone();
        match registers::Table::from_tables(&name, &n.shape.tables) {
            Ok(Some(table)) => {
                owners.push((name.clone(), node, port));
                tables.push((name, table));
            }
            Ok(None) => diagnostics.push(
                Diagnostic::error(
                    "GW0414",
                    format!("instance `{name}`: port `{port}` has registers, but plugin `{}` gives no table of them", n.about.name),
                )
                .at(&n.instance.plugin.span),
            ),
            Err(found) => diagnostics.extend(found.into_iter().map(|d| super::elaborate::in_instance(d, &n.instance))),
        }
    }
    let ((), _) = diagnostics.finish(())?;
    let lock = e.project.dir.join(REGISTERS_LOCK);
    let map = registers::allocate(&tables, Some(&lock))?;
    let mut bus = top::RegisterBus { blocks: Vec::new(), masters };
    for block in &map.blocks {
        if let Some((_, node, port)) = owners.iter().find(|(name, _, _)| *name == block.instance) {
            bus.blocks.push((*node, port.clone(), block.base, block.size));
        }
    }
    Ok((map, bus))
}

/// The register ports of a node that the interconnect reaches, as links to it.
fn register_links(e: &Elaborated, bus: &top::RegisterBus, node: usize) -> Vec<Wired> {
    if bus.masters.is_empty() || bus.blocks.is_empty() {
        return Vec::new();
    }
    let blocks = bus.blocks.iter().map(|(n, port, _, _)| (*n, port));
    let masters = bus.masters.iter().map(|(n, port)| (*n, port));
    let own = blocks.chain(masters).filter(|(n, _)| *n == node).filter_map(|(_, name)| e.graph.nodes[node].port(name));
    own.map(|port| Wired {
        port: port.name.clone(),
        index: 0,
        width: 32,
        domain: port.domain.clone(),
        hz: e.plan.domains.get(&(node, port.domain.clone())).map_or(0, |c| e.plan.clocks[*c].hz),
        peer: Peer { port: port.name.clone(), index: 0, instance: "registers".to_owned(), props: BTreeMap::new() },
    })
    .collect()
}

/// The board resources that links reach, in the order of the board file.
fn resources(graph: &Graph, e: &Elaborated) -> Vec<top::ResourceUse> {
    let mut used = Vec::new();
    for resource in &e.board.resources {
        let link =
            e.plan.links.iter().find(|l| matches!(&graph.edges[l.edge].provider, End::Board { resource: r } if *r == resource.name.value));
        let Some(link) = link else { continue };
        used.push(emit::clocks::resource_use(resource, &e.kinds, link.provider.width));
    }
    used
}
