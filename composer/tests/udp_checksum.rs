//! UDP checksums that `ip-udp` computes, in the whole design: `udp-echo` with `checksum = "compute"` answers datagrams that came without one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gateweave::cache::Cache;
use gateweave::pipeline::generate::Options;
use gateweave::pipeline::simulate::simulation;
use gateweave::plugin::types::Target;
use gateweave::sim::{self, RunOptions, Trace};
use gateweave::tools::{Origin, Talk, Tools};

/// Longest payload at an MTU of 1500.
const MOST: usize = 1472;
/// What IPv4 says of UDP.
const UDP: u8 = 17;

fn project(folder: &Path) {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").canonicalize().expect("plugins/");
    let text = format!(
        "schema = 1\nproject = {{ name = \"checksum\", board = \"sim\", plugins = [\"{}\"] }}\nclocks = {{ sys = \"62.5 MHz\" }}\n\
         datapath = {{ width = 32 }}\n\
         [instance.mac0]\nplugin = \"mac\"\nlinks = {{ phy = \"board.eth0\" }}\n\
         [instance.net]\nplugin = \"ip-udp\"\nparams = {{ mac = \"02:47:57:00:00:01\", ip = \"192.168.7.2/24\" }}\nlinks = {{ frames = \"mac0.frames\" }}\n\
         [instance.echo]\nplugin = \"udp-echo\"\nparams = {{ checksum = \"compute\" }}\nlinks = {{ udp = \"net.udp\" }}\n",
        plugins.display()
    );
    fs::write(folder.join("project.toml"), text).expect("a file");
    let pattern = format!(
        "schema = 1\nout = \"back.pcap\"\n[from]\nmac = \"02:00:00:00:00:01\"\nip = \"192.168.7.1\"\n[to]\nmac = \"02:47:57:00:00:01\"\nip = \"192.168.7.2\"\n\
         [step.arp]\nat = \"5us\"\narp = {{}}\n\
         [step.all]\nat = \"10us\"\nudp = {{ src-port = 40000, dst-port = 7, checksum = false }}\nlength = {{ from = 0, to = {MOST} }}\n"
    );
    fs::write(folder.join("pattern.toml"), pattern).expect("a file");
}

/// Ones' complement sum of big-endian words, the carry gone round.
fn sum(bytes: &[u8], start: u64) -> u64 {
    let mut sum = bytes.chunks(2).fold(start, |s, c| s + u64::from(c[0]) * 256 + c.get(1).map_or(0, |b| u64::from(*b)));
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

#[test]
fn every_answer_of_the_echo_has_the_checksum_that_its_request_lacked() {
    let folder = tempfile::tempdir().expect("a folder");
    project(folder.path());
    let cache = Cache::open().expect("a cache");
    let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Quiet).expect("tools");
    let options = Options { dir: folder.path().to_owned(), out: Some(folder.path().join("out")), target: Target::Simulation };
    let (_, plan, _) = simulation(&options, &cache).unwrap_or_else(|d| panic!("{:?}", d.0));
    let simulator = sim::build(&plan, Trace::None, &tools).unwrap_or_else(|d| panic!("{}", d.message));
    let wires = vec![format!("pattern:{}", folder.path().join("pattern.toml").display()).parse().expect("a wire")];
    let run = sim::run(&simulator, &RunOptions { wires, ..RunOptions::default() }).unwrap_or_else(|d| panic!("{:?}", d.0));
    let wire = run.wire("eth0").expect("eth0 has a wire");
    assert_eq!((wire.frames_in, wire.frames_out, wire.bad_out, wire.underruns), (MOST as u64 + 2, MOST as u64 + 2, 0, 0));

    let capture = fs::read(folder.path().join("back.pcap")).expect("a capture");
    let mut lengths = BTreeSet::new();
    let mut at = 24;
    while at + 16 <= capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().expect("four bytes")) as usize;
        let frame = &capture[at + 16..at + 16 + length];
        at += 16 + length;
        if frame[12..14] != [8, 0] || frame[23] != UDP {
            continue;
        }
        let bytes = usize::from(u16::from_be_bytes([frame[38], frame[39]]));
        assert_ne!(frame[40..42], [0, 0], "{bytes} bytes: no checksum");
        let pseudo = sum(&frame[26..34], u64::from(UDP) + bytes as u64);
        assert_eq!(sum(&frame[34..34 + bytes], pseudo), 0xffff, "{bytes} bytes: a wrong checksum");
        lengths.insert(bytes - 8);
    }
    assert_eq!(lengths, (0..=MOST).collect(), "payload lengths");
}
