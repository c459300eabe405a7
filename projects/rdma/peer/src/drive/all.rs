//! The programs by name, with what each prints: for the command line and for `cargo xtask peer`.

use super::{Target, cm, drops, faults, hostile, loss, node, requester, speed};
use crate::check::{self, Options};
use crate::cm::tcp_service;
use crate::live::{Station, Wire};
use crate::model::Operation;
use crate::model::link::Faults;
use std::io;
use std::net::Ipv4Addr;

/// How to run them.
#[derive(Clone, Debug)]
pub struct Settings {
    pub target: Target,
    /// Our own address.
    pub ip: Ipv4Addr,
    pub pmtu: u32,
    /// Of the link.
    pub gbps: f64,
    pub seed: u64,
    /// Rounds of `loss` at each rate, and hundreds of lists of random steps of `hostile`.
    pub rounds: u64,
    /// READs and atomics that we have in flight at most; the board may promise less.
    pub depth: u8,
    /// Of the board.
    pub queue_pairs: usize,
    /// Only these cases of `faults` and families of `hostile`; all if there are none.
    pub cases: Vec<String>,
    /// All of `hostile`, where it else tries a part of what is much the same.
    pub all: bool,
    /// One list of steps in place of the random ones of `hostile`.
    pub replay: Option<Vec<hostile::Step>>,
    /// For the records only: width of the datapath in bits, its clock, kind of memory.
    pub width: u32,
    pub mhz: f64,
    pub memory: String,
}

/// What a program found.
#[derive(Clone, Debug)]
pub struct Line {
    pub program: &'static str,
    pub text: String,
    pub failed: bool,
    /// A record of `bench.json`.
    pub record: Option<String>,
}

impl Settings {
    /// The cases among `names`.
    fn of<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|name| self.cases.iter().any(|case| case == name)).collect()
    }
}

/// Lists of random steps of a round of `hostile`.
const LISTS: u32 = 100;

/// TCP port of the plugin `rdma-bench`.
pub(super) const BENCH_PORT: u16 = 18516;

/// That of the echo in `key-exchanger`.
pub(super) const ECHO_PORT: u16 = 7471;

/// In those whose names begin with `requester` the board is one.
pub const PROGRAMS: &[&str] =
    &["speed", "latency", "cm", "loss", "drops", "hostile", "faults", "requester", "requester-speed", "requester-loss", "requester-drops"];

/// Rate of a fault from which on a queue pair may end in error, in parts of a million.
const MAY_ERR: u32 = 50_000;
/// One from which retries are sure to run out.
const HOPELESS: u32 = 700_000;

/// ACK timeout of the programs that lose packets on purpose, 4.096 us x 2^n. Of random loss: 1 ms, what a delayed frame takes at most. Of
/// single drops: 0.26 ms.
const LOSSY_TIMEOUT: u8 = 8;
const DROP_TIMEOUT: u8 = 6;

const WRITE: Operation = Operation::Write { imm: None };

/// A station with a node of ours on `wire`.
pub fn station<W: Wire>(wire: W, settings: &Settings) -> Station<W> {
    let mut node = node([0x02, 0, 0, 0, 0, 9], settings.ip, 1 << 20, settings.seed);
    node.limits.pmtu = settings.pmtu;
    node.limits.initiator_depth = settings.depth;
    // 4.2 ms: longer than any answer takes.
    node.limits.ack_timeout = 10;
    let mut station = Station::unharmed(node, wire);
    station.byte_ns = 8.0 / settings.gbps;
    station
}

/// Runs one program and then checks every frame that went over the wire.
///
/// # Errors
/// Those of the wire; what a program cannot go on after.
pub fn run<W: Wire>(station: &mut Station<W>, program: &str, settings: &Settings, mut say: impl FnMut(Line)) -> io::Result<()> {
    let program = PROGRAMS.iter().find(|known| **known == program).copied();
    let program = program.ok_or_else(|| super::wrong(format!("there is no such program; there are {}", PROGRAMS.join(", "))))?;
    let target = settings.target;
    let mut tell = |text: String, failed: bool, record: Option<String>| say(Line { program, text, failed, record });
    station.records.clear();
    match program {
        "speed" => {
            for (name, operation) in [("WRITE", WRITE), ("READ", Operation::Read)] {
                let found = speed::throughput(station, target, operation, 65536, 8)?;
                let share = found.share();
                let text = format!(
                    "{name} 64 KiB, PMTU {}: {:.2} of {:.2} MB/s, {:.2}%, {} resends",
                    found.pmtu,
                    found.payload_mb_s,
                    found.limit_mb_s,
                    share * 100.0,
                    found.resends
                );
                tell(
                    text,
                    share < 0.995,
                    Some(record(settings, "responder", name, found.pmtu, found.size, Some((found.payload_mb_s, found.limit_mb_s)), None)),
                );
            }
        }
        "latency" => {
            for (name, operation, limit) in [("WRITE", WRITE, 600), ("READ", Operation::Read, 800)] {
                for size in [4, 16, 64, 256, 1024, 4096, 16384, 65536] {
                    let (shortest, longest) = speed::latency(station, target, operation, size, 8)?;
                    let text = format!("{name} of {size} bytes to the first answer: {shortest} to {longest} ns");
                    let pmtu = settings.pmtu;
                    tell(text, longest > limit, Some(record(settings, "responder", name, pmtu, size, None, Some(longest))));
                }
            }
        }
        "requester" => requests(station, target, &mut tell)?,
        "requester-speed" => request_speed(station, target, settings, &mut tell)?,
        "loss" => matrix(station, settings, &mut tell, |station, faults, seed| loss::random(station, target, faults, seed, 40))?,
        "requester-loss" => {
            let target = Target { service: tcp_service(BENCH_PORT), region: None, ..target };
            matrix(station, settings, &mut tell, |station, faults, seed| loss::by_board(station, target, faults, seed))?;
        }
        "cm" => {
            for (rule, result) in cm::rules(station, target, settings.queue_pairs)? {
                tell(format!("{rule}{}", result.as_ref().err().map_or(String::new(), |why| format!(": {why}"))), result.is_err(), None);
            }
        }
        "drops" => {
            station.node.limits.ack_timeout = DROP_TIMEOUT;
            let atomics = [Operation::FetchAdd { add: 5 }, Operation::CompareSwap { compare: 0, swap: 0x1122_3344_5566_7788 }];
            for operation in [WRITE, Operation::Read].into_iter().chain(atomics) {
                tell(each_of(&format!("{operation:?}"), drops::responder(station, target, operation)?), false, None);
            }
        }
        "faults" => {
            let say = |name: &str, result: Result<(), String>| {
                tell(result.as_ref().err().map_or(name.to_owned(), |why| format!("{name}: {why}")), result.is_err(), None);
            };
            let cases = settings.of(&faults::names());
            faults::run(station, target, &cases.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), say)?;
        }
        "requester-drops" => request_drops(station, target, &mut tell)?,
        _ => {
            let cases = u32::try_from(settings.rounds).unwrap_or(u32::MAX).saturating_mul(LISTS);
            let scope = hostile::Scope { all: settings.all, cases, seed: settings.seed, replay: settings.replay.clone() };
            hostile::run(station, target, &scope, &settings.of(&hostile::names()), |family, found| {
                let (failed, count) = (!found.mismatches.is_empty(), found.mismatches.len());
                let hostile::Outcome { packets, connections, .. } = found;
                let seed = if family == "random" { format!(", {cases} lists, seed {}", settings.seed) } else { String::new() };
                let text = format!("{family}{seed}: {packets} packets on {connections} connections, {count} differences from the model");
                tell(text, failed, None);
                found.mismatches.into_iter().for_each(|mismatch| tell(format!("{family}: {mismatch}"), true, None));
            })?;
        }
    }
    // Hostile packets, packets made by hand and wrong REQs break the rules that the checker knows.
    if !matches!(program, "hostile" | "faults" | "cm") {
        let report = check::check(&station.records, Options { lossless: matches!(program, "speed" | "latency"), pmtu: None });
        let first = report.faults.first().map_or(String::new(), |fault| format!(": frame {}: {}: {}", fault.frame, fault.rule, fault.text));
        tell(format!("{} frames checked, {} faults{first}", report.roce, report.faults.len()), !report.faults.is_empty(), None);
    }
    Ok(())
}

fn each_of(what: &str, dropped: drops::Dropped) -> String {
    format!("{what}: right after each of {} packets to the board and {} from it was dropped", dropped.to_board, dropped.from_board)
}

/// Every kind of fault at every rate, in runs with seeds of their own.
fn matrix<W: Wire>(
    station: &mut Station<W>,
    settings: &Settings,
    tell: &mut impl FnMut(String, bool, Option<String>),
    run: impl Fn(&mut Station<W>, Faults, u64) -> io::Result<loss::Run>,
) -> io::Result<()> {
    station.node.limits.ack_timeout = LOSSY_TIMEOUT;
    // A DREQ may be lost as well: 2 ms.
    station.node.limits.cm_timeout = LOSSY_TIMEOUT + 1;
    for (kind, (name, faults)) in loss::KINDS.iter().enumerate() {
        let mut all = 0;
        for (rate, (parts, runs)) in loss::RATES.into_iter().enumerate() {
            let first = settings.seed * 1_000_000 + kind as u64 * 10_000 + rate as u64 * 1_000;
            let seeds = first..first + runs * settings.rounds;
            let head = format!("{name}, {}%, seeds {first} to {}", f64::from(parts) / 10_000.0, seeds.end - 1);
            let (mut sum, mut errors) = (loss::Run::default(), 0);
            for seed in seeds {
                let found = run(station, faults(parts), seed).map_err(|error| super::wrong(format!("{head}: {error}")))?;
                errors += u64::from(found.error);
                sum = sum.and(found);
            }
            all += sum.harmed;
            let loss::Run { requests, harmed, rewinds, timeouts, .. } = sum;
            let text = format!(
                "{head}: {requests} requests right; {harmed} frames harmed, {rewinds} rewinds, {timeouts} timeouts, {errors} errors"
            );
            tell(text, errors > 0 && parts < MAY_ERR, None);
        }
        if all == 0 {
            tell(format!("{name}: no frame was harmed: more rounds are needed"), true, None);
        }
    }
    // So much loss that retries run out: every request completes, in error.
    let first = settings.seed * 1_000_000 + 900_000;
    let mut errors = 0;
    for seed in first..first + 3 {
        let faults = Faults { drop: HOPELESS, ..Faults::default() };
        errors += u64::from(run(station, faults, seed).map_err(|error| super::wrong(format!("drop, seed {seed}: {error}")))?.error);
    }
    let text =
        format!("drop, {}%, seeds {first} to {}: {errors} of 3 ended in error, every request completed", HOPELESS / 10_000, first + 2);
    tell(text, errors == 0, None);
    Ok(())
}

/// Exactly packet k dropped: SENDs there and back, and the board as requester, each of its operations.
fn request_drops<W: Wire>(station: &mut Station<W>, target: Target, tell: &mut impl FnMut(String, bool, Option<String>)) -> io::Result<()> {
    use requester::{Bench, Command, Request};
    station.node.limits.ack_timeout = DROP_TIMEOUT;
    let echo = Target { service: tcp_service(ECHO_PORT), region: None, ..target };
    for imm in [None, Some(0x1234_5678)] {
        let name = if imm.is_some() { "SEND with immediate, echoed" } else { "SEND, echoed" };
        tell(each_of(name, drops::echo(station, echo, imm)?), false, None);
    }
    let bench = Bench::connect(station, Target { service: tcp_service(BENCH_PORT), region: None, ..target })?;
    let pmtu = bench.pmtu();
    for request in [
        Request::Write,
        Request::WriteImm,
        Request::Send,
        Request::SendImm,
        Request::Read,
        Request::WriteAndRead,
        Request::FetchAdd,
        Request::CompareSwap,
    ] {
        let command = match request {
            Request::FetchAdd | Request::CompareSwap => Command { operand: 7, ..Command::new(request, 8, 16) },
            Request::WriteAndRead => Command { span: 4 * (4 * pmtu - 5), ..Command::new(request, 4 * pmtu - 5, 8) },
            Request::Send | Request::SendImm => Command::new(request, 8 * pmtu - 5, 4),
            _ => Command { span: 4 * (8 * pmtu - 5), ..Command::new(request, 8 * pmtu - 5, 4) },
        };
        tell(each_of(&format!("the board's {request:?}"), drops::requester(station, &bench, command)?), false, None);
    }
    bench.disconnect(station)
}

/// The board as requester, on its service `rdma-bench`: every operation and byte.
fn requests<W: Wire>(station: &mut Station<W>, target: Target, tell: &mut impl FnMut(String, bool, Option<String>)) -> io::Result<()> {
    use requester::{Bench, Command, Request};
    let bench = Bench::connect(station, Target { service: tcp_service(BENCH_PORT), region: None, ..target })?;
    let (mut runs, mut wrong) = (0, Vec::new());
    for request in [Request::Write, Request::Read, Request::Send, Request::WriteAndRead] {
        for size in [0, 1, 3, 4, 64, 255, 256, 257, 1023, 1024, 1025, 4096, 4097, 10000] {
            for (offset, at) in [(0, 0), (1, 0), (2, 3), (67, 5)] {
                let span = if request == Request::Send || size == 0 { 0 } else { 3 * size };
                let ran = bench.run(station, Command { offset, at, span, seed: size, ..Command::new(request, size, 6) })?;
                runs += 1;
                if ran.status != 0 || ran.done != 6 || ran.wrong != 0 {
                    wrong.push(format!("{request:?} of {size} bytes from {offset} to {at}: {ran:?}"));
                }
            }
        }
    }
    for (request, operand, compare) in [(Request::FetchAdd, 0x1_0000_0001, 0), (Request::CompareSwap, 7, 8), (Request::CompareSwap, 9, 7)] {
        let ran = bench.run(station, Command { operand, compare, ..Command::new(request, 8, 5) })?;
        runs += 1;
        if ran.status != 0 || ran.done != 5 {
            wrong.push(format!("{request:?}: {ran:?}"));
        }
    }
    tell(format!("{runs} runs of WRITE, READ, SEND and atomics, {} wrong", wrong.len()), !wrong.is_empty(), None);
    wrong.into_iter().take(10).for_each(|text| tell(text, true, None));
    bench.disconnect(station)
}

/// The board as requester: how fast.
fn request_speed<W: Wire>(
    station: &mut Station<W>,
    target: Target,
    settings: &Settings,
    tell: &mut impl FnMut(String, bool, Option<String>),
) -> io::Result<()> {
    use requester::{Bench, Command, Request};
    let bench = Bench::connect(station, Target { service: tcp_service(BENCH_PORT), region: None, ..target })?;
    for (name, request) in
        [("WRITE", Request::Write), ("READ", Request::Read), ("SEND", Request::Send), ("WRITE and READ", Request::WriteAndRead)]
    {
        for (size, count) in [(4096, 32), (65536, 8)] {
            let count = match request {
                Request::Send => count.min(0x7_0000 / size),
                Request::WriteAndRead => 2 * count,
                _ => count,
            };
            if size > bench.length {
                continue;
            }
            let ran = bench.run(station, Command::new(request, size, count))?;
            let share = ran.share();
            let text = format!(
                "{name} {size} bytes, PMTU {}: {:.2} of {:.2} MB/s, {:.2}%; {} cycles, {} to {} each",
                settings.pmtu,
                ran.payload_mb_s,
                ran.limit_mb_s,
                share * 100.0,
                ran.cycles,
                ran.least,
                ran.most
            );
            // READ requests and ACKs have no place in the limit of both directions.
            let least = if request == Request::WriteAndRead { 0.9935 } else { 0.995 };
            let failed = ran.status != 0 || ran.wrong != 0 || share < least && size == 65536;
            tell(
                text,
                failed,
                Some(record(settings, "requester", name, settings.pmtu, size, Some((ran.payload_mb_s, ran.limit_mb_s)), None)),
            );
        }
    }
    for (name, request) in [("WRITE", Request::Write), ("READ", Request::Read)] {
        let ran = bench.run(station, Command { depth: 1, ..Command::new(request, 64, 20) })?;
        tell(
            format!("{name} of 64 bytes, one at a time: {} to {} cycles from request to completion", ran.least, ran.most),
            ran.status != 0,
            None,
        );
    }
    bench.disconnect(station)
}

fn record(settings: &Settings, role: &str, op: &str, pmtu: u32, size: u32, speed: Option<(f64, f64)>, latency: Option<u64>) -> String {
    let number = |value: Option<f64>| value.map_or("null".to_string(), |value| format!("{value:.4}"));
    let test = if speed.is_some() { "throughput" } else { "latency" };
    format!(
        "{{\"test\": \"{test}\", \"role\": \"{role}\", \"op\": \"{op}\", \"pmtu\": {pmtu}, \"size\": {size}, \"width\": {}, \"mhz\": {}, \"link_gbps\": {}, \
         \"memory\": \"{}\", \"payload_mb_s\": {}, \"limit_mb_s\": {}, \"share\": {}, \"latency_ns\": {}}}",
        settings.width,
        settings.mhz,
        settings.gbps,
        settings.memory,
        number(speed.map(|(payload, _)| payload)),
        number(speed.map(|(_, limit)| limit)),
        number(speed.map(|(payload, limit)| payload / limit)),
        latency.map_or("null".to_string(), |ns| ns.to_string())
    )
}
