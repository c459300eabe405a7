//! The test programs for boards, run against a model in a board's place: they pass there, and they see a board that errs.

use roce_peer::check::{Options, check};
use roce_peer::cm::tcp_service;
use roce_peer::drive::{self, LOCAL, Target};
use roce_peer::live::{ModelBoard, Report, Station, Wire};
use roce_peer::model::Operation;
use roce_peer::model::link::Faults;
use std::net::Ipv4Addr;

fn target() -> Target {
    Target { ip: Ipv4Addr::new(192, 168, 7, 2), service: tcp_service(18515), region: None }
}

fn station_on<W: Wire>(wire: W, pmtu: u32) -> Station<W> {
    let mut node = drive::node([2, 0, 0, 0, 0, 9], Ipv4Addr::new(192, 168, 7, 1), 1 << 18, 5);
    node.limits.pmtu = pmtu;
    node.limits.ack_timeout = 8;
    let _ = LOCAL;
    Station::unharmed(node, wire)
}

fn station(pmtu: u32) -> Station<ModelBoard> {
    station_on(drive::model_board(target(), 1 << 16, 4), pmtu)
}

#[test]
fn speed_of_a_model_is_the_wires() {
    for pmtu in [256, 1024, 4096] {
        let mut station = station(pmtu);
        for operation in [Operation::Write { imm: None }, Operation::Read] {
            let found = drive::speed::throughput(&mut station, target(), operation, 65536, 20).unwrap();
            assert!(found.share() > 0.995 && found.share() < 1.0001 && found.resends == 0, "{operation:?}: {found:?} {}", found.share());
            let latency = drive::speed::latency(&mut station, target(), operation, 1000, 5).unwrap();
            assert_eq!(latency, (400, 400), "the turnaround of the model");
        }
        assert_eq!(check(&station.records, Options { lossless: true, pmtu: None }).faults, []);
    }
}

#[test]
fn the_model_keeps_the_rules_of_cm() {
    let rules = drive::cm::rules(&mut station(1024), target(), 4).unwrap();
    assert!(rules.len() > 12);
    for (rule, result) in rules {
        assert_eq!(result, Ok(()), "{rule}");
    }
}

#[test]
fn loss_leaves_every_byte_right() {
    for parts in [1_000, 10_000, 50_000] {
        for seed in 0..10 {
            let mut station = station(if seed % 2 == 0 { 256 } else { 1024 });
            let run = drive::loss::random(&mut station, target(), Faults::all(parts), seed, 40).unwrap();
            assert!(!run.error || parts == 50_000, "seed {seed}: {run:?}");
            assert_eq!(check(&station.records, Options::default()).faults, [], "seed {seed}");
        }
    }
}

#[test]
fn each_packet_is_dropped_once() {
    let operations =
        [Operation::Write { imm: None }, Operation::Read, Operation::FetchAdd { add: 5 }, Operation::CompareSwap { compare: 0, swap: 2 }];
    for operation in operations {
        let dropped = drive::drops::responder(&mut station(256), target(), operation).unwrap();
        assert!(dropped.to_board + dropped.from_board >= 32, "{operation:?}: {dropped:?}");
    }
}

/// What each family of `hostile` finds in a board that has no `rdma-bench`.
fn hostile<W: Wire>(station: &mut Station<W>, only: &[&str]) -> Vec<(&'static str, drive::hostile::Outcome)> {
    let scope = drive::hostile::Scope { all: false, cases: 200, seed: 7, replay: None };
    let mut found = Vec::new();
    drive::hostile::run(station, target(), &scope, only, |name, outcome| found.push((name, outcome))).unwrap();
    found
}

#[test]
fn hostile_packets_get_what_the_model_says() {
    for pmtu in [256, 1024] {
        for (name, outcome) in hostile(&mut station(pmtu), &drive::hostile::of_a_region()) {
            assert_eq!(outcome.mismatches, Vec::<String>::new(), "{name}, PMTU {pmtu}");
        }
    }
}

/// What each case of `faults` that needs no more than a region says of a board.
fn faults<W: Wire>(station: &mut Station<W>) -> Vec<(&'static str, Result<(), String>)> {
    let mut found = Vec::new();
    drive::faults::run(station, target(), &drive::faults::of_a_region(), |name, result| found.push((name, result))).unwrap();
    found
}

#[test]
fn the_model_has_none_of_the_faults() {
    for pmtu in [256, 1024, 4096] {
        let found = faults(&mut station(pmtu));
        assert!(found.len() > 20);
        for (name, result) in found {
            assert_eq!(result, Ok(()), "{name}, PMTU {pmtu}");
        }
    }
}

#[test]
fn a_board_with_a_fault_fails_its_case() {
    use roce_peer::packet::{Frame, Opcode, Syndrome};
    type Lie = fn(&mut Frame);
    let lies: [(&str, Lie); 6] = [
        ("sequence-nak-has-the-expected-psn", |frame| {
            if frame.packet.ext.aeth.is_some_and(|aeth| aeth.syndrome == Syndrome::SequenceError) {
                frame.packet.bth.psn += 3;
            }
        }),
        ("read-is-bounded", |frame| {
            if frame.packet.ext.aeth.is_some_and(|aeth| aeth.syndrome == Syndrome::AccessError) {
                frame.packet.bth.opcode = Opcode::READ_RESPONSE_ONLY;
                frame.packet.ext.aeth.iter_mut().for_each(|aeth| aeth.syndrome = Syndrome::OK);
            }
        }),
        ("write-stays-inside", |frame| {
            frame.packet.ext.aeth.iter_mut().for_each(|aeth| aeth.syndrome = Syndrome::OK);
        }),
        ("read-replay-keeps-the-last-flag", |frame| {
            if frame.packet.bth.opcode == Opcode::READ_RESPONSE_ONLY && !frame.packet.payload.is_empty() {
                frame.packet.bth.opcode = Opcode::READ_RESPONSE_LAST;
            }
        }),
        ("read-of-every-size", |frame| {
            if frame.packet.payload.len() % 4 == 3 {
                frame.packet.payload.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
            }
        }),
        ("duplicate-atomic-is-checked", |frame| {
            frame.packet.ext.atomic_ack = frame.packet.ext.atomic_ack.map(|value| value + 5);
        }),
    ];
    for (case, lie) in lies {
        let mut station = station_on(Liar { board: drive::model_board(target(), 1 << 16, 4), lie }, 256);
        let found = faults(&mut station);
        assert!(found.iter().any(|(name, result)| *name == case && result.is_err()), "{case} does not see it: {found:?}");
    }
}

/// A board that errs in what it sends.
struct Liar {
    board: ModelBoard,
    lie: fn(&mut roce_peer::packet::Frame),
}

impl Wire for Liar {
    fn now(&self) -> u64 {
        self.board.now()
    }
    fn send(&mut self, time: u64, frame: &[u8]) -> std::io::Result<()> {
        self.board.send(time, frame)
    }
    fn advance(&mut self, time: u64) -> std::io::Result<Report> {
        let mut report = self.board.advance(time)?;
        for sent in &mut report.sent {
            if let Ok(mut frame) = roce_peer::packet::Frame::decode(&sent.frame) {
                (self.lie)(&mut frame);
                sent.frame = frame.encode();
            }
        }
        Ok(report)
    }
}

#[test]
fn a_failing_list_is_made_smaller_and_fails_again() {
    use roce_peer::packet::Syndrome;
    let lie = |frame: &mut roce_peer::packet::Frame| {
        if let Some(aeth) = frame.packet.ext.aeth.as_mut().filter(|aeth| aeth.syndrome == Syndrome::SequenceError) {
            aeth.syndrome = Syndrome::InvalidRequest;
        }
    };
    let liar = || station_on(Liar { board: drive::model_board(target(), 1 << 16, 4), lie }, 1024);
    let text = hostile(&mut liar(), &["random"]).swap_remove(0).1.mismatches.swap_remove(0);
    let (_, rest) = text.split_once("fails is ").unwrap();
    let (list, _) = rest.split_once(':').unwrap();
    let steps = drive::hostile::Step::list(list).unwrap();
    assert_eq!(steps.len(), 1, "{text}");
    let scope = drive::hostile::Scope { all: false, cases: 0, seed: 0, replay: Some(steps) };
    let mut again = Vec::new();
    drive::hostile::run(&mut liar(), target(), &scope, &["random"], |_, outcome| again.extend(outcome.mismatches)).unwrap();
    assert_eq!(again.len(), 1, "{again:?}");
}

#[test]
fn a_board_that_errs_is_seen() {
    use roce_peer::packet::{Opcode, Syndrome};
    // The model's faults: a sequence NAK with another PSN, an access error called an invalid request, a wrong MSN.
    let lies: [fn(&mut roce_peer::packet::Frame); 3] = [
        |frame| {
            if let Some(aeth) = frame.packet.ext.aeth.filter(|aeth| aeth.syndrome == Syndrome::SequenceError) {
                let _ = aeth;
                frame.packet.bth.psn += 1;
            }
        },
        |frame| {
            if let Some(aeth) = frame.packet.ext.aeth.as_mut().filter(|aeth| aeth.syndrome == Syndrome::AccessError) {
                aeth.syndrome = Syndrome::InvalidRequest;
            }
        },
        |frame| {
            if let Some(aeth) = frame.packet.ext.aeth.as_mut().filter(|_| frame.packet.bth.opcode == Opcode::ACK) {
                aeth.msn += 1;
            }
        },
    ];
    for lie in lies {
        let mut station = station_on(Liar { board: drive::model_board(target(), 1 << 16, 4), lie }, 1024);
        let found = hostile(&mut station, &["random"]);
        let text = &found[0].1.mismatches[..];
        assert!(matches!(text, [text] if text.contains("the least list that fails is")), "{text:?}");
    }
    // A READ that returns another byte.
    let lie = |frame: &mut roce_peer::packet::Frame| {
        if frame.packet.payload.len() == 1024 {
            frame.packet.payload[77] ^= 1;
        }
    };
    let mut station = station_on(Liar { board: drive::model_board(target(), 1 << 16, 4), lie }, 1024);
    assert!(drive::loss::random(&mut station, target(), Faults::default(), 1, 8).is_err());
}
