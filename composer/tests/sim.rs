//! The simulation harness against small designs that send everything back.

use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::OnceLock;

use gateweave::cache::Cache;
use gateweave::diag::Diagnostics;
use gateweave::sim::{Clock, PinDelay, Reset, Resource, RunOptions, RunSummary, SimPlan, Simulator, SvFile, Trace, Wire, build, run};
use gateweave::tools::{Origin, Tools, talk::Talk};
use serde_json::json;

const LOOP: &str = include_str!("sim/stream_loop.sv");

fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| Tools::new(Cache::open().unwrap(), Origin::Pinned, Talk::Quiet).unwrap())
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
    build(plan, trace, tools()).unwrap_or_else(|d| panic!("{}: {:?}", d.message, d.help))
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
        let reset_ns = (16 + 64) * period_fs.max(10_000_000) / 1_000_000;
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

/// What the simulator says on a lock-step wire up to its next report: (kind, two times, frame), and the time of the report.
fn until_report(socket: &mut UnixStream) -> (Vec<(u8, u64, u64, Vec<u8>)>, u64) {
    let mut read = |n: usize| {
        let mut bytes = vec![0; n];
        socket.read_exact(&mut bytes).unwrap();
        bytes
    };
    let mut said = Vec::new();
    loop {
        let kind = read(1)[0];
        let mut number = || u64::from_le_bytes(read(8).try_into().unwrap());
        let first = number();
        if kind == 2 {
            return (said, first);
        }
        let second = number();
        let length = if kind == 1 { u32::from_le_bytes(read(4).try_into().unwrap()) } else { 0 };
        said.push((kind, first, second, read(length as usize)));
    }
}

#[test]
fn a_peer_in_lock_step_decides_how_far_time_goes() {
    for (width, period_fs, mbps, byte_ps) in [(32, 16_000_000, 1000, 8000_u64), (64, 6_400_000, 10000, 800)] {
        let mut plan = stream_plan(width, period_fs);
        plan.resources[0].facts = json!({ "mbps": mbps });
        let sim = simulator(&plan, Trace::None);
        let once = || {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("step");
            let options = RunOptions { wires: vec![format!("step:{}", path.display()).parse().unwrap()], ..RunOptions::default() };
            let simulator = sim.clone();
            let runner = std::thread::spawn(move || run(&simulator, &options));
            let mut socket = loop {
                match UnixStream::connect(&path) {
                    Ok(socket) => break socket,
                    Err(_) => std::thread::yield_now(),
                }
            };
            let (said, begin) = until_report(&mut socket);
            assert_eq!(said, []);
            let grant = |socket: &mut UnixStream, time: u64| {
                socket.write_all(&[&[2][..], &time.to_le_bytes()].concat()).unwrap();
                until_report(socket)
            };
            // Nothing moves without a grant, and without frames time goes exactly as far as was granted.
            assert_eq!(grant(&mut socket, begin + 5000), (vec![], begin + 5000));
            assert_eq!(grant(&mut socket, begin), (vec![], begin + 5000), "time does not go back");
            let mut events = Vec::new();
            let mut now = begin + 5000;
            for i in 0..20_u64 {
                let (at, bytes) = (now + 1000 + i * 7, frame(60 + i as usize * 61, i as u32));
                socket.write_all(&[&[1][..], &at.to_le_bytes(), &(bytes.len() as u32).to_le_bytes(), &bytes].concat()).unwrap();
                let far = at + 1_000_000;
                let (mut entered, mut left) = (None, None);
                while left.is_none() {
                    let (said, time) = grant(&mut socket, far);
                    assert!(time < far, "frame {i} is lost");
                    now = time;
                    for event in said {
                        if event.0 == 3 {
                            entered = Some(event.clone())
                        } else {
                            left = Some(event.clone())
                        }
                        events.push(event);
                    }
                }
                let (entered, left) = (entered.unwrap(), left.unwrap());
                assert_eq!(left.3, bytes, "frame {i}");
                // On the first clock edge from its time on, for as long as it takes; the design answers when it has it.
                assert!((at..at + 20).contains(&entered.1), "frame {i} at {at}: {entered:?}");
                let wire_ns = (bytes.len() as u64 + 12) * byte_ps / 1000;
                assert!(entered.2.abs_diff(entered.1 + wire_ns) <= 1, "frame {i}: {entered:?}");
                assert!(left.1 > entered.1 && left.2.abs_diff(left.1 + wire_ns) <= 1, "frame {i}: {left:?}");
            }
            drop(socket);
            let summary = runner.join().unwrap().unwrap_or_else(|d| panic!("{d:?}"));
            assert_eq!(summary.ended_by, "input");
            assert_eq!(summary.wire("eth0").map(|w| (w.good_in, w.frames_out, w.undelivered)), Some((20, 20, 0)));
            assert!(!path.exists(), "the socket is gone after the run");
            (events, summary.time_fs)
        };
        assert_eq!(once(), once(), "two runs differ");
    }
}

fn lines_plan(facts: serde_json::Value, delays: &[(&str, u64)]) -> SimPlan {
    let resource = |name: &str, class: &str, facts: serde_json::Value| Resource {
        name: name.into(),
        class: class.into(),
        facts,
        width: 0,
        period_fs: 0,
        clock_port: None,
        delays: vec![],
    };
    let mut eth0 = resource("eth0", "rgmii", facts);
    eth0.delays = delays.iter().map(|(pin, ps)| PinDelay { pin: (*pin).into(), ps: *ps }).collect();
    let mut leds = resource("leds", "leds", json!({ "active": "low" }));
    leds.width = 4;
    SimPlan {
        top: "lines_loop".into(),
        files: vec![SvFile { path: "lines_loop.sv".into(), text: include_str!("sim/lines_loop.sv").into() }],
        clocks: vec![],
        resets: vec![],
        resources: vec![
            eth0,
            resource("eth1", "gmii", json!({ "mbps": 1000 })),
            resource("eth2", "mii", json!({ "mbps": 100 })),
            resource("serial0", "uart", json!({ "baud": 5_000_000 })),
            leds,
        ],
    }
}

/// Runs frames of all kinds of lengths through one line of the loop.
fn echo(sim: &Simulator, line: &str) -> Result<(RunSummary, bool), Diagnostics> {
    let folder = tempfile::tempdir().unwrap();
    let input: Vec<(u64, Vec<u8>)> = (0..40).map(|i| (0, frame(60 + (i * 37) % 1455, i as u32))).collect();
    std::fs::write(folder.path().join("in.pcap"), pcap(&input)).unwrap();
    let wire = format!("{line}=pcap:{0}/in.pcap,{0}/out.pcap", folder.path().display());
    let options =
        RunOptions { wires: vec![wire.parse().unwrap()], drain_fs: Some(5_000_000_000), per_frame: true, ..RunOptions::default() };
    let summary = run(sim, &options)?;
    let out = frames_of(&std::fs::read(folder.path().join("out.pcap")).unwrap());
    let same = out.iter().map(|f| &f.1).eq(input.iter().map(|f| &f.1));
    // Back to back on the line: each frame owns its length, preamble, FCS and gap.
    let byte_ns = if line == "eth2" { 80 } else { 8 };
    for pair in out.windows(2) {
        assert_eq!(pair[1].0 - pair[0].0, (pair[0].1.len() as u64 + 24) * byte_ns, "{line}");
    }
    Ok((summary, same))
}

#[test]
fn gmii_and_mii_send_back_every_frame() {
    let sim = simulator(&lines_plan(json!({ "mbps": 1000 }), &[]), Trace::None);
    for line in ["eth1", "eth2"] {
        let (summary, same) = echo(&sim, line).unwrap_or_else(|d| panic!("{d:?}"));
        assert!(same, "{line}: {summary:?}");
        let wire = summary.wire(line).unwrap();
        assert_eq!((wire.good_in, wire.frames_out, wire.bad_out, wire.short_gaps), (40, 40, 0, 0), "{line}");
        assert_eq!(wire.latency.as_ref().unwrap().frames_fs.len(), 40);
        let leds = summary.resources.iter().find(|r| r.name == "leds").unwrap();
        assert_eq!(leds.shown, ".*.*", "active low, bit 0 first");
    }
}

#[test]
fn rgmii_passes_with_each_way_to_share_the_delays() {
    let cases: [(serde_json::Value, &[(&str, u64)]); 4] = [
        // Transmit by the PHY, receive by the FPGA (Colorlight); the other way round (ECPIX-5); all by the PHY (Versa);
        // and a PHY that adds 1.2 ns on receive (ButterStick).
        (json!({ "mbps": 1000, "tx-delay-ps": 0, "rx-delay-ps": 2000 }), &[("rx_data", 2000), ("rx_ctl", 2000)]),
        (json!({ "mbps": 1000, "tx-delay-ps": 2000, "rx-delay-ps": 0 }), &[("tx_clk", 2000)]),
        (json!({ "mbps": 1000, "tx-delay-ps": 0, "rx-delay-ps": 0 }), &[]),
        (json!({ "mbps": 1000, "tx-delay-ps": 2000, "rx-delay-ps": 0, "phy-rx-delay-ps": 1200 }), &[("tx_clk", 2000)]),
    ];
    for (facts, delays) in cases {
        let sim = simulator(&lines_plan(facts.clone(), delays), Trace::None);
        let (summary, same) = echo(&sim, "eth0").unwrap_or_else(|d| panic!("{facts}: {d:?}"));
        assert!(same, "{facts}: {summary:?}");
        assert_eq!(summary.wire("eth0").unwrap().window_violations, 0);
    }
}

#[test]
fn rgmii_fails_when_set_up_or_hold_is_missed() {
    let cases: [(serde_json::Value, &[(&str, u64)], &str); 5] = [
        // The receive delay that the board needs is not in the design.
        (json!({ "mbps": 1000, "tx-delay-ps": 0, "rx-delay-ps": 2000 }), &[], "rx_data is stable for -500 ps before"),
        // It is there twice.
        (
            json!({ "mbps": 1000, "tx-delay-ps": 0, "rx-delay-ps": 0 }),
            &[("rx_data", 2000), ("rx_ctl", 0)],
            "rx_data is stable for -500 ps before",
        ),
        // The transmit clock comes too early, too late, and with the data.
        (json!({ "mbps": 1000, "rx-delay-ps": 0, "phy-tx-delay-ps": 500 }), &[], "set-up is 1.000 ns"),
        (json!({ "mbps": 1000, "rx-delay-ps": 0, "tx-delay-ps": 0 }), &[("tx_clk", 1500)], "hold is 1.000 ns"),
        (json!({ "mbps": 1000, "rx-delay-ps": 0, "tx-delay-ps": 2000 }), &[], "set-up is 1.000 ns"),
    ];
    for (facts, delays, text) in cases {
        let sim = simulator(&lines_plan(facts.clone(), delays), Trace::None);
        let found = echo(&sim, "eth0").err().unwrap_or_else(|| panic!("{facts} {delays:?} passed"));
        assert_eq!(found.0.len(), 1, "{found:?}");
        assert_eq!(found.0[0].code, "GW0720");
        assert!(found.0[0].message.contains(text), "{facts} {delays:?}: {}", found.0[0].message);
    }
}

#[test]
fn serial_line_carries_bytes_both_ways_and_the_socket_goes_away() {
    let sim = simulator(&lines_plan(json!({ "mbps": 1000 }), &[]), Trace::None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("regs");
    let options = RunOptions { regs: Some(format!("unix:{}", path.display()).parse().unwrap()), ..RunOptions::default() };
    let runner = std::thread::spawn(move || run(&sim, &options));
    let mut client = loop {
        match UnixStream::connect(&path) {
            Ok(client) => break client,
            Err(_) => std::thread::yield_now(),
        }
    };
    client.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let sent: Vec<u8> = (0..=255).collect();
    client.write_all(&sent).unwrap();
    let mut back = vec![0; sent.len()];
    client.read_exact(&mut back).unwrap();
    assert_eq!(back, sent);
    drop(client);
    let summary = runner.join().unwrap().unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!(summary.ended_by, "input", "the run ends when its client has gone");
    assert!(!path.exists());
}

#[test]
fn pattern_faults_are_dropped_and_the_next_good_frame_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    let text = r#"
schema = 1
out = "back.pcap"
[from]
mac = "02:00:00:00:00:01"
ip = "10.0.0.1"
[to]
mac = "02:00:00:00:00:02"
ip = "10.0.0.2"
[step.every-cut]
udp = { dst-port = 7 }
length = 100
cut = { from = 1, to = 145 }
[step.good]
udp = { dst-port = 7 }
length = 100
[step.wrong]
udp = { dst-port = 7 }
fcs = "wrong"
count = 3
[step.error]
udp = { dst-port = 7 }
rx-er-at = 20
[step.storm]
udp = { dst-port = 7 }
length = { random = [0, 1472], seed = 3 }
count = 200
[step.after]
arp = {}
"#;
    std::fs::write(&file, text).unwrap();
    let sim = simulator(&stream_plan(64, 6_400_000), Trace::None);
    let options = RunOptions { wires: vec![format!("pattern:{}", file.display()).parse().unwrap()], ..RunOptions::default() };
    let summary = run(&sim, &options).unwrap_or_else(|d| panic!("{d:?}"));
    let wire = summary.wire("eth0").unwrap();
    assert_eq!((wire.frames_in, wire.good_in, wire.frames_out, wire.bad_out), (145 + 1 + 3 + 1 + 200 + 1, 202, 202, 0));
    let back = frames_of(&std::fs::read(folder.path().join("back.pcap")).unwrap());
    assert_eq!(back.len(), 202);
    assert_eq!(back[201].1[12..14], [8, 6], "the last is the ARP request");

    // On a line the faults are there to be seen: the loop sends them back, wrong as they are.
    let sim = simulator(&lines_plan(json!({ "mbps": 1000 }), &[]), Trace::None);
    let options = RunOptions { wires: vec![format!("eth1=pattern:{}", file.display()).parse().unwrap()], ..RunOptions::default() };
    let summary = run(&sim, &options).unwrap_or_else(|d| panic!("{d:?}"));
    let wire = summary.wire("eth1").unwrap();
    assert_eq!((wire.frames_in, wire.good_in, wire.frames_out, wire.bad_out), (351, 202, 351, 149));
}

#[test]
fn pcap_variants_and_broken_files() {
    let folder = tempfile::tempdir().unwrap();
    let sim = simulator(&stream_plan(64, 6_400_000), Trace::None);
    let play = |bytes: &[u8]| {
        std::fs::write(folder.path().join("in.pcap"), bytes).unwrap();
        let wire = format!("pcap:{0}/in.pcap,{0}/out.pcap", folder.path().display());
        let summary = run(&sim, &RunOptions { wires: vec![wire.parse().unwrap()], ..RunOptions::default() })?;
        Ok::<_, Diagnostics>((summary, frames_of(&std::fs::read(folder.path().join("out.pcap")).unwrap())))
    };
    // Microseconds, big endian, two frames 30 us apart.
    let mut big = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65535, 1] {
        big.extend(word.to_be_bytes());
    }
    for (us, seed) in [(999_990u32, 1), (1_000_020, 2)] {
        for word in [1_700_000_000 + us / 1_000_000, us % 1_000_000, 100, 100] {
            big.extend(word.to_be_bytes());
        }
        big.extend(frame(100, seed));
    }
    let (_, out) = play(&big).unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!(out.iter().map(|f| f.1.clone()).collect::<Vec<_>>(), [frame(100, 1), frame(100, 2)]);
    let apart = out[1].0 - out[0].0;
    assert!((29_990..30_010).contains(&apart), "{apart} ns");
    // A declared FCS goes in as it stands: here it is wrong.
    let mut with_fcs = pcap(&[(0, frame(104, 3))]);
    with_fcs[20..24].copy_from_slice(&(1u32 | 1 << 26 | 2 << 28).to_le_bytes());
    let (summary, out) = play(&with_fcs).unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!((summary.wire("eth0").unwrap().frames_in, summary.wire("eth0").unwrap().good_in, out.len()), (1, 0, 0));
    // Broken files.
    let good = pcap(&[(0, frame(100, 1)), (0, frame(100, 2))]);
    let error = |bytes: &[u8]| {
        let found = play(bytes).err().expect("an error");
        assert_eq!(found.0[0].code, "GW0713");
        format!("{} ({})", found.0[0].message, found.0[0].help.as_deref().unwrap_or(""))
    };
    assert!(error(&good[..good.len() - 1]).contains("ends at offset 255 in the middle of a frame"));
    assert!(error(&good[..145]).contains("ends at offset 145 in the middle of a record header"));
    assert!(error(&good[..10]).contains("ends at offset 10 in the middle of the file header"));
    assert!(error(&[0x0a, 0x0d, 0x0d, 0x0a].repeat(10)).contains("pcapng"));
    assert!(error(&[7; 100]).contains("no pcap file"));
}

#[test]
fn until_and_signal_end_with_readable_files() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.vcd");
    let sim = simulator(&stream_plan(8, 8_000_000), Trace::Vcd);
    let options = RunOptions { until_fs: Some(10_000_000_000), trace: Some(trace.clone()), ..RunOptions::default() };
    let summary = run(&sim, &options).unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!((summary.time_fs, summary.ended_by.as_str()), (10_000_000_000, "until"));
    let text = std::fs::read_to_string(&trace).unwrap();
    let last = text.lines().filter_map(|l| l.strip_prefix('#')?.parse::<u64>().ok()).max();
    assert_eq!(last, Some(10_000_000), "the last time in the trace, picoseconds");

    // FST: a header block with the start and the end in bytes 9 to 24, big endian.
    let trace = folder.path().join("t.fst");
    let sim = simulator(&stream_plan(8, 8_000_000), Trace::Fst);
    run(&sim, &RunOptions { trace: Some(trace.clone()), ..options.clone() }).unwrap_or_else(|d| panic!("{d:?}"));
    let bytes = std::fs::read(&trace).unwrap();
    assert_eq!((bytes[0], u64::from_be_bytes(bytes[17..25].try_into().unwrap())), (0, 10_000_000));

    let out = folder.path().join("out.pcap");
    let options = RunOptions { wires: vec![format!("pcap:,{}", out.display()).parse().unwrap()], drain_fs: Some(u64::MAX / 2), ..options };
    let options = RunOptions { until_fs: None, trace: None, ..options };
    let sim = simulator(&stream_plan(64, 6_400_000), Trace::None);
    let program = sim.program.clone();
    let runner = std::thread::spawn(move || run(&sim, &options));
    // The simulator whose output file is there has started its loop.
    let pid = loop {
        let children: Vec<i32> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
            .flat_map(|list| list.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>())
            .collect();
        let mine = children.into_iter().find(|pid| {
            std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
                && std::fs::read_dir(format!("/proc/{pid}/fd"))
                    .is_ok_and(|mut fds| fds.any(|fd| fd.is_ok_and(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == out))))
        });
        if let Some(pid) = mine {
            break pid;
        }
        std::thread::yield_now();
    };
    std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
    let summary = runner.join().unwrap().unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!(summary.ended_by, "signal");
    assert!(frames_of(&std::fs::read(&out).unwrap()).is_empty());
}

#[test]
fn wires_that_cannot_be_are_refused() {
    let code = |text: &str| text.parse::<Wire>().err().map(|d| format!("{} {}", d.code, d.help.unwrap_or_default()));
    assert_eq!(code("eth0=unxi:a,b").as_deref(), Some("GW0707 did you mean `unix`?"));
    for text in ["", "unix", "unix:a", "unix:,b", "tap:", "pcap:", "pcap:,", "pattern:", "step:"] {
        assert!(code(text).is_some_and(|c| c.starts_with("GW0707")), "{text}");
    }
    let sim = simulator(&lines_plan(json!({ "mbps": 1000 }), &[]), Trace::None);
    let run_with = |wires: &[&str]| {
        let wires = wires.iter().map(|w| w.parse().unwrap()).collect();
        run(&sim, &RunOptions { wires, until_fs: Some(1), ..RunOptions::default() })
            .err()
            .map(|d| (d.0[0].code, d.0[0].help.clone().unwrap_or_default()))
    };
    assert_eq!(run_with(&["eht0=tap:x"]), Some(("GW0708", "did you mean `eth0`?".into())));
    assert_eq!(run_with(&["tap:x"]), Some(("GW0709", "NAME= with one of: eth0, eth1, eth2".into())));
    assert_eq!(run_with(&["eth0=tap:x", "eth0=tap:y"]).map(|e| e.0), Some("GW0709"));
    assert_eq!(run_with(&["eth0=tap:a-name-that-is-too-long"]).map(|e| e.0), Some("GW0712"));
    assert_eq!(run_with(&["eth0=unix:/nowhere/a,/nowhere/b"]).map(|e| e.0), Some("GW0711"));
    let mut plan = lines_plan(json!({ "mbps": 1000 }), &[]);
    plan.resources[0].class = "rgmi".into();
    let found = build(&plan, Trace::None, tools()).err().unwrap();
    assert_eq!((found.code, found.help.as_deref()), ("GW0703", Some("did you mean `rgmii`?")));
}

/// Every domain of a design leaves reset some edges after the top level's input does, and a receiver that leaves it inside a frame
/// waits for the next gap. The harness sent the first frame at once, so the first one was lost.
#[test]
fn the_first_frame_of_a_run_waits_until_all_domains_have_left_reset() {
    let mut plan = stream_plan(8, 8_000_000);
    let bridged = LOOP
        .replace(
            "always_ff @(posedge clk_other)",
            "logic [31:0] chain;\n    always_ff @(posedge clk_other) chain <= {chain[30:0], button};\n    always_ff @(posedge clk_other)",
        )
        .replace("if (!button)", "if (!chain[31])")
        .replace("int W = 64", "int W = 8");
    assert!(bridged.contains("!chain[31]") && bridged.contains("button};"));
    plan.files[0].text = bridged;
    let folder = tempfile::tempdir().unwrap();
    let input: Vec<(u64, Vec<u8>)> = (0..3).map(|i| (0, frame(60, i))).collect();
    std::fs::write(folder.path().join("in.pcap"), pcap(&input)).unwrap();
    let wire = format!("pcap:{0}/in.pcap,{0}/out.pcap", folder.path().display());
    let options = RunOptions { wires: vec![wire.parse().unwrap()], ..RunOptions::default() };
    run(&simulator(&plan, Trace::None), &options).unwrap_or_else(|d| panic!("{d:?}"));
    let out = frames_of(&std::fs::read(folder.path().join("out.pcap")).unwrap());
    assert_eq!(out.into_iter().map(|f| f.1).collect::<Vec<_>>(), input.into_iter().map(|f| f.1).collect::<Vec<_>>());
}

#[test]
fn rgmii_at_another_speed_takes_no_frames_and_ends() {
    let sim = simulator(&lines_plan(json!({ "mbps": 1000, "in-band-mbps": 100 }), &[]), Trace::None);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.pcap"), pcap(&[(0, frame(60, 1))])).unwrap();
    let wire = format!("eth0=pcap:{0}/in.pcap,{0}/out.pcap", folder.path().display());
    let summary =
        run(&sim, &RunOptions { wires: vec![wire.parse().unwrap()], ..RunOptions::default() }).unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!((summary.ended_by.as_str(), summary.wire("eth0").unwrap().frames_in), ("input", 0));
}
