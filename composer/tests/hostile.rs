//! Hostile frames on the whole of `projects/ping`: each is dropped and counted by its reason, and the good frame behind it is answered.
//!
//! A pattern goes in on the wire; at its end every counter is read over the design's own register bus and serial line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gateweave::cache::Cache;
use gateweave::pipeline::generate::Options;
use gateweave::pipeline::simulate::simulation;
use gateweave::plugin::types::Target;
use gateweave::sim::{self, RunOptions, RunSummary, Trace};
use gateweave::tools::{Origin, Talk, Tools};

const US: [u8; 6] = [2, 0x47, 0x57, 0, 0, 1];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// IPv4 addresses of the peer and of the design.
const ADDRESSES: [u8; 8] = [192, 168, 7, 1, 192, 168, 7, 2];

/// What a step's frames do to the counters, and how many frames answer them.
struct Step {
    name: String,
    /// The step's keys.
    text: String,
    counts: Vec<(&'static str, u64)>,
}

fn step(name: impl Into<String>, text: impl Into<String>, counts: &[(&'static str, u64)]) -> Step {
    Step { name: name.into(), text: text.into(), counts: counts.to_vec() }
}

fn fold(bytes: &[u8], start: u32) -> u16 {
    let sum = bytes.chunks(2).fold(start, |s, c| s + u32::from(c[0]) * 256 + c.get(1).map_or(0, |b| u32::from(*b)));
    let once = (sum & 0xffff) + (sum >> 16);
    !(((once & 0xffff) + (once >> 16)) as u16)
}

/// A UDP datagram for port 7 whose checksums are right, after `change` has had its way with (IPv4 header, UDP header).
fn udp(payload: usize, change: impl Fn(&mut [u8; 20], &mut [u8; 8])) -> Vec<u8> {
    let mut ip = [0x45, 0, 0, 0, 0, 9, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    ip[12..].copy_from_slice(&ADDRESSES);
    let mut udp = [0x9c, 0x40, 0, 7, 0, 0, 0, 0];
    ip[2..4].copy_from_slice(&((28 + payload) as u16).to_be_bytes());
    udp[4..6].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
    change(&mut ip, &mut udp);
    let sum = fold(&ip, 0);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&US[..], &PEER, &[8, 0], &ip, &udp].concat();
    frame.extend((0..payload).map(|i| i as u8));
    let pseudo = [&frame[26..34], &[0, 17], &frame[38..40]].concat().chunks(2).fold(0, |s, c| s + u32::from(c[0]) * 256 + u32::from(c[1]));
    let sum = fold(&frame[34..], pseudo);
    frame[40..42].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn hex(frame: &[u8]) -> String {
    let digits: String = frame.iter().map(|b| format!("{b:02x}")).collect();
    format!("hex = \"{digits}\"")
}

/// A VLAN tag of this EtherType in a good frame.
fn tagged(ethertype: u16) -> Vec<u8> {
    let mut frame = udp(40, |_, _| {});
    frame.splice(12..12, ethertype.to_be_bytes().into_iter().chain([0, 5]));
    frame
}

/// Every kind of frame that a host must not fall over. `pins`: the wire has preambles and an error signal (RGMII); on the stream
/// side of a hard MAC such faults arrive as frames marked bad.
fn steps(pins: bool) -> Vec<Step> {
    let reason = |net: &'static str, n: u64| vec![("mac0.rx_good", n), (net, n)];
    let mut list = Vec::new();
    let mut add = |name: &str, text: String, counts: Vec<(&'static str, u64)>| list.push(Step { name: name.to_owned(), text, counts });

    // Truncated at every byte: on the wire, and below a new FCS. 1 to 4 bytes leave nothing of a frame behind but its end.
    let cut = |what: &str| format!("{what}\nlength = 56\ncut = {{ from = 1, to = 101 }}");
    let torn = vec![("mac0.rx_runt", 63), ("mac0.rx_fcs", 38), ("net.rx_bad_frame", 97)];
    add("cut-ping", cut("ping = { id = 1 }"), torn.clone());
    add("cut-udp", cut("udp = { dst-port = 7 }"), torn);
    let sealed = vec![
        ("mac0.rx_good", 142),
        ("net.rx_other", 6),        // 0 to 5 bytes: not our address
        ("net.rx_ethertype", 7),    // 6 to 12: type 0
        ("net.rx_ip_checksum", 2),  // 13, 14: IPv4 of version 0
        ("net.rx_bad_length", 127), // 15 to 141: less than its length says
    ];
    add("sealed", format!("{}\nlength = {{ from = 0, to = 141 }}", hex(&udp(100, |_, _| {}))), sealed);

    // Lengths that lie: the IPv4 length below a header's and above the frame's, the UDP length likewise.
    let set = |n: u16| n.to_be_bytes();
    for total in (0..28).chain([71, 101, 200, 1501, 0xffff]) {
        let frame = udp(42, |ip, _| ip[2..4].copy_from_slice(&set(total)));
        add(&format!("ip-length-{total}"), hex(&frame), reason("net.rx_bad_length", 1));
    }
    for length in (0..8).chain([51, 100, 0xffff]) {
        let frame = udp(42, |_, udp| udp[4..6].copy_from_slice(&set(length)));
        add(&format!("udp-length-{length}"), hex(&frame), reason("net.rx_bad_length", 1));
    }

    // Checksums and FCS.
    add("ip-checksum", "udp = { dst-port = 7 }\nlength = 50\npatch = [\"24=0000\"]\ncount = 3".to_owned(), reason("net.rx_ip_checksum", 3));
    add(
        "udp-checksum",
        "udp = { dst-port = 7 }\nlength = { from = 1, to = 200 }\npatch = [\"40=0001\"]".to_owned(),
        reason("net.rx_udp_checksum", 200),
    );
    add(
        "icmp-checksum",
        "ping = { id = 1 }\nlength = { from = 1, to = 200 }\npatch = [\"36=0001\"]".to_owned(),
        reason("net.rx_icmp_bad", 200),
    );
    add("icmp-type", "ping = { id = 1 }\nlength = 50\npatch = [\"34=0d\"]".to_owned(), reason("net.rx_icmp_bad", 1));
    add(
        "fcs",
        "udp = { dst-port = 7 }\nlength = { from = 0, to = 300 }\nfcs = \"wrong\"".to_owned(),
        vec![("mac0.rx_fcs", 301), ("net.rx_bad_frame", 301)],
    );

    // Oversize for the MTU, and for the MAC.
    add("above-mtu", "udp = { dst-port = 7 }\nlength = { from = 1473, to = 1476 }".to_owned(), reason("net.rx_bad_length", 4));
    let huge = |n| vec![("mac0.rx_oversize", n), ("net.rx_bad_frame", n)];
    add("oversize", "udp = { dst-port = 7 }\nlength = { from = 1477, to = 1520 }".to_owned(), huge(44));
    add("jumbo", "udp = { dst-port = 7 }\nlength = 8972\ncount = 3".to_owned(), huge(3));
    add("endless", "hex = \"\"\nlength = 65531".to_owned(), huge(1));

    // Runts with a right FCS.
    let bare = format!("{}\nlength = {{ from = 1, to = 59 }}\npad = false", hex(&udp(40, |_, _| {})));
    add("runts", bare, vec![("mac0.rx_runt", 59), ("net.rx_bad_frame", 59)]);

    // VLAN, other protocols, options, fragments, others' addresses.
    add("vlan", hex(&tagged(0x8100)), reason("net.rx_vlan", 1));
    add("vlan-service", hex(&tagged(0x88a8)), reason("net.rx_vlan", 1));
    add("ip-6", "udp = { dst-port = 7 }\nlength = 50\npatch = [\"12=86dd\"]".to_owned(), reason("net.rx_ethertype", 1));
    for (name, flags) in [("first-fragment", 0x2000), ("fragment", 0x2001), ("last-fragment", 0x00b9), ("far-fragment", 0x1fff)] {
        add(name, hex(&udp(42, |ip, _| ip[6..8].copy_from_slice(&set(flags)))), reason("net.rx_fragment", 1));
    }
    add("options", hex(&udp(42, |ip, _| ip[0] = 0x46)), reason("net.rx_ip_option", 1));
    add("version", hex(&udp(42, |ip, _| ip[0] = 0x65)), reason("net.rx_ip_checksum", 1));
    add("tcp", hex(&udp(42, |ip, _| ip[9] = 6)), reason("net.rx_protocol", 1));
    add("others-ip", hex(&udp(42, |ip, _| ip[19] = 3)), reason("net.rx_other", 1));
    add("others-mac", "udp = { dst-port = 7 }\nlength = 50\npatch = [\"0=025500\"]".to_owned(), reason("net.rx_other", 1));
    add("others-arp", "arp = { to = { ip = \"192.168.7.3\" } }".to_owned(), reason("net.rx_other", 1));
    add("no-port", "udp = { dst-port = 9 }\nlength = 50".to_owned(), reason("net.rx_no_port", 1));

    // Faults of the line.
    let line = |n: u64, net: u64| {
        if pins { vec![("mac0.rx_error", n), ("net.rx_bad_frame", net)] } else { vec![("mac0.rx_fcs", n), ("net.rx_bad_frame", n)] }
    };
    add("error-signal", "udp = { dst-port = 7 }\nlength = 60\nrx-er-at = 50\ncount = 3".to_owned(), line(3, 3));
    add("delimiter", "udp = { dst-port = 7 }\nlength = 60\nsfd = 93".to_owned(), line(1, 0));

    // Storms at line rate. Good ones are answered whole.
    add(
        "storm-fcs",
        "udp = { dst-port = 7 }\nlength = 0\nfcs = \"wrong\"\ncount = 3000".to_owned(),
        vec![("mac0.rx_fcs", 3000), ("net.rx_bad_frame", 3000)],
    );
    add(
        "storm-no-port",
        "udp = { dst-port = 9 }\nlength = { random = [0, 300], seed = 3 }\ncount = 2000".to_owned(),
        reason("net.rx_no_port", 2000),
    );
    add(
        "storm-runts",
        "udp = { dst-port = 7 }\nlength = 0\ncut = 20\ncount = 2000".to_owned(),
        vec![("mac0.rx_runt", 2000), ("net.rx_bad_frame", 2000)],
    );
    let echoed = vec![("mac0.rx_good", 2000), ("net.rx_udp", 2000), ("net.tx_udp", 2000), ("echo.echoed", 2000), ("mac0.tx_frames", 2000)];
    add("storm-udp", "udp = { dst-port = 7 }\nlength = { random = [0, 300], seed = 4 }\ncount = 2000".to_owned(), echoed);
    add(
        "storm-arp",
        "arp = {}\ncount = 500".to_owned(),
        vec![("mac0.rx_good", 500), ("net.rx_arp", 500), ("net.tx_arp_reply", 500), ("mac0.tx_frames", 500)],
    );
    list
}

/// A good frame behind each step: it must be answered.
fn after(number: usize) -> Step {
    let counts = [("mac0.rx_good", 1), ("net.rx_icmp", 1), ("net.tx_icmp", 1), ("mac0.tx_frames", 1)];
    step(format!("after-{number}"), format!("ping = {{ id = {} }}\nlength = 32", 1000 + number), &counts)
}

/// Identifiers of the ICMP echo replies in a capture of the harness.
fn replies(capture: &[u8]) -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    let mut at = 24;
    while at + 16 <= capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().expect("four bytes")) as usize;
        let frame = &capture[at + 16..at + 16 + length];
        if frame[12..14] == [8, 0] && frame[23] == 1 && frame[34] == 0 {
            found.insert(u16::from_be_bytes([frame[38], frame[39]]));
        }
        at += 16 + length;
    }
    found
}

fn run(project: &Path, pins: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all = vec![step(
        "arp",
        "at = \"50us\"\narp = {}",
        &[("mac0.rx_good", 1), ("net.rx_arp", 1), ("net.tx_arp_reply", 1), ("mac0.tx_frames", 1)],
    )];
    for (number, hostile) in steps(pins).into_iter().enumerate() {
        all.push(hostile);
        all.push(after(number));
    }
    let pings = all.iter().filter(|s| s.name.starts_with("after-")).count();
    let mut text = String::from(
        "schema = 1\nout = \"back.pcap\"\n[from]\nmac = \"02:00:00:00:00:01\"\nip = \"192.168.7.1\"\n[to]\nmac = \"02:47:57:00:00:01\"\nip = \"192.168.7.2\"\n",
    );
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for Step { name, text: keys, counts } in &all {
        let _ = writeln!(text, "[step.{name}]\n{keys}");
        for (counter, n) in counts {
            *expected.entry((*counter).to_owned()).or_default() += n;
        }
    }
    fs::write(folder.path().join("pattern.toml"), text).expect("a file");

    let summary = simulate(project, folder.path());
    let counted: BTreeMap<String, u64> = summary
        .registers
        .iter()
        .filter(|r| r.counter && r.value != 0)
        .map(|r| (format!("{}.{}", r.instance, r.register), u64::from(r.value)))
        .collect();
    assert_eq!(counted, expected);
    let wire = summary.wire("eth0").expect("eth0 has a wire");
    assert_eq!((wire.frames_out, wire.bad_out, wire.underruns), (expected["mac0.tx_frames"], 0, 0));
    let answered = replies(&fs::read(folder.path().join("back.pcap")).expect("a capture"));
    let wanted: BTreeSet<u16> = (0..pings).map(|n| 1000 + n as u16).collect();
    assert_eq!(answered, wanted, "the good frame behind each step");
    println!("{} frames in {} steps, {} counters, {} pings behind them answered", wire.frames_in, all.len(), counted.len(), pings);
}

fn simulate(project: &Path, folder: &Path) -> RunSummary {
    let cache = Cache::open().expect("a cache");
    let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Quiet).expect("tools");
    let options = Options { dir: project.to_owned(), out: Some(folder.join("out")), target: Target::Simulation };
    let (made, plan, _) = simulation(&options, &cache).unwrap_or_else(|d| panic!("{:?}", d.0));
    let simulator = sim::build(&plan, Trace::None, &tools).unwrap_or_else(|d| panic!("{}", d.message));
    let wires = vec![format!("pattern:{}", folder.join("pattern.toml").display()).parse().expect("a wire")];
    let options = RunOptions { wires, regs: Some("read".parse().expect("a place")), registers: made.registers(), ..RunOptions::default() };
    sim::run(&simulator, &options).unwrap_or_else(|d| panic!("{:?}", d.0))
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// `projects/ping` on board `sim`.
fn variant(width: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(root().join("projects/ping/project.toml")).expect("the project");
    let plugins = format!("\"{}\"", root().join("plugins").display());
    let text = text.replace("colorlight-i5", "sim").replace("\"../../plugins\"", &plugins);
    let text = text
        .replace("\n[instance.mac0]", &format!("clocks  = {{ sys = \"125 MHz\" }}\ndatapath = {{ width = {width} }}\n\n[instance.mac0]"));
    fs::write(folder.path().join("project.toml"), text).expect("a file");
    run(folder.path(), false);
}

#[test]
fn on_board_sim_at_32_bits() {
    variant(32);
}

#[test]
fn on_board_sim_at_64_bits() {
    variant(64);
}

#[test]
fn on_the_colorlight_i5() {
    run(&root().join("projects/ping"), true);
}
