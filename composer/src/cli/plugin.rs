//! `gateweave plugin`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value as Json, json};

use super::{CommandResult, Outcome};
use crate::cache::Cache;
use crate::diag::{Diagnostic, Diagnostics};
use crate::manifest::board::{self, Board};
use crate::pipeline::elaborate::board_dirs;
use crate::plugin::{Host, Limits, PluginError, commands, hdl_check, locate};
use crate::tools::{Origin, Talk, Tools};

/// Subcommands.
#[derive(Subcommand, Debug)]
pub enum PluginCommand {
    /// List the plugins of a folder.
    List {
        /// Folders with plugins.
        #[arg(default_value = "plugins")]
        folders: Vec<PathBuf>,
    },
    /// Show a plugin's parameters, ports and registers.
    Info {
        /// Crate or component.
        path: PathBuf,
        /// Board that it is asked about.
        #[arg(long, default_value = "colorlight-i5")]
        board: String,
    },
    /// Make the crate of a new plugin.
    New {
        /// Name.
        name: String,
        /// Folder to make it in.
        #[arg(long, default_value = "plugins")]
        dir: PathBuf,
        /// Folder of `gateweave-sdk`.
        #[arg(long, default_value = "plugins/sdk")]
        sdk: PathBuf,
    },
    /// Build plugins.
    Build {
        /// Crates, or folders of crates.
        #[arg(default_value = "plugins")]
        paths: Vec<PathBuf>,
    },
    /// Run the conformance kit over plugins.
    Check {
        /// Crates, or folders of crates.
        #[arg(default_value = "plugins")]
        paths: Vec<PathBuf>,
        /// Board that they are asked about.
        #[arg(long, default_value = "colorlight-i5")]
        board: String,
        /// Parameters, JSON, for what has no default.
        #[arg(long, default_value = "{}", value_name = "JSON")]
        params: String,
    },
    /// Run the benches of a plugin, or of the composer's cells.
    Test {
        /// Folder with `hdl` and `tests`.
        path: PathBuf,
        /// The composer's cells.
        #[arg(long, default_value = "composer/hdl")]
        library: PathBuf,
        /// Only benches whose name contains this.
        #[arg(long)]
        bench: Option<String>,
        /// Replay a seed.
        #[arg(long)]
        seed: Option<u64>,
    },
}

fn progress(line: &str) {
    eprintln!("{line}");
}

fn all(who: &str, errors: &[PluginError]) -> Diagnostics {
    Diagnostics(errors.iter().map(|e| e.diagnostic(who, None)).collect())
}

fn board_facts(cache: &Cache, name: &str) -> Result<Json, Diagnostics> {
    let dirs = board_dirs(None, cache)?;
    let path = board::find(&dirs, name, None)?;
    let (board, _) = Board::load_in(&path, &dirs)?;
    Ok(board.facts_json())
}

/// Runs a subcommand.
pub fn run(command: &PluginCommand) -> CommandResult {
    let cache = Cache::open()?;
    let host = Host::new(cache.root(), Limits::default());
    match command {
        PluginCommand::List { folders } => {
            let listed = commands::list(&host, folders, cache.root()).map_err(|e| all("plugin folder", &e))?;
            let mut text = String::new();
            for line in &listed {
                let version = line.version.as_deref().unwrap_or("-");
                let note = line.summary.as_deref().or(line.problem.as_deref()).unwrap_or("not built");
                let _ = writeln!(text, "{:<16} {version:<8} {note}", line.name);
            }
            Ok(Outcome::new(json!(listed), text))
        }
        PluginCommand::Info { path, board } => {
            let facts = board_facts(&cache, board)?;
            let found = locate::at(path, cache.root()).map_err(|e| all("plugin", &e))?;
            let mut text = String::new();
            let mut data = Vec::new();
            for plugin in &found {
                let info = commands::info(&host, plugin, &facts, &progress).map_err(|e| all(&plugin.name, &[e]))?;
                describe(&mut text, &info);
                data.push(json!(info));
            }
            Ok(Outcome::new(json!(data), text))
        }
        PluginCommand::New { name, dir, sdk } => {
            let made = commands::new(name, dir, sdk).map_err(|e| all("plugin new", &[e]))?;
            let text: String = made.iter().map(|p| format!("made {}\n", p.display())).collect();
            Ok(Outcome::new(json!({ "files": made }), text))
        }
        PluginCommand::Build { paths } => {
            let built = commands::build(paths, cache.root(), &progress).map_err(|errors| {
                let list = errors.iter().map(|(name, e)| e.diagnostic(name.as_deref().unwrap_or("plugin build"), None));
                Diagnostics(list.collect())
            })?;
            let mut text = String::new();
            for line in &built {
                let state = if line.rebuilt { "built" } else { "unchanged" };
                let _ = writeln!(text, "{:<16} {:>7} bytes  {state}", line.name, line.bytes);
            }
            Ok(Outcome::new(json!(built), text))
        }
        PluginCommand::Check { paths, board, params } => check(&cache, &host, paths, board, params),
        PluginCommand::Test { path, library, bench, seed } => test(&cache, path, library, bench.as_deref(), *seed),
    }
}

fn describe(text: &mut String, info: &commands::Info) {
    let about = &info.about;
    let _ = writeln!(text, "{} {}: {}", about.name, about.version, about.summary);
    for (name, schema) in about.params_schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        let doc = schema.get("description").and_then(Json::as_str).unwrap_or("");
        let default = schema.get("default").map(|d| format!(" (default {d})")).unwrap_or_default();
        let _ = writeln!(text, "  param {name:<16} {}{default}", doc.replace('\n', " "));
    }
    for port in info.shape.iter().flat_map(|s| &s.ports) {
        let _ = writeln!(text, "  port  {:<16} {:?} of {} in domain {}", port.name, port.role, port.kind, port.domain);
    }
    let registers = info.shape.as_ref().and_then(|s| s.tables.pointer("/registers/list")).and_then(Json::as_array);
    for register in registers.into_iter().flatten() {
        let field = |key: &str| register.get(key).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).unwrap_or_default();
        let _ = writeln!(text, "  reg   {:<16} +{:<4} {}", field("name"), field("offset"), field("doc"));
    }
}

fn check(cache: &Cache, host: &Host, paths: &[PathBuf], board: &str, params: &str) -> CommandResult {
    let facts = board_facts(cache, board)?;
    let given: Json = serde_json::from_str(params)
        .map_err(|e| Diagnostic::error("GW0802", format!("`--params` is not JSON: {e}")).help("such as --params '{\"port\": 7}'"))?;
    let mut text = String::new();
    let mut data = Vec::new();
    let mut diagnostics = Diagnostics::default();
    for path in paths {
        let found = locate::at(path, cache.root()).map_err(|e| all("plugin", &e))?;
        for plugin in &found {
            let findings = commands::check(host, plugin, &given, &facts, &progress).map_err(|e| all(&plugin.name, &[e]))?;
            for finding in &findings {
                let _ = writeln!(text, "{:<6} {}: {}", if finding.problem.is_none() { "ok" } else { "FAILED" }, plugin.name, finding.check);
                if let Some(problem) = &finding.problem {
                    diagnostics.push(Diagnostic::error("GW0326", format!("plugin `{}`: {}: {problem}", plugin.name, finding.check)));
                }
            }
            data.push(json!({ "plugin": plugin.name, "findings": findings }));
        }
    }
    Ok(Outcome::new(json!(data), text).with(diagnostics))
}

fn test(cache: &Cache, path: &Path, library: &Path, bench: Option<&str>, seed: Option<u64>) -> CommandResult {
    let verilator = Tools::new(cache.clone(), Origin::Pinned, Talk::Normal)?.verilator()?;
    let options = crate::bench::Options {
        library: library.to_owned(),
        folder: path.to_owned(),
        cache: cache.root().join("bench"),
        verilator,
        filter: bench.map(str::to_owned),
        seed,
    };
    let outcomes = crate::bench::run(&options, &mut |o| {
        eprintln!("{:<6} {}{}", if o.passed { "ok" } else { "FAILED" }, o.title(), if o.cached { " (unchanged)" } else { "" });
        if !o.passed {
            eprintln!("{}", o.output);
        }
    })?;
    let failed = outcomes.iter().filter(|o| !o.passed).count();
    let text = format!("{} passed, {failed} failed", outcomes.len() - failed);
    let data: Vec<Json> = outcomes.iter().map(|o| json!({ "bench": o.title(), "passed": o.passed, "cached": o.cached })).collect();
    let mut outcome = Outcome::new(json!(data), text);
    if failed > 0 {
        outcome.diagnostics.push(Diagnostic::error("GW0327", format!("{failed} benches of `{}` failed", path.display())));
    }
    Ok(outcome)
}

/// The child process that parses untrusted Veryl.
pub fn hdl_child() -> ExitCode {
    ExitCode::from(hdl_check::child())
}
