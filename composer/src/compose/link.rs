//! Settling a link: its two ends, the cells between them, and the overrides that it asks for.

use super::graph::{Edge, End};
use super::memory;
use super::plan::{Adapter, PlannedLink, Planner, Side, end_name, list};
use crate::diag::{Diagnostic, Span};
use crate::plugin::types::Protocol;

/// Beats of the smallest FIFO.
const FIFO_BEATS: u32 = 4;

impl Planner<'_> {
    /// Settles one link.
    pub(super) fn link(&mut self, index: usize) {
        let edge = &self.graph.edges[index];
        let provider = self.side(&edge.provider, edge.protocol, edge);
        let client = self.side(&edge.client, edge.protocol, edge);
        let mut adapters = Vec::new();
        let name = format!("link {} -> {}", edge.link.to.value, end_name(self.graph, &edge.client));
        self.check_overrides(edge);
        if edge.protocol == Protocol::Packets {
            // At the wider end, where the sideband of a beat is shared by most bytes.
            let fifo = self.fifo(edge, &name, provider.width.max(client.width));
            let early = provider.width >= client.width;
            adapters.extend(fifo.filter(|_| early));
            if self.needs_store(edge) {
                let mtu = self.mtu(edge);
                // Two of the longest frames, so that one fills while the other leaves.
                adapters.push(Adapter::Store(2 * (mtu + 22)));
                self.choose(name.clone(), "store and forward", "the client does not promise to send a frame without pauses", false);
            }
            adapters.extend(self.crossing(edge, &name, provider, client));
            if provider.width != client.width {
                adapters.push(Adapter::Width);
                let why = format!("{} bits at the provider, {} at the client", provider.width, client.width);
                self.choose(name.as_str(), "width converter", why, edge.link.width.is_some());
            }
            adapters.extend(fifo.filter(|_| !early));
        } else if edge.protocol == Protocol::Memory {
            adapters.extend(self.memory_link(edge, &name, provider, client));
        } else if let (Some(from), Some(to)) = (provider.clock, client.clock)
            && from != to
        {
            let clock = |c: usize| &self.plan.clocks[c].name;
            let message = format!(
                "`{}` runs on clock `{}`, `{}` on `{}`",
                edge.link.to.value,
                clock(from),
                end_name(self.graph, &edge.client),
                clock(to)
            );
            let help = "only packets, memory and registers cross between clocks";
            self.diagnostics.push(Diagnostic::error("GW0417", message).at(&edge.link.to.span).help(help));
        }
        let priority = self.priority(edge, &name);
        self.plan.links.push(PlannedLink { edge: index, provider, client, adapters, priority });
    }

    /// What the protocol of a link has no use for.
    fn check_overrides(&mut self, edge: &Edge) {
        let link = &edge.link;
        let arbitrated = self.arbitrated(edge);
        let mut refuse = |span: &Span, message: String, help: &str| {
            self.diagnostics.push(Diagnostic::error("GW0413", message).at(span).help(help));
        };
        let to = &link.to.value;
        if edge.protocol != Protocol::Packets {
            let what = match edge.protocol {
                Protocol::Memory => "memory",
                Protocol::Registers => "registers",
                _ => "wires",
            };
            if let Some(fifo) = &link.fifo {
                let help = match edge.protocol {
                    Protocol::Memory => "remove it: a memory with several clients has buffers for each in its arbiter",
                    _ => "remove it: a FIFO is for links that carry packets",
                };
                refuse(&fifo.span, format!("`{to}` is {what}, which has no FIFO"), help);
            }
            if let Some(crossing) = link.crossing.as_ref().filter(|c| c.value && edge.protocol != Protocol::Memory) {
                let help = "only packets and memory cross clocks on a link";
                refuse(&crossing.span, format!("`{to}` is {what}, which has no crossing on its link"), help);
            }
            if let Some(width) = link.width.as_ref().filter(|_| edge.protocol != Protocol::Memory) {
                refuse(
                    &width.span,
                    format!("`{to}` is {what}, which has no width of its own"),
                    "set the width at a packets or memory link, or `datapath.width`",
                );
            }
        }
        let Some(priority) = &link.priority else { return };
        let span = &priority.span;
        match edge.protocol {
            Protocol::Packets => {
                let help = "remove it; for a client that is slow for a while there is `fifo`";
                refuse(span, format!("`{to}` chooses among its clients itself, a link has no priority there"), help);
            }
            Protocol::Memory if !arbitrated => {
                let help = "remove it: priorities are for a memory whose only port several clients share";
                refuse(span, format!("`{to}` has a port for each client, no arbiter stands before it"), help);
            }
            Protocol::Memory => {}
            Protocol::Registers => refuse(span, format!("`{to}` is registers, whose masters take turns"), "remove it"),
            Protocol::Wires => refuse(span, format!("`{to}` is wires, which nobody waits for"), "remove it"),
        }
    }

    /// Whether the composer puts an arbiter before the provider's port once it has several clients.
    fn arbitrated(&self, edge: &Edge) -> bool {
        let End::Port { node, port, .. } = &edge.provider else { return false };
        self.graph.nodes[*node].port(port).is_some_and(|p| p.links_max == 1)
    }

    /// The FIFO that a link asks for: whole beats, a power of two of them.
    fn fifo(&mut self, edge: &Edge, name: &str, width: u32) -> Option<Adapter> {
        let asked = edge.link.fifo.as_ref()?.value;
        let beat = (width / 8).max(1);
        let beats = asked.div_ceil(beat).next_power_of_two().max(FIFO_BEATS);
        let why = format!("`fifo = {asked}`: {beats} beats of {width} bits; a client that is slow for so long loses nothing");
        self.choose(name, format!("FIFO of {} bytes", beats * beat), why, true);
        Some(Adapter::Fifo(beats * beat))
    }

    /// The priority that a link to a shared memory asks for.
    fn priority(&mut self, edge: &Edge, name: &str) -> Option<u8> {
        let asked = edge.link.priority.as_ref().filter(|_| edge.protocol == Protocol::Memory && self.arbitrated(edge))?.value;
        let End::Port { node, port, .. } = &edge.provider else { return None };
        let others = self.graph.at(*node, port).count() - 1;
        let why = if others == 0 {
            "the only client: nobody waits for it".to_owned()
        } else {
            format!("before clients of less, by turns among equals; one grant in {} goes by turns among all", memory::TURNS)
        };
        self.choose(name, format!("priority {asked}"), why, true);
        Some(asked)
    }

    /// The clock crossing of a link, if it needs one or asks for one.
    fn crossing(&mut self, edge: &Edge, name: &str, provider: Side, client: Side) -> Option<Adapter> {
        let crosses = provider.clock != client.clock;
        let forced = edge.link.crossing.as_ref();
        if let Some(forced) = forced.filter(|f| crosses && !f.value) {
            let message = "the two ends run on different clocks; a crossing cannot be left out";
            self.diagnostics.push(Diagnostic::error("GW0413", message).at(&forced.span));
        }
        let why = if crosses { "the two ends run on different clocks" } else { "asked for at the link" };
        (crosses || forced.is_some_and(|f| f.value)).then(|| {
            self.choose(name, "clock crossing", why, forced.is_some());
            Adapter::Crossing
        })
    }

    /// The cells of a memory link. The converter stands on the faster clock, where a beat of the client's per cycle is worth most; of equals
    /// at the memory, so that the narrower words cross.
    fn memory_link(&mut self, edge: &Edge, name: &str, provider: Side, client: Side) -> Vec<Adapter> {
        let crossing = self.crossing(edge, name, provider, client);
        let width = self.memory_width(edge, name, provider.width, client.width);
        let hz = |side: Side| side.clock.map_or(0, |c| self.plan.clocks[c].hz);
        let at_client = hz(client) > hz(provider);
        let order = if at_client { [crossing, width] } else { [width, crossing] };
        order.into_iter().flatten().collect()
    }

    /// The converter of a memory link, if it needs one.
    fn memory_width(&mut self, edge: &Edge, name: &str, provider: u32, client: u32) -> Option<Adapter> {
        let (End::Port { node: p, port: provider_port, .. }, End::Port { node: c, port: client_port, .. }) = (&edge.provider, &edge.client)
        else {
            return None;
        };
        let graph = self.graph;
        let (from, to) = (graph.nodes[*p].port(provider_port)?, graph.nodes[*c].port(client_port)?);
        let client_name = end_name(graph, &edge.client);
        if let Some(asked) = &edge.link.width
            && !to.widths.is_empty()
            && !to.widths.contains(&asked.value)
        {
            let message = format!("`{client_name}` cannot be {} bits wide", asked.value);
            self.diagnostics
                .push(Diagnostic::error("GW0411", message).at(&asked.span).help(format!("widths that it has: {}", list(&[to]))));
            return None;
        }
        let addresses = (memory::address_width(from), memory::address_width(to));
        if addresses.0 != addresses.1 {
            let message = format!("`{}` has addresses of {} bits, `{client_name}` of {}", edge.link.to.value, addresses.0, addresses.1);
            self.diagnostics.push(Diagnostic::error("GW0417", message).at(&edge.link.to.span));
        }
        if client > provider {
            let message = format!("`{client_name}` is {client} bits wide, `{}` at most {provider}", edge.link.to.value);
            let mut error = Diagnostic::error("GW0417", message).at(&edge.link.to.span);
            if let Some(width) = to.widths.iter().filter(|w| **w <= provider).max() {
                error = error.help(format!("set `width = {width}` at the link"));
            }
            self.diagnostics.push(error);
            return None;
        }
        (client < provider).then(|| {
            let why = format!("{provider} bits at the provider, {client} at the client");
            self.choose(name, "width converter", why, edge.link.width.is_some());
            Adapter::Width
        })
    }

    /// The arbiters before shared memories.
    pub(super) fn arbiters(&mut self) {
        self.plan.arbiters = memory::arbiters(self.graph, &self.plan.widths);
        for arbiter in self.plan.arbiters.clone() {
            let name = format!("memory {}.{}", self.graph.nodes[arbiter.node].instance.name.value, arbiter.port);
            let why = format!("{} clients, buffers of {} words each way", arbiter.clients, arbiter.depth);
            self.choose(name, "arbiter", why, false);
        }
    }

    /// A kind whose packets cannot pause on tx, and a client that does not promise to send without pauses.
    fn needs_store(&self, edge: &Edge) -> bool {
        let promised = match &edge.client {
            End::Port { node, port, .. } => {
                let port = self.graph.nodes[*node].port(port);
                port.and_then(|p| p.props.get("continuous")).and_then(serde_json::Value::as_bool)
            }
            End::Board { .. } => None,
        };
        self.kinds.get(&edge.kind).is_some_and(|k| k.needs_continuous) && promised != Some(true)
    }

    fn mtu(&self, edge: &Edge) -> u32 {
        let of = |end: &End| match end {
            End::Port { node, port, .. } => {
                let port = self.graph.nodes[*node].port(port);
                port.and_then(|p| p.props.get("mtu")).and_then(serde_json::Value::as_u64)
            }
            End::Board { .. } => None,
        };
        of(&edge.provider).or(of(&edge.client)).unwrap_or(1500).min(9216) as u32
    }
}
