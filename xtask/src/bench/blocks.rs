//! What blocks take by themselves on the Colorlight i5's part, beside the budget that the endpoint was planned with.

use crate::gateweave::Gateweave;
use crate::run;
use crate::stage::Stage;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A block, placed alone.
struct Block {
    name: &'static str,
    /// Folder, module and parameters for `gateweave plugin size`.
    folder: &'static str,
    top: &'static str,
    params: &'static str,
    /// `TRELLIS_COMB` that were planned, where something was.
    budget: Option<u64>,
}

const BLOCKS: [Block; 8] = [
    Block { name: "transport and CM, 1 queue pair", folder: "plugins/cm", top: "bench_endpoint", params: "QPS=1", budget: Some(10_000) },
    Block { name: "transport and CM, 4 queue pairs", folder: "plugins/cm", top: "bench_endpoint", params: "QPS=4", budget: Some(10_500) },
    Block { name: "transport and CM, 16 queue pairs", folder: "plugins/cm", top: "bench_endpoint", params: "QPS=16", budget: None },
    Block { name: "transport and CM, 64 queue pairs", folder: "plugins/cm", top: "bench_endpoint", params: "QPS=64", budget: None },
    Block {
        name: "transport and CM, 4 queue pairs, with their counters",
        folder: "plugins/cm",
        top: "bench_endpoint",
        params: "QPS=4 COUNTED=1",
        budget: None,
    },
    Block { name: "SDRAM", folder: "plugins/dram-dma", top: "bench_sdram", params: "", budget: Some(1_800) },
    Block { name: "keys and rping", folder: "plugins/key-exchanger", top: "bench_key_exchanger", params: "", budget: Some(800) },
    Block { name: "bench", folder: "plugins/rdma-bench", top: "bench_rdma_bench", params: "", budget: Some(1_200) },
];

/// The table, the records, and the blocks that take more than their budget and a tenth.
pub fn run(gateweave: &Gateweave) -> Result<(String, Vec<Value>, Vec<String>)> {
    let mut table = String::from("| block | TRELLIS_COMB | planned | TRELLIS_FF | DP16KD |\n|---|---|---|---|---|\n");
    let (mut records, mut over) = (Vec::new(), Vec::new());
    for block in BLOCKS {
        let stage = Stage::start(&format!("{} alone", block.name));
        let mut command =
            gateweave.command(["plugin", "size", block.folder, "--top", block.top, "--params", block.params, "--format", "json"]);
        let text = run::output(&mut command)?;
        let said = serde_json::from_str::<Value>(&text).with_context(|| format!("reading what `plugin size` said: {text}"))?;
        let size = &said["data"];
        let used = |key: &str| size[key]["used"].as_u64().with_context(|| format!("`plugin size` says nothing of `{key}`"));
        let (luts, ffs, rams) = (used("luts")?, used("ffs")?, used("block_rams")?);
        let planned = block.budget.map_or(String::new(), |budget| budget.to_string());
        let row = format!("| {} | {luts} | {planned} | {ffs} | {rams} |", block.name);
        writeln!(table, "{row}")?;
        if let Some(budget) = block.budget.filter(|budget| too_much(luts, *budget)) {
            over.push(format!("{}: {luts} TRELLIS_COMB, {budget} were planned", block.name));
        }
        records.push(json!({
            "block": block.name, "params": block.params, "lut4": luts, "ff": ffs, "bram": rams, "planned-lut4": block.budget,
        }));
        stage.done(&row);
    }
    Ok((table, records, over))
}

/// More than the budget and a tenth of it.
fn too_much(luts: u64, budget: u64) -> bool {
    luts * 10 > budget * 11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_more_is_allowed() {
        assert!(!too_much(11_000, 10_000));
        assert!(too_much(11_001, 10_000));
    }
}
