//! One step of a random list: a right packet for the state that the model is in, or one with something wrong in it.

use super::super::Offer;
use super::ground::{Ground, reth};
use crate::live::Wire;
use crate::packet::{AtomicEth, Bth, Extensions, Frame, Opcode, Packet};
use crate::psn;
use crate::rng::Rng;
use std::io;

/// Kinds of requests, and of harm that is done to them; 0 is none, and so is every number from [`HARMS`] on.
pub const KINDS: u8 = 10;
pub const HARMS: u8 = 37;

/// Bytes of the region that are in play.
const USED: u32 = 1 << 14;

/// What is sent next. Which packet that is depends on what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub kind: u8,
    pub harm: u8,
    /// Of addresses, lengths and contents.
    pub seed: u64,
}

/// `KIND.HARM.SEED`.
impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{:x}", self.kind, self.harm, self.seed)
    }
}

impl Step {
    /// From that.
    pub fn parse(text: &str) -> Option<Step> {
        let [kind, harm, seed] = text.split('.').collect::<Vec<_>>()[..] else { return None };
        Some(Step { kind: kind.parse().ok()?, harm: harm.parse().ok()?, seed: u64::from_str_radix(seed, 16).ok()? })
    }

    /// Steps with commas between them.
    pub fn list(text: &str) -> Option<Vec<Step>> {
        text.split(',').map(|step| Step::parse(step.trim())).collect()
    }

    /// Its frame, and the address that it aims at.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn frame<W: Wire>(self, ground: &mut Ground<W>) -> io::Result<(Vec<u8>, u64)> {
        let (offer, used) = (ground.offer, USED.min(ground.known));
        let mut rng = Rng::new(self.seed);
        let packet = self.right(ground, &mut rng, used)?;
        let aim = packet.ext.reth.map(|reth| reth.address).or(packet.ext.atomic.map(|atomic| atomic.address)).unwrap_or(offer.address);
        let bout = ground.bout()?;
        let (head, pmtu) = (bout.head.clone(), bout.pmtu());
        Ok((self.wrong(&mut rng, head, packet, offer, pmtu), aim))
    }

    /// A right packet.
    fn right<W: Wire>(self, ground: &mut Ground<W>, rng: &mut Rng, used: u32) -> io::Result<Packet> {
        let offer = ground.offer;
        let within = |rng: &mut Rng, length: u32| offer.address + rng.below(u64::from(used - length + 1));
        // A message that has begun is mostly gone on with.
        let goes_on = rng.below(8) != 0;
        let address = within(rng, 16).next_multiple_of(8);
        let found = ground.expected(address, 8).try_into().map_or(0, u64::from_le_bytes);
        let bout = ground.bout()?;
        let pmtu = bout.pmtu();
        let (opcode, ext, length) = if let Some(left) = bout.qp.write_left().filter(|_| goes_on) {
            let opcode = if left > pmtu { Opcode::WRITE_MIDDLE } else { Opcode::WRITE_LAST };
            (opcode, Extensions::default(), left.min(pmtu))
        } else {
            match self.kind {
                0..=2 => {
                    let length = rng.below(u64::from(pmtu) + 1) as u32;
                    (Opcode::WRITE_ONLY, reth(offer, within(rng, length), length), length)
                }
                3 | 4 => {
                    let length = pmtu + 1 + rng.below(u64::from(2 * pmtu)) as u32;
                    (Opcode::WRITE_FIRST, reth(offer, within(rng, length), length), pmtu)
                }
                5..=7 => {
                    let length = rng.below(u64::from(4 * pmtu)) as u32;
                    (Opcode::READ_REQUEST, reth(offer, within(rng, length), length), 0)
                }
                kind => {
                    let opcode = if kind == 8 { Opcode::FETCH_ADD } else { Opcode::COMPARE_SWAP };
                    let compare = if rng.below(2) == 0 { found } else { rng.next_u64() };
                    let atomic = AtomicEth { address, rkey: offer.rkey, operand: rng.next_u64(), compare };
                    (opcode, Extensions { atomic: Some(atomic), ..Extensions::default() }, 0)
                }
            }
        };
        let mut payload = vec![0; length as usize];
        rng.fill(&mut payload);
        Ok(bout.packet(opcode, 0, ext, &payload))
    }

    /// The frame of a packet, and what is wrong in it.
    fn wrong(self, rng: &mut Rng, mut head: Frame, mut packet: Packet, offer: Offer, pmtu: u32) -> Vec<u8> {
        let harm = self.harm.wrapping_sub(1);
        harm_packet(harm, rng, &mut packet, offer, pmtu);
        match harm {
            20 => head.destination_ip = std::net::Ipv4Addr::from(u32::from(head.destination_ip) ^ 1 << rng.below(8)),
            21 => head.source_ip = std::net::Ipv4Addr::from(u32::from(head.source_ip) ^ 1 << rng.below(8)),
            22 => packet.bth.destination ^= 1 << rng.below(24),
            // A right CNP, which has no answer, and one for nobody.
            34 | 35 => {
                let destination = packet.bth.destination ^ u32::from(harm == 35) << rng.below(24);
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
}

/// Whether a frame is one that is sent: it takes no receive of the board's, with which the connection would end.
fn acceptable(bytes: &[u8]) -> bool {
    let Ok(frame) = Frame::decode(bytes) else { return true };
    !matches!(frame.packet.bth.opcode.0, 0..=0x05 | 0x09 | 0x0b | 0x16 | 0x17)
}

/// What can be wrong in a packet that is otherwise whole.
fn harm_packet(harm: u8, rng: &mut Rng, packet: &mut Packet, offer: Offer, pmtu: u32) {
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
