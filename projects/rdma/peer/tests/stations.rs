//! Two whole stations on a wire: ARP, CM from either side, traffic, goodbye.

use roce_peer::check::{Options, check};
use roce_peer::cm::{reason, tcp_service};
use roce_peer::model::link::{Faults, Link};
use roce_peer::model::{Access, Event, Listener, Memory, Node, Operation, Region, Status, WorkRequest};
use roce_peer::pcap::Record;
use std::net::Ipv4Addr;

const BASE: u64 = 0x1000;

struct World {
    nodes: [Node; 2],
    links: [Link; 2],
    free: [u64; 2],
    now: u64,
    records: Vec<Record>,
}

impl World {
    fn new(faults: Faults, seed: u64) -> World {
        let node = |n: u8| {
            let mut node = Node::new([2, 0, 0, 0, 0, n], Ipv4Addr::new(10, 0, 0, n), seed + u64::from(n));
            node.memory = Memory::new(BASE, 1 << 16);
            node.memory.bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at as u8).wrapping_mul(n));
            let region = Region { base: BASE, length: 1 << 16, rkey: 0x100, domain: 1, access: Access::ALL, invalidate: true, valid: true };
            node.memory.regions.push(region);
            node.limits.cm_timeout = 10;
            node
        };
        let links = [Link::new(1000, faults, seed), Link::new(1000, faults, seed + 1)];
        World { nodes: [node(1), node(2)], links, free: [0; 2], now: 0, records: Vec::new() }
    }

    /// Until nothing more happens.
    fn run(&mut self) {
        loop {
            for side in 0..2 {
                while self.free[side] <= self.now {
                    let Some(frame) = self.nodes[side].poll(self.now) else { break };
                    self.free[side] = self.now + (frame.len() as u64 + 24) * 8;
                    self.records.push(Record { number: self.records.len() + 1, time_ns: self.now, frame: frame.clone() });
                    self.links[side].send(self.now, frame);
                }
            }
            let busy = self.free.iter().copied().filter(|&free| free > self.now);
            let next = busy.chain(self.links.iter().filter_map(Link::next)).chain(self.nodes.iter().filter_map(Node::timer)).min();
            let Some(next) = next else { return };
            self.now = self.now.max(next);
            assert!(self.now < 60_000_000_000);
            for side in 0..2 {
                while let Some(frame) = self.links[1 - side].receive(self.now) {
                    self.nodes[side].receive(self.now, &frame);
                }
                self.nodes[side].tick(self.now);
            }
        }
    }

    fn events(&mut self, side: usize) -> Vec<Event> {
        self.nodes[side].events.drain(..).collect()
    }
}

fn write(id: u64, length: u32) -> WorkRequest {
    WorkRequest { id, operation: Operation::Write { imm: None }, local: BASE, length, remote: BASE + 0x2000, rkey: 0x100, signaled: true }
}

#[test]
fn connect_write_disconnect() {
    let mut world = World::new(Faults::default(), 1);
    let service = tcp_service(7174);
    world.nodes[1].listeners.insert(service, Listener { private_data: b"welcome".to_vec() });
    let peer = world.nodes[1].ip;
    let id = world.nodes[0].connect(0, peer, service, b"hello");
    world.run();
    let events = world.events(0);
    assert!(matches!(&events[..], [Event::Connected { private_data, .. }] if private_data.starts_with(b"welcome")), "{events:?}");
    let events = world.events(1);
    assert!(matches!(&events[..], [Event::Requested { private_data, .. }, Event::Connected { .. }] if private_data.starts_with(b"hello")));
    world.nodes[0].qp(id).unwrap().post(write(5, 5000));
    world.run();
    assert_eq!(world.nodes[0].qp(id).unwrap().completions.pop_front().unwrap().status, Status::Success);
    assert_eq!(world.nodes[0].memory.bytes[..5000], world.nodes[1].memory.bytes[0x2000..0x2000 + 5000]);
    world.nodes[0].disconnect(world.now, id);
    world.run();
    assert_eq!(world.events(0), [Event::Disconnected { id }]);
    assert_eq!(world.events(1), [Event::Disconnected { id: 0 }]);
    let report = check(&world.records, Options { lossless: true, pmtu: None });
    assert_eq!((report.faults, report.connections), (vec![], 1));
}

#[test]
fn nobody_listens_or_nobody_is_there() {
    let mut world = World::new(Faults::default(), 1);
    let peer = world.nodes[1].ip;
    world.nodes[0].connect(0, peer, tcp_service(1), b"");
    world.nodes[0].connect(0, Ipv4Addr::new(10, 0, 0, 77), tcp_service(1), b"");
    world.run();
    let events = world.events(0);
    assert!(
        matches!(events[..], [Event::Rejected { id: 0, reason: reason::INVALID_SERVICE_ID, .. }, Event::Unreachable { id: 1 }]),
        "{events:?}"
    );
}

#[test]
fn connections_survive_loss() {
    for seed in 0..100 {
        let mut world = World::new(Faults::all(50_000), seed);
        let service = tcp_service(7174);
        world.nodes[1].listeners.insert(service, Listener::default());
        let peer = world.nodes[1].ip;
        let id = world.nodes[0].connect(0, peer, service, b"");
        world.run();
        let events = world.events(0);
        assert!(matches!(events[..], [Event::Connected { .. }]), "seed {seed}: {events:?}");
        world.nodes[0].qp(id).unwrap().post(write(5, 20_000));
        world.run();
        assert_eq!(world.nodes[0].qp(id).unwrap().completions.pop_front().unwrap().status, Status::Success, "seed {seed}");
        assert_eq!(world.nodes[0].memory.bytes[..20_000], world.nodes[1].memory.bytes[0x2000..0x2000 + 20_000]);
        world.nodes[0].disconnect(world.now, id);
        world.run();
        assert_eq!(world.events(0), [Event::Disconnected { id }], "seed {seed}");
        assert_eq!(world.events(1).iter().filter(|event| matches!(event, Event::Disconnected { .. })).count(), 1, "seed {seed}");
        assert_eq!(check(&world.records, Options::default()).faults, [], "seed {seed}");
    }
}

#[test]
fn established_does_not_bring_a_queue_pair_back_from_error() {
    use roce_peer::cm::{Mad, Message};
    use roce_peer::model::State;
    use roce_peer::packet::{Bth, Extensions, Frame, Opcode, Packet, Reth};
    let [mut caller, mut board] = World::new(Faults::default(), 1).nodes;
    let service = tcp_service(7174);
    board.listeners.insert(service, Listener::default());
    caller.connect(0, board.ip, service, b"");
    // All messages but the RTU, which comes later.
    let mut rtu = None;
    while rtu.is_none() {
        while let Some(frame) = caller.poll(0) {
            let mad = Frame::decode(&frame).ok().and_then(|frame| Mad::decode(&frame.packet.payload));
            if mad.is_some_and(|mad| matches!(mad.message, Message::Rtu(_))) {
                rtu = Some(frame);
            } else {
                board.receive(0, &frame);
            }
        }
        while let Some(frame) = board.poll(0) {
            caller.receive(0, &frame);
        }
    }
    let rtu = rtu.unwrap();
    let connection = &caller.connections[0];
    let rep = connection.rep.clone().unwrap();
    let bth = Bth { ack_request: true, ..Bth::new(Opcode::WRITE_ONLY, rep.local_qpn, rep.starting_psn) };
    let ext = Extensions { reth: Some(Reth { address: BASE, rkey: 0x999, length: 4 }), ..Extensions::default() };
    let head = Frame::decode(&rtu).unwrap();
    let write = Frame { packet: Packet::new(bth, ext, vec![1, 2, 3, 4]), ..head }.encode();
    board.receive(0, &write);
    assert_eq!(board.qp(0).unwrap().state, State::Error, "a wrong key ends the queue pair");
    assert!(!board.events.iter().any(|event| matches!(event, Event::Connected { .. })), "a request that is refused establishes nothing");
    board.receive(0, &rtu);
    assert_eq!(board.qp(0).unwrap().state, State::Error, "and the RTU does not bring it back");
}
