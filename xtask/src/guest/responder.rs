//! The gateware's behaviour in a few lines of Rust: ARP, ICMP echo and UDP echo on a unix datagram socket.
//!
//! A guest that passes its checks against this and fails against a simulation has found a fault of the gateware; one that fails
//! here has found a fault of the guest or of the test. Nothing is shared with the gateware, and every checksum is computed anew.

use anyhow::{Context, Result};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Who answers.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    pub mac: [u8; 6],
    pub ip: Ipv4Addr,
    /// The UDP port that is echoed.
    pub port: u16,
}

/// What came and what was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub arp: u64,
    pub icmp: u64,
    pub udp: u64,
    pub ignored: u64,
}

/// A responder thread; it ends when this is dropped.
pub struct Responder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counts>>,
    local: PathBuf,
}

impl Responder {
    /// Binds `local` and answers to `remote`.
    pub fn start(station: Station, local: &Path, remote: &Path) -> Result<Responder> {
        std::fs::remove_file(local).ok();
        let socket = UnixDatagram::bind(local).with_context(|| format!("binding {}", local.display()))?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, remote) = (stop.clone(), remote.to_path_buf());
        let thread = std::thread::spawn(move || {
            let mut counts = Counts::default();
            let mut buffer = vec![0; 65536];
            while !stopped.load(Ordering::Relaxed) {
                let Ok(length) = socket.recv(&mut buffer) else { continue };
                if let Some(reply) = station.answer(&buffer[..length], &mut counts) {
                    // An absent guest is no link; a full queue blocks, as it should.
                    socket.send_to(&reply, &remote).ok();
                }
            }
            counts
        });
        Ok(Responder { stop, thread: Some(thread), local: local.to_path_buf() })
    }

    /// Ends the thread.
    pub fn stop(mut self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        std::fs::remove_file(&self.local).ok();
    }
}

const ETHERNET: usize = 14;
const ARP: [u8; 2] = [8, 6];
const IPV4: [u8; 2] = [8, 0];

impl Station {
    /// The reply to a frame, if it gets one.
    pub fn answer(&self, frame: &[u8], counts: &mut Counts) -> Option<Vec<u8>> {
        let reply = self.arp(frame, counts).or_else(|| self.ipv4(frame, counts));
        counts.ignored += u64::from(reply.is_none());
        reply
    }

    fn arp(&self, frame: &[u8], counts: &mut Counts) -> Option<Vec<u8>> {
        let packet = frame.get(ETHERNET..ETHERNET + 28)?;
        // Ethernet, IPv4, request, for us.
        let request = frame[12..14] == ARP && packet[..8] == [0, 1, 8, 0, 6, 4, 0, 1] && packet[24..28] == self.ip.octets();
        if !request {
            return None;
        }
        let mut reply = self.header(frame, ARP);
        reply.extend([0, 1, 8, 0, 6, 4, 0, 2]);
        reply.extend(self.mac);
        reply.extend(self.ip.octets());
        reply.extend(&packet[8..18]);
        counts.arp += 1;
        Some(reply)
    }

    fn ipv4(&self, frame: &[u8], counts: &mut Counts) -> Option<Vec<u8>> {
        let header = frame.get(ETHERNET..ETHERNET + 20)?;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        let for_us = frame[..6] == self.mac && frame[12..14] == IPV4 && header[0] == 0x45 && header[16..20] == self.ip.octets();
        if !for_us || fragment != 0 || sum(header, 0) != 0 {
            return None;
        }
        let body = frame.get(ETHERNET + 20..ETHERNET + total)?;
        let (answer, counter) = match header[9] {
            1 => (icmp(body)?, &mut counts.icmp),
            17 => (self.udp(header, body)?, &mut counts.udp),
            _ => return None,
        };
        *counter += 1;
        let mut reply = self.header(frame, IPV4);
        let mut ip = [0x45, 0, header[2], header[3], 0, 0, 0x40, 0, 64, header[9], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        ip[12..16].copy_from_slice(&header[16..20]);
        ip[16..20].copy_from_slice(&header[12..16]);
        let checksum = sum(&ip, 0).to_be_bytes();
        ip[10..12].copy_from_slice(&checksum);
        reply.extend(ip);
        reply.extend(answer);
        Some(reply)
    }

    fn udp(&self, header: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let length = usize::from(u16::from_be_bytes([*body.get(4)?, *body.get(5)?]));
        let right = body.len() == length && length >= 8 && u16::from_be_bytes([body[2], body[3]]) == self.port;
        // The pseudo header: addresses, protocol, length.
        let seed = partial(&header[12..20]) + 17 + length as u32;
        if !right || (body[6..8] != [0, 0] && sum(body, seed) != 0) {
            return None;
        }
        let mut reply = [&body[2..4], &body[0..2], &body[4..6], &[0, 0], &body[8..]].concat();
        let checksum = match sum(&reply, seed) {
            0 => 0xffff,
            checksum => checksum,
        };
        reply[6..8].copy_from_slice(&checksum.to_be_bytes());
        Some(reply)
    }

    fn header(&self, frame: &[u8], kind: [u8; 2]) -> Vec<u8> {
        [&frame[6..12], &self.mac, &kind].concat()
    }
}

fn icmp(body: &[u8]) -> Option<Vec<u8>> {
    // Echo request, code 0.
    if body.get(..2)? != [8, 0] || body.len() < 8 || sum(body, 0) != 0 {
        return None;
    }
    let mut reply = [&[0, 0, 0, 0], &body[4..]].concat();
    let checksum = sum(&reply, 0).to_be_bytes();
    reply[2..4].copy_from_slice(&checksum);
    Some(reply)
}

/// 16-bit words of `bytes` added up, an odd last byte padded with zero.
fn partial(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

/// The Internet checksum (RFC 1071) of `bytes` on top of `seed`: 0 over data that carries a right one.
fn sum(bytes: &[u8], seed: u32) -> u16 {
    let mut total = partial(bytes) + seed;
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: Station = Station { mac: [2, 0x47, 0x57, 0, 0, 1], ip: Ipv4Addr::new(192, 168, 7, 2), port: 7 };

    /// The example of RFC 1071, section 3.
    #[test]
    fn checksum_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), !0xddf2);
    }

    fn udp_frame(payload: &[u8], checksum: bool) -> Vec<u8> {
        let mut frame = [&STATION.mac[..], &[2, 0, 0, 0, 0, 9], &IPV4].concat();
        let total = 28 + payload.len() as u16;
        let mut ip = [&[0x45, 0][..], &total.to_be_bytes(), &[0, 7, 0x40, 0, 64, 17, 0, 0, 192, 168, 7, 1, 192, 168, 7, 2]].concat();
        let word = sum(&ip, 0).to_be_bytes();
        ip[10..12].copy_from_slice(&word);
        let length = 8 + payload.len() as u16;
        let mut udp = [&[0x12, 0x34, 0, 7][..], &length.to_be_bytes(), &[0, 0], payload].concat();
        if checksum {
            let word = sum(&udp, partial(&ip[12..20]) + 17 + u32::from(length)).to_be_bytes();
            udp[6..8].copy_from_slice(&word);
        }
        frame.extend(ip);
        frame.extend(udp);
        frame
    }

    #[test]
    fn udp_is_echoed_with_and_without_checksum_and_padding() {
        for length in 0..64 {
            let payload = (0..length).collect::<Vec<u8>>();
            for checksum in [false, true] {
                let mut counts = Counts::default();
                let mut frame = udp_frame(&payload, checksum);
                frame.resize(frame.len().max(60), 0xaa);
                let reply = STATION.answer(&frame, &mut counts).expect("an answer");
                assert_eq!(counts, Counts { udp: 1, ..Counts::default() });
                assert_eq!(reply[..6], [2, 0, 0, 0, 0, 9]);
                assert_eq!(reply[34..38], [0, 7, 0x12, 0x34]);
                assert_eq!(reply[42..], payload);
                assert_eq!(sum(&reply[14..34], 0), 0);
                assert_eq!(sum(&reply[34..], partial(&reply[26..34]) + 17 + 8 + u32::from(length)), 0);
            }
        }
    }

    #[test]
    fn a_wrong_bit_or_a_short_frame_gets_no_answer() {
        let frame = udp_frame(b"payload", true);
        // From the IP addresses on, every bit is covered by a checksum or decides for whom the frame is.
        for bit in 26 * 8..frame.len() * 8 {
            let mut wrong = frame.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(STATION.answer(&wrong, &mut Counts::default()), None, "bit {bit}");
        }
        for length in 0..frame.len() {
            assert_eq!(STATION.answer(&frame[..length], &mut Counts::default()), None, "length {length}");
        }
    }
}
