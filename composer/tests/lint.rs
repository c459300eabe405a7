//! What is emitted for a whole project passes `verilator --lint-only -Wall`, with the waivers that go with it and no others.

mod hdl_common;

use std::path::Path;

use gateweave::cache::Cache;
use gateweave::hdl::Emitted;
use gateweave::pipeline::generate::{Options, generate};
use gateweave::plugin::types::Target;
use gateweave::tools::{Origin, Talk, Tools};

fn lint(target: Target) {
    let cache = Cache::open().expect("a cache");
    let out = tempfile::tempdir().expect("a folder");
    let options = Options { dir: hdl_common::root().join("projects/ping"), out: Some(out.path().to_owned()), target };
    let (generated, _) = generate(&options, &cache).unwrap_or_else(|d| panic!("{d:?}"));
    let read = |path: &Path| std::fs::read_to_string(out.path().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let waivers = generated.files.iter().find(|p| p.ends_with("lint.vlt")).expect("waivers are emitted");
    let mut files = vec![Emitted { path: "lint.vlt".to_owned(), text: read(waivers) }];
    for path in &generated.system_verilog {
        files.push(Emitted { path: path.to_string_lossy().into_owned(), text: read(path) });
    }
    assert!(files.len() > 20, "only {} files", files.len());
    let tools = Tools::new(cache, Origin::Pinned, Talk::Quiet).expect("tools.lock");
    let primitives = if target == Target::Fpga { tools.primitives(gateweave::build::family::Family::Ecp5).expect("cells") } else { Vec::new() };
    let messages = hdl_common::verilator().lint(&files, &generated.top, &primitives).unwrap_or_else(|d| panic!("{}: {}", d.code, d.message));
    assert!(messages.is_empty(), "{messages:#?}");
}

#[test]
fn the_bitstreams_hdl_is_free_of_lint() {
    lint(Target::Fpga);
}

#[test]
fn the_simulations_hdl_is_free_of_lint() {
    lint(Target::Simulation);
}
