//! Both directions of one reliable connection.

use super::End;
use crate::packet::{Class, Frame, Opcode, Position, Syndrome};
use crate::psn;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// What a frame showed.
#[derive(Default)]
pub struct Found {
    pub faults: Vec<(&'static str, String)>,
    pub resends: usize,
    pub gaps: usize,
    pub sequence_naks: usize,
    pub rnr_naks: usize,
    pub error_naks: usize,
}

impl Found {
    fn fault(&mut self, rule: &'static str, text: String) {
        self.faults.push((rule, text));
    }
}

/// A connection; `ends[side]` receives the requests of `flows[side]`.
pub struct Connection {
    ends: [Option<End>; 2],
    flows: [Flow; 2],
}

impl Connection {
    /// One whose first end is known, and perhaps its second.
    pub fn new(first: End, second: Option<End>, pmtu: Option<u32>) -> Self {
        let flow = || Flow { pmtu, ..Flow::default() };
        Connection { ends: [Some(first), second], flows: [flow(), flow()] }
    }

    /// What CM agreed on: path MTU, and the first PSNs that the second and the first end receive.
    pub fn begin(&mut self, pmtu: u32, second_receives: u32, first_receives: u32) {
        for (flow, start) in self.flows.iter_mut().zip([first_receives, second_receives]) {
            *flow = Flow { pmtu: Some(pmtu), next: Some(start), start: Some(start), ..Flow::default() };
        }
    }

    pub fn has(&self, end: End) -> bool {
        self.ends.contains(&Some(end))
    }

    /// Which side a request from `from` to `to` belongs to.
    pub fn side_of(&self, from: Ipv4Addr, to: End) -> Option<usize> {
        (0..2).find(|&side| self.ends[side] == Some(to) && self.ends[1 - side].is_none_or(|other| other.ip == from))
    }

    /// The side whose requests a response from `from` to `to` answers.
    pub fn response_side(&self, from: Ipv4Addr, to: End) -> Option<usize> {
        (0..2).find(|&side| self.ends[1 - side] == Some(to) && self.ends[side].is_some_and(|other| other.ip == from))
    }

    /// Whether `psn` answers the requests of a side whose requester is not named yet.
    pub fn may_answer(&self, from: Ipv4Addr, to: End, number: u32) -> bool {
        let (flow, named) = (&self.flows[0], self.ends[1].is_some());
        !named && self.ends[0].is_some_and(|end| end.ip == from && end.ip != to.ip) && flow.holds(number)
    }

    /// Now the requester's own end is known; `other` is what was seen of the requests to it.
    pub fn name_requester(&mut self, to: End, other: Option<Connection>) {
        self.ends[1] = Some(to);
        if let Some(other) = other {
            let [flow, _] = other.flows;
            self.flows[1] = flow;
        }
    }

    /// Whether only requests to `end` have been seen.
    pub fn is_half(&self, end: End) -> bool {
        self.ends == [Some(end), None]
    }

    pub fn request(&mut self, side: usize, number: usize, frame: &Frame, found: &mut Found) {
        self.flows[side].request(number, frame, found);
    }

    pub fn response(&mut self, side: usize, frame: &Frame, found: &mut Found) {
        self.flows[side].response(frame, found);
    }

    /// Gaps that were never filled.
    pub fn missing(self) -> Vec<(usize, String)> {
        let missing = self.flows.into_iter().flat_map(|flow| flow.missing);
        missing.map(|(psn, frame)| (frame, format!("PSN {psn:#08x} was left out before this frame and never seen"))).collect()
    }
}

/// A request packet that was seen.
#[derive(Clone, Debug)]
struct Seen {
    opcode: Opcode,
    /// Everything that a resend must not change.
    contents: (crate::packet::Extensions, Vec<u8>, u8),
    /// PSNs it takes.
    span: u32,
}

/// Requests of one direction, and what answers them.
#[derive(Default)]
struct Flow {
    pmtu: Option<u32>,
    /// First PSN of the connection, if CM told.
    start: Option<u32>,
    /// The PSN behind the highest seen.
    next: Option<u32>,
    /// By first PSN.
    seen: BTreeMap<u32, Seen>,
    /// Left out, with the frame that showed it.
    missing: BTreeMap<u32, usize>,
    /// Inside which kind of message the last new packet left us, and what remains of a WRITE; `None` = unknown.
    inside: Option<(Option<Class>, u64)>,
    /// PSN and MSN of the newest answer.
    answered: Option<(u32, u32)>,
}

impl Flow {
    /// Whether a packet that was seen takes this PSN.
    fn holds(&self, number: u32) -> bool {
        self.next.is_some_and(|next| psn::diff(number, next) < 0) && self.seen_at(number).is_some()
    }

    /// The packet whose PSNs `number` is one of.
    fn seen_at(&self, number: u32) -> Option<(u32, &Seen)> {
        let below = self.seen.range(..=number).next_back();
        let at = below.or_else(|| self.seen.iter().next_back())?;
        let offset = number.wrapping_sub(*at.0) & psn::MASK;
        (offset < at.1.span).then_some((*at.0, at.1))
    }

    fn request(&mut self, number: usize, frame: &Frame, found: &mut Found) {
        let (bth, ext) = (&frame.packet.bth, &frame.packet.ext);
        let length = frame.packet.payload.len() as u32;
        if bth.opcode.ends() && !bth.ack_request && matches!(bth.opcode.class(), Some(Class::Send | Class::Write)) {
            found.fault("ack-request", format!("{} without AckReq: nothing asks for its answer", bth.opcode));
        }
        if self.pmtu.is_none() && bth.opcode.position() == Position::First {
            self.pmtu = Some(length);
        }
        let read = ext.reth.filter(|_| bth.opcode == Opcode::READ_REQUEST);
        // Where no path MTU is known, a READ's span is learnt from its responses.
        let span = match (read, self.pmtu) {
            (Some(reth), Some(pmtu)) => psn::count(reth.length, pmtu),
            (Some(reth), None) => psn::count(reth.length, 4096),
            _ => 1,
        };
        let contents = (*ext, frame.packet.payload.clone(), bth.pad | u8::from(bth.solicited) << 7);
        let seen = Seen { opcode: bth.opcode, contents, span };
        if self.pmtu.is_none() {
            self.infer(bth.psn);
        }
        let ahead = self.next.map_or(0, |next| psn::diff(bth.psn, next));
        if ahead < 0 {
            self.again(bth.psn, seen, found);
        } else {
            if ahead > 0 {
                found.gaps += ahead as usize;
                let from = self.next.unwrap_or(bth.psn);
                self.missing.extend((0..ahead.min(4096) as u32).map(|n| (psn::add(from, n), number)));
                self.inside = None;
            }
            self.sizes(frame, found);
            self.seen.insert(bth.psn, seen);
            self.next = Some(psn::add(bth.psn, span));
        }
        // Enough for every window; a PSN that comes round again is a new one.
        while self.seen.len() > 1 << 16 {
            let oldest = self.next.map(|next| psn::add(next, 1 << 22));
            let key = oldest.and_then(|from| self.seen.range(from..).next().or_else(|| self.seen.iter().next())).map(|entry| *entry.0);
            let Some(key) = key else { break };
            self.seen.remove(&key);
        }
    }

    /// The path MTU from the PSNs that a READ took, where the next request tells.
    fn infer(&mut self, following: u32) {
        let Some(last) = self.next.map(|next| psn::add(next, psn::MASK)) else { return };
        let Some((&first, seen)) = self.seen.get_key_value(&last).filter(|(_, seen)| seen.opcode == Opcode::READ_REQUEST) else { return };
        let span = following.wrapping_sub(first) & psn::MASK;
        let length = seen.contents.0.reth.map_or(0, |reth| reth.length);
        let fits = |pmtu: &u32| span > 1 && psn::count(length, *pmtu) == span;
        if let Some(pmtu) = [256, 512, 1024, 2048, 4096].into_iter().find(fits) {
            self.pmtu = Some(pmtu);
            self.next = Some(following);
            if let Some(seen) = self.seen.get_mut(&first) {
                seen.span = span;
            }
        }
    }

    /// A PSN below the highest: a resend, or a packet that came late.
    fn again(&mut self, number: u32, seen: Seen, found: &mut Found) {
        let filled = (0..seen.span).filter(|&n| self.missing.remove(&psn::add(number, n)).is_some()).count();
        if filled > 0 && !self.seen.contains_key(&number) {
            self.seen.insert(number, seen);
            return;
        }
        found.resends += 1;
        let Some((first, old)) = self.seen_at(number) else { return };
        if seen.opcode == Opcode::READ_REQUEST && old.opcode == Opcode::READ_REQUEST {
            // It may resume: the same region, further on, to the same end or before it.
            let (Some(was), Some(now)) = (old.contents.0.reth, seen.contents.0.reth) else { return };
            let skipped = now.address.wrapping_sub(was.address);
            let right = was.rkey == now.rkey && skipped + u64::from(now.length) <= u64::from(was.length);
            let offset = u64::from(number.wrapping_sub(first) & psn::MASK);
            if !right || self.pmtu.is_some_and(|pmtu| skipped != offset * u64::from(pmtu)) {
                found.fault("resend", format!("READ {was:?} at PSN {first:#08x} asked again as {now:?} at {number:#08x}"));
            }
        } else if old.opcode != seen.opcode {
            found.fault("resend", format!("PSN {number:#08x} was {}, now {}", old.opcode, seen.opcode));
        } else if old.contents != seen.contents {
            found.fault("resend", format!("PSN {number:#08x} ({}) came again with other contents", seen.opcode));
        }
    }

    /// Opcode sequence and payload sizes of a new packet.
    fn sizes(&mut self, frame: &Frame, found: &mut Found) {
        let opcode = frame.packet.bth.opcode;
        let length = frame.packet.payload.len() as u64;
        let class = opcode.class();
        if let Some((inside, _)) = self.inside {
            let right = if opcode.starts() { inside.is_none() } else { inside == class };
            if !right {
                found.fault("opcode-sequence", format!("{opcode} inside {inside:?}"));
            }
        }
        if let Some(pmtu) = self.pmtu.map(u64::from) {
            let right = match opcode.position() {
                Position::First | Position::Middle => length == pmtu,
                Position::Last => (1..=pmtu).contains(&length),
                Position::Only => length <= pmtu,
            };
            if !right {
                found.fault("size", format!("{opcode} with {length} bytes at PMTU {pmtu}"));
            }
        }
        if class == Some(Class::Write) {
            let announced = frame.packet.ext.reth.map(|reth| u64::from(reth.length));
            let left = announced.or(self.inside.filter(|(inside, _)| inside.is_some()).map(|(_, left)| left));
            if let Some(left) = left {
                if length > left || (opcode.ends() && length != left) {
                    found.fault("size", format!("{opcode} with {length} bytes where {left} remain of the WRITE"));
                }
                self.inside = Some(if opcode.ends() { (None, 0) } else { (class, left.saturating_sub(length)) });
                return;
            }
        }
        // Without the WRITE's first packet what remains is unknown: no more of it is checked.
        self.inside = if opcode.ends() { Some((None, 0)) } else { Some((class, u64::MAX)).filter(|_| class != Some(Class::Write)) };
    }

    fn response(&mut self, frame: &Frame, found: &mut Found) {
        let (bth, aeth) = (&frame.packet.bth, frame.packet.ext.aeth);
        let Some(next) = self.next else {
            return found.fault("answer", format!("{} where no request was seen", bth.opcode));
        };
        let nak = bth.opcode == Opcode::ACK && aeth.is_some_and(|aeth| !aeth.syndrome.is_ack());
        // A NAK names what was expected: at most the PSN behind the highest.
        if psn::diff(bth.psn, next) >= i32::from(nak) {
            return found.fault("answer", format!("{} of PSN {:#08x}, but {next:#08x} is the next to be sent", bth.opcode, bth.psn));
        }
        if let Some(start) = self.start.filter(|start| psn::diff(psn::add(bth.psn, 1), *start) < 0) {
            return found.fault("answer", format!("{} of PSN {:#08x} before the first, {start:#08x}", bth.opcode, bth.psn));
        }
        match bth.opcode.class() {
            Some(Class::ReadResponse) => self.read_response(frame, found),
            Some(Class::AtomicAck) => match self.seen_at(bth.psn) {
                Some((_, seen)) if !seen.opcode.is_atomic() => {
                    found.fault("answer", format!("an ATOMIC ACK of PSN {:#08x}, a {}", bth.psn, seen.opcode));
                }
                _ => {}
            },
            _ => self.acknowledgement(bth.psn, aeth.map(|aeth| aeth.syndrome), found),
        }
        if let Some(aeth) = aeth {
            self.count(bth.psn, aeth.msn, found);
        }
    }

    fn acknowledgement(&mut self, number: u32, syndrome: Option<Syndrome>, found: &mut Found) {
        match syndrome {
            Some(Syndrome::Ack(_)) if self.missing.contains_key(&number) => {
                found.fault("answer", format!("an ACK of PSN {number:#08x}, which was not seen"));
            }
            Some(Syndrome::SequenceError) => found.sequence_naks += 1,
            Some(Syndrome::Rnr(_)) => {
                found.rnr_naks += 1;
                let needs = |seen: &Seen| match seen.opcode.class() {
                    Some(Class::Send) => seen.opcode.starts(),
                    _ => seen.contents.0.imm.is_some(),
                };
                if let Some((_, seen)) = self.seen_at(number).filter(|(_, seen)| !needs(seen)) {
                    found.fault("rnr", format!("an RNR NAK of {}", seen.opcode));
                }
            }
            Some(Syndrome::Ack(0)) => found.fault("aeth", "an ACK with no credits: its receiver may send nothing more".to_string()),
            Some(Syndrome::Other(value)) => found.fault("aeth", format!("syndrome {value:#04x}")),
            Some(Syndrome::Ack(_)) | None => {}
            Some(_) => found.error_naks += 1,
        }
    }

    fn read_response(&mut self, frame: &Frame, found: &mut Found) {
        let bth = &frame.packet.bth;
        let length = frame.packet.payload.len() as u64;
        let Some((first, seen)) = self.seen_at(bth.psn) else { return };
        let Some(reth) = seen.contents.0.reth.filter(|_| seen.opcode == Opcode::READ_REQUEST) else {
            return found.fault("answer", format!("{} of PSN {:#08x}, a {}", bth.opcode, bth.psn, seen.opcode));
        };
        let Some(pmtu) = self.pmtu.map(u64::from) else {
            // The first of several responses has the path MTU.
            if bth.opcode == Opcode::READ_RESPONSE_FIRST {
                self.pmtu = Some(length as u32);
                let span = psn::count(reth.length, length as u32);
                if let Some(seen) = self.seen.get_mut(&first) {
                    seen.span = span;
                }
                self.next = Some(psn::add(first, span)).filter(|&next| self.next.is_none_or(|old| psn::diff(next, old) > 0)).or(self.next);
            }
            return;
        };
        let offset = u64::from(bth.psn.wrapping_sub(first) & psn::MASK) * pmtu;
        let left = u64::from(reth.length) - offset.min(u64::from(reth.length));
        // A resumed READ may be answered FIRST in the middle, and may have been asked for less.
        if length > left || (!bth.opcode.ends() && length != pmtu) || (bth.opcode.ends() && length > pmtu) {
            found.fault("size", format!("{} with {length} bytes where {left} remain of the READ", bth.opcode));
        }
        if !bth.opcode.ends() && length == left {
            found.fault("opcode-sequence", format!("{} is the end of its READ", bth.opcode));
        }
        if bth.psn == first && !bth.opcode.starts() {
            found.fault("opcode-sequence", format!("{} at the start of its READ", bth.opcode));
        }
    }

    /// The MSN never falls while the PSN rises.
    fn count(&mut self, number: u32, msn: u32, found: &mut Found) {
        match self.answered {
            Some((newest, was)) if psn::diff(number, newest) > 0 => {
                if psn::diff(msn, was) < 0 {
                    found.fault("msn", format!("MSN {msn} at PSN {number:#08x} after {was} at {newest:#08x}"));
                }
                self.answered = Some((number, msn));
            }
            None => self.answered = Some((number, msn)),
            Some(_) => {}
        }
    }
}
