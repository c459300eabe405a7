//! The generated top level: one Veryl module that instances the plugins, the links and the composer's cells.
//!
//! This module builds a plain description ([`Top`]); `templates/top.veryl.tera` turns it into text.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::compose::graph::{End, Graph};
use crate::compose::kinds::KindInfo;
use crate::compose::memory;
use crate::compose::plan::{Adapter, ClockNet, Plan, PlannedLink, end_name};
use crate::plugin::types::{Output, Port, Protocol, Role, Target};

/// A top-level port.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct TopPort {
    /// Name, `<resource>_<pin>` for pins.
    pub name: String,
    /// `input`, `output` or `inout`.
    pub dir: &'static str,
    /// Veryl type.
    #[serde(rename = "type")]
    pub kind: String,
    /// One line.
    pub doc: String,
}

/// `name: value` of a parameter or port connection, or `assign name = value`.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Pair {
    /// Left side.
    pub name: String,
    /// Right side.
    pub value: String,
}

/// A variable.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Var {
    /// Name.
    pub name: String,
    /// Veryl type.
    #[serde(rename = "type")]
    pub kind: String,
}

/// An instance of a module or interface.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Inst {
    /// Name.
    pub name: String,
    /// Comment above it.
    pub doc: Option<String>,
    /// Clock domain annotation of an interface.
    pub domain: Option<String>,
    /// Module or interface with its project, such as `gw::packet_cdc`.
    pub module: String,
    /// Array length of an interface.
    pub array: Option<u32>,
    /// Parameters.
    pub params: Vec<Pair>,
    /// Port connections.
    pub ports: Vec<Pair>,
}

/// A part of the module body under one comment.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Section {
    /// Comment.
    pub title: String,
    /// Variables.
    pub vars: Vec<Var>,
    /// Instances.
    pub insts: Vec<Inst>,
    /// Assignments.
    pub assigns: Vec<Pair>,
}

/// The top level.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Top {
    /// Module name.
    pub name: String,
    /// First line of the documentation.
    pub title: String,
    /// Ports.
    pub ports: Vec<TopPort>,
    /// Body.
    pub sections: Vec<Section>,
}

/// A board pin of a resource, as the class has it.
#[derive(Clone, Debug)]
pub struct ResourcePin {
    /// Name in the class.
    pub name: String,
    /// `input`, `output` or `inout`, seen from the FPGA.
    pub dir: &'static str,
    /// Bits.
    pub width: u32,
    /// Name in the kind's interface.
    pub signal: String,
    /// Whether it is a vector even at one bit.
    pub vector: bool,
    /// One line.
    pub doc: String,
}

/// A resource in use.
#[derive(Clone, Debug)]
pub struct ResourceUse {
    /// Name.
    pub name: String,
    /// Interface in project `kinds`.
    pub interface: String,
    /// Parameters of the interface.
    pub params: Vec<(String, String)>,
    /// Pins that the board has.
    pub pins: Vec<ResourcePin>,
}

/// An output of a shared resource that no plugin drives, and what it does meanwhile.
#[derive(Clone, Debug)]
pub struct IdlePin {
    /// Top-level port.
    pub port: String,
    /// Veryl expression.
    pub value: &'static str,
    /// One line.
    pub doc: String,
}

/// How the board makes the clocks.
#[derive(Clone, Debug, Default)]
pub struct ClockTree {
    /// Top-level clock inputs: name and doc.
    pub inputs: Vec<(String, String)>,
    /// PLLs and buffers: instances that drive `clk_<net>`, and what has to be declared for them.
    pub section: Section,
    /// Expression that is 1 while the clocks are not good, besides the reset input.
    pub not_ready: Option<String>,
    /// Reset input: name, whether it is active low, doc.
    pub reset: Option<(String, bool, String)>,
}

/// Register blocks and masters in the order of the interconnect.
#[derive(Clone, Debug, Default)]
pub struct RegisterBus {
    /// (node, port, base, size) of each block.
    pub blocks: Vec<(usize, String, u64, u64)>,
    /// (node, port) of each master.
    pub masters: Vec<(usize, String)>,
}

/// What the top level is made from.
pub struct TopInput<'a> {
    /// Module name.
    pub name: &'a str,
    /// Title.
    pub title: &'a str,
    /// Instances and links.
    pub graph: &'a Graph,
    /// Clocks, widths, adapters.
    pub plan: &'a Plan,
    /// Kinds.
    pub kinds: &'a BTreeMap<String, KindInfo>,
    /// What each node generated.
    pub outputs: &'a [Output],
    /// Veryl project of each node.
    pub projects: &'a [String],
    /// Resources in use.
    pub resources: &'a [ResourceUse],
    /// Shared pins that nobody drives.
    pub idle: &'a [IdlePin],
    /// Clock sources.
    pub clocks: &'a ClockTree,
    /// Registers.
    pub registers: &'a RegisterBus,
    /// What for.
    pub target: Target,
}

/// Name of an instance as a Veryl identifier; keywords of Veryl and SystemVerilog get a final `_`.
pub fn ident(name: &str) -> String {
    let name = name.replace('-', "_");
    if crate::plugin::validate::is_keyword(&name) { name + "_" } else { name }
}

pub(super) fn pair(name: impl Into<String>, value: impl Into<String>) -> Pair {
    Pair { name: name.into(), value: value.into() }
}

/// A parameter value as a Veryl expression.
pub fn literal(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Bool(true) => "1".to_owned(),
        Json::Bool(false) => "0".to_owned(),
        // One packed vector, the first member in the lowest bits.
        Json::Array(list) => format!("{{{}}}", list.iter().rev().map(literal).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Builds the top level.
pub fn build(input: &TopInput<'_>) -> Top {
    let mut top = Top { name: input.name.to_owned(), title: input.title.to_owned(), ..Top::default() };
    ports(input, &mut top);
    top.sections.push(clocks_and_resets(input));
    top.sections.extend(board(input));
    top.sections.push(links(input));
    top.sections.extend(register_bus(input));
    top.sections.push(instances(input));
    top.sections.retain(|s| !s.vars.is_empty() || !s.insts.is_empty() || !s.assigns.is_empty());
    top
}

/// What stands for a bidirectional pin where nothing has three states: its name's end and direction.
const THREE: [(&str, &str); 3] = [("i", "input"), ("o", "output"), ("oe", "output")];

fn ports(input: &TopInput<'_>, top: &mut Top) {
    let port = |name: String, dir, kind: &str, doc: &str| TopPort { name, dir, kind: kind.to_owned(), doc: doc.to_owned() };
    if input.target == Target::Fpga {
        for (name, doc) in &input.clocks.inputs {
            top.ports.push(port(name.clone(), "input", "logic", doc));
        }
    } else {
        for net in input.plan.clocks.iter().filter(|c| c.resource.is_none()) {
            top.ports.push(port(format!("clk_{}", net.name), "input", &format!("'{} clock", net.name), "Clock, driven by the harness"));
        }
    }
    if let Some((name, _, doc)) = &input.clocks.reset {
        top.ports.push(port(name.clone(), "input", "logic", doc));
    }
    for resource in input.resources {
        for pin in &resource.pins {
            let kind = if pin.vector { format!("logic<{}>", pin.width) } else { "logic".to_owned() };
            let name = format!("{}_{}", ident(&resource.name), pin.name);
            if pin.dir != "inout" {
                top.ports.push(port(name, pin.dir, &kind, &pin.doc));
            } else if input.target == Target::Fpga {
                top.ports.push(port(name, pin.dir, &format!("tri {kind}"), &pin.doc));
            } else {
                // The harness has no third state.
                for (suffix, dir) in THREE {
                    top.ports.push(port(format!("{name}_{suffix}"), dir, &kind, &pin.doc));
                }
            }
        }
    }
    for pin in input.idle {
        top.ports.push(port(pin.port.clone(), "output", "logic", &pin.doc));
    }
}

fn clocks_and_resets(input: &TopInput<'_>) -> Section {
    let mut section = Section { title: "Clocks and resets".to_owned(), ..Section::default() };
    if input.target == Target::Fpga {
        section.vars.extend(input.clocks.section.vars.iter().cloned());
        section.insts.extend(input.clocks.section.insts.iter().cloned());
        section.assigns.extend(input.clocks.section.assigns.iter().cloned());
    }
    let mut causes = Vec::new();
    if input.target == Target::Fpga {
        causes.extend(input.clocks.not_ready.clone());
    }
    if let Some((name, active_low, _)) = &input.clocks.reset {
        causes.push(if *active_low { format!("!{name}") } else { name.clone() });
    }
    section.vars.push(Var { name: "reset_asked".to_owned(), kind: "'_ reset_async_high".to_owned() });
    section.assigns.push(pair("reset_asked", if causes.is_empty() { "0".to_owned() } else { causes.join(" || ") }));
    for net in &input.plan.clocks {
        if input.target == Target::Fpga || net.resource.is_some() {
            section.vars.push(Var { name: format!("clk_{}", net.name), kind: format!("'{} clock", net.name) });
        }
        section.vars.push(Var { name: format!("rst_{}", net.name), kind: format!("'{} reset", net.name) });
        section.insts.push(Inst {
            name: format!("u_reset_{}", net.name),
            module: "gw::reset_bridge".to_owned(),
            ports: vec![pair("clk", format!("clk_{}", net.name)), pair("arst", "reset_asked"), pair("rst", format!("rst_{}", net.name))],
            ..Inst::default()
        });
    }
    section
}

/// The board side of each resource: an interface, tied to the pins.
fn board(input: &TopInput<'_>) -> Option<Section> {
    let mut section = Section { title: "Board".to_owned(), ..Section::default() };
    for resource in input.resources {
        let link = format!("l_{}", ident(&resource.name));
        let net = input.plan.clocks.iter().find(|c| c.resource.as_deref() == Some(&resource.name));
        section.insts.push(Inst {
            name: link.clone(),
            domain: Some(net.map_or_else(|| "_".to_owned(), |n| n.name.clone())),
            module: format!("kinds::{}", resource.interface),
            params: resource.params.iter().map(|(name, value)| pair(name.clone(), value.clone())).collect(),
            ..Inst::default()
        });
        for pin in &resource.pins {
            let outer = format!("{}_{}", ident(&resource.name), pin.name);
            let inner = format!("{link}.{}", pin.signal);
            match pin.dir {
                "input" => section.assigns.push(pair(inner, outer)),
                "output" => section.assigns.push(pair(outer, inner)),
                _ if input.target != Target::Fpga => {
                    for (suffix, dir) in THREE {
                        let ends = (format!("{inner}_{suffix}"), format!("{outer}_{suffix}"));
                        section.assigns.push(if dir == "input" { pair(ends.0, ends.1) } else { pair(ends.1, ends.0) });
                    }
                }
                _ => section.insts.push(Inst {
                    name: format!("u_{outer}"),
                    module: "io::tristate".to_owned(),
                    params: vec![pair("W", pin.width.to_string())],
                    ports: vec![
                        pair("io", outer),
                        pair("i", format!("{inner}_i")),
                        pair("o", format!("{inner}_o")),
                        pair("oe", format!("{inner}_oe")),
                    ],
                    ..Inst::default()
                }),
            }
        }
        if let Some(net) = net {
            section.insts.push(Inst {
                name: format!("u_clock_{}", net.name),
                module: "io::clock_buffer".to_owned(),
                ports: vec![pair("i", format!("{link}.clk")), pair("o", format!("clk_{}", net.name))],
                ..Inst::default()
            });
        }
    }
    section.assigns.extend(input.idle.iter().map(|pin| pair(pin.port.clone(), pin.value)));
    (!section.insts.is_empty()).then_some(section)
}

/// Name of the interface at a provider's port, with its index where the port is an array or an arbiter stands before it.
pub(super) fn provider_link(graph: &Graph, end: &End) -> String {
    match end {
        End::Board { resource } => format!("l_{}", ident(resource)),
        End::Port { node, port, index } => {
            let info = &graph.nodes[*node];
            let name = format!("l_{}_{}", ident(&info.instance.name.value), ident(port));
            match info.port(port) {
                Some(p) if is_array(p) => format!("{name}[{index}]"),
                Some(p) if memory::is_shared(graph, *node, p) => format!("{name}_clients[{index}]"),
                _ => name,
            }
        }
    }
}

/// Name of the interface at a client's port: the provider's, unless cells stand between them.
fn client_link(graph: &Graph, link: &PlannedLink) -> String {
    let edge = &graph.edges[link.edge];
    if link.adapters.is_empty() {
        return provider_link(graph, &edge.provider);
    }
    provider_link(graph, &edge.client)
}

fn is_array(port: &Port) -> bool {
    port.links_max > 1
}

pub(super) fn clock_of<'a>(plan: &'a Plan, clock: Option<usize>) -> Option<&'a ClockNet> {
    clock.and_then(|c| plan.clocks.get(c))
}

/// Parameters of `kinds::packets` for a kind at a width.
fn packets_params(kind: &KindInfo, width: u32) -> Vec<Pair> {
    vec![pair("W", width.to_string()), pair("RU", kind.rx_user.clone()), pair("TU", kind.tx_user.clone())]
}

fn link_params(kind: &KindInfo, port: &Port, width: u32) -> Vec<Pair> {
    match kind.kind.protocol {
        Protocol::Packets => packets_params(kind, width),
        Protocol::Memory => vec![pair("ADDR_W", memory::address_width(port).to_string()), pair("DATA_W", width.to_string())],
        Protocol::Registers => Vec::new(),
        Protocol::Wires => kind.parameters.iter().map(|p| pair(p.clone(), width.to_string())).collect(),
    }
}

/// Interfaces of the links between plugins, and the cells on them.
fn links(input: &TopInput<'_>) -> Section {
    let mut section = Section { title: "Links".to_owned(), ..Section::default() };
    let (graph, plan) = (input.graph, input.plan);
    for (index, node) in graph.nodes.iter().enumerate() {
        for port in node.shape.ports.iter().filter(|p| p.role == Role::Provider) {
            let Some(kind) = input.kinds.get(&port.kind) else { continue };
            if kind.kind.protocol == Protocol::Registers {
                continue;
            }
            let at: Vec<&PlannedLink> = plan
                .links
                .iter()
                .filter(|l| matches!(&graph.edges[l.edge].provider, End::Port { node, port: p, .. } if *node == index && *p == port.name))
                .collect();
            let name = format!("l_{}_{}", ident(&node.instance.name.value), ident(&port.name));
            let width = at.first().map_or_else(|| plan.widths[index].unwrap_or(32), |l| l.provider.width);
            let net = plan.domains.get(&(index, port.domain.clone())).and_then(|c| plan.clocks.get(*c));
            let count = (at.len() as u32).max(1);
            section.insts.push(Inst {
                name: name.clone(),
                domain: net.map(|n| n.name.clone()),
                module: format!("kinds::{}", kind.interface),
                array: is_array(port).then_some(count),
                params: link_params(kind, port, width),
                ..Inst::default()
            });
            section.insts.extend(super::memory::arbiter(input, index, port, width, &name));
            if at.is_empty() {
                let end = if is_array(port) { format!("{name}[0]") } else { name };
                section.insts.push(stub(kind, &node.instance.name.value, port, end, width, net));
            }
        }
    }
    for link in plan.links.iter().filter(|l| !l.adapters.is_empty()) {
        if graph.edges[link.edge].protocol == Protocol::Memory {
            section.insts.extend(super::memory::cells(input, link));
        } else {
            adapters(input, link, &mut section);
        }
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        for port in node.shape.ports.iter().filter(|p| p.role == Role::Client) {
            let Some(kind) = input.kinds.get(&port.kind) else { continue };
            if kind.kind.protocol == Protocol::Registers || graph.at(index, &port.name).next().is_some() {
                continue;
            }
            let name = format!("l_{}_{}", ident(&node.instance.name.value), ident(&port.name));
            let net = plan.domains.get(&(index, port.domain.clone())).and_then(|c| plan.clocks.get(*c));
            let width = plan.widths[index].or(port.widths.first().copied()).unwrap_or(32);
            section.insts.push(Inst {
                name: name.clone(),
                domain: net.map(|n| n.name.clone()),
                module: format!("kinds::{}", kind.interface),
                array: is_array(port).then_some(1),
                params: link_params(kind, port, width),
                ..Inst::default()
            });
            let end = if is_array(port) { format!("{name}[0]") } else { name };
            section.insts.push(stub(kind, &node.instance.name.value, port, end, width, net));
        }
    }
    section
}

/// Ties off a port that has no link with the stub of the other role.
fn stub(kind: &KindInfo, instance: &str, port: &Port, end: String, width: u32, net: Option<&ClockNet>) -> Inst {
    let role = if port.role == Role::Provider { "client" } else { "provider" };
    let mut ports = Vec::new();
    if let Some(net) = net.filter(|_| kind.kind.protocol != Protocol::Wires && !(kind.kind.protocol == Protocol::Packets)) {
        ports.push(pair("clk", format!("clk_{}", net.name)));
        ports.push(pair("rst", format!("rst_{}", net.name)));
    }
    ports.push(pair(if kind.kind.protocol == Protocol::Packets { "p" } else { "link" }, end));
    Inst {
        name: format!("u_stub_{}_{}", ident(instance), ident(&port.name)),
        doc: Some(format!("Nothing is linked to `{instance}.{}`.", port.name)),
        module: format!("gw::{}_stub_{role}", kind.interface),
        params: if kind.kind.protocol == Protocol::Wires { link_params(kind, port, width) } else { Vec::new() },
        ports,
        ..Inst::default()
    }
}

pub(super) fn clock_ports(clock: Option<&ClockNet>) -> Vec<Pair> {
    let name = clock.map_or("sys", |c| c.name.as_str());
    vec![pair("clk", format!("clk_{name}")), pair("rst", format!("rst_{name}"))]
}

/// Beats of a link's FIFO that are kept in LUT RAM; more go to block RAM.
const LUT_RAM_BEATS: u32 = 32;

/// The cells of one packets link, from the provider's interface to the client's.
fn adapters(input: &TopInput<'_>, link: &PlannedLink, section: &mut Section) {
    let (graph, plan) = (input.graph, input.plan);
    let edge = &graph.edges[link.edge];
    let Some(kind) = input.kinds.get(&edge.kind) else { return };
    let base = provider_link(graph, &edge.client).replace(['[', ']'], "_").trim_end_matches('_').to_owned();
    let mut from = provider_link(graph, &edge.provider);
    let mut width = link.provider.width;
    let mut clock = link.provider.clock;
    for (step, adapter) in link.adapters.iter().enumerate() {
        let last = step + 1 == link.adapters.len();
        let before_width = width;
        let before_clock = clock;
        match adapter {
            Adapter::Crossing => clock = link.client.clock,
            Adapter::Width => width = link.client.width,
            Adapter::Store(_) | Adapter::Fifo(_) => {}
        }
        let to = if last { base.clone() } else { format!("{base}_{step}") };
        section.insts.push(Inst {
            name: to.clone(),
            domain: clock_of(plan, clock).map(|c| c.name.clone()),
            module: format!("kinds::{}", kind.interface),
            params: packets_params(kind, width),
            ..Inst::default()
        });
        let net = |c: Option<usize>| clock_of(plan, c).map_or_else(|| "sys".to_owned(), |c| c.name.clone());
        let (module, params, mut ports) = match adapter {
            Adapter::Crossing => {
                let (p, c) = (net(before_clock), net(clock));
                let ports = vec![
                    pair("clk_up", format!("clk_{p}")),
                    pair("rst_up", format!("rst_{p}")),
                    pair("clk_down", format!("clk_{c}")),
                    pair("rst_down", format!("rst_{c}")),
                ];
                ("gw::packet_cdc", packets_params(kind, width), ports)
            }
            Adapter::Width => {
                let params = vec![
                    pair("UP", before_width.to_string()),
                    pair("DOWN", width.to_string()),
                    pair("RU", kind.rx_user.clone()),
                    pair("TU", kind.tx_user.clone()),
                ];
                let n = net(clock);
                ("gw::packet_width", params, vec![pair("clk", format!("clk_{n}")), pair("rst", format!("rst_{n}"))])
            }
            Adapter::Store(bytes) => {
                let mut params = packets_params(kind, width);
                params.push(pair("BYTES", bytes.next_power_of_two().to_string()));
                let n = net(clock);
                ("gw::packet_store", params, vec![pair("clk", format!("clk_{n}")), pair("rst", format!("rst_{n}"))])
            }
            Adapter::Fifo(bytes) => {
                let beats = bytes / (width / 8).max(1);
                let params = vec![
                    pair("W", width.to_string()),
                    pair("RU", kind.rx_user.clone()),
                    pair("DEPTH", beats.to_string()),
                    pair("BLOCK", (beats > LUT_RAM_BEATS).to_string()),
                ];
                let n = net(clock);
                ("gw::packet_rx_fifo", params, vec![pair("clk", format!("clk_{n}")), pair("rst", format!("rst_{n}"))])
            }
        };
        ports.push(pair("up", from.clone()));
        ports.push(pair("down", to.clone()));
        section.insts.push(Inst {
            name: format!("u_{}_{step}", base.trim_start_matches("l_")),
            doc: Some(format!("{} -> {}", end_name(graph, &edge.provider), end_name(graph, &edge.client))),
            module: module.to_owned(),
            params,
            ports,
            ..Inst::default()
        });
        from = to;
    }
}

/// Masters, blocks and the interconnect between them.
fn register_bus(input: &TopInput<'_>) -> Option<Section> {
    let bus = input.registers;
    if bus.blocks.is_empty() && bus.masters.is_empty() {
        return None;
    }
    let mut section = Section { title: "Registers".to_owned(), ..Section::default() };
    let sys = "sys";
    if bus.masters.is_empty() || bus.blocks.is_empty() {
        let (ends, role): (Vec<(usize, String)>, &str) = if bus.masters.is_empty() {
            (bus.blocks.iter().map(|(n, p, _, _)| (*n, p.clone())).collect(), "client")
        } else {
            (bus.masters.clone(), "provider")
        };
        for (node, port) in ends {
            let name = format!("{}_{}", ident(&input.graph.nodes[node].instance.name.value), ident(&port));
            let net = domain_of(input, node, &port);
            section.insts.push(Inst {
                name: format!("l_{name}"),
                domain: Some(net.to_owned()),
                module: "kinds::axi4_lite".to_owned(),
                ..Inst::default()
            });
            let mut ports = Vec::new();
            if role == "provider" {
                ports.push(pair("clk", format!("clk_{net}")));
                ports.push(pair("rst", format!("rst_{net}")));
            }
            ports.push(pair("link", format!("l_{name}")));
            section.insts.push(Inst {
                name: format!("u_stub_{name}"),
                module: format!("gw::axi4_lite_stub_{role}"),
                ports,
                ..Inst::default()
            });
        }
        return Some(section);
    }
    let array = |name: &str, count: usize| Inst {
        name: name.to_owned(),
        domain: Some(sys.to_owned()),
        module: "kinds::axi4_lite".to_owned(),
        array: Some(count as u32),
        ..Inst::default()
    };
    section.insts.push(array("l_masters", bus.masters.len()));
    section.insts.push(array("l_blocks", bus.blocks.len()));
    // Packed, block 0 in the low bits.
    let bases = bus.blocks.iter().rev().map(|(_, _, base, _)| format!("16'h{base:04x}")).collect::<Vec<_>>().join(", ");
    let sizes = bus.blocks.iter().rev().map(|(_, _, _, size)| format!("8'd{}", size.trailing_zeros())).collect::<Vec<_>>().join(", ");
    section.insts.push(Inst {
        name: "u_registers".to_owned(),
        module: "gw::axil_interconnect".to_owned(),
        params: vec![
            pair("M", bus.masters.len().to_string()),
            pair("N", bus.blocks.len().to_string()),
            pair("BASE", format!("{{{bases}}}")),
            pair("SIZE_LOG2", format!("{{{sizes}}}")),
        ],
        ports: vec![pair("clk", "clk_sys"), pair("rst", "rst_sys"), pair("masters", "l_masters"), pair("blocks", "l_blocks")],
        ..Inst::default()
    });
    section.insts.extend(bus.blocks.iter().enumerate().flat_map(|(i, (node, port, _, _))| crossing(input, *node, port, i, true)));
    section.insts.extend(bus.masters.iter().enumerate().flat_map(|(i, (node, port))| crossing(input, *node, port, i, false)));
    Some(section)
}

fn domain_of<'a>(input: &'a TopInput<'_>, node: usize, port: &str) -> &'a str {
    let domain = input.graph.nodes[node].port(port).map(|p| p.domain.clone()).unwrap_or_default();
    input.plan.domains.get(&(node, domain)).and_then(|c| input.plan.clocks.get(*c)).map_or("sys", |c| c.name.as_str())
}

/// `gw::axil_cdc` where a block or master is not in the system domain.
fn crossing(input: &TopInput<'_>, node: usize, port: &str, index: usize, block: bool) -> Vec<Inst> {
    let net = domain_of(input, node, port);
    if net == "sys" {
        return Vec::new();
    }
    let name = format!("{}_{}", ident(&input.graph.nodes[node].instance.name.value), ident(port));
    let near = if block { format!("l_blocks[{index}]") } else { format!("l_masters[{index}]") };
    let far = format!("l_{name}");
    let (s, d, master, slave) = if block { ("sys", net, near, far.clone()) } else { (net, "sys", far.clone(), near) };
    vec![
        Inst { name: far, domain: Some(net.to_owned()), module: "kinds::axi4_lite".to_owned(), ..Inst::default() },
        Inst {
            name: format!("u_cross_{name}"),
            module: "gw::axil_cdc".to_owned(),
            ports: vec![
                pair("clk_s", format!("clk_{s}")),
                pair("rst_s", format!("rst_{s}")),
                pair("clk_d", format!("clk_{d}")),
                pair("rst_d", format!("rst_{d}")),
                pair("master", master),
                pair("slave", slave),
            ],
            ..Inst::default()
        },
    ]
}

/// Interface that a register port is tied to.
fn register_link(input: &TopInput<'_>, node: usize, port: &Port) -> String {
    let bus = input.registers;
    let own = format!("l_{}_{}", ident(&input.graph.nodes[node].instance.name.value), ident(&port.name));
    if bus.masters.is_empty() || bus.blocks.is_empty() || domain_of(input, node, &port.name) != "sys" {
        return own;
    }
    if port.role == Role::Provider {
        let index = bus.blocks.iter().position(|(n, p, _, _)| *n == node && *p == port.name);
        index.map_or(own, |i| format!("l_blocks[{i}]"))
    } else {
        let index = bus.masters.iter().position(|(n, p)| *n == node && *p == port.name);
        index.map_or(own, |i| format!("l_masters[{i}]"))
    }
}

fn instances(input: &TopInput<'_>) -> Section {
    let mut section = Section { title: "Instances".to_owned(), ..Section::default() };
    let (graph, plan) = (input.graph, input.plan);
    for (index, node) in graph.nodes.iter().enumerate() {
        let Some(output) = input.outputs.get(index) else { continue };
        let mut ports = Vec::new();
        for domain in &node.shape.domains {
            if let Some(net) = plan.domains.get(&(index, domain.name.clone())).and_then(|c| plan.clocks.get(*c)) {
                ports.push(pair(format!("clk_{}", ident(&domain.name)), format!("clk_{}", net.name)));
                ports.push(pair(format!("rst_{}", ident(&domain.name)), format!("rst_{}", net.name)));
            }
        }
        for port in &node.shape.ports {
            let registers = input.kinds.get(&port.kind).is_some_and(|k| k.kind.protocol == Protocol::Registers);
            let link = if registers {
                register_link(input, index, port)
            } else {
                let own = format!("l_{}_{}", ident(&node.instance.name.value), ident(&port.name));
                let found = plan
                    .links
                    .iter()
                    .find(|l| matches!(&graph.edges[l.edge].client, End::Port { node, port: p, .. } if *node == index && *p == port.name));
                if port.role == Role::Provider { own } else { found.map_or(own, |l| client_link(graph, l)) }
            };
            ports.push(pair(ident(&port.name), link));
        }
        section.insts.push(Inst {
            name: format!("u_{}", ident(&node.instance.name.value)),
            doc: Some(format!("`{}`: {} {}", node.instance.name.value, node.about.name, node.about.version)),
            module: format!("{}::{}", input.projects[index], output.top),
            params: output.parameters.iter().map(|(name, value)| pair(name.clone(), literal(value))).collect(),
            ports,
            ..Inst::default()
        });
    }
    section
}

/// Renders the top level as Veryl, formatted.
///
/// # Errors
/// The message of the template engine, which a test rules out, or of Veryl's parser where a plugin's
/// expression is not Veryl.
pub fn render(top: &Top) -> Result<String, String> {
    let context = tera::Context::from_serialize(top).map_err(|e| e.to_string())?;
    let text = tera::Tera::one_off(crate::assets::template("top.veryl.tera"), &context, false).map_err(|e| format!("{e:?}"))?;
    crate::hdl::format("top.veryl", text.trim_start()).map_err(|m| match m.at {
        Some((line, column)) => format!("{line}:{column}: {}", m.message),
        None => m.message,
    })
}
