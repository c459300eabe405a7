//! The requester half of a queue pair.

use super::memory::Memory;
use super::qp::{Config, Drop};
use super::{Completion, Operation, Status, WorkRequest};
use crate::packet::{AtomicEth, Bth, Class, Extensions, Opcode, Packet, RNR_TIMER_10US, Reth, Syndrome};
use crate::psn;
use std::collections::VecDeque;

/// A posted request.
#[derive(Clone, Debug)]
struct Entry {
    work: WorkRequest,
    /// First PSN and number of PSNs; set when its first packet is sent.
    first: u32,
    span: u32,
    sent: bool,
    /// Responses that have come, of a READ.
    got: u32,
}

impl Entry {
    fn awaits_response(&self) -> bool {
        !matches!(self.work.operation, Operation::Send { .. } | Operation::Write { .. })
    }

    fn last(&self) -> u32 {
        psn::add(self.first, self.span - 1)
    }

    /// Its first PSN that is not retired.
    fn missing(&self) -> u32 {
        psn::add(self.first, self.got)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Requester {
    queue: VecDeque<Entry>,
    /// The next packet: an entry of `queue` and a packet of it.
    at: usize,
    offset: u32,
    /// PSN of the next entry that has none yet.
    next: u32,
    /// First PSN that is not retired.
    pub unretired: u32,
    /// Behind the highest PSN ever sent, the span of READs included.
    sent: u32,
    since_ack_request: u32,
    retries: u8,
    rnr_retries: u8,
    deadline: Option<u64>,
    /// Nothing is sent before.
    rnr_until: Option<u64>,
    /// The missing PSN for which an implied NAK has already sent us back.
    implied: Option<u32>,
    /// For tests: how often it went back.
    pub rewinds: u64,
    pub timeouts: u64,
}

/// An answer's effect on the queue pair.
pub(super) type Effect = Result<(), Failure>;

/// The queue pair errs, or the packet is dropped.
pub(super) enum Failure {
    Fatal(Status),
    Ignored(Drop),
}

const STRAY: Effect = Err(Failure::Ignored(Drop::Stray));

impl Requester {
    pub fn new(config: &Config) -> Self {
        Requester {
            queue: VecDeque::new(),
            at: 0,
            offset: 0,
            next: config.send_psn,
            unretired: config.send_psn,
            sent: config.send_psn,
            since_ack_request: 0,
            retries: config.retry_count,
            rnr_retries: config.rnr_retry,
            deadline: None,
            rnr_until: None,
            implied: None,
            rewinds: 0,
            timeouts: 0,
        }
    }

    pub fn post(&mut self, work: WorkRequest) {
        self.queue.push_back(Entry { work, first: 0, span: 1, sent: false, got: 0 });
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// When something happens without a packet.
    pub fn timer(&self) -> Option<u64> {
        self.rnr_until.or(self.deadline)
    }

    /// The next request packet.
    pub fn poll(&mut self, now: u64, config: &Config, memory: &Memory) -> Option<Packet> {
        if let Some(until) = self.rnr_until {
            if now < until {
                return None;
            }
            self.rnr_until = None;
        }
        let reads = self.queue.iter().filter(|entry| entry.sent && entry.awaits_response()).count();
        let entry = self.queue.get_mut(self.at)?;
        let pmtu = config.pmtu;
        if !entry.sent {
            let span = match entry.work.operation {
                Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => 1,
                _ => psn::count(entry.work.length, pmtu),
            };
            // A span of 2^23 could not be compared any more.
            let ahead = self.next.wrapping_sub(self.unretired) & psn::MASK;
            let room = ahead == 0 || ahead + span < 1 << 23;
            if !room || (entry.awaits_response() && reads >= usize::from(config.initiator_depth)) {
                return None;
            }
            (entry.first, entry.span, entry.sent) = (self.next, span, true);
            self.next = psn::add(self.next, span);
        }
        let number = psn::add(entry.first, self.offset);
        if psn::diff(number, self.unretired) >= config.window as i32 {
            return None;
        }
        let work = entry.work;
        let opcode = opcode(&work, self.offset, entry.span);
        let mut bth = Bth::new(opcode, config.remote_qpn, number);
        bth.pkey = config.pkey;
        let skipped = u64::from(self.offset) * u64::from(pmtu);
        let left = u64::from(work.length) - skipped.min(u64::from(work.length));
        let mut ext = Extensions::default();
        let mut payload = Vec::new();
        let last = opcode.ends();
        match work.operation {
            Operation::Send { imm, invalidate } => {
                ext.imm = imm.filter(|_| last);
                ext.ieth = invalidate.filter(|_| last && imm.is_none());
            }
            Operation::Write { imm } => {
                ext.imm = imm.filter(|_| last);
                ext.reth = Some(Reth { address: work.remote, rkey: work.rkey, length: work.length }).filter(|_| opcode.starts());
            }
            Operation::Read => ext.reth = Some(Reth { address: work.remote.wrapping_add(skipped), rkey: work.rkey, length: left as u32 }),
            Operation::CompareSwap { compare, swap } => {
                ext.atomic = Some(AtomicEth { address: work.remote, rkey: work.rkey, operand: swap, compare });
            }
            Operation::FetchAdd { add } => ext.atomic = Some(AtomicEth { address: work.remote, rkey: work.rkey, operand: add, compare: 0 }),
        }
        if matches!(work.operation, Operation::Send { .. } | Operation::Write { .. }) {
            let size = left.min(u64::from(pmtu)) as usize;
            payload = memory.read(work.local.wrapping_add(skipped), size).unwrap_or(&[]).to_vec();
        }
        self.since_ack_request += 1;
        bth.ack_request = last || self.since_ack_request >= 64;
        if bth.ack_request {
            self.since_ack_request = 0;
        }
        let behind = if entry.awaits_response() { psn::add(entry.first, entry.span) } else { psn::add(number, 1) };
        if psn::diff(behind, self.sent) > 0 {
            self.sent = behind;
        }
        if last || entry.awaits_response() {
            (self.at, self.offset) = (self.at + 1, 0);
            // The next one may be a READ that has begun: it is resumed where it stands.
            self.offset = self.queue.get(self.at).map_or(0, |entry| if entry.sent { entry.got } else { 0 });
        } else {
            self.offset += 1;
        }
        if self.deadline.is_none() {
            self.deadline = config.timeout_ns().map(|ns| now + ns);
        }
        Some(Packet::new(bth, ext, payload))
    }

    /// ACK, NAK, READ response or ATOMIC ACK.
    pub fn response(&mut self, now: u64, packet: &Packet, config: &Config, memory: &mut Memory, done: &mut VecDeque<Completion>) -> Effect {
        let number = packet.bth.psn;
        match packet.bth.opcode.class() {
            Some(Class::ReadResponse | Class::AtomicAck) => self.data(now, packet, config, memory, done),
            _ => {
                let Some(aeth) = packet.ext.aeth else { return STRAY };
                let nak = !aeth.syndrome.is_ack();
                let below = psn::diff(number, self.unretired) < 0;
                if below || psn::diff(number, self.sent) >= 0 {
                    return STRAY;
                }
                let upto = if nak { psn::add(number, psn::MASK) } else { number };
                let blocked = self.retire(now, upto, config, done);
                match aeth.syndrome {
                    Syndrome::Ack(_) if blocked => self.implied_nak(),
                    Syndrome::Ack(_) => Ok(()),
                    Syndrome::SequenceError if self.rnr_until.is_some() => Ok(()),
                    Syndrome::SequenceError if blocked => self.implied_nak(),
                    Syndrome::SequenceError => self.again(),
                    Syndrome::Rnr(code) => {
                        if config.rnr_retry != 7 {
                            self.rnr_retries = self.rnr_retries.checked_sub(1).ok_or(Failure::Fatal(Status::RnrRetriesExceeded))?;
                        }
                        self.rewind();
                        self.rnr_until = Some(now + u64::from(RNR_TIMER_10US[usize::from(code & 31)]) * 10_000);
                        self.deadline = None;
                        Ok(())
                    }
                    Syndrome::InvalidRequest => Err(Failure::Fatal(Status::RemoteInvalidRequest)),
                    Syndrome::AccessError => Err(Failure::Fatal(Status::RemoteAccess)),
                    Syndrome::OperationError => Err(Failure::Fatal(Status::RemoteOperation)),
                    // A reserved NAK code is an error, too; the other reserved values say nothing.
                    Syndrome::Other(value) if value & 0xe0 == 0x60 => Err(Failure::Fatal(Status::RemoteOperation)),
                    Syndrome::Other(_) => STRAY,
                }
            }
        }
    }

    /// READ response or ATOMIC ACK.
    fn data(&mut self, now: u64, packet: &Packet, config: &Config, memory: &mut Memory, done: &mut VecDeque<Completion>) -> Effect {
        let number = packet.bth.psn;
        if psn::diff(number, self.unretired) < 0 || psn::diff(number, self.sent) >= 0 {
            return STRAY;
        }
        // A response to no READ or atomic retires nothing.
        let covers = |entry: &Entry| entry.sent && entry.awaits_response() && (number.wrapping_sub(entry.first) & psn::MASK) < entry.span;
        if !self.queue.iter().any(covers) {
            return STRAY;
        }
        // It retires what comes before the READ or atomic that it belongs to.
        self.retire(now, psn::add(number, psn::MASK), config, done);
        let Some(entry) = self.queue.front_mut().filter(|entry| entry.sent && entry.awaits_response()) else { return STRAY };
        match psn::diff(number, entry.missing()) {
            ahead if ahead > 0 => return self.implied_nak(),
            0 => {}
            _ => return STRAY,
        }
        let work = entry.work;
        let bad = Err(Failure::Fatal(Status::BadResponse));
        if work.operation == Operation::Read {
            let left = work.length - (entry.got * config.pmtu).min(work.length);
            let (ends, size) = (left <= config.pmtu, left.min(config.pmtu));
            let opcode = packet.bth.opcode;
            // In the middle a resumed READ may be answered either way; at its start only FIRST or ONLY is right.
            let right = opcode.class() == Some(Class::ReadResponse) && opcode.ends() == ends && (entry.got > 0 || opcode.starts());
            if !right || packet.payload.len() != size as usize {
                return bad;
            }
            memory.write(work.local + u64::from(entry.got) * u64::from(config.pmtu), &packet.payload);
            entry.got += 1;
        } else {
            let Some(found) = packet.ext.atomic_ack else { return bad };
            memory.write(work.local, &found.to_le_bytes());
            entry.got = 1;
        }
        self.unretired = psn::add(number, 1);
        if entry.got == entry.span {
            self.complete_front(done);
        }
        self.progress(now, config);
        Ok(())
    }

    /// Retires SENDs and WRITEs up to and including PSN `upto`. True where an unfinished READ or atomic stands in the way of it.
    fn retire(&mut self, now: u64, upto: u32, config: &Config, done: &mut VecDeque<Completion>) -> bool {
        let before = self.unretired;
        let mut blocked = false;
        while let Some(entry) = self.queue.front().filter(|entry| entry.sent) {
            if psn::diff(upto, entry.missing()) < 0 {
                break;
            }
            if entry.awaits_response() {
                blocked = true;
                break;
            }
            if psn::diff(upto, entry.last()) < 0 {
                break;
            }
            self.unretired = psn::add(entry.last(), 1);
            self.complete_front(done);
        }
        // A part of a message; it stays in the queue.
        if !blocked && psn::diff(psn::add(upto, 1), self.unretired) > 0 {
            self.unretired = psn::add(upto, 1);
        }
        if self.unretired != before {
            self.progress(now, config);
        }
        blocked
    }

    fn complete_front(&mut self, done: &mut VecDeque<Completion>) {
        let Some(entry) = self.queue.pop_front() else { return };
        if entry.work.signaled {
            done.push_back(completion(&entry.work, Status::Success));
        }
        match self.at.checked_sub(1) {
            Some(at) => self.at = at,
            None => self.offset = 0,
        }
    }

    fn progress(&mut self, now: u64, config: &Config) {
        (self.retries, self.rnr_retries) = (config.retry_count, config.rnr_retry);
        self.implied = None;
        self.deadline = (self.unretired != self.sent).then(|| config.timeout_ns().map(|ns| now + ns)).flatten();
        // What was to be resent and has been answered meanwhile is passed over.
        if let Some(entry) = self.queue.get(self.at).filter(|entry| entry.sent) {
            let answered = psn::diff(self.unretired, psn::add(entry.first, self.offset));
            if answered > 0 {
                self.offset += answered as u32;
            }
        }
    }

    /// Back to the first PSN that is not retired.
    fn rewind(&mut self) {
        self.rewinds += 1;
        self.at = 0;
        self.offset = self.queue.front().filter(|entry| entry.sent).map_or(0, |entry| self.unretired.wrapping_sub(entry.first) & psn::MASK);
    }

    fn again(&mut self) -> Effect {
        self.retries = self.retries.checked_sub(1).ok_or(Failure::Fatal(Status::RetriesExceeded))?;
        self.rewind();
        Ok(())
    }

    fn implied_nak(&mut self) -> Effect {
        if self.rnr_until.is_some() || self.implied.replace(self.unretired) == Some(self.unretired) {
            return Ok(());
        }
        self.again()
    }

    /// The time has come that [`Requester::timer`] told.
    pub fn tick(&mut self, now: u64, config: &Config) -> Effect {
        if self.rnr_until.is_some_and(|until| now >= until) {
            self.rnr_until = None;
        }
        if self.rnr_until.is_none() && self.deadline.is_some_and(|deadline| now >= deadline) {
            self.timeouts += 1;
            self.deadline = config.timeout_ns().map(|ns| now + ns);
            self.implied = None;
            return self.again();
        }
        Ok(())
    }

    /// Everything ends: the first with `status`, the others flushed.
    pub fn flush(&mut self, status: Status, done: &mut VecDeque<Completion>) {
        for (at, entry) in self.queue.drain(..).enumerate() {
            done.push_back(completion(&entry.work, if at == 0 { status } else { Status::Flushed }));
        }
        (self.at, self.offset, self.deadline, self.rnr_until) = (0, 0, None, None);
    }
}

fn completion(work: &WorkRequest, status: Status) -> Completion {
    Completion { id: work.id, status, receive: false, length: work.length, imm: None, invalidated: None }
}

/// The opcode of packet `offset` of `span`.
fn opcode(work: &WorkRequest, offset: u32, span: u32) -> Opcode {
    let (first, last) = (offset == 0, offset + 1 >= span);
    let pick = |first_opcode, middle, last_opcode, only| match (first, last) {
        (true, true) => only,
        (true, false) => first_opcode,
        (false, true) => last_opcode,
        (false, false) => middle,
    };
    use Opcode as O;
    match work.operation {
        Operation::Send { imm: Some(_), .. } => pick(O::SEND_FIRST, O::SEND_MIDDLE, O::SEND_LAST_IMM, O::SEND_ONLY_IMM),
        Operation::Send { invalidate: Some(_), .. } => pick(O::SEND_FIRST, O::SEND_MIDDLE, O::SEND_LAST_INV, O::SEND_ONLY_INV),
        Operation::Send { .. } => pick(O::SEND_FIRST, O::SEND_MIDDLE, O::SEND_LAST, O::SEND_ONLY),
        Operation::Write { imm: Some(_) } => pick(O::WRITE_FIRST, O::WRITE_MIDDLE, O::WRITE_LAST_IMM, O::WRITE_ONLY_IMM),
        Operation::Write { imm: None } => pick(O::WRITE_FIRST, O::WRITE_MIDDLE, O::WRITE_LAST, O::WRITE_ONLY),
        Operation::Read => O::READ_REQUEST,
        Operation::CompareSwap { .. } => O::COMPARE_SWAP,
        Operation::FetchAdd { .. } => O::FETCH_ADD,
    }
}
