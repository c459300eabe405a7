//! From a project to a simulator.

use serde_json::json;

use super::generate::{Generated, Options, generate};
use crate::cache::Cache;
use crate::compose::graph::End;
use crate::diag::{Diagnostic, Diagnostics};
use crate::emit::clocks::SIMULATION_RESET;
use crate::plugin::types::Target;
use crate::sim::{Clock, PinDelay, Reset, Resource, SimPlan, SvFile};

/// Generates for simulation and describes the result to the harness.
///
/// # Errors
/// Everything that is wrong with the project.
pub fn simulation(options: &Options, cache: &Cache) -> Result<(Generated, SimPlan, Diagnostics), Diagnostics> {
    let options = Options { target: Target::Simulation, ..options.clone() };
    let (made, warnings) = generate(&options, cache)?;
    let path = made.out.join("sim/plan.json");
    let text = std::fs::read(&path).map_err(|e| Diagnostic::error("GW0111", format!("cannot read `{}`: {e}", path.display())))?;
    let mut plan: SimPlan = serde_json::from_slice(&text)
        .map_err(|e| Diagnostic::error("GW0111", format!("`{}` is not what was written: {e}", path.display())))?;
    for path in &made.system_verilog {
        let whole = made.out.join(path);
        let text =
            std::fs::read_to_string(&whole).map_err(|e| Diagnostic::error("GW0111", format!("cannot read `{}`: {e}", whole.display())))?;
        let below = path.strip_prefix("sim/hdl").unwrap_or(path);
        plan.files.push(SvFile { path: below.to_string_lossy().into_owned(), text });
    }
    Ok((made, plan, warnings))
}

/// Femtoseconds of one period.
pub fn period_fs(hz: u64) -> u64 {
    (1e15 / hz.max(1) as f64).round() as u64
}

/// What the harness must know, without the files.
pub fn sim_plan(design: &super::generate::Design, top: &str) -> SimPlan {
    let e = &design.elaborated;
    let mut plan = SimPlan { top: top.to_owned(), ..SimPlan::default() };
    for made in &design.clocks.made {
        let net = e.plan.clocks.iter().find(|c| c.name == made.name);
        let period = period_fs(made.made_hz);
        let phase = net.map_or(0, |n| (i128::from(period) * i128::from(n.phase_mdeg.rem_euclid(360_000)) / 360_000) as u64);
        plan.clocks.push(Clock { port: format!("clk_{}", made.name), period_fs: period, phase_fs: phase });
    }
    plan.resets.push(Reset { port: SIMULATION_RESET.to_owned(), active_low: false });
    for used in &design.resources {
        let Some(resource) = e.board.resource(&used.name) else { continue };
        let link =
            e.plan.links.iter().find(|l| matches!(&e.graph.edges[l.edge].provider, End::Board { resource } if *resource == used.name));
        let port = e.board_plan.ports.iter().find(|p| p.name == used.name);
        let mut facts = json!({});
        for (key, value) in port.map(|p| p.props.clone()).unwrap_or_default() {
            facts[key] = value;
        }
        let clock = e.plan.clocks.iter().find(|c| c.resource.as_deref() == Some(&used.name));
        plan.resources.push(Resource {
            name: super::super::emit::top::ident(&used.name),
            class: resource.class.name.clone(),
            facts,
            width: link.map_or(0, |l| l.provider.width),
            period_fs: clock.map_or(0, |c| period_fs(c.hz)),
            clock_port: None,
            delays: delays(design, resource),
        });
    }
    plan
}

/// The delay cells at the pins of an RGMII port, as the plugin on it set them (`RX_PS`, `TX_PS` of its top module): what the
/// HDL has, so that a plugin that ignores the board's delays fails in the model's window.
fn delays(design: &super::generate::Design, resource: &crate::manifest::board::Resource) -> Vec<PinDelay> {
    if resource.class.name != "rgmii" {
        return Vec::new();
    }
    let e = &design.elaborated;
    let client = e.graph.edges.iter().find_map(|edge| match (&edge.provider, &edge.client) {
        (End::Board { resource: r }, End::Port { node, .. }) if *r == resource.name.value => design.outputs.get(*node),
        _ => None,
    });
    let set = |key: &str| {
        let value = client?.parameters.iter().find(|(name, _)| name == key)?.1.as_u64()?;
        (value > 0).then_some(value)
    };
    let mut list = Vec::new();
    if let Some(ps) = set("RX_PS") {
        list.extend(["rx_ctl", "rx_data"].map(|pin| PinDelay { pin: pin.to_owned(), ps }));
    }
    if let Some(ps) = set("TX_PS") {
        list.push(PinDelay { pin: "tx_clk".to_owned(), ps });
    }
    list
}
