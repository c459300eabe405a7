//! `report.json` and the table that `gateweave build` prints.

use serde_json::{Value as Json, json};

use crate::build::Clock;
use crate::build::ecp5::Built;

/// The report of a placed design: what it uses, and each clock asked and reached.
pub fn json(project: &str, board: &str, built: &Built, plan: &Json) -> Json {
    json!({
        "project": project,
        "board": board,
        "lut": built.luts,
        "ff": built.ffs,
        "block-ram": built.block_rams,
        "dsp": built.dsps,
        "clocks": built.clocks,
        "io-delays": built.delays,
        "seed": built.seed,
        "tools": built.tools,
        "bitstream": built.bitstream,
        "plan": plan,
    })
}

/// Gives the clocks the names that the plan has: nextpnr names a clock by one of its nets.
pub fn name_clocks(clocks: &mut [Clock], plan: &Json) {
    let planned: Vec<(&str, f64)> = plan
        .get("clocks")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(|c| Some((c.get("name")?.as_str()?, c.get("hz")?.as_f64()? / 1e6)))
        .collect();
    let mut taken: Vec<&str> = Vec::new();
    let by_name = |net: &str| {
        planned.iter().find(|(name, _)| net.contains(&format!("clk_{name}")) || net.starts_with(&format!("{name}_"))).map(|(name, _)| *name)
    };
    let found: Vec<Option<&str>> = clocks.iter().map(|c| by_name(&c.name)).collect();
    taken.extend(found.iter().flatten());
    for (clock, found) in clocks.iter_mut().zip(found) {
        // What no net name tells, the frequency may: if one clock of the plan is left that has it.
        let left = planned.iter().filter(|(name, mhz)| !taken.contains(name) && clock.asked_mhz.is_some_and(|a| (a - mhz).abs() < 0.01));
        let left: Vec<&str> = left.map(|(name, _)| *name).collect();
        let name = found.or(if left.len() == 1 { left.first().copied() } else { None });
        if let Some(name) = name {
            clock.name = name.to_owned();
        }
    }
}

/// The same for people.
pub fn text(built: &Built) -> String {
    let mut out = String::new();
    let mut row = |name: &str, used: u64, available: u64| {
        let share = if available == 0 { 0.0 } else { 100.0 * used as f64 / available as f64 };
        out.push_str(&format!("  {name:<14} {used:>7} of {available:>7}  {share:>5.1} %\n"));
    };
    row("TRELLIS_COMB", built.luts.used, built.luts.available);
    row("TRELLIS_FF", built.ffs.used, built.ffs.available);
    row("DP16KD", built.block_rams.used, built.block_rams.available);
    row("MULT18X18D", built.dsps.used, built.dsps.available);
    for clock in &built.clocks {
        let asked = clock.asked_mhz.map_or_else(|| "no constraint".to_owned(), |a| format!("{a:.2} MHz asked"));
        let verdict = if clock.met { "met" } else { "MISSED" };
        out.push_str(&format!("  clock {:<22} {asked:>18}, {:>7.2} MHz reached, {verdict}\n", clock.name, clock.reached_mhz));
    }
    out.push_str(&format!("  bitstream      {}\n", built.bitstream.display()));
    out
}
