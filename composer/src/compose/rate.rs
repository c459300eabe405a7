//! The arithmetic of rates: what width and clock carry a link.
//!
//! A frame of L bytes (without FCS) owns (max(L, 60) + 24) x 8 / rate of time:
//! 4 bytes FCS, 8 preamble and 12 gap. A datapath of W bits needs ceil(8 L / W)
//! cycles for it. The worst length decides: of every length, or of those that a
//! project says it has (`datapath.shortest-frame`).

/// Bytes on the wire around a frame: preamble and SFD 8, FCS 4, inter-frame gap 12 (IEEE 802.3 clause 4).
pub const OVERHEAD_BYTES: u64 = 24;

/// Shortest frame without FCS (IEEE 802.3: 64 bytes with it).
pub const MIN_FRAME_BYTES: u64 = 60;

/// Longest frame without FCS that the arithmetic looks at: 9000 bytes of MTU and a header.
pub const MAX_FRAME_BYTES: u64 = 9014;

/// What a datapath has to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Rate in 1/1000 Gbit/s.
    pub gbps_milli: u64,
    /// Bytes without FCS of the shortest frame for which the rate is promised.
    pub shortest: u64,
}

impl Traffic {
    /// Frames of every length.
    pub fn any(gbps_milli: u64) -> Traffic {
        Traffic { gbps_milli, shortest: MIN_FRAME_BYTES }
    }

    fn gbps(self) -> f64 {
        self.gbps_milli as f64 / 1000.0
    }

    /// Nanoseconds of the wire that a frame owns.
    fn owns_ns(self, length: u64) -> f64 {
        (length.max(MIN_FRAME_BYTES) + OVERHEAD_BYTES) as f64 * 8.0 / self.gbps()
    }
}

/// Cycles that a frame takes.
fn cycles(length: u64, width: u32) -> u64 {
    length.div_ceil(u64::from(width / 8).max(1))
}

/// The lowest clock in Hz at which `width` bits keep up with every length that the traffic has, and the length that decides.
pub fn lowest_clock(width: u32, traffic: Traffic) -> (f64, u64) {
    let mut worst = (0.0, traffic.shortest);
    for length in traffic.shortest..=MAX_FRAME_BYTES {
        let hz = cycles(length, width) as f64 / traffic.owns_ns(length) * 1e9;
        if hz > worst.0 {
            worst = (hz, length);
        }
    }
    worst
}

/// The length from which on `width` bits at `hz` carry the rate; `None` where they do not even carry the longest frames.
fn carried_from(width: u32, hz: u64, traffic: Traffic) -> Option<u64> {
    let carries = |length: u64| cycles(length, width) as f64 / traffic.owns_ns(length) * 1e9 <= hz as f64;
    let last_lost = (MIN_FRAME_BYTES..=MAX_FRAME_BYTES).rev().find(|length| !carries(*length))?;
    (last_lost < MAX_FRAME_BYTES).then_some(last_lost + 1)
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
pub fn choose(clocks: &[u64], widths: &[u32], traffic: Traffic, margin: f64) -> Option<Fit> {
    let mut widths: Vec<u32> = widths.to_vec();
    widths.sort_unstable();
    for &hz in clocks {
        for &width in &widths {
            let raw = f64::from(width) * hz as f64 >= margin * traffic.gbps_milli as f64 * 1e6;
            if raw && lowest_clock(width, traffic).0 <= hz as f64 {
                return Some(Fit { hz, width });
            }
        }
    }
    None
}

/// The arithmetic of a refusal, in words, and the override that helps where only short frames are too fast.
pub fn explain(width: u32, hz: u64, traffic: Traffic) -> String {
    let (lowest, length) = lowest_clock(width, traffic);
    let mut text = format!(
        "a frame of {length} bytes takes {} cycles of {width} bits and owns ({length} + 24) x 8 / {} Gb/s = {:.1} ns: \
         {:.3} MHz at least, {:.3} MHz is there",
        cycles(length, width),
        traffic.gbps(),
        traffic.owns_ns(length),
        lowest / 1e6,
        hz as f64 / 1e6
    );
    if let Some(from) = carried_from(width, hz, traffic) {
        text += &format!(
            "; frames from {from} bytes on are carried: where no shorter ones come back to back, \
             `datapath.shortest-frame = {from}` accepts that"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_length_decides() {
        // 512 bits carry 100G for every length from 281 MHz on, 256 bits 40G from 168.6 MHz.
        let (hz, length) = lowest_clock(512, Traffic::any(100_000));
        assert_eq!(length, 65);
        assert!((280.8e6..281.0e6).contains(&hz), "{hz}");
        let (hz, length) = lowest_clock(256, Traffic::any(40_000));
        assert_eq!(length, 65);
        assert!((168.4e6..168.6e6).contains(&hz), "{hz}");
    }

    #[test]
    fn eight_bits_carry_1g_at_125_mhz_without_margin_only() {
        assert_eq!(choose(&[125_000_000], &WIDTHS, Traffic::any(1000), 1.0), Some(Fit { hz: 125_000_000, width: 8 }));
        assert_eq!(choose(&[62_500_000], &WIDTHS, Traffic::any(1000), 1.25), Some(Fit { hz: 62_500_000, width: 32 }));
        assert_eq!(choose(&[62_500_000], &[8, 16], Traffic::any(1000), 1.25), None);
    }

    #[test]
    fn long_frames_need_less() {
        let long = Traffic { gbps_milli: 100_000, shortest: 1024 };
        let (hz, length) = lowest_clock(512, long);
        assert_eq!(length, 1025);
        assert!((202.5e6..202.7e6).contains(&hz), "{hz}");
        assert_eq!(choose(&[250_000_000], &[512], long, 1.0), Some(Fit { hz: 250_000_000, width: 512 }));
        assert_eq!(choose(&[250_000_000], &[512], Traffic::any(100_000), 1.0), None);
        // Of all lengths only 65 to 75 bytes are too fast for 512 bits at 250 MHz.
        assert_eq!(carried_from(512, 250_000_000, Traffic::any(100_000)), Some(76));
        assert_eq!(carried_from(8, 62_500_000, Traffic::any(1000)), None);
    }
}
