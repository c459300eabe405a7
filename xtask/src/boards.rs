//! `cargo xtask boards`: `projects/ping` on every board, as far as the tools go, and the table of it in the documents.

use crate::gateweave::Gateweave;
use crate::stage::Stage;
use crate::{marked, places, run, setup};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Flip-flops that `projects/ping` has at least, at any width: fewer, and a synthesis has thrown the design away.
const LEAST_FLIP_FLOPS: u64 = 2000;

/// What was reached on one board.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    board: String,
    bitstream: String,
    synthesized: String,
    linted: String,
}

impl Row {
    pub fn sentence(&self) -> String {
        let Row { bitstream, synthesized, linted, .. } = self;
        format!("bitstream: {bitstream}; synthesized: {synthesized}; linted: {linted}")
    }
}

pub fn run() -> Result<ExitCode> {
    let stage = Stage::start("set-up");
    setup::run(setup::Wants { guest: false }, &stage)?;
    stage.done("");
    let stage = Stage::start("gateweave and plugins");
    let gateweave = Gateweave::build(&stage)?;
    gateweave.build_plugins(&stage)?;
    stage.done("");

    let mut rows = Vec::new();
    let mut failed = 0;
    for board in all(&gateweave)? {
        let stage = Stage::start(&board);
        match one(&gateweave, &board, &stage) {
            Ok(row) => {
                stage.done(&row.sentence());
                rows.push(row);
            }
            Err(error) => {
                stage.note(&format!("{error:#}"));
                stage.failed("");
                failed += 1;
            }
        }
    }
    let table = table(&rows);
    println!("{table}");
    if failed > 0 {
        println!("{failed} board(s) failed; the documents stay as they are");
        return Ok(ExitCode::FAILURE);
    }
    for document in ["README.md", "docs/boards.md"] {
        marked::write(&places::root().join(document), "boards", &table)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every board's name.
pub fn all(gateweave: &Gateweave) -> Result<Vec<String>> {
    let text = run::output(&mut gateweave.command(["board", "list", "--format", "json"]))?;
    let list = serde_json::from_str::<Value>(&text).context("the list of boards")?;
    let boards = list["data"].as_array().context("the list of boards")?;
    Ok(boards.iter().filter_map(|board| board["name"].as_str().map(str::to_string)).collect())
}

/// Builds `projects/ping` for a board. A check that fails is an error.
pub fn one(gateweave: &Gateweave, board: &str, stage: &Stage) -> Result<Row> {
    if board == "sim" {
        return Ok(Row {
            board: board.into(),
            bitstream: "simulation only".into(),
            synthesized: String::new(),
            linted: "yes, by the tests".into(),
        });
    }
    let folder = tempfile::Builder::new().prefix("gateweave-board-").tempdir()?;
    std::fs::write(folder.path().join("project.toml"), project(board)?)?;
    let out = places::target()?.join("xtask/boards").join(board);
    let (dir, to) = (folder.path().to_string_lossy().into_owned(), out.to_string_lossy().into_owned());
    gateweave.run(["build", &dir, "--out", &to], &format!("board-{board}"), Duration::from_secs(3600), stage)?;
    let path = out.join("report.json");
    let report = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    row(board, &serde_json::from_str(&report)?)
}

/// The project as it is in the repository, on another board; without the register bridge where there is no serial line.
fn project(board: &str) -> Result<String> {
    let text = std::fs::read_to_string(places::root().join("projects/ping/project.toml"))?;
    let pins = std::fs::read_to_string(places::root().join("boards").join(format!("{board}.toml")))?;
    moved(&text, &places::root().join("plugins"), board, pins.contains("\n[resource.serial0]"))
        .context("projects/ping/project.toml is not as it was")
}

fn moved(text: &str, plugins: &Path, board: &str, serial: bool) -> Option<String> {
    let bridge = text.find("[instance.regs]")?;
    let text = if serial { text } else { &text[..bridge] };
    let (from, to) = ("\"colorlight-i5\"", format!("\"{board}\""));
    (text.contains(from) && text.contains("\"../../plugins\""))
        .then(|| text.replace(from, &to).replace("../../plugins", &plugins.to_string_lossy()))
}

fn row(board: &str, report: &Value) -> Result<Row> {
    let lint = report["lint"].as_array().context("the report has no `lint`")?;
    ensure!(lint.is_empty(), "Verilator has {} messages about it", lint.len());
    let (luts, ffs, rams) = if let Some(synthesis) = report.get("synthesis") {
        (synthesis["luts"].as_u64(), synthesis["ffs"].as_u64(), synthesis["block_rams"].as_f64())
    } else {
        (report["lut"]["used"].as_u64(), report["ff"]["used"].as_u64(), report["block-ram"]["used"].as_f64())
    };
    let (Some(luts), Some(ffs), Some(rams)) = (luts, ffs, rams) else { bail!("the report does not say what the design uses") };
    ensure!(ffs >= LEAST_FLIP_FLOPS, "only {ffs} flip-flops are left of the design");
    let bitstream = match report["bitstream"].as_str() {
        Some(_) => {
            let clocks = report["clocks"].as_array().map_or(&[][..], Vec::as_slice);
            let sys = clocks.iter().find(|clock| clock["name"] == "sys").context("the report has no clock `sys`")?;
            ensure!(clocks.iter().all(|clock| clock["met"] == true), "a clock misses its frequency");
            let mhz = |key: &str| sys[key].as_f64().map_or("?".to_string(), |mhz| format!("{mhz:.1}"));
            format!("yes, every clock met; sys {} of {} MHz", mhz("reached_mhz"), mhz("asked_mhz"))
        }
        None => "no, a Vivado project".to_string(),
    };
    Ok(Row { board: board.into(), bitstream, synthesized: format!("{luts} LUT, {ffs} FF, {rams} block RAM"), linted: "yes".into() })
}

fn table(rows: &[Row]) -> String {
    let mut text = "| board | bitstream | synthesized | linted | run on hardware |\n|---|---|---|---|---|\n".to_string();
    for Row { board, bitstream, synthesized, linted } in rows {
        let synthesized = if synthesized.is_empty() { "no" } else { synthesized };
        text.push_str(&format!("| {board} | {bitstream} | {synthesized} | {linted} | no |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_project_moves_to_a_board_without_a_serial_line() {
        let text = "board = \"colorlight-i5\", plugins = [\"../../plugins\"]\n[instance.regs]\nlinks\n";
        assert_eq!(moved(text, Path::new("/p"), "x", true).unwrap(), "board = \"x\", plugins = [\"/p\"]\n[instance.regs]\nlinks\n");
        assert_eq!(moved(text, Path::new("/p"), "x", false).unwrap(), "board = \"x\", plugins = [\"/p\"]\n");
        assert!(moved("board", Path::new("/p"), "x", true).is_none());
    }

    #[test]
    fn what_does_not_hold_has_no_row() {
        let placed = |met: bool, ffs: u64, lint: Value| {
            json!({ "lint": lint, "lut": { "used": 9 }, "ff": { "used": ffs }, "block-ram": { "used": 7 }, "bitstream": "b",
                    "clocks": [{ "name": "sys", "asked_mhz": 62.5, "reached_mhz": 80.26, "met": met }] })
        };
        let good = row("x", &placed(true, 4000, json!([]))).unwrap();
        assert_eq!(
            (good.bitstream.as_str(), good.synthesized.as_str()),
            ("yes, every clock met; sys 80.3 of 62.5 MHz", "9 LUT, 4000 FF, 7 block RAM")
        );
        assert!(row("x", &placed(false, 4000, json!([]))).is_err());
        assert!(row("x", &placed(true, 5, json!([]))).is_err());
        assert!(row("x", &placed(true, 4000, json!([{}]))).is_err());
        let vendor = json!({ "lint": [], "synthesis": { "luts": 1, "ffs": 3000, "block_rams": 3.5 } });
        assert_eq!(row("x", &vendor).unwrap().bitstream, "no, a Vivado project");
    }
}
