//! The typed bindings of the WIT, and the way between them and [`types`](super::types).

use serde_json::Value as Json;

use super::types as t;

mod generated {
    #![allow(missing_docs)]
    wasmtime::component::bindgen!({ path: "../plugins/wit/0.1.0", world: "plugin" });
}

pub(super) use generated::exports::gateweave::plugin::contract as w;
pub(super) use generated::{Plugin as Bindings, PluginPre};

/// Version of the contract that this module speaks.
pub(super) const VERSION: &str = "0.1.0";

/// A string that should have been JSON, and where it stood.
#[derive(Debug)]
pub(super) struct NotJson(pub String);

fn json(text: &str, place: impl FnOnce() -> String) -> Result<Json, NotJson> {
    serde_json::from_str(text).map_err(|e| NotJson(format!("{} is not JSON: {e}", place())))
}

pub(super) fn about(a: w::About) -> Result<t::About, NotJson> {
    Ok(t::About {
        params_schema: json(&a.params_schema, || "`params-schema`".into())?,
        kinds: a
            .kinds
            .into_iter()
            .map(|k| {
                Ok(t::Kind {
                    props_schema: json(&k.props_schema, || format!("`props-schema` of kind `{}`", k.id))?,
                    protocol: match k.protocol {
                        w::Protocol::Packets => t::Protocol::Packets,
                        w::Protocol::Memory => t::Protocol::Memory,
                        w::Protocol::Registers => t::Protocol::Registers,
                        w::Protocol::Wires => t::Protocol::Wires,
                    },
                    id: k.id,
                    veryl: k.veryl,
                })
            })
            .collect::<Result<_, _>>()?,
        name: a.name,
        version: a.version,
        summary: a.summary,
    })
}

pub(super) fn diagnostic(d: w::Diagnostic) -> t::PluginDiagnostic {
    t::PluginDiagnostic {
        severity: match d.severity {
            w::Severity::Error => t::PluginSeverity::Error,
            w::Severity::Warning => t::PluginSeverity::Warning,
            w::Severity::Note => t::PluginSeverity::Note,
        },
        code: d.code,
        pointer: d.pointer,
        message: d.message,
        help: d.help,
    }
}

fn props(list: Vec<w::Prop>, place: impl Fn() -> String) -> Result<t::Props, NotJson> {
    let mut props = t::Props::new();
    for prop in list {
        let value = json(&prop.value, || format!("property `{}` of {}", prop.key, place()))?;
        if props.insert(prop.key.clone(), value).is_some() {
            return Err(NotJson(format!("{} has property `{}` twice", place(), prop.key)));
        }
    }
    Ok(props)
}

pub(super) fn shape(s: w::Shape) -> Result<t::Shape, NotJson> {
    Ok(t::Shape {
        tables: json(&s.tables, || "`tables`".into())?,
        domains: s
            .domains
            .into_iter()
            .map(|d| t::Domain {
                name: d.name,
                clock: match d.clock {
                    w::Clock::System => t::Clock::System,
                    w::Clock::Ask(a) => t::Clock::Ask { hz: a.hz, tolerance_ppm: a.tolerance_ppm, phase_mdeg: a.phase_mdeg },
                    w::Clock::FromPort(p) => t::Clock::FromPort(p),
                    w::Clock::FromPeer(p) => t::Clock::FromPeer(p),
                },
            })
            .collect(),
        ports: s
            .ports
            .into_iter()
            .map(|p| {
                Ok(t::Port {
                    props: props(p.props, || format!("port `{}`", p.name))?,
                    role: match p.role {
                        w::Role::Provider => t::Role::Provider,
                        w::Role::Client => t::Role::Client,
                    },
                    name: p.name,
                    kind: p.kind,
                    links_min: p.links_min,
                    links_max: p.links_max,
                    widths: p.widths,
                    domain: p.domain,
                    gbps_milli: p.gbps_milli,
                })
            })
            .collect::<Result<_, _>>()?,
    })
}

pub(super) fn output(o: w::Output) -> Result<t::Output, NotJson> {
    Ok(t::Output {
        top: o.top,
        parameters: o
            .parameters
            .into_iter()
            .map(|p| json(&p.value, || format!("parameter `{}`", p.key)).map(|value| (p.key, value)))
            .collect::<Result<_, _>>()?,
        sources: o
            .sources
            .into_iter()
            .map(|s| t::PluginSource {
                path: s.path,
                language: match s.language {
                    w::Language::Veryl => t::Language::Veryl,
                    w::Language::SystemVerilog => t::Language::SystemVerilog,
                },
                purpose: match s.purpose {
                    w::Purpose::Design => t::Purpose::Design,
                    w::Purpose::SimModel => t::Purpose::SimModel,
                    w::Purpose::Testbench => t::Purpose::Testbench,
                },
                text: s.text,
            })
            .collect(),
        timing: o
            .timing
            .into_iter()
            .map(|x| t::Timing {
                rule: match x.rule {
                    w::TimingRule::FalsePath => t::TimingRule::FalsePath,
                    w::TimingRule::MaxDelay => t::TimingRule::MaxDelay,
                    w::TimingRule::Multicycle => t::TimingRule::Multicycle,
                },
                start: x.start,
                end: x.end,
                value_ps: x.value_ps,
                why: x.why,
            })
            .collect(),
        docs: o.docs,
    })
}

fn to_props(props: &t::Props) -> Vec<w::Prop> {
    props.iter().map(|(key, value)| w::Prop { key: key.clone(), value: value.to_string() }).collect()
}

pub(super) fn to_peer(p: &t::Peer) -> w::Peer {
    w::Peer { port: p.port.clone(), index: p.index, instance: p.instance.clone(), props: to_props(&p.props) }
}

pub(super) fn to_plan(p: &t::Plan) -> w::Plan {
    w::Plan {
        instance: p.instance.clone(),
        prefix: p.prefix.clone(),
        params: p.params.to_string(),
        board: p.board.to_string(),
        target: match p.target {
            t::Target::Fpga => w::Target::Fpga,
            t::Target::Simulation => w::Target::Simulation,
            t::Target::Lint => w::Target::Lint,
        },
        links: p
            .links
            .iter()
            .map(|l| w::Wired {
                port: l.port.clone(),
                index: l.index,
                width: l.width,
                domain: l.domain.clone(),
                hz: l.hz,
                peer: to_peer(&l.peer),
            })
            .collect(),
        register_base: p.register_base,
        register_data_bits: p.register_data_bits,
    }
}
