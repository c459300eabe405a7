//! `gateweave plugin`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value as Json, json};

use super::{CommandResult, Outcome};
use crate::build::alone::{Job as SizeJob, size};
use crate::build::ecp5::Part;
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
        /// Parameters, JSON, for what has no default; else what `example` in `[package.metadata.gateweave]` says.
        #[arg(long, value_name = "JSON")]
        params: Option<String>,
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
        /// Also the slow sets of values.
        #[arg(long)]
        all: bool,
        /// Seconds after which a bench is taken for hung.
        #[arg(long, default_value_t = 120, value_name = "SECONDS")]
        limit: u64,
    },
    /// Place one module alone, without pins, and say what it takes.
    Size {
        /// Folder with `hdl`: a plugin's crate, or the composer's cells.
        path: PathBuf,
        /// The module, such as `core` or `gw::fifo`; wrappers in `tests` are modules, too.
        #[arg(long, value_name = "MODULE")]
        top: String,
        /// Its parameters, such as 'W=32 DEPTH=16'.
        #[arg(long, value_name = "VALUES", default_value = "")]
        params: String,
        /// Board whose part it is placed on.
        #[arg(long, default_value = "colorlight-i5")]
        board: String,
        /// MHz asked of every clock.
        #[arg(long, default_value_t = 62.5)]
        mhz: f64,
        /// Seed of the placement.
        #[arg(long, default_value_t = 1)]
        seed: u32,
        /// Folder for netlist, placed design and logs; without it they are not kept.
        #[arg(long)]
        out: Option<PathBuf>,
        /// The composer's cells.
        #[arg(long, default_value = "composer/hdl")]
        library: PathBuf,
    },
    /// Format Veryl files in place.
    Format {
        /// Files, or folders with `.veryl` files below.
        #[arg(default_value = "plugins")]
        paths: Vec<PathBuf>,
    },
}

fn progress(line: &str) {
    eprintln!("{line}");
}

fn all(who: &str, errors: &[PluginError]) -> Diagnostics {
    Diagnostics(errors.iter().map(|e| e.diagnostic(who, None)).collect())
}

fn load_board(cache: &Cache, name: &str) -> Result<Board, Diagnostics> {
    let dirs = board_dirs(None, cache)?;
    let path = board::find(&dirs, name, None)?;
    Ok(Board::load_in(&path, &dirs)?.0)
}

fn board_facts(cache: &Cache, name: &str) -> Result<Json, Diagnostics> {
    Ok(load_board(cache, name)?.facts_json())
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
        PluginCommand::Check { paths, board, params } => check(&cache, &host, paths, board, params.as_deref()),
        PluginCommand::Test { path, library, bench, seed, all, limit } => {
            let verilator = Tools::new(cache.clone(), Origin::Pinned, Talk::Normal)?.verilator()?;
            test(&crate::bench::Options {
                library: library.clone(),
                folder: path.clone(),
                cache: cache.root().join("bench"),
                verilator,
                filter: bench.clone(),
                seed: *seed,
                all: *all,
                limit: std::time::Duration::from_secs(*limit),
            })
        }
        PluginCommand::Size { path, top, params, board, mhz, seed, out, library } => {
            let alone = crate::bench::alone(library, path, top, params)?;
            let board = load_board(&cache, board)?;
            if !board.flow.open {
                let help = "name a board with an open flow: `gateweave board list` shows which have one";
                return Err(Diagnostic::error("GW0651", format!("nothing here places for board `{}`", board.name.value)).help(help).into());
            }
            let temp = cache.temp().map_err(|e| cache.trouble(&e))?;
            let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Normal)?;
            let job = SizeJob {
                files: &alone.files,
                top: &alone.module,
                parameters: &alone.parameters,
                part: &Part::of(&board),
                mhz: *mhz,
                seed: *seed,
                out: out.as_deref().unwrap_or(temp.path()),
            };
            let taken = size(&tools, &job)?;
            let clocks = taken.clocks.iter().map(|c| format!(", {} {:.1} MHz", c.name, c.reached_mhz)).collect::<String>();
            let text = format!(
                "{top}: {} TRELLIS_COMB, {} TRELLIS_FF, {} DP16KD, {} MULT18X18D{clocks}\n",
                taken.luts.used, taken.ffs.used, taken.block_rams.used, taken.dsps.used
            );
            Ok(Outcome::new(json!(taken), text))
        }
        PluginCommand::Format { paths } => format(paths),
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

fn check(cache: &Cache, host: &Host, paths: &[PathBuf], board: &str, params: Option<&str>) -> CommandResult {
    let facts = board_facts(cache, board)?;
    let given: Option<Json> = params
        .map(serde_json::from_str)
        .transpose()
        .map_err(|e| Diagnostic::error("GW0802", format!("`--params` is not JSON: {e}")).help("such as --params '{\"port\": 7}'"))?;
    let mut text = String::new();
    let mut data = Vec::new();
    let mut diagnostics = Diagnostics::default();
    for path in paths {
        let found = locate::at(path, cache.root()).map_err(|e| all("plugin", &e))?;
        for plugin in &found {
            let params = given.clone().unwrap_or_else(|| plugin.example());
            let findings = commands::check(host, plugin, &params, &facts, &progress).map_err(|e| all(&plugin.name, &[e]))?;
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

fn veryl_files(path: &Path, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        files.push(path.to_owned());
        return;
    }
    let mut below: Vec<PathBuf> = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
    below.sort();
    for path in below {
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target") || path.extension().is_some_and(|e| e == "veryl") {
            veryl_files(&path, files);
        }
    }
}

fn format(paths: &[PathBuf]) -> CommandResult {
    let mut files = Vec::new();
    for path in paths {
        veryl_files(path, &mut files);
    }
    let mut text = String::new();
    let mut changed = Vec::new();
    let mut diagnostics = Diagnostics::default();
    for path in files {
        let trouble = |e: std::io::Error| Diagnostic::error("GW0332", format!("`{}`: {e}", path.display()));
        let old = std::fs::read_to_string(&path).map_err(trouble)?;
        match crate::hdl::format(&path.to_string_lossy(), &old) {
            Ok(new) if new == old => {}
            Ok(new) => {
                std::fs::write(&path, new).map_err(trouble)?;
                let _ = writeln!(text, "formatted {}", path.display());
                changed.push(path);
            }
            Err(e) => diagnostics.push(Diagnostic::error("GW0334", format!("`{}` is not Veryl: {}", path.display(), e.message))),
        }
    }
    Ok(Outcome::new(json!({ "changed": changed }), text).with(diagnostics))
}

fn test(options: &crate::bench::Options) -> CommandResult {
    let outcomes = crate::bench::run(options, &mut |o| {
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
        outcome.diagnostics.push(Diagnostic::error("GW0337", format!("{failed} benches of `{}` failed", options.folder.display())));
    }
    Ok(outcome)
}

/// The child process that parses untrusted Veryl.
pub fn hdl_child() -> ExitCode {
    ExitCode::from(hdl_check::child())
}
