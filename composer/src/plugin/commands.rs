//! What `gateweave plugin` does, as functions with data results.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value as Json, json};
use tera::{Context, Tera};

use super::error::{Failure, PluginError};
use super::host::{Host, Plugin};
use super::locate::{self, Origin, PluginCrate};
use super::types::{About, Peer, Plan, PluginSource, Props, Shape, Target, Wired};
use super::{hdl_check, params, validate};

/// A line of `plugin list`.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// Name.
    pub name: String,
    /// Crate folder or file.
    pub path: PathBuf,
    /// `crate` or `component`.
    pub origin: &'static str,
    /// Whether its component is built from the sources as they are.
    pub built: bool,
    /// What `info` said; only for built plugins.
    pub version: Option<String>,
    /// One line.
    pub summary: Option<String>,
    /// Why there is no version.
    pub problem: Option<String>,
}

/// Lists the plugins of `folders`. Builds nothing.
///
/// # Errors
/// As [`locate::locate`].
pub fn list(host: &Host, folders: &[PathBuf], cache: &Path) -> Result<Vec<Listed>, Vec<PluginError>> {
    let found = locate::locate(folders, cache)?;
    Ok(found.iter().map(|plugin| listed(host, plugin)).collect())
}

fn listed(host: &Host, plugin: &PluginCrate) -> Listed {
    let built = plugin.built().map(|path| path.is_none_or(|p| p.is_file()));
    let about = match &built {
        Ok(true) => plugin.component(&|_| {}).and_then(|bytes| host.load(bytes)).map(|p| Some(p.info().clone())),
        Ok(false) => Ok(None),
        Err(error) => Err(error.clone()),
    };
    let problem = about.as_ref().err().map(|e| format!("{}: {}", e.code, e.message));
    let about = about.ok().flatten();
    Listed {
        name: plugin.name.clone(),
        path: plugin.path().to_owned(),
        origin: if matches!(plugin.origin, Origin::Crate(_)) { "crate" } else { "component" },
        built: built.unwrap_or(false),
        version: about.as_ref().map(|a| a.version.clone()),
        summary: about.map(|a| a.summary),
        problem,
    }
}

/// A line of `plugin build`.
#[derive(Clone, Debug, Serialize)]
pub struct Built {
    /// Name.
    pub name: String,
    /// Crate folder or file.
    pub path: PathBuf,
    /// The component.
    pub component: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it was built now; `false` where the kept one was made from the same sources.
    pub rebuilt: bool,
}

/// Builds the plugins at `paths`: crates, or folders of crates. Those of one workspace are built in one go.
///
/// # Errors
/// As [`locate::at`] and [`locate::build_stale`], each with the plugin's name where there is one.
pub fn build(paths: &[PathBuf], cache: &Path, progress: &dyn Fn(&str)) -> Result<Vec<Built>, Vec<(Option<String>, PluginError)>> {
    let mut plugins = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        match locate::at(path, cache) {
            Ok(found) => plugins.extend(found),
            Err(list) => errors.extend(list.into_iter().map(|e| (None, e))),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let kept: Vec<bool> = plugins.iter().map(|p| matches!(p.built(), Ok(Some(path)) if path.is_file())).collect();
    locate::build_stale(&plugins, progress)
        .map_err(|list| list.into_iter().map(|(plugin, e)| (Some(plugin.name), e)).collect::<Vec<_>>())?;
    let mut results = Vec::new();
    for (plugin, kept) in plugins.iter().zip(kept) {
        let built = plugin.built().map_err(|e| vec![(Some(plugin.name.clone()), e)])?;
        let rebuilt = built.is_some() && !kept;
        let component = built.unwrap_or_else(|| plugin.path().to_owned());
        let bytes = std::fs::metadata(&component).map_or(0, |m| m.len());
        results.push(Built { name: plugin.name.clone(), path: plugin.path().to_owned(), component, bytes, rebuilt });
    }
    Ok(results)
}

/// What `plugin info` shows.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// What `info` said.
    pub about: About,
    /// SHA-256 of the component.
    pub component: String,
    /// Size of the component in bytes.
    pub bytes: usize,
    /// The shape with default parameters, where there are defaults for all.
    pub shape: Option<Shape>,
}

/// Loads a plugin, building it first where that is needed.
///
/// # Errors
/// What building or loading says.
pub fn info(host: &Host, plugin: &PluginCrate, board: &Json, progress: &dyn Fn(&str)) -> Result<Info, PluginError> {
    let bytes = plugin.component(progress)?;
    let size = bytes.len();
    let loaded = host.load(bytes)?;
    let shape = params::check(&loaded.info().params_schema, &json!({})).ok().and_then(|p| loaded.describe(&p, board).ok());
    Ok(Info { about: loaded.info().clone(), component: loaded.hash().to_owned(), bytes: size, shape })
}

/// One result of `plugin check`.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was checked.
    pub check: String,
    /// Why it failed; `None` where it passed.
    pub problem: Option<String>,
}

/// The conformance kit: everything that can be checked of a plugin alone.
///
/// The component has no imports and a known version, its name is the crate's, its schema is understood and has defaults (or
/// `params` gives what is missing), and for the first, and every other, width of its ports: the questions are answered
/// twice with the same answer, the HDL parses, and Veryl's formatter leaves it alone.
///
/// # Errors
/// What building says; everything else is a finding.
pub fn check(host: &Host, plugin: &PluginCrate, given: &Json, board: &Json, progress: &dyn Fn(&str)) -> Result<Vec<Finding>, PluginError> {
    let bytes: std::sync::Arc<[u8]> = plugin.component(progress)?.into();
    let mut findings = Findings(Vec::new());
    // Two hosts without a common store, so that the second answer is one.
    let scratch = [tempfile::tempdir(), tempfile::tempdir()];
    let [Ok(first), Ok(second)] = scratch else { return Err(PluginError::new("GW0321", "there is no room for temporary files")) };
    let hosts = [&first, &second].map(|folder| Host::with_helper(folder.path(), *host.limits(), hdl_check::helper()));
    let loaded = hosts.map(|h| h.load(bytes.clone()));
    let [Ok(a), Ok(b)] = loaded else {
        let problem = loaded.into_iter().find_map(Result::err).map(|e| format!("{}: {}", e.code, e.message));
        findings.add("component: no imports, known contract", problem);
        return Ok(findings.0);
    };
    findings.add("component: no imports, known contract", None);
    let name = &a.info().name;
    findings
        .add("name is that of the crate", (*name != plugin.name).then(|| format!("`info` says `{name}`, the crate is `{}`", plugin.name)));
    findings.add("`info` twice the same", (a.info() != b.info()).then(|| "the answers differ".into()));
    match params::check(&a.info().params_schema, given) {
        Err(list) => findings.add("parameters", list.first().map(|d| format!("{} (give parameters that are complete)", d.message))),
        Ok(params) => {
            findings.add("parameters", None);
            shapes(&a, &b, &params, board, &mut findings);
        }
    }
    Ok(findings.0)
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, check: impl Into<String>, problem: Option<String>) {
        self.0.push(Finding { check: check.into(), problem });
    }

    /// Adds the comparison of two answers and returns the first if both are good and equal.
    fn twice<T: PartialEq>(&mut self, check: &str, a: Result<T, Failure>, b: Result<T, Failure>) -> Option<T> {
        match (a, b) {
            (Ok(a), Ok(b)) if a == b => {
                self.add(check, None);
                Some(a)
            }
            (Ok(_), Ok(_)) => {
                self.add(check, Some("two calls gave two answers; a plugin must be pure".into()));
                None
            }
            (Err(failure), _) | (_, Err(failure)) => {
                let words = failure.diagnostics("it", |_| None);
                self.add(check, Some(words.iter().map(|d| format!("{}: {}", d.code, d.message)).collect::<Vec<_>>().join("; ")));
                None
            }
        }
    }
}

fn shapes(a: &Plugin, b: &Plugin, params: &Json, board: &Json, findings: &mut Findings) {
    let Some(described) = findings.twice("describe", a.describe(params, board), b.describe(params, board)) else { return };
    let peers = links(&described, None).into_iter().map(|l| l.peer).collect::<Vec<_>>();
    let elaborated = (a.elaborate(params, board, &peers, &described), b.elaborate(params, board, &peers, &described));
    let Some(shape) = findings.twice("elaborate", elaborated.0, elaborated.1) else { return };
    let mut widths: Vec<u32> = shape.ports.iter().flat_map(|p| p.widths.iter().copied()).collect();
    widths.sort_unstable();
    widths.dedup();
    let mut seen: Vec<PluginSource> = Vec::new();
    for width in std::iter::once(None).chain(widths.into_iter().map(Some)) {
        let plan = plan(a.info(), &shape, params, board, width);
        let title = width.map_or("generate".to_owned(), |w| format!("generate, {w} bits"));
        let Some(output) = findings.twice(&title, a.generate(&plan), b.generate(&plan)) else { continue };
        for source in output.sources {
            if !seen.contains(&source) {
                seen.push(source);
            }
        }
    }
    match hdl_check::verdicts(hdl_check::helper().as_deref(), &seen) {
        Ok(verdicts) => {
            let ragged: Vec<String> = verdicts.into_iter().filter(|v| !v.formatted).map(|v| format!("`{}`", v.path)).collect();
            findings.add("Veryl's formatter", (!ragged.is_empty()).then(|| format!("`veryl fmt` would change {}", ragged.join(", "))));
        }
        Err(error) => findings.add("Veryl's formatter", Some(error.message)),
    }
}

/// What a made-up peer says of itself: the properties that a kind's peers must have.
fn made_up(kind: &str) -> Props {
    match kind {
        "gateweave/ip-udp@1" => Props::from([("udp-ports".to_owned(), json!([7])), ("continuous".to_owned(), json!(true))]),
        _ => Props::new(),
    }
}

/// A link on each port, as many as must be and at least one; of `width` where the port can have it.
fn links(shape: &Shape, width: Option<u32>) -> Vec<Wired> {
    let mut links = Vec::new();
    for port in &shape.ports {
        let width = width.filter(|w| port.widths.contains(w)).or_else(|| port.widths.first().copied()).unwrap_or(0);
        for index in 0..port.links_min.max(1) {
            let peer = Peer { port: port.name.clone(), index, instance: "peer".into(), props: made_up(&port.kind) };
            links.push(Wired { port: port.name.clone(), index, width, domain: port.domain.clone(), hz: 100_000_000, peer });
        }
    }
    links
}

fn plan(about: &About, shape: &Shape, params: &Json, board: &Json, width: Option<u32>) -> Plan {
    Plan {
        instance: "check".into(),
        prefix: format!("{}_check_", about.name.replace('-', "_")),
        params: params.clone(),
        board: board.clone(),
        target: Target::Lint,
        links: links(shape, width),
        register_base: Some(0),
        register_data_bits: 32,
    }
}

/// Files of a new plugin: name in `templates/plugin/`, path in the crate.
const FILES: [(&str, &str, &str); 4] = [
    ("Cargo.toml", "Cargo.toml", include_str!("../../../templates/plugin/Cargo.toml.tera")),
    ("lib.rs", "src/lib.rs", include_str!("../../../templates/plugin/lib.rs.tera")),
    ("module.veryl", "hdl/{module}.veryl", include_str!("../../../templates/plugin/module.veryl.tera")),
    ("README.md", "README.md", include_str!("../../../templates/plugin/README.md.tera")),
];

/// Makes the crate of a new plugin in `dir/NAME`, and returns the files.
///
/// `sdk` is the folder of `gateweave-sdk`; it becomes a path relative to the new crate where that is possible.
///
/// # Errors
/// GW0325 if the name is not one, the folder exists, or it cannot be written.
pub fn new(name: &str, dir: &Path, sdk: &Path) -> Result<Vec<PathBuf>, PluginError> {
    if !validate::kebab(name) || !validate::identifier(&name.replace('-', "_")) {
        return Err(PluginError::new("GW0325", format!("`{name}` cannot be the name of a plugin"))
            .help("lower-case letters, digits and `-`, beginning with a letter; no keyword of Veryl"));
    }
    let folder = dir.join(name);
    if folder.exists() {
        return Err(PluginError::new("GW0325", format!("`{}` exists", folder.display())).help("choose another name or folder"));
    }
    let io = |path: &Path, e: std::io::Error| PluginError::new("GW0325", format!("`{}` cannot be written: {e}", path.display()));
    std::fs::create_dir_all(&folder).map_err(|e| io(&folder, e))?;
    let sdk = sdk.canonicalize().map_err(|e| io(sdk, e))?;
    let here = folder.canonicalize().map_err(|e| io(&folder, e))?;
    let mut context = Context::new();
    context.insert("name", name);
    context.insert("module", &name.replace('-', "_"));
    context.insert("type", &camel(name));
    context.insert("sdk", &relative(&here, &sdk).to_string_lossy());
    // Inside a workspace of plugins the crate is a member; elsewhere it is a workspace of its own.
    context.insert("alone", &super::stamp::workspace_root(&folder).is_none());
    let mut made = Vec::new();
    for (template, path, text) in FILES {
        let path = folder.join(path.replace("{module}", &name.replace('-', "_")));
        let text = Tera::one_off(text, &context, false).map_err(|e| PluginError::new("GW0325", format!("template `{template}`: {e}")))?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| io(parent, e))?;
        }
        std::fs::write(&path, text).map_err(|e| io(&path, e))?;
        made.push(path);
    }
    Ok(made)
}

fn camel(name: &str) -> String {
    let upper = |part: &str| part.chars().take(1).map(|c| c.to_ascii_uppercase()).chain(part.chars().skip(1)).collect::<String>();
    name.split('-').map(upper).collect()
}

/// The way from one folder to another; both absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if common <= 1 {
        return to.to_owned();
    }
    let up = from.components().skip(common).map(|_| std::path::Component::ParentDir);
    up.chain(to.components().skip(common)).collect()
}
