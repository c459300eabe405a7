//! The elaborated graph: instances with their shapes, links with both ends found.
//!
//! Made from the project, the board and what each plugin said in `describe` and
//! `elaborate`. Nothing here chooses a width or a clock: that is the planner's.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::diag::{Diagnostic, Diagnostics, Span, Spanned};
use crate::manifest::project::{Instance, Link, Project};
use crate::plugin::types::{About, Kind, Peer, Port, Protocol, Role, Shape};

/// Name that stands for the board in links and peers.
pub const BOARD: &str = "board";

/// A resource of the board as a provider of wires.
#[derive(Clone, Debug)]
pub struct BoardPort {
    /// Name of the resource.
    pub name: String,
    /// Kind id of its class.
    pub kind: String,
    /// Facts and class, shown to the plugin as its peer's properties.
    pub props: BTreeMap<String, Json>,
    /// Where it stands in the board file.
    pub span: Span,
    /// Line rate in 1/1000 Gbit/s, where the class has one.
    pub gbps_milli: Option<u64>,
    /// Frequency of the clock that comes in on it, in Hz; `None` where there is none, or where it follows the system clock.
    pub clock_hz: Option<u64>,
    /// Data width in bits; `None` where there is none, or where it follows the datapath.
    pub width: Option<u32>,
}

/// An instance with what its plugin said.
#[derive(Clone, Debug)]
pub struct Node {
    /// As written in the project.
    pub instance: Instance,
    /// Who the plugin is.
    pub about: About,
    /// Canonical parameters.
    pub params: Json,
    /// Ports, domains and tables.
    pub shape: Shape,
}

impl Node {
    /// A port by name.
    pub fn port(&self, name: &str) -> Option<&Port> {
        self.shape.ports.iter().find(|p| p.name == name)
    }
}

/// Where a link ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// Port of an instance: index into [`Graph::nodes`], port name, and which link of that port.
    Port {
        /// Index of the node.
        node: usize,
        /// Port name.
        port: String,
        /// Which link of that port.
        index: u32,
    },
    /// Resource of the board.
    Board {
        /// Resource name.
        resource: String,
    },
}

/// A link with both ends.
#[derive(Clone, Debug)]
pub struct Edge {
    /// As written.
    pub link: Link,
    /// Kind id.
    pub kind: String,
    /// Adapters that are legal on it.
    pub protocol: Protocol,
    /// The client's end.
    pub client: End,
    /// The provider's end.
    pub provider: End,
}

/// Instances and links.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Instances in file order.
    pub nodes: Vec<Node>,
    /// Links in file order, without register links.
    pub edges: Vec<Edge>,
}

impl Graph {
    /// The edges at a port, ordered by index.
    pub fn at<'a>(&'a self, node: usize, port: &'a str) -> impl Iterator<Item = (u32, &'a Edge, bool)> + 'a {
        let mut found: Vec<(u32, &Edge, bool)> = Vec::new();
        for edge in &self.edges {
            for (end, is_client) in [(&edge.client, true), (&edge.provider, false)] {
                if let End::Port { node: n, port: p, index } = end
                    && *n == node
                    && p == port
                {
                    found.push((*index, edge, is_client));
                }
            }
        }
        found.sort_by_key(|(index, _, _)| *index);
        found.into_iter()
    }

    /// The peers of an instance as its plugin sees them: every link of every port, in port order.
    pub fn peers(&self, node: usize, board: &[BoardPort]) -> Vec<Peer> {
        let mut peers = Vec::new();
        for port in &self.nodes[node].shape.ports {
            for (index, edge, is_client) in self.at(node, &port.name) {
                let other = if is_client { &edge.provider } else { &edge.client };
                let (instance, props) = match other {
                    End::Port { node, port, .. } => {
                        let peer = &self.nodes[*node];
                        (peer.instance.name.value.clone(), peer.port(port).map(|p| p.props.clone()).unwrap_or_default())
                    }
                    End::Board { resource } => {
                        let found = board.iter().find(|r| r.name == *resource);
                        (BOARD.to_owned(), found.map(|r| r.props.clone()).unwrap_or_default())
                    }
                };
                peers.push(Peer { port: port.name.clone(), index, instance, props });
            }
        }
        peers
    }
}

/// Ties every link of the project to its two ports. Of links to a name in `absent` (instances that could not be loaded, or
/// `board`) nothing is said.
///
/// Diagnostics: `GW0401` no such instance, `GW0402` no such port or resource, `GW0403` kinds differ, `GW0404` the roles do
/// not fit, `GW0405` too many links, `GW0406` a port without the link it needs, `GW0407` two clients claim
/// what only one can have.
pub fn connect(project: &Project, nodes: Vec<Node>, kinds: &[Kind], board: &[BoardPort], absent: &[String]) -> (Graph, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let mut excused = Excused { clients: BTreeSet::new(), providers: !absent.is_empty() };
    let names: Vec<String> = nodes.iter().map(|n| n.instance.name.value.clone()).collect();
    let mut graph = Graph { nodes, edges: Vec::new() };
    let mut used: BTreeMap<(usize, String), u32> = BTreeMap::new();
    for node in 0..graph.nodes.len() {
        if !graph.nodes[node].instance.complete {
            excused.clients.insert(node);
            excused.providers = true;
        }
        for link in graph.nodes[node].instance.links.clone() {
            match resolve(&graph, node, &link, &names, kinds, board, absent) {
                Ok(None) => {
                    excused.clients.insert(node);
                }
                Ok(Some((kind, protocol, provider))) => {
                    let client = take(&mut used, node, &link.port.value);
                    let provider = match provider {
                        Found::Port(n, port) => take(&mut used, n, &port),
                        Found::Board(resource) => End::Board { resource },
                    };
                    graph.edges.push(Edge { link, kind, protocol, client, provider });
                }
                Err(diagnostic) => {
                    diagnostics.push(diagnostic);
                    excused.clients.insert(node);
                    excused.providers = true;
                }
            }
        }
    }
    check_counts(&graph, kinds, board, &excused, &mut diagnostics);
    check_exclusive(project, &graph, kinds, &mut diagnostics);
    (graph, diagnostics)
}

/// Ports of which it is not known whether they lack a link, because some link was wrong.
struct Excused {
    /// Nodes whose own links could not all be read or followed.
    clients: BTreeSet<usize>,
    /// Whether a link to a provider may be among those that were wrong.
    providers: bool,
}

enum Found {
    Port(usize, String),
    Board(String),
}

fn take(used: &mut BTreeMap<(usize, String), u32>, node: usize, port: &str) -> End {
    let next = used.entry((node, port.to_owned())).or_insert(0);
    let index = *next;
    *next += 1;
    End::Port { node, port: port.to_owned(), index }
}

fn resolve(
    graph: &Graph,
    node: usize,
    link: &Link,
    names: &[String],
    kinds: &[Kind],
    board: &[BoardPort],
    absent: &[String],
) -> Result<Option<(String, Protocol, Found)>, Diagnostic> {
    let own = &graph.nodes[node];
    let Some(port) = own.port(&link.port) else {
        let message = format!("plugin `{}` has no port `{}`", own.about.name, link.port.value);
        let known = own.shape.ports.iter().filter(|p| p.role == Role::Client).map(|p| p.name.as_str());
        return Err(Diagnostic::error("GW0402", message).at(&link.port.span).nearest(&link.port, known));
    };
    if port.role == Role::Provider {
        let message = format!("port `{}` of `{}` is a provider; a link is written at the client", port.name, own.instance.name.value);
        return Err(Diagnostic::error("GW0404", message)
            .at(&link.port.span)
            .help(format!("in the instance that needs it, write `links = {{ ... = \"{}.{}\" }}`", own.instance.name.value, port.name)));
    }
    let (target, target_port) = link.to.value.split_once('.').unwrap_or((link.to.value.as_str(), ""));
    if absent.iter().any(|name| name == target) {
        return Ok(None);
    }
    let (kind, found) = if target == BOARD {
        let Some(resource) = board.iter().find(|r| r.name == target_port) else {
            let message = format!("the board has no resource `{target_port}`");
            let known = board.iter().map(|r| r.name.as_str());
            return Err(Diagnostic::error("GW0402", message).at(&link.to.span).nearest(target_port, known));
        };
        (resource.kind.clone(), Found::Board(target_port.to_owned()))
    } else {
        let Some(peer) = names.iter().position(|n| n == target) else {
            let message = format!("there is no instance `{target}`");
            let known = names.iter().chain(absent).map(String::as_str).chain([BOARD]);
            return Err(Diagnostic::error("GW0401", message).at(&link.to.span).nearest(target, known));
        };
        let Some(provider) = graph.nodes[peer].port(target_port) else {
            let message = format!("instance `{target}` has no port `{target_port}`");
            let known = graph.nodes[peer].shape.ports.iter().filter(|p| p.role == Role::Provider).map(|p| p.name.as_str());
            return Err(Diagnostic::error("GW0402", message).at(&link.to.span).nearest(target_port, known));
        };
        if provider.role != Role::Provider {
            let message = format!("`{}` is a client port; a link goes to a provider", link.to.value);
            return Err(Diagnostic::error("GW0404", message).at(&link.to.span));
        }
        (provider.kind.clone(), Found::Port(peer, target_port.to_owned()))
    };
    // A client may name several kinds it can speak, separated by `|` (a MAC takes any PHY).
    if !port.kind.split('|').any(|k| k == kind) {
        let message = format!("`{}` speaks `{kind}`, port `{}` needs {}", link.to.value, port.name, kinds_in_words(&port.kind));
        let fits: Vec<String> = fitting(graph, &port.kind, board).iter().map(|f| format!("`{f}`")).collect();
        let mut diagnostic = Diagnostic::error("GW0403", message).at(&link.to.span);
        if !fits.is_empty() {
            diagnostic = diagnostic.help(format!("what fits: {}", fits.join(", ")));
        }
        return Err(diagnostic);
    }
    let protocol = kinds.iter().find(|k| k.id == kind).map_or(Protocol::Wires, |k| k.protocol);
    Ok(Some((kind, protocol, found)))
}

/// What a client port of `kind` (perhaps several, separated by `|`) can be linked to.
fn fitting(graph: &Graph, kind: &str, board: &[BoardPort]) -> Vec<String> {
    let fits = |other: &str| kind.split('|').any(|k| k == other);
    let ports = graph.nodes.iter().flat_map(|n| {
        let fit = n.shape.ports.iter().filter(|p| p.role == Role::Provider && fits(&p.kind));
        fit.map(|p| format!("{}.{}", n.instance.name.value, p.name)).collect::<Vec<_>>()
    });
    ports.chain(board.iter().filter(|r| fits(&r.kind)).map(|r| format!("{BOARD}.{}", r.name))).collect()
}

/// `a|b` as "`a` or `b`".
fn kinds_in_words(kind: &str) -> String {
    kind.split('|').map(|k| format!("`{k}`")).collect::<Vec<_>>().join(" or ")
}

/// A port that lacks a link has the place of its instance's name.
fn check_counts(graph: &Graph, kinds: &[Kind], board: &[BoardPort], excused: &Excused, diagnostics: &mut Diagnostics) {
    let linked = |node: usize, port: &str| graph.at(node, port).next().is_some();
    for (index, node) in graph.nodes.iter().enumerate() {
        for port in &node.shape.ports {
            if kinds.iter().any(|k| k.id == port.kind && k.protocol == Protocol::Registers) {
                continue;
            }
            let links: Vec<&Edge> = graph.at(index, &port.name).map(|(_, edge, _)| edge).collect();
            let count = links.len() as u32;
            let shared = port.role == Role::Provider && kinds.iter().any(|k| k.id == port.kind && k.protocol == Protocol::Memory);
            if count > port.links_max && !shared {
                let mut diagnostic = Diagnostic::error(
                    "GW0405",
                    format!(
                        "port `{}.{}` takes {} link{}, not {count}",
                        node.instance.name.value,
                        port.name,
                        port.links_max,
                        if port.links_max == 1 { "" } else { "s" }
                    ),
                );
                for (nth, edge) in links.iter().enumerate() {
                    diagnostic = if nth as u32 == port.links_max {
                        diagnostic.at(&edge.link.to.span)
                    } else {
                        diagnostic.also(&edge.link.to.span, "linked here too")
                    };
                }
                diagnostics.push(diagnostic);
            }
            if count < port.links_min {
                let waiting: Vec<String> = graph
                    .nodes
                    .iter()
                    .enumerate()
                    .flat_map(|(n, other)| {
                        let ports = other.shape.ports.iter();
                        let free = ports.filter(|p| {
                            p.role == Role::Client && p.links_min > 0 && p.kind.split('|').any(|k| k == port.kind) && !linked(n, &p.name)
                        });
                        free.map(|p| format!("{}.{}", other.instance.name.value, p.name)).collect::<Vec<_>>()
                    })
                    .collect();
                let silent = match port.role {
                    Role::Client => excused.clients.contains(&index),
                    // A client without its link is the same mistake, said there.
                    Role::Provider => excused.providers || !waiting.is_empty(),
                };
                if silent {
                    continue;
                }
                let name = &node.instance.name;
                let message = format!("port `{}` of `{}` needs a link (kind {})", port.name, name.value, kinds_in_words(&port.kind));
                let mut diagnostic = Diagnostic::error("GW0406", message).at(&name.span);
                if port.role == Role::Client {
                    diagnostic = diagnostic.help(match fitting(graph, &port.kind, board).first() {
                        Some(fit) => format!("write `links = {{ {} = \"{fit}\" }}`", port.name),
                        None => "neither an instance nor the board has a port that fits".to_owned(),
                    });
                } else {
                    diagnostic = diagnostic.help(format!(
                        "add an instance that uses it, with `links = {{ ... = \"{}.{}\" }}`, or remove `{}`",
                        name.value, port.name, name.value
                    ));
                }
                diagnostics.push(diagnostic);
            }
        }
    }
}

/// Properties that the kind's schema marks `x-exclusive`: no two clients of one provider may share a member.
fn check_exclusive(project: &Project, graph: &Graph, kinds: &[Kind], diagnostics: &mut Diagnostics) {
    for (index, node) in graph.nodes.iter().enumerate() {
        for port in node.shape.ports.iter().filter(|p| p.role == Role::Provider) {
            let Some(kind) = kinds.iter().find(|k| k.id == port.kind) else { continue };
            for property in exclusive(&kind.props_schema) {
                let mut claims: BTreeMap<String, Spanned<String>> = BTreeMap::new();
                for (_, edge, _) in graph.at(index, &port.name) {
                    let End::Port { node: client, port: client_port, .. } = &edge.client else { continue };
                    let client = &graph.nodes[*client];
                    let value = client.port(client_port).and_then(|p| p.props.get(&property));
                    for member in value.and_then(Json::as_array).into_iter().flatten() {
                        let claim = Spanned {
                            value: client.instance.name.value.clone(),
                            span: claim_span(project, client, member, &edge.link.to.span),
                        };
                        if let Some(first) = claims.get(&member.to_string()) {
                            diagnostics.push(
                                Diagnostic::error(
                                    "GW0407",
                                    format!("`{}` and `{}` both claim {property} {member}", first.value, claim.value),
                                )
                                .at(&claim.span)
                                .also(&first.span, "claimed here first")
                                .help("give one of them another value"),
                            );
                        } else {
                            claims.insert(member.to_string(), claim);
                        }
                    }
                }
            }
        }
    }
}

fn exclusive(schema: &Json) -> Vec<String> {
    let properties = schema.get("properties").and_then(Json::as_object);
    let marked = properties.into_iter().flatten().filter(|(_, v)| v.get("x-exclusive") == Some(&Json::Bool(true)));
    marked.map(|(k, _)| k.clone()).collect()
}

/// The parameter that has the claimed value, else the link.
fn claim_span(project: &Project, client: &Node, member: &Json, link: &Span) -> Span {
    let written = client.instance.params.as_object().into_iter().flatten();
    let holder = written.into_iter().find(|(_, v)| *v == member || v.as_array().is_some_and(|list| list.contains(member)));
    match holder {
        Some((key, _)) => project.param_span(&client.instance, &format!("/{key}")),
        None => link.clone(),
    }
}
