//! The responder half of a queue pair.

use super::memory::{Access, Memory};
use super::qp::{Config, Drop};
use super::{Completion, ReceiveRequest, Status};
use crate::packet::{Aeth, Bth, Class, Extension, Extensions, Opcode, Packet, Position, Reth, Syndrome};
use crate::psn;
use std::collections::VecDeque;

/// The longest message, 2^31 bytes.
const LONGEST: u32 = 1 << 31;

/// A READ or atomic that is kept: being answered, or for its duplicates.
#[derive(Clone, Debug)]
struct Slot {
    /// Distinguishes slots; never used twice.
    serial: u64,
    first: u32,
    span: u32,
    kept: Kept,
    /// Its answer, or a replay of it, waits or is being sent.
    busy: bool,
    /// The whole answer has left once. A requester that keeps to its depth sends one more READ only when it has the oldest answer,
    /// so what replays then is a late duplicate, and it must not cost the new one its slot.
    served: bool,
}

#[derive(Clone, Debug)]
enum Kept {
    Read {
        reth: Reth,
        cursor: Cursor,
    },
    /// The value found.
    Atomic(u64),
}

/// The next READ response.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    psn: u32,
    address: u64,
    left: u32,
    /// Nothing has been sent since the request.
    start: bool,
}

/// What has yet to be sent, in order of PSNs.
#[derive(Clone, Debug)]
enum Owed {
    Answer { psn: u32, syndrome: Syndrome },
    Slot { psn: u32, serial: u64 },
}

impl Owed {
    fn psn(&self) -> u32 {
        match self {
            Owed::Answer { psn, .. } | Owed::Slot { psn, .. } => *psn,
        }
    }
}

/// The message that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Send { receive: ReceiveRequest, filled: u32 },
    Write { rkey: u32, address: u64, left: u32, length: u32 },
}

/// What a request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Executed,
    /// Answered again or moved a READ's cursor; nothing was executed.
    Duplicate,
    Nak(Syndrome),
    /// No answer.
    Silent(Drop),
}

#[derive(Clone, Debug)]
pub(super) struct Responder {
    pub expected: u32,
    pub msn: u32,
    inside: Option<Inside>,
    /// A NAK for the expected packet has been sent; nothing ahead of it is answered.
    quiet: bool,
    slots: VecDeque<Slot>,
    serial: u64,
    owed: VecDeque<Owed>,
    /// PSN of the last SEND, WRITE or atomic packet that was executed.
    executed: u32,
    unacknowledged: u32,
    pub receives: VecDeque<ReceiveRequest>,
}

impl Responder {
    pub fn new(config: &Config) -> Self {
        Responder {
            expected: config.receive_psn,
            msn: 0,
            inside: None,
            quiet: false,
            slots: VecDeque::new(),
            serial: 0,
            owed: VecDeque::new(),
            executed: psn::add(config.receive_psn, psn::MASK),
            unacknowledged: 0,
            receives: VecDeque::new(),
        }
    }

    pub fn request(&mut self, packet: &Packet, config: &Config, memory: &mut Memory, done: &mut VecDeque<Completion>) -> Outcome {
        let ahead = psn::diff(packet.bth.psn, self.expected);
        if ahead > 0 {
            if self.quiet {
                return Outcome::Silent(Drop::Ahead);
            }
            self.quiet = true;
            self.answer(self.expected, Syndrome::SequenceError);
            return Outcome::Nak(Syndrome::SequenceError);
        }
        if ahead < 0 {
            return self.duplicate(packet, config, memory);
        }
        self.quiet = false;
        match self.execute(packet, config, memory, done) {
            Ok(()) => Outcome::Executed,
            Err(syndrome) => {
                self.quiet = true;
                self.answer(self.expected, syndrome);
                Outcome::Nak(syndrome)
            }
        }
    }

    /// The expected packet. The order of the checks decides which error wins.
    fn execute(&mut self, packet: &Packet, config: &Config, memory: &mut Memory, done: &mut VecDeque<Completion>) -> Result<(), Syndrome> {
        let (bth, ext, payload) = (&packet.bth, &packet.ext, &packet.payload);
        let opcode = bth.opcode;
        let class = opcode.class().ok_or(Syndrome::InvalidRequest)?;
        self.in_sequence(opcode, class)?;
        let right = match class {
            Class::Write => Access { write: true, ..Access::default() },
            Class::ReadRequest => Access { read: true, ..Access::default() },
            Class::CompareSwap | Class::FetchAdd => Access { atomic: true, ..Access::default() },
            _ => Access::default(),
        };
        ensure(config.access.allows(right), Syndrome::InvalidRequest)?;
        let takes_receive = (class == Class::Send && opcode.starts()) || (class == Class::Write && opcode.has(Extension::Imm));
        ensure(!takes_receive || !self.receives.is_empty(), Syndrome::Rnr(config.rnr_timer))?;
        if class == Class::ReadRequest || opcode.is_atomic() {
            let busy = self.slots.iter().filter(|slot| !slot.served).count();
            ensure(busy < usize::from(config.responder_resources), Syndrome::InvalidRequest)?;
        }
        self.length(packet, class, config, done)?;
        match class {
            Class::Send => self.send(packet, config, memory, done)?,
            Class::Write => self.write(packet, config, memory, done)?,
            Class::ReadRequest => {
                let reth = ext.reth.unwrap_or_default();
                let allowed = reth.length == 0 || memory.allows(reth.rkey, config.domain, reth.address, reth.length.into(), right);
                ensure(allowed, Syndrome::AccessError)?;
                let cursor = Cursor { psn: bth.psn, address: reth.address, left: reth.length, start: true };
                self.msn = psn::add(self.msn, 1);
                self.keep(bth.psn, psn::count(reth.length, config.pmtu), Kept::Read { reth, cursor }, config);
                return Ok(());
            }
            _ => {
                let atomic = ext.atomic.unwrap_or_default();
                ensure(memory.allows(atomic.rkey, config.domain, atomic.address, 8, right), Syndrome::AccessError)?;
                let found = memory.read(atomic.address, 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
                let found = found.ok_or(Syndrome::OperationError)?;
                let value = match class {
                    Class::FetchAdd => found.wrapping_add(atomic.operand),
                    _ if found == atomic.compare => atomic.operand,
                    _ => found,
                };
                memory.write(atomic.address, &value.to_le_bytes());
                self.msn = psn::add(self.msn, 1);
                self.executed = bth.psn;
                self.keep(bth.psn, 1, Kept::Atomic(found), config);
                return Ok(());
            }
        }
        debug_assert!(payload.len() <= config.pmtu as usize);
        self.executed = bth.psn;
        self.expected = psn::add(self.expected, 1);
        self.unacknowledged += 1;
        if bth.ack_request || self.unacknowledged >= config.ack_every {
            self.answer(bth.psn, Syndrome::OK);
        }
        Ok(())
    }

    fn in_sequence(&self, opcode: Opcode, class: Class) -> Result<(), Syndrome> {
        let inside = self.inside.map(|inside| match inside {
            Inside::Send { .. } => Class::Send,
            Inside::Write { .. } => Class::Write,
        });
        let right = if opcode.starts() { inside.is_none() } else { inside == Some(class) };
        ensure(right && opcode.is_request(), Syndrome::InvalidRequest)
    }

    /// Payload sizes, pads, the announced length, alignment.
    fn length(&mut self, packet: &Packet, class: Class, config: &Config, done: &mut VecDeque<Completion>) -> Result<(), Syndrome> {
        let (bth, ext) = (&packet.bth, &packet.ext);
        let (length, pmtu) = (packet.payload.len() as u32, config.pmtu);
        let fits = match (class, bth.opcode.position()) {
            (Class::Send | Class::Write, Position::First | Position::Middle) => length == pmtu,
            (Class::Send | Class::Write, Position::Last) => (1..=pmtu).contains(&length),
            (Class::Send | Class::Write, Position::Only) => length <= pmtu,
            _ => length == 0,
        };
        ensure(fits && u32::from(bth.pad) == length.wrapping_neg() & 3, Syndrome::InvalidRequest)?;
        ensure(ext.reth.is_none_or(|reth| reth.length <= LONGEST), Syndrome::InvalidRequest)?;
        ensure(ext.atomic.is_none_or(|atomic| atomic.address % 8 == 0), Syndrome::InvalidRequest)?;
        if class == Class::Write {
            let left = match (ext.reth, self.inside) {
                (Some(reth), _) => reth.length,
                (None, Some(Inside::Write { left, .. })) => left,
                _ => 0,
            };
            // What goes on has something left for its last packet.
            ensure(if bth.opcode.ends() { length == left } else { length < left }, Syndrome::InvalidRequest)?;
        }
        if class == Class::Send {
            let (receive, filled) = match self.inside {
                Some(Inside::Send { receive, filled }) => (receive, filled),
                _ => (self.receives[0], 0),
            };
            if filled + length > receive.length {
                if self.inside.take().is_none() {
                    self.receives.pop_front();
                }
                let failed =
                    Completion { id: receive.id, status: Status::LocalLength, receive: true, length: 0, imm: None, invalidated: None };
                done.push_back(failed);
                return Err(Syndrome::InvalidRequest);
            }
        }
        Ok(())
    }

    fn send(&mut self, packet: &Packet, config: &Config, memory: &mut Memory, done: &mut VecDeque<Completion>) -> Result<(), Syndrome> {
        let opcode = packet.bth.opcode;
        let (receive, filled) = match self.inside {
            Some(Inside::Send { receive, filled }) => (receive, filled),
            _ => (self.receives[0], 0),
        };
        if let Some(key) = packet.ext.ieth {
            let region = memory.region(key, config.domain).filter(|region| region.invalidate);
            region.ok_or(Syndrome::AccessError)?.valid = false;
        }
        ensure(memory.write(receive.address + u64::from(filled), &packet.payload), Syndrome::OperationError)?;
        if opcode.starts() {
            self.receives.pop_front();
        }
        let filled = filled + packet.payload.len() as u32;
        self.inside = Some(Inside::Send { receive, filled }).filter(|_| !opcode.ends());
        if opcode.ends() {
            self.msn = psn::add(self.msn, 1);
            let (imm, invalidated) = (packet.ext.imm, packet.ext.ieth);
            done.push_back(Completion { id: receive.id, status: Status::Success, receive: true, length: filled, imm, invalidated });
        }
        Ok(())
    }

    fn write(&mut self, packet: &Packet, config: &Config, memory: &mut Memory, done: &mut VecDeque<Completion>) -> Result<(), Syndrome> {
        let opcode = packet.bth.opcode;
        let size = packet.payload.len() as u32;
        let (rkey, address, left, length) = match (packet.ext.reth, self.inside) {
            (Some(reth), _) => (reth.rkey, reth.address, reth.length, reth.length),
            (None, Some(Inside::Write { rkey, address, left, length })) => (rkey, address, left, length),
            _ => return Err(Syndrome::InvalidRequest),
        };
        // Every packet is checked: the key may have been revoked since the first. The first is checked for all that is announced.
        let checked = if opcode.starts() { left } else { size };
        let right = Access { write: true, ..Access::default() };
        ensure(checked == 0 || memory.allows(rkey, config.domain, address, checked.into(), right), Syndrome::AccessError)?;
        ensure(memory.write(address, &packet.payload), Syndrome::OperationError)?;
        let (address, left) = (address.wrapping_add(size.into()), left - size);
        self.inside = Some(Inside::Write { rkey, address, left, length }).filter(|_| !opcode.ends());
        if opcode.ends() {
            self.msn = psn::add(self.msn, 1);
        }
        if packet.ext.imm.is_some() {
            let id = self.receives.pop_front().map_or(0, |receive| receive.id);
            done.push_back(Completion { id, status: Status::Success, receive: true, length, imm: packet.ext.imm, invalidated: None });
        }
        Ok(())
    }

    /// Takes a slot for an executed READ or atomic and owes its answer.
    fn keep(&mut self, first: u32, span: u32, kept: Kept, config: &Config) {
        self.serial += 1;
        if self.slots.len() >= usize::from(config.responder_resources) {
            // Answers leave in order, so the oldest is served: it was checked that one is.
            self.slots.pop_front();
        }
        self.slots.push_back(Slot { serial: self.serial, first, span, kept, busy: true, served: false });
        self.expected = psn::add(first, span);
        self.owe(Owed::Slot { psn: first, serial: self.serial });
    }

    /// Places something to send behind all of lower or equal PSN.
    fn owe(&mut self, owed: Owed) {
        let at = self.owed.iter().rposition(|other| psn::diff(other.psn(), owed.psn()) <= 0).map_or(0, |at| at + 1);
        self.owed.insert(at, owed);
    }

    fn answer(&mut self, number: u32, syndrome: Syndrome) {
        self.unacknowledged = 0;
        // A newer ACK makes the one that still waits just before it needless.
        let owed = Owed::Answer { psn: number, syndrome };
        let positive = |owed: &Owed| matches!(owed, Owed::Answer { syndrome: Syndrome::Ack(_), .. });
        match self.owed.back_mut() {
            Some(back) if positive(back) && positive(&owed) && psn::diff(back.psn(), number) <= 0 => *back = owed,
            _ => self.owe(owed),
        }
    }

    fn duplicate(&mut self, packet: &Packet, config: &Config, memory: &Memory) -> Outcome {
        let (bth, ext) = (&packet.bth, &packet.ext);
        match bth.opcode.class() {
            Some(Class::Send | Class::Write) => {
                let right = Access { write: true, ..Access::default() };
                let named = ext.reth.filter(|reth| reth.length != 0);
                if named.is_some_and(|reth| !memory.allows(reth.rkey, config.domain, reth.address, reth.length.into(), right)) {
                    return Outcome::Silent(Drop::Duplicate);
                }
                self.answer(self.executed, Syndrome::OK);
                Outcome::Duplicate
            }
            Some(Class::ReadRequest) => {
                let reth = ext.reth.unwrap_or_default();
                let right = Access { read: true, ..Access::default() };
                let allowed = reth.length == 0 || memory.allows(reth.rkey, config.domain, reth.address, reth.length.into(), right);
                let found = self.slots.iter_mut().find(|slot| slot.covers(bth.psn, &reth, config.pmtu));
                let Some(slot) = found.filter(|_| allowed && packet.payload.is_empty()) else { return Outcome::Silent(Drop::Duplicate) };
                if let Kept::Read { cursor, .. } = &mut slot.kept {
                    *cursor = Cursor { psn: bth.psn, address: reth.address, left: reth.length, start: true };
                }
                let (waits, serial, psn) = (std::mem::replace(&mut slot.busy, true), slot.serial, slot.first);
                if !waits {
                    self.owe(Owed::Slot { psn, serial });
                }
                Outcome::Duplicate
            }
            _ if bth.opcode.is_atomic() => {
                let atomic = ext.atomic.unwrap_or_default();
                let right = Access { atomic: true, ..Access::default() };
                let aligned = atomic.address.is_multiple_of(8) && packet.payload.is_empty();
                let allowed = aligned && memory.allows(atomic.rkey, config.domain, atomic.address, 8, right);
                let found = self.slots.iter_mut().find(|slot| slot.first == bth.psn && matches!(slot.kept, Kept::Atomic(_)));
                let Some(slot) = found.filter(|_| allowed) else { return Outcome::Silent(Drop::Duplicate) };
                let (waits, serial, psn) = (std::mem::replace(&mut slot.busy, true), slot.serial, slot.first);
                if !waits {
                    self.owe(Owed::Slot { psn, serial });
                }
                Outcome::Duplicate
            }
            _ => Outcome::Silent(Drop::Opcode),
        }
    }

    pub fn write_left(&self) -> Option<u32> {
        match self.inside {
            Some(Inside::Write { left, .. }) => Some(left),
            _ => None,
        }
    }

    /// Whether something waits to be sent.
    pub fn pending(&self) -> bool {
        !self.owed.is_empty()
    }

    /// The next response.
    pub fn poll(&mut self, config: &Config, memory: &Memory) -> Option<Packet> {
        // The MSN is that of the moment of sending: it never falls.
        let msn = self.msn;
        let aeth = |syndrome| Extensions { aeth: Some(Aeth { syndrome, msn }), ..Extensions::default() };
        match *self.owed.front()? {
            Owed::Answer { psn, syndrome } => {
                self.owed.pop_front();
                Some(Packet::new(Bth::new(Opcode::ACK, config.remote_qpn, psn), aeth(syndrome), vec![]))
            }
            Owed::Slot { serial, .. } => {
                let Some(slot) = self.slots.iter_mut().find(|slot| slot.serial == serial) else {
                    self.owed.pop_front();
                    return self.poll(config, memory);
                };
                let cursor = match &mut slot.kept {
                    &mut Kept::Atomic(found) => {
                        (slot.busy, slot.served) = (false, true);
                        let ext = Extensions { atomic_ack: Some(found), ..aeth(Syndrome::OK) };
                        let bth = Bth::new(Opcode::ATOMIC_ACK, config.remote_qpn, slot.first);
                        self.owed.pop_front();
                        return Some(Packet::new(bth, ext, vec![]));
                    }
                    Kept::Read { cursor, .. } => cursor,
                };
                let size = cursor.left.min(config.pmtu);
                let opcode = match (cursor.start, cursor.left <= config.pmtu) {
                    (true, true) => Opcode::READ_RESPONSE_ONLY,
                    (true, false) => Opcode::READ_RESPONSE_FIRST,
                    (false, true) => Opcode::READ_RESPONSE_LAST,
                    (false, false) => Opcode::READ_RESPONSE_MIDDLE,
                };
                let data = if size == 0 { Some(&[][..]) } else { memory.read(cursor.address, size as usize) };
                let bth = Bth::new(opcode, config.remote_qpn, cursor.psn);
                let Some(data) = data else {
                    // The memory failed under a READ that was accepted.
                    self.owed.clear();
                    let bth = Bth { opcode: Opcode::ACK, ..bth };
                    return Some(Packet::new(bth, aeth(Syndrome::OperationError), vec![]));
                };
                let packet =
                    Packet::new(bth, if opcode.has(Extension::Aeth) { aeth(Syndrome::OK) } else { Extensions::default() }, data.to_vec());
                *cursor = Cursor {
                    psn: psn::add(cursor.psn, 1),
                    address: cursor.address.wrapping_add(size.into()),
                    left: cursor.left - size,
                    start: false,
                };
                if cursor.left == 0 {
                    (slot.busy, slot.served) = (false, true);
                    self.owed.pop_front();
                }
                Some(packet)
            }
        }
    }

    /// All receives end unused.
    pub fn flush(&mut self, done: &mut VecDeque<Completion>) {
        let current = match self.inside.take() {
            Some(Inside::Send { receive, .. }) => Some(receive),
            _ => None,
        };
        for receive in current.into_iter().chain(self.receives.drain(..)) {
            done.push_back(Completion { id: receive.id, status: Status::Flushed, receive: true, length: 0, imm: None, invalidated: None });
        }
    }
}

impl Slot {
    /// Whether a duplicate READ is this one, or what is left of it from one of its packets on: PSN and address go together, to its end.
    fn covers(&self, first: u32, asked: &Reth, pmtu: u32) -> bool {
        let Kept::Read { reth, .. } = &self.kept else { return false };
        let packets = psn::diff(first, self.first);
        if packets < 0 || packets as u32 >= self.span {
            return false;
        }
        let skipped = packets as u32 * pmtu;
        asked.address == reth.address.wrapping_add(skipped.into()) && asked.length == reth.length - skipped && asked.rkey == reth.rkey
    }
}

fn ensure(right: bool, otherwise: Syndrome) -> Result<(), Syndrome> {
    if right { Ok(()) } else { Err(otherwise) }
}
