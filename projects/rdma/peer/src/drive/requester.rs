//! The board as requester: the plugin `rdma-bench`, told by SENDs what to do to our memory. Its README has the records.

use super::speed::limit;
use super::{LOCAL, PATIENCE_NS, Target, complete, connect, disconnect, qp, work, wrong};
use crate::live::{Station, Wire};
use crate::model::{Operation, ReceiveRequest, State, Status};
use std::io;

/// What the board does; the numbers are those of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Write = 0,
    /// With immediate data, which are the number of the message; so are those of [`Request::SendImm`].
    WriteImm = 1,
    Send = 2,
    SendImm = 3,
    Read = 4,
    CompareSwap = 5,
    FetchAdd = 6,
    /// In turn, each READ from where the WRITE before it went.
    WriteAndRead = 7,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub request: Request,
    pub size: u32,
    pub count: u32,
    pub depth: u32,
    /// Where in our memory, from [`LOCAL`] on, and where in the board's buffer.
    pub at: u32,
    pub offset: u32,
    /// Bytes that the messages step through; 0 = `size`.
    pub span: u32,
    pub seed: u32,
    pub operand: u64,
    pub compare: u64,
}

impl Command {
    /// `count` messages of `size` bytes, 8 outstanding, from the start of both memories.
    pub fn new(request: Request, size: u32, count: u32) -> Self {
        Command { request, size, count, depth: 8, at: 0, offset: 0, span: 0, seed: 0x1234_5678, operand: 0, compare: 0 }
    }

    fn span(&self) -> u32 {
        if self.span == 0 { self.size } else { self.span }
    }

    /// As the board takes it; `rkey` is that of our memory.
    pub(super) fn encode(&self, rkey: u32) -> Vec<u8> {
        // Fill what leaves the board, clear and check what comes.
        let flags = match self.request {
            Request::Write | Request::WriteImm | Request::Send | Request::SendImm => 1,
            Request::Read => 1 | 2 | 4,
            Request::WriteAndRead => 1 | 2,
            Request::CompareSwap | Request::FetchAdd => 0,
        };
        let address = LOCAL + u64::from(self.at);
        let words = [
            self.request as u32,
            self.size,
            self.count,
            self.depth,
            rkey,
            (address >> 32) as u32,
            address as u32,
            flags,
            self.offset,
            self.span,
            self.seed,
            (self.operand >> 32) as u32,
            self.operand as u32,
            (self.compare >> 32) as u32,
            self.compare as u32,
        ];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }
}

/// Byte `at` of the pattern.
pub fn pattern(seed: u32, at: u32) -> u8 {
    let y = seed.wrapping_add((at / 4).wrapping_mul(0x9e37_79b9));
    (y ^ y >> 15).to_le_bytes()[at as usize % 4]
}

/// What the board says of a run, and what the wire has shown.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    pub status: u32,
    pub done: u32,
    /// The board's clock cycles, from the first request posted to the last completion; least and most from a request to its completion.
    pub cycles: u64,
    pub least: u32,
    pub most: u32,
    /// Words of the board's buffer that its check found wrong.
    pub wrong: u32,
    /// Payload while it was on the wire.
    pub payload_mb_s: f64,
    pub limit_mb_s: f64,
}

impl Ran {
    /// Of the limit, 1 = all.
    pub fn share(&self) -> f64 {
        self.payload_mb_s / self.limit_mb_s
    }
}

/// Where in our memory the command, the result and the SENDs are.
const COMMAND: u64 = LOCAL + 0xf_0000;
const RESULT: u64 = LOCAL + 0xf_1000;
const SENDS: u64 = LOCAL + 0x8_0000;

/// Bytes of the board's memory before its buffer that decide where the pattern begins: the buffer's address is a multiple of 64.
const BLOCK: u32 = 64;

/// A connection to the bench of the board.
pub struct Bench {
    id: usize,
    /// Bytes of its buffer.
    pub length: u32,
    pmtu: u32,
}

impl Bench {
    /// # Errors
    /// Those of the wire; a refusal or silence.
    pub fn connect<W: Wire>(station: &mut Station<W>, target: Target) -> io::Result<Self> {
        let (id, offer) = connect(station, target)?;
        let pmtu = qp(station, id)?.config.pmtu;
        Ok(Bench { id, length: offer.length, pmtu })
    }

    /// # Errors
    /// Those of the wire; silence.
    pub fn disconnect<W: Wire>(self, station: &mut Station<W>) -> io::Result<()> {
        disconnect(station, self.id)
    }

    /// Path MTU in bytes.
    pub fn pmtu(&self) -> u32 {
        self.pmtu
    }

    /// How often we went back as requester, and how often because nothing came.
    ///
    /// # Errors
    /// Where the queue pair is gone.
    pub fn resends<W: Wire>(&self, station: &mut Station<W>) -> io::Result<(u64, u64)> {
        Ok(qp(station, self.id)?.resends())
    }

    /// Whether the board's queue pair has ended: given time, it neither tells the result of its run nor answers a request.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn ended<W: Wire>(&self, station: &mut Station<W>) -> io::Result<bool> {
        let (id, now) = (self.id, station.now());
        station.run(now + PATIENCE_NS, |node| node.qp(id).is_none_or(|pair| pair.state == State::Error))?;
        let pair = qp(station, id)?;
        if pair.completions.iter().any(|done| done.receive && done.status == Status::Success) {
            return Ok(false);
        }
        let probe = complete(station, id, &[work(0, Operation::Write { imm: None }, LOCAL, 0, 0, &NOWHERE)], PATIENCE_NS)?;
        Ok(probe.iter().all(|done| done.status != Status::Success))
    }

    /// Has the board do what `command` says, and compares every byte of our memory.
    ///
    /// # Errors
    /// Those of the wire; no result, or memory that is wrong. [`io::ErrorKind::ConnectionAborted`] where the
    /// connection ended in error, [`io::ErrorKind::TimedOut`] where nothing came.
    pub fn run<W: Wire>(&self, station: &mut Station<W>, command: Command) -> io::Result<Ran> {
        let Command { request, size, count, at, offset, seed, .. } = command;
        let (first, skew) = (LOCAL + u64::from(at), offset % BLOCK);
        let content = (0..command.span()).map(|i| pattern(seed, i + skew)).collect::<Vec<_>>();
        let atomics = matches!(request, Request::CompareSwap | Request::FetchAdd);
        let old =
            station.node.memory.read(first, 8).map_or(0, |bytes| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
        if request == Request::Read {
            station.node.memory.write(first, &content);
        }
        let encoded = command.encode(0x100);
        station.node.memory.write(COMMAND, &encoded);
        let (entered, left) = (station.entered.len(), station.left.len());
        let pair = qp(station, self.id)?;
        pair.completions.clear();
        if matches!(request, Request::Send | Request::SendImm | Request::WriteImm) {
            let size = if request == Request::WriteImm { 0 } else { size };
            let places = (0..count).map(|n| ReceiveRequest { id: n.into(), address: SENDS + u64::from(n * size), length: size });
            places.for_each(|place| pair.post_receive(place));
        }
        pair.post_receive(ReceiveRequest { id: u64::MAX, address: RESULT, length: 64 });
        pair.post(work(0, Operation::Send { imm: None, invalidate: None }, COMMAND, encoded.len() as u32, 0, &NOWHERE));
        let until = station.now() + PATIENCE_NS + u64::from(count) * u64::from(size) * 100;
        let id = self.id;
        let told = |node: &mut crate::model::Node| {
            node.qp(id).is_none_or(|pair| {
                let over = pair.outstanding() == 0 && pair.completions.iter().any(|done| done.receive && done.id == u64::MAX);
                pair.state == State::Error || over
            })
        };
        if !station.run(until, told)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{command:?}: no result")));
        }
        let pair = qp(station, id)?;
        let result = pair.completions.iter().find(|done| done.receive && done.id == u64::MAX).map(|done| done.status);
        let immediates = pair.completions.iter().filter(|done| done.receive).filter_map(|done| done.imm).collect::<Vec<_>>();
        pair.completions.clear();
        if result != Some(Status::Success) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, format!("{command:?}: the connection ended in error")));
        }
        let words = station.node.memory.read(RESULT, 28).unwrap_or_default();
        let words = words.chunks(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]])).collect::<Vec<_>>();
        let memory = &station.node.memory;
        let same = match request {
            Request::Write | Request::WriteImm | Request::WriteAndRead => memory.read(first, content.len()) == Some(&content),
            Request::Send | Request::SendImm => {
                (0..count).all(|n| memory.read(SENDS + u64::from(n * size), size as usize) == Some(&content[..size as usize]))
            }
            Request::Read => true,
            Request::CompareSwap if old == command.compare => memory.read(first, 8) == Some(&command.operand.to_le_bytes()),
            Request::CompareSwap => memory.read(first, 8) == Some(&old.to_le_bytes()),
            Request::FetchAdd => memory.read(first, 8) == Some(&old.wrapping_add(command.operand.wrapping_mul(count.into())).to_le_bytes()),
        };
        let numbered = if matches!(request, Request::SendImm | Request::WriteImm) { count } else { 0 };
        if !immediates.iter().copied().eq(0..numbered) {
            return Err(wrong(format!("{command:?}: immediate data {immediates:?}")));
        }
        if !same {
            return Err(wrong(format!("{command:?}: our memory is not what it should be")));
        }
        // Full packets carry the payload, from the first bit of the first to the last of the last, and one gap. Where both directions do,
        // only the time counts in which both are at work: the first READ waits for the first WRITE, and the last stands alone.
        let full = f64::from(self.pmtu) * station.byte_ns;
        let carriers = |frames: &[(u64, u64)]| -> Vec<(u64, u64)> {
            frames.iter().copied().filter(|frame| (frame.1 - frame.0) as f64 > full).collect()
        };
        let (out, back) = (carriers(&station.left[left..]), carriers(&station.entered[entered..]));
        let bounds = |frames: &[(u64, u64)]| frames.first().zip(frames.last()).map_or((0, 0), |(first, last)| (first.0, last.1));
        let (from, to) = match request {
            Request::Read => bounds(&back),
            Request::WriteAndRead => (bounds(&out).0.max(bounds(&back).0), bounds(&out).1.min(bounds(&back).1)),
            _ => bounds(&out),
        };
        let inside = |frames: &[(u64, u64)]| frames.iter().filter(|frame| frame.0 >= from && frame.1 <= to).count() as f64;
        let bytes = match request {
            Request::WriteAndRead => (inside(&out) + inside(&back)) * f64::from(self.pmtu),
            _ => f64::from(count) * f64::from(size),
        };
        let ns = to.saturating_sub(from) as f64 + 12.0 * station.byte_ns;
        let (write, read) =
            (limit(size, self.pmtu, 16, station.byte_ns), limit(size, self.pmtu, if size > self.pmtu { 8 } else { 4 }, station.byte_ns));
        let limit_mb_s = match request {
            Request::Read => read,
            Request::WriteAndRead => write + read,
            Request::Send | Request::SendImm => limit(size, self.pmtu, 0, station.byte_ns),
            _ => write,
        };
        if words.len() != 7 || (atomics && size != 8) {
            return Err(wrong(format!("{command:?}: a result of {} words", words.len())));
        }
        Ok(Ran {
            status: words[0],
            done: words[1],
            cycles: u64::from(words[2]) << 32 | u64::from(words[3]),
            least: words[4],
            most: words[5],
            wrong: words[6],
            payload_mb_s: if from == to { 0.0 } else { bytes / ns * 1000.0 },
            limit_mb_s,
        })
    }
}

/// A SEND has no remote address.
const NOWHERE: super::Offer = super::Offer { address: 0, rkey: 0, length: 0 };
