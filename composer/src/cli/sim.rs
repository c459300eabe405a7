//! `gateweave sim`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{CommandResult, Outcome, ProjectArgs};
use crate::cache::Cache;
use crate::diag::{Diagnostic, Diagnostics};
use crate::pipeline::generate::Options;
use crate::pipeline::simulate::simulation;
use crate::plugin::types::Target;
use crate::sim::{self, RunOptions, RunSummary, Trace, Wire};

/// Arguments.
#[derive(Args, Debug)]
pub struct SimArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// `[NAME=]unix:LOCAL,REMOTE`, `[NAME=]tap:IFNAME`, `[NAME=]pcap:IN,OUT` or `[NAME=]pattern:FILE.toml`.
    #[arg(long = "wire", value_name = "WIRE")]
    wires: Vec<String>,
    /// Record a waveform: `.fst` or `.vcd`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// End at this simulated time, such as `10us`, `1.5ms`, `2s`.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Offer the register bus on a stream socket: `unix:PATH`.
    #[arg(long, value_name = "unix:PATH")]
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
        match time_fs(text) {
            Some(fs) => options.until_fs = Some(fs),
            None => diagnostics.push(Diagnostic::error("GW0802", format!("`{text}` is not a time")).help("such as 10us, 1.5ms or 2s")),
        }
    }
    if let Some(text) = &args.regs {
        match text.strip_prefix("unix:") {
            Some(path) if !path.is_empty() => options.regs = Some(PathBuf::from(path)),
            _ => diagnostics.push(Diagnostic::error("GW0802", format!("`{text}` is not a register socket")).help("such as unix:regs.sock")),
        }
    }
    let trace = match &args.trace {
        Some(path) => Trace::of_path(path)?,
        None => Trace::None,
    };
    diagnostics.finish(())?;
    let cache = Cache::open()?;
    let generate = Options { dir: args.project.project.clone(), out: args.project.out.clone(), target: Target::Simulation };
    let (_, plan, warnings) = simulation(&generate, &cache)?;
    let simulator = sim::build(&plan, trace, cache.root(), &mut |line| {
        if talk {
            eprintln!("{line}");
        }
    })?;
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
        if !resource.state.is_empty() {
            out.push_str(&format!("  {:<10} {}\n", resource.name, resource.state));
        }
    }
    out
}

/// `10us` in femtoseconds.
fn time_fs(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text.get(digits.len()..)?.trim() {
        "fs" => 1.0,
        "ps" => 1e3,
        "ns" => 1e6,
        "us" => 1e9,
        "ms" => 1e12,
        "s" => 1e15,
        _ => return None,
    };
    let number: f64 = digits.trim().parse().ok()?;
    (number.is_finite() && number > 0.0 && number * scale < 1e19).then(|| (number * scale).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::time_fs;

    #[test]
    fn times_are_read() {
        assert_eq!(time_fs("10us"), Some(10_000_000_000));
        assert_eq!(time_fs("1.5ms"), Some(1_500_000_000_000));
        assert_eq!(time_fs("2 s"), Some(2_000_000_000_000_000));
        assert_eq!(time_fs("2"), None);
        assert_eq!(time_fs("-1us"), None);
        assert_eq!(time_fs("1e30s"), None);
    }
}
