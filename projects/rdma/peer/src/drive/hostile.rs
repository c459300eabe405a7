//! Hostile packets, one at a time: what the board answers must be what the reference model answers, and at the end its memory must be
//! the model's.
//!
//! SENDs that would be accepted and WRITEs with immediate are left out: whether the board has a receive is its application's matter.

use super::{LOCAL, Offer, Target, complete, connect, disconnect, read_back, work, wrong};
use crate::live::{Station, Wire};
use crate::model::{Access, Config, Memory, Operation, Qp, Region, State};
use crate::packet::{AtomicEth, Bth, Extensions, Frame, Opcode, Packet, Reth, mtu_of_code};
use crate::psn;
use crate::rng::Rng;
use std::io;

/// What was tried.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub packets: u64,
    pub connections: u64,
    /// Frame, what the model answers, what the board answered.
    pub mismatches: Vec<String>,
}

/// Bytes of the region that are in play.
const USED: u32 = 1 << 14;

/// `packets` random packets, right and wrong, decided by `seed`.
///
/// # Errors
/// Those of the wire. Differences are in the outcome.
pub fn random<W: Wire>(station: &mut Station<W>, target: Target, seed: u64, packets: u64) -> io::Result<Outcome> {
    let mut rng = Rng::new(seed);
    let mut outcome = Outcome::default();
    while outcome.packets < packets {
        outcome.connections += 1;
        series(station, target, &mut rng, packets, &mut outcome)?;
    }
    Ok(outcome)
}

/// Packets on one connection until it is in error, or 64.
fn series<W: Wire>(station: &mut Station<W>, target: Target, rng: &mut Rng, packets: u64, outcome: &mut Outcome) -> io::Result<()> {
    let (id, offer) = connect(station, target)?;
    let used = USED.min(offer.length);
    let mut contents = vec![0; used as usize];
    rng.fill(&mut contents);
    station.node.memory.write(LOCAL, &contents);
    let mut shadow = Shadow::new(station, id, offer)?;
    let from = station.records.len();
    complete(station, id, &[work(0, Operation::Write { imm: None }, LOCAL, used, offer.address, &offer)], super::PATIENCE_NS)?;
    shadow.follow(station, from);
    for _ in 0..64 {
        if outcome.packets >= packets || shadow.qp.state == State::Error {
            break;
        }
        outcome.packets += 1;
        let bytes = packet(rng, &shadow, offer, used);
        let wanted = shadow.take(&bytes);
        let from = station.records.len();
        station.inject(&bytes)?;
        // Time for the request, the answers, and a board that thinks.
        let size = wanted.iter().map(|packet| packet.payload.len() + 100).sum::<usize>() + bytes.len();
        let until = station.now() + 30_000 + (size as f64 * station.byte_ns * 1.2) as u64;
        station.run(until, |_| false)?;
        let (mut found, mut wanted) = (shadow.answers(station, from), wanted);
        if reaches_beyond(&bytes, offer, used) {
            // What is behind the part in play is not known.
            found.iter_mut().chain(&mut wanted).for_each(|packet| {
                packet.payload.fill(0);
                packet.ext.atomic_ack = packet.ext.atomic_ack.map(|_| 0);
            });
        }
        if found != wanted {
            let show = |packets: &[Packet]| match packets {
                [first, .., last] if packets.len() > 3 => {
                    format!("{}, ... {} packets, {}", summary(first), packets.len() - 2, summary(last))
                }
                _ => packets.iter().map(summary).collect::<Vec<_>>().join(", "),
            };
            let hex = bytes.iter().take(90).map(|byte| format!("{byte:02x}")).collect::<String>();
            let asked = Frame::decode(&bytes).map_or_else(|refusal| refusal.to_string(), |frame| summary(&frame.packet));
            outcome.mismatches.push(format!("{asked} [{hex}]: wanted [{}], got [{}]", show(&wanted), show(&found)));
            // From here on the two are no longer in step.
            break;
        }
    }
    disconnect(station, id)?;
    let found = read_back(station, target, LOCAL + u64::from(USED), used)?;
    let wanted = shadow.memory.read(offer.address, used as usize).unwrap_or_default();
    if let Some(at) = found.iter().zip(wanted).position(|(a, b)| a != b) {
        outcome.mismatches.push(format!("byte {at} of the region is {:#04x}, not {:#04x}", found[at], wanted[at]));
    }
    Ok(())
}

/// The model in the board's place, fed with what the board gets.
struct Shadow {
    qp: Qp,
    memory: Memory,
    /// A right frame's addresses and ports.
    head: Frame,
}

impl Shadow {
    fn new<W: Wire>(station: &mut Station<W>, id: usize, offer: Offer) -> io::Result<Shadow> {
        let connection = &station.node.connections[id];
        let rep = connection.rep.clone().ok_or_else(|| wrong("no REP".into()))?;
        let config = Config {
            local_qpn: rep.local_qpn,
            remote_qpn: connection.local_qpn,
            pmtu: mtu_of_code(connection.req.path_mtu).unwrap_or(1024),
            send_psn: connection.req.starting_psn,
            receive_psn: rep.starting_psn,
            responder_resources: rep.responder_resources,
            access: Access::ALL,
            ..Config::default()
        };
        let mut memory = Memory::new(offer.address, offer.length as usize);
        let (base, length) = (offer.address, offer.length.into());
        memory.regions.push(Region {
            base,
            length,
            rkey: offer.rkey,
            domain: config.domain,
            access: Access::ALL,
            invalidate: false,
            valid: true,
        });
        let last = station.records.iter().rev().filter_map(|record| Frame::decode(&record.frame).ok());
        let head = last.into_iter().find(|frame| frame.source_ip == station.node.ip).ok_or_else(|| wrong("nothing was sent".into()))?;
        Ok(Shadow { qp: Qp::new(config), memory, head })
    }

    /// Takes what the node itself has sent since record `from`.
    fn follow<W: Wire>(&mut self, station: &Station<W>, from: usize) {
        for record in &station.records[from..] {
            if Frame::decode(&record.frame).is_ok_and(|frame| frame.source_ip == self.head.source_ip) {
                self.take(&record.frame);
            }
        }
    }

    /// What the model answers to a frame.
    fn take(&mut self, bytes: &[u8]) -> Vec<Packet> {
        let Ok(frame) = Frame::decode(bytes) else { return Vec::new() };
        let ours = frame.destination == self.head.destination
            && frame.destination_ip == self.head.destination_ip
            && frame.source_ip == self.head.source_ip
            && frame.packet.bth.destination == self.qp.config.local_qpn;
        if !ours {
            return Vec::new();
        }
        self.qp.receive(0, &frame.packet, false, &mut self.memory);
        std::iter::from_fn(|| self.qp.poll(0, &self.memory)).map(comparable).collect()
    }

    /// What the board has answered on this connection since record `from`.
    fn answers<W: Wire>(&self, station: &Station<W>, from: usize) -> Vec<Packet> {
        let frames = station.records[from..].iter().filter_map(|record| Frame::decode(&record.frame).ok());
        let answers =
            frames.filter(|frame| frame.source_ip == self.head.destination_ip && frame.packet.bth.destination == self.qp.config.remote_qpn);
        answers.map(|frame| comparable(frame.packet)).collect()
    }
}

/// Whether a request names bytes of the region behind the part in play.
fn reaches_beyond(bytes: &[u8], offer: Offer, used: u32) -> bool {
    let Ok(frame) = Frame::decode(bytes) else { return false };
    let reth = frame.packet.ext.reth.map(|reth| (reth.address, u64::from(reth.length)));
    let end = reth.or(frame.packet.ext.atomic.map(|atomic| (atomic.address, 8))).map(|(address, length)| address.wrapping_add(length));
    end.is_some_and(|end| end > offer.address + u64::from(used))
}

/// Without what a responder may choose: MigReq, solicited, the credit count.
fn comparable(mut packet: Packet) -> Packet {
    (packet.bth.migration, packet.bth.solicited, packet.bth.ack_request) = (true, false, false);
    if let Some(aeth) = packet.ext.aeth.as_mut().filter(|aeth| aeth.syndrome.is_ack()) {
        aeth.syndrome = crate::packet::Syndrome::OK;
    }
    packet
}

fn summary(packet: &Packet) -> String {
    let aeth = packet.ext.aeth.map_or(String::new(), |aeth| format!(" {:?} MSN {}", aeth.syndrome, aeth.msn));
    format!("{} PSN {:#08x}{aeth} {} bytes", packet.bth.opcode, packet.bth.psn, packet.payload.len())
}

/// A frame: a right packet for the model's state, or one with something wrong in it.
fn packet(rng: &mut Rng, shadow: &Shadow, offer: Offer, used: u32) -> Vec<u8> {
    let config = &shadow.qp.config;
    let pmtu = config.pmtu;
    let mut bth = Bth::new(Opcode::WRITE_ONLY, config.local_qpn, shadow.qp.expected_psn());
    bth.ack_request = true;
    let within = |rng: &mut Rng, length: u32| offer.address + rng.below(u64::from(used - length + 1));
    let mut ext = Extensions::default();
    let mut payload = Vec::new();
    // A message that has begun is mostly gone on with.
    if let Some(left) = shadow.qp.write_left().filter(|_| rng.below(8) != 0) {
        let size = left.min(pmtu);
        bth.opcode = if left > pmtu { Opcode::WRITE_MIDDLE } else { Opcode::WRITE_LAST };
        payload = vec![0; size as usize];
    } else {
        match rng.below(10) {
            0..=2 => {
                let length = rng.below(u64::from(pmtu) + 1) as u32;
                ext.reth = Some(Reth { address: within(rng, length), rkey: offer.rkey, length });
                payload = vec![0; length as usize];
            }
            3 | 4 => {
                let length = pmtu + 1 + rng.below(u64::from(2 * pmtu)) as u32;
                bth.opcode = Opcode::WRITE_FIRST;
                ext.reth = Some(Reth { address: within(rng, length), rkey: offer.rkey, length });
                payload = vec![0; pmtu as usize];
            }
            5..=7 => {
                let length = rng.below(u64::from(4 * pmtu)) as u32;
                bth.opcode = Opcode::READ_REQUEST;
                ext.reth = Some(Reth { address: within(rng, length), rkey: offer.rkey, length });
            }
            kind => {
                bth.opcode = if kind == 8 { Opcode::FETCH_ADD } else { Opcode::COMPARE_SWAP };
                let address = within(rng, 16).next_multiple_of(8);
                let found = shadow.memory.read(address, 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
                let compare = if rng.below(2) == 0 { found } else { rng.next_u64() };
                ext.atomic = Some(AtomicEth { address, rkey: offer.rkey, operand: rng.next_u64(), compare });
            }
        }
    }
    rng.fill(&mut payload);
    let mut packet = Packet::new(bth, ext, payload);
    let mut head = shadow.head.clone();
    let harm = rng.below(40);
    harm_packet(harm, rng, &mut packet, offer, pmtu);
    match harm {
        20 => head.destination_ip = std::net::Ipv4Addr::from(u32::from(head.destination_ip) ^ 1 << rng.below(8)),
        21 => head.source_ip = std::net::Ipv4Addr::from(u32::from(head.source_ip) ^ 1 << rng.below(8)),
        22 => packet.bth.destination ^= 1 << rng.below(24),
        // A right CNP, which has no answer, and one for nobody.
        34 | 35 => {
            let destination = config.local_qpn ^ u32::from(harm == 35) << rng.below(24);
            let bth = Bth { becn: true, ..Bth::new(Opcode::CNP, destination, 0) };
            packet = Packet::new(bth, Extensions::default(), vec![0; 16]);
        }
        _ => {}
    }
    head.packet = packet;
    let mut bytes = head.encode();
    match harm {
        // Any bit behind the UDP ports, with the ICRC as it was.
        23 | 24 => {
            let bit = 38 * 8 + rng.below((bytes.len() as u64 - 38) * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        // Cut inside the transport, lengths and ICRC made to fit.
        25 | 26 => {
            let transport = head.packet.encode();
            let length = rng.below(transport.len() as u64) as usize;
            bytes = head.wrap(&transport[..length]);
        }
        // Cut without anything made to fit.
        27 => bytes.truncate(14 + rng.below(bytes.len() as u64 - 14) as usize),
        // A random bit in the BTH or an extension header, sealed again.
        28..=30 => {
            let mut transport = head.packet.encode();
            let extent = 12 + head.packet.bth.opcode.extension_size();
            // Not the AckReq bit: coalescing is free.
            let bit = rng.below(extent as u64 * 8) as usize;
            if bit != 8 * 8 {
                transport[bit / 8] ^= 1 << (7 - bit % 8);
            }
            let resealed = head.wrap(&transport);
            if acceptable(&resealed) {
                bytes = resealed;
            }
        }
        // Another pad count over the same bytes.
        32 | 33 => {
            let mut transport = head.packet.encode();
            transport[1] ^= (1 + rng.below(3) as u8) << 4;
            bytes = head.wrap(&transport);
        }
        // More bytes than announced.
        31 => {
            let transport = [head.packet.encode(), vec![0; 4 * (1 + rng.below(3) as usize)]].concat();
            bytes = head.wrap(&transport);
        }
        _ => {}
    }
    bytes
}

/// Whether a frame is one that these tests may send: it takes no receive of the board's, and its AckReq is set.
fn acceptable(bytes: &[u8]) -> bool {
    let Ok(frame) = Frame::decode(bytes) else { return true };
    let opcode = frame.packet.bth.opcode;
    let takes_receive = opcode.0 <= 0x05 || matches!(opcode.0, 0x09 | 0x0b | 0x16 | 0x17);
    let service = opcode.0 & 0xe0;
    !takes_receive && service == 0 && opcode.class().is_some()
}

/// What can be wrong in a packet that is otherwise whole.
fn harm_packet(harm: u64, rng: &mut Rng, packet: &mut Packet, offer: Offer, pmtu: u32) {
    let region_end = offer.address.wrapping_add(offer.length.into());
    let (reth, atomic) = (packet.ext.reth.as_mut(), packet.ext.atomic.as_mut());
    match harm {
        0 => packet.bth.psn = psn::add(packet.bth.psn, 1 + rng.below(3) as u32),
        1 | 2 => packet.bth.psn = psn::add(packet.bth.psn, psn::MASK - rng.below(6) as u32),
        3 => packet.bth.psn = rng.below(1 << 24) as u32,
        4 => packet.bth.psn = psn::add(packet.bth.psn, 0x80_0000 - 1 + rng.below(3) as u32),
        5 => match (reth, atomic) {
            (Some(reth), _) => reth.rkey ^= 1 << rng.below(32),
            (_, Some(atomic)) => atomic.rkey ^= 1 << rng.below(32),
            _ => {}
        },
        // One byte before the region, one behind its end, at 2^32 and at 2^64.
        6..=9 => {
            let length = reth.as_ref().map_or(8, |reth| u64::from(reth.length));
            let address = match harm {
                6 => offer.address.wrapping_sub(1),
                7 => region_end.wrapping_sub(length).wrapping_add(1),
                8 => offer.address ^ 1 << 32,
                _ => u64::MAX - rng.below(length.max(1)),
            };
            match (reth, atomic) {
                (Some(reth), _) => reth.address = address,
                // Aligned, so that the bounds decide, and not inside again.
                (_, Some(atomic)) => atomic.address = if harm == 7 { region_end.next_multiple_of(8) } else { address & !7 },
                _ => {}
            }
        }
        10 => {
            if let Some(reth) = reth {
                reth.length = reth.length.wrapping_add(1);
            }
        }
        11 => {
            if let Some(reth) = reth {
                reth.length = reth.length.wrapping_sub(1);
            }
        }
        12 => {
            if let Some(reth) = reth {
                reth.length = [0x8000_0000, 0x8000_0001, 0xffff_ffff, 0][rng.below(4) as usize];
            }
        }
        13 => {
            if let Some(atomic) = atomic {
                atomic.address += 1 + rng.below(7);
            }
        }
        14 => packet.bth.pad = packet.bth.pad.wrapping_add(1 + rng.below(3) as u8) & 3,
        15 => packet.bth.pkey = [0x7fff, 0, 0x8000, 0x1234, 0xfffe][rng.below(5) as usize],
        16 => packet.bth.version = 1 + rng.below(15) as u8,
        17 => {
            let length = [0, 1, 4, pmtu as usize - 4, pmtu as usize, pmtu as usize + 4][rng.below(6) as usize];
            packet.payload.resize(length, 0x5a);
            packet.bth.pad = (length.wrapping_neg() & 3) as u8;
        }
        // Another opcode with these contents.
        18 | 19 => {
            let opcodes = [
                Opcode::WRITE_FIRST,
                Opcode::WRITE_MIDDLE,
                Opcode::WRITE_LAST,
                Opcode::WRITE_ONLY,
                Opcode::READ_REQUEST,
                Opcode::FETCH_ADD,
                Opcode::READ_RESPONSE_ONLY,
                Opcode::ACK,
                Opcode::ATOMIC_ACK,
                Opcode::CNP,
            ];
            packet.bth.opcode = opcodes[rng.below(opcodes.len() as u64) as usize];
        }
        _ => {}
    }
}
