//! RoCEv2 transport: reliable connected queue pairs, responder and requester.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Queue pairs, a power of two.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 256))]
    queue_pairs: u32,
    /// READs and atomics of a peer that a queue pair answers at a time, a power of two.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 16))]
    rd_atomic: u32,
    /// Work requests that a queue pair holds, a power of two.
    #[serde(default = "eight")]
    #[schemars(range(min = 2, max = 64))]
    send_queue: u32,
    /// Receive requests that a queue pair holds, a power of two.
    #[serde(default = "sixteen")]
    #[schemars(range(min = 2, max = 64))]
    receive_queue: u32,
    /// Completions that an application may leave waiting, a power of two.
    #[serde(default = "thirty_two")]
    #[schemars(range(min = 8, max = 64))]
    completions: u32,
    /// Bytes of the receive RAM, a power of two: 2 x (PMTU + 128) and what comes in while the memory stalls.
    #[serde(default = "receive_ram")]
    #[schemars(range(min = 1024, max = 262_144))]
    buffer: u32,
    /// Memory regions that exist from the start; the position in this list is the index in the key.
    #[serde(default)]
    #[schemars(length(max = 16))]
    regions: Vec<Region>,
}

/// A memory region: a key is `index << 8 | variant`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Region {
    /// Virtual address of the first byte; its low bits are the address in the board's memory.
    #[serde(default)]
    base: u64,
    /// Bytes.
    length: u64,
    /// What a peer may do with it.
    #[serde(default = "all")]
    access: Vec<Access>,
    /// Protection domain; a queue pair sees only the regions of its own.
    #[serde(default)]
    domain: u8,
    /// Low byte of the key.
    #[serde(default)]
    variant: u8,
}

/// What a peer may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Access {
    RemoteRead,
    RemoteWrite,
    RemoteAtomic,
    /// A SEND with invalidate takes the key away.
    Invalidate,
}

fn all() -> Vec<Access> {
    vec![Access::RemoteRead, Access::RemoteWrite, Access::RemoteAtomic]
}

fn four() -> u32 {
    4
}

fn eight() -> u32 {
    8
}

fn sixteen() -> u32 {
    16
}

fn thirty_two() -> u32 {
    32
}

fn receive_ram() -> u32 {
    16_384
}

/// Entries of the region table.
const REGIONS: usize = 16;
/// Applications that may be linked.
const CLIENTS: u32 = 16;
/// Cycles in which a word comes from the memory to the link, longer than headers need (the bench `tx_wire` finds it).
const FROM_MEMORY: u64 = 6;
/// UDP port of RoCEv2.
const UDP_PORT: u16 = 4791;

impl Region {
    /// The 149 bits of `engine_pkg::region_t`.
    fn literal(&self) -> String {
        let access = self.access.iter().fold(0b10000, |bits, access| {
            bits | match access {
                Access::RemoteRead => 1,
                Access::RemoteWrite => 2,
                Access::RemoteAtomic => 4,
                Access::Invalidate => 8,
            }
        });
        format!("{{5'd{access}, 8'd{}, 8'd{}, 64'h{:x}, 64'h{:x}}}", self.domain, self.variant, self.base, self.length)
    }
}

/// The counters, in the order of the HDL.
const COUNTERS: [(&str, &str); 21] = [
    ("rx_no_queue_pair", "packets for a queue pair that does not exist, is not ready, or has another peer or P_Key"),
    ("rx_duplicate", "requests that had come before"),
    ("tx_nak_sequence", "NAKs: a packet is missing"),
    ("tx_nak_rnr", "NAKs: no receive request"),
    ("tx_nak_invalid", "NAKs: invalid request; the queue pair is in error"),
    ("tx_nak_access", "NAKs: no right to the memory; the queue pair is in error"),
    ("rx_ack", "ACKs"),
    ("rx_nak", "NAKs"),
    ("rx_rnr", "RNR NAKs"),
    ("timeouts", "packets sent again because no answer came"),
    ("rx_cnp", "congestion notifications of connected peers"),
    ("tx_cnp", "congestion notifications sent"),
    ("rx_mad_dropped", "management datagrams that are malformed, or that found no room"),
    ("qp_errors", "queue pairs that went to the error state"),
    ("rx_requests", "request packets executed"),
    ("rx_bad_response", "READ responses and atomic results that do not fit what was asked; the queue pair is in error"),
    ("rx_bad_icrc", "packets with a wrong ICRC"),
    ("rx_malformed", "packets with impossible lengths"),
    ("rx_overflow", "packets lost because the receive RAM was full"),
    ("rx_bad_frame", "packets with a wrong FCS or checksum"),
    ("tx_refused", "packets that were not sent: no address yet, or aborted"),
];

/// Powers of two, with the parameter's place where one is not.
fn check(params: &Params) -> Result<(), Diagnostics> {
    let sizes = [
        ("queue-pairs", params.queue_pairs),
        ("rd-atomic", params.rd_atomic),
        ("send-queue", params.send_queue),
        ("receive-queue", params.receive_queue),
        ("completions", params.completions),
        ("buffer", params.buffer),
    ];
    let wrong: Vec<_> = sizes
        .iter()
        .filter(|(_, value)| !value.is_power_of_two())
        .map(|(name, value)| {
            Diagnostic::error(name, &format!("/{name}"), format!("{value} is not a power of two"))
                .help(format!("{} would be right", value.next_power_of_two()))
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

struct Roce;

impl Plugin for Roce {
    type Params = Params;

    fn info() -> About {
        about!("RoCEv2 transport: reliable connected queue pairs, responder and requester")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        check(params)?;
        const WIDTHS: [u32; 5] = [32, 64, 128, 256, 512];
        let udp = Port::client("udp", "gateweave/ip-udp@1", "sys")
            .widths(WIDTHS)
            .prop("udp-ports", [UDP_PORT])
            .prop("checksum", ["none"])
            .prop("continuous", true);
        let memory = Port::client("memory", "gateweave/memory@1", "sys").widths(WIDTHS);
        let control = Port::provider("control", "gateweave/roce-control@1", "sys")
            .links(0, 1)
            .prop("queue-pairs", params.queue_pairs)
            .prop("rd-atomic", params.rd_atomic);
        let rdma = Port::provider("rdma", "gateweave/rdma@1", "sys").links(0, CLIENTS);
        let congestion = Port::provider("congestion", "gateweave/roce-congestion@1", "sys").links(0, 1);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        let registers = COUNTERS.iter().fold(Registers::new(), |registers, (name, doc)| registers.counter(name, doc));
        Ok(Shape::new()
            .domain("sys", Clock::System)
            .port(udp)
            .port(memory)
            .port(control)
            .port(rdma)
            .port(congestion)
            .port(regs)
            .registers(&registers))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let params = &plan.params;
        let udp = plan.link("udp");
        let ip = udp.and_then(|w| w.peer.prop_str("ip")).as_deref().and_then(address).unwrap_or(0);
        let hz = udp.map_or(62_500_000, |w| w.hz);
        let bounded = plan.link("memory").and_then(|w| w.peer.prop("bounded")).and_then(|v| v.as_bool()).unwrap_or(false);
        let stall = plan.link("memory").and_then(|w| w.peer.prop_u64("worst-stall-ns")).unwrap_or(0);
        // Preamble and headers, 62 bytes at least (8, Ethernet 14, IPv4 20, UDP 8, BTH 12), go out before the first byte of payload: a stall
        // that is over by then needs nothing in advance.
        let stalled = stall * gbps(plan.width("udp"), hz) / 8;
        let start = if bounded { stalled.saturating_sub(62).next_multiple_of(4).clamp(4, 4096) } else { 4096 };
        // Or it starts when the rest of the stall is as long as the headers, less what a word takes from the memory to the wire.
        let headers = 62 * 8 / gbps(plan.width("udp"), hz).max(1);
        let early = (headers * hz / 1_000_000_000).saturating_sub(FROM_MEMORY);
        let lead = if bounded { (stall * hz).div_ceil(1_000_000_000).saturating_sub(early).min(1023) } else { 1023 };
        let mut regions: Vec<String> = (params.regions.len()..REGIONS).map(|_| "149'd0".to_owned()).collect();
        regions.extend(params.regions.iter().rev().map(Region::literal));
        Ok(Output::new("roce")
            .parameter("W", plan.width("udp"))
            .parameter("N", plan.count("rdma").max(1))
            .parameter("IP", format!("32'h{ip:08x}"))
            .parameter("QPS", params.queue_pairs)
            .parameter("SLOTS", params.rd_atomic)
            .parameter("SQ", params.send_queue)
            .parameter("RQ", params.receive_queue)
            .parameter("CQ", params.completions)
            .parameter("BYTES", params.buffer)
            .parameter("START", start)
            .parameter("LEAD", lead)
            .parameter("TICK", (hz * 4096).div_ceil(1_000_000_000))
            .parameter("REGIONS", REGIONS as u32)
            .parameter("REGION_INIT", format!("{{{}}}", regions.join(", ")))
            .sources(sources![
                "hdl/roce_pkg.veryl",
                "hdl/engine_pkg.veryl",
                "hdl/engine.veryl",
                "hdl/post_port.veryl",
                "hdl/cq_rings.veryl",
                "hdl/mad_tx.veryl",
                "hdl/read_mux.veryl",
                "hdl/rx_pkg.veryl",
                "hdl/rx_atomic.veryl",
                "hdl/rx_drain.veryl",
                "hdl/rx_front.veryl",
                "hdl/rx_header.veryl",
                "hdl/rx_intake.veryl",
                "hdl/tx_back.veryl",
                "hdl/tx_fetch.veryl",
                "hdl/tx_icrc.veryl",
                "hdl/tx_pkg.veryl",
                "hdl/tx_place.veryl",
                "hdl/tx_report.veryl",
                "hdl/tx_seed.veryl",
                "hdl/tx_send.veryl",
                "hdl/roce.veryl"
            ]))
    }
}

/// The rate of the link that a datapath carries: the highest of the usual ones that it is fast enough for.
fn gbps(width: u32, hz: u64) -> u64 {
    let most = u64::from(width) * hz / 1_000_000_000;
    [100, 50, 40, 25, 10, 1].into_iter().find(|rate| *rate <= most).unwrap_or(1)
}

/// An IPv4 address, with or without the length of its network.
fn address(text: &str) -> Option<u32> {
    text.split('/').next()?.parse::<std::net::Ipv4Addr>().ok().map(u32::from)
}

gateweave_sdk::export!(Roce);
