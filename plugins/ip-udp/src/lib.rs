//! IPv4 over Ethernet: ARP, ICMP echo, UDP for any number of clients.

mod address;

use address::{Cidr, ipv4, mac};
use gateweave_sdk::prelude::*;

/// Most clients of one instance: the counters are 64, and 23 of them do not belong to a client.
const CLIENTS: u32 = 32;
/// Data widths that the HDL knows, the one that is cheapest at 1 Gb/s first.
const WIDTHS: [u32; 7] = [32, 8, 16, 64, 128, 256, 512];

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// MAC address, such as "02:47:57:00:00:01". The lowest bit of the first byte (multicast) must be 0.
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"))]
    mac: String,
    /// IPv4 address and length of the network's prefix, such as "192.168.7.2/24".
    #[schemars(regex(pattern = "^[0-9]{1,3}(\\.[0-9]{1,3}){3}/[0-9]{1,2}$"))]
    ip: String,
    /// Router to other networks; without it datagrams to other networks are refused.
    #[serde(default)]
    #[schemars(regex(pattern = "^[0-9]{1,3}(\\.[0-9]{1,3}){3}$"))]
    gateway: Option<String>,
    /// Longest IP packet in bytes, both ways; it sizes every buffer.
    #[serde(default = "ethernet")]
    #[schemars(range(min = 576, max = 9000))]
    mtu: u32,
    /// Whether pings are answered.
    #[serde(default = "yes")]
    icmp: bool,
    /// Entries of the address cache: a power of two from 2 to 256.
    #[serde(default = "sixteen")]
    #[schemars(range(min = 2, max = 256))]
    arp_entries: u32,
    /// Seconds after which an address that nobody has confirmed is asked for again when it is used; half as many later it is
    /// forgotten. 0: never.
    #[serde(default = "minute")]
    #[schemars(range(max = 86400))]
    arp_seconds: u32,
}

fn minute() -> u32 {
    60
}

fn ethernet() -> u32 {
    1500
}

fn yes() -> bool {
    true
}

fn sixteen() -> u32 {
    16
}

/// The parameters as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    mac: u64,
    ip: Cidr,
    gateway: u32,
}

fn numbers(params: &Params) -> Result<Numbers, Diagnostics> {
    let mut wrong = Vec::new();
    let mac = mac(&params.mac).map_err(|e| wrong.push(Diagnostic::error("mac", "/mac", e))).unwrap_or(0);
    let ip = Cidr::parse(&params.ip).map_err(|e| wrong.push(Diagnostic::error("ip", "/ip", e))).ok();
    let mut gateway = 0;
    if let Some(text) = &params.gateway {
        match (ipv4(text), ip) {
            (Err(e), _) => wrong.push(Diagnostic::error("gateway", "/gateway", e)),
            (Ok(address), Some(ip)) if !ip.contains(address) => wrong.push(
                Diagnostic::error("gateway", "/gateway", format!("the gateway {text} is not in the network of {}", params.ip))
                    .help("a router is reached over the instance's own network"),
            ),
            (Ok(address), Some(ip)) if address == ip.address => {
                wrong.push(Diagnostic::error("gateway", "/gateway", "the gateway is the instance itself"));
            }
            (Ok(address), _) => gateway = address,
        }
    }
    if !params.arp_entries.is_power_of_two() {
        wrong.push(
            Diagnostic::error("arp-entries", "/arp-entries", format!("{} is not a power of two", params.arp_entries))
                .help(format!("{} would be right", params.arp_entries.next_power_of_two())),
        );
    }
    match ip {
        Some(ip) if wrong.is_empty() => Ok(Numbers { mac, ip, gateway }),
        _ => Err(wrong),
    }
}

/// Entries of the address cache that the HDL makes: no more than the network has addresses.
fn entries(params: &Params, ip: Cidr) -> u64 {
    u64::from(params.arp_entries).min(1 << (32 - ip.prefix))
}

/// Cycles of `hz` from the visit of one entry of the address cache to that of the next: each is visited twice in `arp-seconds`.
fn arp_age(params: &Params, ip: Cidr, hz: u64) -> u64 {
    // At least two, so that zero keeps its meaning.
    if params.arp_seconds == 0 { 0 } else { (hz * u64::from(params.arp_seconds) / 2 / entries(params, ip)).max(2) }
}

/// The counters, in the order of the HDL; the clients' own follow.
const COUNTERS: [(&str, &str); 23] = [
    ("rx_udp", "datagrams for a client"),
    ("rx_icmp", "pings"),
    ("rx_arp", "ARP requests for our address and replies to us"),
    ("rx_bad_frame", "frames that the MAC marked bad (FCS)"),
    ("rx_bad_length", "frames shorter than their headers say, or longer than the MTU, or with lengths that contradict each other"),
    ("rx_vlan", "frames with a VLAN tag"),
    ("rx_ethertype", "frames that are neither IPv4 nor ARP"),
    ("rx_other", "frames and packets for others: another MAC or IP address, ARP that does not concern us"),
    ("rx_ip_checksum", "IPv4 headers with a wrong checksum or version"),
    ("rx_ip_option", "IPv4 headers with options"),
    ("rx_fragment", "fragments"),
    ("rx_protocol", "IPv4 packets that are neither UDP nor ICMP"),
    ("rx_udp_checksum", "datagrams with a wrong checksum"),
    ("rx_icmp_bad", "ICMP with a wrong checksum, or other than an echo request"),
    ("rx_no_port", "datagrams for a port that no client has"),
    ("tx_udp", "datagrams sent"),
    ("tx_icmp", "pings answered"),
    ("tx_arp_request", "ARP requests sent"),
    ("tx_arp_reply", "ARP requests answered"),
    ("tx_no_address", "packets refused because the next hop's address is not known yet"),
    ("tx_no_route", "datagrams refused because there is no gateway"),
    ("tx_malformed", "datagrams refused or aborted: too long, another length than said, or aborted by the client"),
    ("icmp_no_room", "good pings dropped because the responder's buffer was full"),
];

fn shape(clients: &[String], params: &Params) -> Shape {
    let frames = Port::client("frames", "gateweave/eth-frames@1", "sys").widths(WIDTHS).prop("continuous", true).prop("mtu", params.mtu);
    let udp =
        Port::provider("udp", "gateweave/ip-udp@1", "sys").links(0, CLIENTS).widths(WIDTHS).prop("mtu", params.mtu).prop("ip", &params.ip);
    let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
    let mut registers = Registers::new();
    for (name, doc) in COUNTERS {
        registers = registers.counter(name, doc);
    }
    for client in clients {
        let name = format!("lost_{}", client.replace('-', "_"));
        registers = registers.counter(&name, &format!("datagrams, or ends of datagrams, that `{client}` was not ready for"));
    }
    Shape::new().domain("sys", Clock::System).port(frames).port(udp).port(regs).registers(&registers)
}

/// What the clients want: UDP ports and checksums.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ports {
    /// Port and index of its client.
    taken: Vec<(u16, u32)>,
    /// The client of all other ports.
    other: Option<u32>,
    /// Bit i: client i wants checksums computed.
    computes: u64,
}

/// The modes of `checksum_mode` in a client's property `checksum`.
const MODES: [&str; 3] = ["none", "compute", "given"];

/// What a client says of itself.
struct Claim<'a> {
    index: u32,
    name: &'a str,
    /// Properties `udp-ports`, `checksum` and `continuous`.
    ports: Option<Value>,
    checksum: Option<Value>,
    continuous: Option<Value>,
}

impl<'a> Claim<'a> {
    fn of(index: u32, peer: &'a Peer) -> Self {
        Claim {
            index,
            name: &peer.instance,
            ports: peer.prop("udp-ports"),
            checksum: peer.prop("checksum"),
            continuous: peer.prop("continuous"),
        }
    }

    /// Whether it wants checksums computed.
    fn computes(&self) -> Result<bool, Diagnostic> {
        let modes = match &self.checksum {
            None => Vec::new(),
            Some(Value::Array(modes)) => modes.clone(),
            Some(mode) => vec![mode.clone()],
        };
        if let Some(mode) = modes.iter().find(|mode| !MODES.iter().any(|known| *mode == known)) {
            return Err(Diagnostic::error(
                "checksum",
                "",
                format!("client `{}` wants checksum mode {mode}, which does not exist", self.name),
            )
            .help("the modes are \"none\", \"compute\" and \"given\""));
        }
        let computes = modes.iter().any(|mode| mode == "compute");
        if !computes && self.continuous != Some(Value::Bool(true)) {
            return Err(Diagnostic::error("continuous", "", format!("client `{}` does not promise a beat on every cycle of a datagram", self.name))
                .help("a frame on the wire cannot pause: property `continuous` makes the promise; with checksum mode \"compute\" the datagrams are stored first and need none"));
        }
        Ok(computes)
    }
}

/// Gathers what clients claim.
fn ports<'a>(clients: impl Iterator<Item = Claim<'a>>) -> Result<Ports, Diagnostics> {
    let mut ports = Ports::default();
    let mut owner: Vec<(u64, String)> = Vec::new();
    let mut wrong = Vec::new();
    for client in clients {
        let (index, name) = (client.index, client.name);
        let claims = client.ports.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        if claims.is_empty() {
            wrong.push(
                Diagnostic::error("udp-ports", "", format!("client `{name}` does not say which UDP ports it wants"))
                    .help("its port needs property `udp-ports`, a list of port numbers, or [0] for all that nobody else has"),
            );
        }
        for claim in &claims {
            let Some(port) = claim.as_u64().and_then(|p| u16::try_from(p).ok()) else {
                wrong.push(Diagnostic::error("udp-ports", "", format!("client `{name}` claims {claim}, which is not a UDP port")));
                continue;
            };
            if let Some((_, other)) = owner.iter().find(|(p, _)| *p == u64::from(port)) {
                let what = if port == 0 { "all other UDP ports are".to_owned() } else { format!("UDP port {port} is") };
                wrong.push(
                    Diagnostic::error("udp-port-taken", "", format!("{what} claimed by `{other}` and by `{name}`"))
                        .help("give one of them another port"),
                );
                continue;
            }
            owner.push((u64::from(port), name.to_owned()));
            if port == 0 {
                ports.other = Some(index);
            } else {
                ports.taken.push((port, index));
            }
        }
        match client.computes() {
            Ok(computes) => ports.computes |= u64::from(computes) << index,
            Err(e) => wrong.push(e),
        }
    }
    if wrong.is_empty() { Ok(ports) } else { Err(wrong) }
}

use gateweave_sdk::serde_json::Value;

struct IpUdp;

impl Plugin for IpUdp {
    type Params = Params;

    fn info() -> About {
        about!("IPv4 over Ethernet: ARP, ICMP echo, UDP for any number of clients")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        numbers(params)?;
        Ok(shape(&["client".to_owned()], params))
    }

    fn elaborate(params: &Params, _board: &Board, peers: &[Peer]) -> Result<Shape, Diagnostics> {
        numbers(params)?;
        let mut clients: Vec<&Peer> = peers.iter().filter(|p| p.port == "udp").collect();
        clients.sort_by_key(|p| p.index);
        ports(clients.iter().map(|p| Claim::of(p.index, p)))?;
        let mut names: Vec<String> = Vec::new();
        for client in &clients {
            // One instance may have two ports on this one.
            let name =
                if names.contains(&client.instance) { format!("{}_{}", client.instance, client.index) } else { client.instance.clone() };
            names.push(name);
        }
        if names.is_empty() {
            names.push("client".to_owned());
        }
        Ok(shape(&names, params))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let numbers = numbers(&plan.params)?;
        let clients = plan.count("udp").max(1);
        let hz = plan.link("frames").map_or(0, |link| link.hz);
        let ports = ports(plan.links("udp").map(|w| Claim::of(w.index, &w.peer)))?;
        let mut taken = ports.taken;
        if taken.is_empty() {
            taken.push((0, 0));
        }
        let numbered: Vec<String> = taken.iter().map(|(port, _)| format!("16'd{port}")).collect();
        let owners: Vec<String> = taken.iter().map(|(_, owner)| format!("8'd{owner}")).collect();
        Ok(Output::new("ip_udp")
            .parameter("W", plan.width("frames"))
            .parameter("N", clients)
            .parameter("MAC", format!("48'h{:012x}", numbers.mac))
            .parameter("IP", format!("32'h{:08x}", numbers.ip.address))
            .parameter("PREFIX", numbers.ip.prefix)
            .parameter("GATEWAY", format!("32'h{:08x}", numbers.gateway))
            .parameter("MTU", plan.params.mtu)
            .parameter("ICMP", format!("1'b{}", u8::from(plan.params.icmp)))
            .parameter("ARP_ENTRIES", plan.params.arp_entries)
            .parameter("ARP_AGE", format!("48'd{}", arp_age(&plan.params, numbers.ip, hz)))
            .parameter("P", taken.len())
            .parameter("PORTS", numbered)
            .parameter("OWNERS", owners)
            .parameter("DEFAULT", ports.other.unwrap_or(clients))
            .parameter("COMPUTE", format!("{clients}'d{}", ports.computes))
            .sources(sources![
                "hdl/arp.veryl",
                "hdl/core.veryl",
                "hdl/delay.veryl",
                "hdl/icmp.veryl",
                "hdl/ip_udp.veryl",
                "hdl/match_bytes.veryl",
                "hdl/ones_sum.veryl",
                "hdl/rx_check.veryl",
                "hdl/rx_client.veryl",
                "hdl/rx_header.veryl",
                "hdl/rx_pkg.veryl",
                "hdl/tx_checksum.veryl",
                "hdl/tx_frame.veryl",
                "hdl/tx_pkg.veryl",
                "hdl/tx_prepare.veryl",
                "hdl/tx_select.veryl",
            ]))
    }
}

gateweave_sdk::export!(IpUdp);

#[cfg(test)]
mod tests {
    use super::*;

    fn params(ip: &str, gateway: Option<&str>) -> Params {
        Params {
            mac: "02:47:57:00:00:01".into(),
            ip: ip.into(),
            gateway: gateway.map(Into::into),
            mtu: 1500,
            icmp: true,
            arp_entries: 16,
            arp_seconds: 60,
        }
    }

    #[test]
    fn addresses_become_numbers() {
        let numbers = numbers(&params("192.168.7.2/24", Some("192.168.7.254"))).unwrap();
        assert_eq!(numbers, Numbers { mac: 0x0247_5700_0001, ip: Cidr { address: 0xc0a8_0702, prefix: 24 }, gateway: 0xc0a8_07fe });
    }

    #[test]
    fn wrong_addresses_point_at_their_parameter() {
        for (ip, gateway, pointer) in [
            ("192.168.7.2/33", None, "/ip"),
            ("192.168.7.256/24", None, "/ip"),
            ("192.168.7.0/24", None, "/ip"),
            ("192.168.7.255/24", None, "/ip"),
            ("224.0.0.1/8", None, "/ip"),
            ("192.168.7.2/24", Some("192.168.8.1"), "/gateway"),
            ("192.168.7.2/24", Some("192.168.7.2"), "/gateway"),
        ] {
            let wrong = numbers(&params(ip, gateway)).unwrap_err();
            assert_eq!(wrong.iter().map(|d| d.pointer.as_str()).collect::<Vec<_>>(), [pointer], "{ip} {gateway:?}");
        }
        let mut p = params("192.168.7.2/24", None);
        p.mac = "03:47:57:00:00:01".into();
        p.arp_entries = 12;
        assert_eq!(numbers(&p).unwrap_err().iter().map(|d| d.pointer.as_str()).collect::<Vec<_>>(), ["/mac", "/arp-entries"]);
    }

    #[test]
    fn addresses_are_visited_twice_in_their_time() {
        let mut p = params("192.168.7.2/24", None);
        let ip = |p: &Params| numbers(p).unwrap().ip;
        assert_eq!(arp_age(&p, ip(&p), 62_500_000) * 16, 62_500_000 * 30);
        p.arp_seconds = 0;
        assert_eq!(arp_age(&p, ip(&p), 62_500_000), 0);
        // A network of four addresses has four entries; a day at 322 MHz fits 48 bits.
        let mut p = params("192.168.7.2/30", None);
        p.arp_seconds = 86400;
        assert_eq!(arp_age(&p, ip(&p), 322_265_625), 322_265_625 * 43200 / 4);
        assert!(322_265_625_u64 * 43200 / 2 < 1 << 48);
    }

    fn claim(index: u32, name: &str, ports: Value) -> Claim<'_> {
        Claim { index, name, ports: Some(ports), checksum: Some(json!("given")), continuous: Some(json!(true)) }
    }

    #[test]
    fn ports_have_one_owner() {
        let good = ports([claim(0, "echo", json!([7])), claim(1, "rest", json!([0, 9]))].into_iter()).unwrap();
        assert_eq!(good, Ports { taken: vec![(7, 0), (9, 1)], other: Some(1), computes: 0 });
        let twice = ports([claim(0, "a", json!([7])), claim(1, "b", json!([8, 7]))].into_iter()).unwrap_err();
        assert_eq!(twice.len(), 1);
        assert!(
            twice[0].message.contains("`a`") && twice[0].message.contains("`b`") && twice[0].message.contains('7'),
            "{}",
            twice[0].message
        );
        assert_eq!(ports([Claim { ports: None, ..claim(0, "a", json!([])) }].into_iter()).unwrap_err().len(), 1);
        assert_eq!(ports([claim(0, "a", json!([70000]))].into_iter()).unwrap_err().len(), 1);
    }

    #[test]
    fn who_pauses_has_its_checksums_computed_or_is_refused() {
        let with = |checksum: Option<Value>, continuous: Option<Value>| {
            ports([claim(0, "a", json!([7])), Claim { checksum, continuous, ..claim(1, "b", json!([8])) }].into_iter())
        };
        for checksum in [json!("compute"), json!(["none", "compute"])] {
            for continuous in [None, Some(json!(false)), Some(json!(true))] {
                assert_eq!(with(Some(checksum.clone()), continuous).unwrap().computes, 2);
            }
        }
        assert_eq!(with(Some(json!(["none", "given"])), Some(json!(true))).unwrap().computes, 0);
        assert_eq!(with(None, Some(json!(true))).unwrap().computes, 0);
        assert_eq!(with(Some(json!("given")), None).unwrap_err()[0].code, "continuous");
        assert_eq!(with(None, Some(json!(false))).unwrap_err()[0].code, "continuous");
        let unknown = with(Some(json!(["given", "computed"])), Some(json!(true))).unwrap_err();
        assert!(unknown[0].code == "checksum" && unknown[0].message.contains("computed"), "{}", unknown[0].message);
    }
}
