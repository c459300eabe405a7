//! Running a simulator.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::build::{Simulator, Trace};
use super::class;
use super::wire::{Regs, RegsKind, Wire, WireKind, assign};
use crate::diag::{Diagnostic, Diagnostics};
use crate::regs_client::{self, Reading};

/// How long a file wire runs on after the last frame, in femtoseconds: 200 us. A jumbo frame takes 72 us at 1 Gbit/s, and
/// a design may store a whole one before it answers.
pub const DRAIN_FS: u64 = 200_000_000_000;

/// What a run is asked to do.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// What the ends of the design's links are tied to.
    pub wires: Vec<Wire>,
    /// What is done with the register bus.
    pub regs: Option<Regs>,
    /// The design's `registers.json`, for [`RegsKind::Read`].
    pub registers: Option<serde_json::Value>,
    /// Trace file; the simulator must have been built for its format.
    pub trace: Option<PathBuf>,
    /// Simulated time at which the run ends, femtoseconds.
    pub until_fs: Option<u64>,
    /// Time without a frame after which a run on files ends; [`DRAIN_FS`] if absent.
    pub drain_fs: Option<u64>,
    /// Whether the summary lists the latency of every frame.
    pub per_frame: bool,
}

/// What a run found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Simulated time in femtoseconds.
    pub time_fs: u64,
    /// Evaluations of the design: one per time at which an edge occurred.
    pub evals: u64,
    /// Wall-clock time of the loop in seconds.
    pub wall_seconds: f64,
    /// Why it ended: `until`, `signal` or `input` (all of it went in and nothing moved for the drain time).
    pub ended_by: String,
    /// Every resource with a model.
    pub resources: Vec<ResourceSummary>,
    /// What the registers held at the end, with [`RegsKind::Read`].
    #[serde(default)]
    pub registers: Vec<Reading>,
    #[serde(skip_serializing, default)]
    errors: Vec<RunError>,
}

/// What a run found at one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceSummary {
    /// Name on the board.
    pub name: String,
    /// Class.
    pub class: String,
    /// State at the end, such as that of the lamps; empty if there is nothing to show.
    pub shown: String,
    /// Bytes that answered what was asked over a serial line.
    #[serde(skip_serializing, default)]
    heard: Vec<u8>,
    /// Counters, for classes that carry Ethernet frames.
    pub wire: Option<WireSummary>,
}

/// Counters of one Ethernet wire. `in` is towards the design.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireSummary {
    /// Frames that went in, bad ones included.
    pub frames_in: u64,
    /// Of these, frames with a right FCS, 64 bytes or more, and no fault.
    pub good_in: u64,
    /// Their bytes without FCS.
    pub bytes_in: u64,
    /// Frames lost because the design was not ready.
    pub dropped_in: u64,
    /// Frames that came out, bad ones included.
    pub frames_out: u64,
    /// Their bytes without FCS.
    pub bytes_out: u64,
    /// Of these, frames with a wrong FCS or an error sign; they are not passed on.
    pub bad_out: u64,
    /// Gaps between frames out that were shorter than 12 bytes.
    pub short_gaps: u64,
    /// Frames out that were torn because the design had no byte when the wire needed it.
    pub underruns: u64,
    /// Frames out that nobody took: no peer, or bad.
    pub undelivered: u64,
    /// Set-up or hold times that were missed.
    pub window_violations: u64,
    /// The first eight of them, with times.
    pub violations: Vec<String>,
    /// `(n, m)`: when the n-th good frame was in, m of the n were not yet answered. For n = 1, 10, 100 and every 1000.
    pub backlog: Vec<(u64, i64)>,
    /// From the last byte of a good frame in to the first byte of the one that answers it; `None` unless there are as many
    /// frames out as in.
    pub latency: Option<Latency>,
}

/// Latencies in femtoseconds; negative where a design answers before the frame has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The shortest.
    pub min_fs: i64,
    /// The longest.
    pub max_fs: i64,
    /// The mean.
    pub mean_fs: i64,
    /// Each frame's, where [`RunOptions::per_frame`] asked for them.
    pub frames_fs: Vec<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct RunError {
    code: String,
    message: String,
    help: String,
}

impl RunSummary {
    /// What a register held at the end.
    pub fn register(&self, instance: &str, name: &str) -> Option<u32> {
        self.registers.iter().find(|r| r.instance == instance && r.register == name).map(|r| r.value)
    }

    /// The counters of a resource.
    pub fn wire(&self, name: &str) -> Option<&WireSummary> {
        self.resources.iter().find(|r| r.name == name)?.wire.as_ref()
    }
}

/// Runs `simulator` until its input, its time or a signal ends it.
///
/// # Errors
/// `GW0707` to `GW0709` (wires), `GW0710` (the simulator did not run), `GW0711` to `GW0714` (sockets, files, traces),
/// `GW0720` (a set-up or hold time was missed), `GW0721` (a rule of an SDRAM was broken), `GW0722` (one of AXI4), those of pattern files.
pub fn run(simulator: &Simulator, options: &RunOptions) -> Result<RunSummary, Diagnostics> {
    let folder = tempfile::Builder::new().prefix("gateweave-sim-").tempdir().map_err(|e| failed(format!("no temporary folder: {e}")))?;
    let text = config(simulator, options, folder.path())?;
    let path = folder.path().join("run.conf");
    std::fs::write(&path, text).map_err(|e| failed(format!("`{}`: {e}", path.display())))?;
    let status =
        wait(Command::new(&simulator.program).arg(&path)).map_err(|e| failed(format!("`{}`: {e}", simulator.program.display())))?;
    let text = std::fs::read_to_string(folder.path().join("summary.json"));
    let mut summary: RunSummary = match text.ok().and_then(|t| serde_json::from_str(&t).ok()) {
        Some(summary) => summary,
        None => return Err(failed(format!("it left no summary ({status})")).into()),
    };
    let mut diagnostics = Diagnostics::default();
    for error in &summary.errors {
        let mut diagnostic = Diagnostic::error(known_code(&error.code), error.message.clone());
        if !error.help.is_empty() {
            diagnostic = diagnostic.help(error.help.clone());
        }
        diagnostics.push(diagnostic);
    }
    for resource in &summary.resources {
        let Some(wire) = resource.wire.as_ref().filter(|w| w.window_violations > 0) else { continue };
        let first = wire.violations.join("; ");
        let message = format!("`{}`: {} set-up or hold times were missed: {first}", resource.name, wire.window_violations);
        diagnostics
            .push(Diagnostic::error("GW0720", message).help("the board's `rx-delay-ps` and `tx-delay-ps` do not fit the PHY's own delays"));
    }
    let reads = options.regs.as_ref().is_some_and(|regs| regs.kind == RegsKind::Read);
    if let Some(map) = options.registers.as_ref().filter(|_| reads && summary.ended_by == "input") {
        let heard = summary.resources.iter_mut().flat_map(|r| std::mem::take(&mut r.heard)).collect();
        match regs_client::replay(map, heard) {
            Ok(readings) => summary.registers = readings,
            Err(error) => diagnostics.push(Diagnostic::error("GW0716", format!("the registers could not be read: {error}"))),
        }
    }
    diagnostics.finish(summary).map(|(summary, _)| summary)
}

/// Waits for the simulator. Ctrl-C goes to the whole foreground group: the simulator ends its files and we read its summary.
fn wait(command: &mut Command) -> std::io::Result<std::process::ExitStatus> {
    let mut child = command.spawn()?;
    #[allow(unsafe_code)] // SAFETY: SIG_IGN installs no handler, so nothing runs asynchronously.
    let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let status = child.wait();
    #[allow(unsafe_code)] // SAFETY: as above; puts back what was there.
    unsafe {
        libc::signal(libc::SIGINT, before);
    }
    status
}

fn failed(message: String) -> Diagnostic {
    Diagnostic::error("GW0710", format!("the simulator could not be run: {message}"))
}

fn known_code(code: &str) -> &'static str {
    const CODES: &[&str] = &["GW0703", "GW0704", "GW0705", "GW0710", "GW0711", "GW0712", "GW0713", "GW0714", "GW0715", "GW0721", "GW0722"];
    CODES.iter().find(|c| **c == code).copied().unwrap_or("GW0710")
}

/// The text of the simulator's configuration. Pattern files are expanded into `folder`.
fn config(simulator: &Simulator, options: &RunOptions, folder: &Path) -> Result<String, Diagnostics> {
    let plan = &simulator.plan;
    let mut text = String::new();
    let mut line = |fields: &[&str]| -> Result<(), Diagnostic> {
        if let Some(bad) = fields.iter().find(|f| f.contains(['\t', '\n', '\r'])) {
            return Err(Diagnostic::error("GW0707", format!("`{}` contains a tab or a line break", bad.escape_default())));
        }
        let _ = writeln!(text, "{}", fields.join("\t"));
        Ok(())
    };
    line(&["summary", &path_text(&folder.join("summary.json"))?])?;
    line(&["drain", &options.drain_fs.unwrap_or(DRAIN_FS).to_string()])?;
    if let Some(until) = options.until_fs {
        line(&["until", &until.to_string()])?;
    }
    if let Some(trace) = &options.trace {
        let wanted = Trace::of_path(trace)?;
        if wanted != simulator.trace {
            return Err(Diagnostic::error(
                "GW0714",
                format!("the simulator was built for {:?}, not for `{}`", simulator.trace, trace.display()),
            )
            .into());
        }
        line(&["trace", &path_text(trace)?])?;
    }
    if options.per_frame {
        line(&["per-frame"])?;
    }
    for clock in &plan.clocks {
        line(&["clock", &clock.port, &clock.period_fs.to_string(), &clock.phase_fs.to_string()])?;
    }
    for reset in &plan.resets {
        line(&["reset", &reset.port, if reset.active_low { "1" } else { "0" }])?;
    }
    let regs = options.regs.as_ref().map(|regs| Ok::<_, Diagnostic>((regs.assign(plan)?, regs))).transpose()?;
    let wires: BTreeMap<String, &WireKind> = assign(plan, &options.wires)?;
    for resource in &plan.resources {
        let Some(class) = class::find(&resource.class) else { continue };
        let port = class.clock_port(resource).unwrap_or_else(|| "-".to_owned());
        let (width, period) = (resource.width.to_string(), class.period_fs(resource).to_string());
        line(&["resource", &resource.name, &resource.class, &width, &period, &port])?;
        for (key, value) in resource.facts.as_object().into_iter().flatten() {
            if let Some(number) = value.as_i64().filter(|_| key != "mbps") {
                line(&["fact", &resource.name, key, &number.to_string()])?;
            }
        }
        if class.ethernet {
            line(&["fact", &resource.name, "mbps", &class.mbps(resource).to_string()])?;
        }
        if resource.facts.get("active").and_then(serde_json::Value::as_str) == Some("low") {
            line(&["fact", &resource.name, "active-low", "1"])?;
        }
        if let Some((_, regs)) = regs.as_ref().filter(|(name, _)| *name == resource.name) {
            match &regs.kind {
                RegsKind::Unix(path) => line(&["regs", &resource.name, &path_text(path)?])?,
                RegsKind::Read => {
                    let none = || Diagnostic::error("GW0716", "the registers could not be read: the design has none");
                    let script = regs_client::script(options.registers.as_ref().ok_or_else(none)?);
                    for (bytes, answer) in script.map_err(|e| Diagnostic::error("GW0716", e.to_string()))? {
                        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                        line(&["ask", &resource.name, &hex, &answer.to_string()])?;
                    }
                }
            }
        }
        for delay in &resource.delays {
            line(&["delay", &resource.name, &delay.pin, &delay.ps.to_string()])?;
        }
        let Some(wire) = wires.get(&resource.name) else { continue };
        let optional = |p: &Option<PathBuf>| p.as_deref().map_or(Ok(String::new()), path_text);
        match wire {
            WireKind::Unix { local, remote } => line(&["wire", &resource.name, "unix", &path_text(local)?, &path_text(remote)?])?,
            WireKind::Step { socket } => line(&["wire", &resource.name, "step", &path_text(socket)?])?,
            WireKind::Tap { interface } => line(&["wire", &resource.name, "tap", interface])?,
            WireKind::Pcap { input, output } => line(&["wire", &resource.name, "pcap", &optional(input)?, &optional(output)?])?,
            WireKind::Pattern { file } => {
                let pattern = super::pattern::expand(file)?;
                let events = folder.join(format!("{}.events", resource.name));
                std::fs::write(&events, &pattern.events).map_err(|e| failed(format!("`{}`: {e}", events.display())))?;
                line(&["wire", &resource.name, "pattern", &path_text(&events)?, &optional(&pattern.out)?])?;
            }
        }
    }
    Ok(text)
}

fn path_text(path: &Path) -> Result<String, Diagnostic> {
    let text = path.to_str().ok_or_else(|| Diagnostic::error("GW0707", format!("the path `{}` is not UTF-8", path.display())))?;
    Ok(text.to_owned())
}
