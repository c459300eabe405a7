//! `gateweave doctor`.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use super::build::ToolsFrom;
use super::{CommandResult, Outcome};
use crate::cache::Cache;
use crate::diag::Diagnostic;
use crate::tools::doctor::{State, doctor, remedy};

/// Arguments.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Which tools to look at.
    #[arg(long, value_enum, default_value_t)]
    tools: ToolsFrom,
}

/// Looks at everything that Gateweave needs, changes nothing.
pub fn run(args: &DoctorArgs) -> CommandResult {
    let cache = Cache::open()?;
    let checks = doctor(&cache, args.tools.origin());
    let mut text = String::new();
    for check in &checks {
        let mark = match check.state {
            State::Ok => "ok",
            State::Later => "later",
            State::Optional => "optional",
            State::Missing => "MISSING",
        };
        let _ = writeln!(text, "{mark:<9} {:<22} {}", check.name, check.detail);
    }
    let mut outcome = Outcome::new(json!(checks), text);
    if checks.iter().any(|c| c.state == State::Missing) {
        let mut diagnostic = Diagnostic::error("GW0801", "something that nothing works without is missing");
        if let Some(command) = remedy(&checks, false) {
            diagnostic = diagnostic.help(command);
        }
        outcome.diagnostics.push(diagnostic);
    }
    Ok(outcome)
}
