//! Every packet of an exchange dropped once: exactly packet k of one direction, for every k. At the end of each round every byte is compared.

use super::requester::{Bench, Command};
use super::{LOCAL, Offer, Target, complete, connect, disconnect, qp, work, wrong};
use crate::live::{Station, Wire};
use crate::model::link::{Faults, Link};
use crate::model::{Operation, ReceiveRequest, Status, WorkRequest};
use crate::rng::Rng;
use std::io;

/// Packets that were dropped, each in a round of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub to_board: u64,
    pub from_board: u64,
}

/// More packets than any exchange here has in one direction.
const MANY: u64 = 200;

/// Rounds of `exchange` for k = 0, 1, ... with packet k of one direction dropped, until a round has no packet k; then the other direction.
fn each<W: Wire>(station: &mut Station<W>, mut exchange: impl FnMut(&mut Station<W>, u64) -> io::Result<()>) -> io::Result<Dropped> {
    let mut dropped = [0, 0];
    for (direction, name) in ["to", "from"].into_iter().enumerate() {
        for k in 0..=MANY {
            let mut links = [Link::new(0, Faults::default(), 0), Link::new(0, Faults::default(), 0)];
            links[direction].drop_numbers.push(k);
            [station.outward, station.inward] = links;
            exchange(station, k).map_err(|error| wrong(format!("packet {k} {name} the board dropped: {error}")))?;
            if [station.outward.harmed, station.inward.harmed][direction] == 0 {
                break;
            }
            dropped[direction] += 1;
        }
    }
    station.outward = Link::new(0, Faults::default(), 0);
    station.inward = Link::new(0, Faults::default(), 0);
    let [to_board, from_board] = dropped;
    if to_board == 0 || from_board == 0 || to_board > MANY || from_board > MANY {
        return Err(wrong(format!("an exchange of {to_board} packets to the board and {from_board} from it")));
    }
    Ok(Dropped { to_board, from_board })
}

fn done(station: &mut Station<impl Wire>, id: usize, works: &[WorkRequest]) -> io::Result<()> {
    let done = complete(station, id, works, super::PATIENCE_NS)?;
    done.iter().find(|done| done.status != Status::Success).map_or(Ok(()), |failed| Err(wrong(format!("{failed:?}"))))
}

fn same(what: &str, found: Option<&[u8]>, wanted: &[u8]) -> io::Result<()> {
    let found = found.unwrap_or_default();
    match (0..wanted.len()).find(|&at| found.get(at) != Some(&wanted[at])) {
        Some(at) => Err(wrong(format!("byte {at} {what} is {:#04x?}, not {:#04x}", found.get(at), wanted[at]))),
        None => Ok(()),
    }
}

/// An exchange of four messages with 32 packets of payload of `operation`, a WRITE or a READ, or of 16 atomics with their 16 answers; the board
/// is the responder.
///
/// # Errors
/// Those of the wire; a request that fails, a wrong byte.
pub fn responder<W: Wire>(station: &mut Station<W>, target: Target, operation: Operation) -> io::Result<Dropped> {
    let (id, offer) = connect(station, target)?;
    let pmtu = qp(station, id)?.config.pmtu;
    let atomic = matches!(operation, Operation::FetchAdd { .. } | Operation::CompareSwap { .. });
    // The last packet of a message is not a full one.
    let (count, length) = if atomic { (16, 8) } else { (4, 8 * pmtu - 5) };
    let total = count * length;
    if offer.length < total || offer.address % 8 != 0 {
        return Err(wrong(format!("{offer:?} has no {total} bytes for this exchange")));
    }
    let mut board = vec![0; total as usize];
    let mut rng = Rng::new(1);
    rng.fill(&mut board);
    station.node.memory.write(LOCAL, &board);
    done(station, id, &[work(0, Operation::Write { imm: None }, LOCAL, total, offer.address, &offer)])?;
    let found = LOCAL + u64::from(total.next_multiple_of(8));
    let dropped = each(station, |station, k| {
        let mut local = vec![0; total as usize];
        rng.fill(&mut local);
        station.node.memory.write(LOCAL, &local);
        let place = |n: u32| u64::from(n * length);
        let works = (0..count).map(|n| {
            let at = place(n) as usize;
            let word = u64::from_le_bytes(board[at..at + 8].try_into().unwrap_or_default());
            // Every other comparison fails.
            let operation = match operation {
                Operation::CompareSwap { swap, .. } => {
                    Operation::CompareSwap { compare: word ^ u64::from(n & 1), swap: swap ^ u64::from(n) << 32 ^ k }
                }
                other => other,
            };
            (at, word, work(n.into(), operation, LOCAL + place(n), length, offer.address + place(n), &offer))
        });
        let works = works.collect::<Vec<_>>();
        done(station, id, &works.iter().map(|(.., work)| *work).collect::<Vec<_>>())?;
        // What it must have done.
        for (at, word, work) in &works {
            let after = match work.operation {
                Operation::FetchAdd { add } => word.wrapping_add(add),
                Operation::CompareSwap { compare, swap } => {
                    if compare == *word {
                        swap
                    } else {
                        *word
                    }
                }
                _ => continue,
            };
            local[*at..at + 8].copy_from_slice(&word.to_le_bytes());
            board[*at..at + 8].copy_from_slice(&after.to_le_bytes());
        }
        match operation {
            Operation::Read => local.copy_from_slice(&board),
            Operation::Write { .. } => board.copy_from_slice(&local),
            _ => {}
        }
        same("that came back", station.node.memory.read(LOCAL, total as usize), &local)?;
        let harmed = (station.outward.harmed, station.inward.harmed);
        station.outward.drop_numbers.clear();
        station.inward.drop_numbers.clear();
        if operation != Operation::Read {
            done(station, id, &[work(0, Operation::Read, found, total, offer.address, &offer)])?;
            same("of the board's", station.node.memory.read(found, total as usize), &board)?;
        }
        if (station.outward.harmed, station.inward.harmed) != harmed {
            return Err(wrong("a packet was dropped that was not to be".into()));
        }
        Ok(())
    })?;
    disconnect(station, id)?;
    Ok(dropped)
}

/// Bytes of a message that the board's echo takes.
const ECHO: u32 = 128;

/// Where our receives are.
const RECEIVES: u64 = LOCAL + 0x8_0000;

/// Eight SENDs to the board, two at a time since it has two receives, each of which it sends back: 32 packets.
///
/// # Errors
/// Those of the wire; a request that fails, a wrong byte.
pub fn echo<W: Wire>(station: &mut Station<W>, target: Target, imm: Option<u32>) -> io::Result<Dropped> {
    let nothing = Offer { address: 0, rkey: 0, length: 0 };
    let (id, _) = connect(station, Target { region: Some(nothing), ..target })?;
    let mut rng = Rng::new(2);
    let dropped = each(station, |station, _| {
        let mut sent = vec![0; 2 * ECHO as usize];
        for round in 0..4 {
            rng.fill(&mut sent);
            station.node.memory.write(LOCAL, &sent);
            let pair = qp(station, id)?;
            pair.completions.clear();
            let length = |n: u32| ECHO - 3 * (2 * round + n);
            for n in 0..2 {
                let place = u64::from(n * ECHO);
                pair.post_receive(ReceiveRequest { id: n.into(), address: RECEIVES + place, length: ECHO });
                pair.post(work(n.into(), Operation::Send { imm, invalidate: None }, LOCAL + place, length(n), 0, &nothing));
            }
            let until = station.now() + super::PATIENCE_NS;
            if !station.run(until, |node| node.qp(id).is_some_and(|pair| pair.completions.len() >= 4))? {
                return Err(wrong(format!("of four completions there are {:?}", qp(station, id)?.completions)));
            }
            let ended = qp(station, id)?.completions.drain(..).collect::<Vec<_>>();
            let back = ended.iter().filter(|done| done.receive).map(|done| (done.id, done.length)).collect::<Vec<_>>();
            if ended.iter().any(|done| done.status != Status::Success) || back != [(0, length(0)), (1, length(1))] {
                return Err(wrong(format!("{ended:?}")));
            }
            for n in 0..2 {
                let (place, size) = ((n * ECHO) as usize, length(n) as usize);
                same("that was sent back", station.node.memory.read(RECEIVES + place as u64, size), &sent[place..place + size])?;
            }
        }
        Ok(())
    })?;
    disconnect(station, id)?;
    Ok(dropped)
}

/// Runs of `command` on the board, which is the requester. Its command and its result are SENDs, and dropped too.
///
/// # Errors
/// Those of the wire; a run that fails, a wrong byte.
pub fn requester<W: Wire>(station: &mut Station<W>, bench: &Bench, command: Command) -> io::Result<Dropped> {
    each(station, |station, k| {
        let ran = bench.run(station, Command { seed: command.seed ^ k as u32, ..command })?;
        let right = ran.status == 0 && ran.done == command.count && ran.wrong == 0;
        if right { Ok(()) } else { Err(wrong(format!("{ran:?}"))) }
    })
}
