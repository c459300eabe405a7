//! Stale, duplicate and early PSNs: at the edges of the window of 2^23, and all of it again across the wrap at 2^24.

use super::super::Offer;
use super::super::faults::raw::bytes;
use super::super::wrong;
use super::Scope;
use super::ground::Ground;
use crate::live::Wire;
use crate::packet::{Bth, Opcode, Packet};
use crate::psn;
use std::io;

/// The last PSN behind, and the last one ahead: half of the numbers.
const BEHIND: i32 = -0x80_0000;
const AHEAD: i32 = 0x7f_ffff;

pub fn run<W: Wire>(ground: &mut Ground<W>, _: &Scope) -> io::Result<()> {
    edges(ground)?;
    duplicates(ground)?;
    for before in [2, 20] {
        near_the_wrap(ground, before)?;
        if before == 2 { duplicates(ground)? } else { edges(ground)? }
    }
    Ok(())
}

/// Requests of each kind at the edges, each followed by the expected one.
fn edges<W: Wire>(ground: &mut Ground<W>) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 2048);
    for opcode in
        [Opcode::WRITE_ONLY, Opcode::READ_REQUEST, Opcode::FETCH_ADD, Opcode::SEND_ONLY, Opcode::SEND_LAST, Opcode::WRITE_LAST_IMM]
    {
        for ahead in [-1, 1, -2, 2, AHEAD, AHEAD - 1, BEHIND, BEHIND + 1] {
            let bout = ground.bout()?;
            let packet = bout.sample(opcode, offer, address).1;
            let packet = at(packet, psn::add(bout.qp.expected_psn(), ahead as u32));
            ground.one(&format!("{opcode}, {ahead} ahead"), &packet, address)?;
        }
    }
    // One NAK, then silence for what is ahead, an answer to what is behind, until the expected one comes.
    let bout = ground.bout()?;
    let frames = [2, 1, AHEAD, -1, 3, BEHIND, 1].map(|ahead| bout.frame(&bout.write(ahead, offer, address, &[1, 2, 3])));
    ground.give("WRITEs ahead and behind", &frames, address)
}

fn at(packet: Packet, number: u32) -> Packet {
    Packet { bth: Bth { psn: number, ..packet.bth }, ..packet }
}

/// What has been done before is not done again; what was asked for is answered again, if it is asked for rightly.
fn duplicates<W: Wire>(ground: &mut Ground<W>) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 3072);
    let bout = ground.bout()?;
    let first = bout.qp.expected_psn();
    let pmtu = bout.pmtu();
    // WRITEs: the second stands, whatever comes again.
    let writes = [1, 2].map(|n| at(bout.write(0, offer, address, &bytes(n, 40)), psn::add(first, n - 1)));
    let frames = [0, 1, 0, 1, 0].map(|n| bout.frame(&writes[n]));
    ground.give("two WRITEs, and again", &frames, address)?;

    // A READ of three packets and a bit.
    let bout = ground.bout()?;
    let (first, length) = (bout.qp.expected_psn(), 3 * pmtu + 5);
    let read = |offer: Offer, skip: u32, address: u64, length: u32| at(bout.read(0, offer, address, length), psn::add(first, skip));
    let rest = |skip: u32| read(offer, skip, address + u64::from(skip * pmtu), length - skip * pmtu);
    let other = Offer { rkey: offer.rkey ^ 1, ..offer };
    let again: [(&str, Packet); 15] = [
        ("a READ of four packets", rest(0)),
        ("all of it again", rest(0)),
        ("again from its second packet on", rest(1)),
        ("again from its last packet on", rest(3)),
        ("from its third packet on, from an address of the second", read(offer, 2, address + u64::from(pmtu), length - 2 * pmtu)),
        ("from its second packet on, one byte further", read(offer, 1, address + u64::from(pmtu) + 1, length - pmtu - 1)),
        ("from its second packet on, one byte more", read(offer, 1, address + u64::from(pmtu), length - pmtu + 1)),
        ("one byte before", read(offer, 0, address - 1, length)),
        ("one byte more", read(offer, 0, address, length + 1)),
        ("with another key", read(other, 0, address, length)),
        ("2^32 above", read(offer, 0, address + (1 << 32), length)),
        ("with a PSN before it", at(bout.read(0, offer, address, length), psn::add(first, psn::MASK))),
        ("2^31 bytes", read(offer, 0, address, 1 << 31)),
        ("2^32 - 1 bytes", read(offer, 0, address, u32::MAX)),
        ("all of it once more", rest(0)),
    ];
    let again = again.map(|(name, packet)| (name, bout.frame(&packet)));
    for (name, frame) in again {
        if !ground.put(name, &frame)? {
            return Ok(());
        }
    }
    ground.prove(address)?;

    atomics(ground, offer, address)?;
    forgotten(ground, offer, address)
}

/// Atomics: done once, the result told again as long as it is kept.
fn atomics<W: Wire>(ground: &mut Ground<W>, offer: Offer, address: u64) -> io::Result<()> {
    let bout = ground.bout()?;
    let first = bout.qp.expected_psn();
    let kept = u32::from(bout.qp.config.responder_resources);
    let add = |n: u32| at(bout.atomic(Opcode::FETCH_ADD, 0, offer, address), psn::add(first, n));
    let swap = |n: u32| at(bout.atomic(Opcode::COMPARE_SWAP, 0, offer, address), psn::add(first, n));
    // As many as are kept, each again, and with the other opcode; one more, and the first is forgotten.
    let packets =
        (0..kept).map(add).chain((0..kept).rev().map(add)).chain((0..kept).map(swap)).chain([add(kept), add(0), add(1), add(kept)]);
    let frames = packets.map(|packet| bout.frame(&packet)).collect::<Vec<_>>();
    ground.give("atomics, and again", &frames, address)
}

/// READs that are no longer remembered.
fn forgotten<W: Wire>(ground: &mut Ground<W>, offer: Offer, address: u64) -> io::Result<()> {
    let bout = ground.bout()?;
    let (first, kept) = (bout.qp.expected_psn(), u32::from(bout.qp.config.responder_resources));
    let read = |n: u32| at(bout.read(0, offer, address + u64::from(n), 16), psn::add(first, n));
    let frames = (0..=kept).map(read).chain([read(0), read(1), read(kept)]).map(|packet| bout.frame(&packet)).collect::<Vec<_>>();
    ground.give("more READs than are remembered, and the first ones again", &frames, address)
}

/// Connections tried until one begins close enough.
const TRIES: u32 = 32;

/// PSNs that are gone through by WRITEs of nothing.
const WALK: u32 = 1 << 10;
const TOO_CLOSE: u32 = 32;

/// Of these every so manieth asks for an ACK.
const ASK: i32 = 16;

/// A connection whose next PSN is so many before 2^24. The board chooses where it begins; one that mixes our communication ID into that number,
/// and else counts slowly, can be led there.
fn near_the_wrap<W: Wire>(ground: &mut Ground<W>, before: u32) -> io::Result<()> {
    let mut id = 1;
    for _ in 0..TRIES {
        ground.close()?;
        // None comes twice.
        let number = ground.station.node.connections.len() as u32;
        ground.station.node.limits.comm_id = Some(number << 24 | id & psn::MASK);
        let found = ground.bout().map(|bout| bout.qp.expected_psn());
        ground.station.node.limits.comm_id = None;
        let found = found?;
        if (TOO_CLOSE..WALK).contains(&(psn::MASK - found)) {
            return walk(ground, psn::add(0, psn::MASK + 1 - before));
        }
        id ^= found ^ (psn::MASK + 1 - WALK / 2);
    }
    Err(wrong(format!("no connection begins less than {WALK} before the wrap")))
}

fn walk<W: Wire>(ground: &mut Ground<W>, wanted: u32) -> io::Result<()> {
    let offer = ground.offer;
    loop {
        let bout = ground.bout()?;
        let left = psn::diff(wanted, bout.qp.expected_psn());
        if left <= 0 {
            return Ok(());
        }
        let mut packet = bout.write(0, offer, offer.address, &[]);
        packet.bth.ack_request = left % ASK == 1;
        let frame = bout.frame(&packet);
        if !ground.put("a WRITE of nothing", &frame)? {
            return Ok(());
        }
    }
}
