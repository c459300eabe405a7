//! `gateweave flash`.

use std::process::Command;

use clap::Args;
use serde_json::json;

use super::{CommandResult, Outcome, ProjectArgs};
use crate::cache::Cache;
use crate::diag::Diagnostic;
use crate::emit::top::ident;
use crate::manifest::board::{self, Board};
use crate::manifest::project::Project;
use crate::pipeline::{elaborate::board_dirs, out_dir};

/// Arguments.
#[derive(Args, Debug)]
pub struct FlashArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// Show the command, do not run it.
    #[arg(long)]
    dry_run: bool,
}

/// Loads the bitstream of an earlier `build` with the board's loader.
pub fn run(args: &FlashArgs) -> CommandResult {
    let cache = Cache::open()?;
    let project = Project::load(&args.project.project)?;
    let dirs = board_dirs(Some(&project), &cache)?;
    let path = board::find(&dirs, &project.board, Some(&project.board.span))?;
    let (board, warnings) = Board::load_in(&path, &dirs)?;
    let out = out_dir(&project, args.project.out.as_deref());
    let bitstream = out.join(format!("{}.bit", ident(&project.name.value)));
    let Some((program, arguments)) = board.flow.loader.split_first() else {
        return Err(Diagnostic::error("GW0803", format!("no loader is known for board `{}`", board.name.value))
            .at(&project.board.span)
            .into());
    };
    let mut line = vec![program.clone()];
    line.extend(arguments.iter().cloned());
    line.push(bitstream.display().to_string());
    let text = line.join(" ");
    if args.dry_run {
        return Ok(Outcome::new(json!({ "command": line }), text).with(warnings));
    }
    if !bitstream.is_file() {
        let help = format!("run `gateweave build {}` first", args.project.project.display());
        return Err(Diagnostic::error("GW0804", format!("there is no bitstream `{}`", bitstream.display())).help(help).into());
    }
    let status = Command::new(program).args(arguments).arg(&bitstream).status().map_err(|e| {
        Diagnostic::error("GW0805", format!("`{program}` did not start: {e}")).help("install openFPGALoader, or load the file by hand")
    })?;
    if !status.success() {
        return Err(Diagnostic::error("GW0805", format!("`{text}` ended with {status}")).into());
    }
    Ok(Outcome::new(json!({ "command": line }), format!("loaded {}", bitstream.display())).with(warnings))
}
