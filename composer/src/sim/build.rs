//! From a [`SimPlan`] to a simulator program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use super::class;
use super::plan::SimPlan;
use crate::diag::{Diagnostic, nearest};

/// The harness: every file is compiled into every simulator.
const HARNESS: &[(&str, &str)] = &[
    ("config.cpp", include_str!("../../../templates/sim/config.cpp")),
    ("config.h", include_str!("../../../templates/sim/config.h")),
    ("design.h", include_str!("../../../templates/sim/design.h")),
    ("main.cpp", include_str!("../../../templates/sim/main.cpp")),
    ("model.cpp", include_str!("../../../templates/sim/model.cpp")),
    ("model.h", include_str!("../../../templates/sim/model.h")),
    ("model_stream.cpp", include_str!("../../../templates/sim/model_stream.cpp")),
    ("summary.cpp", include_str!("../../../templates/sim/summary.cpp")),
    ("summary.h", include_str!("../../../templates/sim/summary.h")),
    ("types.cpp", include_str!("../../../templates/sim/types.cpp")),
    ("types.h", include_str!("../../../templates/sim/types.h")),
    ("wire.h", include_str!("../../../templates/sim/wire.h")),
    ("wire_pcap.cpp", include_str!("../../../templates/sim/wire_pcap.cpp")),
    ("wire_socket.cpp", include_str!("../../../templates/sim/wire_socket.cpp")),
];
const BINDING: &str = include_str!("../../../templates/sim/binding.cpp.tera");

/// What a simulator can record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nothing; the fastest.
    #[default]
    None,
    /// FST, compressed; needs zlib's headers (the pinned Verilator lz4's, too).
    Fst,
    /// VCD.
    Vcd,
}

impl Trace {
    /// The format that a trace file's extension asks for.
    ///
    /// # Errors
    /// `GW0706` if the extension is neither `fst` nor `vcd`.
    pub fn of_path(path: &Path) -> Result<Trace, Diagnostic> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("fst") => Ok(Trace::Fst),
            Some("vcd") => Ok(Trace::Vcd),
            _ => Err(Diagnostic::error("GW0706", format!("`{}` is no trace that can be written", path.display()))
                .help("name a file that ends in .fst or .vcd")),
        }
    }
}

/// A program that simulates one design.
#[derive(Clone, Debug)]
pub struct Simulator {
    /// The program.
    pub program: PathBuf,
    /// What it simulates.
    pub plan: SimPlan,
    /// What it can record.
    pub trace: Trace,
    /// Whether nothing had to be built.
    pub cached: bool,
}

/// Checks a plan and builds its simulator below `cache`, or finds it there.
///
/// # Errors
/// `GW0701` (Verilator or the compiler did not start), `GW0702` (they refuse the design), `GW0703` to `GW0705` (the plan).
pub fn build(plan: &SimPlan, trace: Trace, cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Simulator, Diagnostic> {
    let binding = binding(plan)?;
    let mut key = Sha256::new();
    let mut add = |text: &str| {
        key.update((text.len() as u64).to_le_bytes());
        key.update(text.as_bytes());
    };
    add(&format!("{trace:?}"));
    add(&version("verilator")?);
    add(&version("c++")?);
    add(&plan.top);
    add(&binding);
    for file in &plan.files {
        add(&file.path);
        add(&file.text);
    }
    for (name, text) in HARNESS {
        add(name);
        add(text);
    }
    let key: String = key.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect();
    let program = cache.join(&key).join("simulation");
    let done = |cached| Simulator { program: program.clone(), plan: plan.clone(), trace, cached };
    if program.exists() {
        return Ok(done(true));
    }
    let io = |e: std::io::Error| Diagnostic::error("GW0701", format!("cannot write below `{}`: {e}", cache.display()));
    std::fs::create_dir_all(cache).map_err(io)?;
    let work = tempfile::Builder::new().prefix("build-").tempdir_in(cache).map_err(io)?;
    let mut names = Vec::new();
    for file in &plan.files {
        let path = work.path().join("sv").join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap_or(work.path())).map_err(io)?;
        std::fs::write(&path, &file.text).map_err(io)?;
        names.push(format!("sv/{}", file.path));
    }
    let binding_file = ("binding.cpp", binding.as_str());
    for (name, text) in HARNESS.iter().chain([&binding_file]) {
        std::fs::write(work.path().join(name), text).map_err(io)?;
        if name.ends_with(".cpp") {
            names.push((*name).to_owned());
        }
    }
    progress("building the simulation");
    let mut command = Command::new("verilator");
    command.args(["--cc", "--exe", "--build", "-O3", "--no-timing", "-Wno-fatal", "-Wno-lint", "--prefix", "Vtop", "-Mdir", "obj"]);
    command.args(["--top-module", &plan.top, "-CFLAGS", "-std=c++17 -O2 -I..", "-MAKEFLAGS", "OPT_FAST=-O2 OPT_SLOW=-O1 OPT_GLOBAL=-O2"]);
    match trace {
        Trace::None => {}
        Trace::Fst => drop(command.arg("--trace-fst")),
        Trace::Vcd => drop(command.arg("--trace")),
    }
    let output = command.args(names).current_dir(work.path()).output();
    let output = output.map_err(|e| Diagnostic::error("GW0701", format!("verilator does not start: {e}")).help("apt install verilator"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let first = text.lines().find(|l| l.contains("rror")).unwrap_or("it gave no reason");
        return Err(Diagnostic::error("GW0702", format!("the simulation of `{}` cannot be built: {first}", plan.top)));
    }
    let folder = cache.join(&key);
    std::fs::create_dir_all(&folder).map_err(io)?;
    let moving = folder.join(format!("simulation.{}", std::process::id()));
    std::fs::copy(work.path().join("obj/Vtop"), &moving).map_err(io)?;
    std::fs::rename(&moving, &program).map_err(io)?;
    Ok(done(false))
}

fn version(tool: &str) -> Result<String, Diagnostic> {
    let output = Command::new(tool).arg("--version").output();
    let output =
        output.map_err(|e| Diagnostic::error("GW0701", format!("{tool} does not start: {e}")).help("apt install verilator g++ make"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

/// The C++ that binds the top's ports, after the plan was checked.
fn binding(plan: &SimPlan) -> Result<String, Diagnostic> {
    let mut ports = BTreeSet::new();
    let mut driven = BTreeSet::new();
    let wrong = |message: String| Err(Diagnostic::error("GW0705", message));
    let mut clocks = 0;
    for clock in &plan.clocks {
        if clock.period_fs < 2000 || clock.phase_fs >= clock.period_fs {
            return wrong(format!("clock `{}` has a period of {} fs and a phase of {} fs", clock.port, clock.period_fs, clock.phase_fs));
        }
        clocks += 1;
        if !driven.insert(clock.port.clone()) {
            return wrong(format!("the port `{}` is driven twice", clock.port));
        }
    }
    for reset in &plan.resets {
        if !driven.insert(reset.port.clone()) {
            return wrong(format!("the port `{}` is driven twice", reset.port));
        }
    }
    for resource in &plan.resources {
        let Some(class) = class::find(&resource.class) else {
            let diagnostic = Diagnostic::error(
                "GW0703",
                format!("resource `{}` has class `{}`, which has no simulation model", resource.name, resource.class),
            );
            return Err(match nearest(&resource.class, class::NAMES.iter().copied()) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help(format!("classes with a model: {}", class::NAMES.join(", "))),
            });
        };
        class.check(resource)?;
        if let Some(port) = class.clock_port(resource) {
            clocks += 1;
            if !driven.insert(port.clone()) {
                return wrong(format!("the port `{port}` is driven twice"));
            }
        }
        ports.extend(class.pins.iter().map(|pin| format!("{}_{pin}", resource.name)));
    }
    if clocks == 0 {
        return wrong("the design has no clock".to_owned());
    }
    ports.extend(driven);
    if let Some(bad) = ports.iter().find(|p| !is_identifier(p)) {
        return wrong(format!("`{bad}` cannot be the name of a port"));
    }
    let mut context = tera::Context::new();
    context.insert("ports", &ports);
    tera::Tera::one_off(BINDING, &context, false).map_err(|e| Diagnostic::error("GW0702", format!("the binding cannot be written: {e}")))
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
