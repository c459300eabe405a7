//! What the projects take on the Colorlight i5 and the frequencies that they reach, as nextpnr prints it.

use crate::gateweave::Gateweave;
use crate::places;
use crate::stage::Stage;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// Seeds of the placement that are tried.
const SEEDS: [u32; 3] = [1, 2, 3];

/// `TRELLIS_COMB` of LiteEth's MAC and UDP/IP core alone on an ECP5 with the same tools and count.
const LITEETH: u32 = 3136;

/// The tables of `projects/ping` and `projects/rdma`, one row for each seed, and the records of all.
pub fn run(gateweave: &Gateweave) -> Result<(String, String, Vec<Value>)> {
    let mut records = Vec::new();
    let mut ping = project(gateweave, "projects/ping", &mut records)?;
    let cells = ping.lines().next().unwrap_or_default().matches('|').count() - 3;
    writeln!(ping, "| LiteEth: MAC and UDP/IP core alone | {LITEETH} |{}", " |".repeat(cells))?;
    let rdma = project(gateweave, "projects/rdma", &mut records)?;
    Ok((ping, rdma, records))
}

fn project(gateweave: &Gateweave, project: &str, records: &mut Vec<Value>) -> Result<String> {
    let mut table = String::new();
    for seed in SEEDS {
        let stage = Stage::start(&format!("{project} on the Colorlight i5, seed {seed}"));
        let name = format!("bench-{}-seed-{seed}", project.rsplit('/').next().unwrap_or(project));
        let out = places::target()?.join("xtask").join(&name);
        let (number, to) = (seed.to_string(), out.to_string_lossy().into_owned());
        // A clock that misses is a figure, too.
        let arguments = ["build", project, "--seed", &number, "--out", &to, "--allow-timing-failure"];
        gateweave.run(arguments, &name, Duration::from_secs(3600), &stage)?;
        let report = serde_json::from_str::<Value>(&std::fs::read_to_string(out.join("report.json"))?)?;
        let row = row(project, seed, &report, &mut table)?;
        records.push(json!({
            "board": "colorlight-i5", "project": project, "seed": seed,
            "lut4": report["lut"]["used"], "ff": report["ff"]["used"], "bram": report["block-ram"]["used"], "dsp": report["dsp"]["used"],
            "clocks": report["clocks"],
        }));
        stage.done(&row);
    }
    Ok(table)
}

/// Adds a seed's row, and the head before the first. Returns the row.
fn row(project: &str, seed: u32, report: &Value, table: &mut String) -> Result<String> {
    let clocks = report["clocks"].as_array().context("the report has no clocks")?;
    let mhz = |clock: &Value, key: &str| clock[key].as_f64().map_or("?".to_string(), |mhz| format!("{mhz:.1}"));
    if table.is_empty() {
        let heads =
            clocks.iter().map(|clock| format!(" {}, {} MHz asked |", clock["name"].as_str().unwrap_or("?"), mhz(clock, "asked_mhz")));
        let heads = heads.collect::<String>();
        *table = format!("| | TRELLIS_COMB | TRELLIS_FF | DP16KD |{heads}\n|---|---|---|---|{}\n", "---|".repeat(clocks.len()));
    }
    let used = |key: &str| report[key]["used"].as_u64().with_context(|| format!("the report has no `{key}`"));
    let reached = clocks.iter().map(|clock| format!(" {} MHz |", mhz(clock, "reached_mhz"))).collect::<String>();
    let row = format!("| `{project}`, seed {seed} | {} | {} | {} |{reached}", used("lut")?, used("ff")?, used("block-ram")?);
    writeln!(table, "{row}")?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_area() {
        let clock = |name: &str, reached: f64| json!({ "name": name, "asked_mhz": 62.5, "reached_mhz": reached });
        let report = json!({ "lut": { "used": 9 }, "ff": { "used": 8 }, "block-ram": { "used": 7 }, "clocks": [clock("sys", 80.26), clock("x", 70.0)] });
        let mut table = String::new();
        row("projects/ping", 1, &report, &mut table).unwrap();
        let wanted = "| | TRELLIS_COMB | TRELLIS_FF | DP16KD | sys, 62.5 MHz asked | x, 62.5 MHz asked |\n|---|---|---|---|---|---|\n\
                      | `projects/ping`, seed 1 | 9 | 8 | 7 | 80.3 MHz | 70.0 MHz |\n";
        assert_eq!(table, wanted);
        assert!(row("projects/ping", 1, &json!({ "clocks": [] }), &mut table).is_err());
    }
}
