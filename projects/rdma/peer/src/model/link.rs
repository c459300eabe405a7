//! A wire in memory that loses, doubles, reorders, delays and corrupts frames by chance or by number.

use crate::rng::Rng;
use std::collections::BTreeMap;

/// What happens to frames, each in parts of a million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub drop: u32,
    pub duplicate: u32,
    /// Overtaken by what is sent in the next microseconds.
    pub reorder: u32,
    /// Late by up to a millisecond.
    pub delay: u32,
    /// One bit flipped.
    pub corrupt: u32,
}

impl Faults {
    /// Each of the five at the same rate.
    pub fn all(parts_per_million: u32) -> Self {
        let n = parts_per_million;
        Faults { drop: n, duplicate: n, reorder: n, delay: n, corrupt: n }
    }
}

/// One direction of a wire.
#[derive(Clone, Debug)]
pub struct Link {
    faults: Faults,
    rng: Rng,
    /// Frames to drop by number, from 0.
    pub drop_numbers: Vec<u64>,
    sent: u64,
    latency_ns: u64,
    under_way: BTreeMap<(u64, u64), Vec<u8>>,
    /// Frames that something happened to.
    pub harmed: u64,
}

impl Link {
    pub fn new(latency_ns: u64, faults: Faults, seed: u64) -> Self {
        Link { faults, rng: Rng::new(seed), drop_numbers: Vec::new(), sent: 0, latency_ns, under_way: BTreeMap::new(), harmed: 0 }
    }

    /// A frame is put on the wire.
    pub fn send(&mut self, now: u64, mut frame: Vec<u8>) {
        let number = self.sent;
        self.sent += 1;
        let faults = self.faults;
        if self.rng.chance(faults.drop) || self.drop_numbers.contains(&number) {
            self.harmed += 1;
            return;
        }
        let mut at = now + self.latency_ns;
        if self.rng.chance(faults.reorder) {
            self.harmed += 1;
            at += 1 + self.rng.below(20_000);
        }
        if self.rng.chance(faults.delay) {
            self.harmed += 1;
            at += self.rng.below(1_000_000);
        }
        if self.rng.chance(faults.corrupt) {
            self.harmed += 1;
            let bit = self.rng.below(frame.len() as u64 * 8) as usize;
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        if self.rng.chance(faults.duplicate) {
            self.harmed += 1;
            let late = self.rng.below(50_000);
            self.under_way.insert((at + late, 2 * number + 1), frame.clone());
        }
        self.under_way.insert((at, 2 * number), frame);
    }

    /// When the next frame arrives.
    pub fn next(&self) -> Option<u64> {
        self.under_way.keys().next().map(|key| key.0)
    }

    /// A frame that has arrived by now.
    pub fn receive(&mut self, now: u64) -> Option<Vec<u8>> {
        let key = *self.under_way.keys().next().filter(|key| key.0 <= now)?;
        self.under_way.remove(&key)
    }
}
