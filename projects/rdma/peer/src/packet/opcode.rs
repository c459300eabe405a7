//! BTH opcodes of the reliable connection, what UD needs for CM, and the congestion notification packet.

/// The 8-bit opcode as it is on the wire; not every value is a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(pub u8);

/// What a packet is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    Ack,
    AtomicAck,
    CompareSwap,
    FetchAdd,
    Datagram,
    Congestion,
}

/// Its place in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    First,
    Middle,
    Last,
    Only,
}

/// Extension headers, in the order that they have on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extension {
    Deth,
    Reth,
    Atomic,
    Aeth,
    AtomicAck,
    Imm,
    Ieth,
}

impl Extension {
    /// Bytes.
    pub fn size(self) -> usize {
        match self {
            Extension::Deth | Extension::AtomicAck => 8,
            Extension::Reth => 16,
            Extension::Atomic => 28,
            Extension::Aeth | Extension::Imm | Extension::Ieth => 4,
        }
    }
}

#[rustfmt::skip]
impl Opcode {
    pub const SEND_FIRST: Opcode = Opcode(0x00);
    pub const SEND_MIDDLE: Opcode = Opcode(0x01);
    pub const SEND_LAST: Opcode = Opcode(0x02);
    pub const SEND_LAST_IMM: Opcode = Opcode(0x03);
    pub const SEND_ONLY: Opcode = Opcode(0x04);
    pub const SEND_ONLY_IMM: Opcode = Opcode(0x05);
    pub const WRITE_FIRST: Opcode = Opcode(0x06);
    pub const WRITE_MIDDLE: Opcode = Opcode(0x07);
    pub const WRITE_LAST: Opcode = Opcode(0x08);
    pub const WRITE_LAST_IMM: Opcode = Opcode(0x09);
    pub const WRITE_ONLY: Opcode = Opcode(0x0a);
    pub const WRITE_ONLY_IMM: Opcode = Opcode(0x0b);
    pub const READ_REQUEST: Opcode = Opcode(0x0c);
    pub const READ_RESPONSE_FIRST: Opcode = Opcode(0x0d);
    pub const READ_RESPONSE_MIDDLE: Opcode = Opcode(0x0e);
    pub const READ_RESPONSE_LAST: Opcode = Opcode(0x0f);
    pub const READ_RESPONSE_ONLY: Opcode = Opcode(0x10);
    pub const ACK: Opcode = Opcode(0x11);
    pub const ATOMIC_ACK: Opcode = Opcode(0x12);
    pub const COMPARE_SWAP: Opcode = Opcode(0x13);
    pub const FETCH_ADD: Opcode = Opcode(0x14);
    pub const SEND_LAST_INV: Opcode = Opcode(0x16);
    pub const SEND_ONLY_INV: Opcode = Opcode(0x17);
    pub const UD_SEND_ONLY: Opcode = Opcode(0x64);
    pub const UD_SEND_ONLY_IMM: Opcode = Opcode(0x65);
    pub const CNP: Opcode = Opcode(0x81);
}

/// Every known opcode with its class, position, extension headers and name.
const TABLE: &[(u8, Class, Position, &[Extension], &str)] = {
    use {Class::*, Extension::*, Position::*};
    &[
        (0x00, Send, First, &[], "SEND first"),
        (0x01, Send, Middle, &[], "SEND middle"),
        (0x02, Send, Last, &[], "SEND last"),
        (0x03, Send, Last, &[Imm], "SEND last with immediate"),
        (0x04, Send, Only, &[], "SEND only"),
        (0x05, Send, Only, &[Imm], "SEND only with immediate"),
        (0x06, Write, First, &[Reth], "WRITE first"),
        (0x07, Write, Middle, &[], "WRITE middle"),
        (0x08, Write, Last, &[], "WRITE last"),
        (0x09, Write, Last, &[Imm], "WRITE last with immediate"),
        (0x0a, Write, Only, &[Reth], "WRITE only"),
        (0x0b, Write, Only, &[Reth, Imm], "WRITE only with immediate"),
        (0x0c, ReadRequest, Only, &[Reth], "READ request"),
        (0x0d, ReadResponse, First, &[Aeth], "READ response first"),
        (0x0e, ReadResponse, Middle, &[], "READ response middle"),
        (0x0f, ReadResponse, Last, &[Aeth], "READ response last"),
        (0x10, ReadResponse, Only, &[Aeth], "READ response only"),
        (0x11, Class::Ack, Only, &[Aeth], "ACK"),
        (0x12, Class::AtomicAck, Only, &[Aeth, Extension::AtomicAck], "ATOMIC ACK"),
        (0x13, CompareSwap, Only, &[Atomic], "compare-and-swap"),
        (0x14, FetchAdd, Only, &[Atomic], "fetch-and-add"),
        (0x16, Send, Last, &[Ieth], "SEND last with invalidate"),
        (0x17, Send, Only, &[Ieth], "SEND only with invalidate"),
        (0x64, Datagram, Only, &[Deth], "UD SEND only"),
        (0x65, Datagram, Only, &[Deth, Imm], "UD SEND only with immediate"),
        (0x81, Congestion, Only, &[], "CNP"),
    ]
};

impl Opcode {
    /// All known ones.
    pub fn all() -> impl Iterator<Item = Opcode> {
        TABLE.iter().map(|row| Opcode(row.0))
    }

    fn row(self) -> Option<&'static (u8, Class, Position, &'static [Extension], &'static str)> {
        TABLE.iter().find(|row| row.0 == self.0)
    }

    /// `None` for an opcode that is not known here.
    pub fn class(self) -> Option<Class> {
        self.row().map(|row| row.1)
    }

    pub fn position(self) -> Position {
        self.row().map_or(Position::Only, |row| row.2)
    }

    /// Its extension headers; none for an unknown opcode.
    pub fn extensions(self) -> &'static [Extension] {
        self.row().map_or(&[], |row| row.3)
    }

    pub fn has(self, extension: Extension) -> bool {
        self.extensions().contains(&extension)
    }

    /// Bytes of extension headers.
    pub fn extension_size(self) -> usize {
        self.extensions().iter().map(|extension| extension.size()).sum()
    }

    /// First packet of a message, or all of it.
    pub fn starts(self) -> bool {
        matches!(self.position(), Position::First | Position::Only)
    }

    /// Last packet of a message, or all of it.
    pub fn ends(self) -> bool {
        matches!(self.position(), Position::Last | Position::Only)
    }

    pub fn is_atomic(self) -> bool {
        matches!(self.class(), Some(Class::CompareSwap | Class::FetchAdd))
    }

    /// A request of a reliable connection.
    pub fn is_request(self) -> bool {
        self.is_atomic() || matches!(self.class(), Some(Class::Send | Class::Write | Class::ReadRequest))
    }

    /// A response of a reliable connection.
    pub fn is_response(self) -> bool {
        matches!(self.class(), Some(Class::ReadResponse | Class::Ack | Class::AtomicAck))
    }
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.row() {
            Some(row) => f.write_str(row.4),
            None => write!(f, "opcode {:#04x}", self.0),
        }
    }
}
