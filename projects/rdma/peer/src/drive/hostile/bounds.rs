//! Wrong keys, and bounds: off by one at both ends of the region, at 2^32, and at 2^64.

use super::super::Offer;
use super::super::faults::raw::bytes;
use super::Scope;
use super::ground::{Bout, Ground, reth};
use crate::live::Wire;
use crate::packet::{Opcode, Packet};
use std::io;

/// Requests that name an address.
const KINDS: [Opcode; 5] = [Opcode::WRITE_ONLY, Opcode::WRITE_FIRST, Opcode::READ_REQUEST, Opcode::FETCH_ADD, Opcode::COMPARE_SWAP];

pub fn run<W: Wire>(ground: &mut Ground<W>, scope: &Scope) -> io::Result<()> {
    let before = ground.behind()?;
    keys(ground, scope)?;
    places(ground)?;
    if ground.behind()? != before {
        ground.found.mismatches.push("bytes behind the region are not what they were".into());
    }
    Ok(())
}

fn places<W: Wire>(ground: &mut Ground<W>) -> io::Result<()> {
    for opcode in KINDS {
        let length = length(ground.bout()?, opcode);
        for (name, address, length) in addresses(ground.offer, length, opcode.is_atomic()) {
            let offer = ground.offer;
            let bout = ground.bout()?;
            let packet = request(bout, opcode, offer, address, length);
            ground.one(&format!("{opcode} of {length} bytes at {address:#x}, {name}"), &packet, address)?;
        }
    }
    // What is asked for wraps round to the region.
    let offer = ground.offer;
    for (address, length) in [
        (offer.address.wrapping_sub(16), 32),
        (offer.address.wrapping_sub(1 << 31), 1 << 31),
        (u64::MAX - 15, 32),
        (u64::MAX, 1),
        (u64::MAX, 2),
        (u64::MAX - (1 << 31) + 1, 1 << 31),
        (offer.address, offer.length + 1),
        (offer.address + 1, offer.length),
        (offer.address, 1 << 31),
        (offer.address + u64::from(offer.length), 1),
    ] {
        let bout = ground.bout()?;
        let packets = [
            bout.read(0, offer, address, length),
            bout.packet(Opcode::WRITE_FIRST, 0, reth(offer, address, length), &bytes(3, bout.pmtu() as usize)),
        ];
        for (at, name) in ["READ", "WRITE first"].into_iter().enumerate() {
            let bout = ground.bout()?;
            let mut packet = packets[at].clone();
            (packet.bth.psn, packet.bth.destination) = (bout.qp.expected_psn(), bout.qp.config.local_qpn);
            ground.one(&format!("{name} of {length} bytes at {address:#x}"), &packet, address)?;
        }
    }
    Ok(())
}

fn length(bout: &Bout, opcode: Opcode) -> u32 {
    match opcode {
        Opcode::WRITE_FIRST => bout.pmtu() + 5,
        _ if opcode.is_atomic() => 8,
        _ => 24,
    }
}

fn request(bout: &Bout, opcode: Opcode, offer: Offer, address: u64, length: u32) -> Packet {
    match opcode {
        _ if opcode.is_atomic() => bout.atomic(opcode, 0, offer, address),
        Opcode::READ_REQUEST => bout.read(0, offer, address, length),
        Opcode::WRITE_FIRST => bout.packet(opcode, 0, reth(offer, address, length), &bytes(7, bout.pmtu() as usize)),
        _ => bout.write(0, offer, address, &bytes(length, length as usize)),
    }
}

/// Addresses, in and out of the region; of atomics only aligned ones, so that the bounds decide.
fn addresses(offer: Offer, length: u32, aligned: bool) -> Vec<(&'static str, u64, u32)> {
    let (start, size) = (offer.address, u64::from(length));
    let end = start + u64::from(offer.length);
    let step = if aligned { 8 } else { 1 };
    let mut places = vec![
        ("the start", start, length),
        ("before the start", start.wrapping_sub(step), length),
        ("all before the start", start.wrapping_sub(size), length),
        ("the end", end - size, length),
        ("over the end", end - size + step, length),
        ("with its last byte behind the end", end - step, length),
        ("at the end", end, length),
        ("behind the end", end + step, length),
        ("2^32 above", start + (1 << 32), length),
        ("2^32 above the end", end - size + (1 << 32), length),
        ("2^63 above", start ^ 1 << 63, length),
        ("to 2^32", (1 << 32) - size, length),
        ("over 2^32", (1 << 32) - size + step, length),
        ("from 2^32 - 1", (1 << 32) - step, length),
        ("from 2^32", 1 << 32, length),
        ("to 2^64", 0_u64.wrapping_sub(size), length),
        ("over 2^64", 0_u64.wrapping_sub(size).wrapping_add(step), length),
        ("from 2^64 - 1", 0_u64.wrapping_sub(step), length),
    ];
    if aligned {
        // Some fall together.
        places.dedup_by_key(|place| place.1);
    } else if length <= 24 {
        places.extend([("the last byte", end - 1, 1), ("the byte behind", end, 1), ("the first byte", start, 1)]);
        places.extend([
            ("the byte before", start.wrapping_sub(1), 1),
            ("nothing at the end", end, 0),
            ("two at the last byte", end - 1, 2),
        ]);
    }
    places
}

/// Each bit of the key, other numbers and variants.
fn keys<W: Wire>(ground: &mut Ground<W>, scope: &Scope) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 1024);
    for opcode in KINDS {
        let some = opcode == Opcode::WRITE_ONLY || scope.all;
        let bits = (0..32).filter(|bit| some || [0, 7, 8, 31].contains(bit)).map(|bit| offer.rkey ^ 1 << bit);
        let others = [0, 1, u32::MAX, offer.rkey.wrapping_add(1), offer.rkey.wrapping_sub(1), !offer.rkey, offer.rkey.swap_bytes()];
        for rkey in bits.chain(others).filter(|rkey| *rkey != offer.rkey) {
            let bout = ground.bout()?;
            let packet = request(bout, opcode, Offer { rkey, ..offer }, address, length(bout, opcode));
            ground.one(&format!("{opcode} with key {rkey:#x}"), &packet, address)?;
        }
    }
    // A key is checked again in what has been done already, and that gets nothing.
    for opcode in [Opcode::WRITE_ONLY, Opcode::READ_REQUEST, Opcode::FETCH_ADD, Opcode::COMPARE_SWAP] {
        let bout = ground.bout()?;
        let right = request(bout, opcode, offer, address, length(bout, opcode));
        let wrong = request(bout, opcode, Offer { rkey: offer.rkey ^ 1, ..offer }, address, length(bout, opcode));
        let frames = [&right, &wrong, &right].map(|packet| bout.frame(packet));
        ground.give(&format!("{opcode}, again with a wrong key, and again"), &frames, address)?;
    }
    Ok(())
}
