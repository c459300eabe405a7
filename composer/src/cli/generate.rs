//! `gateweave generate`.

use clap::Args;
use serde_json::json;

use super::{CommandResult, Outcome, ProjectArgs};
use crate::cache::Cache;
use crate::pipeline::generate::{Options, generate};
use crate::plugin::types::Target;

/// Arguments.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

/// Writes HDL, constraints and documents.
pub fn run(args: &GenerateArgs) -> CommandResult {
    let cache = Cache::open()?;
    let options = Options { dir: args.project.project.clone(), out: args.project.out.clone(), target: Target::Fpga };
    let (made, warnings) = generate(&options, &cache)?;
    let state = if made.unchanged { "unchanged" } else { "written" };
    let text = format!("{}: {} files in {} ({state})", made.name, made.files.len(), made.out.display());
    Ok(Outcome::new(json!(made), text).with(warnings))
}
