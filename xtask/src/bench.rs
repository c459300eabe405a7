//! `cargo xtask bench`: measurements, as tables on stdout and in the README. Nothing here passes or fails; tests assert the work done instead.

use crate::gateweave::Gateweave;
use crate::stage::Stage;
use crate::{marked, places, run, setup};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const RUNS: usize = 10;

/// One line of the table.
struct Row {
    what: &'static str,
    median: Duration,
    least: Duration,
    most: Duration,
    /// Median of the processor time, which tells a slow program from a loaded machine.
    processor: Duration,
    /// What the README promises, where it promises something.
    wanted: &'static str,
}

pub fn run() -> Result<ExitCode> {
    let stage = Stage::start("set-up");
    setup::run(setup::Wants { guest: false }, &stage)?;
    stage.done("");
    let stage = Stage::start("gateweave and plugins");
    let gateweave = Gateweave::build(&stage)?;
    gateweave.build_plugins(&stage)?;
    stage.done("");

    let mut times = format!("| release build, {RUNS} runs | median | least | most | processor time | wanted |\n|---|---|---|---|---|---|\n");
    for Row { what, median, least, most, processor, wanted } in [cold(&gateweave)?, unchanged(&gateweave)?] {
        writeln!(times, "| {what} | {} | {} | {} | {} | {wanted} |", shown(median), shown(least), shown(most), shown(processor))?;
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    writeln!(times, "\nMeasured on {cores} cores with a load average of {}; processor time is the median's, all cores together.", load.split(' ').next().unwrap_or("?"))?;
    let text = format!("{}\n{times}", area(&gateweave)?);
    println!("{text}");
    marked::write(&places::root().join("README.md"), "figures", &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Seeds of the placement that are tried.
const SEEDS: [u32; 3] = [1, 2, 3];

/// `TRELLIS_COMB` of LiteEth's MAC and UDP/IP core alone on an ECP5 with the same tools and count.
const LITEETH: u32 = 3136;

/// The table of what `projects/ping` takes on the Colorlight i5 and of the frequencies that it reaches, one row for each seed.
fn area(gateweave: &Gateweave) -> Result<String> {
    let mut table = String::new();
    for seed in SEEDS {
        let stage = Stage::start(&format!("projects/ping on the Colorlight i5, seed {seed}"));
        let out = places::target()?.join(format!("xtask/bench-seed-{seed}"));
        let (number, to) = (seed.to_string(), out.to_string_lossy().into_owned());
        // A clock that misses is a figure, too.
        let arguments = ["build", "projects/ping", "--seed", &number, "--out", &to, "--allow-timing-failure"];
        gateweave.run(arguments, &format!("bench-seed-{seed}"), Duration::from_secs(1800), &stage)?;
        let report = std::fs::read_to_string(out.join("report.json"))?;
        let row = area_row(seed, &serde_json::from_str(&report)?, &mut table)?;
        stage.done(&row);
    }
    writeln!(
        table,
        "| LiteEth: MAC and UDP/IP core alone | {LITEETH} |{}",
        " |".repeat(table.lines().next().unwrap_or_default().matches('|').count() - 3)
    )?;
    Ok(table)
}

/// Adds a seed's row, and the head before the first. Returns the row.
fn area_row(seed: u32, report: &Value, table: &mut String) -> Result<String> {
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
    let row = format!("| `projects/ping`, seed {seed} | {} | {} | {} |{reached}", used("lut")?, used("ff")?, used("block-ram")?);
    writeln!(table, "{row}")?;
    Ok(row)
}

fn shown(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// `gateweave generate projects/ping` with a cache that holds only the compiled plugins, and an empty output folder, every time.
fn cold(gateweave: &Gateweave) -> Result<Row> {
    let stage = Stage::start("generate, cold caches");
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let folder = tempfile::tempdir()?;
        let cache = cold_cache(folder.path())?;
        times.push(generate(gateweave, &cache, &folder.path().join("out"))?);
    }
    Ok(row(stage, "`generate projects/ping`, cold caches", times, "< 1.5 s"))
}

/// The same again with nothing changed.
fn unchanged(gateweave: &Gateweave) -> Result<Row> {
    let stage = Stage::start("generate, unchanged");
    let folder = tempfile::tempdir()?;
    let (cache, out) = (cold_cache(folder.path())?, folder.path().join("out"));
    generate(gateweave, &cache, &out)?;
    let times = (0..RUNS).map(|_| generate(gateweave, &cache, &out)).collect::<Result<Vec<_>>>()?;
    Ok(row(stage, "`generate projects/ping`, unchanged", times, "< 0.1 s"))
}

/// A cache in `folder` that holds nothing but the plugins as compiled.
fn cold_cache(folder: &Path) -> Result<PathBuf> {
    let (from, cache) = (places::cache()?.join("plugins/components"), folder.join("cache"));
    let to = cache.join("plugins/components");
    std::fs::create_dir_all(&to)?;
    for entry in std::fs::read_dir(&from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(cache)
}

/// Processor time of the children that have ended, in steps of 10 ms (`proc(5)`, `cutime` and `cstime` of `stat`).
fn of_children() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(13).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(10 * ticks))
}

/// Time by the clock on the wall, and of processors.
fn generate(gateweave: &Gateweave, cache: &Path, out: &Path) -> Result<(Duration, Duration)> {
    let mut command = gateweave.command(["generate", "projects/ping", "--out"]);
    command.arg(out).env("GATEWEAVE_CACHE", cache);
    let (start, before) = (Instant::now(), of_children()?);
    run::output(&mut command)?;
    Ok((start.elapsed(), of_children()?.saturating_sub(before)))
}

fn row(stage: Stage, what: &'static str, times: Vec<(Duration, Duration)>, wanted: &'static str) -> Row {
    let (mut times, mut processor): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    times.sort();
    processor.sort();
    let middle = |list: &[Duration]| (list[(list.len() - 1) / 2] + list[list.len() / 2]) / 2;
    let median = middle(&times);
    stage.done(&format!("median {}", shown(median)));
    Row { what, median, least: times[0], most: times[times.len() - 1], processor: middle(&processor), wanted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_of_the_area() {
        let clock = |name: &str, reached: f64| json!({ "name": name, "asked_mhz": 62.5, "reached_mhz": reached });
        let report = json!({ "lut": { "used": 9 }, "ff": { "used": 8 }, "block-ram": { "used": 7 }, "clocks": [clock("sys", 80.26), clock("x", 70.0)] });
        let mut table = String::new();
        area_row(1, &report, &mut table).unwrap();
        let wanted = "| | TRELLIS_COMB | TRELLIS_FF | DP16KD | sys, 62.5 MHz asked | x, 62.5 MHz asked |\n|---|---|---|---|---|---|\n\
                      | `projects/ping`, seed 1 | 9 | 8 | 7 | 80.3 MHz | 70.0 MHz |\n";
        assert_eq!(table, wanted);
        assert!(area_row(1, &json!({ "clocks": [] }), &mut table).is_err());
    }
}
