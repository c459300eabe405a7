//! The peer's side of the simulator's lock-step wire (`gateweave sim --wire step:SOCKET`, docs/simulation.md).

use crate::model::Node;
use crate::model::link::Link;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A frame of the design's. Times are nanoseconds of simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// First preamble bit.
    pub start: u64,
    /// Last FCS bit.
    pub end: u64,
    /// Without FCS.
    pub frame: Vec<u8>,
}

/// What happened up to the time that the simulator stands at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub sent: Vec<Sent>,
    /// (first preamble bit, last FCS bit) of each of our frames that has been put on the wire, in order.
    pub entered: Vec<(u64, u64)>,
}

/// A connection to a simulator. Closing it ends the run.
pub struct Step {
    reader: BufReader<UnixStream>,
    writer: BufWriter<UnixStream>,
    now: u64,
}

impl Step {
    /// Connects to a simulator that has said `ready`, and waits until it can receive frames.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn connect(path: &Path) -> io::Result<Step> {
        let stream = UnixStream::connect(path)?;
        let mut step = Step { reader: BufReader::new(stream.try_clone()?), writer: BufWriter::new(stream), now: 0 };
        step.report()?;
        Ok(step)
    }

    /// Simulated time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// A frame that goes in at `time`, or as soon after as the wire is free. Frames keep their order.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&mut self, time: u64, frame: &[u8]) -> io::Result<()> {
        self.writer.write_all(&[1])?;
        self.writer.write_all(&time.to_le_bytes())?;
        self.writer.write_all(&(frame.len() as u32).to_le_bytes())?;
        self.writer.write_all(frame)
    }

    /// Simulates up to `time`, or up to the end of the design's next frame, whichever is first.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn advance(&mut self, time: u64) -> io::Result<Report> {
        self.writer.write_all(&[2])?;
        self.writer.write_all(&time.to_le_bytes())?;
        self.writer.flush()?;
        self.report()
    }

    fn report(&mut self) -> io::Result<Report> {
        let mut report = Report::default();
        loop {
            let mut kind = [0];
            self.reader.read_exact(&mut kind)?;
            match kind[0] {
                1 => {
                    let (start, end) = (self.number()?, self.number()?);
                    let mut length = [0; 4];
                    self.reader.read_exact(&mut length)?;
                    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
                    self.reader.read_exact(&mut frame)?;
                    report.sent.push(Sent { start, end, frame });
                }
                2 => {
                    self.now = self.number()?;
                    return Ok(report);
                }
                3 => report.entered.push((self.number()?, self.number()?)),
                kind => return Err(io::Error::other(format!("the simulator sent a message of kind {kind}"))),
            }
        }
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// A [`Node`] on a lock-step wire, with a [`Link`] in each direction that may do harm.
pub struct Station {
    pub node: Node,
    pub step: Step,
    /// From the node to the design.
    pub outward: Link,
    /// From the design to the node.
    pub inward: Link,
    /// Nanoseconds that a byte takes: 8 at 1 Gbit/s.
    pub byte_ns: f64,
    /// The node's own wire is busy until then.
    free: u64,
    /// All frames as they left their senders, with the time of their first bit; for the checker.
    pub frames: Vec<(u64, Vec<u8>)>,
    /// Frames of ours that went in, and of the design that came out: (start, end).
    pub entered: Vec<(u64, u64)>,
    pub left: Vec<(u64, u64)>,
}

impl Station {
    pub fn new(node: Node, step: Step, outward: Link, inward: Link) -> Self {
        let free = step.now();
        Station { node, step, outward, inward, byte_ns: 8.0, free, frames: Vec::new(), entered: Vec::new(), left: Vec::new() }
    }

    pub fn now(&self) -> u64 {
        self.step.now()
    }

    /// Until `time`, or until `done` says that it is enough; true in the second case.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn run(&mut self, time: u64, mut done: impl FnMut(&mut Node) -> bool) -> io::Result<bool> {
        loop {
            let now = self.step.now();
            while let Some(frame) = self.inward.receive(now) {
                self.node.receive(now, &frame);
            }
            self.node.tick(now);
            if done(&mut self.node) {
                return Ok(true);
            }
            if now >= time {
                return Ok(false);
            }
            while self.free <= now {
                let Some(frame) = self.node.poll(now) else { break };
                // Preamble, SFD, padding, FCS and gap.
                self.free = now + ((frame.len().max(60) + 24) as f64 * self.byte_ns) as u64;
                self.frames.push((now, frame.clone()));
                self.outward.send(now, frame);
            }
            while let Some(frame) = self.outward.receive(now) {
                self.step.send(now, &frame)?;
            }
            let timers = [self.outward.next(), self.inward.next(), self.node.timer(), Some(self.free).filter(|&free| free > now)];
            let next = timers.into_iter().flatten().min().unwrap_or(time).min(time).max(now + 1);
            let report = self.step.advance(next)?;
            self.entered.extend(report.entered);
            for sent in report.sent {
                self.left.push((sent.start, sent.end));
                self.frames.push((sent.start, sent.frame.clone()));
                self.inward.send(sent.end, sent.frame);
            }
        }
    }
}
