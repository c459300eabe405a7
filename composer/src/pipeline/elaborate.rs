//! From the project file to the settled plan: load, describe, connect, elaborate, plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::parallel;
use crate::cache::Cache;
use crate::compose::graph::{self, BoardPort, End, Graph, Node};
use crate::compose::kinds::{self, KindInfo};
use crate::compose::plan::{self, BoardPlan, Plan};
use crate::diag::{Diagnostic, Diagnostics};
use crate::manifest::board::{self, Board, BoardReset, Claims, Resource};
use crate::manifest::project::{Instance, Project};
use crate::plugin::types::PluginDiagnostic;
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
    /// The reset button that is free in this project.
    pub reset: Option<BoardReset>,
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
/// All that is wrong: a part that cannot be read or loaded is left out, and the later stages look at the rest.
pub fn elaborate(dir: &Path, cache: &Cache) -> Result<Elaborated, Diagnostics> {
    let (project, mut problems) = Project::read(dir)?;
    let mut inputs = vec![dir.join(crate::manifest::project::FILE_NAME)];

    let dirs = board_dirs(Some(&project), cache)?;
    let mut absent = project.unread.clone();
    let board = match load_board(&project, &dirs, &mut inputs) {
        Ok((board, found)) => {
            problems.extend(found);
            Some(board)
        }
        Err(found) => {
            problems.extend(found);
            absent.push(graph::BOARD.to_owned());
            None
        }
    };

    let host = Host::new(cache.root(), Limits::default());
    let plugins = match load_plugins(&project, &host, cache, &mut inputs, &mut problems) {
        Ok(plugins) => plugins,
        Err(found) => {
            problems.extend(found);
            vec![None; project.instances.len()]
        }
    };
    let mut kinds = kinds::built_in()?;
    let nodes = describe(&project, board.as_ref(), &plugins, &mut kinds, &mut problems);
    let loaded = |name: &str| nodes.iter().any(|n| n.instance.name.value == name);
    absent.extend(project.instances.iter().map(|i| i.name.value.clone()).filter(|name| !loaded(name)));

    let board_plan = board.as_ref().map(|b| board_plan(&project, b));
    let known: Vec<_> = kinds.values().map(|k| k.kind.clone()).collect();
    let ports = board_plan.as_ref().map_or(&[][..], |b| &b.ports);
    let (mut graph, found) = graph::connect(&project, nodes, &known, ports, &absent);
    problems.extend(found);
    let mut reset = None;
    if let Some(board) = &board {
        reset = check_claims(&graph, board, &mut problems);
    }
    let plugins: Vec<Plugin> = plugins.into_iter().flatten().collect();
    let (Some(board), Some(board_plan), false) = (board, board_plan, problems.has_errors()) else { return Err(problems) };
    let mut warnings = problems;
    refine(&project, &board, &plugins, &mut graph, &board_plan, &mut warnings)?;
    let plan = plan::plan(&project, &graph, &kinds, &board_plan)?;
    Ok(Elaborated { project, board, kinds, graph, plan, board_plan, plugins, host, inputs, warnings, reset })
}

fn load_board(project: &Project, dirs: &[PathBuf], inputs: &mut Vec<PathBuf>) -> Result<(Board, Diagnostics), Diagnostics> {
    let path = board::find(dirs, &project.board, Some(&project.board.span))?;
    inputs.push(path.clone());
    Board::load_in(&path, dirs)
}

/// The plugin of each instance, `None` where it cannot be loaded.
fn load_plugins(
    project: &Project,
    host: &Host,
    cache: &Cache,
    inputs: &mut Vec<PathBuf>,
    problems: &mut Diagnostics,
) -> Result<Vec<Option<Plugin>>, Diagnostics> {
    let dirs: Vec<PathBuf> = project.plugin_dirs.iter().map(|d| d.value.clone()).collect();
    let mut lost = Diagnostics::default();
    for folder in project.plugin_dirs.iter().filter(|d| !d.value.is_dir()) {
        let written = folder.value.strip_prefix(&project.dir).unwrap_or(&folder.value);
        let message = format!("there is no folder `{}`", written.display());
        lost.push(Diagnostic::error("GW0101", message).at(&folder.span).help("paths are relative to the folder of project.toml"));
    }
    let ((), _) = lost.finish(())?;
    let crates = locate::locate(&dirs, cache.root()).map_err(|list| {
        Diagnostics(list.iter().map(|e| e.diagnostic("project.plugins", project.plugin_dirs.first().map(|d| &d.span))).collect())
    })?;
    let mut chosen = Vec::new();
    for instance in &project.instances {
        let of_name: Vec<_> = crates.iter().filter(|c| c.name == instance.plugin.value).collect();
        if of_name.is_empty() {
            problems.push(missing_plugin(project, instance, crates.iter().map(|c| c.name.as_str())));
            chosen.push(None);
            continue;
        }
        match choose_version(instance, &of_name, host) {
            Ok(found) => chosen.push(Some(found)),
            Err(found) => {
                problems.push(found);
                chosen.push(None);
            }
        }
    }
    let failed = build_stale(project, &chosen, problems);
    // Each plugin once, however many instances it has.
    let mut wanted: Vec<&locate::PluginCrate> = Vec::new();
    for found in chosen.iter().flatten() {
        let same = |path: &Path| path == found.path();
        if !failed.iter().any(|path| same(path)) && !wanted.iter().any(|w| same(w.path())) {
            wanted.push(found);
        }
    }
    let answers = parallel::map(&wanted, |_, found| found.component(&|line| eprintln!("{line}")).and_then(|bytes| host.load(bytes)));
    let mut loaded: BTreeMap<&Path, Option<Plugin>> = BTreeMap::new();
    for (found, answer) in wanted.iter().zip(answers) {
        let plugin = match answer {
            Ok(plugin) => {
                inputs.extend(found.sources().unwrap_or_else(|_| vec![found.path().to_owned()]));
                Some(plugin)
            }
            Err(error) => {
                let user = chosen.iter().position(|c| c.is_some_and(|c| c.path() == found.path()));
                let user = user.and_then(|i| project.instances.get(i));
                let who = user.map_or_else(|| format!("plugin `{}`", found.name), who);
                problems.push(error.diagnostic(&who, user.map(|i| &i.plugin.span)));
                None
            }
        };
        loaded.insert(found.path(), plugin);
    }
    Ok(chosen.iter().map(|found| loaded.get(found.as_ref()?.path()).cloned().flatten()).collect())
}

/// The version that an instance asks for, else the highest. A component without a crate says its version itself.
fn choose_version<'a>(instance: &Instance, found: &[&'a locate::PluginCrate], host: &Host) -> Result<&'a locate::PluginCrate, Diagnostic> {
    let name = &instance.plugin.value;
    if let ([only], None) = (found, &instance.version) {
        return Ok(only);
    }
    let mut versions: BTreeMap<locate::Version, &locate::PluginCrate> = BTreeMap::new();
    for plugin in found {
        let version = match &plugin.version {
            Some(version) => version.clone(),
            None => {
                let about = plugin.component(&|_| {}).and_then(|bytes| host.load(bytes));
                about.map_err(|e| e.diagnostic(&who(instance), Some(&instance.plugin.span)))?.info().version.clone()
            }
        };
        let Some(version) = locate::version(&version) else {
            let message = format!("{}: `{version}` of `{}` is not a version", who(instance), plugin.path().display());
            return Err(Diagnostic::error("GW0324", message).at(&instance.plugin.span));
        };
        if let Some(twin) = versions.insert(version.clone(), plugin) {
            let error = locate::twins(name, &version.to_string(), twin.path(), plugin.path());
            return Err(error.diagnostic(&who(instance), Some(&instance.plugin.span)));
        }
    }
    let Some(asked) = &instance.version else {
        let highest = versions.into_values().next_back();
        return highest.ok_or_else(|| missing_version(instance, name, "none", Vec::new()));
    };
    let all: Vec<String> = versions.keys().map(ToString::to_string).collect();
    let found = locate::version(&asked.value).and_then(|v| versions.get(&v).copied());
    found.ok_or_else(|| missing_version(instance, name, &asked.value, all))
}

fn missing_version(instance: &Instance, name: &str, asked: &str, all: Vec<String>) -> Diagnostic {
    let span = instance.version.as_ref().map_or(&instance.plugin.span, |v| &v.span);
    Diagnostic::error("GW0113", format!("there is no version {asked} of plugin `{name}`"))
        .at(span)
        .help(format!("versions at hand: {}", all.join(", ")))
}

fn missing_plugin<'a>(project: &Project, instance: &Instance, names: impl Iterator<Item = &'a str>) -> Diagnostic {
    let diagnostic = Diagnostic::error("GW0112", format!("there is no plugin `{}`", instance.plugin.value)).at(&instance.plugin.span);
    if project.plugin_dirs.is_empty() {
        return diagnostic.help("`project.plugins` names no folder to look in");
    }
    diagnostic.nearest(&instance.plugin, names)
}

/// Builds the crates that the project uses and whose sources changed, all in one go. Returns the folders of those that
/// do not build.
fn build_stale(project: &Project, chosen: &[Option<&locate::PluginCrate>], problems: &mut Diagnostics) -> Vec<PathBuf> {
    let mut wanted: Vec<locate::PluginCrate> = Vec::new();
    for plugin in chosen.iter().flatten() {
        if !wanted.iter().any(|w| w.path() == plugin.path()) {
            wanted.push((*plugin).clone());
        }
    }
    let Err(errors) = locate::build_stale(&wanted, &|line| eprintln!("{line}")) else { return Vec::new() };
    let mut failed = Vec::new();
    for (plugin, error) in errors {
        let user = chosen.iter().position(|c| c.is_some_and(|c| c.path() == plugin.path())).and_then(|i| project.instances.get(i));
        let who = user.map_or_else(|| format!("plugin `{}`", plugin.name), who);
        problems.push(error.diagnostic(&who, user.map(|i| &i.plugin.span)));
        failed.push(plugin.path().to_owned());
    }
    failed
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

/// The instances whose plugin could be asked. Without a board only the parameters are checked.
fn describe(
    project: &Project,
    board: Option<&Board>,
    plugins: &[Option<Plugin>],
    kinds: &mut BTreeMap<String, KindInfo>,
    diagnostics: &mut Diagnostics,
) -> Vec<Node> {
    let facts = board.map(|b| board_json(project, b));
    let instances: Vec<_> = project.instances.iter().zip(plugins).filter_map(|(i, p)| Some((i, p.as_ref()?))).collect();
    let answers = parallel::map(&instances, |_, (instance, plugin)| -> Result<_, Vec<PluginDiagnostic>> {
        let params = crate::plugin::params::check(&plugin.info().params_schema, &instance.params)?;
        Ok(facts.as_ref().map(|facts| plugin.describe(&params, facts).map(|shape| (params, shape))))
    });
    let mut nodes = Vec::new();
    for ((instance, plugin), answer) in instances.into_iter().zip(answers) {
        let about = plugin.info().clone();
        if let Err(error) = kinds::add(kinds, &about.name, &about.kinds) {
            diagnostics.push(in_instance(error, instance));
        }
        match answer {
            Err(found) => {
                let place = |d: &PluginDiagnostic| Some(project.param_span(instance, &d.pointer));
                diagnostics.extend(found.iter().map(|d| error::diagnostic(d, &who(instance), place(d))));
            }
            Ok(None) => {}
            Ok(Some(Ok((params, shape)))) => nodes.push(Node { instance: instance.clone(), about, params, shape }),
            Ok(Some(Err(found))) => diagnostics.extend(failure(project, instance, &found)),
        }
    }
    nodes
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
    let answers = parallel::map(plugins, |index, plugin| {
        let node = &graph.nodes[index];
        plugin.elaborate(&node.params, &facts, &graph.peers(index, &board_plan.ports), &node.shape)
    });
    for (node, answer) in graph.nodes.iter_mut().zip(answers) {
        match answer {
            Ok(shape) => node.shape = shape,
            Err(found) => diagnostics.extend(failure(project, &node.instance, &found)),
        }
    }
    let ((), found) = diagnostics.finish(())?;
    warnings.extend(found);
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
            clock_hz: r.own_clock_hz().or(if simulated { None } else { mbps.and_then(|m| r.clock_hz(m)) }),
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

/// Two resources in use that claim one pin. Returns the reset button whose pin is free.
fn check_claims(graph: &Graph, board: &Board, diagnostics: &mut Diagnostics) -> Option<BoardReset> {
    let mut claims = Claims::new();
    // The default clock is always in use.
    if let Some(clock) = board.default_clock() {
        diagnostics.extend(claims.clock(clock, &clock.name.span).err().into_iter().flatten());
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
    board.free_reset(&claims).cloned()
}
