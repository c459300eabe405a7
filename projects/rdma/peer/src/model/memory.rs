//! Memory, and the regions of it that the other side may use.

/// Rights of a region or a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub write: bool,
    pub read: bool,
    pub atomic: bool,
}

impl Access {
    pub const ALL: Access = Access { write: true, read: true, atomic: true };

    /// Whether all rights of `wanted` are there.
    pub fn allows(self, wanted: Access) -> bool {
        (!wanted.write || self.write) && (!wanted.read || self.read) && (!wanted.atomic || self.atomic)
    }
}

/// A part of the memory with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub base: u64,
    pub length: u64,
    /// Region index in bits 31:8, variant in 7:0.
    pub rkey: u32,
    /// Protection domain.
    pub domain: u32,
    pub access: Access,
    /// Whether a SEND with invalidate may end it.
    pub invalidate: bool,
    pub valid: bool,
}

/// A flat memory from `base` on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub base: u64,
    pub bytes: Vec<u8>,
    pub regions: Vec<Region>,
}

impl Memory {
    /// `length` zeros from `base` on, no regions.
    pub fn new(base: u64, length: usize) -> Self {
        Memory { base, bytes: vec![0; length], regions: Vec::new() }
    }

    /// The valid region of `rkey` in `domain`.
    pub fn region(&mut self, rkey: u32, domain: u32) -> Option<&mut Region> {
        self.regions.iter_mut().find(|region| region.valid && region.rkey == rkey && region.domain == domain)
    }

    /// Whether `length` bytes at `address` lie inside a region with these rights. Nothing wraps at 2^64.
    pub fn allows(&self, rkey: u32, domain: u32, address: u64, length: u64, wanted: Access) -> bool {
        self.regions.iter().filter(|region| region.valid && region.rkey == rkey && region.domain == domain).any(|region| {
            let inside = address.checked_sub(region.base).is_some_and(|offset| offset <= region.length && length <= region.length - offset);
            inside && region.access.allows(wanted)
        })
    }

    fn range(&self, address: u64, length: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.bytes.len()).then_some(start..end)
    }

    /// The bytes at an address; `None` where there is no memory.
    pub fn read(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.range(address, length).map(|range| &self.bytes[range])
    }

    /// Puts bytes at an address; false where there is no memory.
    pub fn write(&mut self, address: u64, data: &[u8]) -> bool {
        match self.range(address, data.len()) {
            Some(range) => {
                self.bytes[range].copy_from_slice(data);
                true
            }
            None => data.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_exact_up_to_the_end_of_the_address_space() {
        for base in [0, 0x1000, (1 << 32) - 8, u64::MAX - 15] {
            let region = Region { base, length: 16, rkey: 0x105, domain: 1, access: Access::ALL, invalidate: false, valid: true };
            let memory = Memory { base, bytes: vec![], regions: vec![region] };
            let allows = |address: u64, length| memory.allows(0x105, 1, address, length, Access::ALL);
            assert!(allows(base, 16) && allows(base + 15, 1) && allows(base + 8, 8));
            assert!(!allows(base, 17) && !allows(base + 15, 2) && !allows(base.wrapping_sub(1), 1) && !allows(base.wrapping_add(16), 1));
            assert!(
                !allows(base, u64::MAX) && !memory.allows(0x104, 1, base, 1, Access::ALL) && !memory.allows(0x105, 2, base, 1, Access::ALL)
            );
        }
    }
}
