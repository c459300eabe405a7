//! The command line.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

pub const USAGE: &str = "usage: udp-check ADDRESS PORT [--lengths A..=B] [--window N] [--timeout SECONDS] [--seed N]";

/// Longest UDP payload over IPv4: 65535 less 20 bytes of IP and 8 of UDP.
const LONGEST: usize = 65507;

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub address: IpAddr,
    pub port: u16,
    /// Payload lengths in bytes, each sent once.
    pub lengths: RangeInclusive<usize>,
    /// Datagrams under way at a time.
    pub window: usize,
    /// Silence after which what is under way counts as lost.
    pub timeout: Duration,
    /// Changes the contents.
    pub seed: u64,
}

impl Options {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut arguments = arguments;
        let mut places = Vec::new();
        let (mut lengths, mut window, mut timeout, mut seed) = (0..=1472, 8, 10, 1);
        while let Some(argument) = arguments.next() {
            let Some(option) = argument.strip_prefix("--") else {
                places.push(argument);
                continue;
            };
            let value = arguments.next().ok_or(format!("--{option} needs a value"))?;
            match option {
                "lengths" => lengths = range(&value)?,
                "window" => window = number(option, &value)?,
                "timeout" => timeout = number(option, &value)?,
                "seed" => seed = number(option, &value)?,
                _ => return Err(format!("unknown option --{option}")),
            }
        }
        let [address, port] = places.as_slice() else { return Err(format!("two places wanted, got {}", places.len())) };
        if window == 0 {
            return Err("--window 0 sends nothing".to_string());
        }
        let (address, port) = (number("ADDRESS", address)?, number("PORT", port)?);
        Ok(Options { address, port, lengths, window, timeout: Duration::from_secs(timeout), seed })
    }
}

fn number<T: FromStr>(what: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{what}: {text:?} is out of place"))
}

/// `A..=B`, or one length.
fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once("..=").unwrap_or((text, text));
    let (first, last) = (number("--lengths", first)?, number("--lengths", last)?);
    if first > last || last > LONGEST {
        return Err(format!("--lengths {text}: wants A..=B with A <= B <= {LONGEST}"));
    }
    Ok(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn places_and_options_in_any_order() {
        let options = parse("192.168.7.2 --lengths 3..=9 7 --window 2 --seed 5 --timeout 1").unwrap();
        assert_eq!((options.lengths, options.window, options.port, options.seed), (3..=9, 2, 7, 5));
        assert_eq!(parse("::1 7").unwrap().lengths, 0..=1472);
        assert_eq!(parse("::1 7 --lengths 12").unwrap().lengths, 12..=12);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for line in [
            "",
            "::1",
            "::1 7 8",
            "::1 x",
            "::1 7 --lengths 9..=3",
            "::1 7 --lengths 0..=65508",
            "::1 7 --window 0",
            "::1 7 --x 1",
            "::1 7 --seed",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
