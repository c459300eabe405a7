//! Whole test programs against a board on a wire in simulated time: speed, loss, single drops, hostile packets.
//!
//! They know the board by its address, the service that they connect to, and the region that its REP offers:
//! `{be64 address, be32 rkey, be32 length}` in the first 16 bytes of the private data.

pub mod all;
pub mod cm;
pub mod drops;
pub mod faults;
pub mod hostile;
pub mod loss;
pub mod requester;
pub mod speed;

use crate::live::{Station, Wire};
use crate::model::connection::Phase;
use crate::model::{Access, Completion, Event, Memory, Node, Operation, Qp, ReceiveRequest, Region, Status, WorkRequest};
use std::io;
use std::net::Ipv4Addr;

/// Whom to connect to.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub ip: Ipv4Addr,
    pub service: u64,
    /// The region to use instead of the one that the REP offers. `hostile` needs all of a region.
    pub region: Option<Offer>,
}

/// What the board lets us use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub address: u64,
    pub rkey: u32,
    pub length: u32,
}

impl Offer {
    /// From private data; `None` where it offers nothing.
    pub fn decode(data: &[u8]) -> Option<Offer> {
        let word = |at: usize| data.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        let offer = Offer { address: u64::from(word(0)?) << 32 | u64::from(word(4)?), rkey: word(8)?, length: word(12)? };
        (offer.length != 0).then_some(offer)
    }

    /// From `ADDRESS:RKEY:LENGTH`, decimal.
    pub fn parse(text: &str) -> Option<Offer> {
        let [address, rkey, length] = text.split(':').collect::<Vec<_>>()[..] else { return None };
        Some(Offer { address: address.parse().ok()?, rkey: rkey.parse().ok()?, length: length.parse().ok()? })
    }

    /// As private data.
    pub fn encode(&self) -> Vec<u8> {
        [&self.address.to_be_bytes()[..], &self.rkey.to_be_bytes(), &self.length.to_be_bytes()].concat()
    }
}

/// Simulated time that an answer of CM, or a whole exchange, may take. A simulation needs a second for each millisecond of it.
pub const PATIENCE_NS: u64 = 20_000_000;

/// Where our own memory begins.
pub const LOCAL: u64 = 0x10_0000;

/// A node that is ready to connect, with `length` bytes of memory from [`LOCAL`] on, all of it open to the other side as key 0x100.
pub fn node(mac: [u8; 6], ip: Ipv4Addr, length: usize, seed: u64) -> Node {
    let mut node = Node::new(mac, ip, seed);
    node.memory = Memory::new(LOCAL, length);
    let region = Region { base: LOCAL, length: length as u64, rkey: 0x100, domain: 1, access: Access::ALL, invalidate: false, valid: true };
    node.memory.regions.push(region);
    node
}

fn wrong(text: String) -> io::Error {
    io::Error::other(text)
}

/// Connects; gives the connection's ID and the board's offer.
///
/// # Errors
/// Those of the wire; a refusal, silence, or a REP that offers nothing.
pub fn connect<W: Wire>(station: &mut Station<W>, target: Target) -> io::Result<(usize, Offer)> {
    let now = station.now();
    station.node.events.clear();
    let id = station.node.connect(now, target.ip, target.service, b"");
    station.run(now + PATIENCE_NS, |node| !node.events.is_empty())?;
    match station.node.events.pop_front() {
        Some(Event::Connected { private_data, .. }) => {
            let offer = target.region.or(Offer::decode(&private_data)).ok_or_else(|| wrong("the board's REP offers no region".into()))?;
            Ok((id, offer))
        }
        Some(event) => Err(wrong(format!("connecting: {event:?}"))),
        None => Err(wrong("connecting: no answer".into())),
    }
}

/// Ends a connection and waits for the answer; the board may have ended it already.
///
/// # Errors
/// Those of the wire; silence.
pub fn disconnect<W: Wire>(station: &mut Station<W>, id: usize) -> io::Result<()> {
    let now = station.now();
    station.node.events.clear();
    if station.node.connections.get(id).is_some_and(|connection| connection.phase == Phase::Closed) {
        return Ok(());
    }
    station.node.disconnect(now, id);
    let over = |node: &mut Node| node.events.contains(&Event::Disconnected { id });
    if station.run(now + PATIENCE_NS, over)? { Ok(()) } else { Err(wrong("disconnecting: no answer".into())) }
}

/// The queue pair of a connection.
///
/// # Errors
/// Where it has none.
pub fn qp<W: Wire>(station: &mut Station<W>, id: usize) -> io::Result<&mut Qp> {
    station.node.qp(id).ok_or_else(|| wrong(format!("connection {id} has no queue pair")))
}

/// Posts requests and runs until all have completed. Each must be signaled.
///
/// # Errors
/// Those of the wire; a request that never completes.
pub fn complete<W: Wire>(station: &mut Station<W>, id: usize, works: &[WorkRequest], patience_ns: u64) -> io::Result<Vec<Completion>> {
    let pair = qp(station, id)?;
    pair.completions.clear();
    works.iter().for_each(|work| pair.post(*work));
    let until = station.now() + patience_ns;
    let all = |node: &mut Node| node.qp(id).is_some_and(|pair| pair.completions.iter().filter(|done| !done.receive).count() >= works.len());
    if !station.run(until, all)? {
        return Err(wrong(format!(
            "{} of {} requests have not completed after {patience_ns} ns",
            qp(station, id)?.outstanding(),
            works.len()
        )));
    }
    Ok(qp(station, id)?.completions.drain(..).collect())
}

/// A signaled request.
pub fn work(id: u64, operation: Operation, local: u64, length: u32, remote: u64, offer: &Offer) -> WorkRequest {
    WorkRequest { id, operation, local, length, remote, rkey: offer.rkey, signaled: true }
}

/// Reads the first `length` bytes of the board's region to `local` in our memory, over a connection of its own.
///
/// # Errors
/// Those of the wire; a READ that fails.
pub fn read_back<W: Wire>(station: &mut Station<W>, target: Target, local: u64, length: u32) -> io::Result<Vec<u8>> {
    let (id, offer) = connect(station, target)?;
    let done = complete(station, id, &[work(0, Operation::Read, local, length, offer.address, &offer)], PATIENCE_NS)?;
    if done.iter().any(|done| done.status != Status::Success) {
        return Err(wrong(format!("reading back: {done:?}")));
    }
    disconnect(station, id)?;
    let bytes = station.node.memory.read(local, length as usize);
    bytes.map(<[u8]>::to_vec).ok_or_else(|| wrong("no memory to read back to".into()))
}

/// A model in a board's place, offering `length` bytes, for proving these programs.
pub fn model_board(target: Target, length: usize, responder_resources: u8) -> crate::live::ModelBoard {
    let base = 0x7_0000_0000;
    let mut board = Node::new([2, 0x47, 0x57, 0, 0, 1], target.ip, 99);
    // Behind the region a place for a receive.
    board.memory = Memory::new(base, length + hostile::RECEIVE as usize);
    let region = Region { base, length: length as u64, rkey: 0x7705, domain: 1, access: Access::ALL, invalidate: false, valid: true };
    board.memory.regions.push(region);
    board.limits.responder_resources = responder_resources;
    board.limits.queue_pairs = 4;
    // Just before the wrap: every connection that lasts a little crosses it.
    board.limits.answer_psn = Some(0xff_ffd0);
    let offer = Offer { address: base, rkey: 0x7705, length: length as u32 };
    board.listeners.insert(target.service, crate::model::Listener { private_data: offer.encode() });
    let mut board = crate::live::ModelBoard::new(board);
    board.receive = Some(ReceiveRequest { id: 0, address: base + length as u64, length: hostile::RECEIVE });
    board
}
