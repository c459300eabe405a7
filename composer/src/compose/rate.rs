//! The arithmetic of rates: what width and clock carry a link.
//!
//! A frame of L bytes (without FCS) owns (max(L, 60) + 24) x 8 / rate of time:
//! 4 bytes FCS, 8 preamble and 12 gap. A datapath of W bits needs ceil(8 L / W)
//! cycles for it. The worst length decides.

/// Bytes on the wire around a frame: preamble and SFD 8, FCS 4, inter-frame gap 12 (IEEE 802.3 clause 4).
pub const OVERHEAD_BYTES: u64 = 24;

/// Shortest frame without FCS (IEEE 802.3: 64 bytes with it).
pub const MIN_FRAME_BYTES: u64 = 60;

/// Longest frame without FCS that the arithmetic looks at: 9000 bytes of MTU and a header.
const MAX_FRAME_BYTES: u64 = 9014;

/// The lowest clock in Hz at which `width` bits keep up with `gbps_milli` (1/1000 Gbit/s) for every frame length,
/// and the length that decides.
pub fn lowest_clock(width: u32, gbps_milli: u64) -> (f64, u64) {
    let bytes = u64::from(width / 8).max(1);
    let rate = gbps_milli as f64 * 1e6;
    let mut worst = (0.0, MIN_FRAME_BYTES);
    for length in MIN_FRAME_BYTES..=MAX_FRAME_BYTES {
        let cycles = length.div_ceil(bytes) as f64;
        let owns = (length + OVERHEAD_BYTES) as f64 * 8.0 / rate;
        let hz = cycles / owns;
        if hz > worst.0 {
            worst = (hz, length);
        }
    }
    worst
}

/// One choice of clock and width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Clock in Hz.
    pub hz: u64,
    /// Width in bits.
    pub width: u32,
}

/// The widest datapath, in bits.
pub const WIDTHS: [u32; 7] = [8, 16, 32, 64, 128, 256, 512];

/// The first clock of `clocks` (in order of preference) at which one of `widths` carries the rate `margin` times
/// over, with the narrowest such width.
pub fn choose(clocks: &[u64], widths: &[u32], gbps_milli: u64, margin: f64) -> Option<Fit> {
    let mut widths: Vec<u32> = widths.to_vec();
    widths.sort_unstable();
    for &hz in clocks {
        for &width in &widths {
            let raw = f64::from(width) * hz as f64 >= margin * gbps_milli as f64 * 1e6;
            if raw && lowest_clock(width, gbps_milli).0 <= hz as f64 {
                return Some(Fit { hz, width });
            }
        }
    }
    None
}

/// The arithmetic of a refusal, in words.
pub fn explain(width: u32, hz: u64, gbps_milli: u64) -> String {
    let (lowest, length) = lowest_clock(width, gbps_milli);
    let cycles = length.div_ceil(u64::from(width / 8).max(1));
    let owns = (length + OVERHEAD_BYTES) as f64 * 8.0 / (gbps_milli as f64 / 1000.0);
    format!(
        "a frame of {length} bytes takes {cycles} cycles of {width} bits and owns ({length} + 24) x 8 / {} Gb/s = {owns:.1} ns: \
         {:.3} MHz at least, {:.3} MHz is there",
        gbps_milli as f64 / 1000.0,
        lowest / 1e6,
        hz as f64 / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_length_decides() {
        // 512 bits carry 100G for every length from 281 MHz on, 256 bits 40G from 168.6 MHz.
        let (hz, length) = lowest_clock(512, 100_000);
        assert_eq!(length, 65);
        assert!((280.8e6..281.0e6).contains(&hz), "{hz}");
        let (hz, length) = lowest_clock(256, 40_000);
        assert_eq!(length, 65);
        assert!((168.4e6..168.6e6).contains(&hz), "{hz}");
    }

    #[test]
    fn eight_bits_carry_1g_at_125_mhz_without_margin_only() {
        assert_eq!(choose(&[125_000_000], &WIDTHS, 1000, 1.0), Some(Fit { hz: 125_000_000, width: 8 }));
        assert_eq!(choose(&[62_500_000], &WIDTHS, 1000, 1.25), Some(Fit { hz: 62_500_000, width: 32 }));
        assert_eq!(choose(&[62_500_000], &[8, 16], 1000, 1.25), None);
    }
}
