//! Memory behind the AXI4 port of a controller from elsewhere, in the simulation: words come back as they were written, on clocks and widths of
//! the memory's own, and the model refuses a client that breaks a rule of the bus.

use std::path::Path;

use gateweave::cache::Cache;
use gateweave::pipeline::generate::Options;
use gateweave::pipeline::simulate::simulation;
use gateweave::plugin::types::Target;
use gateweave::sim::{self, RunOptions, SimPlan, Trace};
use gateweave::tools::{Origin, Talk, Tools};

fn plan(resource: &str, clock: &str) -> (SimPlan, Tools) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open().expect("a cache");
    let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Quiet).expect("tools");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().expect("composer/");
    let text = format!(
        "schema = 1\nproject = {{ name = \"controller\", board = \"sim\", plugins = [\"{0}/../plugins\", \"{0}/tests/plugins\"] }}\n\
         clocks = {{ sys = \"{clock}\" }}\n\
         [instance.ram]\nplugin = \"dram-dma\"\nparams = {{ backend = \"axi\" }}\nlinks = {{ controller = \"board.{resource}\" }}\n\
         [instance.scribe]\nplugin = \"scribe\"\nlinks = {{ memory = \"ram.memory\" }}\n",
        root.display()
    );
    std::fs::write(folder.path().join("project.toml"), text).expect("a file");
    let options = Options { dir: folder.path().to_owned(), out: Some(folder.path().join("out")), target: Target::Simulation };
    let (_, plan, _) = simulation(&options, &cache).unwrap_or_else(|d| panic!("{:?}", d.0));
    (plan, tools)
}

/// What the model says at the end, or the code and text of what ended the run.
fn run(plan: &SimPlan, tools: &Tools) -> Result<String, (String, String)> {
    let simulator = sim::build(plan, Trace::None, tools).unwrap_or_else(|d| panic!("{}", d.message));
    match sim::run(&simulator, &RunOptions { until_fs: Some(1_000_000_000_000), ..RunOptions::default() }) {
        Ok(summary) => Ok(summary.resources.iter().find(|r| r.class == "axi4-memory").expect("the memory").shown.clone()),
        Err(d) => Err((d.0[0].code.to_owned(), d.0[0].message.clone())),
    }
}

/// 100 bursts of 16 words of 32 bits, each burst written whole and then in part, and read back. A burst begins at a multiple of its length.
#[test]
fn words_come_back_as_they_were_written() {
    for (resource, clock, beats) in
        [("ddr0", "62.5 MHz", 1), ("ddr0", "322.265625 MHz", 1), ("ddr1", "62.5 MHz", 4), ("ddr1", "100 MHz", 4)]
    {
        let (plan, tools) = plan(resource, clock);
        let shown = run(&plan, &tools).unwrap_or_else(|e| panic!("{e:?}"));
        let begins = format!("{} words read, {} written, ", 100 * beats, 200 * beats);
        assert!(shown.starts_with(&begins), "{resource}, {clock}: {shown}");
    }
}

#[test]
fn a_client_that_breaks_a_rule_ends_the_run() {
    let (mut plan, tools) = plan("ddr1", "62.5 MHz");
    plan.resources[0].facts["mbytes"] = 1.into();
    let (code, message) = run(&plan, &tools).expect_err("an address that the memory does not have");
    assert_eq!(code, "GW0722");
    assert!(message.contains("is outside of the memory"), "{message}");
}
