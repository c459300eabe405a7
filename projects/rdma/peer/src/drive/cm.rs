//! The connection manager: refusals, repeated and stray messages, more connections than there are queue pairs.

use super::{Target, connect, disconnect, wrong};
use crate::cm::{Dreq, IpHeader, Mad, Message, QKEY, Req, SidrReq, gid, reason, tcp_service};
use crate::live::{Station, Wire};
use crate::model::Event;
use crate::packet::{Bth, Deth, Extensions, Frame, Opcode, Packet};
use std::io;

/// Simulated time that the board has for an answer.
const ANSWER_NS: u64 = 300_000;

/// Connects and disconnects so often, one after the other.
const TIMES: usize = 40;

/// A REQ such as Linux sends, from no queue pair of ours.
pub(super) fn req<W: Wire>(station: &Station<W>, target: Target, number: u32) -> Req {
    let mut req = Req {
        local_comm_id: 0x5000_0000 + number,
        service_id: target.service,
        ca_guid: 0x1234_5678_9abc_def0,
        local_qpn: 0x5000 + number,
        responder_resources: 1,
        initiator_depth: 1,
        remote_response_timeout: 20,
        starting_psn: 0x123456,
        local_response_timeout: 20,
        retry_count: 7,
        pkey: 0xffff,
        path_mtu: 3,
        rnr_retry_count: 7,
        max_cm_retries: 15,
        local_lid: 0xffff,
        remote_lid: 0xffff,
        local_gid: gid(station.node.ip),
        remote_gid: gid(target.ip),
        hop_limit: 64,
        ack_timeout: 19,
        ..Req::default()
    };
    let header = IpHeader { source_port: 0xc123, source: station.node.ip, destination: target.ip };
    req.private_data[..IpHeader::SIZE].copy_from_slice(&header.encode());
    req
}

/// Sends a MAD and gives the board's answers.
pub(super) fn ask<W: Wire>(station: &mut Station<W>, target: Target, mad: &Mad) -> io::Result<Vec<Message>> {
    let ours = station.node.ip;
    let frames = station.records.iter().rev().filter_map(|record| Frame::decode(&record.frame).ok());
    let mut frame = frames.into_iter().find(|frame| frame.source_ip == ours).ok_or_else(|| wrong("nothing was sent yet".into()))?;
    let ext = Extensions { deth: Some(Deth { qkey: QKEY, source: 1 }), ..Extensions::default() };
    frame.packet = Packet::new(Bth::new(Opcode::UD_SEND_ONLY, 1, 7), ext, mad.encode());
    let from = station.records.len();
    station.inject(&frame.encode())?;
    let until = station.now() + ANSWER_NS;
    station.run(until, |_| false)?;
    let frames = station.records[from..].iter().filter_map(|record| Frame::decode(&record.frame).ok());
    let answers = frames.filter(|frame| frame.source_ip == target.ip && frame.packet.bth.destination == 1);
    Ok(answers.filter_map(|frame| Mad::decode(&frame.packet.payload)).map(|mad| mad.message).collect())
}

/// Each rule by name, and what is wrong with it, if anything is.
///
/// # Errors
/// Those of the wire.
pub fn rules<W: Wire>(station: &mut Station<W>, target: Target, queue_pairs: usize) -> io::Result<Vec<(&'static str, Result<(), String>)>> {
    let mut found = Vec::new();
    let (id, _) = connect(station, target)?;
    disconnect(station, id)?;

    let mut number = 0;
    let mut refusal = |station: &mut Station<W>, name, wanted: u16, change: fn(&mut Req, &mut Mad)| -> io::Result<()> {
        number += 1;
        let mut message = req(station, target, number);
        let mut mad = Mad::new(Message::Req(Box::default()), u64::from(number));
        change(&mut message, &mut mad);
        let comm_id = message.local_comm_id;
        mad.message = Message::Req(Box::new(message));
        let answers = ask(station, target, &mad)?;
        let right = matches!(&answers[..], [Message::Rej(rej)] if rej.reason == wanted && rej.remote_comm_id == comm_id);
        found.push((name, if right { Ok(()) } else { Err(format!("wanted a REJ for reason {wanted}, got {}", names(&answers))) }));
        Ok(())
    };
    refusal(station, "no listener: reason 8", reason::INVALID_SERVICE_ID, |req, _| req.service_id = tcp_service(9999))?;
    refusal(station, "UDP port space: reason 8", reason::INVALID_SERVICE_ID, |req, _| req.service_id ^= 0x17_0000)?;
    refusal(station, "not a reliable connection: reason 9", reason::INVALID_TRANSPORT, |req, _| req.transport_type = 1)?;
    refusal(station, "path MTU code 0: reason 26", reason::INVALID_MTU, |req, _| req.path_mtu = 0)?;
    refusal(station, "path MTU code 6: reason 26", reason::INVALID_MTU, |req, _| req.path_mtu = 6)?;

    // A repeated REQ gets the same REP; a REQ of the same queue pair with a new ID is accepted or refused as stale.
    let first = Mad::new(Message::Req(Box::new(req(station, target, 100))), 100);
    let answers = [ask(station, target, &first)?, ask(station, target, &first)?];
    let same = matches!(&answers[0][..], [Message::Rep(_)]) && answers[0] == answers[1];
    let text = || format!("got {}, then {}", names(&answers[0]), names(&answers[1]));
    found.push(("a repeated REQ gets the same REP", if same { Ok(()) } else { Err(text()) }));
    let again = Req { local_comm_id: 0x5100_0000, ..req(station, target, 100) };
    let answers = ask(station, target, &Mad::new(Message::Req(Box::new(again)), 101))?;
    let accepted = answers.iter().any(|message| matches!(message, Message::Rep(rep) if rep.remote_comm_id == 0x5100_0000));
    let stale = answers.iter().any(|message| matches!(message, Message::Rej(rej) if rej.reason == reason::STALE_CONNECTION));
    let result = if accepted || stale { Ok(()) } else { Err(format!("got {}", names(&answers))) };
    found.push(("a known queue pair with a new ID", result));
    let open = answers.iter().find_map(|message| match message {
        Message::Rep(rep) => Some((rep.local_comm_id, rep.local_qpn)),
        _ => None,
    });
    if let Some((remote_comm_id, remote_qpn)) = open {
        let dreq = Dreq { local_comm_id: 0x5100_0000, remote_comm_id, remote_qpn, ..Dreq::default() };
        let answers = ask(station, target, &Mad::new(Message::Dreq(Box::new(dreq)), 102))?;
        let right =
            matches!(&answers[..], [Message::Drep(drep)] if drep.remote_comm_id == 0x5100_0000 && drep.local_comm_id == remote_comm_id);
        found.push(("a DREQ before the RTU is answered", if right { Ok(()) } else { Err(format!("got {}", names(&answers))) }));
    }

    let dreq = Dreq { local_comm_id: 0x77, remote_comm_id: 0x88, remote_qpn: 0x99, ..Dreq::default() };
    let answers = ask(station, target, &Mad::new(Message::Dreq(Box::new(dreq)), 103))?;
    let right = matches!(&answers[..], [Message::Drep(drep)] if (drep.local_comm_id, drep.remote_comm_id) == (0x88, 0x77));
    found.push(("a DREQ of nobody's is answered", if right { Ok(()) } else { Err(format!("got {}", names(&answers))) }));
    let sidr = SidrReq { request_id: 0x4242, pkey: 0xffff, service_id: target.service, ..SidrReq::default() };
    let answers = ask(station, target, &Mad::new(Message::SidrReq(Box::new(sidr)), 104))?;
    let right = matches!(&answers[..], [Message::SidrRep(rep)] if (rep.status, rep.request_id) == (1, 0x4242));
    found.push(("SIDR: not supported", if right { Ok(()) } else { Err(format!("got {}", names(&answers))) }));

    let many = (0..TIMES).try_for_each(|_| -> io::Result<()> {
        let (id, _) = connect(station, target)?;
        disconnect(station, id)
    });
    found.push(("connect and disconnect 40 times", many.map_err(|error| error.to_string())));

    // As many as there are queue pairs, one more refused, and one more when one has gone.
    let mut open = Vec::new();
    let mut full = Ok(());
    for _ in 0..queue_pairs {
        match connect(station, target) {
            Ok((id, _)) => open.push(id),
            Err(error) => full = Err(format!("connection {}: {error}", open.len())),
        }
    }
    found.push(("as many connections as queue pairs", full));
    station.node.events.clear();
    let now = station.now();
    let more = station.node.connect(now, target.ip, target.service, b"");
    station.run(now + 5_000_000, |node| !node.events.is_empty())?;
    let event = station.node.events.pop_front();
    // 1 no QP, 3 no resources, 28 the application has no room. A board may also first ask the others for a sign of life, for longer than
    // a simulation can wait.
    let right = event.is_none() || matches!(event, Some(Event::Rejected { id, reason: 1 | 3 | 28, .. }) if id == more);
    found.push(("one more is not accepted", if right { Ok(()) } else { Err(format!("{event:?}")) }));
    let last = (|| {
        if let Some(id) = open.pop() {
            disconnect(station, id)?;
        }
        let (id, _) = connect(station, target)?;
        open.push(id);
        open.iter().try_for_each(|id| disconnect(station, *id))
    })();
    found.push(("room again when one has gone", last.map_err(|error| error.to_string())));
    Ok(found)
}

fn names(messages: &[Message]) -> String {
    let name = |message: &Message| match message {
        Message::Rej(rej) => format!("REJ for reason {}", rej.reason),
        message => message.name().to_string(),
    };
    if messages.is_empty() { "nothing".to_string() } else { messages.iter().map(name).collect::<Vec<_>>().join(", ") }
}
