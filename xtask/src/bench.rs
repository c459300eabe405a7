//! `cargo xtask bench`: measurements, as a table on stdout. Nothing here passes or fails; tests assert the work done instead.

use crate::gateweave::Gateweave;
use crate::stage::Stage;
use crate::{places, run, setup};
use anyhow::{Context, Result};
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

    let rows = [cold(&gateweave)?, unchanged(&gateweave)?];
    println!("| measured (release build, {RUNS} runs) | median | least | most | wanted |");
    println!("|---|---|---|---|---|");
    for Row { what, median, least, most, wanted } in rows {
        println!("| {what} | {} | {} | {} | {wanted} |", shown(median), shown(least), shown(most));
    }
    Ok(ExitCode::SUCCESS)
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

fn generate(gateweave: &Gateweave, cache: &Path, out: &Path) -> Result<Duration> {
    let mut command = gateweave.command(["generate", "projects/ping", "--out"]);
    command.arg(out).env("GATEWEAVE_CACHE", cache);
    let start = Instant::now();
    run::output(&mut command)?;
    Ok(start.elapsed())
}

fn row(stage: Stage, what: &'static str, mut times: Vec<Duration>, wanted: &'static str) -> Row {
    times.sort();
    let median = (times[(times.len() - 1) / 2] + times[times.len() / 2]) / 2;
    stage.done(&format!("median {}", shown(median)));
    Row { what, median, least: times[0], most: times[times.len() - 1], wanted }
}
