//! The board as responder: WRITE, READ and atomics on the region that it offers.

use super::super::{LOCAL, Offer, PATIENCE_NS, complete, connect, disconnect, qp, work};
use super::Ground;
use super::raw::{ANSWER_NS, Heard, Raw, bytes, ensure, names, same};
use crate::live::{Station, Wire};
use crate::model::link::{Faults, Link};
use crate::model::{Operation, Status};
use crate::packet::{Opcode, Syndrome};
use crate::psn;
use std::io;

/// Where the cases put their bytes, from the region's start.
const PLACE: u64 = 0x1000;

/// Fault: the sequence NAK carries the PSN that was received, so that the requester resends too little. Right: the one that is expected; one
/// NAK, then silence until it comes.
pub fn sequence_nak_has_the_expected_psn<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (first, address) = (raw.psn, raw.offer.address + PLACE);
    for ahead in [3, 4, 5] {
        raw.put(station, &raw.write_only(first + ahead, address, &[1, 2, 3, 4]))?;
        if ahead == 3 {
            raw.answered(station, first, Syndrome::SequenceError)?;
        } else {
            raw.silent(station)?;
        }
    }
    raw.alive(station)?;
    raw.close(station)
}

/// Fault: duplicates skip the checks of key and bounds. Right: a repeated WRITE with a wrong key or address gets nothing, a right one an ACK, and
/// none is written.
pub fn duplicate_write_is_checked<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (first, address, data) = (raw.psn, raw.offer.address + PLACE, bytes(1, 16));
    raw.write(station, address, &data)?;
    for (rkey, at) in [(raw.offer.rkey ^ 1, address), (raw.offer.rkey ^ 1 << 20, address), (raw.offer.rkey, end(&raw.offer) - 15)] {
        let mut packet = raw.write_only(first, at, &bytes(2, 16));
        packet.ext.reth.iter_mut().for_each(|reth| reth.rkey = rkey);
        raw.put(station, &packet)?;
        raw.silent(station)?;
    }
    raw.put(station, &raw.write_only(first, address, &bytes(3, 16)))?;
    raw.answered(station, first, Syndrome::OK)?;
    same("after a repeated WRITE", &raw.read(station, address, 16)?, &data)?;
    raw.close(station)
}

/// Fault: a repeated READ with a wrong key wedges the whole core. Right: silence where key, address or length are not those of the READ
/// that is remembered; the right one is answered again.
pub fn duplicate_read_is_checked<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (address, length) = (raw.offer.address + PLACE, 2 * raw.pmtu + 8);
    let data = bytes(4, length as usize);
    raw.write(station, address, &data)?;
    let first = raw.psn;
    same("that was read", &raw.read(station, address, length)?, &data)?;
    let key = raw.offer.rkey;
    for (rkey, at, asked) in [
        (key ^ 1, address, length),
        (key ^ 1 << 31, address, length),
        (key, address + 4, length),
        (key, address, length + 4),
        (key, end(&raw.offer), length),
    ] {
        let mut packet = raw.read_request(first, at, asked);
        packet.ext.reth.iter_mut().for_each(|reth| reth.rkey = rkey);
        raw.put(station, &packet)?;
        raw.silent(station)?;
        raw.alive(station)?;
    }
    // Slots are few, and those of `alive` are newer: it may be forgotten by now, so a new one is repeated.
    let first = raw.psn;
    raw.read(station, address, length)?;
    raw.put(station, &raw.read_request(first, address, length))?;
    same("that was read again", &raw.responses(station, first, length)?, &data)?;
    raw.alive(station)?;
    raw.close(station)
}

/// Fault: a repeated atomic gets the remembered answer without a check. Right: silence where its key, right or address is wrong; else the
/// remembered answer, and nothing is added again.
pub fn duplicate_atomic_is_checked<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (first, address) = (raw.psn, raw.offer.address + PLACE);
    raw.write(station, address, &7_u64.to_le_bytes())?;
    let first = psn::add(first, 1);
    raw.psn = psn::add(first, 1);
    let right = raw.fetch_add(first, address, 5);
    raw.put(station, &right)?;
    found(&raw.hear(station, ANSWER_NS, 9)?, first, 7)?;
    for (rkey, at) in [
        (raw.offer.rkey ^ 1, address),
        (raw.offer.rkey ^ 1 << 30, address),
        (raw.offer.rkey, end(&raw.offer)),
        (raw.offer.rkey, address + 4),
    ] {
        let mut packet = right.clone();
        packet.ext.atomic.iter_mut().for_each(|atomic| (atomic.rkey, atomic.address) = (rkey, at));
        raw.put(station, &packet)?;
        raw.silent(station)?;
    }
    raw.put(station, &right)?;
    found(&raw.hear(station, ANSWER_NS, 9)?, first, 7)?;
    same("after a repeated atomic", &raw.read(station, address, 8)?, &12_u64.to_le_bytes())?;
    raw.close(station)
}

/// One ATOMIC ACK with the value that was found.
fn found(heard: &[Heard], psn: u32, value: u64) -> io::Result<()> {
    let right =
        matches!(heard, [one] if one.opcode() == Opcode::ATOMIC_ACK && one.psn() == psn && one.packet.ext.atomic_ack == Some(value));
    ensure(right, || format!("an atomic that found {value} got {}", names(heard)))
}

/// Behind the last byte of a region.
fn end(offer: &Offer) -> u64 {
    offer.address.wrapping_add(offer.length.into())
}

/// Fault: a READ is not held to the region, or its length is taken on trust. Right: one byte before, one byte behind, at 2^32 and at 2^64: access
/// NAK; beyond 2^31 bytes: invalid request; the last byte is read.
pub fn read_is_bounded<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let offer = raw.offer;
    let last = end(&offer).wrapping_sub(1);
    raw.write(station, last, &[0x5a])?;
    same("at the end of the region", &raw.read(station, last, 1)?, &[0x5a])?;
    raw.close(station)?;
    for (address, length, syndrome) in [
        (last, 2, Syndrome::AccessError),
        (offer.address.wrapping_sub(1), 2, Syndrome::AccessError),
        (offer.address, offer.length + 1, Syndrome::AccessError),
        (end(&offer), 1, Syndrome::AccessError),
        (offer.address ^ 1 << 32, 4, Syndrome::AccessError),
        (u64::MAX, 1, Syndrome::AccessError),
        (u64::MAX, 2, Syndrome::AccessError),
        (offer.address, 0x8000_0001, Syndrome::InvalidRequest),
    ] {
        let mut raw = Raw::connect(station, ground.region)?;
        raw.put(station, &raw.read_request(raw.psn, address, length))?;
        raw.answered(station, raw.psn, syndrome)?;
        raw.close(station)?;
    }
    Raw::connect(station, ground.region)?.close(station)
}

/// Fault: MIDDLE and LAST run past the region, since only the first packet is looked at. Right: the payloads together are what the first packet
/// announced, else invalid request; what it announced lies in the region, else access NAK; nothing behind is written.
pub fn write_stays_inside<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (pmtu, offer, address) = (raw.pmtu, raw.offer, raw.offer.address + PLACE);
    let before = bytes(5, 3 * pmtu as usize);
    raw.write(station, address, &before)?;
    raw.close(station)?;
    // Announced, then the second packet: opcode, bytes.
    for (announced, opcode, size, ok) in [
        (pmtu + 8, Opcode::WRITE_LAST, 8, true),
        (pmtu + 8, Opcode::WRITE_LAST, 12, false),
        (pmtu + 8, Opcode::WRITE_LAST, 9, false),
        (pmtu + 8, Opcode::WRITE_LAST, pmtu, false),
        (pmtu + 8, Opcode::WRITE_MIDDLE, pmtu, false),
        (2 * pmtu, Opcode::WRITE_MIDDLE, pmtu, false),
        (pmtu + 8, Opcode::WRITE_LAST, 4, false),
    ] {
        let mut raw = Raw::connect(station, ground.region)?;
        let fresh = bytes(announced ^ size, 2 * pmtu as usize);
        let (first, second) = (raw.psn, psn::add(raw.psn, 1));
        let mut packet = raw.packet(Opcode::WRITE_FIRST, first, raw.reth(address, announced), &fresh[..pmtu as usize]);
        packet.bth.ack_request = false;
        raw.put(station, &packet)?;
        raw.put(station, &raw.packet(opcode, second, raw.reth(0, 0), &fresh[pmtu as usize..][..size as usize]))?;
        raw.answered(station, second, if ok { Syndrome::OK } else { Syndrome::InvalidRequest })?;
        raw.close(station)?;
        let mut raw = Raw::connect(station, ground.region)?;
        let mut wanted = before.clone();
        wanted[..pmtu as usize].copy_from_slice(&fresh[..pmtu as usize]);
        if ok {
            wanted[pmtu as usize..][..8].copy_from_slice(&fresh[pmtu as usize..][..8]);
        }
        same("around a WRITE that goes too far", &raw.read(station, address, 3 * pmtu)?, &wanted)?;
        raw.write(station, address, &before)?;
        raw.close(station)?;
    }
    let mut raw = Raw::connect(station, ground.region)?;
    let at = end(&offer).wrapping_sub(u64::from(pmtu));
    raw.put(station, &raw.packet(Opcode::WRITE_FIRST, raw.psn, raw.reth(at, pmtu + 1), &bytes(6, pmtu as usize)))?;
    raw.answered(station, raw.psn, Syndrome::AccessError)?;
    raw.close(station)
}

/// Fault: a WRITE that is not aligned overwrites the bytes beside it. Right: at every offset and length, exactly its bytes change.
pub fn unaligned_write_spares_neighbours<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let address = raw.offer.address + PLACE;
    let mut wanted = bytes(7, 128);
    raw.write(station, address, &wanted)?;
    for offset in 0..8 {
        for length in (1..10).chain([31, 64, 67]) {
            let data = bytes((offset * 100 + length) as u32, length);
            let at = 24 + offset;
            raw.write(station, address + at as u64, &data)?;
            wanted[at..at + length].copy_from_slice(&data);
            same(&format!("around {length} bytes at offset {offset}"), &raw.read(station, address, 128)?, &wanted)?;
        }
    }
    raw.close(station)
}

/// Fault: the ICRC is not looked at. Right: each wrong bit of it, or of what it covers, costs the packet, in silence, and no byte is written.
pub fn wrong_icrc_is_dropped<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (address, before) = (raw.offer.address + PLACE, bytes(8, 32));
    raw.write(station, address, &before)?;
    let frame = raw.frame(&raw.write_only(raw.psn, address, &bytes(9, 32)));
    // The payload and the ICRC behind it.
    for bit in (frame.len() - 36) * 8..frame.len() * 8 {
        let mut harmed = frame.clone();
        harmed[bit / 8] ^= 1 << (bit % 8);
        station.inject(&harmed)?;
    }
    let heard = raw.hear(station, 36 * 8 * (frame.len() as u64 + 24) * 8 + ANSWER_NS, usize::MAX)?;
    ensure(heard.is_empty(), || format!("packets with a wrong ICRC got {}", names(&heard)))?;
    same("after packets with a wrong ICRC", &raw.read(station, address, 32)?, &before)?;
    raw.close(station)
}

/// Fault: the sender's IP address is not looked at, so that anybody writes. Right: silence, nothing is written.
pub fn source_ip_is_checked<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (address, before) = (raw.offer.address + PLACE, bytes(10, 16));
    raw.write(station, address, &before)?;
    let right = raw.head.source_ip;
    for bit in 0..32 {
        raw.head.source_ip = std::net::Ipv4Addr::from(u32::from(right) ^ 1 << bit);
        raw.put(station, &raw.write_only(raw.psn, address, &bytes(bit, 16)))?;
    }
    raw.silent(station)?;
    raw.head.source_ip = right;
    same("after a stranger's WRITE", &raw.read(station, address, 16)?, &before)?;
    raw.close(station)
}

/// Fault: a truncated packet spoils the next. Right: cut at every byte, lengths made to fit or not, it does nothing, and the packet right behind it
/// is executed.
pub fn truncated_packet_spoils_nothing<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let address = raw.offer.address + PLACE;
    let whole = raw.write_only(raw.psn, address + 64, &bytes(11, 32));
    let length = raw.frame(&whole).len();
    for cut in 15..length {
        let packet = crate::packet::Packet { bth: crate::packet::Bth { psn: raw.psn, ..whole.bth }, ..whole.clone() };
        let frame = raw.frame(&packet);
        // The UDP and IP lengths say what was, or what is left of the transport; its ICRC is right then.
        let transport = packet.encode();
        let fitted = (cut >= 42 && cut - 42 < transport.len()).then(|| raw.head.wrap(&transport[..cut - 42]));
        for harmed in [Some(frame[..cut].to_vec()), fitted.filter(|_| is_wrong(cut - 42, &transport))].into_iter().flatten() {
            station.inject(&harmed)?;
            let data = bytes(cut as u32, 32);
            raw.write(station, address, &data).map_err(|error| super::wrong(format!("behind one cut to {cut} bytes: {error}")))?;
            same("behind a truncated packet", &raw.read(station, address, 32)?, &data)?;
        }
    }
    raw.close(station)
}

/// Whether a transport packet cut to so many bytes is dropped, not answered by a NAK: its headers are not whole, or it is no multiple of four bytes.
fn is_wrong(cut: usize, transport: &[u8]) -> bool {
    debug_assert!(cut < transport.len());
    cut < 12 + 16 || !cut.is_multiple_of(4)
}

/// Fault: a FIFO of ACKs overflows and a READ is never answered. Right: 64 WRITEs in a row that each ask for an ACK, then a READ: the last WRITE is
/// acknowledged, and then every byte comes.
pub fn many_acks_then_a_read<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let address = raw.offer.address + PLACE;
    let (first, data) = (raw.psn, bytes(12, 64 * 8));
    for n in 0..64 {
        raw.put(station, &raw.write_only(first + n, address + u64::from(8 * n), &data[8 * n as usize..][..8]))?;
    }
    let read = psn::add(first, 64);
    raw.put(station, &raw.read_request(read, address, 512))?;
    let count = psn::count(512, raw.pmtu) as usize;
    let heard = raw.hear(station, 64 * 120 * 8 + 2 * ANSWER_NS, usize::MAX)?;
    let (acks, responses) = heard.split_at(heard.len().saturating_sub(count));
    let rising = acks.windows(2).all(|pair| psn::diff(pair[1].psn(), pair[0].psn()) > 0);
    let right = rising
        && acks.last().is_some_and(|last| psn::add(last.psn(), 1) == read)
        && acks.iter().all(|ack| ack.opcode() == Opcode::ACK && ack.syndrome().is_some_and(Syndrome::is_ack))
        && responses.iter().enumerate().all(|(at, one)| one.psn() == psn::add(read, at as u32));
    ensure(right, || format!("64 WRITEs and a READ got {}", names(&heard)))?;
    same("behind many ACKs", &responses.iter().flat_map(|one| one.packet.payload.clone()).collect::<Vec<_>>(), &data)?;
    raw.psn = psn::add(read, count as u32);
    raw.alive(station)?;
    raw.close(station)
}

/// Complaint: writes stall above 4 to 8 KB. Right: 4 KiB to 64 KiB take the wire's time, and no packet goes twice.
pub fn long_write_does_not_stall<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let (id, offer) = connect(station, ground.region)?;
    let pmtu = qp(station, id)?.config.pmtu;
    for size in [4096_u32, 8192, 12_288, 65_536].into_iter().filter(|size| *size <= offer.length) {
        station.node.memory.write(LOCAL, &bytes(size, size as usize));
        let start = station.now();
        let works = [work(0, Operation::Write { imm: None }, LOCAL, size, offer.address, &offer)];
        let done = complete(station, id, &works, PATIENCE_NS)?;
        let (took, wire) = (station.now() - start, f64::from(size + psn::count(size, pmtu) * 82) * station.byte_ns);
        let resends = qp(station, id)?.resends();
        ensure(done[0].status == Status::Success && resends == (0, 0), || format!("{size} bytes: {done:?}, resent {resends:?}"))?;
        ensure(took as f64 <= wire * 1.02 + 5000.0, || format!("{size} bytes took {took} ns, the wire {wire} ns"))?;
        let back = [work(1, Operation::Read, LOCAL + 0x2_0000, size, offer.address, &offer)];
        complete(station, id, &back, PATIENCE_NS)?;
        let memory = &station.node.memory;
        same("of a long WRITE", memory.read(LOCAL + 0x2_0000, size as usize).unwrap_or_default(), &bytes(size, size as usize))?;
    }
    disconnect(station, id)
}

/// Complaint: what is sent again ends with the wrong opcode. Right: a READ that is repeated from its packet k on is answered by FIRST to LAST, its
/// last packet alone by ONLY.
pub fn read_replay_keeps_the_last_flag<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (address, length) = (raw.offer.address + PLACE, 3 * raw.pmtu + 5);
    let data = bytes(13, length as usize);
    raw.write(station, address, &data)?;
    let first = raw.psn;
    raw.read(station, address, length)?;
    for k in 0..4 {
        let skipped = k * raw.pmtu;
        raw.put(station, &raw.read_request(psn::add(first, k), address + u64::from(skipped), length - skipped))?;
        let found = raw.responses(station, psn::add(first, k), length - skipped)?;
        same("of a READ that was resumed", &found, &data[skipped as usize..])?;
    }
    raw.alive(station)?;
    raw.close(station)
}

/// Complaint: stuck after a loss. Right: after the last packet of a WRITE, its ACK, a READ request or the last response was lost, it completes by
/// the timeout, and the next request works.
pub fn goes_on_after_loss<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    station.node.limits.ack_timeout = 6;
    let (id, offer) = connect(station, ground.region)?;
    let length = 3 * qp(station, id)?.config.pmtu;
    // Lost: which direction, which of its packets.
    for (operation, outward, lost) in [
        (Operation::Write { imm: None }, true, 2),
        (Operation::Write { imm: None }, false, 0),
        (Operation::Read, true, 0),
        (Operation::Read, false, 2),
    ] {
        let data = bytes(lost as u32 + 14, length as usize);
        station.node.memory.write(LOCAL, &data);
        let links = [Link::new(0, Faults::default(), 0), Link::new(0, Faults::default(), 0)];
        [station.outward, station.inward] = links;
        let link = if outward { &mut station.outward } else { &mut station.inward };
        link.drop_numbers.push(lost);
        let before = qp(station, id)?.resends().0;
        let done = complete(station, id, &[work(0, operation, LOCAL, length, offer.address, &offer)], PATIENCE_NS)?;
        ensure(done[0].status == Status::Success, || format!("{operation:?}: {done:?}"))?;
        ensure(qp(station, id)?.resends().0 > before, || format!("{operation:?}: nothing was lost"))?;
        let again = [work(1, Operation::Read, LOCAL + 0x1_0000, length, offer.address, &offer)];
        let done = complete(station, id, &again, PATIENCE_NS)?;
        ensure(done[0].status == Status::Success, || format!("after {operation:?}: {done:?}"))?;
        let memory = &station.node.memory;
        let (here, there) = (memory.read(LOCAL, length as usize), memory.read(LOCAL + 0x1_0000, length as usize));
        same("after a loss", here.unwrap_or_default(), there.unwrap_or_default())?;
    }
    disconnect(station, id)
}

/// Complaint: READ fails at some sizes. Right: every size from 0 to 72, and those around each multiple of the path MTU up to three, from every
/// alignment, byte by byte.
pub fn read_of_every_size<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let (pmtu, address) = (raw.pmtu, raw.offer.address + PLACE);
    let data = bytes(15, 4 * pmtu as usize);
    raw.write(station, address, &data)?;
    let around = (1..=3).flat_map(|n| (n * pmtu - 5..=n * pmtu + 5).map(|size| size as usize));
    for (n, size) in (0..=72).chain(around).enumerate() {
        let skew = n % 8;
        let found = raw.read(station, address + skew as u64, size as u32)?;
        same(&format!("of a READ of {size} bytes at offset {skew}"), &found, &data[skew..skew + size])?;
    }
    raw.close(station)
}

/// Complaint: dead after one packet. Right: one by one, with pauses of 1 us to 1 ms, each is answered.
pub fn not_dead_after_one_packet<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    for pause in [0, 1_000, 10_000, 100_000, 1_000_000] {
        let until = station.now() + pause;
        station.run(until, |_| false)?;
        raw.alive(station)?;
    }
    raw.close(station)
}

/// Complaint: messages without bytes and the PSN. Right: a WRITE and a READ of nothing take one PSN each, their key is not looked at.
pub fn zero_length_takes_a_psn<W: Wire>(station: &mut Station<W>, ground: &Ground) -> io::Result<()> {
    let mut raw = Raw::connect(station, ground.region)?;
    let address = raw.offer.address + PLACE;
    for nowhere in [false, true] {
        let mut write = raw.write_only(raw.psn, address, &[]);
        let mut read = raw.read_request(psn::add(raw.psn, 1), address, 0);
        if nowhere {
            for reth in [&mut write, &mut read].into_iter().filter_map(|packet| packet.ext.reth.as_mut()) {
                (reth.rkey, reth.address) = (!raw.offer.rkey, 0xdead_beef_dead_beef);
            }
        }
        raw.put(station, &write)?;
        raw.answered(station, raw.psn, Syndrome::OK)?;
        raw.put(station, &read)?;
        raw.responses(station, psn::add(raw.psn, 1), 0)?;
        raw.psn = psn::add(raw.psn, 2);
        raw.alive(station)?;
    }
    raw.close(station)
}
