//! Random work over a wire that harms frames, with the board as responder and as requester. At the end every byte is compared.

use super::requester::{Bench, Command, Request};
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

/// Faults of one kind at a rate, in parts of a million.
pub type Kind = fn(u32) -> Faults;

/// What a wire can do to frames, each for itself and all at once.
pub const KINDS: [(&str, Kind); 6] = [
    ("drop", |drop| Faults { drop, ..Faults::default() }),
    ("duplicate", |duplicate| Faults { duplicate, ..Faults::default() }),
    ("reorder", |reorder| Faults { reorder, ..Faults::default() }),
    ("delay", |delay| Faults { delay, ..Faults::default() }),
    ("corrupt", |corrupt| Faults { corrupt, ..Faults::default() }),
    ("all five", Faults::all),
];

/// How often, in parts of a million, and how many runs that takes to harm a few frames.
pub const RATES: [(u32, u64); 3] = [(1_000, 24), (10_000, 5), (50_000, 2)];

impl Run {
    /// Of several runs.
    #[must_use]
    pub fn and(self, other: Run) -> Run {
        Run {
            requests: self.requests + other.requests,
            harmed: self.harmed + other.harmed,
            rewinds: self.rewinds + other.rewinds,
            timeouts: self.timeouts + other.timeouts,
            error: self.error || other.error,
        }
    }
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

/// The board as requester: WRITEs and READs, SENDs and atomics at random places, harmed by `faults`. Our memory is compared after each run of the
/// board's, and the board compares what it has read. Where its queue pair ended in error, a new connection must be served as if nothing had been:
/// the service takes no other command before every request of its run has completed.
///
/// # Errors
/// Those of the wire; a run that neither ends nor errs, a wrong byte.
pub fn by_board<W: Wire>(station: &mut Station<W>, target: Target, faults: Faults, seed: u64) -> io::Result<Run> {
    let mut rng = Rng::new(seed);
    let link = |seed| Link::new(0, faults, seed);
    let unharmed = || Link::new(0, Faults::default(), 0);
    let bench = Bench::connect(station, target)?;
    (station.outward, station.inward) = (link(seed ^ 0x5555), link(seed ^ 0xaaaa));
    let mut run = Run::default();
    for (request, count) in
        [(Request::WriteAndRead, 12), (Request::Send, 8), (Request::FetchAdd, 8), (Request::CompareSwap, 2), (Request::Read, 6)]
    {
        let size = if matches!(request, Request::FetchAdd | Request::CompareSwap) { 8 } else { rng.below(2500) as u32 };
        let (offset, at) = if size == 8 { (0, 0) } else { (rng.below(70) as u32, rng.below(8) as u32) };
        let span = if size == 8 || request == Request::Send { 0 } else { 4 * size };
        let values = (rng.next_u64(), rng.next_u64());
        let command = Command {
            offset,
            at,
            span,
            seed: rng.next_u64() as u32,
            operand: values.0,
            compare: values.1,
            ..Command::new(request, size, count)
        };
        run.requests += u64::from(count);
        match bench.run(station, command) {
            Ok(ran) if ran.status == 0 && ran.done == count && ran.wrong == 0 => {}
            Ok(ran) => return Err(wrong(format!("seed {seed}: {command:?}: {ran:?}"))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                run.error = true;
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                // Its DREQs may all have been lost. A queue pair that has ended answers nothing; one that is alive would have gone on.
                (station.outward, station.inward) = (unharmed(), unharmed());
                if !bench.ended(station)? {
                    return Err(wrong(format!("seed {seed}: {error}, and the queue pair has not ended")));
                }
                run.error = true;
                break;
            }
            Err(error) => return Err(wrong(format!("seed {seed}: {error}"))),
        }
    }
    run.harmed = station.outward.harmed + station.inward.harmed;
    (run.rewinds, run.timeouts) = bench.resends(station)?;
    let until = station.now() + 3_000_000;
    station.run(until, |_| false)?;
    (station.outward, station.inward) = (unharmed(), unharmed());
    bench.disconnect(station)?;
    if run.error {
        let bench = Bench::connect(station, target)?;
        bench
            .run(station, Command::new(Request::Write, 1000, 4))
            .map_err(|error| wrong(format!("seed {seed}: after the error: {error}")))?;
        bench.disconnect(station)?;
    }
    Ok(run)
}
