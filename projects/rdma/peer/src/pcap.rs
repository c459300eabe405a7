//! Classic capture files, read and written.

use std::io::{self, Write};
use std::path::Path;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// From 1, as other tools count.
    pub number: usize,
    /// Time stamp in nanoseconds.
    pub time_ns: u64,
    /// Without FCS.
    pub frame: Vec<u8>,
}

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;

/// All records of a classic capture of Ethernet frames, either byte order, micro- or nanoseconds. An FCS that the file declares is
/// taken off.
///
/// # Errors
/// A sentence without the file's name: no such format, cut records, records that hold less than the frame.
pub fn parse(bytes: &[u8]) -> Result<Vec<Record>, String> {
    let word = |at: usize| bytes.get(at..at + 4).map(|b| [b[0], b[1], b[2], b[3]]);
    let first = word(0).ok_or("shorter than a file header")?;
    let (read, nano): (fn([u8; 4]) -> u32, bool) = match (u32::from_le_bytes(first), u32::from_be_bytes(first)) {
        (MICRO, _) => (u32::from_le_bytes, false),
        (NANO, _) => (u32::from_le_bytes, true),
        (_, MICRO) => (u32::from_be_bytes, false),
        (_, NANO) => (u32::from_be_bytes, true),
        (0x0a0d_0d0a, _) => return Err("a pcapng file; convert it: editcap -F nsecpcap IN OUT".into()),
        _ => return Err(format!("no capture file: it starts with {first:02x?}")),
    };
    let link = read(word(20).ok_or("shorter than a file header")?);
    if link & 0xffff != 1 {
        return Err(format!("link type {}, not Ethernet (1)", link & 0xffff));
    }
    // Bit 26: bits 31:28 hold the length of the FCS in 16-bit words.
    let fcs = if link & 1 << 26 != 0 { (link >> 28) as usize * 2 } else { 0 };
    let (mut records, mut at) = (Vec::new(), 24);
    while at < bytes.len() {
        let number = records.len() + 1;
        let field = |n: usize| word(at + 4 * n).map(read).ok_or(format!("record {number} is cut"));
        let (seconds, part, held, whole) = (field(0)?, field(1)?, field(2)? as usize, field(3)? as usize);
        if held != whole {
            return Err(format!("record {number} holds {held} of {whole} bytes; capture whole frames"));
        }
        let frame = bytes.get(at + 16..at + 16 + held).ok_or(format!("record {number} is cut"))?;
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(part) * if nano { 1 } else { 1000 };
        records.push(Record { number, time_ns, frame: frame[..held.saturating_sub(fcs)].to_vec() });
        at += 16 + held;
    }
    Ok(records)
}

/// As [`parse`], from a file.
///
/// # Errors
/// A sentence with the file's name.
pub fn read(path: &Path) -> Result<Vec<Record>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a capture with nanoseconds.
pub struct Writer<W: Write>(W);

impl<W: Write> Writer<W> {
    /// Writes the file header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&NANO.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0])?;
        Ok(Writer(out))
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// Those of the output.
    pub fn record(&mut self, time_ns: u64, frame: &[u8]) -> io::Result<()> {
        let length = frame.len() as u32;
        for word in [(time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32, length, length] {
            self.0.write_all(&word.to_le_bytes())?;
        }
        self.0.write_all(frame)?;
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        writer.record(5_000_000_007, b"one").unwrap();
        writer.record(6_000_000_008, b"").unwrap();
        let records = parse(&bytes).unwrap();
        assert_eq!(records[0], Record { number: 1, time_ns: 5_000_000_007, frame: b"one".to_vec() });
        assert_eq!(records.len(), 2);
        for cut in 25..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err() || cut == 24 + 16 + 3, "cut at {cut}");
        }
    }
}
