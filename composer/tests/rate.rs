//! The wire's schedule, in simulated time: a frame of L bytes (without FCS) owns (max(L, 60) + 24) x 8 / rate. Offered back
//! to back on that schedule, every datagram comes back, none is dropped, and the backlog does not grow.
//!
//! The whole design runs: MAC, IP/UDP, echo, on board `sim`.

use std::fs;
use std::path::{Path, PathBuf};

use gateweave::cache::Cache;
use gateweave::pipeline::generate::Options;
use gateweave::pipeline::simulate::simulation;
use gateweave::plugin::types::Target;
use gateweave::sim::{self, RunOptions, Trace};
use gateweave::tools::{Origin, Talk, Tools};

const FRAMES: u64 = 10_000;
/// Ethernet, IPv4 and UDP around a payload.
const HEADERS: u32 = 42;

fn project(folder: &Path, width: u32, mhz: &str, gbps: u32, shortest: Option<u32>) -> PathBuf {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").canonicalize().expect("plugins/");
    let dir = folder.join("project");
    fs::create_dir_all(&dir).expect("a folder");
    let shortest = shortest.map(|bytes| format!(", shortest-frame = {bytes}")).unwrap_or_default();
    let text = format!(
        "schema = 1\nproject = {{ name = \"rate\", board = \"sim\", plugins = [\"{}\"] }}\nclocks = {{ sys = \"{mhz} MHz\" }}\n\
         datapath = {{ width = {width}, gbps = {gbps}{shortest} }}\n\
         [instance.mac0]\nplugin = \"mac\"\nlinks = {{ phy = \"board.eth0\" }}\n\
         [instance.net]\nplugin = \"ip-udp\"\nparams = {{ mac = \"02:47:57:00:00:01\", ip = \"192.168.7.2/24\", mtu = 1500 }}\n\
         links = {{ frames = \"mac0.frames\" }}\n\
         [instance.echo]\nplugin = \"udp-echo\"\nlinks = {{ udp = \"net.udp\" }}\n",
        plugins.display()
    );
    fs::write(dir.join("project.toml"), text).expect("a file");
    dir
}

fn pattern(folder: &Path, name: &str, length: &str) -> PathBuf {
    let path = folder.join(format!("{name}.toml"));
    let text = format!(
        "schema = 1\n[from]\nmac = \"02:00:00:00:00:01\"\nip = \"192.168.7.1\"\n[to]\nmac = \"02:47:57:00:00:01\"\nip = \"192.168.7.2\"\n\
         [step.arp]\nat = \"5us\"\narp = {{}}\n[step.storm]\nat = \"10us\"\nudp = {{ src-port = 40000, dst-port = 7 }}\nlength = {length}\ncount = {FRAMES}\n"
    );
    fs::write(&path, text).expect("a file");
    path
}

/// Lengths at which something changes: the shortest frame, the last padded one, the first that is longer, a beat more or less at
/// every width, the longest.
const LENGTHS: [u32; 9] = [0, 1, 17, 18, 19, 22, 86, 87, 1472];

/// With `shortest`, for frames from that length on, and for those that take no more beats than the shortest of all.
fn keeps_the_schedule(width: u32, mhz: &str, gbps: u32, shortest: Option<u32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open().expect("a cache");
    let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Quiet).expect("tools");
    let dir = project(folder.path(), width, mhz, gbps, shortest);
    let options = Options { dir, out: Some(folder.path().join("out")), target: Target::Simulation };
    let (_, plan, _) = simulation(&options, &cache).unwrap_or_else(|d| panic!("{:?}", d.0));
    let simulator = sim::build(&plan, Trace::None, &tools).unwrap_or_else(|d| panic!("{}", d.message));

    let mut cases: Vec<(String, String, bool)> = LENGTHS.iter().map(|l| (format!("length {l}"), l.to_string(), true)).collect();
    // A mix has no steady state; its backlog is bounded by two of the longest frames and what the pipeline holds.
    let least = shortest.map_or(0, |bytes| bytes - HEADERS);
    cases.push(("random mix, seed 5".to_owned(), format!("{{ random = [{least}, 1472], seed = 5 }}"), false));
    if shortest.is_some() {
        cases.push(("the shortest".to_owned(), least.to_string(), true));
    }
    for (name, length, steady) in cases {
        let file = pattern(folder.path(), "pattern", &length);
        let wires = vec![format!("pattern:{}", file.display()).parse().expect("a wire")];
        let run = sim::run(&simulator, &RunOptions { wires, ..RunOptions::default() }).unwrap_or_else(|d| panic!("{:?}", d.0));
        let wire = run.wire("eth0").expect("eth0 has a wire");
        let what = format!("{width} bits, {mhz} MHz, {gbps} Gb/s, {name}");
        assert_eq!(wire.frames_in, FRAMES + 1, "{what}");
        assert_eq!(wire.frames_out, FRAMES + 1, "{what}: frames were dropped");
        assert_eq!(wire.underruns, 0, "{what}");
        let at = |n: u64| wire.backlog.iter().find(|(frame, _)| *frame == n).map(|(_, backlog)| *backlog).expect("a sample");
        let (early, late) = (at(100), at(10_000));
        println!("{what}: backlog {early} after 100 frames, {late} after 10,000");
        if steady {
            // One frame of difference is where between two clock edges the sample fell (2.16 cycles a frame at 100 Gb/s).
            assert!(late.abs_diff(early) <= 1, "{what}: backlog {early} after 100 frames, {late} after 10,000");
        } else {
            assert!(late <= early + 4, "{what}: backlog {early} after 100 frames, {late} after 10,000");
        }
    }
}

#[test]
fn eight_bits_at_125_mhz_keep_up_with_1g() {
    keeps_the_schedule(8, "125", 1, None);
}

#[test]
fn thirty_two_bits_at_62_5_mhz_keep_up_with_1g() {
    keeps_the_schedule(32, "62.5", 1, None);
}

#[test]
fn sixty_four_bits_at_156_25_mhz_keep_up_with_10g() {
    keeps_the_schedule(64, "156.25", 10, None);
}

#[test]
fn five_hundred_and_twelve_bits_at_322_mhz_keep_up_with_100g() {
    keeps_the_schedule(512, "322.265625", 100, None);
}

/// Without frames of 65 to 75 bytes, which take two beats and have the wire for less than two cycles.
#[test]
fn five_hundred_and_twelve_bits_at_250_mhz_keep_up_with_100g_from_76_bytes_on() {
    keeps_the_schedule(512, "250", 100, Some(76));
}
