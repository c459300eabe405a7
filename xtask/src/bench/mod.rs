//! `cargo xtask bench`: measurements, as tables on stdout and in the README, and as records in `bench.json`. Nothing here passes or fails, but for
//! a block that has outgrown its area; tests assert the work done instead.

mod blocks;
mod generate;
mod place;
mod plot;
mod rdma;

use crate::gateweave::Gateweave;
use crate::stage::Stage;
use crate::{marked, places, setup};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::ExitCode;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Area and timing of the projects on the Colorlight i5, from place and route
    Place,
    /// Area of single blocks of the RDMA endpoint, placed alone
    Blocks,
    /// How long the HDL takes from the project file
    Generate,
    /// Throughput and latency of the RDMA endpoint, in simulated time
    Rdma,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// Only this part; may be repeated
    #[arg(long, value_enum)]
    part: Vec<Part>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stage = Stage::start("set-up");
    setup::run(setup::Wants { guest: false }, &stage)?;
    stage.done("");
    let stage = Stage::start("gateweave and plugins");
    let gateweave = Gateweave::build(&stage)?;
    gateweave.build_plugins(&stage)?;
    stage.done("");

    let mut ended = ExitCode::SUCCESS;
    for part in [Part::Place, Part::Blocks, Part::Generate, Part::Rdma] {
        if !arguments.part.is_empty() && !arguments.part.contains(&part) {
            continue;
        }
        match part {
            Part::Place => {
                let (ping, rdma, records) = place::run(&gateweave)?;
                table("place", &ping)?;
                table("rdma-place", &rdma)?;
                keep("project", records)?;
            }
            Part::Blocks => {
                let (blocks, records, over) = blocks::run(&gateweave)?;
                table("blocks", &blocks)?;
                keep("block", records)?;
                for block in &over {
                    eprintln!("too large  {block}");
                    ended = ExitCode::FAILURE;
                }
            }
            Part::Generate => table("generate", &generate::run(&gateweave)?)?,
            Part::Rdma => {
                let records = rdma::run(&gateweave)?;
                keep("test", records.clone())?;
                table("rdma", &rdma::tables(&records))?;
                let docs = places::root().join("docs");
                for (name, text) in plot::all(&records) {
                    std::fs::write(docs.join(name), text).with_context(|| format!("writing docs/{name}"))?;
                }
            }
        }
    }
    Ok(ended)
}

/// Prints a table, and puts it in its place in the README.
fn table(name: &str, text: &str) -> Result<()> {
    println!("{text}");
    marked::write(&places::root().join("README.md"), name, text)
}

/// Puts `records` in the place of those in `bench.json` that have `key`.
fn keep(key: &str, records: Vec<Value>) -> Result<()> {
    let file = places::root().join("bench.json");
    let old = match std::fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str::<Vec<Value>>(&text).with_context(|| format!("reading {}", file.display()))?,
        Err(_) => Vec::new(),
    };
    let all = old.into_iter().filter(|record| record.get(key).is_none()).chain(records).collect::<Vec<_>>();
    std::fs::write(&file, list(&all)).with_context(|| format!("writing {}", file.display()))
}

/// A JSON list with one record a line.
fn list(records: &[Value]) -> String {
    let lines = records.iter().map(|record| format!("  {record}")).collect::<Vec<_>>();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_has_a_record_a_line() {
        let records = vec![json!({ "test": "throughput" }), json!({ "board": "x" })];
        let text = list(&records);
        assert_eq!(text.lines().count(), 4);
        assert_eq!(serde_json::from_str::<Vec<Value>>(&text).unwrap(), records);
    }
}
