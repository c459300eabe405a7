//! Packet sequence numbers: 24 bits, compared within a signed window.

/// Bits that a PSN or MSN has.
pub const MASK: u32 = 0x00ff_ffff;

/// `a - b` as a signed 24-bit number: positive where `a` comes after `b`.
pub fn diff(a: u32, b: u32) -> i32 {
    ((a.wrapping_sub(b) << 8) as i32) >> 8
}

/// `psn` plus `n` packets.
pub fn add(psn: u32, n: u32) -> u32 {
    psn.wrapping_add(n) & MASK
}

/// How many PSNs a message of `length` bytes takes: at least one.
pub fn count(length: u32, pmtu: u32) -> u32 {
    length.div_ceil(pmtu).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_wraps() {
        assert_eq!(diff(0, MASK), 1);
        assert_eq!(diff(MASK, 0), -1);
        assert_eq!(diff(0x80_0000, 0), -0x80_0000);
        assert_eq!(diff(0x7f_ffff, 0), 0x7f_ffff);
        assert_eq!(add(MASK, 2), 1);
    }

    #[test]
    fn nothing_takes_one() {
        assert_eq!([0, 1, 256, 257].map(|length| count(length, 256)), [1, 1, 1, 2]);
    }
}
