//! A connection without a queue pair of ours: every packet is made, and every answer looked at, by the case itself.

use super::super::{Offer, Target, connect, disconnect, wrong};
use crate::live::{Station, Wire};
use crate::packet::{Aeth, AtomicEth, Bth, Extensions, Frame, Opcode, Packet, Reth, Syndrome, mtu_of_code};
use crate::psn;
use std::io;

/// A service that offers no region.
pub const NOWHERE: Offer = Offer { address: 0, rkey: 0, length: 0 };

/// The board has answered a short request by then: 30 us.
pub const ANSWER_NS: u64 = 30_000;

/// How finely time is cut while something is waited for.
const STEP_NS: u64 = 2_000;

/// A packet of the board's.
#[derive(Clone, Debug)]
pub struct Heard {
    pub packet: Packet,
    pub source_port: u16,
    /// Time of its first preamble bit.
    pub start: u64,
}

impl Heard {
    pub fn psn(&self) -> u32 {
        self.packet.bth.psn
    }

    pub fn opcode(&self) -> Opcode {
        self.packet.bth.opcode
    }

    pub fn syndrome(&self) -> Option<Syndrome> {
        self.packet.ext.aeth.map(|aeth| aeth.syndrome)
    }
}

/// The connection.
#[derive(Clone, Debug)]
pub struct Raw {
    pub id: usize,
    pub offer: Offer,
    pub pmtu: u32,
    /// Of our next request.
    pub psn: u32,
    /// Of the board's next request.
    pub board_psn: u32,
    /// A right frame's addresses and ports.
    pub head: Frame,
    pub board_qpn: u32,
    pub our_qpn: u32,
    /// Records that have been looked at.
    seen: usize,
}

impl Raw {
    /// # Errors
    /// Those of the wire; a refusal or silence.
    pub fn connect<W: Wire>(station: &mut Station<W>, target: Target) -> io::Result<Raw> {
        let (id, offer) = connect(station, target)?;
        // The RTU leaves.
        let until = station.now() + ANSWER_NS;
        station.run(until, |_| false)?;
        station.node.release(id);
        let connection = &station.node.connections[id];
        let rep = connection.rep.clone().ok_or_else(|| wrong("no REP".into()))?;
        let pmtu = mtu_of_code(connection.req.path_mtu).unwrap_or(1024);
        let psns = (rep.starting_psn, connection.req.starting_psn);
        Raw::new(station, (id, offer), (rep.local_qpn, connection.local_qpn), psns, pmtu)
    }

    /// Of a connection that was made by hand; pairs are (the board's, ours) of queue pairs, (ours, the board's) of first PSNs.
    ///
    /// # Errors
    /// If nothing was ever sent.
    pub fn new<W: Wire>(
        station: &Station<W>,
        (id, offer): (usize, Offer),
        (board_qpn, our_qpn): (u32, u32),
        (first, board_psn): (u32, u32),
        pmtu: u32,
    ) -> io::Result<Raw> {
        let frames = station.records.iter().rev().filter_map(|record| Frame::decode(&record.frame).ok());
        let head = frames.into_iter().find(|frame| frame.source_ip == station.node.ip);
        let head = head.ok_or_else(|| wrong("nothing was sent".into()))?;
        Ok(Raw { id, offer, pmtu, psn: first, board_psn, head, board_qpn, our_qpn, seen: station.records.len() })
    }

    /// How many records have been looked at.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// # Errors
    /// Those of the wire; silence.
    pub fn close<W: Wire>(self, station: &mut Station<W>) -> io::Result<()> {
        disconnect(station, self.id)
    }

    /// A packet to the board that asks for an answer.
    pub fn packet(&self, opcode: Opcode, psn: u32, ext: Extensions, payload: &[u8]) -> Packet {
        let bth = Bth { ack_request: true, ..Bth::new(opcode, self.board_qpn, psn & psn::MASK) };
        Packet::new(bth, ext, payload.to_vec())
    }

    /// A WRITE of one packet at `address`.
    pub fn write_only(&self, psn: u32, address: u64, payload: &[u8]) -> Packet {
        self.packet(Opcode::WRITE_ONLY, psn, self.reth(address, payload.len() as u32), payload)
    }

    pub fn read_request(&self, psn: u32, address: u64, length: u32) -> Packet {
        self.packet(Opcode::READ_REQUEST, psn, self.reth(address, length), &[])
    }

    pub fn fetch_add(&self, psn: u32, address: u64, operand: u64) -> Packet {
        let atomic = AtomicEth { address, rkey: self.offer.rkey, operand, compare: 0 };
        self.packet(Opcode::FETCH_ADD, psn, Extensions { atomic: Some(atomic), ..Extensions::default() }, &[])
    }

    pub fn reth(&self, address: u64, length: u32) -> Extensions {
        Extensions { reth: Some(Reth { address, rkey: self.offer.rkey, length }), ..Extensions::default() }
    }

    /// The frame of a packet.
    pub fn frame(&self, packet: &Packet) -> Vec<u8> {
        Frame { packet: packet.clone(), ..self.head.clone() }.encode()
    }

    /// # Errors
    /// Those of the wire.
    pub fn put<W: Wire>(&self, station: &mut Station<W>, packet: &Packet) -> io::Result<()> {
        station.inject(&self.frame(packet))
    }

    /// An ACK or NAK for the board.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn answer<W: Wire>(&self, station: &mut Station<W>, psn: u32, syndrome: Syndrome) -> io::Result<()> {
        self.put(station, &self.packet(Opcode::ACK, psn, aeth(syndrome), &[]))
    }

    /// What the board has sent on this connection since the last look, in `ns` from now at most; not after `count` packets.
    ///
    /// # Errors
    /// Those of the wire.
    pub fn hear<W: Wire>(&mut self, station: &mut Station<W>, ns: u64, count: usize) -> io::Result<Vec<Heard>> {
        let until = station.now() + ns;
        let mut heard = Vec::new();
        loop {
            while heard.len() < count && self.seen < station.records.len() {
                let record = &station.records[self.seen];
                self.seen += 1;
                let Ok(frame) = Frame::decode(&record.frame) else { continue };
                if frame.source_ip == self.head.destination_ip && frame.packet.bth.destination == self.our_qpn {
                    heard.push(Heard { packet: frame.packet, source_port: frame.source_port, start: record.time_ns });
                }
            }
            let now = station.now();
            if heard.len() >= count || now >= until {
                return Ok(heard);
            }
            station.run(until.min(now + STEP_NS), |_| false)?;
        }
    }

    /// As many packets as are wanted, no fewer.
    ///
    /// # Errors
    /// Those of the wire; fewer packets.
    pub fn wait<W: Wire>(&mut self, station: &mut Station<W>, ns: u64, count: usize) -> io::Result<Vec<Heard>> {
        let heard = self.hear(station, ns, count)?;
        if heard.len() == count { Ok(heard) } else { Err(wrong(format!("{count} packets wanted, got {}", names(&heard)))) }
    }

    /// Time for an answer to two full packets that have been put, and for it to come.
    fn patience<W: Wire>(&self, station: &Station<W>) -> u64 {
        ANSWER_NS + (f64::from(3 * self.pmtu) * station.byte_ns) as u64
    }

    /// One ACK or NAK and nothing else.
    ///
    /// # Errors
    /// Those of the wire; anything else.
    pub fn answered<W: Wire>(&mut self, station: &mut Station<W>, psn: u32, syndrome: Syndrome) -> io::Result<()> {
        let heard = self.hear(station, self.patience(station), usize::MAX)?;
        let same = |found: Option<Syndrome>| found == Some(syndrome) || syndrome.is_ack() && found.is_some_and(Syndrome::is_ack);
        match &heard[..] {
            [one] if one.opcode() == Opcode::ACK && one.psn() == psn & psn::MASK && same(one.syndrome()) => Ok(()),
            _ => Err(wrong(format!("wanted {syndrome:?} with PSN {:#08x}, got {}", psn & psn::MASK, names(&heard)))),
        }
    }

    /// Nothing at all.
    ///
    /// # Errors
    /// Those of the wire; an answer.
    pub fn silent<W: Wire>(&mut self, station: &mut Station<W>) -> io::Result<()> {
        let heard = self.hear(station, self.patience(station), usize::MAX)?;
        if heard.is_empty() { Ok(()) } else { Err(wrong(format!("silence wanted, got {}", names(&heard)))) }
    }

    /// Writes so many bytes, packet by packet, and waits for the ACK.
    ///
    /// # Errors
    /// Those of the wire; another answer.
    pub fn write<W: Wire>(&mut self, station: &mut Station<W>, address: u64, data: &[u8]) -> io::Result<()> {
        let chunks = data.chunks(self.pmtu as usize).collect::<Vec<_>>();
        let last = chunks.len().saturating_sub(1);
        for (at, chunk) in chunks.iter().enumerate() {
            let opcode = match (at == 0, at == last) {
                (true, true) => Opcode::WRITE_ONLY,
                (true, false) => Opcode::WRITE_FIRST,
                (false, false) => Opcode::WRITE_MIDDLE,
                (false, true) => Opcode::WRITE_LAST,
            };
            let mut packet = self.packet(opcode, self.psn, self.reth(address, data.len() as u32), chunk);
            packet.bth.ack_request = at == last;
            self.put(station, &packet)?;
            self.psn = psn::add(self.psn, 1);
        }
        let wire = (data.len() as f64 * station.byte_ns * 1.5) as u64;
        let heard = self.hear(station, ANSWER_NS + wire, 1)?;
        match &heard[..] {
            [one] if one.syndrome().is_some_and(Syndrome::is_ack) && psn::add(one.psn(), 1) == self.psn => Ok(()),
            _ => Err(wrong(format!("a WRITE of {} bytes got {}", data.len(), names(&heard)))),
        }
    }

    /// Reads so many bytes; the responses have the right opcodes and PSNs.
    ///
    /// # Errors
    /// Those of the wire; another answer.
    pub fn read<W: Wire>(&mut self, station: &mut Station<W>, address: u64, length: u32) -> io::Result<Vec<u8>> {
        let first = self.psn;
        self.put(station, &self.read_request(first, address, length))?;
        self.psn = psn::add(first, psn::count(length, self.pmtu));
        self.responses(station, first, length)
    }

    /// The responses of a READ of `length` bytes from PSN `first` on.
    ///
    /// # Errors
    /// Those of the wire; anything else.
    pub fn responses<W: Wire>(&mut self, station: &mut Station<W>, first: u32, length: u32) -> io::Result<Vec<u8>> {
        let count = psn::count(length, self.pmtu);
        let wire = (f64::from(length) * station.byte_ns * 1.5) as u64;
        let heard = self.hear(station, ANSWER_NS + wire, count as usize)?;
        let right = |(at, one): (usize, &Heard)| {
            let opcode = match (at == 0, at + 1 == count as usize) {
                (true, true) => Opcode::READ_RESPONSE_ONLY,
                (true, false) => Opcode::READ_RESPONSE_FIRST,
                (false, false) => Opcode::READ_RESPONSE_MIDDLE,
                (false, true) => Opcode::READ_RESPONSE_LAST,
            };
            let size = self.pmtu.min(length - self.pmtu * at as u32) as usize;
            one.opcode() == opcode && one.psn() == psn::add(first, at as u32) && one.packet.payload.len() == size
        };
        if heard.len() != count as usize || !heard.iter().enumerate().all(right) {
            return Err(wrong(format!("a READ of {length} bytes with PSN {first:#08x} got {}", names(&heard))));
        }
        Ok(heard.into_iter().flat_map(|one| one.packet.payload).collect())
    }

    /// A WRITE and a READ work as if nothing had been.
    ///
    /// # Errors
    /// Those of the wire; anything wrong.
    pub fn alive<W: Wire>(&mut self, station: &mut Station<W>) -> io::Result<()> {
        let data = self.psn.to_be_bytes().repeat(4);
        let address = self.offer.address + u64::from(self.offer.length) - 64;
        self.write(station, address, &data)?;
        same("that was written last", &self.read(station, address, data.len() as u32)?, &data)
    }
}

/// An AETH alone.
pub fn aeth(syndrome: Syndrome) -> Extensions {
    Extensions { aeth: Some(Aeth { syndrome, msn: 0 }), ..Extensions::default() }
}

/// Bytes that are not all the same.
pub fn bytes(seed: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    crate::rng::Rng::new(seed.into()).fill(&mut bytes);
    bytes
}

/// # Errors
/// The first byte that differs.
pub fn same(what: &str, found: &[u8], wanted: &[u8]) -> io::Result<()> {
    if found.len() != wanted.len() {
        return Err(wrong(format!("{} bytes {what}, not {}", found.len(), wanted.len())));
    }
    match (0..wanted.len()).find(|&at| found[at] != wanted[at]) {
        Some(at) => Err(wrong(format!("byte {at} {what} is {:#04x}, not {:#04x}", found[at], wanted[at]))),
        None => Ok(()),
    }
}

/// # Errors
/// `text` where `right` is false.
pub fn ensure(right: bool, text: impl FnOnce() -> String) -> io::Result<()> {
    if right { Ok(()) } else { Err(wrong(text())) }
}

/// Packets in words.
pub fn names(heard: &[Heard]) -> String {
    let name = |one: &Heard| {
        let syndrome = one.syndrome().map_or(String::new(), |syndrome| format!(" {syndrome:?}"));
        format!("{} PSN {:#08x}{syndrome} {} bytes", one.opcode(), one.psn(), one.packet.payload.len())
    };
    match heard {
        [] => "nothing".to_owned(),
        [first, .., last] if heard.len() > 4 => format!("{}, ... {} packets ..., {}", name(first), heard.len() - 2, name(last)),
        _ => heard.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}
