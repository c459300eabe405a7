//! `gateweave check`.

use std::path::PathBuf;

use clap::Args;

use super::{CommandResult, Outcome};
use crate::cache::Cache;
use crate::pipeline::elaborate::elaborate;
use crate::pipeline::generate::{Design, plan_json};
use crate::plugin::types::Target;

/// Arguments.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Folder that holds `project.toml`.
    project: PathBuf,
}

/// Checks the project, its plan, its clocks, its registers and its HDL. Writes nothing.
pub fn run(args: &CheckArgs) -> CommandResult {
    let cache = Cache::open()?;
    let elaborated = elaborate(&args.project, &cache)?;
    let design = Design::make(elaborated, Target::Fpga)?;
    let (files, _, _) = design.files()?;
    let e = &design.elaborated;
    let text = format!(
        "{}: {} instances, {} links on board {}; {} files would be generated",
        e.project.name.value,
        e.graph.nodes.len(),
        e.graph.edges.len(),
        e.board.name.value,
        files.len()
    );
    let data = plan_json(e, &design.registers);
    let mut warnings = design.elaborated.warnings;
    warnings.extend(design.registers.warnings);
    Ok(Outcome::new(data, text).with(warnings))
}
