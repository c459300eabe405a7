//! From the project file to the settled plan: load, describe, connect, elaborate, plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::cache::Cache;
use crate::compose::graph::{self, BoardPort, End, Graph, Node};
use crate::compose::kinds::{self, KindInfo};
use crate::compose::plan::{self, BoardPlan, Plan};
use crate::diag::{Diagnostic, Diagnostics};
use crate::manifest::board::{self, Board, Claims, Resource};
use crate::manifest::project::{Instance, Project};
use crate::plugin::types::{PluginDiagnostic, Shape};
use crate::plugin::{Failure, Host, Limits, Plugin, error, locate};

/// A project with everything settled that does not depend on what the HDL is for.
pub struct Elaborated {
    /// The project file.
    pub project: Project,
    /// The board.
    pub board: Board,
    /// Kinds of link.
    pub kinds: BTreeMap<String, KindInfo>,
    /// Instances and links.
    pub graph: Graph,
    /// Clocks, widths, adapters.
    pub plan: Plan,
    /// Resources that the project may link to, as the planner sees them.
    pub board_plan: BoardPlan,
    /// The loaded plugin of each node.
    pub plugins: Vec<Plugin>,
    /// The host of all plugins; it counts the calls.
    pub host: Host,
    /// Every file that was read, for the check whether anything changed.
    pub inputs: Vec<PathBuf>,
    /// Warnings so far.
    pub warnings: Diagnostics,
}

/// Folders that boards are looked up in: the project's, then the ones that came with the program.
///
/// # Errors
/// `GW0111` if the files cannot be laid out in the cache.
pub fn board_dirs(project: Option<&Project>, cache: &Cache) -> Result<Vec<PathBuf>, Diagnostic> {
    let mut dirs: Vec<PathBuf> = project.map(|p| p.board_dirs.iter().map(|d| d.value.clone()).collect()).unwrap_or_default();
    dirs.push(super::shipped_boards(cache)?);
    Ok(dirs)
}

/// Reads, describes, connects, elaborates and plans.
///
/// # Errors
/// All diagnostics of the first stage that finds an error.
pub fn elaborate(dir: &Path, cache: &Cache) -> Result<Elaborated, Diagnostics> {
    let project = Project::load(dir)?;
    let mut warnings = Diagnostics::default();
    let mut inputs = vec![dir.join(crate::manifest::project::FILE_NAME)];

    let dirs = board_dirs(Some(&project), cache)?;
    let path = board::find(&dirs, &project.board, Some(&project.board.span))?;
    inputs.push(path.clone());
    let (board, found) = Board::load_in(&path, &dirs)?;
    warnings.extend(found);

    let host = Host::new(cache.root(), Limits::default());
    let plugins = load_plugins(&project, &host, cache, &mut inputs)?;
    let mut kinds = kinds::built_in()?;
    let nodes = describe(&project, &board, &plugins, &mut kinds, &mut warnings)?;

    let board_plan = board_plan(&project, &board);
    let known: Vec<_> = kinds.values().map(|k| k.kind.clone()).collect();
    let mut graph = graph::connect(&project, nodes, &known, &board_plan.ports)?;
    refine(&project, &board, &plugins, &mut graph, &board_plan, &mut warnings)?;
    check_claims(&graph, &board)?;
    let plan = plan::plan(&project, &graph, &kinds, &board_plan)?;
    Ok(Elaborated { project, board, kinds, graph, plan, board_plan, plugins, host, inputs, warnings })
}

fn load_plugins(project: &Project, host: &Host, cache: &Cache, inputs: &mut Vec<PathBuf>) -> Result<Vec<Plugin>, Diagnostics> {
    let dirs: Vec<PathBuf> = project.plugin_dirs.iter().map(|d| d.value.clone()).collect();
    for folder in &project.plugin_dirs {
        if !folder.value.is_dir() {
            let message = format!("there is no folder `{}`", folder.value.display());
            return Err(Diagnostic::error("GW0101", message).at(&folder.span).help("paths are relative to project.toml").into());
        }
    }
    let crates = locate::locate(&dirs, cache.root())
        .map_err(|list| Diagnostics(list.iter().map(|e| e.diagnostic("project.plugins", project.plugin_dirs.first().map(|d| &d.span))).collect()))?;
    build_stale(project, &crates)?;
    let mut diagnostics = Diagnostics::default();
    let mut plugins = Vec::new();
    let mut loaded: BTreeMap<String, Plugin> = BTreeMap::new();
    for instance in &project.instances {
        let Some(found) = crates.iter().find(|c| c.name == instance.plugin.value) else {
            diagnostics.push(missing_plugin(project, instance, crates.iter().map(|c| c.name.as_str())));
            continue;
        };
        if let Some(plugin) = loaded.get(&found.name) {
            plugins.push(plugin.clone());
            continue;
        }
        match found.component(&|line| eprintln!("{line}")).and_then(|bytes| host.load(bytes)) {
            Ok(plugin) => {
                inputs.push(found.built().ok().flatten().unwrap_or_else(|| found.path().to_owned()));
                loaded.insert(found.name.clone(), plugin.clone());
                plugins.push(plugin);
            }
            Err(error) => diagnostics.push(error.diagnostic(&who(instance), Some(&instance.plugin.span))),
        }
    }
    diagnostics.finish(plugins).map(|(plugins, _)| plugins)
}

fn missing_plugin<'a>(project: &Project, instance: &Instance, names: impl Iterator<Item = &'a str>) -> Diagnostic {
    let diagnostic = Diagnostic::error("GW0112", format!("there is no plugin `{}`", instance.plugin.value)).at(&instance.plugin.span);
    if project.plugin_dirs.is_empty() {
        return diagnostic.help("`project.plugins` names no folder to look in");
    }
    diagnostic.nearest(&instance.plugin, names)
}

/// Builds the crates that the project uses and whose sources changed, all in one go.
fn build_stale(project: &Project, crates: &[locate::PluginCrate]) -> Result<(), Diagnostics> {
    let used = |c: &&locate::PluginCrate| project.instances.iter().any(|i| i.plugin.value == c.name);
    let wanted: Vec<_> = crates.iter().filter(used).cloned().collect();
    let errors = match locate::build_stale(&wanted, &|line| eprintln!("{line}")) {
        Ok(_) => return Ok(()),
        Err(errors) => errors,
    };
    let found = errors.iter().map(|(name, error)| {
        let instance = project.instances.iter().find(|i| i.plugin.value == *name);
        let who = instance.map_or_else(|| format!("plugin `{name}`"), |i| format!("instance `{}` (plugin `{name}`)", i.name.value));
        error.diagnostic(&who, instance.map(|i| &i.plugin.span))
    });
    Err(Diagnostics(found.collect()))
}

/// Gives a host error the place of its instance.
pub fn in_instance(mut error: Diagnostic, instance: &Instance) -> Diagnostic {
    if error.span.is_none() {
        error = error.at(&instance.plugin.span);
    }
    if !error.message.contains(&format!("`{}`", instance.name.value)) {
        error.message = format!("instance `{}`: {}", instance.name.value, error.message);
    }
    error
}

/// How messages name an instance.
pub fn who(instance: &Instance) -> String {
    format!("instance `{}` (plugin `{}`)", instance.name.value, instance.plugin.value)
}

/// A failed answer of an instance's plugin, with places in the project file.
pub fn failure(project: &Project, instance: &Instance, failure: &Failure) -> Diagnostics {
    Diagnostics(failure.diagnostics(&who(instance), |pointer| Some(project.param_span(instance, pointer))))
}

fn describe(
    project: &Project,
    board: &Board,
    plugins: &[Plugin],
    kinds: &mut BTreeMap<String, KindInfo>,
    warnings: &mut Diagnostics,
) -> Result<Vec<Node>, Diagnostics> {
    let facts = board_json(project, board);
    let mut diagnostics = Diagnostics::default();
    let mut nodes = Vec::new();
    for (instance, plugin) in project.instances.iter().zip(plugins) {
        let about = plugin.info().clone();
        if let Err(error) = kinds::add(kinds, &about.name, &about.kinds) {
            diagnostics.push(in_instance(error, instance));
        }
        let params = match crate::plugin::params::check(&about.params_schema, &instance.params) {
            Ok(params) => params,
            Err(found) => {
                let place = |d: &PluginDiagnostic| Some(project.param_span(instance, &d.pointer));
                diagnostics.extend(found.iter().map(|d| error::diagnostic(d, &who(instance), place(d))));
                continue;
            }
        };
        match plugin.describe(&params, &facts) {
            Ok(shape) => nodes.push(Node { instance: instance.clone(), about, params, shape }),
            Err(found) => diagnostics.extend(failure(project, instance, &found)),
        }
    }
    let (nodes, found) = diagnostics.finish(nodes)?;
    warnings.extend(found);
    Ok(nodes)
}

/// `elaborate` of every node: what the peers said is known now.
fn refine(
    project: &Project,
    board: &Board,
    plugins: &[Plugin],
    graph: &mut Graph,
    board_plan: &BoardPlan,
    warnings: &mut Diagnostics,
) -> Result<(), Diagnostics> {
    let facts = board_json(project, board);
    let mut diagnostics = Diagnostics::default();
    let mut shapes: Vec<Option<Shape>> = Vec::new();
    for (index, plugin) in plugins.iter().enumerate() {
        let node = &graph.nodes[index];
        let peers = graph.peers(index, &board_plan.ports);
        shapes.push(None);
        match plugin.elaborate(&node.params, &facts, &peers, &node.shape) {
            Ok(shape) => shapes[index] = Some(shape),
            Err(found) => diagnostics.extend(failure(project, &node.instance, &found)),
        }
    }
    let ((), found) = diagnostics.finish(())?;
    warnings.extend(found);
    for (node, shape) in graph.nodes.iter_mut().zip(shapes) {
        if let Some(shape) = shape {
            node.shape = shape;
        }
    }
    Ok(())
}

/// What plugins are told of the board: its facts, and the link rate where the project sets it.
fn board_json(project: &Project, board: &Board) -> Json {
    let mut facts = board.facts_json();
    if let (Some(rate), Some(object)) = (&project.gbps_milli, facts.as_object_mut()) {
        object.insert("datapath-mbps".to_owned(), json!(rate.value));
    }
    facts
}

fn board_plan(project: &Project, board: &Board) -> BoardPlan {
    let asked = project.gbps_milli.as_ref().map(|g| g.value);
    let simulated = board.is_simulation_only();
    let port = |r: &Resource| {
        let rates = r.rates_mbps();
        let mbps = asked.filter(|a| rates.contains(a)).or(rates.first().copied());
        let mut props: BTreeMap<String, Json> = r.facts.iter().map(|(k, v)| (k.clone(), v.value.clone())).collect();
        props.insert("class".to_owned(), json!(r.class.name));
        props.insert("resource".to_owned(), json!(r.name.value));
        if let Some(mbps) = mbps {
            props.insert("mbps".to_owned(), json!(mbps));
        }
        BoardPort {
            name: r.name.value.clone(),
            kind: r.class.kind.clone(),
            props,
            span: r.name.span.clone(),
            gbps_milli: mbps,
            clock_hz: if simulated { None } else { mbps.and_then(|m| r.clock_hz(m)) },
            width: if simulated { None } else { mbps.and_then(|m| r.data_width(m)) },
        }
    };
    BoardPlan {
        ports: board.resources.iter().map(port).collect(),
        system_clocks: board.system_clocks().to_vec(),
        margin: if simulated { 1.0 } else { MARGIN },
    }
}

/// How many times over a placed design's datapath carries the link: 32 bits at 62.5 MHz carry 1 Gb/s twice; room for
/// frames that arrive faster than nominal (100 ppm) and for arbitration between frames.
const MARGIN: f64 = 1.25;

/// Two resources in use that claim one pin.
fn check_claims(graph: &Graph, board: &Board) -> Result<(), Diagnostics> {
    let mut claims = Claims::new();
    let mut diagnostics = Diagnostics::default();
    // The default clock and the reset button are always in use.
    if let Some(clock) = board.default_clock() {
        diagnostics.extend(claims.clock(clock, &clock.name.span).err().into_iter().flatten());
    }
    if let Some(reset) = board.resets.first() {
        diagnostics.extend(claims.reset(reset, &reset.name.span).err().into_iter().flatten());
    }
    for edge in &graph.edges {
        if let End::Board { resource } = &edge.provider
            && let Some(found) = board.resource(resource)
        {
            if let Err(found) = claims.resource(board, found, &edge.link.to.span) {
                diagnostics.extend(found);
            }
        }
    }
    diagnostics.finish(()).map(|((), _)| ())
}

