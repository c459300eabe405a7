//! Where the clocks come from: PLL settings, the clock part of the top level, and the pins of resources.

use std::collections::BTreeMap;

use super::top::{ClockTree, IdlePin, Inst, Pair, ResourcePin, ResourceUse, Section, Var};
use crate::compose::kinds::KindInfo;
use crate::compose::plan::Plan;
use crate::compose::pll::{self, ClockAsk, PllMiss, PllPlan};
use crate::diag::{Diagnostic, Diagnostics};
use crate::emit::constraints::{ClockAt, ClockLine, Constraints, rgmii_delays};
use crate::manifest::board::{Board, BoardReset, Dir, Idle, Resource};
use crate::manifest::project::Project;
use crate::plugin::types::{Target, Timing};

/// A clock as it will be.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct MadeClock {
    /// Name of the net, without `clk_`.
    pub name: String,
    /// What was asked, in Hz.
    pub asked_hz: u64,
    /// What the PLL makes, in Hz.
    pub made_hz: u64,
}

/// Clock sources of a design.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// For the top level.
    pub tree: ClockTree,
    /// Settings of each PLL that the design needs.
    pub plls: Vec<PllPlan>,
    /// Clocks made from the board's oscillator, in the order of the plan.
    pub made: Vec<MadeClock>,
}

/// Reset input of a simulated top level, active high.
pub const SIMULATION_RESET: &str = "reset_in";

/// Makes the clocks of a plan from the board's default oscillator. `reset` is the button that is free, if one is.
///
/// # Errors
/// `GW0415` if the PLL cannot make them, with the nearest that it can; `GW0416` if the board has no oscillator.
pub fn plan(board: &Board, plan: &Plan, target: Target, reset: Option<&BoardReset>, project: &Project) -> Result<Clocks, Diagnostics> {
    let asked: Vec<_> = plan.clocks.iter().filter(|c| c.resource.is_none()).collect();
    let exact = || asked.iter().map(|c| MadeClock { name: c.name.clone(), asked_hz: c.hz, made_hz: c.hz }).collect();
    let mut tree = ClockTree::default();
    let limits = board.pll_limits();
    if limits.is_none() || target == Target::Lint {
        tree.reset = Some((SIMULATION_RESET.to_owned(), false, "Asynchronous reset, active high".to_owned()));
        return Ok(Clocks { tree, plls: Vec::new(), made: exact() });
    }
    let Some((limits, oscillator)) = limits.zip(board.default_clock()) else {
        return Err(Diagnostic::error("GW0416", format!("board `{}` has no oscillator", board.name.value)).at(&project.board.span).into());
    };
    let asks: Vec<ClockAsk> =
        asked.iter().map(|c| ClockAsk { hz: c.hz, tolerance_ppm: c.tolerance_ppm, phase_mdeg: c.phase_mdeg }).collect();
    let plls = board.device.plls.unwrap_or(1);
    let found = pll::solve_all(limits, plls, oscillator.hz, &asks).map_err(|miss| refusal(&miss, &asked, project))?;
    let made: Vec<MadeClock> = asked
        .iter()
        .enumerate()
        .map(|(i, c)| MadeClock {
            name: c.name.clone(),
            asked_hz: c.hz,
            made_hz: found.iter().find_map(|p| p.output_of(i)).map_or(c.hz, |o| o.hz.round()),
        })
        .collect();
    if target == Target::Simulation {
        tree.reset = Some((SIMULATION_RESET.to_owned(), false, "Asynchronous reset, active high".to_owned()));
        return Ok(Clocks { tree, plls: found, made });
    }

    let input = oscillator.name.value.clone();
    let mut section = Section { title: String::new(), ..Section::default() };
    tree.inputs.push((input.clone(), format!("Oscillator, {} MHz", oscillator.hz as f64 / 1e6)));
    let mut source = input.clone();
    if oscillator.pin_n.is_some() {
        tree.inputs.push((format!("{input}_n"), "Its negative pin".to_owned()));
        source = format!("{input}_single");
        section.vars.push(Var { name: source.clone(), kind: "logic".to_owned() });
        section.insts.push(Inst {
            name: format!("u_{input}"),
            module: "io::diff_in".to_owned(),
            ports: vec![
                Pair { name: "p".into(), value: input.clone() },
                Pair { name: "n".into(), value: format!("{input}_n") },
                Pair { name: "o".into(), value: source.clone() },
            ],
            ..Inst::default()
        });
    }
    tree.reset = reset.map(|r| (r.name.value.clone(), r.active_low, "Reset button".to_owned()));
    let pll_reset = match &tree.reset {
        Some((name, true, _)) => format!("!{name}"),
        Some((name, false, _)) => name.clone(),
        None => "0".to_owned(),
    };
    let mut locked = Vec::new();
    for (index, pll) in found.iter().enumerate() {
        let suffix = if index == 0 { String::new() } else { format!("{index}") };
        let lock = format!("pll{suffix}_locked");
        section.vars.push(Var { name: lock.clone(), kind: "logic".to_owned() });
        let parameters = pll.parameters();
        let ports = parameters.iter().filter(|(n, _)| n.ends_with("_EIGHTHS") && n.starts_with('O')).count();
        let mut connections = vec![
            Pair { name: "clk_in".into(), value: source.clone() },
            Pair { name: "rst".into(), value: pll_reset.clone() },
            Pair { name: "locked".into(), value: lock.clone() },
        ];
        let mut buffers = Vec::new();
        for port in 0..ports as u32 {
            let net = pll.outputs.iter().find(|o| o.port == port).and_then(|o| o.ask).and_then(|a| asked.get(a));
            let value = net.map_or_else(|| format!("_unused_pll{suffix}_{port}"), |net| format!("pll_{}", net.name));
            section.vars.push(Var { name: value.clone(), kind: "logic".to_owned() });
            if let Some(net) = net {
                buffers.push(Inst {
                    name: format!("u_clock_{}", net.name),
                    module: "io::clock_buffer".to_owned(),
                    ports: vec![
                        Pair { name: "i".into(), value: value.clone() },
                        Pair { name: "o".into(), value: format!("clk_{}", net.name) },
                    ],
                    ..Inst::default()
                });
            }
            connections.push(Pair { name: format!("clk{port}"), value });
        }
        section.insts.push(Inst {
            name: format!("u_pll{suffix}"),
            module: "io::pll".to_owned(),
            params: parameters.into_iter().map(|(name, value)| Pair { name, value: value.to_string() }).collect(),
            ports: connections,
            ..Inst::default()
        });
        section.insts.extend(buffers);
        locked.push(format!("!{lock}"));
    }
    tree.section = section;
    tree.not_ready = Some(locked.join(" || "));
    Ok(Clocks { tree, plls: found, made })
}

/// The place is the project's own frequency where that is what cannot be made.
fn refusal(miss: &PllMiss, asked: &[&crate::compose::plan::ClockNet], project: &Project) -> Diagnostic {
    let clock = match miss {
        PllMiss::Clock { ask, .. } | PllMiss::Phase { ask, .. } => asked.get(*ask),
        _ => None,
    };
    let message = clock.map_or_else(|| miss.to_string(), |c| format!("clock `{}`: {miss}", c.name));
    let own = clock.and_then(|c| project.clocks.get(&c.name));
    let error = Diagnostic::error("GW0415", message).at(own.map_or(&project.board.span, |hz| &hz.span));
    match (own, miss) {
        (Some(_), PllMiss::Clock { nearest_hz, .. }) if *nearest_hz > 0 => {
            error.help(format!("what the board can make: \"{} MHz\"", *nearest_hz as f64 / 1e6))
        }
        _ => error,
    }
}

/// A resource in use, with its pins.
pub fn resource_use(resource: &Resource, kinds: &BTreeMap<String, KindInfo>, width: u32) -> ResourceUse {
    let pins = resource
        .pins
        .iter()
        .filter(|p| !p.spec.signal.is_empty())
        .map(|p| ResourcePin {
            name: p.spec.name.clone(),
            signal: p.spec.signal.clone(),
            dir: match p.spec.dir {
                Dir::In => "input",
                Dir::Out => "output",
                Dir::InOut => "inout",
            },
            width: p.width(width),
            vector: p.spec.width != crate::manifest::board::Width::Fixed(1),
            doc: p.spec.doc.clone(),
        })
        .collect();
    let kind = kinds.get(&resource.class.kind);
    let mut params: Vec<(String, String)> =
        kind.map(|k| k.parameters.iter().map(|p| (p.clone(), width.to_string())).collect()).unwrap_or_default();
    for pin in &resource.pins {
        if let Some(name) = &pin.spec.param {
            params.retain(|(n, _)| n != name);
            params.push((name.clone(), pin.width(width).to_string()));
        }
    }
    ResourceUse {
        name: resource.name.value.clone(),
        interface: kind.map_or_else(|| resource.class.name.replace('-', "_"), |k| k.interface.clone()),
        params,
        pins,
    }
}

/// The pins of the shared resources that belong to `used`, with what they do while no plugin drives them.
pub fn idle_pins(board: &Board, used: &[&Resource]) -> Vec<IdlePin> {
    let mut pins: BTreeMap<String, IdlePin> = BTreeMap::new();
    for shared in used.iter().flat_map(|r| board.shared_of(r)) {
        for pin in &shared.pins {
            let (value, text) = match pin.spec.idle {
                Some(Idle::Zero) => ("0", "low"),
                Some(Idle::One) => ("1", "high"),
                // A pin without a port is released anyway.
                Some(Idle::HighZ) | None => continue,
            };
            let port = format!("{}_{}", shared.name.value, pin.spec.name);
            pins.insert(port.clone(), IdlePin { port, value, doc: format!("Shared, nobody drives it: {text}") });
        }
    }
    pins.into_values().collect()
}

/// What goes into the constraint file of a design.
pub fn constraints(
    name: &str,
    board: &Board,
    plan: &Plan,
    clocks: &Clocks,
    reset: Option<&BoardReset>,
    used: &[(&Resource, u32)],
    timing: &[Timing],
) -> Constraints {
    let mut all = Constraints { design: name.to_owned(), exceptions: timing.to_vec(), ..Constraints::default() };
    if let Some(oscillator) = board.default_clock() {
        all.ports.extend(oscillator.top_ports());
        all.clocks.push(ClockLine {
            at: ClockAt::Port(oscillator.name.value.clone()),
            hz: oscillator.hz,
            comment: "oscillator".to_owned(),
        });
    }
    all.ports.extend(reset.map(|r| r.top_port()));
    for made in &clocks.made {
        all.clocks.push(ClockLine { at: ClockAt::PllNet(format!("clk_{}", made.name)), hz: made.made_hz, comment: String::new() });
    }
    let resources: Vec<&Resource> = used.iter().map(|(r, _)| *r).collect();
    let idle = idle_pins(board, &resources);
    for shared in board.shared.iter() {
        all.ports.extend(shared.top_ports(0).into_iter().filter(|p| idle.iter().any(|i| i.port == p.name)));
    }
    for (resource, width) in used {
        all.ports.extend(resource.top_ports(*width));
        if let Some(net) = plan.clocks.iter().find(|c| c.resource.as_deref() == Some(&resource.name.value))
            && let Some(pin) = resource.class.clock_pin()
        {
            let port = format!("{}_{}", resource.name.value, pin.name);
            // The clock of the vendor's IP is a net of the board level.
            let at = if resource.class.virtual_pins { ClockAt::Net(port) } else { ClockAt::Port(port) };
            all.clocks.push(ClockLine { at, hz: net.hz, comment: format!("comes in on {}", resource.name.value) });
        }
        if resource.class.name == "rgmii" {
            all.delays.extend(rgmii_delays(resource));
        }
        if resource.class.virtual_pins {
            all.vendor_ip.push((*resource).clone());
        }
    }
    all
}
