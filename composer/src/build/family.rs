//! Synthesis for a family without placing it: what can be checked of a design
//! whose only complete flow is the vendor's.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::build::Step;
use crate::build::yosys::{self, Synthesis};
use crate::diag::Diagnostic;
use crate::hdl::Emitted;
use crate::tools::{Tools, Used};

/// A family that Yosys synthesizes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Lattice ECP5.
    Ecp5,
    /// Xilinx 7 series.
    Xc7,
    /// Xilinx UltraScale.
    Xcu,
    /// Xilinx UltraScale+.
    Xcup,
}

impl Family {
    /// The family of this name: `ecp5`, `xc7`, `xcu`, `xcup`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ecp5" => Self::Ecp5,
            "xc7" => Self::Xc7,
            "xcu" => Self::Xcu,
            "xcup" => Self::Xcup,
            _ => return None,
        })
    }

    /// Files of Yosys' own folder that hold the family's primitives as black boxes.
    pub fn primitives(self) -> &'static [&'static str] {
        match self {
            Self::Ecp5 => &["ecp5/cells_bb.v"],
            Self::Xc7 | Self::Xcu | Self::Xcup => &["xilinx/cells_xtra.v"],
        }
    }

    /// Black boxes of the primitives that are not in those files.
    pub fn black_boxes(self) -> &'static str {
        match self {
            Self::Ecp5 => include_str!("../../hdl/io/ecp5/black_boxes.v"),
            Self::Xc7 | Self::Xcu | Self::Xcup => include_str!("../../../templates/vendor/cells.sv"),
        }
    }

    fn command(self, top: &str) -> String {
        match self {
            Self::Ecp5 => format!("synth_ecp5 -abc9 -top {top}"),
            Self::Xc7 => format!("synth_xilinx -family xc7 -flatten -top {top}"),
            Self::Xcu => format!("synth_xilinx -family xcu -flatten -top {top}"),
            Self::Xcup => format!("synth_xilinx -family xcup -flatten -top {top}"),
        }
    }
}

/// What a synthesis used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Synthesized {
    /// The family.
    pub family: Family,
    /// Look-up tables, those that carry chains or RAM use included.
    pub luts: u64,
    /// Flip-flops.
    pub ffs: u64,
    /// Block RAMs: DP16KD of ECP5; RAMB36 of Xilinx, two RAMB18 counting as one.
    pub block_rams: f64,
    /// UltraRAMs.
    pub ultra_rams: u64,
    /// Multiplier blocks.
    pub dsps: u64,
    /// Every cell type and how often it is used.
    pub cells: BTreeMap<String, u64>,
    /// The step.
    pub step: Step,
    /// The tool.
    pub tool: Used,
    /// The log of Yosys.
    pub log: PathBuf,
}

/// Synthesizes `files` for a family and counts what it takes. The log goes to `out/logs/`.
///
/// # Errors
/// Those of the tool, `GW0610` (Yosys refuses the design), `GW0617` (its statistics are not readable).
pub fn synthesize_only(
    tools: &Tools,
    family: Family,
    files: &[Emitted],
    top: &str,
    out: &std::path::Path,
) -> Result<Synthesized, Diagnostic> {
    let yosys = tools.yosys()?;
    let commands = [family.command(top), "tee -q -o statistics.json stat -json".into()];
    let log = out.join("logs/yosys.log");
    let job = Synthesis { files, top, parameters: &[], family, commands: &commands, log: &log };
    let stored = yosys::run(tools, &yosys, &job)?;
    let text = fs::read_to_string(stored.folder.join("statistics.json")).map_err(|e| tools.cache.trouble(&e))?;
    let cells = cells(&text).map_err(|why| Diagnostic::error("GW0617", format!("what Yosys counted is not readable: {why}")))?;
    let step = Step { name: "synthesis", seconds: stored.seconds, cached: stored.cached };
    Ok(count(family, cells, step, yosys.used(), log))
}

/// Cell types and their numbers from `stat -json`.
fn cells(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let by_type = json.pointer("/design/num_cells_by_type").and_then(Value::as_object).ok_or("it has no `num_cells_by_type`")?;
    by_type.iter().map(|(name, n)| n.as_u64().map(|n| (name.clone(), n)).ok_or_else(|| format!("`{name}` has no number"))).collect()
}

fn count(family: Family, cells: BTreeMap<String, u64>, step: Step, tool: Used, log: PathBuf) -> Synthesized {
    let sum = |matches: &dyn Fn(&str) -> u64| cells.iter().map(|(name, n)| matches(name) * n).sum::<u64>();
    let (luts, ffs, half_rams, ultra_rams, dsps);
    if family == Family::Ecp5 {
        // A carry cell and a RAM cell take two and four look-up tables of a slice.
        luts = sum(&|c| match c {
            "LUT4" => 1,
            "CCU2C" => 2,
            "TRELLIS_DPR16X4" => 4,
            _ => 0,
        });
        ffs = sum(&|c| u64::from(c == "TRELLIS_FF"));
        half_rams = 2 * sum(&|c| u64::from(c == "DP16KD"));
        ultra_rams = 0;
        dsps = sum(&|c| u64::from(c == "MULT18X18D"));
    } else {
        luts = sum(&|c| match c {
            // Vivado makes an inverter a LUT1.
            "INV" | "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "LUT6_2" | "SRL16E" | "SRLC16E" | "SRLC32E" => 1,
            "RAM32X1S" | "RAM64X1S" => 1,
            "RAM32X1D" | "RAM64X1D" | "RAM128X1S" => 2,
            "RAM32M" | "RAM64M" | "RAM128X1D" | "RAM256X1S" => 4,
            "RAM32M16" | "RAM64M8" | "RAM256X1D" | "RAM512X1S" => 8,
            _ => 0,
        });
        ffs = sum(&|c| u64::from(matches!(c, "FDRE" | "FDSE" | "FDCE" | "FDPE" | "FDRE_1" | "FDSE_1" | "FDCE_1" | "FDPE_1")));
        half_rams = sum(&|c| match c {
            "RAMB18E1" | "RAMB18E2" => 1,
            "RAMB36E1" | "RAMB36E2" => 2,
            _ => 0,
        });
        ultra_rams = sum(&|c| u64::from(c == "URAM288"));
        dsps = sum(&|c| u64::from(matches!(c, "DSP48E1" | "DSP48E2")));
    }
    Synthesized { family, luts, ffs, block_rams: half_rams as f64 / 2.0, ultra_rams, dsps, cells, step, tool, log }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Origin;

    #[test]
    fn cells_become_resources() {
        let text = r#"{"design":{"num_cells_by_type":{"LUT6":10,"SRL16E":2,"RAM32M":3,"FDRE":7,"FDSE":1,"RAMB18E2":1,"RAMB36E2":2,"DSP48E2":4,"CARRY8":9}}}"#;
        let step = Step { name: "synthesis", seconds: 1.0, cached: false };
        let tool = Used { name: "yosys".into(), version: "0".into(), origin: Origin::Pinned };
        let counted = count(Family::Xcup, cells(text).unwrap(), step, tool, PathBuf::new());
        assert_eq!((counted.luts, counted.ffs, counted.block_rams, counted.dsps), (24, 8, 2.5, 4));
        assert!(cells("{}").is_err());
    }
}
