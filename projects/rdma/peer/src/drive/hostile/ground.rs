//! The board, the model in its place, and a connection on which both get the same packets.

use super::super::faults::raw::bytes;
use super::super::{LOCAL, Offer, PATIENCE_NS, Target, all::BENCH_PORT, complete, connect, disconnect, work, wrong};
use super::{Outcome, RECEIVE};
use crate::cm::{Mad, Message, tcp_service};
use crate::live::{Station, Wire};
use crate::model::{Access, Config, Memory, Operation, Qp, ReceiveRequest, Region, State, Status};
use crate::packet::{AtomicEth, Bth, Extensions, Frame, Opcode, Packet, Refusal, Reth, Syndrome, mtu_of_code};
use crate::psn;
use std::io;

/// Bytes of the region that are known from the start, at most.
const KNOWN: u32 = 1 << 19;

/// The board has answered a short request by then.
const ANSWER_NS: u64 = 30_000;

/// It begins to answer within this: silence is as long.
pub const SILENCE_NS: u64 = 4_000;

/// Its connection manager has taken a message or two by then.
const SETTLE_NS: u64 = 200_000;

/// Preamble, FCS and gap.
const OVERHEAD: usize = 24;

/// How finely time is cut while an answer is waited for.
const STEP_NS: u64 = 1_000;

/// After so many differences a family has shown enough.
const ENOUGH: usize = 20;

/// Packets before a difference that are told.
const SHOWN: usize = 4;

/// Bytes that are read after each hostile packet, where it aimed at.
const LOOK: u32 = 64;

/// Whom the packets go to.
pub struct Ground<'a, W> {
    pub station: &'a mut Station<W>,
    pub target: Target,
    pub offer: Offer,
    /// Bytes of the region, from its start, that the model knows.
    pub known: u32,
    pub found: Outcome,
    /// The board's memory by the model: the region, and behind it a place for a receive, which is no part of a region.
    memory: Memory,
    bout: Option<Bout>,
    /// When the last frame that was sent has gone in.
    free: u64,
    /// Good packets so far.
    proofs: u32,
}

/// A connection on which every packet is made here.
pub struct Bout {
    pub id: usize,
    /// The board's, by the model.
    pub qp: Qp,
    /// A right frame's addresses and ports.
    pub head: Frame,
    /// Records that have been looked at.
    seen: usize,
    /// What the board should have kept silent about since it last answered.
    silent: Vec<String>,
    /// A receive of the board's was used: what its application does now is its own matter.
    spent: bool,
}

impl<'a, W: Wire> Ground<'a, W> {
    /// Reads the region.
    ///
    /// # Errors
    /// Those of the wire; no connection.
    pub fn new(station: &'a mut Station<W>, target: Target) -> io::Result<Self> {
        let (id, offer) = connect(station, target)?;
        let known = KNOWN.min(offer.length);
        let contents = read(station, id, offer, known)?;
        disconnect(station, id)?;
        let mut memory = Memory::new(offer.address, (offer.length + RECEIVE) as usize);
        memory.write(offer.address, &contents);
        memory.regions.push(Region {
            base: offer.address,
            length: offer.length.into(),
            rkey: offer.rkey,
            domain: Config::default().domain,
            access: Access::ALL,
            invalidate: false,
            valid: true,
        });
        Ok(Ground { station, target, offer, known, found: Outcome::default(), memory, bout: None, free: 0, proofs: 0 })
    }

    /// What is to be sent next is made with this: a connection that is in no error, where a message may be under way only if
    /// `give` left it so.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn bout(&mut self) -> io::Result<&mut Bout> {
        if self.found.mismatches.len() >= ENOUGH {
            return Err(wrong(format!("{ENOUGH} differences")));
        }
        if self.over() {
            self.close()?;
        }
        let bout = match self.bout.take() {
            Some(bout) => bout,
            None => self.open()?,
        };
        Ok(self.bout.insert(bout))
    }

    /// Whether nothing more can be told about this connection.
    pub fn over(&self) -> bool {
        self.bout.as_ref().is_none_or(|bout| bout.spent || bout.qp.state == State::Error)
    }

    /// Goes on with another connection.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn change(&mut self, bout: Bout) -> io::Result<()> {
        self.close()?;
        self.bout = Some(bout);
        Ok(())
    }

    /// DREQ and DREP, after which what is given here must get silence.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn hang_up(&mut self) -> io::Result<()> {
        let Some(bout) = &mut self.bout else { return Ok(()) };
        bout.qp.fail(Status::Flushed);
        disconnect(self.station, bout.id)
    }

    /// # Errors
    /// Those of the wire.
    pub fn close(&mut self) -> io::Result<()> {
        let Some(bout) = self.bout.take() else { return Ok(()) };
        disconnect(self.station, bout.id)
    }

    fn open(&mut self) -> io::Result<Bout> {
        let (bout, rtu) = self.half_open()?;
        self.station.inject(&rtu)?;
        Ok(bout)
    }

    /// A connection whose RTU has yet to be sent: that frame.
    pub(super) fn half_open(&mut self) -> io::Result<(Bout, Vec<u8>)> {
        self.found.connections += 1;
        let (id, _) = connect(self.station, self.target)?;
        let now = self.station.now();
        let rtu = loop {
            let frame = self.station.node.poll(now).ok_or_else(|| wrong("no RTU".into()))?;
            let mad = Frame::decode(&frame).ok().and_then(|frame| Mad::decode(&frame.packet.payload));
            if mad.is_some_and(|mad| matches!(mad.message, Message::Rtu(_))) {
                break frame;
            }
            self.station.inject(&frame)?;
        };
        self.station.node.release(id);
        let connection = &self.station.node.connections[id];
        let rep = connection.rep.clone().ok_or_else(|| wrong("no REP".into()))?;
        let config = Config {
            local_qpn: rep.local_qpn,
            remote_qpn: connection.local_qpn,
            pmtu: mtu_of_code(connection.req.path_mtu).unwrap_or(1024),
            send_psn: connection.req.starting_psn,
            receive_psn: rep.starting_psn,
            responder_resources: rep.responder_resources,
            // Only what is asked for is acknowledged.
            ack_every: u32::MAX,
            ..Config::default()
        };
        let mut qp = Qp::new(config);
        qp.post_receive(ReceiveRequest { id: 0, address: self.offer.address + u64::from(self.offer.length), length: RECEIVE });
        let head = Frame::decode(&rtu).map_err(|refusal| wrong(refusal.to_string()))?;
        Ok((Bout { id, qp, head, seen: self.station.records.len(), silent: Vec::new(), spent: false }, rtu))
    }

    /// Sends frames, looks at every answer, and then whether the next good packet works: it reads what is at `aim`.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn give(&mut self, what: &str, frames: &[Vec<u8>], aim: u64) -> io::Result<()> {
        for frame in frames {
            if !self.put(what, frame)? {
                return Ok(());
            }
        }
        self.prove(aim)
    }

    /// As [`Ground::give`], of one packet.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn one(&mut self, what: &str, packet: &Packet, aim: u64) -> io::Result<()> {
        let frame = self.bout()?.frame(packet);
        self.give(what, &[frame], aim)
    }

    /// Sends a frame and compares what comes with what the model answers, if it does; what should get silence is known when the next
    /// answer comes. False where they differ, and then the connection is closed.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn put(&mut self, what: &str, bytes: &[u8]) -> io::Result<bool> {
        self.found.packets += 1;
        let Some(bout) = &mut self.bout else { return Ok(false) };
        let wanted = bout.take(bytes, &mut self.memory);
        let hex = bytes.iter().skip(34).take(60).map(|byte| format!("{byte:02x}")).collect::<String>();
        bout.silent.push(format!("{what} [{hex}]"));
        if bout.silent.len() > SHOWN {
            bout.silent.remove(0);
        }
        self.station.inject(bytes)?;
        self.free = self.free.max(self.station.now()) + ((bytes.len().max(60) + OVERHEAD) as f64 * self.station.byte_ns) as u64;
        if wanted.is_empty() { Ok(true) } else { self.expect(wanted, bytes) }
    }

    fn expect(&mut self, mut wanted: Vec<Packet>, bytes: &[u8]) -> io::Result<bool> {
        let size = wanted.iter().map(|packet| packet.payload.len() + 100).sum::<usize>();
        let ns = ANSWER_NS + (size as f64 * self.station.byte_ns * 1.2) as u64;
        let mut found = self.hear(wanted.len(), ns)?;
        if self.reaches_beyond(bytes) {
            // What is behind the part that is known may be anything.
            found.iter_mut().chain(&mut wanted).for_each(|packet| {
                packet.payload.fill(0);
                packet.ext.atomic_ack = packet.ext.atomic_ack.map(|_| 0);
            });
        }
        let Some(bout) = &mut self.bout else { return Ok(false) };
        let silent = std::mem::take(&mut bout.silent);
        if found == wanted {
            return Ok(true);
        }
        // From here on the two are no longer in step.
        let text = format!("{}: wanted {}, got {}", silent.join("; "), show(&wanted), show(&found));
        self.found.mismatches.push(text);
        self.close()?;
        Ok(false)
    }

    /// The next good packets: what goes on with a WRITE that is under way, now and then a WRITE, and a READ of what is at `aim`. In error:
    /// silence, and what comes next is a new connection.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn prove(&mut self, aim: u64) -> io::Result<()> {
        let Some(bout) = &self.bout else { return Ok(()) };
        if bout.qp.state == State::Error {
            let good = bout.frame(&bout.write(0, self.offer, self.offer.address, &[]));
            let dead = self.put("a good packet after an error", &good)?;
            return if dead { self.silence().map(|_| ()) } else { Ok(()) };
        }
        while let Some(bout) = &self.bout
            && let Some(left) = bout.qp.write_left()
        {
            let size = left.min(bout.pmtu());
            let opcode = if left > size { Opcode::WRITE_MIDDLE } else { Opcode::WRITE_LAST };
            let frame = bout.frame(&bout.packet(opcode, 0, Extensions::default(), &bytes(left, size as usize)));
            if !self.put("the message goes on", &frame)? {
                return Ok(());
            }
        }
        self.proofs += 1;
        let start = self.offer.address;
        // All of it where something is known.
        let at = aim.saturating_sub(u64::from(LOOK / 2)).clamp(start, start + u64::from(self.known.saturating_sub(LOOK)));
        let length = LOOK.min(self.known);
        if self.proofs.is_multiple_of(4) {
            let Some(bout) = &self.bout else { return Ok(()) };
            let good = bout.frame(&bout.write(0, self.offer, at, &bytes(self.proofs, 13)));
            if !self.put("a good WRITE", &good)? {
                return Ok(());
            }
        }
        let Some(bout) = &self.bout else { return Ok(()) };
        let good = bout.frame(&bout.read(0, self.offer, at, length));
        self.put("a good READ", &good).map(|_| ())
    }

    /// Whether nothing comes for a while.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn silence(&mut self) -> io::Result<bool> {
        let found = self.hear(1, SILENCE_NS)?;
        if let (Some(first), Some(bout)) = (found.first(), &mut self.bout) {
            let silent = std::mem::take(&mut bout.silent);
            self.found.mismatches.push(format!("{}: wanted silence, got {}", silent.join("; "), summary(first)));
            self.close()?;
        }
        Ok(found.is_empty())
    }

    /// Time for the board's connection manager to take what has come, of which there is room for little.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn settle(&mut self) -> io::Result<()> {
        let until = self.station.now() + SETTLE_NS;
        self.station.run(until, |_| false).map(|_| ())
    }

    /// What the board sends to queue pairs, but for congestion notifications, in `ns` from when it has all frames at most, and not after
    /// `count` packets.
    fn hear(&mut self, count: usize, ns: u64) -> io::Result<Vec<Packet>> {
        let until = self.free.max(self.station.now()) + ns;
        let mut heard = Vec::new();
        loop {
            let Some(bout) = &mut self.bout else { return Ok(heard) };
            while heard.len() < count && bout.seen < self.station.records.len() {
                let record = &self.station.records[bout.seen];
                bout.seen += 1;
                match Frame::decode(&record.frame) {
                    Ok(frame) if frame.source_ip != bout.head.destination_ip || frame.packet.bth.destination == 1 => {}
                    Ok(frame) if frame.packet.bth.opcode == Opcode::CNP => {}
                    Ok(frame) => heard.push(comparable(frame.packet)),
                    Err(refusal @ (Refusal::Icrc { .. } | Refusal::Malformed(_))) if record.frame[6..12] == bout.head.destination => {
                        self.found.mismatches.push(format!("{}: the board's frame: {refusal}", bout.silent.join("; ")));
                    }
                    Err(_) => {}
                }
            }
            let now = self.station.now();
            if heard.len() >= count || now >= until {
                return Ok(heard);
            }
            self.station.run(until.min(now + STEP_NS), |_| false)?;
        }
    }

    /// Whether a request names bytes of the region behind those that are known.
    fn reaches_beyond(&self, bytes: &[u8]) -> bool {
        let Ok(frame) = Frame::decode(bytes) else { return false };
        let reth = frame.packet.ext.reth.map(|reth| (reth.address, u64::from(reth.length)));
        let end = reth.or(frame.packet.ext.atomic.map(|atomic| (atomic.address, 8))).map(|(address, length)| address.wrapping_add(length));
        end.is_some_and(|end| end > self.offer.address + u64::from(self.known))
    }

    /// The model's bytes.
    pub fn expected(&self, address: u64, length: usize) -> &[u8] {
        self.memory.read(address, length).unwrap_or_default()
    }

    /// What stands right behind the region, where the board's `rdma-bench` has a key for it; nothing where it has none.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn behind(&mut self) -> io::Result<Vec<u8>> {
        self.close()?;
        let bench = Target { service: tcp_service(BENCH_PORT), region: None, ..self.target };
        let Ok((id, key)) = connect(self.station, bench) else { return Ok(Vec::new()) };
        let at = self.offer.address + u64::from(self.offer.length);
        let done = complete(self.station, id, &[work(0, Operation::Read, LOCAL, LOOK, at, &key)], PATIENCE_NS)?;
        disconnect(self.station, id)?;
        let read = done.iter().all(|done| done.status == Status::Success);
        let found = self.station.node.memory.read(LOCAL, LOOK as usize).filter(|_| read);
        Ok(found.map_or_else(Vec::new, <[u8]>::to_vec))
    }

    /// All that is known of the region is what the model says.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn compare(&mut self) -> io::Result<()> {
        self.found.connections += 1;
        let (id, offer) = connect(self.station, self.target)?;
        let found = read(self.station, id, offer, self.known)?;
        disconnect(self.station, id)?;
        let wanted = self.expected(offer.address, self.known as usize);
        let wrong = found.iter().zip(wanted).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect::<Vec<_>>();
        if let Some(&at) = wrong.first() {
            let text =
                format!("{} bytes of the region differ, the first is {at}: {:#04x}, not {:#04x}", wrong.len(), found[at], wanted[at]);
            self.found.mismatches.push(text);
        }
        Ok(())
    }
}

/// The start of the region, over a connection of the node's own.
fn read<W: Wire>(station: &mut Station<W>, id: usize, offer: Offer, length: u32) -> io::Result<Vec<u8>> {
    let done = complete(station, id, &[work(0, Operation::Read, LOCAL, length, offer.address, &offer)], PATIENCE_NS)?;
    if done.iter().any(|done| done.status != Status::Success) {
        return Err(wrong(format!("reading the region: {done:?}")));
    }
    station.node.memory.read(LOCAL, length as usize).map(<[u8]>::to_vec).ok_or_else(|| wrong("no memory to read to".into()))
}

impl Bout {
    pub fn pmtu(&self) -> u32 {
        self.qp.config.pmtu
    }

    /// What the model answers to a frame.
    fn take(&mut self, bytes: &[u8], memory: &mut Memory) -> Vec<Packet> {
        let Ok(frame) = Frame::decode(bytes) else { return Vec::new() };
        let ours = frame.destination == self.head.destination
            && frame.destination_ip == self.head.destination_ip
            && frame.source_ip == self.head.source_ip
            && frame.packet.bth.destination == self.qp.config.local_qpn;
        if !ours {
            return Vec::new();
        }
        self.qp.receive(0, &frame.packet, false, memory);
        self.spent |= !self.qp.completions.is_empty();
        std::iter::from_fn(|| self.qp.poll(0, memory)).map(comparable).collect()
    }

    /// A packet that asks for an answer, so many PSNs ahead of the expected one.
    pub fn packet(&self, opcode: Opcode, ahead: i32, ext: Extensions, payload: &[u8]) -> Packet {
        let number = psn::add(self.qp.expected_psn(), ahead as u32);
        let bth = Bth { ack_request: true, ..Bth::new(opcode, self.qp.config.local_qpn, number) };
        Packet::new(bth, ext, payload.to_vec())
    }

    /// A WRITE of one packet.
    pub fn write(&self, ahead: i32, offer: Offer, address: u64, payload: &[u8]) -> Packet {
        self.packet(Opcode::WRITE_ONLY, ahead, reth(offer, address, payload.len() as u32), payload)
    }

    pub fn read(&self, ahead: i32, offer: Offer, address: u64, length: u32) -> Packet {
        self.packet(Opcode::READ_REQUEST, ahead, reth(offer, address, length), &[])
    }

    /// Fetch-and-add, or compare-and-swap of what is there.
    pub fn atomic(&self, opcode: Opcode, ahead: i32, offer: Offer, address: u64) -> Packet {
        let atomic = AtomicEth { address, rkey: offer.rkey, operand: 0x0102_0304_0506_0708, compare: 0 };
        self.packet(opcode, ahead, Extensions { atomic: Some(atomic), ..Extensions::default() }, &[])
    }

    /// A right packet of any opcode at `address`, and what has to come before it: one packet of a WRITE where it goes on with one.
    pub fn sample(&self, opcode: Opcode, offer: Offer, address: u64) -> (Option<Packet>, Packet) {
        use crate::packet::{Class, Position};
        let pmtu = self.pmtu();
        if opcode.is_atomic() {
            return (None, self.atomic(opcode, 0, offer, address));
        }
        let position = opcode.position();
        let inside = matches!(position, Position::Middle | Position::Last);
        let whole = matches!(position, Position::First | Position::Middle);
        let payload = match opcode.class() {
            Some(Class::Send | Class::Write) if whole => bytes(opcode.0.into(), pmtu as usize),
            // What a service that exchanges keys takes without an answer.
            Some(Class::Send) => bytes(opcode.0.into(), 12),
            Some(Class::Write) => bytes(opcode.0.into(), 16),
            Some(Class::ReadResponse) => bytes(opcode.0.into(), 16),
            _ => Vec::new(),
        };
        let before = (inside && opcode.class() == Some(Class::Write)).then(|| {
            let total = pmtu + payload.len() as u32 + if whole { 16 } else { 0 };
            let first = self.packet(Opcode::WRITE_FIRST, 0, reth(offer, address, total), &bytes(1, pmtu as usize));
            Packet { bth: Bth { ack_request: false, ..first.bth }, ..first }
        });
        let announced = match position {
            Position::First => pmtu + 16,
            _ if opcode == Opcode::READ_REQUEST => 16,
            _ => payload.len() as u32,
        };
        let packet = self.packet(opcode, before.is_some().into(), reth(offer, address, announced), &payload);
        (before, packet)
    }

    pub fn frame(&self, packet: &Packet) -> Vec<u8> {
        Frame { packet: packet.clone(), ..self.head.clone() }.encode()
    }
}

pub fn reth(offer: Offer, address: u64, length: u32) -> Extensions {
    Extensions { reth: Some(Reth { address, rkey: offer.rkey, length }), ..Extensions::default() }
}

/// Without what a responder may choose: MigReq, solicited, AckReq, the credit count.
pub fn comparable(mut packet: Packet) -> Packet {
    (packet.bth.migration, packet.bth.solicited, packet.bth.ack_request) = (true, false, false);
    if let Some(aeth) = packet.ext.aeth.as_mut().filter(|aeth| aeth.syndrome.is_ack()) {
        aeth.syndrome = Syndrome::OK;
    }
    packet
}

pub fn summary(packet: &Packet) -> String {
    let aeth = packet.ext.aeth.map_or(String::new(), |aeth| format!(" {:?} MSN {}", aeth.syndrome, aeth.msn));
    format!("{} PSN {:#08x}{aeth} {} bytes", packet.bth.opcode, packet.bth.psn, packet.payload.len())
}

/// Packets in words.
pub fn show(packets: &[Packet]) -> String {
    match packets {
        [] => "silence".to_owned(),
        [first, .., last] if packets.len() > 3 => format!("{}, ... {} packets, {}", summary(first), packets.len() - 2, summary(last)),
        _ => packets.iter().map(summary).collect::<Vec<_>>().join(", "),
    }
}
