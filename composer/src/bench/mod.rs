//! Benches of single modules: C++ programs beside the HDL, built with Verilator.
//!
//! A folder with `hdl` sources has `tests/*.cpp`; the first comment lines of each say what it tests:
//!
//! ```text
//! // top: gw::crc32
//! // param: W = 8, 32, 64
//! // param: W=512 PIPE=1
//! // slow-param: W=1024
//! ```
//!
//! `top` is a module of the folder's own project (with or without its name) or of `gw`; `tests/*.veryl` belong to the
//! folder's project and hold wrappers with flat ports. Each `param` line is one set of values, or, with commas, one set per
//! value; a bench without any runs once. Sets of `slow-param` lines run only when everything is asked for.
//!  Headers `tests/*.hpp` lie beside the program. A plugin whose benches need another plugin's
//! modules and headers names its folder in `Cargo.toml`: `[package.metadata.gateweave] bench-with = ["../ip-udp"]`. The program sees the values as macros, includes `bench.hpp` and returns 0 when all is well.
//! A bench that passed runs again only when its text, the emitted HDL that it uses or the header has changed.

mod header;
mod run;
mod size;
mod sources;

use std::path::{Path, PathBuf};

use crate::diag::Diagnostic;

pub use header::{Bench, Values};
pub use size::{Alone, alone};
pub use sources::{Project, project};

/// What to run and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The composer's HDL: `composer/hdl` of the source tree.
    pub library: PathBuf,
    /// The folder to test: a plugin's crate, or the library itself.
    pub folder: PathBuf,
    /// Builds and results.
    pub cache: PathBuf,
    /// The Verilator to use.
    pub verilator: crate::tools::Verilator,
    /// Only benches whose file name contains this.
    pub filter: Option<String>,
    /// Replay this seed; runs even what has passed.
    pub seed: Option<u64>,
    /// Also the slow sets.
    pub all: bool,
    /// A bench that runs longer is taken for hung.
    pub limit: std::time::Duration,
}

/// How one bench ended with one set of values.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// File name without extension.
    pub bench: String,
    /// The values.
    pub values: Values,
    /// It passed.
    pub passed: bool,
    /// It had passed before and nothing has changed.
    pub cached: bool,
    /// What it printed.
    pub output: String,
}

impl Outcome {
    /// `crc32 W=8`.
    pub fn title(&self) -> String {
        let values: String = self.values.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{}{values}", self.bench)
    }
}

/// Runs all benches of a folder; `report` sees each outcome as it comes.
///
/// # Errors
/// If a bench's header is wrong, the HDL does not compile or Verilator cannot be run. A bench that fails is no error.
pub fn run(options: &Options, report: &mut dyn FnMut(&Outcome)) -> Result<Vec<Outcome>, Diagnostic> {
    let project = project(&options.library, &options.folder)?;
    let mut benches = header::find(&options.folder, options.filter.as_deref())?;
    for bench in &mut benches {
        bench.headers.clone_from(&project.headers);
    }
    let compiled = sources::compile(&project)?;
    let mut outcomes = Vec::new();
    for bench in &benches {
        let files = compiled.reachable(&bench.module(&project.name));
        if files.is_empty() {
            return Err(problem("GW0331", format!("`{}` tests `{}`, which is no module here", bench.path.display(), bench.top)));
        }
        for values in bench.values.iter().chain(bench.slow.iter().filter(|_| options.all)) {
            let outcome = run::one(options, bench, &bench.module(&project.name), values, &files)?;
            report(&outcome);
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}

fn problem(code: &'static str, message: String) -> Diagnostic {
    Diagnostic::error(code, message)
}

fn read(path: &Path) -> Result<String, Diagnostic> {
    std::fs::read_to_string(path).map_err(|e| problem("GW0332", format!("cannot read `{}`: {e}", path.display())))
}
