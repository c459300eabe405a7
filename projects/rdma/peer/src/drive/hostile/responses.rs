//! Hostile responses to the board's requester, the plugin `rdma-bench`: it sends what the model sends, ends in error where the model does, and else the run is done when the
//! right answers come.

use super::super::faults::raw::{ANSWER_NS, Heard, NOWHERE, Raw, aeth, bytes, names};
use super::super::requester::{Command, Request, pattern};
use super::super::{LOCAL, PATIENCE_NS, Target, all::BENCH_PORT, wrong};
use super::Scope;
use super::ground::{Ground, SILENCE_NS, comparable, show};
use crate::cm::tcp_service;
use crate::live::{Station, Wire};
use crate::model::connection::Phase;
use crate::model::{Config, Memory, Operation, Qp, State, WorkRequest};
use crate::packet::{Bth, Class, Extensions, Frame, Opcode, Packet, Syndrome};
use crate::psn;
use std::io;

/// The key of our memory, and the pattern that the bench fills its buffer with.
const KEY: u32 = 0x100;
const SEED: u32 = 0x1234_5678;

/// The bench fills its buffer and starts, or waits for an RNR timer and starts again, within this.
const START_NS: u64 = 500_000;

/// Later than any timer of the model's.
const LATER: u64 = u64::MAX / 2;

/// What the board is told to do.
const RUNS: [(Request, u32); 5] =
    [(Request::Write, 1), (Request::Send, 1), (Request::Read, 1), (Request::FetchAdd, 1), (Request::WriteAndRead, 2)];

pub fn run<W: Wire>(ground: &mut Ground<W>, _: &Scope) -> io::Result<()> {
    let target = Target { service: tcp_service(BENCH_PORT), region: Some(NOWHERE), ..ground.target };
    let mut open: Option<Duel> = None;
    for (request, count) in RUNS {
        let mut at = 0;
        loop {
            let mut duel = match open.take() {
                Some(duel) => duel,
                None => {
                    ground.found.connections += 1;
                    Duel::open(ground.station, target)?
                }
            };
            duel.begin(ground.station, request, count)?;
            let mut cases = duel.cases(request);
            if at >= cases.len() {
                duel.finish(ground.station, count)?;
                open = Some(duel);
                break;
            }
            let frames = cases.swap_remove(at);
            at += 1;
            ground.found.packets += frames.len() as u64;
            let mut name = String::new();
            match duel.take(ground.station, &frames, count, &mut name) {
                Ok(true) => open = Some(duel),
                Ok(false) => {}
                Err(error) => {
                    ground.found.mismatches.push(format!("{request:?}, {name}: {error}"));
                    let _ = duel.raw.close(ground.station);
                }
            }
        }
    }
    open.map_or(Ok(()), |duel| duel.raw.close(ground.station))
}

/// A connection to the bench, with the model of its requester.
struct Duel {
    raw: Raw,
    model: Qp,
    memory: Memory,
    /// PSN of the first packet of this run, its messages (first PSN, PSNs, operation), and the request that was heard last for each.
    first: u32,
    asked: Vec<Packet>,
}

impl Duel {
    fn open<W: Wire>(station: &mut Station<W>, target: Target) -> io::Result<Duel> {
        let raw = Raw::connect(station, target)?;
        let connection = &station.node.connections[raw.id];
        let rep = connection.rep.clone().ok_or_else(|| wrong("no REP".into()))?;
        let model = Qp::new(Config {
            local_qpn: raw.board_qpn,
            remote_qpn: raw.our_qpn,
            pmtu: raw.pmtu,
            send_psn: raw.board_psn,
            receive_psn: raw.psn,
            // Time stands still for it.
            ack_timeout: 0,
            retry_count: connection.req.retry_count,
            rnr_retry: connection.req.rnr_retry_count,
            initiator_depth: rep.initiator_depth,
            ..Config::default()
        });
        // What it sends comes from the start, what it reads goes behind.
        let memory = Memory::new(0, 1 << 17);
        Ok(Duel { first: raw.board_psn, raw, model, memory, asked: Vec::new() })
    }

    fn size(&self, request: Request) -> u32 {
        match request {
            Request::FetchAdd | Request::CompareSwap => 8,
            Request::WriteAndRead => 2 * self.raw.pmtu + 4,
            _ => 2 * self.raw.pmtu + 7,
        }
    }

    /// Gives the board its command and waits for all that it sends.
    fn begin<W: Wire>(&mut self, station: &mut Station<W>, request: Request, count: u32) -> io::Result<()> {
        let size = self.size(request);
        let command = Command { operand: 5, seed: SEED, ..Command::new(request, size, count) };
        let packet = self.raw.packet(Opcode::SEND_ONLY, self.raw.psn, Extensions::default(), &command.encode(KEY));
        self.raw.put(station, &packet)?;
        let heard = self.raw.wait(station, ANSWER_NS, 1)?;
        if heard[0].psn() != self.raw.psn || !heard[0].syndrome().is_some_and(Syndrome::is_ack) {
            return Err(wrong(format!("the command got {}", names(&heard))));
        }
        self.raw.psn = psn::add(self.raw.psn, 1);
        let content = (0..size).map(|at| pattern(SEED, at)).collect::<Vec<_>>();
        self.memory.write(0, &content);
        let write = WorkRequest {
            id: 0,
            operation: Operation::Write { imm: None },
            local: 0,
            length: size,
            remote: LOCAL,
            rkey: KEY,
            signaled: true,
        };
        let read = WorkRequest { operation: Operation::Read, local: 1 << 16, ..write };
        match request {
            Request::Send => self.model.post(WorkRequest { operation: Operation::Send { imm: None, invalidate: None }, ..write }),
            Request::Read => self.model.post(read),
            Request::FetchAdd => self.model.post(WorkRequest { operation: Operation::FetchAdd { add: 5 }, ..read }),
            Request::WriteAndRead => [write, read].into_iter().for_each(|work| self.model.post(work)),
            _ => self.model.post(write),
        }
        self.asked.clear();
        let heard = self.compare(station, START_NS + u64::from(size * count) * 20)?;
        self.first = heard.first().map_or(0, |packet| packet.bth.psn);
        Ok(())
    }

    /// What the board sends must be what the model does.
    fn compare<W: Wire>(&mut self, station: &mut Station<W>, ns: u64) -> io::Result<Vec<Packet>> {
        let wanted = std::iter::from_fn(|| self.model.poll(LATER, &self.memory)).map(comparable).collect::<Vec<_>>();
        if wanted.is_empty() {
            return Ok(wanted);
        }
        let found = self.raw.hear(station, ns, wanted.len())?.into_iter().map(|heard: Heard| comparable(heard.packet)).collect::<Vec<_>>();
        if found != wanted {
            return Err(wrong(format!("wanted {}, got {}", show(&wanted), show(&found))));
        }
        self.asked.extend(wanted.iter().cloned());
        Ok(wanted)
    }

    /// The model gets a frame as the board does.
    fn feed(&mut self, bytes: &[u8]) {
        let Ok(frame) = Frame::decode(bytes) else { return };
        let head = &self.raw.head;
        let ours =
            frame.destination == head.destination && frame.destination_ip == head.destination_ip && frame.source_ip == head.source_ip;
        if ours && frame.packet.bth.destination == self.raw.board_qpn {
            self.model.receive(0, &frame.packet, false, &mut self.memory);
        }
    }

    /// Hostile frames, what the board does then, and the end of the run. False where the connection is over.
    fn take<W: Wire>(&mut self, station: &mut Station<W>, frames: &[Named], count: u32, last: &mut String) -> io::Result<bool> {
        for (name, frame) in frames {
            last.clone_from(name);
            self.feed(frame);
            station.inject(frame)?;
            self.compare(station, START_NS)?;
        }
        if self.model.state != State::Error {
            return self.finish(station, count).map(|()| true);
        }
        let heard = self.raw.hear(station, SILENCE_NS, usize::MAX)?;
        if !heard.is_empty() {
            return Err(wrong(format!("wanted an error, got {}", names(&heard))));
        }
        // The board ends it.
        let id = self.raw.id;
        let until = station.now() + PATIENCE_NS;
        let ended = station.run(until, |node| node.connections[id].phase == Phase::Closed)?;
        if ended { Ok(false) } else { Err(wrong("the connection does not end".into())) }
    }

    /// The right answers to all that was asked for, and then the result of the run.
    fn finish<W: Wire>(&mut self, station: &mut Station<W>, count: u32) -> io::Result<()> {
        while self.model.outstanding() > 0 {
            // What was asked for last, of the oldest that has no answer.
            let unanswered = self.model.unretired();
            let oldest = self.asked.iter().rev().find(|packet| {
                let span = packet.ext.reth.filter(|_| packet.bth.opcode == Opcode::READ_REQUEST);
                let span = span.map_or(1, |reth| psn::count(reth.length, self.raw.pmtu));
                psn::diff(unanswered, packet.bth.psn) >= 0 && psn::diff(unanswered, psn::add(packet.bth.psn, span)) < 0
            });
            let Some(oldest) = oldest.cloned() else { return Err(wrong(format!("PSN {unanswered:#08x} was never sent"))) };
            for packet in self.right(&oldest, unanswered) {
                let frame = self.raw.frame(&packet);
                self.feed(&frame);
                station.inject(&frame)?;
            }
            self.compare(station, START_NS)?;
        }
        let done = self.model.completions.drain(..).filter(|done| done.status == crate::model::Status::Success).count();
        let heard = self.raw.wait(station, START_NS, 1)?;
        let words = heard[0].packet.payload.chunks_exact(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]])).collect::<Vec<_>>();
        // Status, requests done, words that the check found wrong.
        let right = words.len() == 7 && (words[0], words[1], words[6]) == (0, count, 0) && done == count as usize;
        if heard[0].opcode() != Opcode::SEND_ONLY || !right {
            return Err(wrong(format!("a result {words:?} in {}", names(&heard))));
        }
        self.model.post(WorkRequest {
            id: 1,
            operation: Operation::Send { imm: None, invalidate: None },
            local: 0,
            length: 28,
            remote: 0,
            rkey: 0,
            signaled: false,
        });
        let sent = self.model.poll(LATER, &self.memory).map(|packet| packet.bth.psn);
        if sent != Some(heard[0].psn()) {
            return Err(wrong(format!("the result has PSN {:#08x}, not {sent:x?}", heard[0].psn())));
        }
        let ack = self.raw.frame(&self.raw.packet(Opcode::ACK, heard[0].psn(), aeth(Syndrome::OK), &[]));
        self.feed(&ack);
        station.inject(&ack)
    }

    /// The right answer to a request of the board's from PSN `from` on.
    fn right(&self, asked: &Packet, from: u32) -> Vec<Packet> {
        let number = asked.bth.psn;
        match asked.bth.opcode.class() {
            Some(Class::ReadRequest) => {
                let reth = asked.ext.reth.unwrap_or_default();
                let (count, start) = (psn::count(reth.length, self.raw.pmtu), (reth.address - LOCAL) as u32);
                let skipped = psn::diff(from, number) as u32;
                (skipped..count).map(|at| self.response(start, reth.length, number, at, at == skipped)).collect()
            }
            Some(Class::FetchAdd | Class::CompareSwap) => {
                let ext = Extensions { atomic_ack: Some(0x55), ..aeth(Syndrome::OK) };
                vec![self.raw.packet(Opcode::ATOMIC_ACK, number, ext, &[])]
            }
            _ => {
                // All SENDs and WRITEs up to the next READ or atomic.
                let behind = self.asked.iter().filter(|packet| psn::diff(packet.bth.psn, number) >= 0);
                let last =
                    behind.map(|packet| packet.bth).take_while(|bth| matches!(bth.opcode.class(), Some(Class::Send | Class::Write))).last();
                vec![self.raw.packet(Opcode::ACK, last.map_or(number, |bth| bth.psn), aeth(Syndrome::OK), &[])]
            }
        }
    }

    /// Response `at` of a READ of `length` bytes from `start` of our memory on, whose request has PSN `first`.
    fn response(&self, start: u32, length: u32, first: u32, at: u32, begins: bool) -> Packet {
        let pmtu = self.raw.pmtu;
        let last = at + 1 == psn::count(length, pmtu);
        let opcode = match (begins, last) {
            (true, true) => Opcode::READ_RESPONSE_ONLY,
            (true, false) => Opcode::READ_RESPONSE_FIRST,
            (false, true) => Opcode::READ_RESPONSE_LAST,
            (false, false) => Opcode::READ_RESPONSE_MIDDLE,
        };
        let from = start + at * pmtu;
        let data = (from..from + pmtu.min(length - at * pmtu)).map(|at| pattern(SEED, at)).collect::<Vec<_>>();
        self.raw.packet(opcode, psn::add(first, at), aeth(Syndrome::OK), &data)
    }

    /// What is tried, one list in each run. What must get silence is tried together.
    fn cases(&self, request: Request) -> Vec<Vec<Named>> {
        let mut cases = self.any(request);
        let (first, pmtu, size) = (self.first, self.raw.pmtu, self.size(request));
        let packet = |opcode, ahead: u32, length: u32| {
            let ext = Extensions { atomic_ack: Some(9), ..aeth(Syndrome::OK) };
            self.raw.packet(opcode, psn::add(first, ahead), ext, &bytes(length, length as usize))
        };
        let right = |at| self.response(0, size, first, at, at == 0);
        let mut add = |name: &str, packets: Vec<Packet>| {
            cases.push(packets.iter().map(|packet| (name.to_owned(), self.raw.frame(packet))).collect());
        };
        let (begin, middle) = (Opcode::READ_RESPONSE_FIRST, Opcode::READ_RESPONSE_MIDDLE);
        let (last, only) = (Opcode::READ_RESPONSE_LAST, Opcode::READ_RESPONSE_ONLY);
        match request {
            Request::Read => {
                add("the second response first", vec![right(1)]);
                add("the last response first", vec![right(2)]);
                add("the first, then the last response", vec![right(0), right(2)]);
                add("the first response twice", vec![right(0), right(0)]);
                add("a response behind the last", vec![right(0), packet(last, 3, 7)]);
                for opcode in [middle, last, only] {
                    add(&format!("{opcode} in place of the first"), vec![packet(opcode, 0, pmtu)]);
                }
                add("ATOMIC ACK for a READ", vec![packet(Opcode::ATOMIC_ACK, 0, 0)]);
                for length in [0, 1, pmtu - 4, pmtu - 1, pmtu + 1, pmtu + 4, pmtu + 64] {
                    add(&format!("a first response of {length} bytes"), vec![packet(begin, 0, length)]);
                    add(&format!("a middle response of {length} bytes"), vec![right(0), packet(middle, 1, length)]);
                }
                for length in [0, 3, 6, 8, pmtu] {
                    add(&format!("a last response of {length} bytes"), vec![right(0), right(1), packet(last, 2, length)]);
                }
                add("last in place of middle", vec![right(0), packet(last, 1, pmtu)]);
                add("middle in place of last", vec![right(0), right(1), packet(middle, 2, 7)]);
            }
            Request::FetchAdd => {
                for (opcode, length) in [(only, 8), (begin, 8), (last, 8), (middle, 8), (only, 0)] {
                    add(&format!("{opcode} of {length} bytes for an atomic"), vec![packet(opcode, 0, length)]);
                }
            }
            Request::WriteAndRead => {
                let of_the_read = |at| self.response(0, size, psn::add(first, 3), at, at == 0);
                add("a response to the READ before the ACK of the WRITE", vec![of_the_read(0)]);
                add("the second response of the READ", vec![of_the_read(1)]);
                add("an ACK of all", vec![packet(Opcode::ACK, 5, 0)]);
                add("an ACK of the WRITE and part of the READ", vec![packet(Opcode::ACK, 4, 0)]);
            }
            _ => {
                for (opcode, length) in [(only, 8), (middle, pmtu), (Opcode::ATOMIC_ACK, 0)] {
                    add(&format!("{opcode} for {request:?}"), vec![packet(opcode, 1, length)]);
                }
            }
        }
        cases
    }

    /// What can come whatever was asked for.
    fn any(&self, request: Request) -> Vec<Vec<Named>> {
        let first = self.first;
        let span = match request {
            Request::FetchAdd | Request::CompareSwap => 1,
            Request::WriteAndRead => 6,
            _ => 3,
        };
        let answer = |ahead: u32, syndrome| {
            let packet = self.raw.packet(Opcode::ACK, psn::add(first, ahead), aeth(syndrome), &[]);
            (format!("{syndrome:?} for PSN {ahead:#x}"), self.raw.frame(&packet))
        };
        let (nak, rnr) = (Syndrome::SequenceError, Syndrome::Rnr(1));
        let fatal = [Syndrome::InvalidRequest, Syndrome::AccessError, Syndrome::OperationError];
        let mut cases = vec![self.outside(span), self.damaged()];
        for syndrome in [nak, rnr] {
            cases.extend((0..span).map(|ahead| vec![answer(ahead, syndrome)]));
        }
        // NAK codes, reserved ones among them.
        cases.extend(fatal.into_iter().chain([0x64, 0x7f].map(Syndrome::Other)).map(|syndrome| vec![answer(0, syndrome)]));
        cases.push([0x40, 0x5f, 0x80, 0x9f, 0xa1, 0xe0, 0xff].map(|code| answer(0, Syndrome::Other(code))).to_vec());
        // As many as there are retries, then the one that is too much.
        cases.push(vec![answer(0, nak); usize::from(self.model.config.retry_count) + 1]);
        cases
    }

    /// PSNs that are retired or were never sent, at the edges of the window.
    fn outside(&self, span: u32) -> Vec<Named> {
        let mut frames = Vec::new();
        for ahead in [psn::MASK, span, 0x7f_ffff, 0x80_0000] {
            let number = psn::add(self.first, ahead);
            let mut add = |opcode, syndrome, payload: &[u8]| {
                let ext = Extensions { atomic_ack: Some(1), ..aeth(syndrome) };
                let packet = self.raw.packet(opcode, number, ext, payload);
                frames.push((format!("{opcode} {syndrome:?} for PSN {number:#08x}"), self.raw.frame(&packet)));
            };
            let (nak, rnr) = (Syndrome::SequenceError, Syndrome::Rnr(1));
            for syndrome in [Syndrome::OK, nak, rnr, Syndrome::InvalidRequest, Syndrome::AccessError, Syndrome::OperationError] {
                add(Opcode::ACK, syndrome, &[]);
            }
            add(Opcode::READ_RESPONSE_ONLY, Syndrome::OK, &[1; 8]);
            add(Opcode::READ_RESPONSE_MIDDLE, Syndrome::OK, &[2; 8]);
            add(Opcode::ATOMIC_ACK, Syndrome::OK, &[]);
        }
        frames
    }

    /// A right answer that is wrong in one thing, or cut.
    fn damaged(&self) -> Vec<Named> {
        let right = self.right(&self.asked[0], self.first).swap_remove(0);
        let mut frames = Vec::new();
        let mut but = |name: &str, change: fn(&mut Packet)| {
            let mut packet = right.clone();
            change(&mut packet);
            frames.push((name.to_owned(), self.raw.frame(&packet)));
        };
        but("an answer to another queue pair", |packet| packet.bth.destination ^= 4);
        but("an answer with another P_Key", |packet| packet.bth.pkey = 0x8001);
        but("an answer with P_Key 0", |packet| packet.bth.pkey = 0x8000);
        but("an answer with transport version 1", |packet| packet.bth.version = 1);
        but("an answer of another service", |packet| packet.bth.opcode.0 |= 0x20);
        but("a CNP", |packet| {
            *packet = Packet::new(Bth { opcode: Opcode::CNP, becn: true, ..packet.bth }, Extensions::default(), vec![0; 16])
        });
        let mut sealed = self.raw.frame(&right);
        sealed.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
        frames.push(("an answer with a wrong ICRC".to_owned(), sealed));
        let mut head = Frame { packet: right.clone(), ..self.raw.head.clone() };
        head.source_ip = std::net::Ipv4Addr::from(u32::from(head.source_ip) ^ 8);
        frames.push(("an answer from another address".to_owned(), head.encode()));
        // A shorter one has not all of its headers.
        let transport = right.encode();
        let cuts = 0..12 + right.bth.opcode.extension_size();
        frames.extend(cuts.map(|cut| (format!("an answer cut to {cut} bytes"), self.raw.head.wrap(&transport[..cut]))));
        frames
    }
}

/// A frame and what is wrong with it.
type Named = (String, Vec<u8>);
