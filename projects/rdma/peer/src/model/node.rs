//! A station: ARP, CM on both sides, and queue pairs, with frames in and frames out.

use super::connection::{Connection, Phase};
use super::memory::Memory;
use super::qp::{Config, Qp, RequestOutcome, Verdict};
use super::{Access, Status};
use crate::cm::{Drep, Dreq, IpHeader, Mad, Message, QKEY, Rej, Rep, Req, Rtu, SidrRep, gid, reason};
use crate::packet::{Bth, Class, Deth, Extensions, Frame, Opcode, Packet, Refusal, code_of_mtu, mtu_of_code};
use crate::rng::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// What a service ID offers to whoever connects to it.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// Goes out in the REP, at most 196 bytes.
    pub private_data: Vec<u8>,
}

/// What happened to connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A REQ came and was answered; the queue pair can receive, and receives should be posted now.
    Requested {
        id: usize,
        service: u64,
        private_data: Vec<u8>,
    },
    Connected {
        id: usize,
        private_data: Vec<u8>,
    },
    Rejected {
        id: usize,
        reason: u16,
        private_data: Vec<u8>,
    },
    /// Nobody answered.
    Unreachable {
        id: usize,
    },
    Disconnected {
        id: usize,
    },
}

/// What a node is by default in each of its queue pairs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes; connections get the smaller of both sides'.
    pub pmtu: u32,
    pub initiator_depth: u8,
    pub responder_resources: u8,
    pub retry_count: u8,
    pub rnr_retry: u8,
    /// 4.096 us x 2^n for answers of CM, and for ACKs.
    pub cm_timeout: u8,
    pub ack_timeout: u8,
    pub cm_retries: u8,
    pub queue_pairs: usize,
    pub access: Access,
    /// The PSN that whoever is asked for a connection begins at; `None` is any.
    pub first_psn: Option<u32>,
    /// The PSN that whoever asks for a connection begins at; `None` is any.
    pub answer_psn: Option<u32>,
    /// Our communication ID in connections that we ask for; `None` is any.
    pub comm_id: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            pmtu: 4096,
            initiator_depth: 16,
            responder_resources: 16,
            retry_count: 7,
            rnr_retry: 7,
            cm_timeout: 20,
            ack_timeout: 14,
            cm_retries: 15,
            queue_pairs: 1024,
            access: Access::ALL,
            first_psn: None,
            answer_psn: None,
            comm_id: None,
        }
    }
}

/// A queue pair and where its packets go.
#[derive(Clone, Debug)]
struct Path {
    qp: Qp,
    peer: Ipv4Addr,
    source_port: u16,
}

/// A station on the wire.
#[derive(Clone, Debug)]
pub struct Node {
    pub mac: [u8; 6],
    pub ip: Ipv4Addr,
    pub memory: Memory,
    pub limits: Limits,
    pub listeners: BTreeMap<u64, Listener>,
    pub connections: Vec<Connection>,
    pub events: VecDeque<Event>,
    /// Frames that were meant for us and wrong: ICRC, and the rest.
    pub bad_icrc: u64,
    pub malformed: u64,
    paths: BTreeMap<u32, Path>,
    /// Queue pairs of connections that are over, for the completions that nobody has taken yet.
    ended: BTreeMap<u32, Qp>,
    neighbours: BTreeMap<Ipv4Addr, [u8; 6]>,
    out: VecDeque<Vec<u8>>,
    rng: Rng,
    next_qpn: u32,
    management_psn: u32,
    identification: u16,
    turn: u32,
}

const ARP_RETRY_NS: u64 = 100_000_000;
const ARP_TRIES: u8 = 10;
const NOBODY: [u8; 6] = [0xff; 6];

impl Node {
    /// A station with nothing in its memory. `seed` decides PSNs, IDs and ports.
    pub fn new(mac: [u8; 6], ip: Ipv4Addr, seed: u64) -> Self {
        Node {
            mac,
            ip,
            memory: Memory::default(),
            limits: Limits::default(),
            listeners: BTreeMap::new(),
            connections: Vec::new(),
            events: VecDeque::new(),
            bad_icrc: 0,
            malformed: 0,
            paths: BTreeMap::new(),
            ended: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            out: VecDeque::new(),
            rng: Rng::new(seed),
            next_qpn: 0x11,
            management_psn: 0,
            identification: 0,
            turn: 0,
        }
    }

    /// The queue pair of a connection, if it has one.
    pub fn qp(&mut self, id: usize) -> Option<&mut Qp> {
        let qpn = self.connections.get(id)?.local_qpn;
        self.paths.get_mut(&qpn).map(|path| &mut path.qp).or_else(|| self.ended.get_mut(&qpn))
    }

    /// Takes the queue pair away from a connection, which goes on: what comes for it is not answered any more.
    pub fn release(&mut self, id: usize) -> Option<Qp> {
        let qpn = self.connections.get(id)?.local_qpn;
        self.paths.remove(&qpn).map(|path| path.qp)
    }

    /// Connects to a service; the outcome is an [`Event`] with the ID that is returned. `private_data` has at most 56 bytes.
    pub fn connect(&mut self, now: u64, peer: Ipv4Addr, service: u64, private_data: &[u8]) -> usize {
        let id = self.connections.len();
        let limits = self.limits;
        let mut data = [0; 92];
        let header = IpHeader { source_port: 0xc000 | self.rng.below(0x3fff) as u16, source: self.ip, destination: peer };
        data[..IpHeader::SIZE].copy_from_slice(&header.encode());
        data[IpHeader::SIZE..IpHeader::SIZE + private_data.len()].copy_from_slice(private_data);
        let local_qpn = self.new_qpn();
        let req = Req {
            local_comm_id: limits.comm_id.unwrap_or(self.rng.next_u64() as u32 | 1),
            service_id: service,
            ca_guid: self.guid(),
            local_qpn,
            responder_resources: limits.responder_resources,
            initiator_depth: limits.initiator_depth,
            remote_response_timeout: limits.cm_timeout,
            starting_psn: limits.first_psn.unwrap_or(self.rng.below(1 << 24) as u32),
            local_response_timeout: limits.cm_timeout,
            retry_count: limits.retry_count,
            pkey: 0xffff,
            path_mtu: code_of_mtu(limits.pmtu).unwrap_or(3),
            rnr_retry_count: limits.rnr_retry,
            max_cm_retries: limits.cm_retries,
            local_lid: 0xffff,
            remote_lid: 0xffff,
            local_gid: gid(self.ip),
            remote_gid: gid(peer),
            flow_label: self.rng.below(1 << 20) as u32,
            hop_limit: 64,
            ack_timeout: limits.ack_timeout,
            private_data: data,
            ..Req::default()
        };
        let connection = Connection {
            id,
            phase: Phase::Resolving,
            active: true,
            peer,
            local_comm_id: req.local_comm_id,
            remote_comm_id: 0,
            transaction: self.rng.next_u64(),
            local_qpn,
            remote_qpn: 0,
            ca_guid: 0,
            repeat: Some((Message::Req(Box::new(req.clone())), now + ARP_RETRY_NS, ARP_TRIES)),
            req,
            rep: None,
        };
        self.connections.push(connection);
        match self.neighbours.contains_key(&peer) {
            true => self.resolved(now, peer),
            false => self.ask(peer),
        }
        id
    }

    /// Ends a connection; [`Event::Disconnected`] follows.
    pub fn disconnect(&mut self, now: u64, id: usize) {
        let Some(connection) = self.connections.get_mut(id).filter(|c| matches!(c.phase, Phase::Established | Phase::RepSent)) else {
            return;
        };
        connection.phase = Phase::DreqSent;
        let dreq = Dreq {
            local_comm_id: connection.local_comm_id,
            remote_comm_id: connection.remote_comm_id,
            remote_qpn: connection.remote_qpn,
            ..Dreq::default()
        };
        self.say(now, id, Message::Dreq(Box::new(dreq)), true);
        if let Some(qp) = self.qp(id) {
            qp.fail(Status::Flushed);
        }
    }

    /// A frame from the wire.
    pub fn receive(&mut self, now: u64, bytes: &[u8]) {
        if bytes.len() >= 42 && bytes[12..14] == [8, 6] {
            return self.arp(now, &bytes[14..42]);
        }
        let frame = match Frame::decode(bytes) {
            Ok(frame) if frame.destination_ip == self.ip && frame.destination == self.mac => frame,
            Err(Refusal::Icrc { .. }) => {
                self.bad_icrc += 1;
                return;
            }
            Err(Refusal::Malformed(_)) => {
                self.malformed += 1;
                return;
            }
            _ => return,
        };
        let bth = frame.packet.bth;
        if bth.destination == 1 {
            let trusted = frame.packet.ext.deth.is_some_and(|deth| deth.qkey == QKEY);
            if bth.opcode.class() == Some(Class::Datagram) && trusted {
                self.neighbours.insert(frame.source_ip, frame.source);
                if let Some(mad) = Mad::decode(&frame.packet.payload) {
                    self.message(now, frame.source_ip, &mad);
                }
            }
            return;
        }
        let Some(path) = self.paths.get_mut(&bth.destination).filter(|path| path.peer == frame.source_ip) else { return };
        let verdict = path.qp.receive(now, &frame.packet, frame.tos & 3 == 3, &mut self.memory);
        // The first valid request says what the RTU would have said.
        let waiting = self.connections.iter().position(|c| c.phase == Phase::RepSent && c.local_qpn == bth.destination);
        if let Some(id) = waiting.filter(|_| verdict == Verdict::Request(RequestOutcome::Executed)) {
            self.established(id, &[]);
        }
    }

    /// The next frame for the wire, if any.
    pub fn poll(&mut self, now: u64) -> Option<Vec<u8>> {
        if let Some(frame) = self.out.pop_front() {
            return Some(frame);
        }
        // Round robin, from behind the one that sent last.
        let order = self.paths.range(self.turn + 1..).chain(self.paths.range(..=self.turn)).map(|(qpn, _)| *qpn).collect::<Vec<_>>();
        for qpn in order {
            let Some(path) = self.paths.get_mut(&qpn) else { continue };
            if let Some(packet) = path.qp.poll(now, &self.memory) {
                self.turn = qpn;
                let (peer, port) = (path.peer, path.source_port);
                return Some(self.frame(peer, port, packet).encode());
            }
        }
        None
    }

    /// When [`Node::tick`] must be called at the latest.
    pub fn timer(&self) -> Option<u64> {
        let connections = self.connections.iter().filter_map(|c| c.repeat.as_ref().map(|repeat| repeat.1));
        self.paths.values().filter_map(|path| path.qp.timer()).chain(connections).min()
    }

    /// Time goes on.
    pub fn tick(&mut self, now: u64) {
        for path in self.paths.values_mut() {
            path.qp.tick(now);
        }
        let timeout = self.cm_timeout_ns();
        for id in 0..self.connections.len() {
            let connection = &mut self.connections[id];
            let Some((message, at, left)) = connection.repeat.clone().filter(|repeat| repeat.1 <= now) else { continue };
            if left == 0 {
                connection.repeat = None;
                let was = std::mem::replace(&mut connection.phase, Phase::Closed);
                let event = if was == Phase::DreqSent { Event::Disconnected { id } } else { Event::Unreachable { id } };
                self.events.push_back(event);
                self.end(id);
            } else if connection.phase == Phase::Resolving {
                connection.repeat = Some((message, at + ARP_RETRY_NS, left - 1));
                let peer = connection.peer;
                self.ask(peer);
            } else {
                connection.repeat = Some((message.clone(), now + timeout, left - 1));
                self.send_message(id, message);
            }
        }
    }

    fn cm_timeout_ns(&self) -> u64 {
        4096 << self.limits.cm_timeout
    }

    fn guid(&self) -> u64 {
        let [a, b, c, d, e, f] = self.mac;
        u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    fn new_qpn(&mut self) -> u32 {
        self.next_qpn += 1;
        self.next_qpn
    }

    fn message(&mut self, now: u64, peer: Ipv4Addr, mad: &Mad) {
        let by_ids = |node: &Node, ids| node.connections.iter().position(|c| c.matches(peer, ids));
        match &mad.message {
            Message::Req(req) => self.request(now, peer, mad.header.transaction, req),
            Message::Rep(rep) => {
                let ours = |c: &Connection| c.active && c.peer == peer && c.local_comm_id == rep.remote_comm_id;
                let Some(id) = self.connections.iter().position(ours) else { return };
                match self.connections[id].phase {
                    Phase::ReqSent => self.reply(id, rep),
                    // Our RTU was lost.
                    Phase::Established => self.ready(id),
                    _ => {}
                }
            }
            Message::Rtu(rtu) => {
                let id = by_ids(self, (rtu.local_comm_id, rtu.remote_comm_id));
                if let Some(id) = id.filter(|&id| self.connections[id].phase == Phase::RepSent) {
                    self.established(id, &rtu.private_data);
                }
            }
            Message::Rej(rej) => {
                let ours = |c: &Connection| c.peer == peer && c.local_comm_id == rej.remote_comm_id;
                let Some(id) = self.connections.iter().position(ours) else { return };
                if matches!(self.connections[id].phase, Phase::ReqSent | Phase::RepSent) {
                    self.connections[id].phase = Phase::Closed;
                    self.connections[id].repeat = None;
                    self.end(id);
                    self.events.push_back(Event::Rejected { id, reason: rej.reason, private_data: rej.private_data.to_vec() });
                }
            }
            Message::Mra(mra) => {
                let ours = |c: &Connection| c.peer == peer && c.local_comm_id == mra.remote_comm_id;
                if let Some(repeat) = self.connections.iter_mut().find(|c| ours(c)).and_then(|c| c.repeat.as_mut()) {
                    repeat.1 = repeat.1.max(now + (4096 << mra.service_timeout));
                }
            }
            Message::Dreq(dreq) => {
                // Always answered, unknown connections too.
                let drep = Drep { local_comm_id: dreq.remote_comm_id, remote_comm_id: dreq.local_comm_id, ..Drep::default() };
                self.send_mad(peer, &Mad::new(Message::Drep(Box::new(drep)), mad.header.transaction));
                if let Some(id) = by_ids(self, (dreq.local_comm_id, dreq.remote_comm_id)) {
                    self.disconnected(id);
                }
            }
            Message::SidrReq(request) => {
                // There are no datagram queue pairs: status 1, not supported.
                let reply = SidrRep { request_id: request.request_id, status: 1, service_id: request.service_id, ..SidrRep::default() };
                self.send_mad(peer, &Mad::new(Message::SidrRep(Box::new(reply)), mad.header.transaction));
            }
            Message::Drep(drep) => {
                if let Some(id) = by_ids(self, (drep.local_comm_id, drep.remote_comm_id)) {
                    self.disconnected(id);
                }
            }
            _ => {}
        }
    }

    fn request(&mut self, now: u64, peer: Ipv4Addr, transaction: u64, req: &Req) {
        let repeated =
            |c: &Connection| !c.active && c.peer == peer && c.remote_comm_id == req.local_comm_id && c.remote_qpn == req.local_qpn;
        if let Some(known) = self.connections.iter().find(|c| repeated(c)) {
            // The same REP again, or silence.
            if let (Phase::RepSent, Some(rep)) = (known.phase, &known.rep) {
                let (id, message) = (known.id, Message::Rep(Box::new(rep.clone())));
                self.send_message(id, message);
            }
            return;
        }
        // The same queue pair with a new ID: the peer has forgotten the old connection. It ends, and the new one is taken.
        let stale =
            |c: &Connection| c.peer == peer && c.ca_guid == req.ca_guid && c.remote_qpn == req.local_qpn && c.phase != Phase::Closed;
        if let Some(id) = self.connections.iter().position(|c| !c.active && stale(c)) {
            self.disconnected(id);
        }
        let pmtu = mtu_of_code(req.path_mtu);
        let refused = match () {
            () if req.transport_type != 0 => Some(reason::INVALID_TRANSPORT),
            () if !self.listeners.contains_key(&req.service_id) => Some(reason::INVALID_SERVICE_ID),
            () if pmtu.is_none_or(|pmtu| pmtu > self.limits.pmtu) => Some(reason::INVALID_MTU),
            () if self.paths.len() >= self.limits.queue_pairs => Some(reason::NO_QP),
            () => None,
        };
        if let Some(reason) = refused {
            let rej = Rej { remote_comm_id: req.local_comm_id, reason, ..Rej::default() };
            return self.send_mad(peer, &Mad::new(Message::Rej(Box::new(rej)), transaction));
        }
        let (id, local_qpn) = (self.connections.len(), self.new_qpn());
        let mut rep = Rep {
            local_comm_id: self.rng.next_u64() as u32 | 1,
            remote_comm_id: req.local_comm_id,
            local_qpn,
            starting_psn: self.limits.answer_psn.unwrap_or(self.rng.below(1 << 24) as u32),
            // Depths cross over.
            responder_resources: req.initiator_depth.min(self.limits.responder_resources),
            initiator_depth: req.responder_resources.min(self.limits.initiator_depth),
            target_ack_delay: 1,
            rnr_retry_count: self.limits.rnr_retry,
            ca_guid: self.guid(),
            ..Rep::default()
        };
        let data = &self.listeners[&req.service_id].private_data;
        rep.private_data[..data.len()].copy_from_slice(data);
        let connection = Connection {
            id,
            phase: Phase::RepSent,
            active: false,
            peer,
            local_comm_id: rep.local_comm_id,
            remote_comm_id: req.local_comm_id,
            transaction,
            local_qpn,
            remote_qpn: req.local_qpn,
            ca_guid: req.ca_guid,
            req: req.clone(),
            rep: Some(rep.clone()),
            repeat: None,
        };
        self.connections.push(connection);
        self.open(id, (rep.initiator_depth, rep.responder_resources), (req.starting_psn, rep.starting_psn), req.rnr_retry_count);
        self.say(now, id, Message::Rep(Box::new(rep)), true);
        let private_data = req.private_data[IpHeader::SIZE..].to_vec();
        self.events.push_back(Event::Requested { id, service: req.service_id, private_data });
    }

    fn reply(&mut self, id: usize, rep: &Rep) {
        let connection = &mut self.connections[id];
        (connection.remote_comm_id, connection.remote_qpn, connection.rep) = (rep.local_comm_id, rep.local_qpn, Some(rep.clone()));
        (connection.phase, connection.repeat) = (Phase::Established, None);
        let depths = (
            rep.responder_resources.min(connection.req.initiator_depth),
            connection.req.responder_resources.min(rep.initiator_depth.max(1)),
        );
        let psns = (rep.starting_psn, connection.req.starting_psn);
        self.open(id, depths, psns, rep.rnr_retry_count);
        self.ready(id);
        self.events.push_back(Event::Connected { id, private_data: rep.private_data.to_vec() });
    }

    fn ready(&mut self, id: usize) {
        let connection = &self.connections[id];
        let rtu = Rtu { local_comm_id: connection.local_comm_id, remote_comm_id: connection.remote_comm_id, ..Rtu::default() };
        self.send_message(id, Message::Rtu(Box::new(rtu)));
    }

    fn established(&mut self, id: usize, private_data: &[u8]) {
        (self.connections[id].phase, self.connections[id].repeat) = (Phase::Established, None);
        // A request that came before may have put it in error, for good.
        if let Some(qp) = self.qp(id).filter(|qp| qp.state == super::State::ReadyToReceive) {
            qp.state = super::State::ReadyToSend;
        }
        self.events.push_back(Event::Connected { id, private_data: private_data.to_vec() });
    }

    /// Makes the queue pair. `psns` are (first sent, first expected): the peer's number is where we start.
    fn open(&mut self, id: usize, (initiator_depth, responder_resources): (u8, u8), psns: (u32, u32), rnr_retry: u8) {
        let connection = &self.connections[id];
        let config = Config {
            local_qpn: connection.local_qpn,
            remote_qpn: connection.remote_qpn,
            pmtu: mtu_of_code(connection.req.path_mtu).unwrap_or(1024),
            pkey: connection.req.pkey,
            send_psn: psns.0,
            receive_psn: psns.1,
            ack_timeout: connection.req.ack_timeout,
            retry_count: connection.req.retry_count,
            rnr_retry,
            initiator_depth,
            responder_resources,
            access: self.limits.access,
            ..Config::default()
        };
        let label = connection.req.flow_label;
        let source_port = ((label & 0x3fff) ^ (label >> 14)) as u16 | 0xc000;
        let mut qp = Qp::new(config);
        if !connection.active {
            // Nothing is sent before the RTU or a first request.
            qp.state = super::State::ReadyToReceive;
        }
        self.paths.insert(config.local_qpn, Path { qp, peer: connection.peer, source_port });
    }

    fn disconnected(&mut self, id: usize) {
        let was = std::mem::replace(&mut self.connections[id].phase, Phase::Closed);
        self.connections[id].repeat = None;
        if was != Phase::Closed {
            self.end(id);
            self.events.push_back(Event::Disconnected { id });
        }
    }

    /// The queue pair ends; its completions can still be taken.
    fn end(&mut self, id: usize) {
        let qpn = self.connections[id].local_qpn;
        if let Some(Path { mut qp, .. }) = self.paths.remove(&qpn) {
            qp.fail(Status::Flushed);
            self.ended.insert(qpn, qp);
        }
    }

    fn say(&mut self, now: u64, id: usize, message: Message, repeated: bool) {
        if repeated {
            self.connections[id].repeat = Some((message.clone(), now + self.cm_timeout_ns(), self.limits.cm_retries));
        }
        self.send_message(id, message);
    }

    fn send_message(&mut self, id: usize, message: Message) {
        let (peer, transaction) = (self.connections[id].peer, self.connections[id].transaction);
        self.send_mad(peer, &Mad::new(message, transaction));
    }

    fn send_mad(&mut self, peer: Ipv4Addr, mad: &Mad) {
        self.management_psn = crate::psn::add(self.management_psn, 1);
        let bth = Bth::new(Opcode::UD_SEND_ONLY, 1, self.management_psn);
        let ext = Extensions { deth: Some(Deth { qkey: QKEY, source: 1 }), ..Extensions::default() };
        let frame = self.frame(peer, 0xc001, Packet::new(bth, ext, mad.encode())).encode();
        self.out.push_back(frame);
    }

    fn frame(&mut self, peer: Ipv4Addr, source_port: u16, packet: Packet) -> Frame {
        self.identification = self.identification.wrapping_add(1);
        Frame {
            destination: self.neighbours.get(&peer).copied().unwrap_or(NOBODY),
            source: self.mac,
            tos: 0,
            id: self.identification,
            ttl: 64,
            source_ip: self.ip,
            destination_ip: peer,
            source_port,
            udp_checksum: 0,
            packet,
        }
    }

    fn arp(&mut self, now: u64, packet: &[u8]) {
        let octets = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
        if packet[..6] != [0, 1, 8, 0, 6, 4] || octets(24) != self.ip {
            return;
        }
        let (sender, mut mac) = (octets(14), [0; 6]);
        mac.copy_from_slice(&packet[8..14]);
        self.neighbours.insert(sender, mac);
        if packet[6..8] == [0, 1] {
            self.send_arp(2, mac, sender);
        }
        self.resolved(now, sender);
    }

    fn send_arp(&mut self, operation: u8, mac: [u8; 6], ip: Ipv4Addr) {
        let target = if mac == NOBODY { [0; 6] } else { mac };
        let head = [&mac[..], &self.mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation]].concat();
        self.out.push_back([&head[..], &self.mac, &self.ip.octets(), &target, &ip.octets()].concat());
    }

    fn ask(&mut self, peer: Ipv4Addr) {
        self.send_arp(1, NOBODY, peer);
    }

    /// Connections that waited for this address go on.
    fn resolved(&mut self, now: u64, peer: Ipv4Addr) {
        for id in 0..self.connections.len() {
            if self.connections[id].peer == peer && self.connections[id].phase == Phase::Resolving {
                self.connections[id].phase = Phase::ReqSent;
                let message = Message::Req(Box::new(self.connections[id].req.clone()));
                self.say(now, id, message, true);
            }
        }
    }
}
