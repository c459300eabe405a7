//! Simulated times as users write them.

use crate::diag::Diagnostic;

const UNITS: [(&str, u64); 6] =
    [("fs", 1), ("ps", 1_000), ("ns", 1_000_000), ("us", 1_000_000_000), ("ms", 1_000_000_000_000), ("s", 1_000_000_000_000_000)];
/// Five hours; 64 bits of femtoseconds hold 5.1.
const LONGEST_FS: u64 = 18_000_000_000_000_000_000;

/// Femtoseconds of a time such as `10us`, `1.5ms` or `2 s`.
///
/// # Errors
/// `GW0706` if it is no time, or is longer than five hours.
pub fn parse(text: &str) -> Result<u64, Diagnostic> {
    let wrong =
        |why: &str| Diagnostic::error("GW0706", format!("`{text}` {why}")).help("a number with fs, ps, ns, us, ms or s, such as 1.5ms");
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (number, unit) = (number.trim(), unit.trim());
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|u| u.1).ok_or_else(|| wrong("is no time"))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || number.ends_with('.') {
        return Err(wrong("is no time"));
    }
    let mut fs = whole.parse::<u128>().ok().and_then(|w| w.checked_mul(u128::from(scale))).ok_or_else(|| wrong("is too long"))?;
    let mut place = u128::from(scale);
    for digit in part.bytes() {
        place /= 10;
        fs += u128::from(digit - b'0') * place;
    }
    u64::try_from(fs).ok().filter(|fs| *fs <= LONGEST_FS).ok_or_else(|| wrong("is longer than five hours"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn times() {
        for (text, fs) in
            [("10us", 10_000_000_000), ("1.5ms", 1_500_000_000_000), ("2 s", 2_000_000_000_000_000), ("0.5ps", 500), ("0ns", 0)]
        {
            assert_eq!(parse(text).ok(), Some(fs), "{text}");
        }
        for text in
            ["", "10", "us", "-1us", "1.us", ".5us", "1e3us", "10 minutes", "6000000s", "99999999999999999999999999999999999999999s", "1ü"]
        {
            assert_eq!(parse(text).err().map(|d| d.code), Some("GW0706"), "{text}");
        }
    }
}
