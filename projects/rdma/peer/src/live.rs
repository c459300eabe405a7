//! A [`Node`] on a wire in simulated time, with a board at the other end: a simulation ([`crate::step::Step`]), or a model of one.

use crate::model::link::Link;
use crate::model::{Event, Node, ReceiveRequest};
use crate::pcap::Record;
use std::io;

/// A frame of the board's. Times are nanoseconds of simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// First preamble bit.
    pub start: u64,
    /// Last FCS bit.
    pub end: u64,
    /// Without FCS.
    pub frame: Vec<u8>,
}

/// What happened up to the time that the wire stands at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub sent: Vec<Sent>,
    /// (first preamble bit, last FCS bit) of each of our frames that has been put on the wire, in order.
    pub entered: Vec<(u64, u64)>,
}

/// The board's end of the wire, in lock-step.
pub trait Wire {
    /// Simulated time in nanoseconds.
    fn now(&self) -> u64;

    /// A frame that goes in at `time`, or as soon after as the wire is free. Frames keep their order.
    ///
    /// # Errors
    /// Those of the transport.
    fn send(&mut self, time: u64, frame: &[u8]) -> io::Result<()>;

    /// Goes on up to `time`, or to the end of the board's next frame, whichever is first.
    ///
    /// # Errors
    /// Those of the transport.
    fn advance(&mut self, time: u64) -> io::Result<Report>;
}

/// A node at our end, with a [`Link`] in each direction that may do harm.
pub struct Station<W> {
    pub node: Node,
    pub wire: W,
    /// From the node to the board.
    pub outward: Link,
    /// From the board to the node.
    pub inward: Link,
    /// Nanoseconds that a byte takes: 8 at 1 Gbit/s.
    pub byte_ns: f64,
    /// The node's own wire is busy until then.
    free: u64,
    /// All frames as they left their senders, with the time of their first bit.
    pub records: Vec<Record>,
    /// (start, end) of each frame of ours that went in, and of each of the board's.
    pub entered: Vec<(u64, u64)>,
    pub left: Vec<(u64, u64)>,
}

/// Preamble, SFD, FCS and gap.
const OVERHEAD: usize = 24;

impl<W: Wire> Station<W> {
    pub fn new(node: Node, wire: W, outward: Link, inward: Link) -> Self {
        let free = wire.now();
        Station { node, wire, outward, inward, byte_ns: 8.0, free, records: Vec::new(), entered: Vec::new(), left: Vec::new() }
    }

    /// A station whose wire harms nothing.
    pub fn unharmed(node: Node, wire: W) -> Self {
        let link = Link::new(0, crate::model::link::Faults::default(), 0);
        Station::new(node, wire, link.clone(), link)
    }

    pub fn now(&self) -> u64 {
        self.wire.now()
    }

    fn record(&mut self, time_ns: u64, frame: &[u8]) {
        self.records.push(Record { number: self.records.len() + 1, time_ns, frame: frame.to_vec() });
    }

    /// Puts a frame of any contents on the wire, as if the node had sent it.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn inject(&mut self, frame: &[u8]) -> io::Result<()> {
        let now = self.wire.now();
        self.record(now, frame);
        self.wire.send(now, frame)
    }

    /// Until `time`, or until `done` says that it is enough; true in the second case. `done` is asked at every event.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn run(&mut self, time: u64, mut done: impl FnMut(&mut Node) -> bool) -> io::Result<bool> {
        loop {
            let now = self.wire.now();
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
                self.free = now + ((frame.len().max(60) + OVERHEAD) as f64 * self.byte_ns) as u64;
                self.record(now, &frame);
                self.outward.send(now, frame);
            }
            while let Some(frame) = self.outward.receive(now) {
                self.wire.send(now, &frame)?;
            }
            let timers = [self.outward.next(), self.inward.next(), self.node.timer(), Some(self.free).filter(|&free| free > now)];
            let next = timers.into_iter().flatten().min().unwrap_or(time).min(time).max(now + 1);
            let report = self.wire.advance(next)?;
            self.entered.extend(report.entered);
            for sent in report.sent {
                self.left.push((sent.start, sent.end));
                self.record(sent.start, &sent.frame);
                self.inward.send(sent.end, sent.frame);
            }
        }
    }
}

/// A model in the board's place: what is to be run against boards is proven against this.
pub struct ModelBoard {
    pub node: Node,
    /// A receive that every new connection finds posted.
    pub receive: Option<ReceiveRequest>,
    now: u64,
    /// Frames on their way in, by the time of their last bit.
    coming: std::collections::VecDeque<(u64, Vec<u8>)>,
    /// Each direction is busy until then.
    free_in: u64,
    free_out: u64,
    byte_ns: f64,
    entered: Vec<(u64, u64)>,
}

/// What the model's board takes from the last bit in to the first bit out.
const TURNAROUND_NS: u64 = 400;

impl ModelBoard {
    pub fn new(node: Node) -> Self {
        let coming = std::collections::VecDeque::new();
        ModelBoard { node, receive: None, now: 0, coming, free_in: 0, free_out: 0, byte_ns: 8.0, entered: Vec::new() }
    }

    fn time_of(&self, length: usize) -> u64 {
        ((length.max(60) + 12) as f64 * self.byte_ns) as u64
    }
}

impl Wire for ModelBoard {
    fn now(&self) -> u64 {
        self.now
    }

    fn send(&mut self, time: u64, frame: &[u8]) -> io::Result<()> {
        let start = self.free_in.max(time).max(self.now);
        let end = start + self.time_of(frame.len());
        self.free_in = end + (12.0 * self.byte_ns) as u64;
        self.entered.push((start, end));
        let mut padded = frame.to_vec();
        padded.resize(frame.len().max(60), 0);
        self.coming.push_back((end + TURNAROUND_NS, padded));
        Ok(())
    }

    fn advance(&mut self, time: u64) -> io::Result<Report> {
        let mut report = Report::default();
        loop {
            let now = self.now;
            while let Some((_, frame)) = self.coming.pop_front_if(|coming| coming.0 <= now) {
                self.node.receive(now, &frame);
            }
            while let Some(event) = self.node.events.pop_front() {
                if let (Event::Requested { id, .. }, Some(receive)) = (event, self.receive) {
                    self.node.qp(id).into_iter().for_each(|pair| pair.post_receive(receive));
                }
            }
            self.node.tick(now);
            if self.free_out <= now
                && let Some(mut frame) = self.node.poll(now)
            {
                frame.resize(frame.len().max(60), 0);
                let end = now + self.time_of(frame.len());
                self.free_out = end + (12.0 * self.byte_ns) as u64;
                report.sent.push(Sent { start: now, end, frame });
                break;
            }
            if now >= time {
                break;
            }
            let timers = [self.coming.front().map(|coming| coming.0), self.node.timer(), Some(self.free_out).filter(|&free| free > now)];
            self.now = timers.into_iter().flatten().min().unwrap_or(time).min(time).max(now + 1);
        }
        let now = self.now;
        let gone = self.entered.iter().take_while(|entered| entered.0 <= now).count();
        report.entered = self.entered.drain(..gone).collect();
        Ok(report)
    }
}
