//! `gateweave graph`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::{CommandResult, Outcome};
use crate::cache::Cache;
use crate::compose::plan::end_name;
use crate::pipeline::elaborate::elaborate;
use crate::pipeline::generate::plan_json;
use crate::report::diagram;

/// Arguments.
#[derive(Args, Debug)]
pub struct GraphArgs {
    /// Folder that holds `project.toml`.
    project: PathBuf,
    /// Write the block diagram to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Shows instances, links and choices.
pub fn run(args: &GraphArgs) -> CommandResult {
    let cache = Cache::open()?;
    let e = elaborate(&args.project, &cache)?;
    if let Some(path) = &args.svg {
        let svg = diagram::svg(&e.graph, &e.plan, &e.kinds);
        std::fs::write(path, svg)
            .map_err(|error| crate::diag::Diagnostic::error("GW0111", format!("cannot write `{}`: {error}", path.display())))?;
    }
    let mut text = String::new();
    for node in &e.graph.nodes {
        let _ = writeln!(text, "{:<12} {} {}: {}", node.instance.name.value, node.about.name, node.about.version, node.about.summary);
    }
    text.push('\n');
    for link in &e.plan.links {
        let edge = &e.graph.edges[link.edge];
        let width = if link.client.width > 0 { format!(", {} bits", link.client.width) } else { String::new() };
        let adapters: Vec<String> = link.adapters.iter().map(|a| format!("{a:?}").to_lowercase()).collect();
        let mut through = if adapters.is_empty() { String::new() } else { format!(" through {}", adapters.join(", ")) };
        if let Some(priority) = link.priority {
            let _ = write!(through, ", priority {priority}");
        }
        let _ = writeln!(
            text,
            "{:<18} -> {:<18} {}{width}{through}",
            end_name(&e.graph, &edge.provider),
            end_name(&e.graph, &edge.client),
            edge.kind
        );
    }
    text.push('\n');
    for choice in &e.plan.choices {
        let by = if choice.overridden { " (asked for)" } else { "" };
        let _ = writeln!(text, "{:<28} {}{by}: {}", choice.what, choice.value, choice.why);
    }
    Ok(Outcome::new(plan_json(&e, &Default::default()), text).with(e.warnings))
}
