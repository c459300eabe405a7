//! Pads and lengths: wrong pad counts, payloads that are no PMTU or more than that, more or less than was announced, nothing at all.

use super::super::Offer;
use super::super::faults::raw::bytes;
use super::Scope;
use super::ground::{Bout, Ground, reth};
use crate::live::Wire;
use crate::packet::{Bth, Extensions, Opcode, Packet};
use std::io;

/// Bytes over the path MTU that a frame of any board still carries.
const LONGER: u32 = 64;

/// Packets by name; the last is the one that is wrong.
type Case = (String, Vec<Packet>);

pub fn run<W: Wire>(ground: &mut Ground<W>, _: &Scope) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 4096);
    let count = cases(ground.bout()?, offer, address).len();
    for at in 0..count {
        let bout = ground.bout()?;
        let (name, packets) = cases(bout, offer, address).swap_remove(at);
        let frames = packets.iter().map(|packet| bout.frame(packet)).collect::<Vec<_>>();
        ground.give(&name, &frames, address)?;
    }
    pads(ground, address)?;
    more(ground, address)
}

/// The pad count alone: the same bytes with another number of them at the end called pad.
fn pads<W: Wire>(ground: &mut Ground<W>, address: u64) -> io::Result<()> {
    let offer = ground.offer;
    for opcode in Opcode::all().filter(|opcode| opcode.is_request() || opcode.is_response()) {
        // An accepted SEND of fewer bytes is nothing wrong.
        for pad in if opcode == Opcode::SEND_ONLY || opcode == Opcode::SEND_ONLY_IMM { 0..0 } else { 1..4_u8 } {
            let bout = ground.bout()?;
            let (before, packet) = bout.sample(opcode, offer, address);
            let mut transport = packet.encode();
            transport[1] |= pad << 4;
            let mut frames = before.iter().map(|packet| bout.frame(packet)).collect::<Vec<_>>();
            frames.push(bout.head.wrap(&transport));
            ground.give(&format!("{opcode} with pad count {pad}"), &frames, address)?;
        }
    }
    Ok(())
}

/// Words behind what was announced.
fn more<W: Wire>(ground: &mut Ground<W>, address: u64) -> io::Result<()> {
    let offer = ground.offer;
    let opcodes = [Opcode::WRITE_FIRST, Opcode::WRITE_MIDDLE, Opcode::WRITE_LAST, Opcode::WRITE_ONLY];
    for opcode in opcodes.into_iter().chain([Opcode::READ_REQUEST, Opcode::FETCH_ADD, Opcode::COMPARE_SWAP]) {
        for words in [1, 2, 16] {
            let bout = ground.bout()?;
            let (before, packet) = bout.sample(opcode, offer, address);
            let transport = [packet.encode(), vec![0x5a; 4 * words]].concat();
            let mut frames = before.iter().map(|packet| bout.frame(packet)).collect::<Vec<_>>();
            frames.push(bout.head.wrap(&transport));
            ground.give(&format!("{opcode} with {words} words more"), &frames, address)?;
        }
    }
    Ok(())
}

fn cases(bout: &Bout, offer: Offer, address: u64) -> Vec<Case> {
    let pmtu = bout.pmtu();
    let mut cases = Vec::new();
    let write =
        |opcode, ahead, announced, size: u32| bout.packet(opcode, ahead, reth(offer, address, announced), &bytes(size, size as usize));
    let quiet = |packet: Packet| Packet { bth: Bth { ack_request: false, ..packet.bth }, ..packet };
    let first = |total| quiet(write(Opcode::WRITE_FIRST, 0, total, pmtu));
    let middle = |ahead| quiet(write(Opcode::WRITE_MIDDLE, ahead, 0, pmtu));
    // ONLY: from nothing to PMTU, and as announced.
    for (announced, size) in [(pmtu, pmtu), (0, 0), (1, 1), (2, 2), (3, 3), (pmtu - 1, pmtu - 1)] {
        cases.push((format!("a right WRITE of {size} bytes"), vec![write(Opcode::WRITE_ONLY, 0, announced, size)]));
    }
    for size in [0, 1, 16, pmtu] {
        for announced in [0, size.wrapping_sub(4), size.wrapping_sub(1), size + 1, size + 4, pmtu + 1, 1 << 31, (1 << 31) + 1, u32::MAX] {
            if announced != size {
                let name = format!("WRITE only of {size} bytes, {announced} announced");
                cases.push((name, vec![write(Opcode::WRITE_ONLY, 0, announced, size)]));
            }
        }
    }
    for size in [pmtu + 1, pmtu + 4, pmtu + LONGER] {
        cases.push((format!("WRITE only of {size} bytes"), vec![write(Opcode::WRITE_ONLY, 0, size, size)]));
    }
    // FIRST and MIDDLE: PMTU and nothing else; FIRST announces more than that.
    for size in [0, 1, 4, pmtu - 4, pmtu - 1, pmtu + 1, pmtu + 4, pmtu + LONGER] {
        cases.push((format!("WRITE first of {size} bytes"), vec![write(Opcode::WRITE_FIRST, 0, 4 * pmtu, size)]));
        cases.push((format!("WRITE middle of {size} bytes"), vec![first(4 * pmtu), write(Opcode::WRITE_MIDDLE, 1, 0, size)]));
    }
    for announced in [0, 1, pmtu - 1, pmtu, (1 << 31) + 1, u32::MAX] {
        cases.push((format!("WRITE first, {announced} bytes announced"), vec![write(Opcode::WRITE_FIRST, 0, announced, pmtu)]));
    }
    // Over and under what was announced, in MIDDLE and LAST.
    for (total, size) in
        [(pmtu + 8, 12), (pmtu + 8, 4), (pmtu + 8, 0), (pmtu + 8, 9), (2 * pmtu, pmtu + 4), (2 * pmtu, pmtu - 4), (2 * pmtu + 4, 4)]
    {
        cases
            .push((format!("WRITE last of {size} bytes, {} due", total - pmtu), vec![first(total), write(Opcode::WRITE_LAST, 1, 0, size)]));
    }
    cases.push(("WRITE middle with nothing left for the last".into(), vec![first(2 * pmtu), write(Opcode::WRITE_MIDDLE, 1, 0, pmtu)]));
    cases.push(("WRITE middle over what was announced".into(), vec![first(pmtu + 8), write(Opcode::WRITE_MIDDLE, 1, 0, pmtu)]));
    cases.push((
        "WRITE last over what was announced, behind a middle".into(),
        vec![first(2 * pmtu + 8), middle(1), write(Opcode::WRITE_LAST, 2, 0, 12)],
    ));
    // Another message in the middle of one, and the middle of none.
    for opcode in [
        Opcode::WRITE_ONLY,
        Opcode::WRITE_FIRST,
        Opcode::READ_REQUEST,
        Opcode::FETCH_ADD,
        Opcode::SEND_ONLY,
        Opcode::SEND_MIDDLE,
        Opcode::SEND_LAST,
    ] {
        let packet = bout.sample(opcode, offer, address).1;
        let packet = Packet { bth: Bth { psn: crate::psn::add(first(0).bth.psn, 1), ..packet.bth }, ..packet };
        cases.push((format!("{opcode} inside a WRITE"), vec![first(4 * pmtu), packet]));
    }
    for opcode in [
        Opcode::WRITE_MIDDLE,
        Opcode::WRITE_LAST,
        Opcode::WRITE_LAST_IMM,
        Opcode::SEND_MIDDLE,
        Opcode::SEND_LAST,
        Opcode::SEND_LAST_IMM,
        Opcode::SEND_LAST_INV,
    ] {
        let size = if opcode.ends() { 16 } else { pmtu };
        cases.push((format!("{opcode} of no message"), vec![write(opcode, 0, 0, size)]));
    }
    // READs and atomics have no payload; a READ has up to 2^31 bytes.
    for length in [(1 << 31) + 1, u32::MAX] {
        cases.push((format!("a READ of {length} bytes"), vec![bout.read(0, offer, address, length)]));
    }
    for length in [0, 1, pmtu, pmtu + 1, 2 * pmtu] {
        cases.push((format!("a right READ of {length} bytes"), vec![bout.read(0, offer, address, length)]));
    }
    for by in 1..8 {
        for opcode in [Opcode::FETCH_ADD, Opcode::COMPARE_SWAP] {
            cases.push((format!("{opcode}, {by} bytes off its alignment"), vec![bout.atomic(opcode, 0, offer, address + by)]));
        }
    }
    for opcode in [Opcode::READ_REQUEST, Opcode::FETCH_ADD, Opcode::COMPARE_SWAP] {
        for size in [1, 3, 8] {
            let mut packet = bout.sample(opcode, offer, address).1;
            packet.payload = bytes(size, size as usize);
            cases.push((format!("{opcode} with {size} bytes of payload"), vec![Packet::new(packet.bth, packet.ext, packet.payload)]));
        }
    }
    // No bytes: the key and the address do not matter.
    let nowhere = Offer { address: 0, rkey: !offer.rkey, length: 0 };
    let nothing = |opcode| bout.packet(opcode, 0, reth(nowhere, u64::MAX, 0), &[]);
    cases.push(("a WRITE of no bytes with a wrong key".into(), vec![nothing(Opcode::WRITE_ONLY)]));
    cases.push(("a READ of no bytes with a wrong key".into(), vec![nothing(Opcode::READ_REQUEST)]));
    cases.push((
        "a SEND that is too long".into(),
        vec![bout.packet(Opcode::SEND_ONLY, 0, Extensions::default(), &bytes(1, super::RECEIVE as usize + 1))],
    ));
    cases.push(("a SEND first of too few bytes".into(), vec![bout.packet(Opcode::SEND_FIRST, 0, Extensions::default(), &bytes(1, 16))]));
    cases
}
