//! RDMA connection manager: answers and makes connections, for applications and the RoCEv2 transport.

mod address;
mod program;

use gateweave_sdk::prelude::*;
use program::Settings;

/// Most applications of one instance.
const APPS: u32 = 8;
/// 4.3 s, as Linux has it.
const CM_TIMEOUT: u32 = 20;
/// Ticks of the program's clock: 4.096 us.
const TICK_NS: u64 = 4096;

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Queue pairs of the transport, a power of two.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 256))]
    queue_pairs: u32,
    /// READs and atomics that a connection may have under way in each direction.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 16))]
    rd_atomic: u32,
    /// Largest path MTU in bytes: 256, 512, 1024, 2048 or 4096. A REQ with a larger one is refused, a call asks for it.
    #[serde(default = "kibibyte")]
    #[schemars(range(min = 256, max = 4096))]
    pmtu: u32,
    /// MAC address of the port; the GUID of the adapter is made from it.
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"))]
    mac: String,
    /// Our IPv4 address, such as "192.168.7.2/24": needed where an application calls.
    #[serde(default)]
    #[schemars(regex(pattern = "^[0-9]{1,3}(\\.[0-9]{1,3}){3}(/[0-9]{1,2})?$"))]
    ip: Option<String>,
    /// ACK timeout that a call asks for: 4.096 us x 2^n.
    #[serde(default = "nineteen")]
    #[schemars(range(min = 1, max = 31))]
    ack_timeout: u32,
    /// The manager's times pass so many times faster. For simulations, whose seconds last minutes for the programs that they talk to; 1 on a board.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    speed_up: u32,
}

fn one() -> u32 {
    1
}

fn four() -> u32 {
    4
}

fn kibibyte() -> u32 {
    1024
}

fn nineteen() -> u32 {
    19
}

/// The counters, in the order of the program.
const COUNTERS: [(&str, &str); 16] = [
    ("reqs", "REQs received, repeated ones included"),
    ("reps", "REPs sent, repeated ones included"),
    ("rtus", "RTUs received"),
    ("rejects_no_qp", "REQs refused because no queue pair was free (reason 1)"),
    ("rejects_service", "REQs refused because nobody listens there (reason 8)"),
    ("rejects_mtu", "REQs refused for their path MTU (reason 26)"),
    ("rejects_consumer", "REQs refused by an application (reason 28)"),
    ("rejects_other", "messages refused for another reason"),
    ("rejects_received", "REJs received"),
    ("dreqs", "DREQs received, repeated ones included"),
    ("established", "connections that came up"),
    ("mras", "MRAs received"),
    ("timeouts", "peers and applications that did not answer"),
    ("malformed", "datagrams that are no message of the connection manager"),
    ("stale", "connections that ended because their peer made a new one of the same queue pair"),
    ("sidr", "SIDR_REQs received, all answered 'not supported'"),
];

/// Address and GUID.
fn numbers(params: &Params) -> Result<(u64, u32), Diagnostics> {
    let mut wrong = Vec::new();
    let guid = address::guid(&params.mac).map_err(|e| wrong.push(Diagnostic::error("mac", "/mac", e))).unwrap_or(0);
    let ip = match &params.ip {
        Some(ip) => address::ipv4(ip).map_err(|e| wrong.push(Diagnostic::error("ip", "/ip", e))).unwrap_or(0),
        None => 0,
    };
    for (name, value) in [("queue-pairs", params.queue_pairs), ("pmtu", params.pmtu)] {
        if !value.is_power_of_two() {
            let help = format!("{} would be right", value.next_power_of_two().min(if name == "pmtu" { 4096 } else { 256 }));
            wrong.push(Diagnostic::error(name, &format!("/{name}"), format!("{value} is not a power of two")).help(help));
        }
    }
    if wrong.is_empty() { Ok((guid, ip)) } else { Err(wrong) }
}

/// Ports of the RDMA TCP port space and the link that listens on them.
fn services<'a>(apps: impl Iterator<Item = (u32, &'a Peer)>) -> Result<Vec<(u16, u32)>, Diagnostics> {
    let mut taken: Vec<(u16, u32)> = Vec::new();
    let mut wrong = Vec::new();
    for (index, peer) in apps {
        let list = peer.prop("services");
        for value in list.iter().filter_map(|v| v.as_array()).flatten() {
            match value.as_u64().and_then(|v| u16::try_from(v).ok()).filter(|v| *v != 0) {
                Some(port) if taken.iter().any(|(p, _)| *p == port) => {
                    wrong.push(Diagnostic::error("service", "", format!("port {port} has two listeners, one of them `{}`", peer.instance)));
                }
                Some(port) => taken.push((port, index)),
                None => wrong.push(Diagnostic::error("service", "", format!("`{}` listens on `{value}`, which is no port", peer.instance))),
            }
        }
    }
    if wrong.is_empty() { Ok(taken) } else { Err(wrong) }
}

/// What the transport says of itself, where it does, must be what the parameters say.
fn agree(params: &Params, transport: Option<&Peer>) -> Result<(), Diagnostics> {
    let mut wrong = Vec::new();
    for (name, ours, same) in [("queue-pairs", params.queue_pairs, true), ("rd-atomic", params.rd_atomic, false)] {
        let Some(theirs) = transport.and_then(|peer| peer.prop_u64(name)) else { continue };
        if u64::from(ours) > theirs || same && u64::from(ours) != theirs {
            let message = format!("`{name}` is {ours} here and {theirs} in the transport");
            wrong.push(Diagnostic::error(name, &format!("/{name}"), message).help(format!("{name} = {theirs}")));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

struct Cm;

impl Plugin for Cm {
    type Params = Params;

    fn info() -> About {
        about!("RDMA connection manager: answers and makes connections")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        numbers(params)?;
        let control = Port::client("control", "gateweave/roce-control@1", "sys");
        let apps = Port::provider("apps", "gateweave/rdma-cm@1", "sys").links(0, APPS);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        let registers = COUNTERS.iter().fold(Registers::new(), |r, (name, doc)| r.counter(name, doc));
        Ok(Shape::new().domain("sys", Clock::System).port(control).port(apps).port(regs).registers(&registers))
    }

    fn elaborate(params: &Params, board: &Board, peers: &[Peer]) -> Result<Shape, Diagnostics> {
        agree(params, peers.iter().find(|p| p.port == "control"))?;
        services(peers.iter().filter(|p| p.port == "apps").map(|p| (p.index, p)))?;
        Self::describe(params, board)
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let (guid, ip) = numbers(&plan.params)?;
        let apps = plan.count("apps").max(1);
        let settings = Settings {
            slots: plan.params.queue_pairs,
            apps,
            services: services(plan.links("apps").map(|w| (w.index, &w.peer)))?,
            rd_atomic: plan.params.rd_atomic,
            pmtu: plan.params.pmtu.trailing_zeros() - 7,
            guid,
            ip,
            ack_timeout: plan.params.ack_timeout,
            cm_timeout: CM_TIMEOUT,
        };
        let program = program::assemble(&settings).map_err(|e| vec![Diagnostic::error("program", "", e.to_string())])?;
        let hz = plan.link("control").map_or(62_500_000, |w| w.hz);
        Ok(Output::new("cm")
            .parameter("N", apps)
            .parameter("TICK", (hz * TICK_NS / 1_000_000_000 / u64::from(plan.params.speed_up)).max(1))
            .parameter("CODE_WORDS", program.code.len())
            .parameter("CODE", program.code_list())
            .parameter("DATA_A", program.data_bits())
            .parameter("DATA_WORDS", program.data.len())
            .parameter("DATA", program.data_list())
            .sources(sources!["hdl/cm.veryl"]))
    }
}

gateweave_sdk::export!(Cm);

#[cfg(test)]
mod tests;
