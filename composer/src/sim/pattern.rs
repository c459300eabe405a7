//! Pattern files: frames that a socket cannot send. Parsed with places kept, expanded to the records that the harness plays.

use std::path::{Path, PathBuf};

use super::packet::{Ends, Template};
use crate::diag::{Diagnostic, Diagnostics, Spanned};
use crate::manifest::read::{Doc, Table, Value};

/// Most frames that one file may expand to.
const MOST_FRAMES: u64 = 4_000_000;
/// Most bytes of records.
const MOST_BYTES: u64 = 4 << 30;
/// Longest frame that may be asked for, FCS not counted.
const LONGEST: u64 = 65_531;

/// A pattern, ready to be played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Records, little endian: u32 length, u32 repetitions, u64 earliest time in fs, u32 preamble bytes, u32 gap bytes, i64 byte
    /// with rx_er (-1 = none), u8 SFD, 3 bytes 0, and the frame's bytes, FCS included.
    pub events: Vec<u8>,
    /// Frames in it.
    pub frames: u64,
    /// Capture file for what comes back; beside the pattern file unless it is absolute.
    pub out: Option<PathBuf>,
}

/// Values of a length or a cut, one frame after the other.
enum Sequence {
    Fixed(u64),
    Sweep { from: u64, to: u64, step: u64 },
    Random { from: u64, to: u64, seed: u64 },
}

impl Sequence {
    /// Frames that show every value once.
    fn natural_count(&self) -> u64 {
        match self {
            Sequence::Sweep { from, to, step } => (to - from) / step + 1,
            _ => 1,
        }
    }

    fn value(&self, index: u64) -> u64 {
        match self {
            Sequence::Fixed(n) => *n,
            Sequence::Sweep { from, step, .. } => from + step * (index % self.natural_count()),
            Sequence::Random { from, to, seed } => {
                from + mix(seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))) % (to - from + 1)
            }
        }
    }
}

/// SplitMix64's finalizer: every seed and index give a well mixed number, with no state to carry.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Reads a pattern file and expands it.
///
/// # Errors
/// `GW0730` for what is no frame, those of [`crate::manifest::read`], each with its place.
pub fn expand(path: &Path) -> Result<Pattern, Diagnostics> {
    let doc = Doc::open(path)?;
    let pattern = read(&doc, path);
    doc.finish().finish(pattern).map(|(pattern, _)| pattern)
}

fn read(doc: &Doc, path: &Path) -> Pattern {
    let root = doc.root();
    let mut pattern = Pattern::default();
    if let Some(v) = root.need("schema") {
        v.unsigned(1..=1);
    }
    if let Some(out) = root.get("out").and_then(|v| v.string()) {
        pattern.out = Some(path.parent().unwrap_or(Path::new("")).join(&out.value));
    }
    let mut ends = Ends::default();
    for (key, end) in [("from", &mut ends.from), ("to", &mut ends.to)] {
        let Some(table) = root.get(key).and_then(|v| v.table()) else { continue };
        end.read(&table);
        table.finish();
    }
    if let Some(steps) = root.need("step").and_then(|v| v.table()) {
        let mut number = 0;
        for (name, value) in steps.entries() {
            let Some(table) = value.table() else { continue };
            step(&table, &name, &ends, &mut pattern, &mut number);
            table.finish();
        }
    }
    root.finish();
    pattern
}

/// Expands one step. `number` counts frames over the whole file: it becomes IPv4's identification and varies the payload.
fn step(table: &Table, name: &Spanned<String>, ends: &Ends, pattern: &mut Pattern, number: &mut u64) {
    let template = Template::read(table, name, ends);
    let length = table.get("length").and_then(|v| sequence(&v, 0..=LONGEST));
    let cut = table.get("cut").and_then(|v| sequence(&v, 0..=LONGEST + 4));
    let natural = length.iter().chain(&cut).map(Sequence::natural_count).max().unwrap_or(1);
    let small = |key: &str, most: u64, default: u64| table.get(key).map_or(Some(default), |v| v.unsigned(0..=most).map(|n| n.value));
    let count = table.get("count").map_or(Some(natural), |v| v.unsigned(1..=MOST_FRAMES).map(|n| n.value));
    let preamble = small("preamble", 1000, 7);
    let gap = small("gap", 1_000_000, 12);
    let sfd = small("sfd", 255, 0xd5);
    let error_at = table.get("rx-er-at").and_then(|v| v.unsigned(0..=LONGEST + 3)).map_or(-1, |n| n.value as i64);
    let at = table.get("at").and_then(|v| v.string()).and_then(|text| match super::time::parse(&text.value) {
        Ok(fs) => Some(fs),
        Err(d) => {
            table.push(d.at(&text.span));
            None
        }
    });
    let pad = table.get("pad").and_then(|v| v.boolean()).is_none_or(|b| b.value);
    let wrong_fcs = table.get("fcs").and_then(|v| v.string()).is_some_and(|text| match text.value.as_str() {
        "good" => false,
        "wrong" => true,
        other => {
            table.push(Diagnostic::error("GW0730", format!("`fcs` is `{other}`")).at(&text.span).nearest(other, ["good", "wrong"]));
            false
        }
    });
    let patches = table.get("patch").and_then(|v| v.strings()).unwrap_or_default();
    let patches: Vec<_> = patches.iter().filter_map(|text| patch(table, text)).collect();
    let (Some(template), Some(count), Some(preamble), Some(gap), Some(sfd)) = (template, count, preamble, gap, sfd) else { return };
    for index in 0..count {
        let mut bytes = template.build(length.as_ref().map(|l| l.value(index)), *number);
        for (offset, new, span) in &patches {
            let Some(place) = bytes.get_mut(*offset..*offset + new.len()) else {
                let message = format!("byte {} of a frame of {} bytes cannot be patched", offset + new.len() - 1, bytes.len());
                table.push(Diagnostic::error("GW0730", message).at(span));
                return;
            };
            place.copy_from_slice(new);
        }
        if pad && bytes.len() < 60 {
            bytes.resize(60, 0);
        }
        let fcs = crc32(&bytes) ^ u32::from(wrong_fcs);
        bytes.extend(fcs.to_le_bytes());
        if let Some(cut) = &cut {
            bytes.truncate(usize::try_from(cut.value(index)).unwrap_or(usize::MAX));
        }
        *number += 1;
        pattern.frames += 1;
        if pattern.frames > MOST_FRAMES || (pattern.events.len() + bytes.len()) as u64 > MOST_BYTES {
            let message = format!("the pattern has more than {MOST_FRAMES} frames or {MOST_BYTES} bytes");
            table.push(Diagnostic::error("GW0730", message).at(&name.span));
            return;
        }
        let events = &mut pattern.events;
        events.extend((bytes.len() as u32).to_le_bytes());
        events.extend(1u32.to_le_bytes());
        events.extend(at.filter(|_| index == 0).unwrap_or(0).to_le_bytes());
        events.extend((preamble as u32).to_le_bytes());
        events.extend((gap as u32).to_le_bytes());
        events.extend(error_at.to_le_bytes());
        events.extend([sfd as u8, 0, 0, 0]);
        events.extend(bytes);
    }
}

/// `5`, `{ from = 0, to = 1472, step = 1 }` or `{ random = [0, 1472], seed = 1 }`.
fn sequence(value: &Value, range: std::ops::RangeInclusive<u64>) -> Option<Sequence> {
    if value.item.is_integer() {
        return value.unsigned(range).map(|n| Sequence::Fixed(n.value));
    }
    let table = value.table()?;
    let result = if let Some(random) = table.get("random") {
        let bounds: Option<Vec<u64>> = random.to_json().as_array().and_then(|a| a.iter().map(serde_json::Value::as_u64).collect());
        let seed = table.get("seed").map_or(Some(1), |v| v.unsigned(0..=i64::MAX as u64).map(|n| n.value));
        match (bounds.as_deref(), seed) {
            (Some([from, to]), Some(seed)) if from <= to && range.contains(from) && range.contains(to) => {
                Some(Sequence::Random { from: *from, to: *to, seed })
            }
            _ => {
                let message = format!("`{}` is not the least and the greatest of {} to {}", random.name, range.start(), range.end());
                random.push(Diagnostic::error("GW0730", message).at(&random.span).help("random = [0, 1472]"));
                None
            }
        }
    } else {
        let from = table.need("from").and_then(|v| v.unsigned(range.clone()));
        let to = table.need("to").and_then(|v| v.unsigned(range.clone()));
        let step = table.get("step").map_or(Some(1), |v| v.unsigned(1..=*range.end()).map(|n| n.value));
        match (from, to, step) {
            (Some(from), Some(to), Some(step)) if from.value <= to.value => Some(Sequence::Sweep { from: from.value, to: to.value, step }),
            (Some(_), Some(to), Some(_)) => {
                table.push(Diagnostic::error("GW0730", format!("`{}` ends before it starts", table.name())).at(&to.span));
                None
            }
            _ => None,
        }
    };
    table.finish();
    result
}

/// `"OFFSET=HEX"`: bytes that replace those of the frame from an offset (decimal).
fn patch(table: &Table, text: &Spanned<String>) -> Option<(usize, Vec<u8>, crate::diag::Span)> {
    let parsed = text.value.split_once('=').and_then(|(offset, new)| {
        let offset = offset.trim().parse::<u16>().ok()?;
        let new = super::packet::hex(new).filter(|b| !b.is_empty())?;
        Some((usize::from(offset), new, text.span.clone()))
    });
    if parsed.is_none() {
        let message = format!("`{}` is no patch", text.value);
        table.push(Diagnostic::error("GW0730", message).at(&text.span).help("\"OFFSET=HEX\", such as \"14=46\""));
    }
    parsed
}

/// Ethernet's FCS, lowest byte first on the wire.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pattern, Vec<(String, String, (usize, usize))>> {
        let doc = Doc::parse(Path::new("p.toml"), text.to_owned()).map_err(|d| spots(&d))?;
        let pattern = read(&doc, Path::new("p.toml"));
        doc.finish().finish(pattern).map(|(p, _)| p).map_err(|d| spots(&d))
    }

    fn spots(diagnostics: &Diagnostics) -> Vec<(String, String, (usize, usize))> {
        let place = |d: &Diagnostic| d.span.as_ref().map_or((0, 0), crate::diag::Span::start);
        diagnostics
            .0
            .iter()
            .map(|d| (d.code.to_owned(), format!("{} ({})", d.message, d.help.as_deref().unwrap_or("")), place(d)))
            .collect()
    }

    fn frames(pattern: &Pattern) -> Vec<Vec<u8>> {
        let mut list = Vec::new();
        let mut rest = pattern.events.as_slice();
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
            list.push(rest[36..36 + length].to_vec());
            rest = &rest[36 + length..];
        }
        list
    }

    const ENDS: &str =
        "schema = 1\n[from]\nmac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1\"\n[to]\nmac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2\"\n";

    #[test]
    fn udp_sweep_has_every_length_and_right_checksums() {
        let p = parse(&format!("{ENDS}[step.a]\nudp = {{ src-port = 1, dst-port = 7 }}\nlength = {{ from = 0, to = 1472 }}\n")).unwrap();
        let list = frames(&p);
        assert_eq!((p.frames, list.len()), (1473, 1473));
        for (n, f) in list.iter().enumerate() {
            assert_eq!(f.len(), (42 + n).max(60) + 4);
            assert_eq!(crc32(&f[..f.len() - 4]).to_le_bytes(), f[f.len() - 4..]);
            let sum = |bytes: &[u8], start: u32| {
                let mut s = bytes.chunks(2).fold(start, |s, c| s + u32::from(c[0]) * 256 + c.get(1).map_or(0, |b| u32::from(*b)));
                while s > 0xffff {
                    s = (s & 0xffff) + (s >> 16);
                }
                s
            };
            assert_eq!(sum(&f[14..34], 0), 0xffff, "IPv4 header of length {n}");
            let udp = &f[34..42 + n];
            assert_eq!(sum(udp, sum(&f[26..34], 17 + udp.len() as u32)), 0xffff, "UDP of length {n}");
        }
    }

    #[test]
    fn cuts_and_faults_are_as_asked() {
        let p = parse(&format!(
            "{ENDS}[step.a]\nping = {{}}\nlength = 10\ncut = {{ from = 1, to = 63 }}\n[step.b]\nhex = \"01 02\"\npad = false\nfcs = \"wrong\"\n"
        ))
        .unwrap();
        let list = frames(&p);
        assert_eq!(list.len(), 64);
        assert!(list[..63].iter().enumerate().all(|(i, f)| f.len() == i + 1));
        assert_eq!(list[63][..2], [1, 2]);
        assert_ne!(list[63][2..], crc32(&[1, 2]).to_le_bytes());
    }

    #[test]
    fn random_lengths_repeat_with_their_seed() {
        let text = |seed: u32| format!("{ENDS}[step.a]\nudp = {{}}\ncount = 500\nlength = {{ random = [0, 1472], seed = {seed} }}\n");
        assert_eq!(parse(&text(5)).unwrap(), parse(&text(5)).unwrap());
        assert_ne!(parse(&text(5)).unwrap(), parse(&text(6)).unwrap());
    }

    #[test]
    fn errors_have_their_places_and_come_all_at_once() {
        let found = parse(&format!(
            "{ENDS}[step.a]\nupd = {{}}\n[step.b]\nhex = \"0g\"\n[step.c]\nudp = {{ dst-prot = 7 }}\nfcs = \"worng\"\n[step.d]\narp = {{}}\nlength = {{ from = 5, to = 4 }}\n"
        ))
        .unwrap_err();
        let has = |code: &str, text: &str, line: usize| found.iter().any(|f| f.0 == code && f.1.contains(text) && f.2.0 == line);
        assert!(has("GW0104", "unknown key `upd` in `step.a` (did you mean `udp`?)", 9), "{found:?}");
        assert!(has("GW0730", "no frame", 8) || has("GW0730", "step `a`", 8), "{found:?}");
        assert!(has("GW0730", "`0g`", 11), "{found:?}");
        assert!(has("GW0104", "dst-prot", 13), "{found:?}");
        assert!(has("GW0730", "(did you mean `wrong`?)", 14), "{found:?}");
        assert!(has("GW0730", "ends before it starts", 17), "{found:?}");
    }
}
