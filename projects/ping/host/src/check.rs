//! Sending, receiving, comparing.

use crate::options::Options;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

/// What came of a run. Every datagram sent is either `received`, `wrong` or `lost`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub sent: u64,
    /// Came back as sent.
    pub received: u64,
    /// Came back with another content.
    pub wrong: u64,
    pub lost: u64,
    /// Of a length that was not under way: duplicates, cut or padded ones.
    pub unexpected: u64,
    /// Payload bytes received right.
    pub bytes: u64,
    pub elapsed: Duration,
    /// The first lengths that were lost or wrong.
    pub bad: Vec<usize>,
}

impl Report {
    pub fn passed(&self) -> bool {
        self.received == self.sent && self.unexpected == 0
    }

    pub fn sentence(&self) -> String {
        let verdict = if self.passed() { "no loss" } else { "FAILED" };
        let bad = if self.bad.is_empty() { String::new() } else { format!(", first bad lengths {:?}", self.bad) };
        let seconds = self.elapsed.as_secs_f64();
        format!("UDP echo: {} of {} datagrams came back right in {seconds:.2} s: {verdict}{bad}", self.received, self.sent)
    }

    fn bad(&mut self, length: usize) {
        if self.bad.len() < 8 {
            self.bad.push(length);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { sent, received, wrong, lost, unexpected, bytes, elapsed, .. } = self;
        write!(out, "sent={sent} received={received} wrong={wrong} lost={lost} unexpected={unexpected} bytes={bytes} ")?;
        write!(out, "seconds={:.3}", elapsed.as_secs_f64())
    }
}

pub fn run(options: &Options) -> io::Result<Report> {
    let any = match options.address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((options.address, options.port))?;
    socket.set_read_timeout(Some(options.timeout.max(Duration::from_millis(1))))?;
    let start = Instant::now();
    let mut report = Report::default();
    let mut lengths = options.lengths.clone();
    // Each length is sent once, so the length of an echo says which one it answers.
    let mut under_way = BTreeSet::new();
    let mut buffer = vec![0; 65536];
    loop {
        while under_way.len() < options.window
            && let Some(length) = lengths.next()
        {
            socket.send(&content(options.seed, length))?;
            report.sent += 1;
            under_way.insert(length);
        }
        if under_way.is_empty() {
            break;
        }
        match socket.recv(&mut buffer) {
            Ok(length) if !under_way.remove(&length) => report.unexpected += 1,
            Ok(length) if buffer[..length] == content(options.seed, length) => {
                report.received += 1;
                report.bytes += length as u64;
            }
            Ok(length) => {
                report.wrong += 1;
                report.bad(length);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                for length in std::mem::take(&mut under_way) {
                    report.lost += 1;
                    report.bad(length);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    report.elapsed = start.elapsed();
    Ok(report)
}

/// Bytes that depend on seed and length in every place (xorshift64* of Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled", 2016), so that no shift, swap or mix of two datagrams passes for a right one.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = (seed << 20 ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut step = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..length).map(|_| step()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// An echo service that treats some datagrams badly.
    fn against(treat: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Report {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(address) = server.local_addr().unwrap() else { panic!("not IPv4") };
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, from)) = server.recv_from(&mut buffer) {
                for answer in treat(&buffer[..length]) {
                    server.send_to(&answer, from).unwrap();
                }
            }
        });
        let (address, port) = (IpAddr::V4(*address.ip()), address.port());
        run(&Options { address, port, lengths: 0..=99, window: 4, timeout: Duration::from_millis(300), seed: 1 }).unwrap()
    }

    #[test]
    fn a_good_echo_passes() {
        let report = against(|data| vec![data.to_vec()]);
        assert!(report.passed());
        assert_eq!((report.sent, report.received, report.bytes), (100, 100, (0..100).sum()));
    }

    #[test]
    fn loss_is_counted() {
        let report = against(|data| if data.len() == 50 { vec![] } else { vec![data.to_vec()] });
        assert_eq!((report.sent, report.lost, report.received, report.bad.as_slice()), (100, 1, 99, &[50][..]));
        assert!(!report.passed());
    }

    #[test]
    fn a_wrong_last_byte_is_seen() {
        let report = against(|data| {
            let mut data = data.to_vec();
            if data.len() == 33 {
                data[32] ^= 1;
            }
            vec![data]
        });
        assert_eq!((report.wrong, report.received, report.bad.as_slice()), (1, 99, &[33][..]));
    }

    #[test]
    fn duplicates_are_seen() {
        let report = against(|data| vec![data.to_vec(); 1 + usize::from(data.len() == 10)]);
        assert_eq!((report.received, report.unexpected), (100, 1));
        assert!(!report.passed());
    }
}
