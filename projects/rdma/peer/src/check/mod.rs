//! What must hold over every frame of a capture, told with frame numbers.
//!
//! The checker knows the wire only. It follows each connection from both sides: what was asked (opcode sequence, PSNs, payload
//! sizes, resends) and what was answered (PSNs, MSN, places inside a READ), and the fields of CM. A capture may begin in the
//! middle of a connection, and frames may be missing where the capturing side did not see them; what was never seen and yet
//! acknowledged is a fault.

mod cm;
mod connection;
mod json;

pub use json::to_json;

use crate::cm::{Mad, QKEY};
use crate::packet::{Class, Frame, Refusal};
use crate::pcap::Record;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// What is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The wire lost nothing: gaps, resends and sequence NAKs are faults.
    pub lossless: bool,
    /// Path MTU in bytes of connections whose CM messages are not in the capture; otherwise it is inferred.
    pub pmtu: Option<u32>,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1, as tshark counts.
    pub frame: usize,
    /// A short name of the rule.
    pub rule: &'static str,
    pub text: String,
}

/// What a capture holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub frames: usize,
    /// RoCEv2 frames.
    pub roce: usize,
    pub bytes: u64,
    pub connections: usize,
    /// Frames of each opcode.
    pub opcodes: BTreeMap<String, usize>,
    /// CM messages of each kind.
    pub messages: BTreeMap<String, usize>,
    pub resends: usize,
    pub sequence_naks: usize,
    pub rnr_naks: usize,
    /// Other NAKs.
    pub error_naks: usize,
    /// PSNs that were missing when a later one was seen.
    pub gaps: usize,
    /// Responses that belong to no connection whose requests were seen.
    pub unpaired: usize,
    pub faults: Vec<Fault>,
}

/// Goes over all frames in order.
pub fn check(records: &[Record], options: Options) -> Report {
    let mut checker =
        Checker { report: Report::default(), options, connections: Vec::new(), cm: cm::Exchanges::default(), ports: BTreeMap::new() };
    for record in records {
        checker.record(record);
    }
    checker.finish()
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct End {
    ip: Ipv4Addr,
    qpn: u32,
}

struct Checker {
    report: Report,
    options: Options,
    connections: Vec<connection::Connection>,
    cm: cm::Exchanges,
    /// UDP source port of what an address sends to an end.
    ports: BTreeMap<(Ipv4Addr, End), u16>,
}

/// Reserved bytes of a CNP.
const CNP_PAYLOAD: [u8; 16] = [0; 16];

impl Checker {
    fn fault(&mut self, frame: usize, rule: &'static str, text: String) {
        self.report.faults.push(Fault { frame, rule, text });
    }

    fn record(&mut self, record: &Record) {
        self.report.frames += 1;
        let frame = match Frame::decode(&record.frame) {
            Ok(frame) => frame,
            Err(Refusal::NotRoce) => return,
            Err(refusal) => {
                self.report.roce += 1;
                let rule = if matches!(refusal, Refusal::Icrc { .. }) { "icrc" } else { "malformed" };
                return self.fault(record.number, rule, refusal.to_string());
            }
        };
        self.report.roce += 1;
        self.report.bytes += record.frame.len() as u64;
        self.header(record.number, &frame);
        let opcode = frame.packet.bth.opcode;
        *self.report.opcodes.entry(opcode.to_string()).or_default() += 1;
        match opcode.class() {
            None => self.fault(record.number, "opcode", format!("{opcode} is not known")),
            Some(Class::Datagram) if frame.packet.bth.destination == 1 => self.management(record.number, &frame),
            Some(Class::Datagram) => {}
            Some(Class::Congestion) => {
                if !frame.packet.bth.becn || frame.packet.payload != CNP_PAYLOAD {
                    self.fault(record.number, "cnp", "a CNP without BECN, or without 16 bytes of 0".to_string());
                }
            }
            Some(_) if opcode.is_request() => self.request(record.number, &frame),
            Some(_) => self.response(record.number, &frame),
        }
    }

    /// What holds for every frame.
    fn header(&mut self, number: usize, frame: &Frame) {
        let bth = &frame.packet.bth;
        if bth.version != 0 {
            self.fault(number, "tver", format!("transport version {}", bth.version));
        }
        if bth.pkey & 0x7fff == 0 {
            self.fault(number, "pkey", format!("P_Key {:#06x}", bth.pkey));
        }
        if frame.source_port < 0xc000 {
            self.fault(number, "udp-port", format!("UDP source port {:#06x}, not from 0xc000", frame.source_port));
        }
        if !matches!(bth.opcode.class(), None | Some(Class::Datagram)) {
            let to = End { ip: frame.destination_ip, qpn: bth.destination };
            let port = *self.ports.entry((frame.source_ip, to)).or_insert(frame.source_port);
            if port != frame.source_port {
                self.fault(
                    number,
                    "udp-port",
                    format!("UDP source port {:#06x}, before {port:#06x}, to QP {:#x}", frame.source_port, to.qpn),
                );
            }
        }
        if bth.destination == 0 {
            self.fault(number, "qpn", "destination QP 0".to_string());
        }
    }

    fn management(&mut self, number: usize, frame: &Frame) {
        let deth = frame.packet.ext.deth.unwrap_or_default();
        if (deth.qkey, deth.source) != (QKEY, 1) {
            self.fault(number, "deth", format!("Q_Key {:#010x} from QP {:#x}", deth.qkey, deth.source));
        }
        let Some(mad) = Mad::decode(&frame.packet.payload) else {
            return self.fault(number, "mad", format!("a MAD of {} bytes", frame.packet.payload.len()));
        };
        *self.report.messages.entry(mad.message.name().to_string()).or_default() += 1;
        let (faults, opened) = self.cm.message(frame, &mad);
        for (rule, text) in faults {
            self.fault(number, rule, text);
        }
        if let Some(opened) = opened {
            self.open(opened);
        }
    }

    /// A REP that was not seen before: both queue pairs start anew.
    fn open(&mut self, opened: cm::Opened) {
        let ends = [opened.active, opened.passive];
        self.ports.retain(|(_, to), _| !ends.contains(to));
        let old = std::mem::take(&mut self.connections);
        let (over, kept) = old.into_iter().partition(|c| ends.iter().any(|end| c.has(*end)));
        self.connections = kept;
        self.close(over);
        let mut connection = connection::Connection::new(opened.active, Some(opened.passive), None);
        connection.begin(opened.pmtu, opened.passive_receives, opened.active_receives);
        self.connections.push(connection);
        self.report.connections += 1;
    }

    fn request(&mut self, number: usize, frame: &Frame) {
        let to = End { ip: frame.destination_ip, qpn: frame.packet.bth.destination };
        let index = match self.connections.iter().position(|c| c.side_of(frame.source_ip, to).is_some()) {
            Some(index) => index,
            None => {
                self.connections.push(connection::Connection::new(to, None, self.options.pmtu));
                self.report.connections += 1;
                self.connections.len() - 1
            }
        };
        let connection = &mut self.connections[index];
        let side = connection.side_of(frame.source_ip, to).unwrap_or(0);
        let mut found = connection::Found::default();
        connection.request(side, number, frame, &mut found);
        self.take(number, found);
    }

    fn response(&mut self, number: usize, frame: &Frame) {
        let to = End { ip: frame.destination_ip, qpn: frame.packet.bth.destination };
        let known = self.connections.iter().position(|c| c.response_side(frame.source_ip, to).is_some());
        let index = known.or_else(|| self.pair(frame.source_ip, to, frame.packet.bth.psn));
        let Some(index) = index else {
            self.report.unpaired += 1;
            return;
        };
        let mut found = connection::Found::default();
        let connection = &mut self.connections[index];
        if let Some(side) = connection.response_side(frame.source_ip, to) {
            connection.response(side, frame, &mut found);
        }
        self.take(number, found);
    }

    /// The connection of a response to an end that was not known: a capture that begins in mid-connection does not name the
    /// requester's QP otherwise.
    fn pair(&mut self, from: Ipv4Addr, to: End, psn: u32) -> Option<usize> {
        let index = self.connections.iter().position(|c| c.may_answer(from, to, psn))?;
        let other = self.connections.iter().position(|c| c.is_half(to)).filter(|&other| other != index);
        let other = other.map(|other| {
            self.report.connections -= 1;
            self.connections.remove(other)
        });
        let index = self.connections.iter().position(|c| c.may_answer(from, to, psn))?;
        self.connections[index].name_requester(to, other);
        Some(index)
    }

    fn take(&mut self, number: usize, found: connection::Found) {
        for (rule, text) in found.faults {
            self.fault(number, rule, text);
        }
        self.report.resends += found.resends;
        self.report.gaps += found.gaps;
        self.report.sequence_naks += found.sequence_naks;
        self.report.rnr_naks += found.rnr_naks;
        self.report.error_naks += found.error_naks;
        if self.options.lossless {
            for (rule, count) in [("resend", found.resends), ("gap", found.gaps), ("sequence-nak", found.sequence_naks)] {
                if count > 0 {
                    self.fault(number, rule, "on a wire that loses nothing".to_string());
                }
            }
        }
    }

    fn close(&mut self, connections: Vec<connection::Connection>) {
        for connection in connections {
            for (frame, text) in connection.missing() {
                self.fault(frame, "gap", text);
            }
        }
    }

    fn finish(mut self) -> Report {
        let connections = std::mem::take(&mut self.connections);
        self.close(connections);
        self.report.faults.sort_by_key(|fault| fault.frame);
        self.report
    }
}
