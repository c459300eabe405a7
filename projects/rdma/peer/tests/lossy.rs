//! Two models over a wire that loses, doubles, reorders, delays and corrupts: the memories at the end are right, nothing hangs.

use roce_peer::check::{Options, check};
use roce_peer::model::link::{Faults, Link};
use roce_peer::model::{Access, Config, Memory, Operation, Qp, ReceiveRequest, Region, State, Status, WorkRequest};
use roce_peer::packet::Frame;
use roce_peer::pcap::Record;
use roce_peer::rng::Rng;
use std::net::Ipv4Addr;

const BASE: u64 = 0x7f00_0000_1000;
const RKEY: u32 = 0x1234;
const SIZE: usize = 1 << 18;

struct Station {
    ip: Ipv4Addr,
    qp: Qp,
    memory: Memory,
    /// The wire is busy until then.
    free: u64,
    out: Link,
}

struct World {
    stations: [Station; 2],
    now: u64,
    records: Vec<Record>,
    /// A receive that station 1 gets at a time.
    late: Option<(u64, ReceiveRequest)>,
}

fn region(access: Access) -> Region {
    Region { base: BASE, length: SIZE as u64 / 2, rkey: RKEY, domain: 1, access, invalidate: false, valid: true }
}

impl World {
    fn new(config: Config, faults: Faults, seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let [mut a, mut b] = [config; 2];
        (a.local_qpn, a.remote_qpn, b.local_qpn, b.remote_qpn) = (0x11, 0x22, 0x22, 0x11);
        // Near the wrap, so that it happens in most runs.
        a.send_psn = 0xff_ffff - rng.below(200) as u32;
        b.send_psn = rng.below(1 << 24) as u32;
        (a.receive_psn, b.receive_psn) = (b.send_psn, a.send_psn);
        let mut station = |ip, config, seed| {
            let mut memory = Memory::new(BASE, SIZE);
            rng.fill(&mut memory.bytes);
            memory.regions.push(region(Access::ALL));
            Station { ip: Ipv4Addr::new(10, 0, 0, ip), qp: Qp::new(config), memory, free: 0, out: Link::new(2000, faults, seed) }
        };
        let stations = [station(1, a, seed ^ 0x55), station(2, b, seed ^ 0xaa)];
        World { stations, now: 0, records: Vec::new(), late: None }
    }

    /// Until nothing more happens; panics when simulated time says that it hangs.
    fn run(&mut self) {
        loop {
            for side in 0..2 {
                self.transmit(side);
            }
            let mut next = None::<u64>;
            let mut at = |time: Option<u64>| {
                if let Some(time) = time {
                    next = Some(next.map_or(time, |old| old.min(time)));
                }
            };
            for station in &self.stations {
                at(station.out.next());
                at(station.qp.timer());
                if station.free > self.now {
                    at(Some(station.free));
                }
            }
            at(self.late.map(|late| late.0));
            let Some(next) = next else { return };
            self.now = next.max(self.now);
            if let Some((_, receive)) = self.late.take_if(|late| late.0 <= self.now) {
                self.stations[1].qp.post_receive(receive);
            }
            assert!(self.now < 3_600_000_000_000, "an hour has passed");
            for side in 0..2 {
                while let Some(frame) = self.stations[1 - side].out.receive(self.now) {
                    let station = &mut self.stations[side];
                    let Ok(frame) = Frame::decode(&frame) else { continue };
                    if frame.destination_ip == station.ip && frame.packet.bth.destination == station.qp.config.local_qpn {
                        station.qp.receive(self.now, &frame.packet, false, &mut station.memory);
                    }
                }
                self.stations[side].qp.tick(self.now);
            }
        }
    }

    fn transmit(&mut self, side: usize) {
        let [a, b] = &mut self.stations;
        let (station, peer) = if side == 0 { (a, b) } else { (b, a) };
        while station.free <= self.now {
            let Some(packet) = station.qp.poll(self.now, &station.memory) else { return };
            let frame = Frame {
                destination: [2; 6],
                source: [4; 6],
                tos: 0,
                id: 0,
                ttl: 64,
                source_ip: station.ip,
                destination_ip: peer.ip,
                source_port: 0xc123,
                udp_checksum: 0,
                packet,
            };
            let bytes = frame.encode();
            // 1 Gbit/s.
            station.free = self.now + (bytes.len() as u64 + 24) * 8;
            self.records.push(Record { number: self.records.len() + 1, time_ns: self.now, frame: bytes.clone() });
            station.out.send(self.now, bytes);
        }
    }
}

/// Random work from both sides, in disjoint parts of the memories; the expectation is made by applying it in order.
fn mixed(world: &mut World, seed: u64, requests: u64) -> (Vec<Memory>, [u64; 2]) {
    let mut rng = Rng::new(seed ^ 0x77);
    let mut expected = world.stations.each_ref().map(|station| station.memory.clone());
    let half = SIZE as u64 / 2;
    let mut receives = [0; 2];
    for side in 0..2 {
        let (mut receive, share) = (0, half / requests);
        for id in 0..requests {
            // Targets, sources and results of each request are its own: the order in which memory is touched does not matter,
            // except for the atomics, which share one word.
            let place = id * share;
            let length = rng.below(share.min(9000)) as u32;
            let skew = rng.below(share - u64::from(length)).min(3);
            let quarter = half / 2;
            // Own memory: the upper half, the lower quarter of it for side 0's requests ... ; the other's region: by side as well.
            let (local, remote) = (BASE + half + place, BASE + side * quarter + ((place / 2) & !7) + skew);
            let length = length.min((share / 2).saturating_sub(16) as u32);
            let operation = match rng.below(7) {
                0 => Operation::Send { imm: None, invalidate: None },
                1 => Operation::Send { imm: Some(id as u32), invalidate: None },
                2 => Operation::Write { imm: None },
                3 => Operation::Write { imm: Some(id as u32) },
                4 | 5 => Operation::Read,
                _ => Operation::FetchAdd { add: rng.next_u64() },
            };
            let me = side as usize;
            let word = BASE + side * quarter + ((place / 2) & !7);
            let (length, remote) = if matches!(operation, Operation::FetchAdd { .. }) { (8, word) } else { (length, remote) };
            let work = WorkRequest { id, operation, local, length, remote, rkey: RKEY, signaled: true };
            match operation {
                Operation::Send { .. } => {
                    let request = ReceiveRequest { id: receive, address: remote, length: length + 3 };
                    world.stations[1 - me].qp.post_receive(request);
                    receive += 1;
                    let data = expected[me].read(local, length as usize).unwrap().to_vec();
                    expected[1 - me].write(remote, &data);
                }
                Operation::Write { imm } => {
                    if imm.is_some() {
                        world.stations[1 - me].qp.post_receive(ReceiveRequest { id: receive, address: 0, length: 0 });
                        receive += 1;
                    }
                    let data = expected[me].read(local, length as usize).unwrap().to_vec();
                    expected[1 - me].write(remote, &data);
                }
                Operation::Read => {
                    let data = expected[1 - me].read(remote, length as usize).unwrap().to_vec();
                    expected[me].write(local, &data);
                }
                Operation::FetchAdd { add } => {
                    let data: [u8; 8] = expected[1 - me].read(remote, 8).unwrap().try_into().unwrap();
                    expected[me].write(local, &data);
                    expected[1 - me].write(remote, &u64::from_le_bytes(data).wrapping_add(add).to_le_bytes());
                }
                Operation::CompareSwap { .. } => {}
            }
            world.stations[me].qp.post(work);
        }
        receives[1 - side as usize] = receive;
    }
    (expected.into(), receives)
}

fn run(config: Config, faults: Faults, seed: u64, requests: u64) {
    let mut world = World::new(config, faults, seed);
    let (expected, receives) = mixed(&mut world, seed, requests);
    world.run();
    for (side, station) in world.stations.iter().enumerate() {
        let works = station.qp.completions.iter().filter(|done| !done.receive).collect::<Vec<_>>();
        assert_eq!(works.len() as u64, requests, "seed {seed}, side {side}: every request ends once");
        assert!(works.windows(2).all(|pair| pair[0].id < pair[1].id), "seed {seed}: completions in order");
        if station.qp.state == State::ReadyToSend && world.stations[1 - side].qp.state == State::ReadyToSend {
            assert!(works.iter().all(|done| done.status == Status::Success), "seed {seed}: {works:?}");
            let received = station.qp.completions.iter().filter(|done| done.receive).map(|done| (done.id, done.status)).collect::<Vec<_>>();
            let wanted = (0..receives[side]).map(|id| (id, Status::Success)).collect::<Vec<_>>();
            assert_eq!(received, wanted, "seed {seed}: every receive completes once and in order");
        }
    }
    let fine = world.stations.iter().all(|station| station.qp.state == State::ReadyToSend);
    if fine {
        for (side, wanted) in expected.iter().enumerate() {
            let (found, wanted) = (&world.stations[side].memory.bytes, &wanted.bytes);
            let wrong = found.iter().zip(wanted).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "seed {seed}, side {side}: {config:?}");
        }
    }
    // Few tries lost in a row are an error and nothing else; at the rates of these tests it is rare.
    let report = check(&world.records, Options { lossless: faults == Faults::default(), pmtu: Some(config.pmtu) });
    assert_eq!(report.faults, [], "seed {seed}");
    assert_eq!(report.unpaired, 0);
    println!("seed {seed}: {} frames, {} resends, fine: {fine}", report.frames, report.resends);
    if faults.drop <= 10_000 {
        assert!(
            fine,
            "seed {seed}: {:?}",
            world.stations.each_ref().map(|station| station.qp.completions.iter().find(|c| c.status != Status::Success))
        );
    }
}

#[test]
fn nothing_is_resent_on_a_good_wire() {
    for (seed, pmtu) in [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)] {
        run(Config { pmtu, ..Config::default() }, Faults::default(), seed, 60);
    }
}

#[test]
fn memories_are_right_after_loss() {
    for parts in [1_000, 10_000, 50_000] {
        for seed in 0..20 {
            for pmtu in [256, 1024, 4096] {
                run(Config { pmtu, ..Config::default() }, Faults::all(parts), seed * 1000 + u64::from(parts), 60);
            }
        }
    }
}

#[test]
fn each_fault_alone() {
    let n = 50_000;
    let alone = [
        Faults { drop: n, ..Faults::default() },
        Faults { duplicate: n, ..Faults::default() },
        Faults { reorder: n, ..Faults::default() },
        Faults { delay: n, ..Faults::default() },
        Faults { corrupt: n, ..Faults::default() },
    ];
    for faults in alone {
        for seed in 100..110 {
            run(Config { pmtu: 256, ..Config::default() }, faults, seed, 40);
        }
    }
}

/// Every packet of an exchange dropped once, in either direction, for each operation.
#[test]
fn packet_k_is_dropped() {
    let operations = [
        Operation::Send { imm: None, invalidate: None },
        Operation::Write { imm: None },
        Operation::Write { imm: Some(7) },
        Operation::Read,
        Operation::FetchAdd { add: 3 },
        Operation::CompareSwap { compare: 0, swap: 9 },
    ];
    for operation in operations {
        for side in 0..2 {
            for k in 0..40 {
                let config = Config { pmtu: 256, ..Config::default() };
                let mut world = World::new(config, Faults::default(), 9);
                world.stations[side].out.drop_numbers.push(k);
                let atomic = matches!(operation, Operation::FetchAdd { .. } | Operation::CompareSwap { .. });
                let length = if atomic { 8 } else { 32 * 256 / 4 - 5 };
                let mut sum = u64::from_le_bytes(world.stations[1].memory.read(BASE, 8).unwrap().try_into().unwrap());
                for id in 0..4 {
                    world.stations[1].qp.post_receive(ReceiveRequest { id, address: BASE + id * 8192, length: 8192 });
                    let (local, remote) = (BASE + SIZE as u64 / 2 + id * 8192, BASE + if atomic { 0 } else { id * 8192 });
                    world.stations[0].qp.post(WorkRequest { id, operation, local, length, remote, rkey: RKEY, signaled: true });
                }
                world.run();
                let done = &world.stations[0].qp.completions;
                assert_eq!(
                    done.iter().map(|c| (c.id, c.status)).collect::<Vec<_>>(),
                    (0..4).map(|id| (id, Status::Success)).collect::<Vec<_>>()
                );
                for id in 0..4 {
                    let local = world.stations[0].memory.read(BASE + SIZE as u64 / 2 + id * 8192, length as usize).unwrap();
                    match operation {
                        Operation::FetchAdd { add } => {
                            assert_eq!(local, sum.to_le_bytes(), "{operation:?}, packet {k} of side {side}, request {id}");
                            sum = sum.wrapping_add(add);
                        }
                        Operation::CompareSwap { .. } => assert_eq!(local, sum.to_le_bytes()),
                        _ => assert_eq!(
                            local,
                            world.stations[1].memory.read(BASE + id * 8192, length as usize).unwrap(),
                            "{operation:?} {k} {side}"
                        ),
                    }
                }
                assert_eq!(
                    check(&world.records, Options { pmtu: Some(256), ..Options::default() }).faults,
                    [],
                    "{operation:?}, packet {k} of side {side}"
                );
            }
        }
    }
}

#[test]
fn a_dead_peer_is_an_error_after_the_tries() {
    let mut world = World::new(Config { retry_count: 3, ack_timeout: 5, ..Config::default() }, Faults::default(), 1);
    world.stations[0].out.drop_numbers.extend(0..1000);
    for id in 0..3 {
        let operation = Operation::Write { imm: None };
        world.stations[0].qp.post(WorkRequest { id, operation, local: BASE, length: 100, remote: BASE, rkey: RKEY, signaled: false });
    }
    world.run();
    let ends = world.stations[0].qp.completions.iter().map(|c| c.status).collect::<Vec<_>>();
    assert_eq!(ends, [Status::RetriesExceeded, Status::Flushed, Status::Flushed]);
    assert_eq!(world.stations[0].qp.resends().1, 4);
}

#[test]
fn a_send_waits_for_its_receive_or_gives_up() {
    for (rnr_retry, status) in [(7, Status::Success), (2, Status::RnrRetriesExceeded)] {
        let mut world = World::new(Config { rnr_retry, rnr_timer: 14, ..Config::default() }, Faults::default(), 1);
        let operation = Operation::Send { imm: None, invalidate: None };
        let work = WorkRequest { id: 1, operation, local: BASE, length: 100, remote: 0, rkey: 0, signaled: true };
        world.stations[0].qp.post(work);
        if rnr_retry == 7 {
            world.late = Some((5_000_000, ReceiveRequest { id: 2, address: BASE, length: 100 }));
        }
        world.run();
        assert_eq!(world.stations[0].qp.completions.iter().map(|c| c.status).collect::<Vec<_>>(), [status]);
        // Timer code 14 is 1.28 ms.
        let report = check(&world.records, Options::default());
        assert_eq!(report.rnr_naks, if rnr_retry == 7 { 4 } else { 3 });
    }
}

#[test]
fn refused_rights_end_in_error_on_both_sides() {
    let cases = [
        (Operation::Write { imm: None }, BASE + SIZE as u64 / 2 - 99, RKEY, Status::RemoteAccess),
        (Operation::Write { imm: None }, BASE - 1, RKEY, Status::RemoteAccess),
        (Operation::Read, BASE, RKEY + 1, Status::RemoteAccess),
        (Operation::Read, u64::MAX - 98, RKEY, Status::RemoteAccess),
        (Operation::FetchAdd { add: 1 }, BASE + 4, RKEY, Status::RemoteInvalidRequest),
    ];
    for (operation, remote, rkey, status) in cases {
        let mut world = World::new(Config::default(), Faults::default(), 1);
        let before = world.stations[1].memory.clone();
        let length = if matches!(operation, Operation::FetchAdd { .. }) { 8 } else { 100 };
        world.stations[0].qp.post(WorkRequest { id: 1, operation, local: BASE, length, remote, rkey, signaled: true });
        world.run();
        assert_eq!(world.stations[0].qp.completions.iter().map(|c| c.status).collect::<Vec<_>>(), [status], "{operation:?}");
        assert_eq!(world.stations.each_ref().map(|station| station.qp.state), [State::Error; 2]);
        assert!(world.stations[1].memory == before);
    }
}
