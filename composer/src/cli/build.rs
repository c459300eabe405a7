//! `gateweave build`.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{CommandResult, Outcome, ProjectArgs};
use crate::cache::Cache;
use crate::pipeline::bitstream::{BuildOptions, build};
use crate::tools::{Origin, Talk, Tools};

/// Where tools come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ToolsFrom {
    /// The pinned ones: the same bytes everywhere.
    #[default]
    Pinned,
    /// Those on PATH, after a probe.
    Native,
}

impl ToolsFrom {
    /// As the library calls it.
    pub fn origin(self) -> Origin {
        match self {
            Self::Pinned => Origin::Pinned,
            Self::Native => Origin::Native,
        }
    }
}

/// Arguments.
#[derive(Args, Debug)]
pub struct BuildArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// Seed of the placement.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Finish even if a clock misses its frequency.
    #[arg(long)]
    allow_timing_failure: bool,
    /// Where the tools come from.
    #[arg(long, value_enum, default_value_t)]
    tools: ToolsFrom,
}

/// Makes the bitstream, or checks what the vendor's tool will get.
pub fn run(args: &BuildArgs) -> CommandResult {
    let cache = Cache::open()?;
    let tools = Tools::new(cache, args.tools.origin(), Talk::Normal)?;
    let options = BuildOptions {
        dir: args.project.project.clone(),
        out: args.project.out.clone(),
        seed: args.seed,
        allow_timing_failure: args.allow_timing_failure,
    };
    let (report, text, warnings) = build(&tools, &options)?;
    Ok(Outcome::new(json!(report), text).with(warnings))
}
