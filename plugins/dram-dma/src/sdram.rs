//! The SDR SDRAM backend: the chip's times in cycles, and what the board says of the chip.

use gateweave_sdk::prelude::*;

use crate::{Params, multiple};

/// How far the chip's clock may be off.
pub const TOLERANCE_PPM: u32 = 10_000;

/// Times in ns that every usual grade of a 2M x 32 chip keeps (the slowest has 70 ns from row to row). An assumption where a
/// board file does not name the grade; the model of the simulation checks the same.
const T_RP: u32 = 20;
const T_RCD: u32 = 20;
const T_RAS: u32 = 45;
const T_RFC: u32 = 70;
const T_WR: u32 = 15;
/// Clock cycles from the last word written to the precharge, at least.
const T_WR_CYCLES: u32 = 2;
/// 4096 refreshes in 64 ms, and a little less.
const T_REFI: u32 = 15_600;
/// Power-up takes 200 us.
const POWER_UP: u32 = 200_000;

/// `DQ_W` of the controller.
const DATA_BITS: u64 = 32;

/// Words of a command (`CUT_W` of the controller).
const COMMAND: u32 = 16;
/// Cycles by which a turn may be longer, when words written in part are in it.
const PART: u32 = 2;
/// Cycles of the system clock on the way there and back, and the slowest that is planned.
const SYSTEM_CYCLES: u32 = 6;
const SYSTEM_NS: u32 = 20;

/// Cycles of at least `ns`.
fn cycles(ns: u32, mhz: u32) -> u32 {
    (ns * mhz).div_ceil(1000)
}

/// From a read's address to its first word, at the worst: a turn of writes has just begun with a row of its own, or a
/// refresh; then the read's own row, in whose bank another is open after a write. Nobody else reads. A refresh that is due lets the read go first.
pub fn worst_stall_ns(mhz: u32) -> u64 {
    let t = |ns| cycles(ns, mhz);
    let recover = t(T_WR).max(T_WR_CYCLES);
    let row = recover + t(T_RP) + t(T_RCD);
    let write = row + COMMAND + PART;
    let refresh = recover + t(T_RP) + t(T_RFC);
    let close = recover + t(T_RP);
    // Across to the chip's clock, looked up, and the way of a word back.
    let own = 4 + 2 + t(T_RCD) + 7;
    u64::from((((write + close).max(refresh) + own) * 1000).div_ceil(mhz) + SYSTEM_CYCLES * SYSTEM_NS)
}

/// The binary logarithm of a fact of the chip.
fn bits(chip: &Peer, fact: &str) -> Result<u32, Diagnostics> {
    match chip.prop_u64(fact) {
        Some(n) if n.is_power_of_two() => Ok(n.ilog2()),
        Some(n) => Err(Diagnostic::error("chip", "", format!("the chip has {n} {fact}, not a power of two")).into()),
        None => Err(Diagnostic::error("chip", "", format!("the board file does not say how many {fact} the chip has")).into()),
    }
}

pub fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
    let Some(link) = plan.link("chip") else {
        return Err(Diagnostic::error("chip", "", "no chip is linked").into());
    };
    let chip = &link.peer;
    let data = chip.prop_u64("data-bits").unwrap_or(DATA_BITS);
    if data != DATA_BITS {
        return Err(Diagnostic::error("chip", "", format!("the chip is {data} bits wide; the controller is made for {DATA_BITS}")).into());
    }
    let (rows, banks, columns) = (bits(chip, "rows")?, bits(chip, "banks")?, bits(chip, "columns")?);
    if columns > 10 {
        return Err(Diagnostic::error("chip", "", format!("{} columns are too many; 1024 are possible", 1u64 << columns)).into());
    }
    let words = rows + banks + columns;
    multiple(plan.params.base, 4 << words)?;
    // The longest that the chip offers: it gives its words the most time on their way.
    let latencies = chip.prop("cas-latency").and_then(|l| l.as_array().cloned()).unwrap_or_default();
    let latency = latencies.iter().filter_map(|l| l.as_u64()).filter(|l| *l <= 3).max().unwrap_or(3);
    let mhz = plan.params.clock_mhz;
    let t = |ns| cycles(ns, mhz);
    let refresh = T_REFI * mhz / 1000;
    // Counted in refresh intervals. A simulation does not wait for it.
    let power_up = if plan.target == Target::Simulation { 1 } else { (POWER_UP * (mhz / 10) / 100).div_ceil(refresh) + 1 };
    Ok(Output::new("sdram")
        .parameter("BASE", format!("64'h{:08x}", plan.params.base))
        .parameter("ROW_W", rows)
        .parameter("BA_W", banks)
        .parameter("COL_W", columns)
        .parameter("MASKS", chip.prop_str("byte-mask").as_deref() == Some("pins"))
        .parameter("CL", latency)
        .parameter("T_RP", t(T_RP))
        .parameter("T_RCD", t(T_RCD))
        .parameter("T_RAS", t(T_RAS))
        .parameter("T_RFC", t(T_RFC))
        .parameter("T_WR", t(T_WR).max(T_WR_CYCLES))
        .parameter("T_REFI", refresh)
        .parameter("POWER_UP", power_up)
        .sources(sources![
            "hdl/events_pkg.veryl",
            "hdl/sdram_pins.veryl",
            "hdl/sdram_core.veryl",
            "hdl/sdram_front.veryl",
            "hdl/sdram.veryl"
        ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        assert_eq!([T_RP, T_RCD, T_RAS, T_RFC, T_WR].map(|ns| cycles(ns, 100)), [2, 2, 5, 7, 2]);
        assert_eq!([T_RP, T_RCD, T_RAS, T_RFC, T_WR].map(|ns| cycles(ns, 125)), [3, 3, 6, 9, 2]);
    }

    #[test]
    fn a_stall_is_shorter_at_a_faster_clock() {
        assert_eq!(worst_stall_ns(100), 550);
        assert!(worst_stall_ns(125) < worst_stall_ns(100));
    }
}
