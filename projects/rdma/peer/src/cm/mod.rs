//! The connection manager on the wire: MADs in UD SENDs from QP1 to QP1.
//!
//! Layouts: InfiniBand specification, volume 1, chapters 12.6 (messages) and 13.4 (MAD); annex A11 (IP addressing in CM).

mod fields;
mod ip_header;
mod messages;

pub use ip_header::{IpHeader, gid};
pub use messages::{ApAlternate, Drep, Dreq, Message, Mra, Refused, Rej, Rep, Req, Rtu, SidrRep, SidrReq};

/// Q_Key of QP1.
pub const QKEY: u32 = 0x8001_0000;
/// Bytes of every MAD.
pub const MAD_SIZE: usize = 256;

/// Reasons of a REJ.
pub mod reason {
    pub const NO_QP: u16 = 1;
    pub const NO_RESOURCES: u16 = 3;
    pub const TIMEOUT: u16 = 4;
    pub const UNSUPPORTED: u16 = 5;
    pub const INVALID_COMM_ID: u16 = 6;
    pub const INVALID_SERVICE_ID: u16 = 8;
    pub const INVALID_TRANSPORT: u16 = 9;
    pub const STALE_CONNECTION: u16 = 10;
    pub const INVALID_MTU: u16 = 26;
    pub const INSUFFICIENT_RESOURCES: u16 = 27;
    pub const CONSUMER: u16 = 28;
    pub const INVALID_CLASS_VERSION: u16 = 31;
}

/// Service ID of a port in RDMA CM's TCP port space.
pub fn tcp_service(port: u16) -> u64 {
    0x0000_0000_0106_0000 | u64::from(port)
}

/// The 24-byte header of a MAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadHeader {
    pub base_version: u8,
    pub class: u8,
    pub class_version: u8,
    pub method: u8,
    pub status: u16,
    pub class_specific: u16,
    pub transaction: u64,
    pub attribute: u16,
    pub modifier: u32,
}

impl MadHeader {
    /// Base version 1, communication management, class version 2, method Send.
    pub fn new(attribute: u16, transaction: u64) -> Self {
        MadHeader {
            base_version: 1,
            class: 7,
            class_version: 2,
            method: 3,
            status: 0,
            class_specific: 0,
            transaction,
            attribute,
            modifier: 0,
        }
    }
}

/// A management datagram of the CM class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mad {
    pub header: MadHeader,
    pub message: Message,
}

impl Mad {
    /// A message in a header with its attribute.
    pub fn new(message: Message, transaction: u64) -> Self {
        Mad { header: MadHeader::new(message.attribute(), transaction), message }
    }

    /// 256 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let header = &self.header;
        let mut out = vec![header.base_version, header.class, header.class_version, header.method];
        out.extend(header.status.to_be_bytes());
        out.extend(header.class_specific.to_be_bytes());
        out.extend(header.transaction.to_be_bytes());
        out.extend(header.attribute.to_be_bytes());
        out.extend([0, 0]);
        out.extend(header.modifier.to_be_bytes());
        out.extend(self.message.encode());
        out
    }

    /// `None` unless it is 256 bytes long; a message of another class or attribute is [`Message::Other`].
    pub fn decode(b: &[u8]) -> Option<Self> {
        if b.len() != MAD_SIZE {
            return None;
        }
        let short = |at: usize| u16::from_be_bytes([b[at], b[at + 1]]);
        let header = MadHeader {
            base_version: b[0],
            class: b[1],
            class_version: b[2],
            method: b[3],
            status: short(4),
            class_specific: short(6),
            transaction: u64::from(short(8)) << 48 | u64::from(short(10)) << 32 | u64::from(short(12)) << 16 | u64::from(short(14)),
            attribute: short(16),
            modifier: u32::from(short(20)) << 16 | u32::from(short(22)),
        };
        let is_cm = header.class == 7 && header.class_version == 2 && header.method == 3;
        let message = Message::decode(if is_cm { header.attribute } else { 0 }, &b[24..]);
        Some(Mad { header, message })
    }
}
