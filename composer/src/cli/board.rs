//! `gateweave board`.

use std::fmt::Write as _;

use clap::Subcommand;
use serde_json::json;

use super::{CommandResult, Outcome};
use crate::cache::Cache;
use crate::manifest::board::{self, Board};
use crate::pipeline::elaborate::board_dirs;

/// Subcommands.
#[derive(Subcommand, Debug)]
pub enum BoardCommand {
    /// List the boards.
    List,
    /// Show a board's part, clocks and resources.
    Show {
        /// Name, as in `project.board`.
        name: String,
    },
}

/// Runs a subcommand.
pub fn run(command: &BoardCommand) -> CommandResult {
    let cache = Cache::open()?;
    let dirs = board_dirs(None, &cache)?;
    match command {
        BoardCommand::List => {
            let mut text = String::new();
            let mut data = Vec::new();
            for (name, path) in board::list(&dirs) {
                let (board, _) = Board::load_in(&path, &dirs)?;
                let flow = if board.is_simulation_only() {
                    "simulation"
                } else if board.flow.open {
                    "bitstream"
                } else {
                    "vendor project"
                };
                let _ = writeln!(text, "{name:<18} {:<26} {flow:<15} {}", board.part.number.value, board.summary);
                data.push(json!({ "name": name, "part": board.part.number.value, "flow": flow, "summary": board.summary, "status": board.status }));
            }
            Ok(Outcome::new(json!(data), text))
        }
        BoardCommand::Show { name } => {
            let path = board::find(&dirs, name, None)?;
            let (board, warnings) = Board::load_in(&path, &dirs)?;
            let mut text = String::new();
            let _ = writeln!(text, "{}: {}", board.name.value, board.summary);
            let _ = writeln!(text, "part      {} ({} {})", board.part.number.value, board.part.device.value, board.part.package.value);
            let _ = writeln!(text, "source    {}", board.source);
            let _ = writeln!(text, "status    {}", board.status);
            for clock in &board.clocks {
                let _ = writeln!(text, "clock     {:<10} {} MHz", clock.name.value, clock.hz as f64 / 1e6);
            }
            for resource in &board.resources {
                let facts: Vec<String> = resource.facts.iter().map(|(k, v)| format!("{k}={}", v.value)).collect();
                let _ = writeln!(text, "resource  {:<10} {:<10} {}", resource.name.value, resource.class.name, facts.join(" "));
            }
            Ok(Outcome::new(board.facts_json(), text).with(warnings))
        }
    }
}
