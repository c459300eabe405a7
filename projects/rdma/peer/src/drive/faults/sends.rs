//! SENDs and receive requests, with the board's echo: it has a few receives on each connection, and no new one before its own SEND has been
//! acknowledged.

use super::Ground;
use super::raw::{ANSWER_NS, Heard, Raw, bytes, ensure, names, same};
use crate::live::{Station, Wire};
use crate::packet::{Extensions, Opcode, Packet, Syndrome};
use crate::psn;
use std::io;

/// More receives than the echo has.
const MANY: u32 = 20;

/// Bytes of a message.
const SIZE: usize = 32;

/// An echo that has no receive left.
struct Starved {
    raw: Raw,
    /// Accepted messages, and what has been sent back.
    accepted: u32,
    echoed: Vec<Heard>,
    /// The answer to the first that was not accepted; its PSN is `raw.psn`.
    refusal: Heard,
}

fn message(raw: &Raw, psn: u32, number: u32) -> Packet {
    raw.packet(Opcode::SEND_ONLY, psn, Extensions::default(), &bytes(number, SIZE))
}

/// Sends messages until one is not accepted, and acknowledges nothing.
fn starve<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<Starved> {
    let mut raw = Raw::connect(station, ground.echo)?;
    let mut echoed = Vec::new();
    for accepted in 0..MANY {
        raw.put(station, &message(&raw, raw.psn, accepted))?;
        // The echo of a message takes its program some time.
        let (answers, echoes): (Vec<_>, Vec<_>) =
            raw.hear(station, 3 * ANSWER_NS, usize::MAX)?.into_iter().partition(|one| one.opcode() == Opcode::ACK);
        echoed.extend(echoes);
        match &answers[..] {
            [one] if one.psn() == raw.psn && one.syndrome().is_some_and(Syndrome::is_ack) => raw.psn = psn::add(raw.psn, 1),
            [refusal] => return Ok(Starved { accepted, echoed, refusal: refusal.clone(), raw }),
            _ => return Err(super::wrong(format!("SEND {accepted} got {}", names(&answers)))),
        }
    }
    Err(super::wrong(format!("{MANY} SENDs were accepted without a receive")))
}

/// Fault: no RNR NAK on an empty receive queue. Right: an RNR NAK with the PSN of the SEND.
pub fn empty_receive_queue_gets_rnr<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let starved = starve(station, ground)?;
    let refusal = &starved.refusal;
    let right = matches!(refusal.syndrome(), Some(Syndrome::Rnr(_))) && refusal.psn() == starved.raw.psn;
    ensure(right && starved.accepted > 0, || format!("SEND {} got {}", starved.accepted, names(std::slice::from_ref(refusal))))?;
    starved.raw.close(station)
}

/// Fault: a SEND without a receive request is acknowledged and lost. Right: it is not acknowledged; sent again when there is a receive, it is; every message
/// comes back once, in order.
pub fn send_without_a_receive_is_not_lost<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let Starved { mut raw, accepted, mut echoed, refusal } = starve(station, ground)?;
    ensure(!refusal.syndrome().is_some_and(Syndrome::is_ack), || format!("acknowledged: {}", names(&[refusal])))?;
    // The echo gets its ACK, and posts its receives again.
    let last = psn::add(raw.board_psn, accepted - 1);
    ensure(echoed.last().is_some_and(|one| one.psn() == last), || format!("{accepted} messages came back as {}", names(&echoed)))?;
    raw.answer(station, last, Syndrome::OK)?;
    echoed.extend(raw.hear(station, 3 * ANSWER_NS, usize::MAX)?);
    raw.put(station, &message(&raw, raw.psn, accepted))?;
    let heard = raw.hear(station, 4 * ANSWER_NS, usize::MAX)?;
    let acknowledged =
        heard.iter().any(|one| one.opcode() == Opcode::ACK && one.psn() == raw.psn && one.syndrome().is_some_and(Syndrome::is_ack));
    ensure(acknowledged, || format!("sent again: {}", names(&heard)))?;
    echoed.extend(heard.into_iter().filter(|one| one.opcode() == Opcode::SEND_ONLY));
    ensure(echoed.len() == accepted as usize + 1, || format!("{} messages came back as {}", accepted + 1, names(&echoed)))?;
    for (number, one) in echoed.iter().enumerate() {
        ensure(one.psn() == psn::add(raw.board_psn, number as u32), || format!("message {number} came back as {}", names(&echoed)))?;
        same(&format!("of message {number}"), &one.packet.payload, &bytes(number as u32, SIZE))?;
    }
    raw.answer(station, psn::add(last, 1), Syndrome::OK)?;
    raw.close(station)
}

/// Complaint: storms of RNR NAKs. Right: one, however much comes behind the SEND; another when that SEND itself comes again.
pub fn no_storm_of_rnr_naks<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let Starved { mut raw, refusal, .. } = starve(station, ground)?;
    for round in 0..3 {
        for ahead in 1..=MANY {
            raw.put(station, &message(&raw, psn::add(raw.psn, ahead), ahead))?;
        }
        let heard = raw.hear(station, 4 * ANSWER_NS, usize::MAX)?;
        ensure(heard.is_empty(), || format!("round {round}: {MANY} SENDs behind one without a receive got {}", names(&heard)))?;
        raw.put(station, &message(&raw, raw.psn, 0))?;
        let syndrome = refusal.syndrome().unwrap_or(Syndrome::OK);
        raw.answered(station, raw.psn, syndrome)?;
    }
    raw.close(station)
}
