//! `gateweave sim`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{CommandResult, Outcome, ProjectArgs};
use crate::cache::Cache;
use crate::diag::Diagnostics;
use crate::pipeline::generate::Options;
use crate::pipeline::simulate::simulation;
use crate::plugin::types::Target;
use crate::sim::{self, Regs, RunOptions, RunSummary, Trace, Wire};
use crate::tools::{Origin, Talk, Tools};

/// Arguments.
#[derive(Args, Debug)]
pub struct SimArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// `[NAME=]unix:LOCAL,REMOTE`, `[NAME=]tap:IFNAME`, `[NAME=]pcap:IN,OUT`, `[NAME=]pattern:FILE.toml` or `[NAME=]step:SOCKET`.
    #[arg(long = "wire", value_name = "WIRE")]
    wires: Vec<String>,
    /// Record a waveform: `.fst` or `.vcd`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// End at this simulated time, such as `10us`, `1.5ms`, `2s`.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Offer the register bus on a stream socket, `unix:PATH`, or read all registers when all input has gone in, `read`.
    #[arg(long, value_name = "unix:PATH|read")]
    regs: Option<String>,
    /// List the latency of every frame in the JSON summary.
    #[arg(long)]
    per_frame: bool,
}

/// Builds the simulator if need be and runs it.
pub fn run(args: &SimArgs, talk: bool) -> CommandResult {
    let mut diagnostics = Diagnostics::default();
    let mut options = RunOptions { trace: args.trace.clone(), per_frame: args.per_frame, ..RunOptions::default() };
    for wire in &args.wires {
        match wire.parse::<Wire>() {
            Ok(wire) => options.wires.push(wire),
            Err(error) => diagnostics.push(error),
        }
    }
    if let Some(text) = &args.until {
        match sim::time::parse(text) {
            Ok(fs) => options.until_fs = Some(fs),
            Err(error) => diagnostics.push(error),
        }
    }
    if let Some(text) = &args.regs {
        match text.parse::<Regs>() {
            Ok(regs) => options.regs = Some(regs),
            Err(error) => diagnostics.push(error),
        }
    }
    let trace = match &args.trace {
        Some(path) => Trace::of_path(path)?,
        None => Trace::None,
    };
    diagnostics.finish(())?;
    let cache = Cache::open()?;
    let generate = Options { dir: args.project.project.clone(), out: args.project.out.clone(), target: Target::Simulation };
    let (made, plan, warnings) = simulation(&generate, &cache)?;
    options.registers = made.registers();
    let tools = Tools::new(cache, Origin::Pinned, if talk { Talk::Normal } else { Talk::Quiet })?;
    let simulator = sim::build(&plan, trace, &tools)?;
    let summary = sim::run(&simulator, &options)?;
    let text = text(&summary);
    Ok(Outcome::new(json!(summary), text).with(warnings))
}

fn text(summary: &RunSummary) -> String {
    let ms = summary.time_fs as f64 / 1e12;
    let mut out = format!("{ms:.3} ms simulated in {:.1} s, ended by {}\n", summary.wall_seconds, summary.ended_by);
    for resource in &summary.resources {
        if let Some(wire) = &resource.wire {
            out.push_str(&format!("  {:<10} {} frames in, {} frames out\n", resource.name, wire.frames_in, wire.frames_out));
        }
        if !resource.shown.is_empty() {
            out.push_str(&format!("  {:<10} {}\n", resource.name, resource.shown));
        }
    }
    for r in summary.registers.iter().filter(|r| r.value != 0) {
        out.push_str(&format!("  {:<30} {}\n", format!("{}.{}", r.instance, r.register), r.value));
    }
    out
}
