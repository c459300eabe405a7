//! BTH and extension headers as named fields.

use super::opcode::{Extension, Opcode};

/// Base transport header, 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    pub opcode: Opcode,
    /// Solicited event.
    pub solicited: bool,
    pub migration: bool,
    /// Bytes behind the payload, 0 to 3.
    pub pad: u8,
    /// Transport version, 0.
    pub version: u8,
    pub pkey: u16,
    pub fecn: bool,
    pub becn: bool,
    /// 24 bits.
    pub destination: u32,
    pub ack_request: bool,
    /// 24 bits.
    pub psn: u32,
}

impl Bth {
    pub const SIZE: usize = 12;

    /// A header with the default P_Key and no flags but MigReq.
    pub fn new(opcode: Opcode, destination: u32, psn: u32) -> Self {
        Bth {
            opcode,
            solicited: false,
            migration: true,
            pad: 0,
            version: 0,
            pkey: 0xffff,
            fecn: false,
            becn: false,
            destination,
            ack_request: false,
            psn,
        }
    }

    pub fn encode(&self) -> [u8; 12] {
        let flags = u8::from(self.solicited) << 7 | u8::from(self.migration) << 6 | (self.pad & 3) << 4 | self.version & 15;
        let [_, d2, d1, d0] = self.destination.to_be_bytes();
        let [_, p2, p1, p0] = self.psn.to_be_bytes();
        let [k1, k0] = self.pkey.to_be_bytes();
        let congestion = u8::from(self.fecn) << 7 | u8::from(self.becn) << 6;
        [self.opcode.0, flags, k1, k0, congestion, d2, d1, d0, u8::from(self.ack_request) << 7, p2, p1, p0]
    }

    /// From at least 12 bytes.
    pub fn decode(b: &[u8]) -> Self {
        Bth {
            opcode: Opcode(b[0]),
            solicited: b[1] & 0x80 != 0,
            migration: b[1] & 0x40 != 0,
            pad: b[1] >> 4 & 3,
            version: b[1] & 15,
            pkey: u16::from_be_bytes([b[2], b[3]]),
            fecn: b[4] & 0x80 != 0,
            becn: b[4] & 0x40 != 0,
            destination: u32::from_be_bytes([0, b[5], b[6], b[7]]),
            ack_request: b[8] & 0x80 != 0,
            psn: u32::from_be_bytes([0, b[9], b[10], b[11]]),
        }
    }
}

/// RDMA extended transport header, 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reth {
    pub address: u64,
    pub rkey: u32,
    pub length: u32,
}

/// Atomic extended transport header, 28 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicEth {
    pub address: u64,
    pub rkey: u32,
    /// What is swapped in, or added.
    pub operand: u64,
    pub compare: u64,
}

/// What an AETH says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// With the credit count, 0x1f for none.
    Ack(u8),
    /// With the timer's code.
    Rnr(u8),
    SequenceError,
    InvalidRequest,
    AccessError,
    OperationError,
    /// A reserved value.
    Other(u8),
}

impl Syndrome {
    /// A positive acknowledgement without a credit limit.
    pub const OK: Syndrome = Syndrome::Ack(0x1f);

    pub fn encode(self) -> u8 {
        match self {
            Syndrome::Ack(credits) => credits & 0x1f,
            Syndrome::Rnr(code) => 0x20 | code & 0x1f,
            Syndrome::SequenceError => 0x60,
            Syndrome::InvalidRequest => 0x61,
            Syndrome::AccessError => 0x62,
            Syndrome::OperationError => 0x63,
            Syndrome::Other(value) => value,
        }
    }

    pub fn decode(value: u8) -> Self {
        match value {
            0x00..=0x1f => Syndrome::Ack(value),
            0x20..=0x3f => Syndrome::Rnr(value & 0x1f),
            0x60 => Syndrome::SequenceError,
            0x61 => Syndrome::InvalidRequest,
            0x62 => Syndrome::AccessError,
            0x63 => Syndrome::OperationError,
            _ => Syndrome::Other(value),
        }
    }

    pub fn is_ack(self) -> bool {
        matches!(self, Syndrome::Ack(_))
    }
}

/// ACK extended transport header, 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    pub syndrome: Syndrome,
    /// 24 bits.
    pub msn: u32,
}

/// Datagram extended transport header, 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deth {
    pub qkey: u32,
    /// 24 bits.
    pub source: u32,
}

/// The extension headers of a packet. Which of them are on the wire is the opcode's matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    pub deth: Option<Deth>,
    pub reth: Option<Reth>,
    pub atomic: Option<AtomicEth>,
    pub aeth: Option<Aeth>,
    /// The value that an atomic found.
    pub atomic_ack: Option<u64>,
    pub imm: Option<u32>,
    /// The key to invalidate.
    pub ieth: Option<u32>,
}

/// A transport packet without its ICRC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub bth: Bth,
    pub ext: Extensions,
    /// Without pad.
    pub payload: Vec<u8>,
}

impl Packet {
    /// A packet whose pad count fits `payload`.
    pub fn new(mut bth: Bth, ext: Extensions, payload: Vec<u8>) -> Self {
        bth.pad = (payload.len().wrapping_neg() & 3) as u8;
        Packet { bth, ext, payload }
    }

    /// BTH to the last pad byte. Absent headers that the opcode has are zeros; those that it lacks are left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Bth::SIZE + 28 + self.payload.len() + 3);
        out.extend(self.bth.encode());
        for extension in self.bth.opcode.extensions() {
            self.ext.encode(*extension, &mut out);
        }
        out.extend(&self.payload);
        out.extend(&[0; 3][..usize::from(self.bth.pad & 3)]);
        out
    }

    /// From BTH to the last pad byte; `None` where headers and pad do not fit.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bth = Bth::decode(bytes.get(..Bth::SIZE)?);
        let (mut ext, mut at) = (Extensions::default(), Bth::SIZE);
        for extension in bth.opcode.extensions() {
            ext.decode(*extension, bytes.get(at..at + extension.size())?);
            at += extension.size();
        }
        let end = bytes.len().checked_sub(usize::from(bth.pad))?;
        Some(Packet { bth, ext, payload: bytes.get(at..end)?.to_vec() })
    }
}

impl Extensions {
    fn encode(&self, extension: Extension, out: &mut Vec<u8>) {
        match extension {
            Extension::Deth => {
                let deth = self.deth.unwrap_or_default();
                out.extend(deth.qkey.to_be_bytes());
                out.extend(deth.source.to_be_bytes());
            }
            Extension::Reth => {
                let reth = self.reth.unwrap_or_default();
                out.extend(reth.address.to_be_bytes());
                out.extend(reth.rkey.to_be_bytes());
                out.extend(reth.length.to_be_bytes());
            }
            Extension::Atomic => {
                let atomic = self.atomic.unwrap_or_default();
                out.extend(atomic.address.to_be_bytes());
                out.extend(atomic.rkey.to_be_bytes());
                out.extend(atomic.operand.to_be_bytes());
                out.extend(atomic.compare.to_be_bytes());
            }
            Extension::Aeth => {
                let aeth = self.aeth.unwrap_or(Aeth { syndrome: Syndrome::Ack(0), msn: 0 });
                out.extend((u32::from(aeth.syndrome.encode()) << 24 | aeth.msn & 0xff_ffff).to_be_bytes());
            }
            Extension::AtomicAck => out.extend(self.atomic_ack.unwrap_or_default().to_be_bytes()),
            Extension::Imm => out.extend(self.imm.unwrap_or_default().to_be_bytes()),
            Extension::Ieth => out.extend(self.ieth.unwrap_or_default().to_be_bytes()),
        }
    }

    fn decode(&mut self, extension: Extension, b: &[u8]) {
        let word = |at: usize| u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        match extension {
            Extension::Deth => self.deth = Some(Deth { qkey: word(0), source: word(4) & 0xff_ffff }),
            Extension::Reth => self.reth = Some(Reth { address: long(0), rkey: word(8), length: word(12) }),
            Extension::Atomic => {
                self.atomic = Some(AtomicEth { address: long(0), rkey: word(8), operand: long(12), compare: long(20) });
            }
            Extension::Aeth => self.aeth = Some(Aeth { syndrome: Syndrome::decode(b[0]), msn: word(0) & 0xff_ffff }),
            Extension::AtomicAck => self.atomic_ack = Some(long(0)),
            Extension::Imm => self.imm = Some(word(0)),
            Extension::Ieth => self.ieth = Some(word(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_opcode_and_pad_survives_the_wire() {
        let mut rng = Rng::new(1);
        for opcode in Opcode::all() {
            for length in 0..9 {
                let mut bytes = vec![0; Bth::SIZE + opcode.extension_size() + length];
                rng.fill(&mut bytes);
                // Reserved bits come back as zeros, so they start as such.
                bytes[0] = opcode.0;
                bytes[4] &= 0xc0;
                bytes[8] &= 0x80;
                if opcode.has(Extension::Deth) {
                    bytes[16] = 0;
                }
                let pad = length.min(usize::from(bytes[1] >> 4 & 3));
                bytes[1] = bytes[1] & 0xcf | (pad as u8) << 4;
                let end = bytes.len();
                bytes[end - pad..].fill(0);
                let packet = Packet::decode(&bytes).unwrap();
                assert_eq!(packet.encode(), bytes, "{opcode} with {length} bytes");
            }
        }
    }

    #[test]
    fn truncated_headers_are_refused() {
        for opcode in Opcode::all() {
            let whole = Packet::new(Bth::new(opcode, 2, 3), Extensions::default(), vec![]).encode();
            assert!(Packet::decode(&whole).is_some());
            for length in 0..whole.len() {
                assert!(Packet::decode(&whole[..length]).is_none(), "{opcode} cut to {length}");
            }
        }
    }
}
