//! Random work over a wire that harms frames; and every packet of an exchange dropped once. At the end every byte is compared.

use super::{LOCAL, Target, complete, connect, disconnect, read_back, work, wrong};
use crate::live::{Station, Wire};
use crate::model::link::{Faults, Link};
use crate::model::{Operation, Status};
use crate::rng::Rng;
use std::io;

/// What a run showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub requests: u64,
    /// Frames that something happened to.
    pub harmed: u64,
    /// How often the requester went back, and how often because nothing came.
    pub rewinds: u64,
    pub timeouts: u64,
    /// The queue pair ended in error, with every request completed.
    pub error: bool,
}

/// Bytes of the region that are used, a half for each of results and contents.
const USED: u32 = 1 << 15;

/// `requests` random WRITEs, READs and atomics at once, harmed by `faults`.
///
/// # Errors
/// Those of the wire; a request that never completes, a wrong byte.
pub fn random<W: Wire>(station: &mut Station<W>, target: Target, faults: Faults, seed: u64, requests: u64) -> io::Result<Run> {
    let mut rng = Rng::new(seed);
    // Known contents first, on a wire that harms nothing.
    let (id, offer) = connect(station, target)?;
    let used = USED.min(offer.length);
    let mut board = vec![0; used as usize];
    rng.fill(&mut board);
    station.node.memory.write(LOCAL, &board);
    let filled = complete(station, id, &[work(0, Operation::Write { imm: None }, LOCAL, used, offer.address, &offer)], super::PATIENCE_NS)?;
    if filled[0].status != Status::Success {
        return Err(wrong(format!("seed {seed}: filling: {filled:?}")));
    }
    // Each request has its own part of the region and its own place here, so their order does not matter.
    let share = used / requests as u32;
    let mut sources = vec![0; used as usize];
    rng.fill(&mut sources);
    station.node.memory.write(LOCAL, &sources);
    let (mut works, mut expected) = (Vec::new(), sources.clone());
    let before = board.clone();
    for n in 0..requests {
        let place = n as u32 * share;
        let (skew, length) = (rng.below(4) as u32, rng.below(u64::from(share).saturating_sub(8).max(1)) as u32);
        let (at, local) = ((place + skew) as usize, place as usize);
        let aligned = (place as usize).next_multiple_of(8);
        let (operation, length, at) = match rng.below(5) {
            0 | 1 => (Operation::Write { imm: None }, length, at),
            2 | 3 => (Operation::Read, length, at),
            _ if offer.address % 8 != 0 || aligned + 8 > (place + share) as usize => (Operation::Read, length, at),
            _ => (Operation::FetchAdd { add: rng.next_u64() }, 8, aligned),
        };
        let length_bytes = length as usize;
        match operation {
            Operation::Write { .. } => board[at..at + length_bytes].copy_from_slice(&sources[local..local + length_bytes]),
            Operation::Read => expected[local..local + length_bytes].copy_from_slice(&board[at..at + length_bytes]),
            Operation::FetchAdd { add } => {
                let found: [u8; 8] = board[at..at + 8].try_into().unwrap_or_default();
                expected[local..local + 8].copy_from_slice(&found);
                board[at..at + 8].copy_from_slice(&u64::from_le_bytes(found).wrapping_add(add).to_le_bytes());
            }
            _ => {}
        }
        works.push(work(n, operation, LOCAL + u64::from(place), length, offer.address + at as u64, &offer));
    }
    let link = |seed| Link::new(0, faults, seed);
    (station.outward, station.inward) = (link(seed ^ 0x5555), link(seed ^ 0xaaaa));
    let done = complete(station, id, &works, 400_000_000)?;
    let harmed = station.outward.harmed + station.inward.harmed;
    let (rewinds, timeouts) = super::qp(station, id)?.resends();
    let error = done.iter().any(|done| done.status != Status::Success);
    // What is still under way arrives before the wire is a good one again.
    let until = station.now() + 3_000_000;
    station.run(until, |_| false)?;
    (station.outward, station.inward) = (Link::new(0, Faults::default(), 0), Link::new(0, Faults::default(), 0));
    let local = station.node.memory.read(LOCAL, used as usize).map(<[u8]>::to_vec).unwrap_or_default();
    disconnect(station, id)?;
    let found = read_back(station, target, LOCAL + u64::from(USED), used)?;
    let differs =
        |found: &[u8], wanted: &[u8], old: &[u8]| (0..found.len()).find(|&at| found[at] != wanted[at] && !(error && found[at] == old[at]));
    if let Some(at) = differs(&found, &board, &before) {
        return Err(wrong(format!("seed {seed}: byte {at} of the board's region is {:#04x}, not {:#04x}", found[at], board[at])));
    }
    if let Some(at) = differs(&local, &expected, &sources) {
        return Err(wrong(format!("seed {seed}: byte {at} that came back is {:#04x}, not {:#04x}", local[at], expected[at])));
    }
    Ok(Run { requests, harmed, rewinds, timeouts, error })
}

/// An exchange of about `packets` packets of `operation` in four messages, once for every packet of either direction dropped.
///
/// # Errors
/// Those of the wire; a request that fails, a wrong byte.
pub fn each_dropped<W: Wire>(station: &mut Station<W>, target: Target, operation: Operation, packets: u32) -> io::Result<u64> {
    let mut runs = 0;
    for outward in [true, false] {
        for k in 0..u64::from(packets) + 8 {
            let mut rng = Rng::new(k);
            let (id, offer) = connect(station, target)?;
            let pmtu = super::qp(station, id)?.config.pmtu;
            let atomic = matches!(operation, Operation::FetchAdd { .. } | Operation::CompareSwap { .. });
            let length = if atomic { 8 } else { (packets * pmtu / 4 - 5).min(offer.length / 4) };
            let mut sources = vec![0; 4 * length as usize];
            rng.fill(&mut sources);
            station.node.memory.write(LOCAL, &sources);
            let fill = work(9, Operation::Write { imm: None }, LOCAL, 4 * length, offer.address, &offer);
            complete(station, id, &[fill], super::PATIENCE_NS)?;
            let before = sources.clone();
            rng.fill(&mut sources);
            station.node.memory.write(LOCAL, &sources);
            let mut link = Link::new(0, Faults::default(), 0);
            link.drop_numbers.push(k);
            if outward {
                station.outward = link
            } else {
                station.inward = link
            }
            let place = |n: u64| n * u64::from(length);
            let works = (0..4).map(|n| work(n, operation, LOCAL + place(n), length, offer.address + place(n), &offer)).collect::<Vec<_>>();
            let done = complete(station, id, &works, super::PATIENCE_NS)?;
            (station.outward, station.inward) = (Link::new(0, Faults::default(), 0), Link::new(0, Faults::default(), 0));
            let what = || format!("{operation:?}, packet {k} {} dropped", if outward { "to the board" } else { "from the board" });
            if let Some(failed) = done.iter().find(|done| done.status != Status::Success) {
                return Err(wrong(format!("{}: {failed:?}", what())));
            }
            let local = station.node.memory.read(LOCAL, sources.len()).map(<[u8]>::to_vec).unwrap_or_default();
            disconnect(station, id)?;
            let found = read_back(station, target, LOCAL + u64::from(USED), 4 * length)?;
            let (mut board, mut expected) = (before, sources.clone());
            match operation {
                Operation::Write { .. } => board = sources,
                Operation::Read => expected.copy_from_slice(&board),
                Operation::FetchAdd { add } => {
                    for word in 0..4 {
                        let was = board[8 * word..8 * word + 8].try_into().map(u64::from_le_bytes).unwrap_or_default();
                        expected[8 * word..8 * word + 8].copy_from_slice(&was.to_le_bytes());
                        board[8 * word..8 * word + 8].copy_from_slice(&was.wrapping_add(add).to_le_bytes());
                    }
                }
                // Comparing with what is hardly there: nothing is swapped.
                Operation::CompareSwap { .. } => expected.copy_from_slice(&board),
                Operation::Send { .. } => {}
            }
            if found != board || local != expected {
                return Err(wrong(format!("{}: a wrong byte {}", what(), if found == board { "here" } else { "on the board" })));
            }
            runs += 1;
        }
    }
    Ok(runs)
}
