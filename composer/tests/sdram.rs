//! The SDRAM of the Colorlight i5 in the simulation: words come back as they were written, and the model refuses a controller that
//! breaks a rule of the chip.

use std::path::Path;

use gateweave::cache::Cache;
use gateweave::pipeline::generate::Options;
use gateweave::pipeline::simulate::simulation;
use gateweave::plugin::types::Target;
use gateweave::sim::{self, RunOptions, SimPlan, Trace};
use gateweave::tools::{Origin, Talk, Tools};

fn plan() -> (SimPlan, Tools) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open().expect("a cache");
    let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Quiet).expect("tools");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().expect("composer/");
    let text = format!(
        "schema = 1\nproject = {{ name = \"sdram\", board = \"colorlight-i5\", plugins = [\"{0}/../plugins\", \"{0}/tests/plugins\"] }}\n\
         [instance.ram]\nplugin = \"dram-dma\"\nparams = {{ backend = \"sdram\" }}\nlinks = {{ chip = \"board.sdram0\" }}\n\
         [instance.scribe]\nplugin = \"scribe\"\nlinks = {{ memory = \"ram.memory\" }}\n",
        root.display()
    );
    std::fs::write(folder.path().join("project.toml"), text).expect("a file");
    let options = Options { dir: folder.path().to_owned(), out: Some(folder.path().join("out")), target: Target::Simulation };
    let (_, plan, _) = simulation(&options, &cache).unwrap_or_else(|d| panic!("{:?}", d.0));
    (plan, tools)
}

/// What the model of the chip says at the end, or the code and text of what ended the run.
fn run(plan: &SimPlan, tools: &Tools) -> Result<String, (String, String)> {
    let simulator = sim::build(plan, Trace::None, tools).unwrap_or_else(|d| panic!("{}", d.message));
    match sim::run(&simulator, &RunOptions { until_fs: Some(1_000_000_000_000), ..RunOptions::default() }) {
        Ok(summary) => Ok(summary.resources.iter().find(|r| r.name == "sdram0").expect("sdram0").shown.clone()),
        Err(d) => Err((d.0[0].code.to_owned(), d.0[0].message.clone())),
    }
}

#[test]
fn words_come_back_as_they_were_written() {
    let (plan, tools) = plan();
    let shown = run(&plan, &tools).unwrap_or_else(|e| panic!("{e:?}"));
    // 100 bursts of 16 words, each word written whole and then in part (a read and a write), and read back.
    assert!(shown.starts_with("3200 words read, 3200 written, "), "{shown}");
}

#[test]
fn a_controller_that_breaks_a_rule_ends_the_run() {
    let (mut plan, tools) = plan();
    let given = regex::Regex::new(r"\.T_RP\s*\(\s*2").expect("a pattern");
    let top = plan.files.iter_mut().find(|f| given.is_match(&f.text)).expect("the top level");
    top.text = given.replacen(&top.text, 0, ".T_RP(1").into_owned();
    let (code, message) = run(&plan, &tools).expect_err("a precharge that is too short");
    assert_eq!(code, "GW0721");
    assert!(message.contains("ns after a precharge"), "{message}");
}
