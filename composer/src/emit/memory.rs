//! Memory links in the top level: the arbiter before a shared memory, and the cells between a memory and a client.

use super::top::{Inst, TopInput, clock_of, clock_ports, pair, provider_link};
use crate::compose::graph::End;
use crate::compose::memory;
use crate::compose::plan::{Adapter, PlannedLink, end_name};
use crate::plugin::types::Port;

/// The arbiter before a memory port with several clients, and the clients' interfaces.
pub(super) fn arbiter(input: &TopInput<'_>, node: usize, port: &Port, width: u32, name: &str) -> Vec<Inst> {
    let Some(arbiter) = input.plan.arbiters.iter().find(|a| a.node == node && a.port == port.name) else { return Vec::new() };
    let net = input.plan.domains.get(&(node, port.domain.clone())).and_then(|c| input.plan.clocks.get(*c));
    let params = vec![pair("ADDR_W", memory::address_width(port).to_string()), pair("DATA_W", width.to_string())];
    let mut own = vec![pair("M", arbiter.clients.to_string())];
    own.extend(params.iter().cloned());
    own.extend([pair("DEPTH", arbiter.depth.to_string()), pair("BLOCK", "true")]);
    if !arbiter.priorities.is_empty() {
        // One packed vector, the first client in the lowest bits.
        let list: Vec<String> = arbiter.priorities.iter().rev().map(|p| format!("3'd{p}")).collect();
        own.push(pair("PRIORITY", format!("{{{}}}", list.join(", "))));
    }
    let mut ports = clock_ports(net);
    ports.extend([pair("clients", format!("{name}_clients")), pair("memory", name)]);
    vec![
        Inst {
            name: format!("{name}_clients"),
            domain: net.map(|n| n.name.clone()),
            module: "kinds::axi4".to_owned(),
            array: Some(arbiter.clients),
            params,
            ..Inst::default()
        },
        Inst {
            name: format!("u_arbiter_{}", name.trim_start_matches("l_")),
            doc: Some(format!("The clients of `{}.{}`", input.graph.nodes[node].instance.name.value, port.name)),
            module: "gw::axi4_arbiter".to_owned(),
            params: own,
            ports,
            ..Inst::default()
        },
    ]
}

/// The cells of a memory link with their interfaces, from the memory to the client.
pub(super) fn cells(input: &TopInput<'_>, link: &PlannedLink) -> Vec<Inst> {
    let edge = &input.graph.edges[link.edge];
    let End::Port { node, port, .. } = &edge.client else { return Vec::new() };
    let address = input.graph.nodes[*node].port(port).map_or(32, memory::address_width).to_string();
    let own = provider_link(input.graph, &edge.client);
    let mut from = provider_link(input.graph, &edge.provider);
    let mut at = link.provider;
    let mut insts = Vec::new();
    for (step, adapter) in link.adapters.iter().enumerate() {
        let before = at;
        let crosses = *adapter == Adapter::Crossing;
        if crosses {
            at.clock = link.client.clock
        } else {
            at.width = link.client.width
        }
        let to = if step + 1 == link.adapters.len() { own.clone() } else { format!("{own}_{step}") };
        let net = clock_of(input.plan, at.clock);
        let params = vec![pair("ADDR_W", address.clone()), pair("DATA_W", at.width.to_string())];
        insts.push(Inst {
            name: to.clone(),
            domain: net.map(|n| n.name.clone()),
            module: "kinds::axi4".to_owned(),
            params: params.clone(),
            ..Inst::default()
        });
        let (name, module, params, mut ports) = if crosses {
            let clocks = [("client", net), ("memory", clock_of(input.plan, before.clock))];
            let ports = clocks
                .into_iter()
                .flat_map(|(side, net)| clock_ports(net).into_iter().map(move |p| pair(format!("{}_{side}", p.name), p.value)));
            ("cross", "gw::axi4_cdc", params, ports.collect())
        } else {
            let params = vec![pair("CLIENT_W", at.width.to_string()), pair("MEMORY_W", before.width.to_string())];
            ("width", "gw::axi4_width", params, clock_ports(net))
        };
        ports.extend([pair("client", to.clone()), pair("memory", from)]);
        insts.push(Inst {
            name: format!("u_{}_{name}", own.trim_start_matches("l_")),
            doc: Some(format!("{} -> {}", end_name(input.graph, &edge.provider), end_name(input.graph, &edge.client))),
            module: module.to_owned(),
            params,
            ports,
            ..Inst::default()
        });
        from = to;
    }
    insts
}
