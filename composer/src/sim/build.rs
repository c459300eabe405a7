//! From a [`SimPlan`] to a simulator program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::class;
use super::plan::SimPlan;
use crate::cache::{Cache, Key};
use crate::diag::{Diagnostic, nearest};
use crate::hdl::Emitted;
use crate::tools::Tools;
use crate::tools::verilator::Simulation;

/// Compiled harnesses that the cache keeps.
const KEEP: usize = 4;
const FLAGS: &[&str] = &["-std=gnu++17", "-O2", "-pthread"];

/// The harness: every file is compiled into every simulator.
const HARNESS: &[(&str, &str)] = &[
    ("axi4_memory.h", include_str!("../../../templates/sim/axi4_memory.h")),
    ("config.cpp", include_str!("../../../templates/sim/config.cpp")),
    ("config.h", include_str!("../../../templates/sim/config.h")),
    ("design.h", include_str!("../../../templates/sim/design.h")),
    ("main.cpp", include_str!("../../../templates/sim/main.cpp")),
    ("model.cpp", include_str!("../../../templates/sim/model.cpp")),
    ("model.h", include_str!("../../../templates/sim/model.h")),
    ("model_stream.cpp", include_str!("../../../templates/sim/model_stream.cpp")),
    ("line.cpp", include_str!("../../../templates/sim/line.cpp")),
    ("line.h", include_str!("../../../templates/sim/line.h")),
    ("model_axi4.cpp", include_str!("../../../templates/sim/model_axi4.cpp")),
    ("model_gmii.cpp", include_str!("../../../templates/sim/model_gmii.cpp")),
    ("model_rgmii.cpp", include_str!("../../../templates/sim/model_rgmii.cpp")),
    ("model_sdram.cpp", include_str!("../../../templates/sim/model_sdram.cpp")),
    ("sdram_chip.h", include_str!("../../../templates/sim/sdram_chip.h")),
    ("model_uart.cpp", include_str!("../../../templates/sim/model_uart.cpp")),
    ("summary.cpp", include_str!("../../../templates/sim/summary.cpp")),
    ("summary.h", include_str!("../../../templates/sim/summary.h")),
    ("types.cpp", include_str!("../../../templates/sim/types.cpp")),
    ("types.h", include_str!("../../../templates/sim/types.h")),
    ("wire.h", include_str!("../../../templates/sim/wire.h")),
    ("wire_pcap.cpp", include_str!("../../../templates/sim/wire_pcap.cpp")),
    ("wire_step.cpp", include_str!("../../../templates/sim/wire_step.cpp")),
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
    /// Seconds that building took, now or when it was done.
    pub seconds: f64,
}

/// Checks a plan and builds its simulator, or finds it in the cache of `tools`.
///
/// # Errors
/// `GW0702` (the harness does not compile), `GW0703` and `GW0705` (the plan), those of [`crate::tools::Verilator::build`].
pub fn build(plan: &SimPlan, trace: Trace, tools: &Tools) -> Result<Simulator, Diagnostic> {
    let binding = [Emitted { path: "binding.cpp".into(), text: binding(plan)? }, file(HARNESS, "design.h"), file(HARNESS, "types.h")];
    let verilator = tools.verilator()?;
    let sources: Vec<Emitted> = plan.files.iter().map(|f| Emitted { path: f.path.clone(), text: f.text.clone() }).collect();
    let mut arguments = vec!["-O3".to_owned(), "-Wno-lint".to_owned()];
    if trace == Trace::Vcd {
        arguments.push("--trace".to_owned());
    }
    let simulation = Simulation {
        top: &plan.top,
        sources: &sources,
        harness: &binding,
        arguments: &arguments,
        cxx_flags: &[],
        link_flags: &harness(&tools.cache)?,
        trace: trace == Trace::Fst,
    };
    let built = verilator.build(&simulation)?;
    Ok(Simulator { program: built.program, plan: plan.clone(), trace, cached: built.cached, seconds: built.seconds })
}

fn file(files: &[(&str, &str)], name: &str) -> Emitted {
    let text = files.iter().find(|f| f.0 == name).map_or("", |f| f.1);
    Emitted { path: name.into(), text: text.into() }
}

/// Object files of the harness, compiled once for all designs.
fn harness(cache: &Cache) -> Result<Vec<String>, Diagnostic> {
    let compiler = std::env::var("CXX").ok().filter(|c| !c.is_empty()).unwrap_or_else(|| "c++".into());
    let said = Command::new(&compiler).arg("--version").output();
    let said = said.map_err(|e| Diagnostic::error("GW0702", format!("the C++ compiler does not start: {e}")).help("apt install g++"))?;
    let mut key = Key::new("harness").field("compiler", &said.stdout).field("flags", FLAGS.join(" "));
    for (name, text) in HARNESS {
        key = key.field("path", name).field("text", text);
    }
    let stored = cache.step("harness", &key.finish(), KEEP, |out| -> Result<(), Diagnostic> {
        let work = cache.temp().map_err(|e| cache.trouble(&e))?;
        for (name, text) in HARNESS {
            std::fs::write(work.path().join(name), text).map_err(|e| cache.trouble(&e))?;
        }
        for name in sources() {
            let mut command = Command::new(&compiler);
            command.args(FLAGS).args(["-c", name, "-o"]).arg(out.join(name).with_extension("o")).current_dir(work.path());
            let output = command.output().map_err(|e| Diagnostic::error("GW0702", format!("the C++ compiler does not start: {e}")))?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                let first = text.lines().find(|l| l.contains("error")).unwrap_or("it gave no reason");
                return Err(Diagnostic::error("GW0702", format!("the simulation harness does not compile: {first}")));
            }
        }
        Ok(())
    })?;
    Ok(sources().map(|name| stored.folder.join(name).with_extension("o").to_string_lossy().into_owned()).collect())
}

/// The files of the harness that are compiled by themselves.
fn sources() -> impl Iterator<Item = &'static str> {
    HARNESS.iter().map(|f| f.0).filter(|name| name.ends_with(".cpp"))
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
