//! The invariant CRC of RoCEv2 over IPv4.
//!
//! Ethernet's CRC-32 over eight bytes of ones (the masked link header of InfiniBand) and the packet from the IPv4 header to the last
//! pad byte, with the fields that change on the way taken as ones; stored little-endian.

/// Offsets from the start of the IPv4 header (20 bytes, no options) of bytes taken as 0xff: type of service, TTL, header checksum,
/// UDP checksum, and the BTH's FECN, BECN and reserved bits.
const MASKED: [usize; 7] = [1, 8, 10, 11, 26, 27, 32];

/// The CRC's state after eight bytes of 0xff.
const START: u32 = 0xdebb_20e3;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut value = at as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
};

fn step(state: u32, byte: u8) -> u32 {
    state >> 8 ^ TABLE[usize::from(state as u8 ^ byte)]
}

/// The ICRC of `packet`: IPv4 header to the last pad byte, without the ICRC itself.
pub fn icrc(packet: &[u8]) -> u32 {
    let header = packet.iter().take(33).enumerate().map(|(at, &byte)| if MASKED.contains(&at) { 0xff } else { byte });
    !header.chain(packet.iter().skip(33).copied()).fold(START, step)
}

/// Ethernet's frame check sequence of `bytes`.
pub fn fcs(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |state, &byte| step(state, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc_32() {
        assert_eq!(fcs(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn start_is_the_state_after_eight_ones() {
        assert_eq!([0xff; 8].iter().fold(!0, |state, &byte| step(state, byte)), START);
    }
}
