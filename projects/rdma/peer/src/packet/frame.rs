//! The frame around a packet: Ethernet, IPv4, UDP, and the ICRC behind it.

use super::headers::Packet;
use super::icrc::icrc;
use std::net::Ipv4Addr;

/// UDP destination port of RoCEv2.
pub const UDP_PORT: u16 = 4791;

/// The largest path MTU.
const LONGEST: usize = 4096;

/// Offset of the IPv4 header.
const IP: usize = 14;
const UDP: usize = IP + 20;
const BTH: usize = UDP + 8;

/// A RoCEv2 frame without padding to 60 bytes and FCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub destination: [u8; 6],
    pub source: [u8; 6],
    /// Type of service: DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    pub id: u16,
    pub ttl: u8,
    pub source_ip: Ipv4Addr,
    pub destination_ip: Ipv4Addr,
    pub source_port: u16,
    /// 0 for none.
    pub udp_checksum: u16,
    pub packet: Packet,
}

/// Why a frame is not taken as RoCEv2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Something else: other protocol, other port.
    NotRoce,
    /// Meant as RoCEv2, but wrong below the transport or too short for its headers.
    Malformed(&'static str),
    /// The ICRC in the frame and the one of its bytes.
    Icrc { found: u32, expected: u32 },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NotRoce => f.write_str("not RoCEv2"),
            Refusal::Malformed(why) => f.write_str(why),
            Refusal::Icrc { found, expected } => write!(f, "the ICRC is {found:08x}, that of the bytes {expected:08x}"),
        }
    }
}

impl Frame {
    /// Ethernet header to ICRC.
    pub fn encode(&self) -> Vec<u8> {
        self.wrap(&self.packet.encode())
    }

    /// As [`Frame::encode`] with `transport` (BTH to the last pad byte) in place of the packet: for packets that no encoder makes.
    pub fn wrap(&self, transport: &[u8]) -> Vec<u8> {
        let udp_length = (8 + transport.len() + 4) as u16;
        let mut out = Vec::with_capacity(BTH + transport.len() + 4);
        out.extend(self.destination);
        out.extend(self.source);
        out.extend([0x08, 0x00, 0x45, self.tos]);
        out.extend((20 + udp_length).to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend([0x40, 0, self.ttl, 17, 0, 0]);
        out.extend(self.source_ip.octets());
        out.extend(self.destination_ip.octets());
        let sum = checksum(&out[IP..UDP], 0).to_be_bytes();
        out[IP + 10..IP + 12].copy_from_slice(&sum);
        out.extend(self.source_port.to_be_bytes());
        out.extend(UDP_PORT.to_be_bytes());
        out.extend(udp_length.to_be_bytes());
        out.extend(self.udp_checksum.to_be_bytes());
        out.extend(transport);
        out.extend(icrc(&out[IP..]).to_le_bytes());
        out
    }

    /// A frame with or without padding behind the IPv4 packet, without FCS.
    ///
    /// # Errors
    /// See [`Refusal`]. Nothing that the transport decides (keys, QPs, sequence) is looked at.
    pub fn decode(frame: &[u8]) -> Result<Frame, Refusal> {
        let short = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        if frame.len() < IP + 20 || short(12) != 0x0800 || frame[IP + 9] != 17 {
            return Err(Refusal::NotRoce);
        }
        let malformed = |why| Err(Refusal::Malformed(why));
        if frame[IP] != 0x45 {
            return malformed("IPv4 with options or another version");
        }
        if frame.len() < BTH {
            return malformed("cut before the end of the UDP header");
        }
        if short(UDP + 2) != UDP_PORT {
            return Err(Refusal::NotRoce);
        }
        let (total, udp_length) = (usize::from(short(IP + 2)), usize::from(short(UDP + 4)));
        if checksum(&frame[IP..UDP], 0) != 0 {
            return malformed("wrong IPv4 header checksum");
        }
        if short(IP + 6) & 0x3fff != 0 {
            return malformed("a fragment");
        }
        if IP + total > frame.len() || udp_length + 20 != total {
            return malformed("lengths of IPv4, UDP and frame do not fit");
        }
        if total < 20 + 8 + 12 + 4 {
            return malformed("too short for BTH and ICRC");
        }
        // A transport packet is padded to words, and so is what is around it.
        if total % 4 != 0 {
            return malformed("the length is no multiple of four");
        }
        let body = &frame[IP..IP + total];
        let pseudo = sum(&body[12..20]) + 17 + udp_length as u32;
        if short(UDP + 6) != 0 && checksum(&body[20..], pseudo) != 0 {
            return malformed("wrong UDP checksum");
        }
        let (covered, tail) = body.split_at(total - 4);
        let (found, expected) = (u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]), icrc(covered));
        if found != expected {
            return Err(Refusal::Icrc { found, expected });
        }
        let Some(packet) = Packet::decode(&covered[28..]) else { return malformed("too short for the opcode's headers and pad") };
        if packet.payload.len() > LONGEST {
            return malformed("a payload that no path MTU has");
        }
        let address = |at: usize| Ipv4Addr::new(body[at], body[at + 1], body[at + 2], body[at + 3]);
        let mac = |at: usize| [frame[at], frame[at + 1], frame[at + 2], frame[at + 3], frame[at + 4], frame[at + 5]];
        Ok(Frame {
            destination: mac(0),
            source: mac(6),
            tos: body[1],
            id: short(IP + 4),
            ttl: body[8],
            source_ip: address(12),
            destination_ip: address(16),
            source_port: short(UDP),
            udp_checksum: short(UDP + 6),
            packet,
        })
    }
}

/// 16-bit words added up, an odd last byte padded with zero.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

/// The Internet checksum (RFC 1071) on top of `seed`; 0 over data that carries a right one.
pub(crate) fn checksum(bytes: &[u8], seed: u32) -> u16 {
    let mut total = sum(bytes) + seed;
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}
