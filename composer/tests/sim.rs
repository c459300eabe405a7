//! The simulation harness against small designs that send everything back.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gateweave::sim::{Clock, Reset, Resource, RunOptions, SimPlan, Simulator, SvFile, Trace, build, run};
use serde_json::json;

const LOOP: &str = include_str!("sim/stream_loop.sv");

fn cache() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("simulators"))
}

fn stream_plan(width: u32, period_fs: u64) -> SimPlan {
    SimPlan {
        top: "stream_loop".into(),
        files: vec![SvFile { path: "stream_loop.sv".into(), text: LOOP.replace("int W = 64", &format!("int W = {width}")) }],
        clocks: vec![Clock { port: "clk_other".into(), period_fs: 10_000_000, phase_fs: 0 }],
        resets: vec![Reset { port: "button".into(), active_low: true }],
        resources: vec![Resource {
            name: "eth0".into(),
            class: "stream".into(),
            facts: json!({ "mbps": [1000, 10000, 100000] }),
            width,
            period_fs,
            clock_port: None,
            delays: vec![],
        }],
    }
}

fn simulator(plan: &SimPlan, trace: Trace) -> Simulator {
    build(plan, trace, cache(), &mut |_| {}).unwrap_or_else(|d| panic!("{}: {:?}", d.message, d.help))
}

/// A nanosecond pcap in this machine's byte order.
fn pcap(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for (ns, bytes) in frames {
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, bytes.len() as u32, bytes.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}

/// Time stamps in nanoseconds and frames of a file that the harness wrote.
fn frames_of(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 0xa1b2_3c4d, "nanosecond magic");
    let mut at = 24;
    let mut frames = Vec::new();
    while at < file.len() {
        let length = word(at + 8) as usize;
        frames.push((u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)), file[at + 16..at + 16 + length].to_vec()));
        at += 16 + length;
    }
    frames
}

/// A frame of `length` bytes whose contents `seed` decides.
fn frame(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

#[test]
fn pcap_comes_back_byte_for_byte_at_line_rate_and_twice_the_same() {
    // Width, period, byte time on the wire in picoseconds.
    for (width, period_fs, byte_ps) in [(8, 8_000_000, 8000), (32, 16_000_000, 8000), (64, 6_400_000, 800), (512, 3_103_030, 80)] {
        let sim = simulator(&stream_plan(width, period_fs), Trace::None);
        let folder = tempfile::tempdir().unwrap();
        let input: Vec<(u64, Vec<u8>)> = (0..300).map(|i| (0, frame(60 + (i * 37) % 1455, i as u32))).collect();
        std::fs::write(folder.path().join("in.pcap"), pcap(&input)).unwrap();
        let once = |name: &str| {
            let wire = format!("pcap:{},{}", folder.path().join("in.pcap").display(), folder.path().join(name).display());
            let options = RunOptions { wires: vec![wire.parse().unwrap()], ..RunOptions::default() };
            let summary = run(&sim, &options).unwrap_or_else(|d| panic!("{d:?}"));
            (summary, std::fs::read(folder.path().join(name)).unwrap())
        };
        let (summary, file) = once("one.pcap");
        let out = frames_of(&file);
        assert_eq!(out.iter().map(|f| &f.1).collect::<Vec<_>>(), input.iter().map(|f| &f.1).collect::<Vec<_>>(), "width {width}");
        assert_eq!(summary.ended_by, "input");
        let wire = summary.wire("eth0").unwrap();
        assert_eq!((wire.frames_in, wire.good_in, wire.frames_out, wire.underruns, wire.bad_out), (300, 300, 300, 0, 0));
        let at_100 = wire.backlog.iter().find(|b| b.0 == 100).unwrap().1;
        assert!(at_100 <= 2, "width {width}: {:?}", wire.backlog);
        // The frames come out no faster than the wire carries them.
        for pair in out.windows(2) {
            let owned_ns = (pair[0].1.len() as u64 + 24) * byte_ps / 1000;
            assert!(pair[1].0 + 1 >= pair[0].0 + owned_ns, "width {width}: {} then {}", pair[0].0, pair[1].0);
        }
        // And the last is out within two frame times of when the wire's schedule has it in.
        let owned: u64 = input.iter().map(|f| (f.1.len() as u64 + 24) * byte_ps / 1000).sum();
        let reset_ns = 16 * period_fs.max(10_000_000) / 1_000_000;
        let last = out.last().unwrap().0;
        assert!(last < reset_ns + owned + 2 * 1539 * byte_ps / 1000, "width {width}: {last} against {owned}");
        assert_eq!(once("two.pcap").1, file, "width {width}: two runs differ");
    }
}

#[test]
fn unix_wire_loses_nothing_under_back_pressure() {
    let sim = simulator(&stream_plan(64, 6_400_000), Trace::None);
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("peer"), folder.path().join("sim"));
    let peer = UnixDatagram::bind(&here).unwrap();
    let wire = format!("eth0=unix:{},{}", there.display(), here.display());
    let options = RunOptions { wires: vec![wire.parse().unwrap()], until_fs: Some(20_000_000_000_000), ..RunOptions::default() };
    let runner = std::thread::spawn(move || run(&sim, &options));
    while peer.connect(&there).is_err() {
        std::thread::yield_now();
    }
    // The peer sends all before it reads one: both directions' queues fill.
    let reader = peer.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        for i in 0..1000 {
            peer.send(&frame(60 + (i * 13) % 200, i as u32)).unwrap();
        }
    });
    sender.join().unwrap();
    reader.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    for i in 0..1000 {
        let mut buffer = [0; 2048];
        let n = reader.recv(&mut buffer).unwrap_or_else(|e| panic!("frame {i}: {e}"));
        assert_eq!(buffer[..n], frame(60 + (i * 13) % 200, i as u32), "frame {i}");
    }
    let summary = runner.join().unwrap().unwrap_or_else(|d| panic!("{d:?}"));
    let wire = summary.wire("eth0").unwrap();
    assert_eq!((wire.frames_in, wire.frames_out, wire.undelivered), (1000, 1000, 0));
    assert!(!there.exists(), "the socket is gone after the run");
}
