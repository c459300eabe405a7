//! The board as requester, told by SENDs what to do: the plugin `rdma-bench`.

use super::super::Target;
use super::super::requester::{Command, Request};
use super::Ground;
use super::raw::{ANSWER_NS, Heard, Raw, aeth, bytes, ensure, names};
use crate::live::{Station, Wire};
use crate::model::Event;
use crate::model::link::{Faults, Link};
use crate::packet::{Bth, Extensions, Opcode, Packet, RNR_TIMER_10US, Syndrome};
use crate::psn;
use std::io;

/// The board fills its buffer and starts within this: 0.5 ms.
const START_NS: u64 = 500_000;

/// Tells the board what to do, and waits until it says that it has heard.
fn tell<W: Wire>(station: &mut Station<W>, raw: &mut Raw, command: Command) -> io::Result<()> {
    let packet = raw.packet(Opcode::SEND_ONLY, raw.psn, Extensions::default(), &command.encode(0x100));
    raw.put(station, &packet)?;
    let heard = raw.hear(station, ANSWER_NS, 1)?;
    let right =
        matches!(&heard[..], [one] if one.opcode() == Opcode::ACK && one.psn() == raw.psn && one.syndrome().is_some_and(Syndrome::is_ack));
    raw.psn = psn::add(raw.psn, 1);
    ensure(right, || format!("the command got {}", names(&heard)))
}

fn connect<W: Wire>(station: &mut Station<W>, ground: &Ground, command: Command) -> io::Result<Raw> {
    let mut raw = Raw::connect(station, ground.bench)?;
    tell(station, &mut raw, command)?;
    Ok(raw)
}

/// The board's result comes as its next request: it says that all requests are done.
fn result<W: Wire>(station: &mut Station<W>, raw: &mut Raw, done: u32) -> io::Result<Vec<u32>> {
    let heard = raw.wait(station, START_NS, 1)?;
    let words = heard[0].packet.payload.chunks_exact(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]])).collect::<Vec<_>>();
    let right = heard[0].opcode() == Opcode::SEND_ONLY && heard[0].psn() == raw.board_psn && words.len() == 7 && words[..2] == [0, done];
    ensure(right, || format!("instead of a result {} {words:?}", names(&heard)))?;
    raw.answer(station, raw.board_psn, Syndrome::OK)?;
    raw.board_psn = psn::add(raw.board_psn, 1);
    Ok(words)
}

/// The packets of one WRITE of `size` bytes, whose opcodes and PSNs are right.
fn written<W: Wire>(station: &mut Station<W>, raw: &mut Raw, size: u32) -> io::Result<Vec<Heard>> {
    let count = psn::count(size, raw.pmtu);
    let heard = raw.wait(station, START_NS + u64::from(size) * 16, count as usize)?;
    let right = heard.iter().enumerate().all(|(at, one)| {
        let opcode = match (at == 0, at + 1 == count as usize) {
            (true, true) => Opcode::WRITE_ONLY,
            (true, false) => Opcode::WRITE_FIRST,
            (false, false) => Opcode::WRITE_MIDDLE,
            (false, true) => Opcode::WRITE_LAST,
        };
        one.opcode() == opcode && one.psn() == psn::add(raw.board_psn, at as u32)
    });
    ensure(right, || format!("a WRITE of {size} bytes came as {}", names(&heard)))?;
    raw.board_psn = psn::add(raw.board_psn, count);
    Ok(heard)
}

/// Without what may differ when a packet is sent again.
fn bare(one: &Heard) -> Packet {
    let packet = &one.packet;
    Packet { bth: Bth { ack_request: false, ..packet.bth }, ..packet.clone() }
}

/// `again` is what was sent before, from the first PSN of it on.
fn repeats(before: &[Heard], again: &[Heard]) -> io::Result<()> {
    let tail = &before[before.len() - again.len().min(before.len())..];
    let right = again.len() <= before.len() && tail.iter().map(bare).eq(again.iter().map(bare));
    ensure(right, || format!("{} was sent again as {}", names(tail), names(again)))
}

/// Fault: PSNs are compared without the wrap. Right: messages across it, resends across it, and an ACK on each side, as anywhere else. The
/// responder's wrap is a case of the bench `faults`, since the board chooses where that begins.
pub fn psn_wraps<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    for first in [0xff_fffe, 0xff_ffff, 0] {
        station.node.limits.first_psn = Some(first);
        let mut raw = Raw::connect(station, ground.bench)?;
        let size = 4 * raw.pmtu;
        tell(station, &mut raw, Command { depth: 1, ..Command::new(Request::Write, size, 2) })?;
        ensure(raw.board_psn == first, || format!("the board begins at {:#08x}, not {first:#08x}", raw.board_psn))?;
        let before = written(station, &mut raw, size)?;
        // Acknowledged up to the second, then the last is missed, then all of it is there.
        raw.answer(station, psn::add(first, 1), Syndrome::OK)?;
        raw.answer(station, psn::add(first, 3), Syndrome::SequenceError)?;
        let again = raw.wait(station, START_NS, 1)?;
        repeats(&before, &again)?;
        raw.answer(station, psn::add(first, 3), Syndrome::OK)?;
        let second = written(station, &mut raw, size)?;
        raw.answer(station, psn::add(first, 4), Syndrome::SequenceError)?;
        let again = raw.wait(station, START_NS, 4)?;
        repeats(&second, &again)?;
        raw.answer(station, psn::add(first, 7), Syndrome::OK)?;
        result(station, &mut raw, 2)?;
        // A READ of four, whose third response is lost.
        tell(station, &mut raw, Command { depth: 1, ..Command::new(Request::Read, size, 1) })?;
        read_with_a_gap(station, &mut raw, size, 2)?;
        result(station, &mut raw, 1)?;
        raw.close(station)?;
    }
    Ok(())
}

/// Fault: what is lost is sent again from a wrong offset. Right: after a NAK for packet k of a WRITE, packets k to the end come again, each byte and
/// header as before.
pub fn resend_from_the_exact_byte<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.bench)?;
    let size = 5 * raw.pmtu - 3;
    for k in 0..5 {
        tell(station, &mut raw, Command { offset: 3, ..Command::new(Request::Write, size, 1) })?;
        let first = raw.board_psn;
        let before = written(station, &mut raw, size)?;
        raw.answer(station, psn::add(first, k), Syndrome::SequenceError)?;
        let again = raw.wait(station, START_NS, 5 - k as usize)?;
        repeats(&before, &again)?;
        raw.answer(station, psn::add(first, 4), Syndrome::OK)?;
        result(station, &mut raw, 1)?;
    }
    raw.close(station)
}

/// Answers a READ of `size` bytes but for response `lost`, which the board must ask for, and nothing else; then the rest.
fn read_with_a_gap<W: Wire>(station: &mut Station<W>, raw: &mut Raw, size: u32, lost: u32) -> io::Result<()> {
    let count = psn::count(size, raw.pmtu);
    let first = raw.board_psn;
    let heard = raw.wait(station, START_NS, 1)?;
    let asked = heard[0].packet.ext.reth.unwrap_or_default();
    let right = heard[0].opcode() == Opcode::READ_REQUEST && heard[0].psn() == first && asked.length == size;
    ensure(right, || format!("a READ of {size} bytes came as {}", names(&heard)))?;
    let pmtu = raw.pmtu;
    let respond = |station: &mut Station<W>, raw: &Raw, from: u32, at: u32| {
        let opcode = match (at == from, at + 1 == count) {
            (true, true) => Opcode::READ_RESPONSE_ONLY,
            (true, false) => Opcode::READ_RESPONSE_FIRST,
            (false, false) => Opcode::READ_RESPONSE_MIDDLE,
            (false, true) => Opcode::READ_RESPONSE_LAST,
        };
        let length = pmtu.min(size - at * pmtu) as usize;
        raw.put(station, &raw.packet(opcode, psn::add(first, at), aeth(Syndrome::OK), &bytes(at, length)))
    };
    for at in (0..count).filter(|at| *at != lost) {
        respond(station, raw, 0, at)?;
    }
    // Where the last is lost nothing tells but the timeout, which is 4.2 ms.
    let heard = raw.wait(station, 6_000_000, 1)?;
    let again = heard[0].packet.ext.reth.unwrap_or_default();
    let right = heard[0].opcode() == Opcode::READ_REQUEST
        && heard[0].psn() == psn::add(first, lost)
        && again.address == asked.address + u64::from(lost * pmtu)
        && again.rkey == asked.rkey
        && again.length == size - lost * pmtu;
    ensure(right, || format!("without response {lost} of {count} the READ was resumed as {}, {again:x?}", names(&heard)))?;
    for at in lost..count {
        respond(station, raw, lost, at)?;
    }
    raw.board_psn = psn::add(first, count);
    Ok(())
}

/// Fault: as [`resend_from_the_exact_byte`], of READs. Right: after response k is lost the READ is resumed with PSN, address and length of that packet.
pub fn read_resumed_from_the_exact_byte<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.bench)?;
    let size = 5 * raw.pmtu - 3;
    for lost in 0..5 {
        tell(station, &mut raw, Command { offset: 3, at: 1, ..Command::new(Request::Read, size, 1) })?;
        read_with_a_gap(station, &mut raw, size, lost)?;
        result(station, &mut raw, 1)?;
    }
    raw.close(station)
}

/// Fault: an ACK that stands for several is ignored. Right: the ACK of the last of four WRITEs completes all four, and nothing goes again.
pub fn coalesced_ack_retires_all<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = connect(station, ground, Command::new(Request::Write, 64, 4))?;
    let heard = raw.wait(station, START_NS, 4)?;
    raw.board_psn = psn::add(raw.board_psn, 4);
    ensure(heard[3].psn() == psn::add(raw.board_psn, psn::MASK), || format!("four WRITEs came as {}", names(&heard)))?;
    raw.answer(station, heard[3].psn(), Syndrome::OK)?;
    result(station, &mut raw, 4)?;
    raw.silent(station)?;
    raw.close(station)
}

/// Fault: retries run out without an error. Right: without any answer a WRITE is sent once and then as often as agreed, 3 times; then the connection ends,
/// by a DREQ of the board's, and the bench serves the next peer.
pub fn retries_run_out_in_error<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    (station.node.limits.ack_timeout, station.node.limits.retry_count) = (4, 3);
    let mut raw = connect(station, ground, Command::new(Request::Write, 16, 1))?;
    station.node.events.clear();
    let heard = raw.hear(station, START_NS + 5 * 4 * (4096 << 4), usize::MAX)?;
    let first = raw.board_psn;
    let right = heard.len() == 4 && heard.iter().all(|one| one.opcode() == Opcode::WRITE_ONLY && one.psn() == first);
    ensure(right, || format!("unanswered, with 3 retries: {}", names(&heard)))?;
    let id = raw.id;
    ensure(station.node.events.contains(&Event::Disconnected { id }), || "no DREQ".to_owned())?;
    let mut raw = connect(station, ground, Command::new(Request::Write, 16, 1))?;
    written(station, &mut raw, 16)?;
    raw.answer(station, psn::add(raw.board_psn, psn::MASK), Syndrome::OK)?;
    result(station, &mut raw, 1)?;
    raw.close(station)
}

/// Fault: the time in an RNR NAK is ignored. Right: nothing is sent before it is over, sequence NAKs and ACKs of old packets notwithstanding; and
/// soon after it is.
pub fn rnr_timer_is_kept<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    for code in [1, 5, 10, 13] {
        let mut raw = connect(station, ground, Command::new(Request::Send, 16, 1))?;
        let first = raw.board_psn;
        let before = raw.wait(station, START_NS, 1)?;
        let (start, timer) = (station.now(), u64::from(RNR_TIMER_10US[code]) * 10_000);
        raw.answer(station, first, Syndrome::Rnr(code as u8))?;
        raw.answer(station, first, Syndrome::SequenceError)?;
        let again = raw.hear(station, 2 * timer + ANSWER_NS, 1)?;
        repeats(&before, &again)?;
        let took = again.first().map(|one| one.start - start);
        ensure(took.is_some_and(|took| took >= timer && took <= timer + timer / 4 + 20_000), || {
            format!("after {timer} ns asked for: {took:?} ns")
        })?;
        raw.answer(station, first, Syndrome::OK)?;
        raw.board_psn = psn::add(first, 1);
        result(station, &mut raw, 1)?;
        raw.close(station)?;
    }
    Ok(())
}

/// Fault: the timeout that was negotiated is ignored. Right: 4.096 us x 2^n as the REQ says, up to four times that.
pub fn timeout_is_the_negotiated_one<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    for code in [3, 5, 8] {
        station.node.limits.ack_timeout = code;
        let mut raw = connect(station, ground, Command::new(Request::Write, 16, 1))?;
        let agreed = 4096_u64 << code;
        let heard = raw.wait(station, START_NS + 9 * agreed, 3)?;
        for pair in heard.windows(2) {
            let took = pair[1].start - pair[0].start;
            // It is counted where the packet is made; how long that takes may differ by a few cycles.
            ensure(took + 500 >= agreed && took <= 4 * agreed, || format!("timeout {code}, {agreed} ns: again after {took} ns"))?;
        }
        repeats(&heard[..1], &heard[2..])?;
        raw.answer(station, raw.board_psn, Syndrome::OK)?;
        raw.board_psn = psn::add(raw.board_psn, 1);
        result(station, &mut raw, 1)?;
        raw.close(station)?;
    }
    Ok(())
}

/// Fault: UDP source port 0. Right: 0xC000 to 0xFFFF, one for each queue pair, whatever it sends: requests, ACKs, NAKs, READ responses.
pub fn udp_source_port<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut heard = Vec::new();
    let mut raw = Raw::connect(station, ground.region)?;
    raw.put(station, &raw.write_only(raw.psn, raw.offer.address, &[1]))?;
    raw.put(station, &raw.read_request(psn::add(raw.psn, 1), raw.offer.address, 3 * raw.pmtu))?;
    raw.put(station, &raw.write_only(psn::add(raw.psn, 9), raw.offer.address, &[1]))?;
    heard.push(raw.wait(station, 4 * ANSWER_NS, 5)?);
    raw.close(station)?;
    let mut raw = connect(station, ground, Command::new(Request::Write, 600, 1))?;
    heard.push(written(station, &mut raw, 600)?);
    raw.answer(station, psn::add(raw.board_psn, psn::MASK), Syndrome::OK)?;
    result(station, &mut raw, 1)?;
    raw.close(station)?;
    for of_one in &heard {
        let port = of_one[0].source_port;
        ensure(port >= 0xc000, || format!("source port {port:#06x}"))?;
        ensure(of_one.iter().all(|one| one.source_port == port), || format!("not always source port {port:#06x}"))?;
    }
    Ok(())
}

/// Complaint: a replay has the wrong last flag. Right: the last packet of a WRITE or SEND is LAST again, also alone, and ONLY stays ONLY.
pub fn replay_keeps_the_last_flag<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.bench)?;
    for request in [Request::Write, Request::WriteImm, Request::Send, Request::SendImm] {
        for packets in [1, 2, 3] {
            let size = packets * raw.pmtu - 1;
            tell(station, &mut raw, Command::new(request, size, 1))?;
            let before = raw.wait(station, START_NS + u64::from(size) * 16, packets as usize)?;
            let last = psn::add(raw.board_psn, packets - 1);
            for _ in 0..2 {
                raw.answer(station, last, Syndrome::SequenceError)?;
                let again = raw.wait(station, START_NS, 1)?;
                repeats(&before, &again)?;
                ensure(again[0].opcode().ends() && again[0].opcode().starts() == (packets == 1), || names(&again))?;
            }
            raw.answer(station, last, Syndrome::OK)?;
            raw.board_psn = psn::add(last, 1);
            result(station, &mut raw, 1)?;
        }
    }
    raw.close(station)
}

/// Complaint: stuck after a loss, of the requester. Right: after its last packet, our last ACK or our last READ response was lost the run ends
/// by the timeout, every byte right, and the next run works.
pub fn goes_on_after_loss<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    station.node.limits.ack_timeout = 6;
    let bench = super::super::requester::Bench::connect(station, Target { region: None, ..ground.bench })?;
    let size = 3 * bench.pmtu();
    // Ours: the command, then the ACKs or responses. The board's: the ACK of that, then its requests.
    for (request, outward, lost) in [
        (Request::Write, false, 3),
        (Request::Write, true, 1),
        (Request::Read, true, 3),
        (Request::Read, false, 1),
        (Request::Send, false, 3),
    ] {
        let links = [Link::new(0, Faults::default(), 0), Link::new(0, Faults::default(), 0)];
        [station.outward, station.inward] = links;
        let link = if outward { &mut station.outward } else { &mut station.inward };
        link.drop_numbers.push(lost);
        let right = |ran: &super::super::requester::Ran| ran.status == 0 && ran.done == 1 && ran.wrong == 0;
        let ran = bench.run(station, Command::new(request, size, 1))?;
        let harmed = station.outward.harmed + station.inward.harmed;
        ensure(right(&ran) && harmed == 1, || format!("{request:?}, {harmed} packets lost: {ran:?}"))?;
        let ran = bench.run(station, Command::new(request, size, 1))?;
        ensure(right(&ran), || format!("after a loss in {request:?}: {ran:?}"))?;
    }
    bench.disconnect(station)
}

/// Complaint: packets without an ICRC. Right: each kind that the board sends has one: ACK, NAK, READ responses, atomic answers, CNP, requests and the
/// messages of CM.
pub fn every_packet_has_an_icrc<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let from = station.records.len();
    let mut raw = Raw::connect(station, ground.region)?;
    let (first, address) = (raw.psn, raw.offer.address);
    raw.head.tos |= 3;
    raw.put(station, &raw.write_only(first, address, &[1, 2, 3]))?;
    raw.head.tos &= !3;
    raw.put(station, &raw.read_request(psn::add(first, 1), address, 2 * raw.pmtu + 1))?;
    raw.put(station, &raw.read_request(psn::add(first, 4), address, 5))?;
    raw.put(station, &raw.fetch_add(psn::add(first, 5), address, 1))?;
    raw.put(station, &raw.write_only(psn::add(first, 9), address, &[1]))?;
    raw.hear(station, 4 * ANSWER_NS, usize::MAX)?;
    raw.close(station)?;
    let mut raw = Raw::connect(station, ground.bench)?;
    for request in
        [Request::Write, Request::Send, Request::WriteImm, Request::SendImm, Request::Read, Request::FetchAdd, Request::CompareSwap]
    {
        let atomic = matches!(request, Request::FetchAdd | Request::CompareSwap);
        let size = if atomic { 8 } else { 2 * raw.pmtu + 1 };
        tell(station, &mut raw, Command { at: 0, ..Command::new(request, size, 1) })?;
        let first = raw.board_psn;
        let count = if atomic || request == Request::Read { 1 } else { 3 };
        raw.wait(station, START_NS + u64::from(size) * 16, count)?;
        let (last, answer) = match request {
            Request::Read => {
                let opcodes = [Opcode::READ_RESPONSE_FIRST, Opcode::READ_RESPONSE_MIDDLE, Opcode::READ_RESPONSE_LAST];
                for (at, opcode) in opcodes.into_iter().enumerate() {
                    let length = if at == 2 { 1 } else { raw.pmtu as usize };
                    raw.put(station, &raw.packet(opcode, psn::add(first, at as u32), aeth(Syndrome::OK), &vec![0; length]))?;
                }
                (psn::add(first, 2), None)
            }
            _ if atomic => {
                (first, Some(raw.packet(Opcode::ATOMIC_ACK, first, Extensions { atomic_ack: Some(0), ..aeth(Syndrome::OK) }, &[])))
            }
            _ => (psn::add(first, 2), Some(raw.packet(Opcode::ACK, psn::add(first, 2), aeth(Syndrome::OK), &[]))),
        };
        if let Some(answer) = answer {
            raw.put(station, &answer)?;
        }
        raw.board_psn = psn::add(last, 1);
        result(station, &mut raw, 1)?;
    }
    raw.close(station)?;
    // `Frame::decode` takes none whose ICRC is wrong.
    let board = raw_ip(ground);
    let decoded = station.records[from..].iter().filter_map(|record| crate::packet::Frame::decode(&record.frame).ok());
    let seen =
        decoded.filter(|frame| frame.source_ip == board).map(|frame| frame.packet.bth.opcode).collect::<std::collections::BTreeSet<_>>();
    let missing = [0, 1, 2, 3, 4, 6, 7, 8, 9, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x64, 0x81];
    let missing = missing.into_iter().map(Opcode).filter(|opcode| !seen.contains(opcode)).collect::<Vec<_>>();
    ensure(missing.is_empty(), || format!("never seen with a right ICRC: {missing:x?}"))
}

fn raw_ip(ground: &Ground) -> std::net::Ipv4Addr {
    ground.region.ip
}

/// Complaint: completions lag behind. Right: with nothing else going on the board tells within 20 us of our ACK that a request has completed, however late the ACK was.
pub fn completion_does_not_lag<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    for late in [0, 100_000, 1_000_000] {
        let mut raw = connect(station, ground, Command::new(Request::Write, 64, 1))?;
        let heard = written(station, &mut raw, 64)?;
        let until = station.now() + late;
        station.run(until, |_| false)?;
        let answered = station.now() - heard[0].start;
        raw.answer(station, heard[0].psn(), Syndrome::OK)?;
        let sent = raw.seen();
        let words = result(station, &mut raw, 1)?;
        let told = station.records[sent..].iter().map(|record| record.time_ns).find(|time| *time > heard[0].start + answered);
        let lag = told.map(|told| told - heard[0].start - answered);
        // What the board's program takes to see the completion, and to tell it by a SEND, is in it.
        ensure(lag.is_some_and(|lag| lag <= 20_000), || format!("told {lag:?} ns after the ACK, {words:?}"))?;
        raw.close(station)?;
    }
    Ok(())
}

/// Complaint: RNR NAKs during a replay end in a deadlock. Right: NAK, then RNR NAK of what goes again, then both once more; the message
/// goes on each time from the packet that was named.
pub fn rnr_during_a_replay<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.bench)?;
    let size = 3 * raw.pmtu;
    for request in [Request::Send, Request::WriteImm] {
        tell(station, &mut raw, Command::new(request, size, 1))?;
        let first = raw.board_psn;
        let before = raw.wait(station, START_NS, 3)?;
        for (k, syndrome) in [
            (1, Syndrome::SequenceError),
            (1, Syndrome::Rnr(1)),
            (1, Syndrome::Rnr(2)),
            (2, Syndrome::SequenceError),
            (2, Syndrome::Rnr(1)),
            (2, Syndrome::Rnr(1)),
        ] {
            raw.answer(station, psn::add(first, k), syndrome)?;
            let again = raw.wait(station, START_NS, 3 - k as usize)?;
            repeats(&before, &again)?;
        }
        raw.answer(station, psn::add(first, 2), Syndrome::OK)?;
        raw.board_psn = psn::add(first, 3);
        result(station, &mut raw, 1)?;
    }
    raw.close(station)
}

/// Complaint: messages without bytes and the PSN. Right: each takes one, of every operation.
pub fn zero_length_takes_a_psn<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.bench)?;
    for request in [Request::Write, Request::Send, Request::SendImm, Request::Read] {
        tell(station, &mut raw, Command { depth: 1, ..Command::new(request, 0, 3) })?;
        for _ in 0..3 {
            let heard = raw.wait(station, START_NS, 1)?;
            let right = heard[0].psn() == raw.board_psn
                && heard[0].packet.payload.is_empty()
                && heard[0].opcode().starts()
                && heard[0].opcode().ends();
            ensure(right, || format!("{request:?} of nothing with PSN {:#08x} came as {}", raw.board_psn, names(&heard)))?;
            let opcode = if request == Request::Read { Opcode::READ_RESPONSE_ONLY } else { Opcode::ACK };
            raw.put(station, &raw.packet(opcode, raw.board_psn, aeth(Syndrome::OK), &[]))?;
            raw.board_psn = psn::add(raw.board_psn, 1);
        }
        result(station, &mut raw, 3)?;
    }
    raw.close(station)
}

/// Complaint: RNR timer code 0 is taken for no time. Right: it is the longest, 655 ms; 5 ms of it are looked at here, all of it in the bench
/// `faults`.
pub fn rnr_code_0_is_the_longest<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    station.node.limits.ack_timeout = 4;
    let mut raw = connect(station, ground, Command::new(Request::Send, 16, 1))?;
    raw.wait(station, START_NS, 1)?;
    raw.answer(station, raw.board_psn, Syndrome::Rnr(0))?;
    let heard = raw.hear(station, 5_000_000, 1)?;
    ensure(heard.is_empty(), || format!("after an RNR NAK for 655 ms: {}", names(&heard)))?;
    raw.close(station)
}
