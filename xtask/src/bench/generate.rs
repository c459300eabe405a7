//! How long the HDL takes from the project file.

use crate::gateweave::Gateweave;
use crate::stage::Stage;
use crate::{places, run};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
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

/// The table.
pub fn run(gateweave: &Gateweave) -> Result<String> {
    let mut times =
        format!("| release build, {RUNS} runs | median | least | most | processor time | wanted |\n|---|---|---|---|---|---|\n");
    for Row { what, median, least, most, processor, wanted } in [cold(gateweave)?, unchanged(gateweave)?] {
        writeln!(times, "| {what} | {} | {} | {} | {} | {wanted} |", shown(median), shown(least), shown(most), shown(processor))?;
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    writeln!(
        times,
        "\nMeasured on {cores} cores with a load average of {}; processor time is the median's, all cores together.",
        load.split(' ').next().unwrap_or("?")
    )?;
    Ok(times)
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
