//! Connections that come and go.

use super::super::cm::{ask, req};
use super::super::requester::{Bench, Command, Request};
use super::super::{LOCAL, Target, complete, connect, disconnect, qp, work};
use super::raw::{ANSWER_NS, Raw, bytes, ensure, same};
use super::{Ground, wrong};
use crate::cm::{Dreq, Mad, Message, Req, reason};
use crate::live::{Station, Wire};
use crate::model::{Event, Operation, Status};
use crate::packet::Frame;
use std::io;

/// Fault: the first packet behind an answered ping has a wrong ICRC. Right: with a request right behind pings of 0 to 40 bytes, and of some hundred,
/// both are answered, every ICRC right.
pub fn icrc_after_a_ping<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    for size in (0..=40).chain([100, 333, 1000]) {
        let from = station.records.len();
        station.inject(&ping(&raw.head, size))?;
        let data = bytes(size as u32, 24);
        raw.write(station, raw.offer.address, &data).map_err(|error| wrong(format!("behind a ping of {size} bytes: {error}")))?;
        same("behind a ping", &raw.read(station, raw.offer.address, 24)?, &data)?;
        let answered = |frame: &[u8]| frame.len() > 34 && frame[23] == 1 && frame[26..30] == ground.region.ip.octets() && frame[34] == 0;
        let wait = station.now() + ANSWER_NS;
        while !station.records[from..].iter().any(|record| answered(&record.frame)) {
            let now = station.now();
            ensure(now < wait, || format!("a ping of {size} bytes is not answered"))?;
            station.run(now + 1000, |_| false)?;
        }
    }
    raw.close(station)
}

/// An echo request of ICMP with `size` bytes.
fn ping(head: &Frame, size: usize) -> Vec<u8> {
    let mut icmp = [&[8, 0, 0, 0, 0x12, 0x34, 0, 1][..], &bytes(size as u32, size)].concat();
    let sum = crate::packet::checksum(&icmp, 0);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut ip = [&[0x45, 0][..], &(20 + icmp.len() as u16).to_be_bytes(), &[0, 0, 0x40, 0, 64, 1, 0, 0]].concat();
    ip.extend(head.source_ip.octets());
    ip.extend(head.destination_ip.octets());
    let sum = crate::packet::checksum(&ip, 0);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    [&head.destination[..], &head.source, &[8, 0], &ip, &icmp].concat()
}

/// Fault: a path MTU of 4096 is agreed to but not done. Right: it is refused with reason 26, or packets of 4096 bytes go both ways.
pub fn pmtu_4096_is_done_or_refused<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    station.node.limits.pmtu = 4096;
    let now = station.now();
    station.node.events.clear();
    let id = station.node.connect(now, ground.region.ip, ground.region.service, b"");
    station.run(now + super::super::PATIENCE_NS, |node| !node.events.is_empty())?;
    match station.node.events.pop_front() {
        Some(Event::Rejected { reason: reason::INVALID_MTU, .. }) => return Ok(()),
        Some(Event::Connected { .. }) => disconnect(station, id)?,
        event => return Err(wrong(format!("a REQ with a path MTU of 4096: {event:?}"))),
    }
    let mut raw = Raw::connect(station, ground.region)?;
    ensure(raw.pmtu == 4096, || format!("a path MTU of {}", raw.pmtu))?;
    let data = bytes(1, 3 * 4096 + 100);
    raw.write(station, raw.offer.address, &data)?;
    same("in packets of 4096 bytes", &raw.read(station, raw.offer.address, data.len() as u32)?, &data)?;
    raw.close(station)
}

/// Fault: DREP never leaves. Right: a DREQ is answered within a millisecond.
pub fn dreq_is_answered<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    for _ in 0..3 {
        let (id, _) = connect(station, ground.region)?;
        let start = station.now();
        disconnect(station, id)?;
        let took = station.now() - start;
        ensure(took < 1_000_000, || format!("a DREP after {took} ns"))?;
    }
    Ok(())
}

/// Fault: a second REQ gets silence. Right: the same REQ again gets the same REP again, another peer's REQ one of its own.
pub fn second_req_gets_the_same_rep<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let (id, _) = connect(station, ground.region)?;
    let target = ground.region;
    let message = |station: &Station<W>, number: u32| {
        Mad::new(Message::Req(Box::new(Req { local_comm_id: 0x6000_0000 + number, ..req(station, target, 0x600 + number) })), number.into())
    };
    let mut ends = Vec::new();
    for number in [1, 2] {
        let mad = message(station, number);
        let answers = [ask(station, target, &mad)?, ask(station, target, &mad)?, ask(station, target, &mad)?];
        let [Message::Rep(rep)] = &answers[0][..] else { return Err(wrong(format!("REQ {number}: {:?}", answers[0]))) };
        ensure(answers.iter().all(|again| *again == answers[0]), || format!("REQ {number} again: {:?}", answers[2]))?;
        ends.push((0x6000_0000 + number, rep.local_comm_id, rep.local_qpn));
    }
    ensure(ends[0].2 != ends[1].2, || format!("two connections on queue pair {:#x}", ends[0].2))?;
    for end in ends {
        goodbye(station, target, end)?;
    }
    disconnect(station, id)
}

/// Ends a connection that was made by hand: (our ID, the board's, its queue pair).
fn goodbye<W: Wire>(
    station: &mut Station<W>,
    target: Target,
    (local_comm_id, remote_comm_id, remote_qpn): (u32, u32, u32),
) -> io::Result<()> {
    let dreq = Dreq { local_comm_id, remote_comm_id, remote_qpn, ..Dreq::default() };
    let answers = ask(station, target, &Mad::new(Message::Dreq(Box::new(dreq)), 1))?;
    ensure(matches!(&answers[..], [Message::Drep(_)]), || format!("a DREQ: {answers:?}"))
}

/// Complaint: the second connection fails on the PSN of the first. Right: it begins where its own REP says; packets of the first are dropped in
/// silence, and harm nothing.
pub fn second_connection_has_its_own_psn<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut old: Option<Raw> = None;
    for round in 0..5 {
        let mut raw = Raw::connect(station, ground.region)?;
        for _ in 0..=round {
            raw.alive(station)?;
        }
        if let Some(old) = &old {
            for ahead in 0..3 {
                raw.put(station, &old.write_only(old.psn + ahead, raw.offer.address, &bytes(round, 16)))?;
                raw.put(station, &old.read_request(old.psn + ahead, raw.offer.address, 16))?;
            }
            raw.silent(station)?;
        }
        raw.alive(station)?;
        old = Some(raw.clone());
        raw.close(station)?;
    }
    Ok(())
}

/// Complaint: a teardown wedges the board. Right: DREQ in the middle of a READ, of a WRITE, and of the board's own WRITE and READ, is answered; after the DREP nothing comes for
/// that queue pair; and after more of them than there are queue pairs a new connection works.
pub fn teardown_in_mid_transfer<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    for round in 0..6_u64 {
        let (id, offer) = connect(station, ground.region)?;
        let size = offer.length.min(65_536);
        let operation = if round % 2 == 0 { Operation::Read } else { Operation::Write { imm: None } };
        qp(station, id)?.post(work(0, operation, LOCAL, size, offer.address, &offer));
        teardown(station, ground, id, 30_000 + 7_000 * round)?;
    }
    for request in [Request::Write, Request::Read, Request::Write, Request::WriteAndRead, Request::Send] {
        let (id, _) = connect(station, Target { region: None, ..ground.bench })?;
        let size = if request == Request::Send { 4096 } else { 16_384 };
        let command = Command::new(request, size, 8).encode(0x100);
        station.node.memory.write(LOCAL + 0xf_0000, &command);
        let send = Operation::Send { imm: None, invalidate: None };
        for n in 0..8 {
            qp(station, id)?.post_receive(crate::model::ReceiveRequest { id: n, address: LOCAL + 0x8_0000, length: 4096 });
        }
        let done = complete(station, id, &[work(0, send, LOCAL + 0xf_0000, command.len() as u32, 0, &super::raw::NOWHERE)], 1_000_000)?;
        ensure(done.iter().any(|done| done.status == Status::Success), || format!("the command: {done:?}"))?;
        // The bench fills its buffer first.
        let from = station.records.len();
        let wait = station.now() + 2_000_000;
        while !station.records[from..].iter().any(|record| requests(&record.frame, ground)) {
            let now = station.now();
            ensure(now < wait, || format!("{request:?}: the board does not begin"))?;
            station.run(now + 2000, |_| false)?;
        }
        teardown(station, ground, id, 20_000)?;
    }
    let bench = Bench::connect(station, Target { region: None, ..ground.bench })?;
    let ran = bench.run(station, Command::new(Request::Write, 1000, 4))?;
    ensure(ran.status == 0 && ran.done == 4, || format!("after the teardowns: {ran:?}"))?;
    bench.disconnect(station)?;
    let mut raw = Raw::connect(station, ground.region)?;
    raw.alive(station)?;
    raw.close(station)
}

/// Whether it is a request of the board's.
fn requests(frame: &[u8], ground: &Ground) -> bool {
    Frame::decode(frame).is_ok_and(|frame| frame.source_ip == ground.region.ip && frame.packet.bth.opcode.is_request())
}

/// DREQ after `ns`; then silence on that queue pair.
fn teardown<W: Wire>(station: &mut Station<W>, ground: &Ground, id: usize, ns: u64) -> io::Result<()> {
    let until = station.now() + ns;
    station.run(until, |_| false)?;
    let qpn = station.node.connections[id].local_qpn;
    disconnect(station, id)?;
    let from = station.records.len();
    let until = station.now() + 200_000;
    station.run(until, |_| false)?;
    let late = station.records[from..].iter().filter_map(|record| Frame::decode(&record.frame).ok());
    let late = late.filter(|frame| frame.source_ip == ground.region.ip && frame.packet.bth.destination == qpn).count();
    ensure(late == 0, || format!("{late} packets behind the DREP"))
}

/// Complaint: after the peer has restarted the board must be loaded again. Right: a REQ of the same machine and queue pair with a new ID, without any
/// goodbye, is accepted, more often than there are queue pairs, and the connection works; the old one is gone.
pub fn peer_restarts<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let (id, _) = connect(station, ground.region)?;
    disconnect(station, id)?;
    let target = ground.region;
    let mut before: Option<Raw> = None;
    let mut last = None;
    for number in 0..9 {
        let req = Req { local_comm_id: 0x7000_0000 + number, ..req(station, target, 0x700) };
        let (our_qpn, board_psn) = (req.local_qpn, req.starting_psn);
        let answers = ask(station, target, &Mad::new(Message::Req(Box::new(req)), 1))?;
        let rep = answers.iter().find_map(|message| match message {
            Message::Rep(rep) if rep.remote_comm_id == 0x7000_0000 + number => Some(rep.clone()),
            _ => None,
        });
        let rep = rep.ok_or_else(|| wrong(format!("restart {number}: {answers:?}")))?;
        let offer = target.region.or(super::super::Offer::decode(&rep.private_data)).ok_or_else(|| wrong("no region".into()))?;
        let mut raw = Raw::new(station, (usize::MAX, offer), (rep.local_qpn, our_qpn), (rep.starting_psn, board_psn), 1024)?;
        raw.alive(station).map_err(|error| wrong(format!("restart {number}: {error}")))?;
        if let Some(old) = &before {
            raw.put(station, &old.write_only(old.psn, offer.address, &[1, 2, 3, 4]))?;
            raw.silent(station)?;
        }
        last = Some((0x7000_0000 + number, rep.local_comm_id, rep.local_qpn));
        before = Some(raw);
    }
    last.map_or(Ok(()), |end| goodbye(station, target, end))
}

/// Complaint: no REP after a thousand connects. Right: they may go on for ever; a hundred here, 2000 in the bench `crowd` of plugin `cm`.
pub fn many_connects<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    for n in 0..100 {
        let (id, _) = connect(station, ground.region).map_err(|error| wrong(format!("connection {n}: {error}")))?;
        disconnect(station, id).map_err(|error| wrong(format!("connection {n}: {error}")))?;
    }
    Ok(())
}
