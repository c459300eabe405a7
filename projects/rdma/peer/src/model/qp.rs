//! One RC queue pair.

use super::memory::{Access, Memory};
use super::requester::{Failure, Requester};
use super::responder::{Outcome, Responder};
use super::{Completion, Operation, ReceiveRequest, Status, WorkRequest};
use crate::packet::{Bth, Extensions, Opcode, Packet};
use std::collections::{BTreeMap, VecDeque};

pub use super::responder::Outcome as RequestOutcome;

/// What two sides have agreed on, and the manners of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub local_qpn: u32,
    pub remote_qpn: u32,
    /// Bytes.
    pub pmtu: u32,
    pub pkey: u16,
    /// PSN of the first request sent.
    pub send_psn: u32,
    /// PSN of the first request expected.
    pub receive_psn: u32,
    /// 4.096 us x 2^n; 0 = never.
    pub ack_timeout: u8,
    /// Tries until an error; 7 is seven.
    pub retry_count: u8,
    /// 7 = for ever.
    pub rnr_retry: u8,
    /// Code of the timer in the RNR NAKs that are sent.
    pub rnr_timer: u8,
    /// READs and atomics in flight at most.
    pub initiator_depth: u8,
    /// READs and atomics taken and kept.
    pub responder_resources: u8,
    pub domain: u32,
    /// What requests may do.
    pub access: Access,
    /// An ACK after so many packets even if none asks.
    pub ack_every: u32,
    /// PSNs in flight at most.
    pub window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            local_qpn: 2,
            remote_qpn: 2,
            pmtu: 1024,
            pkey: 0xffff,
            send_psn: 0,
            receive_psn: 0,
            ack_timeout: 10,
            retry_count: 7,
            rnr_retry: 7,
            rnr_timer: 1,
            initiator_depth: 4,
            responder_resources: 4,
            domain: 1,
            access: Access::ALL,
            ack_every: 64,
            window: 128,
        }
    }
}

impl Config {
    /// The ACK timeout in nanoseconds.
    pub fn timeout_ns(&self) -> Option<u64> {
        (self.ack_timeout != 0).then(|| 4096 << self.ack_timeout)
    }
}

/// Ready to receive and to send, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Requests are received; nothing is sent of its own.
    ReadyToReceive,
    ReadyToSend,
    Error,
}

/// Why a packet was dropped without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    /// The queue pair is in error.
    State,
    Pkey,
    Version,
    /// Not of a reliable connection.
    Opcode,
    /// Ahead of the expected PSN after a NAK.
    Ahead,
    /// A duplicate READ or atomic that matches nothing.
    Duplicate,
    /// A response that nobody waits for.
    Stray,
}

/// What a packet did, for tests that compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Request(Outcome),
    /// A response that was taken.
    Response,
    Congestion,
    Dropped(Drop),
}

/// An RC queue pair.
#[derive(Clone, Debug)]
pub struct Qp {
    pub config: Config,
    pub state: State,
    responder: Responder,
    requester: Requester,
    /// What has ended, oldest first; the caller takes it.
    pub completions: VecDeque<Completion>,
    pub dropped: BTreeMap<Drop, u64>,
    /// Congestion notifications received.
    pub congestion: u64,
    requester_turn: bool,
    /// CNPs are sent at most once in 50 us.
    notified: Option<u64>,
    notify: bool,
}

const CNP_INTERVAL_NS: u64 = 50_000;

impl Qp {
    /// Ready to send.
    pub fn new(config: Config) -> Self {
        Qp {
            config,
            state: State::ReadyToSend,
            responder: Responder::new(&config),
            requester: Requester::new(&config),
            completions: VecDeque::new(),
            dropped: BTreeMap::new(),
            congestion: 0,
            requester_turn: false,
            notified: None,
            notify: false,
        }
    }

    /// The next PSN that is expected from the other side.
    pub fn expected_psn(&self) -> u32 {
        self.responder.expected
    }

    /// What has yet to come of the WRITE that is under way, in bytes; `None` where none is.
    pub fn write_left(&self) -> Option<u32> {
        self.responder.write_left()
    }

    /// Messages that have been executed, modulo 2^24.
    pub fn msn(&self) -> u32 {
        self.responder.msn
    }

    /// How often the requester went back, and how often because nothing came.
    pub fn resends(&self) -> (u64, u64) {
        (self.requester.rewinds, self.requester.timeouts)
    }

    /// The first PSN of our requests that has no answer.
    pub fn unretired(&self) -> u32 {
        self.requester.unretired
    }

    /// Requests that have not ended.
    pub fn outstanding(&self) -> usize {
        self.requester.queued()
    }

    pub fn post(&mut self, work: WorkRequest) {
        let impossible = !matches!(work.operation, Operation::Send { .. } | Operation::Write { .. }) && self.config.initiator_depth == 0;
        self.requester.post(work);
        if self.state == State::Error {
            self.requester.flush(Status::Flushed, &mut self.completions);
        } else if impossible {
            self.fail(Status::LocalOperation);
        }
    }

    pub fn post_receive(&mut self, receive: ReceiveRequest) {
        self.responder.receives.push_back(receive);
        if self.state == State::Error {
            self.responder.flush(&mut self.completions);
        }
    }

    /// Ends everything that is outstanding.
    pub fn fail(&mut self, status: Status) {
        if self.state != State::Error {
            self.state = State::Error;
            self.requester.flush(status, &mut self.completions);
            self.responder.flush(&mut self.completions);
        }
    }

    /// A packet for this queue pair; `marked` if IP said that congestion was experienced.
    pub fn receive(&mut self, now: u64, packet: &Packet, marked: bool, memory: &mut Memory) -> Verdict {
        let verdict = self.take(now, packet, marked, memory);
        if let Verdict::Dropped(reason) | Verdict::Request(Outcome::Silent(reason)) = verdict {
            *self.dropped.entry(reason).or_default() += 1;
        }
        verdict
    }

    fn take(&mut self, now: u64, packet: &Packet, marked: bool, memory: &mut Memory) -> Verdict {
        let bth = &packet.bth;
        if bth.version != 0 {
            return Verdict::Dropped(Drop::Version);
        }
        let (ours, theirs) = (self.config.pkey, bth.pkey);
        if theirs & 0x7fff == 0 || (ours ^ theirs) & 0x7fff != 0 || (ours | theirs) & 0x8000 == 0 {
            return Verdict::Dropped(Drop::Pkey);
        }
        if self.state == State::Error {
            return Verdict::Dropped(Drop::State);
        }
        if bth.opcode == Opcode::CNP {
            self.congestion += 1;
            return Verdict::Congestion;
        }
        if bth.opcode.is_response() {
            let effect = self.requester.response(now, packet, &self.config, memory, &mut self.completions);
            return match effect {
                Ok(()) => Verdict::Response,
                Err(Failure::Ignored(reason)) => Verdict::Dropped(reason),
                Err(Failure::Fatal(status)) => {
                    self.fail(status);
                    Verdict::Response
                }
            };
        }
        // What is reserved among the opcodes of the reliable connection is a request that cannot be done; the others are another service's.
        let reliable = bth.opcode.0 >> 5 == 0;
        if !reliable || !bth.opcode.is_request() && bth.opcode.class().is_some() {
            return Verdict::Dropped(Drop::Opcode);
        }
        let due = self.notified.is_none_or(|last| now >= last + CNP_INTERVAL_NS);
        self.notify |= marked && due;
        let outcome = self.responder.request(packet, &self.config, memory, &mut self.completions);
        use crate::packet::Syndrome::{AccessError, InvalidRequest, OperationError};
        if let Outcome::Nak(InvalidRequest | AccessError | OperationError) = outcome {
            // What is owed up to the NAK still leaves.
            self.fail(Status::Flushed);
        }
        Verdict::Request(outcome)
    }

    /// The next packet to send, if any. Requests and responses take turns.
    pub fn poll(&mut self, now: u64, memory: &Memory) -> Option<Packet> {
        if self.notify {
            self.notify = false;
            self.notified = Some(now);
            let mut bth = Bth::new(Opcode::CNP, self.config.remote_qpn, 0);
            bth.becn = true;
            return Some(Packet::new(bth, Extensions::default(), vec![0; 16]));
        }
        self.requester_turn = !self.requester_turn;
        for request in [self.requester_turn, !self.requester_turn] {
            let packet = match request {
                true if self.state == State::ReadyToSend => self.requester.poll(now, &self.config, memory),
                true => None,
                false => self.responder.poll(&self.config, memory),
            };
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    /// When [`Qp::tick`] must be called at the latest.
    pub fn timer(&self) -> Option<u64> {
        self.requester.timer().filter(|_| self.state == State::ReadyToSend)
    }

    /// Time goes on.
    pub fn tick(&mut self, now: u64) {
        if self.state == State::ReadyToSend
            && let Err(Failure::Fatal(status)) = self.requester.tick(now, &self.config)
        {
            self.fail(status);
        }
    }

    /// Whether responses wait.
    pub fn owes(&self) -> bool {
        self.responder.pending()
    }
}
