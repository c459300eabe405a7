//! Memory links: the width that each end has, and the arbiter before a memory with several clients.

use super::graph::{Edge, End, Graph};
use crate::plugin::types::{Port, Protocol};

/// Beats of the longest burst of a client that does not say (`burst-beats`).
const BURST: u64 = 16;
/// Bits of an address where a port does not say (`address-width`).
const ADDRESS: u64 = 32;
/// Words of an arbiter's buffers: at least four bursts, so that a memory's latency is hidden, and what a block RAM holds anyway.
const DEPTH: std::ops::RangeInclusive<u64> = 64..=512;

/// One grant in so many goes by turns among all, whatever the priorities (`gw::request_rank`).
pub const TURNS: u32 = 8;

/// Cycles of either clock by which `gw::axi4_cdc` delays the first beat of a read, at most.
const CROSSING: u64 = 5;

/// Nanoseconds by which a crossing between two clocks delays the first beat of a read, at most.
pub fn crossing_ns(client_hz: u64, memory_hz: u64) -> u64 {
    [client_hz, memory_hz].map(|hz| (CROSSING * 1_000_000_000).div_ceil(hz.max(1))).iter().sum()
}

/// `gw::axi4_arbiter` before a memory port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arbiter {
    /// Node of the provider.
    pub node: usize,
    /// Its port.
    pub port: String,
    /// Clients.
    pub clients: u32,
    /// Words of each client's buffers.
    pub depth: u64,
    /// Priority of each client, higher first; empty where they are all equal.
    pub priorities: Vec<u8>,
}

/// The edges at a provider's memory port, in the order of their index.
fn clients<'a>(graph: &'a Graph, node: usize, port: &'a str) -> impl Iterator<Item = &'a Edge> + 'a {
    graph.at(node, port).filter(|(_, edge, is_client)| !is_client && edge.protocol == Protocol::Memory).map(|(_, edge, _)| edge)
}

/// Whether an arbiter stands before a port.
pub fn is_shared(graph: &Graph, node: usize, port: &Port) -> bool {
    port.links_max == 1 && clients(graph, node, &port.name).nth(1).is_some()
}

fn client_port<'a>(graph: &'a Graph, edge: &Edge) -> Option<(usize, &'a Port)> {
    match &edge.client {
        End::Port { node, port, .. } => graph.nodes[*node].port(port).map(|p| (*node, p)),
        End::Board { .. } => None,
    }
}

fn number(port: &Port, key: &str) -> Option<u64> {
    port.props.get(key).and_then(serde_json::Value::as_u64)
}

/// Bits of a byte address.
pub fn address_width(port: &Port) -> u64 {
    number(port, "address-width").unwrap_or(ADDRESS)
}

/// Width at a client: what the link asks for, else the width of its instance's datapath, else the first that it has.
pub fn client_width(graph: &Graph, edge: &Edge, datapaths: &[Option<u32>]) -> u32 {
    let Some((node, port)) = client_port(graph, edge) else { return 32 };
    let asked = edge.link.width.as_ref().map(|w| w.value);
    let own = datapaths[node].filter(|w| port.widths.contains(w));
    asked.or(own).or(port.widths.first().copied()).unwrap_or(32)
}

/// Width at a provider: the least that it has for its widest client; its widest where none suffices.
pub fn provider_width(graph: &Graph, node: usize, port: &Port, datapaths: &[Option<u32>]) -> u32 {
    let widest = clients(graph, node, &port.name).map(|edge| client_width(graph, edge, datapaths)).max().unwrap_or(0);
    let enough = port.widths.iter().copied().filter(|w| *w >= widest).min();
    enough.or(port.widths.iter().copied().max()).unwrap_or(widest)
}

/// The arbiters that a project needs.
pub fn arbiters(graph: &Graph, datapaths: &[Option<u32>]) -> Vec<Arbiter> {
    let mut found = Vec::new();
    for (node, info) in graph.nodes.iter().enumerate() {
        for port in info.shape.ports.iter().filter(|p| is_shared(graph, node, p)) {
            let width = u64::from(provider_width(graph, node, port, datapaths).max(1));
            // A narrow client's burst starts anywhere in a word.
            let burst = |edge: &Edge| {
                let beats = client_port(graph, edge).and_then(|(_, p)| number(p, "burst-beats")).unwrap_or(BURST);
                let own = u64::from(client_width(graph, edge, datapaths));
                if own < width { beats * own / width + 1 } else { beats }
            };
            let longest = clients(graph, node, &port.name).map(burst).max().unwrap_or(BURST);
            let mut priorities: Vec<u8> =
                clients(graph, node, &port.name).map(|e| e.link.priority.as_ref().map_or(0, |p| p.value)).collect();
            if priorities.iter().all(|p| Some(p) == priorities.first()) {
                priorities.clear();
            }
            found.push(Arbiter {
                node,
                port: port.name.clone(),
                clients: clients(graph, node, &port.name).count() as u32,
                depth: (4 * longest.min(256)).next_power_of_two().clamp(*DEPTH.start(), *DEPTH.end()),
                priorities,
            });
        }
    }
    found
}
