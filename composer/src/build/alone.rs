//! One module placed without pins: what a block takes by itself.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::build::ecp5::{self, Part, Placement, Report, unreadable};
use crate::build::{Clock, Usage};
use crate::diag::Diagnostics;
use crate::hdl::Emitted;
use crate::tools::Tools;

/// A module to place.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// SystemVerilog, in order of dependency.
    pub files: &'a [Emitted],
    /// The module.
    pub top: &'a str,
    /// Its parameters, names and values.
    pub parameters: &'a [(String, String)],
    /// The part.
    pub part: &'a Part,
    /// MHz asked of every clock.
    pub mhz: f64,
    /// Seed of the placement.
    pub seed: u32,
    /// Folder for netlist, placed design and logs.
    pub out: &'a Path,
}

/// What a module takes and how fast it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Size {
    /// `TRELLIS_COMB` as nextpnr counts them.
    pub luts: Usage,
    /// `TRELLIS_FF`.
    pub ffs: Usage,
    /// `DP16KD`, 18 Kbit each.
    pub block_rams: Usage,
    /// `MULT18X18D`.
    pub dsps: Usage,
    /// Clocks, by name. Ways from and to the module's ports are not counted: there is no pin at their end.
    pub clocks: Vec<Clock>,
}

/// Synthesizes and places a module whose ports are not pins. A clock that misses its frequency is a figure, not an error.
///
/// # Errors
/// Those of [`ecp5::synthesize`] and [`ecp5::place`], `GW0617` (a report that is not readable).
pub fn size(tools: &Tools, job: &Job) -> Result<Size, Diagnostics> {
    let io = |e: io::Error| Diagnostics::from(tools.cache.trouble(&e));
    let synthesized = ecp5::synthesize(tools, job.files, job.top, job.parameters, &job.out.join("logs/yosys.log"))?;
    let netlist = job.out.join("netlist.json");
    let text = fs::read_to_string(synthesized.folder.join("netlist.json")).map_err(io)?;
    fs::create_dir_all(job.out).map_err(io)?;
    fs::write(&netlist, without_ports(&text, job.top).map_err(unreadable)?).map_err(io)?;
    let placement = Placement {
        netlist: &netlist,
        top: job.top,
        part: job.part,
        lpf: "",
        mhz: job.mhz,
        out_of_context: true,
        seed: job.seed,
        out: job.out,
    };
    let placed = ecp5::place(tools, &placement)?;
    let text = fs::read_to_string(placed.folder.join("timing.json")).map_err(io)?;
    let report = Report::parse(&text).map_err(unreadable)?;
    let usage = |name| report.usage(name);
    Ok(Size {
        luts: usage("TRELLIS_COMB"),
        ffs: usage("TRELLIS_FF"),
        block_rams: usage("DP16KD"),
        dsps: usage("MULT18X18D"),
        clocks: report.clocks.clone(),
    })
}

/// A netlist of Yosys whose module `top` has lost its ports, so that nextpnr seeks no pins for them; the nets stay.
fn without_ports(netlist: &str, top: &str) -> Result<String, String> {
    let mut json: Value = serde_json::from_str(netlist).map_err(|e| e.to_string())?;
    let ports = json.pointer_mut(&format!("/modules/{top}/ports")).and_then(Value::as_object_mut);
    ports.ok_or_else(|| format!("the netlist has no module `{top}`"))?.clear();
    Ok(json.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_go_and_nets_stay() {
        let netlist = r#"{"modules":{"a":{"ports":{"clk":{"bits":[2]}},"netnames":{"clk":{"bits":[2]}}},"b":{"ports":{"x":{}}}}}"#;
        let made: Value = serde_json::from_str(&without_ports(netlist, "a").unwrap()).unwrap();
        assert_eq!(made.pointer("/modules/a/ports"), Some(&serde_json::json!({})));
        assert!(made.pointer("/modules/a/netnames/clk").is_some() && made.pointer("/modules/b/ports/x").is_some());
        assert!(without_ports(netlist, "c").unwrap_err().contains("`c`"));
    }
}
