//! The planner: clocks and widths, and the adapters that follow from them.
//!
//! Every choice is recorded with its reason and says whether the project made
//! it. Nothing is chosen that cannot carry the link's rate for every frame
//! length that the project has; a refusal shows the arithmetic.

use std::collections::BTreeMap;

use super::graph::{BoardPort, Edge, End, Graph};
use super::kinds::KindInfo;
use super::memory::{self, Arbiter};
use super::rate::{self, Traffic, WIDTHS};
use crate::diag::{Diagnostic, Diagnostics};
use crate::manifest::project::Project;
use crate::plugin::types::{Clock, Domain, Peer, Port, Protocol, Role, Wired};

/// What the planner must know of the board.
#[derive(Clone, Debug)]
pub struct BoardPlan {
    /// Resources.
    pub ports: Vec<BoardPort>,
    /// System clocks that suit the part, in Hz, the preferred first.
    pub system_clocks: Vec<u64>,
    /// How many times over the datapath must carry the link rate; 1.0 where no timing has to close.
    pub margin: f64,
}

/// One clock of the design.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockNet {
    /// Name: `sys`, `mac0_tx`, `eth0`.
    pub name: String,
    /// Frequency in Hz.
    pub hz: u64,
    /// How far off it may be, parts per million.
    pub tolerance_ppm: u32,
    /// Phase against the system clock, millidegrees.
    pub phase_mdeg: i32,
    /// The resource that it comes in on; `None` for one that the board's clock makes.
    pub resource: Option<String>,
}

/// A cell that the composer puts on a link, from the provider's end to the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// `gw::packet_cdc`, or `gw::axi4_cdc` on a memory link: from the provider's clock to the client's.
    Crossing,
    /// `gw::packet_width`, or `gw::axi4_width` on a memory link.
    Width,
    /// `gw::packet_store` on tx: the client does not promise to be continuous. Bytes of room.
    Store(u32),
    /// `gw::packet_rx_fifo`: a client that is slow for a while loses nothing. Bytes of room.
    Fifo(u32),
}

/// One end of a settled link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Data width in bits; 0 where the kind has none.
    pub width: u32,
    /// Index into [`Plan::clocks`]; `None` for the board's side of wires.
    pub clock: Option<usize>,
}

/// A settled link.
#[derive(Clone, Debug)]
pub struct PlannedLink {
    /// Index into [`Graph::edges`].
    pub edge: usize,
    /// The provider's end.
    pub provider: Side,
    /// The client's end.
    pub client: Side,
    /// Cells between them, from provider to client.
    pub adapters: Vec<Adapter>,
    /// What the link asks of the arbiter before its provider.
    pub priority: Option<u8>,
}

/// A choice, for the report.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Choice {
    /// What was chosen: `clock sys`, `width net`, `link net.udp -> echo.udp`.
    pub what: String,
    /// The value.
    pub value: String,
    /// Why.
    pub why: String,
    /// Whether the project asked for it.
    pub overridden: bool,
}

/// The settled plan of the whole project.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Clocks; the system clock is the first.
    pub clocks: Vec<ClockNet>,
    /// Clock of each domain: (node, domain name) to index into `clocks`.
    pub domains: BTreeMap<(usize, String), usize>,
    /// Datapath width of each node with packets ports.
    pub widths: Vec<Option<u32>>,
    /// Links.
    pub links: Vec<PlannedLink>,
    /// Arbiters before memories with several clients.
    pub arbiters: Vec<Arbiter>,
    /// Link rate in 1/1000 Gbit/s that the datapath carries; 0 without a network.
    pub gbps_milli: u64,
    /// Choices in the order they were made.
    pub choices: Vec<Choice>,
}

impl Plan {
    /// The links of a node as its plugin sees them, in the order of its ports.
    pub fn wired(&self, graph: &Graph, node: usize, board: &[BoardPort]) -> Vec<Wired> {
        let peers = graph.peers(node, board);
        let mut wired = Vec::new();
        for mut peer in peers {
            self.late(graph, node, &mut peer);
            let Some(port) = graph.nodes[node].port(&peer.port) else { continue };
            let width = self.end_width(graph, node, &peer.port, peer.index);
            let hz = self.domains.get(&(node, port.domain.clone())).map_or(0, |c| self.clocks[*c].hz);
            wired.push(Wired { port: peer.port.clone(), index: peer.index, width, domain: port.domain.clone(), hz, peer });
        }
        wired
    }

    /// What a peer promises of a memory takes longer where the link crosses clocks.
    fn late(&self, graph: &Graph, node: usize, peer: &mut Peer) {
        let is_own = |end: &End| matches!(end, End::Port { node: n, port, .. } if *n == node && *port == peer.port);
        let link = self.links.iter().find(|l| is_own(&graph.edges[l.edge].client) && l.adapters.contains(&Adapter::Crossing));
        let Some(stall) = peer.props.get("worst-stall-ns").and_then(serde_json::Value::as_u64) else { return };
        let Some(link) = link else { return };
        let hz = |side: Side| side.clock.map_or(1, |c| self.clocks[c].hz);
        peer.props.insert("worst-stall-ns".to_owned(), (stall + memory::crossing_ns(hz(link.client), hz(link.provider))).into());
    }

    fn end_width(&self, graph: &Graph, node: usize, port: &str, index: u32) -> u32 {
        for link in &self.links {
            let edge = &graph.edges[link.edge];
            for (end, side) in [(&edge.client, link.client), (&edge.provider, link.provider)] {
                if matches!(end, End::Port { node: n, port: p, index: i } if *n == node && p == port && *i == index) {
                    return side.width;
                }
            }
        }
        0
    }
}

/// Chooses clocks, widths and adapters.
///
/// # Errors
/// `GW0410` no clock and width carry the rate (with the arithmetic), `GW0411` a width that a port does not
/// have, `GW0412` a domain whose clock cannot be found, `GW0413` an override that cannot be followed, `GW0417` ends that differ in
/// what nothing converts.
pub fn plan(project: &Project, graph: &Graph, kinds: &BTreeMap<String, KindInfo>, board: &BoardPlan) -> Result<Plan, Diagnostics> {
    let mut planner = Planner { project, graph, kinds, board, plan: Plan::default(), diagnostics: Diagnostics::default() };
    planner.plan.gbps_milli = planner.link_rate();
    let base = planner.system_clock_and_width();
    planner.widths(base);
    planner.domains();
    if planner.diagnostics.has_errors() {
        return Err(planner.diagnostics);
    }
    for index in 0..graph.edges.len() {
        planner.link(index);
    }
    planner.arbiters();
    planner.check_rates();
    planner.diagnostics.finish(planner.plan).map(|(plan, _)| plan)
}

/// The plan under way; links are settled in `link.rs`.
pub(super) struct Planner<'a> {
    pub(super) project: &'a Project,
    pub(super) graph: &'a Graph,
    pub(super) kinds: &'a BTreeMap<String, KindInfo>,
    pub(super) board: &'a BoardPlan,
    pub(super) plan: Plan,
    pub(super) diagnostics: Diagnostics,
}

fn mhz(hz: u64) -> String {
    let text = format!("{:.6}", hz as f64 / 1e6);
    format!("{} MHz", text.trim_end_matches('0').trim_end_matches('.'))
}

impl Planner<'_> {
    pub(super) fn choose(&mut self, what: impl Into<String>, value: impl Into<String>, why: impl Into<String>, overridden: bool) {
        self.plan.choices.push(Choice { what: what.into(), value: value.into(), why: why.into(), overridden });
    }

    fn is_packets(&self, port: &Port) -> bool {
        self.kinds.get(&port.kind).is_some_and(|k| k.kind.protocol == Protocol::Packets)
    }

    /// The fastest network port that is in use: what a port says of itself, or the resource that it is linked to.
    fn link_rate(&self) -> u64 {
        let said = self.graph.nodes.iter().flat_map(|n| n.shape.ports.iter()).map(|p| p.gbps_milli).max().unwrap_or(0);
        if said > 0 {
            return said;
        }
        if let Some(rate) = &self.project.gbps_milli {
            return rate.value;
        }
        let linked = self.graph.edges.iter().filter_map(|edge| match &edge.provider {
            End::Board { resource } => self.board.ports.iter().find(|p| p.name == *resource).and_then(|p| p.gbps_milli),
            End::Port { .. } => None,
        });
        linked.max().unwrap_or(0)
    }

    /// The rate, and the frames for which it is promised.
    fn traffic(&self) -> Traffic {
        let any = Traffic::any(self.plan.gbps_milli);
        self.project.shortest_frame.as_ref().map_or(any, |s| Traffic { shortest: s.value, ..any })
    }

    /// Widths that every packets port in the system domain has.
    fn common_widths(&self) -> Vec<u32> {
        let ports = self.graph.nodes.iter().flat_map(|n| n.shape.ports.iter()).filter(|p| self.is_packets(p) && !p.widths.is_empty());
        let mut common: Vec<u32> = WIDTHS.to_vec();
        for port in ports {
            let narrowed: Vec<u32> = common.iter().copied().filter(|w| port.widths.contains(w)).collect();
            if !narrowed.is_empty() {
                common = narrowed;
            }
        }
        common
    }

    fn system_clock_and_width(&mut self) -> u32 {
        let asked = self.project.clocks.get("sys").cloned();
        let forced = self.project.width.clone();
        let clocks = asked.as_ref().map_or_else(|| self.board.system_clocks.clone(), |hz| vec![hz.value]);
        let widths = forced.as_ref().map_or_else(|| self.common_widths(), |w| vec![w.value]);
        let rate = self.plan.gbps_milli;
        let traffic = self.traffic();
        let margin = if forced.is_some() { 1.0 } else { self.board.margin };
        let fit = if rate == 0 {
            clocks.first().zip(widths.first()).map(|(hz, width)| rate::Fit { hz: *hz, width: *width })
        } else {
            rate::choose(&clocks, &widths, traffic, margin)
        };
        let Some(fit) = fit else {
            let widest = widths.iter().copied().max().unwrap_or(512);
            let fastest = clocks.iter().copied().max().unwrap_or(0);
            let mut diagnostic = Diagnostic::error("GW0410", format!("no clock and width carry {} Gb/s", rate as f64 / 1000.0)).at(&asked
                .as_ref()
                .map(|a| a.span.clone())
                .or(forced.as_ref().map(|f| f.span.clone()))
                .unwrap_or(self.project.board.span.clone()));
            diagnostic = diagnostic.help(rate::explain(widest, fastest, traffic));
            self.diagnostics.push(diagnostic);
            return widest;
        };
        let needs = if rate == 0 {
            "no link asks for a rate".to_owned()
        } else {
            let (lowest, length) = rate::lowest_clock(fit.width, traffic);
            format!("{} Gb/s at {} bits needs {:.3} MHz (worst length {length} bytes)", rate as f64 / 1000.0, fit.width, lowest / 1e6)
        };
        self.choose("clock sys", mhz(fit.hz), needs.clone(), asked.is_some());
        self.choose("datapath width", format!("{} bits", fit.width), needs, forced.is_some());
        if let Some(shortest) = &self.project.shortest_frame {
            let why = "the rate is promised for frames of that many bytes without FCS or more; shorter ones back to back may be dropped and counted";
            self.choose("datapath shortest frame", format!("{} bytes", shortest.value), why, true);
        }
        self.plan.clocks.push(ClockNet {
            name: "sys".to_owned(),
            hz: fit.hz,
            tolerance_ppm: if asked.is_some() { 100 } else { 10_000 },
            phase_mdeg: 0,
            resource: None,
        });
        fit.width
    }

    fn widths(&mut self, base: u32) {
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let name = node.instance.name.value.clone();
            let ports: Vec<&Port> = node.shape.ports.iter().filter(|p| self.is_packets(p)).collect();
            if ports.is_empty() {
                self.plan.widths.push(None);
                continue;
            }
            let has = |width: u32| ports.iter().all(|p| p.widths.is_empty() || p.widths.contains(&width));
            let packets = |port: &str| node.port(port).is_some_and(|p| self.is_packets(p));
            let asked = node.instance.links.iter().filter(|l| packets(&l.port)).find_map(|l| l.width.clone());
            if let Some(asked) = asked {
                if !has(asked.value) {
                    self.diagnostics.push(
                        Diagnostic::error("GW0411", format!("`{name}` cannot be {} bits wide", asked.value))
                            .at(&asked.span)
                            .help(format!("widths that it has: {}", list(&ports))),
                    );
                }
                self.choose(format!("width {name}"), format!("{} bits", asked.value), "asked for at the link", true);
                self.plan.widths.push(Some(asked.value));
                continue;
            }
            let own = if has(base) {
                Some(base)
            } else {
                let wider = WIDTHS.iter().copied().filter(|w| *w > base).find(|w| has(*w));
                wider.or_else(|| WIDTHS.iter().rev().copied().find(|w| has(*w)))
            };
            let Some(own) = own else {
                self.diagnostics.push(
                    Diagnostic::error("GW0411", format!("the ports of `{name}` have no width in common")).at(&node.instance.name.span),
                );
                self.plan.widths.push(Some(base));
                continue;
            };
            if own != base {
                self.choose(format!("width {name}"), format!("{own} bits"), format!("it cannot be {base} bits wide"), false);
            }
            debug_assert_eq!(index, self.plan.widths.len());
            self.plan.widths.push(Some(own));
        }
    }

    fn domains(&mut self) {
        for node in 0..self.graph.nodes.len() {
            for domain in self.graph.nodes[node].shape.domains.clone() {
                if let Some(clock) = self.domain_clock(node, &domain, 0) {
                    self.plan.domains.insert((node, domain.name.clone()), clock);
                }
            }
        }
    }

    fn domain_clock(&mut self, node: usize, domain: &Domain, depth: usize) -> Option<usize> {
        if let Some(known) = self.plan.domains.get(&(node, domain.name.clone())) {
            return Some(*known);
        }
        let name = self.graph.nodes[node].instance.name.clone();
        match &domain.clock {
            Clock::System => Some(0),
            Clock::Ask { hz, tolerance_ppm, phase_mdeg } => Some(self.ask(&name.value, domain, *hz, *tolerance_ppm, *phase_mdeg)),
            Clock::FromPort(port) => {
                let edge = self.graph.at(node, port).next().map(|(_, edge, _)| edge.provider.clone());
                if let Some(End::Board { resource }) = edge {
                    return Some(self.resource_clock(&resource));
                }
                let message =
                    format!("domain `{}` of `{}` takes its clock from port `{port}`, which has no board resource", domain.name, name.value);
                self.diagnostics.push(Diagnostic::error("GW0412", message).at(&name.span));
                None
            }
            Clock::FromPeer(port) => {
                let edge =
                    self.graph.at(node, port).next().map(|(_, e, is_client)| if is_client { e.provider.clone() } else { e.client.clone() });
                match edge {
                    Some(End::Board { resource }) => Some(self.resource_clock(&resource)),
                    Some(End::Port { node: peer, port: peer_port, .. }) if depth < self.graph.nodes.len() => {
                        let shape = &self.graph.nodes[peer].shape;
                        let wanted = shape.ports.iter().find(|p| p.name == peer_port).map(|p| p.domain.clone())?;
                        let domain = shape.domains.iter().find(|d| d.name == wanted)?.clone();
                        self.domain_clock(peer, &domain, depth + 1)
                    }
                    // No link: it may as well run on the system clock.
                    None => Some(0),
                    Some(End::Port { .. }) => {
                        let message =
                            format!("domain `{}` of `{}` takes its clock from a peer that takes it from here", domain.name, name.value);
                        self.diagnostics.push(Diagnostic::error("GW0412", message).at(&name.span));
                        None
                    }
                }
            }
        }
    }

    /// A clock made from the board's; two asks for the same share it.
    fn ask(&mut self, instance: &str, domain: &Domain, hz: u64, tolerance_ppm: u32, phase_mdeg: i32) -> usize {
        let same = |c: &ClockNet| c.resource.is_none() && c.hz == hz && c.phase_mdeg == phase_mdeg;
        if let Some(index) = self.plan.clocks.iter().position(same) {
            let net = &mut self.plan.clocks[index];
            net.tolerance_ppm = net.tolerance_ppm.min(tolerance_ppm);
            return index;
        }
        let name = format!("{}_{}", instance.replace('-', "_"), domain.name);
        self.choose(format!("clock {name}"), mhz(hz), format!("`{instance}` asks for it, within {tolerance_ppm} ppm"), false);
        self.plan.clocks.push(ClockNet { name, hz, tolerance_ppm, phase_mdeg, resource: None });
        self.plan.clocks.len() - 1
    }

    fn resource_clock(&mut self, resource: &str) -> usize {
        let of = |c: &ClockNet| c.resource.as_deref() == Some(resource);
        if let Some(index) = self.plan.clocks.iter().position(of) {
            return index;
        }
        let system = self.plan.clocks.first().map_or(0, |c| c.hz);
        let hz = self.board.ports.iter().find(|p| p.name == resource).and_then(|p| p.clock_hz).unwrap_or(system);
        self.choose(format!("clock {resource}"), mhz(hz), "comes in on the resource", false);
        self.plan.clocks.push(ClockNet {
            name: resource.replace('-', "_"),
            hz,
            tolerance_ppm: 100,
            phase_mdeg: 0,
            resource: Some(resource.to_owned()),
        });
        self.plan.clocks.len() - 1
    }

    pub(super) fn side(&self, end: &End, protocol: Protocol, edge: &Edge) -> Side {
        match end {
            End::Board { resource } => {
                if self.kinds.get(&edge.kind).is_some_and(|k| k.parameters.is_empty()) {
                    return Side { width: 0, clock: None };
                }
                let fixed = self.board.ports.iter().find(|p| p.name == *resource).and_then(|p| p.width);
                let follows = match &edge.client {
                    End::Port { node, .. } => self.plan.widths[*node],
                    End::Board { .. } => None,
                };
                Side { width: fixed.or(follows).unwrap_or(0), clock: None }
            }
            End::Port { node, port, .. } => {
                let found = self.graph.nodes[*node].port(port);
                let clock = found.and_then(|p| self.plan.domains.get(&(*node, p.domain.clone())).copied());
                let width = match protocol {
                    Protocol::Packets => self.plan.widths[*node].unwrap_or(0),
                    Protocol::Memory => match found {
                        Some(port) if port.role == Role::Provider => memory::provider_width(self.graph, *node, port, &self.plan.widths),
                        _ => memory::client_width(self.graph, edge, &self.plan.widths),
                    },
                    Protocol::Registers => 32,
                    Protocol::Wires => self.side(&edge.provider_board(), protocol, edge).width,
                };
                Side { width, clock }
            }
        }
    }

    /// Every packets end must carry the rate at its own clock and width.
    fn check_rates(&mut self) {
        let rate = self.plan.gbps_milli;
        if rate == 0 {
            return;
        }
        let traffic = self.traffic();
        let mut found = Vec::new();
        for link in &self.plan.links {
            let edge = &self.graph.edges[link.edge];
            if edge.protocol != Protocol::Packets {
                continue;
            }
            for (end, side) in [(&edge.provider, link.provider), (&edge.client, link.client)] {
                let (Some(clock), End::Port { .. }) = (side.clock, end) else { continue };
                let hz = self.plan.clocks[clock].hz;
                if rate::lowest_clock(side.width, traffic).0 > hz as f64 * (1.0 + 200e-6) {
                    let message = format!(
                        "`{}` at {} bits and {} does not carry {} Gb/s",
                        end_name(self.graph, end),
                        side.width,
                        mhz(hz),
                        rate as f64 / 1000.0
                    );
                    let span = edge.link.width.as_ref().map_or(&edge.link.to.span, |w| &w.span);
                    found.push(Diagnostic::error("GW0410", message).at(span).help(rate::explain(side.width, hz, traffic)));
                }
            }
        }
        self.diagnostics.extend(found);
    }
}

impl Edge {
    /// The provider's end where it is the board's, for widths that follow the resource.
    fn provider_board(&self) -> End {
        match &self.provider {
            End::Board { .. } => self.provider.clone(),
            End::Port { .. } => End::Board { resource: String::new() },
        }
    }
}

/// `instance.port`, or `board.resource`.
pub fn end_name(graph: &Graph, end: &End) -> String {
    match end {
        End::Port { node, port, .. } => format!("{}.{port}", graph.nodes[*node].instance.name.value),
        End::Board { resource } => format!("board.{resource}"),
    }
}

/// The widths that ports have in common, in words.
pub(super) fn list(ports: &[&Port]) -> String {
    let mut common: Vec<u32> = WIDTHS.to_vec();
    for port in ports {
        if !port.widths.is_empty() {
            common.retain(|w| port.widths.contains(w));
        }
    }
    common.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Register masters and blocks of the graph: (node, port) of each.
pub fn register_ports(graph: &Graph, kinds: &BTreeMap<String, KindInfo>, role: Role) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        for port in &node.shape.ports {
            if port.role == role && kinds.get(&port.kind).is_some_and(|k| k.kind.protocol == Protocol::Registers) {
                found.push((index, port.name.clone()));
            }
        }
    }
    found
}
