//! `cargo xtask test`: every test, stage by stage, with the time of each.
//!
//! A failed stage does not stop the ones that do not need it. The last line is `N passed, N failed`: single tests where a stage
//! counts them, else the stage itself.

use crate::accept;
use crate::demo::Report;
use crate::gateweave::Gateweave;
use crate::guest::image::{self, Image, Made};
use crate::interop::{self, Memory};
use crate::stage::Stage;
use crate::{boards, peer, places, run, setup};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Tests of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
}

/// How a stage ended.
struct Ended {
    name: String,
    count: Count,
    time: Duration,
}

#[derive(Default)]
struct Run {
    ended: Vec<Ended>,
}

impl Run {
    /// Runs one stage. Its summary and count come from `work`; an error is one failed test.
    fn stage<T>(&mut self, name: &str, work: impl FnOnce(&Stage) -> Result<(T, Count, String)>) -> Option<T> {
        let stage = Stage::start(name);
        let (value, count, time) = match work(&stage) {
            Ok((value, count, summary)) if count.failed == 0 => (Some(value), count, stage.done(&summary)),
            Ok((value, count, summary)) => (Some(value), count, stage.failed(&summary)),
            Err(error) => {
                stage.note(&format!("{error:#}").replace('\n', "\n          "));
                (None, Count { passed: 0, failed: 1 }, stage.failed(""))
            }
        };
        self.ended.push(Ended { name: name.to_string(), count, time });
        value
    }

    fn total(&self) -> Count {
        self.ended.iter().fold(Count::default(), |total, ended| Count {
            passed: total.passed + ended.count.passed,
            failed: total.failed + ended.count.failed,
        })
    }

    fn table(&self) -> String {
        let lines = self.ended.iter().map(|Ended { name, count, time }| {
            format!("{:8.1} s  {:5} passed  {:3} failed  {name}\n", time.as_secs_f64(), count.passed, count.failed)
        });
        lines.collect()
    }
}

/// The plugins with parameters for the conformance kit where one has no default.
const PLUGINS: [(&str, &str); 9] = [
    ("mac", "{}"),
    ("ip-udp", r#"{"mac":"02:47:57:00:00:01","ip":"192.168.7.2/24"}"#),
    ("udp-echo", "{}"),
    ("uart-regs", "{}"),
    ("dram-dma", "{}"),
    ("roce", "{}"),
    ("cm", r#"{"mac":"02:47:57:00:00:01"}"#),
    ("key-exchanger", r#"{"size":270336}"#),
    ("rdma-bench", r#"{"size":16384}"#),
];

/// Programs of Linux against the endpoint that the suite runs; `cargo xtask interop` has more.
const INTEROP: [&str; 8] =
    ["rping-once", "rping-sizes", "rdma-client", "ucmatose", "no-listener", "rdma-test-sizes", "killed-client", "board-calls"];

/// Seed of the benches, so that one source has one result. `--all` leaves it to chance, which finds more.
const SEED: &str = "1";

/// Programs of the peer in software that the suite runs; `cargo xtask peer` has more.
const PEER: [&str; 4] = ["drops", "requester-drops", "hostile", "faults"];

/// Those that it runs against the simulated i5: its pins, its SDRAM.
const INTEROP_I5: [&str; 4] = ["rping-once", "rdma-client", "no-listener", "rdma-test-sizes"];

const ONE: Count = Count { passed: 1, failed: 0 };

/// `all` adds every width and MTU, and the plugins' own benches.
pub fn run(all: bool) -> Result<ExitCode> {
    let mut tests = Run::default();
    let stage = Stage::start("set-up");
    let machine = setup::run(setup::Wants { guest: true }, &stage)?;
    stage.done("");

    let gateweave = tests.stage("build gateweave", |stage| Ok((Gateweave::build(stage)?, Count::default(), String::new())));
    tests.stage("tests of xtask", |stage| cargo_test(Path::new("Cargo.toml"), &["--package", "xtask"], "test-xtask", stage));
    tests.stage("tests of udp-check", |stage| cargo_test(Path::new("projects/ping/host/Cargo.toml"), &[], "test-udp-check", stage));
    tests.stage("tests of rdma-test", |stage| cargo_test(Path::new("projects/rdma/host/Cargo.toml"), &[], "test-rdma-test", stage));
    tests.stage("tests of roce-peer", |stage| cargo_test(Path::new("projects/rdma/peer/Cargo.toml"), &[], "test-roce-peer", stage));
    tests.stage("tests of the plugin SDK", |stage| {
        cargo_test(Path::new("plugins/Cargo.toml"), &["--package", "gateweave-sdk"], "test-sdk", stage)
    });
    let gateweave = gateweave.and_then(|gateweave| {
        tests.stage("build the plugins", |stage| {
            gateweave.build_plugins(stage)?;
            Ok((gateweave, Count::default(), String::new()))
        })
    });
    tests.stage("tests of gateweave", |stage| {
        let mut command = test_command(Path::new("Cargo.toml"), &["--package", "gateweave"])?;
        if all {
            command.env("GATEWEAVE_ALL_BENCHES", "1");
        } else {
            command.env("GATEWEAVE_SEED", SEED);
        }
        counted_test(command, "test-gateweave", stage)
    });
    if let Some(gateweave) = gateweave.as_ref().filter(|_| all) {
        for board in boards::all(gateweave).unwrap_or_default().into_iter().filter(|board| board != "sim") {
            tests.stage(&format!("projects/ping on {board}"), |stage| {
                boards::one(gateweave, &board, stage).map(|row| ((), ONE, row.sentence()))
            });
        }
    }
    tests.stage("tests of the pinned tools", |stage| {
        let scope = ["--package", "gateweave", "--test", "tools", "--", "--ignored", "--test-threads", "1"];
        cargo_test(Path::new("Cargo.toml"), &scope, "test-tools", stage)
    });
    if let Some(gateweave) = &gateweave {
        for (plugin, params) in PLUGINS {
            tests.stage(&format!("plugin check {plugin}"), |stage| {
                let arguments = ["plugin", "check", &format!("plugins/{plugin}"), "--params", params];
                gateweave.run(arguments, &format!("check-{plugin}"), Duration::from_secs(600), stage)?;
                Ok(((), ONE, String::new()))
            });
            if all {
                tests.stage(&format!("plugin test {plugin}"), |stage| {
                    let arguments = ["plugin", "test", &format!("plugins/{plugin}"), "--all"];
                    gateweave.run(arguments, &format!("benches-{plugin}"), Duration::from_secs(3600), stage)?;
                    Ok(((), ONE, String::new()))
                });
            }
        }
        tests.stage("bitstream of projects/ping", |stage| {
            let out = places::target()?.join("xtask/bitstream-ping");
            let arguments = ["build", "projects/ping", "--out", &out.to_string_lossy()];
            gateweave.run(arguments, "bitstream-ping", Duration::from_secs(1800), stage)?;
            let report = Report::read(&out.join("report.json"))?;
            anyhow::ensure!(report.timing_met(), "timing is not met: {}", report.timing());
            Ok(((), ONE, report.timing()))
        });
        // The rate through memory behind a controller that pauses and refreshes; with `--all` the named faults at the largest path MTU, too.
        let more = [("speed", Memory::Axi, 1024)].into_iter().chain(all.then_some(("faults", Memory::Bram, 4096)));
        for (program, memory, pmtu) in PEER.map(|program| (program, Memory::Bram, 256)).into_iter().chain(more) {
            tests.stage(&format!("peer against projects/rdma: {program}, {}, PMTU {pmtu}", memory.name()), |stage| {
                let (passed, wrong) = peer::short(gateweave, program, memory, pmtu, stage)?;
                Ok(((), Count { passed, failed: wrong.len() as u64 }, wrong.join("\n")))
            });
        }
    }
    let made = guest(&mut tests, machine.no_guest.as_deref());
    if let (Some(gateweave), Some((made, program))) = (&gateweave, &made) {
        for case in accept::cases(all) {
            tests.stage(&case.name(), |stage| {
                let figures = case.run(gateweave, made, program, stage)?;
                Ok(((), ONE, figures.sentence()))
            });
        }
    }

    if made.is_some() {
        let cases: &[&str] = if all { &[] } else { &INTEROP };
        for (name, cases, options) in [
            ("Linux RDMA programs against projects/rdma on board sim", cases, &[] as &[&str]),
            ("Linux RDMA programs against projects/rdma on the i5", &INTEROP_I5, &["--project", "projects/rdma"]),
        ] {
            tests.stage(name, |_| {
                let (passed, failed, faults) = interop::some(cases, options)?;
                Ok(((), Count { passed, failed }, faults))
            });
        }
    }

    let Count { passed, failed } = tests.total();
    println!("{}", tests.table());
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The guest and the harness by themselves, before any gateware is blamed.
fn guest(tests: &mut Run, no_guest: Option<&str>) -> Option<(Made, Vec<u8>)> {
    tests.stage("Linux guest against a responder", |stage| {
        if let Some(why) = no_guest {
            anyhow::bail!("NOT RUN: {why}");
        }
        let made = image::prepare(Image::Net, stage)?;
        let program = accept::ping::udp_check(stage)?;
        let load = accept::ping::Load { pings: 100, ..accept::ping::Load::full(1500) };
        let figures = accept::ping::against_responder(&made, &program, load, stage)?;
        Ok(((made, program), ONE, figures.sentence()))
    })
}

/// `cargo test --release` with its tests counted.
fn cargo_test(manifest: &Path, scope: &[&str], log: &str, stage: &Stage) -> Result<((), Count, String)> {
    counted_test(test_command(manifest, scope)?, log, stage)
}

fn test_command(manifest: &Path, scope: &[&str]) -> Result<Command> {
    let mut command = Command::new(places::cargo());
    command.args(["test", "--release", "--no-fail-fast", "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(target_for(manifest)?).args(scope).current_dir(places::root());
    Ok(command)
}

/// Runs a `cargo test` and adds up its results.
fn counted_test(mut command: Command, log: &str, stage: &Stage) -> Result<((), Count, String)> {
    let limit = Duration::from_secs(3600);
    match run::streaming_lines(&mut command, log, limit, stage) {
        Ok(lines) => {
            let count = counted(lines.iter().map(String::as_str));
            Ok(((), count, format!("{} passed", count.passed)))
        }
        // Failing tests are told by the error's text; a build that failed has no counts.
        Err(error) => {
            let file = places::target()?.join("xtask").join(format!("{log}.log"));
            let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            let mut count = counted(text.lines());
            count.failed = count.failed.max(1);
            stage.note(&format!("{error:#}").replace('\n', "\n          "));
            Ok(((), count, format!("{} passed, {} failed", count.passed, count.failed)))
        }
    }
}

/// The workspace's own target folder, and one beside it for crates outside the workspace.
fn target_for(manifest: &Path) -> Result<std::path::PathBuf> {
    let target = places::target()?;
    Ok(if manifest == Path::new("Cargo.toml") { target } else { target.join("hosts") })
}

/// Adds up cargo's lines `test result: ok. 3 passed; 0 failed; ...`.
fn counted<'a>(lines: impl Iterator<Item = &'a str>) -> Count {
    let number = |line: &str, word: &str| {
        let before = line.split(word).next()?;
        before.split_whitespace().last()?.parse::<u64>().ok()
    };
    lines.filter(|line| line.starts_with("test result:")).fold(Count::default(), |count, line| Count {
        passed: count.passed + number(line, " passed").unwrap_or(0),
        failed: count.failed + number(line, " failed").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_test_programs_add_up() {
        let text = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(counted(text.lines()), Count { passed: 4, failed: 2 });
    }
}
