//! Hostile packets: whatever comes, the board answers as the reference model does, or not at all as it does; nothing is written but what
//! the model writes; and the next good packet works.
//!
//! Families are lists that are gone through to the end; [`random`] is proptest's: lists of steps, each on a connection of its own, shrunk to the
//! least that still fails.

mod bits;
mod bounds;
mod ground;
mod lengths;
mod psns;
pub mod random;
mod responses;
mod states;
mod step;
mod truncation;

pub use step::Step;

use super::Target;
use crate::live::{Station, Wire};
use ground::Ground;
use std::io;

/// What was tried, and what was not as the model says.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub packets: u64,
    pub connections: u64,
    /// Packet, what the model answers, what the board answered.
    pub mismatches: Vec<String>,
}

/// How much.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Every bit and byte of everything, where it is else of a choice.
    pub all: bool,
    /// Lists of steps, and their seed.
    pub cases: u32,
    pub seed: u64,
    /// This list of steps instead of random ones.
    pub replay: Option<Vec<Step>>,
}

/// Bytes of the receive that the service posts for each connection before anything else: a longer SEND is too long.
pub const RECEIVE: u32 = 128;

/// A family by name.
struct Family<W> {
    name: &'static str,
    /// It needs the plugin `rdma-bench`: the board is the requester.
    bench: bool,
    run: fn(&mut Ground<W>, &Scope) -> io::Result<()>,
}

fn all<W: Wire>() -> Vec<Family<W>> {
    let of = |name, run| Family { name, bench: false, run };
    vec![
        of("truncation", truncation::run),
        of("lengths", lengths::run),
        of("bits", bits::run),
        of("bounds", bounds::run),
        of("psns", psns::run),
        of("states", states::run),
        of("random", random::run),
        Family { name: "responses", bench: true, run: responses::run },
    ]
}

/// The names of all families.
pub fn names() -> Vec<&'static str> {
    all::<crate::live::ModelBoard>().iter().map(|family| family.name).collect()
}

/// The names of those that any board can be tried with, and a model.
pub fn of_a_region() -> Vec<&'static str> {
    all::<crate::live::ModelBoard>().iter().filter(|family| !family.bench).map(|family| family.name).collect()
}

/// Runs the families in `only`, all if it is empty; `say` gets each one's name and outcome. At the end the board's region must be the model's, byte by byte.
///
/// # Errors
/// Those of the wire. Differences are in the outcomes.
pub fn run<W: Wire>(
    station: &mut Station<W>,
    target: Target,
    scope: &Scope,
    only: &[&str],
    mut say: impl FnMut(&'static str, Outcome),
) -> io::Result<()> {
    let mut ground = Ground::new(station, target)?;
    for family in all::<W>().into_iter().filter(|family| only.is_empty() || only.contains(&family.name)) {
        let result = (family.run)(&mut ground, scope);
        if let Err(error) = result {
            ground.found.mismatches.push(format!("cannot go on: {error}"));
        }
        if let Err(error) = ground.close() {
            ground.found.mismatches.push(error.to_string());
        }
        say(family.name, std::mem::take(&mut ground.found));
    }
    ground.compare()?;
    say("memory", std::mem::take(&mut ground.found));
    Ok(())
}
