//! The command line.

use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

pub const USAGE: &str = "usage: rdma-test -a ADDRESS MODE [options]

modes
  -c            write a region, read it back (with -V compare every byte)
  -b -w         bandwidth of WRITE, 8 outstanding
  -b -r         bandwidth of READ
  -b -rw        first the one, then the other
  -B            WRITE and READ at once: both directions of the wire
  --connects N  connect and disconnect N times
  --serve       be the board: offer a region to whoever connects

options
  --by-board    with -b or -B: the board is the requester, in our memory, which is compared (its plugin rdma-bench)
  -p PORT       port (18515, with --by-board 18516)
  -C COUNT      messages (100)
  -S SIZE       bytes of each (4096)
  -V            compare every byte
  --region A:K:L  address, key and length of the board's region, instead of what its REP offers
  --offset N    bytes into the board's region (0)
  --depth N     messages outstanding (8)
  --offer       SEND a record {rkey 4 B, address 8 B} of our region first, so that the board can be requester
  --ack-timeout N  4.096 us x 2^N (the system's default)
  --retries N   retry count, 0 to 7 (7)
  --timeout N   seconds without a completion that are a failure (60)
  --seed N      changes the contents (1)
  --json        the result as JSON on standard output
  --quiet       no progress";

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Check,
    Bandwidth { write: bool, read: bool },
    BothWays,
    Connects(u32),
    Serve,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub address: Ipv4Addr,
    pub port: u16,
    pub mode: Mode,
    pub count: u64,
    pub size: u32,
    pub compare: bool,
    /// Address, key, length.
    pub region: Option<(u64, u32, u32)>,
    pub offset: u64,
    pub depth: u32,
    pub offer: bool,
    pub by_board: bool,
    pub ack_timeout: Option<u8>,
    pub retries: u8,
    pub timeout: Duration,
    pub seed: u64,
    pub json: bool,
    pub quiet: bool,
}

impl Options {
    /// From the words behind the program's name.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut words = words;
        let (mut address, mut port) = (None, None);
        let mut options = Options {
            address: Ipv4Addr::UNSPECIFIED,
            port: 18515,
            mode: Mode::Check,
            count: 100,
            size: 4096,
            compare: false,
            region: None,
            offset: 0,
            depth: 8,
            offer: false,
            by_board: false,
            ack_timeout: None,
            retries: 7,
            timeout: Duration::from_secs(60),
            seed: 1,
            json: false,
            quiet: false,
        };
        let (mut modes, mut write, mut read, mut bandwidth) = (Vec::new(), false, false, false);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "-a" => address = Some(number(&word, &value()?)?),
                "-p" => port = Some(number(&word, &value()?)?),
                "-c" => modes.push(Mode::Check),
                "-b" => bandwidth = true,
                "-w" => write = true,
                "-r" => read = true,
                "-rw" => (write, read) = (true, true),
                "-B" => modes.push(Mode::BothWays),
                "--connects" => modes.push(Mode::Connects(number(&word, &value()?)?)),
                "--serve" => modes.push(Mode::Serve),
                "-C" => options.count = number(&word, &value()?)?,
                "-S" => options.size = number(&word, &value()?)?,
                "-V" => options.compare = true,
                "--region" => options.region = Some(region(&value()?)?),
                "--offset" => options.offset = number(&word, &value()?)?,
                "--depth" => options.depth = number(&word, &value()?)?,
                "--offer" => options.offer = true,
                "--by-board" => options.by_board = true,
                "--ack-timeout" => options.ack_timeout = Some(number(&word, &value()?)?),
                "--retries" => options.retries = number(&word, &value()?)?,
                "--timeout" => options.timeout = Duration::from_secs(number(&word, &value()?)?),
                "--seed" => options.seed = number(&word, &value()?)?,
                "--json" => options.json = true,
                "--quiet" => options.quiet = true,
                _ => return Err(format!("unknown option {word}")),
            }
        }
        if bandwidth {
            if !write && !read {
                return Err("-b wants -w, -r or -rw".to_string());
            }
            modes.push(Mode::Bandwidth { write, read });
        } else if write || read {
            return Err("-w, -r and -rw belong to -b".to_string());
        }
        let [mode] = modes[..] else { return Err(format!("one mode wanted, got {}", modes.len())) };
        options.mode = mode;
        options.port = port.unwrap_or(if options.by_board { 18516 } else { 18515 });
        if options.by_board && !matches!(mode, Mode::Bandwidth { .. } | Mode::BothWays) {
            return Err("--by-board wants -b or -B".to_string());
        }
        options.address = address.or((mode == Mode::Serve).then_some(Ipv4Addr::UNSPECIFIED)).ok_or("-a ADDRESS is missing")?;
        if options.depth == 0 || options.depth > 1024 {
            return Err(format!("--depth {} is not from 1 to 1024", options.depth));
        }
        if options.retries > 7 {
            return Err(format!("--retries {} is not from 0 to 7", options.retries));
        }
        if options.size == 0 || options.size > 1 << 28 {
            return Err(format!("-S {} is not from 1 to {}", options.size, 1 << 28));
        }
        Ok(options)
    }
}

fn region(text: &str) -> Result<(u64, u32, u32), String> {
    let [address, key, length] = text.split(':').collect::<Vec<_>>()[..] else {
        return Err(format!("--region {text}: three numbers wanted"));
    };
    Ok((number("--region", address)?, number("--region", key)?, number("--region", length)?))
}

fn number<T: FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option}: {text:?} is out of place"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(text.split_whitespace().map(str::to_string))
    }

    #[test]
    fn modes() {
        assert_eq!(parse("-a 10.0.0.1 -c -C 5 -S 64 -V").map(|o| (o.mode, o.count, o.size, o.compare)), Ok((Mode::Check, 5, 64, true)));
        assert_eq!(parse("-a 10.0.0.1 -b -rw").map(|o| o.mode), Ok(Mode::Bandwidth { write: true, read: true }));
        assert_eq!(parse("-a 10.0.0.1 -B").map(|o| o.mode), Ok(Mode::BothWays));
        assert_eq!(parse("--serve").map(|o| o.port), Ok(18515));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in [
            "",
            "-c",
            "-a x -c",
            "-a 10.0.0.1",
            "-a 10.0.0.1 -c -B",
            "-a 10.0.0.1 -b",
            "-a 10.0.0.1 -w",
            "-a 10.0.0.1 -c --depth 0",
            "-a 10.0.0.1 -c -S",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
