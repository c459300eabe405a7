//! The frames that a pattern is made of: raw bytes, ARP, ICMP echo, UDP.

use std::net::Ipv4Addr;
use std::str::FromStr;

use crate::diag::{Diagnostic, Spanned};
use crate::manifest::read::Table;

/// Addresses of one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub mac: [u8; 6],
    pub ip: Ipv4Addr,
}

/// Both ends: the pattern is `from`, the design is `to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub from: End,
    pub to: End,
}

impl Default for Ends {
    fn default() -> Self {
        let unset = Ipv4Addr::UNSPECIFIED;
        Ends { from: End { mac: [2, 0, 0, 0, 0, 1], ip: unset }, to: End { mac: [0xff; 6], ip: unset } }
    }
}

impl End {
    /// Takes `mac` and `ip` where the table has them.
    pub fn read(&mut self, table: &Table) {
        if let Some(mac) = table.get("mac").and_then(|v| v.string()).and_then(|t| address(table, &t, parse_mac, "02:00:00:00:00:01")) {
            self.mac = mac;
        }
        if let Some(ip) =
            table.get("ip").and_then(|v| v.string()).and_then(|t| address(table, &t, |s| Ipv4Addr::from_str(s).ok(), "192.168.7.1"))
        {
            self.ip = ip;
        }
    }
}

fn address<T>(table: &Table, text: &Spanned<String>, parse: impl Fn(&str) -> Option<T>, example: &str) -> Option<T> {
    let parsed = parse(&text.value);
    if parsed.is_none() {
        table
            .push(Diagnostic::error("GW0730", format!("`{}` is no address", text.value)).at(&text.span).help(format!("such as {example}")));
    }
    parsed
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let parts: Vec<u8> =
        text.split(':').map(|p| if p.len() == 2 { u8::from_str_radix(p, 16).ok() } else { None }).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// Bytes in hexadecimal, with spaces, colons or nothing between them.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().filter(|c| !c.is_whitespace() && *c != ':').map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// What a step sends.
pub(super) enum Template {
    Raw(Vec<u8>),
    Arp { ends: Ends, reply: bool },
    Ping { ends: Ends, id: u16 },
    Udp { ends: Ends, src_port: u16, dst_port: u16, checksum: bool },
}

const KINDS: [&str; 4] = ["hex", "arp", "ping", "udp"];

impl Template {
    /// The one template of a step.
    pub fn read(table: &Table, name: &Spanned<String>, ends: &Ends) -> Option<Template> {
        let mut found = Vec::new();
        for kind in KINDS {
            if let Some(value) = table.get(kind) {
                found.push((kind, value));
            }
        }
        let [(kind, value)] = found.as_slice() else {
            let message =
                format!("step `{}` has {} of hex, arp, ping and udp", name.value, if found.is_empty() { "none" } else { "several" });
            table.push(Diagnostic::error("GW0730", message).at(&name.span).help("each step sends one kind of frame"));
            return None;
        };
        if *kind == "hex" {
            let text = value.string()?;
            let bytes = hex(&text.value);
            if bytes.is_none() {
                let message = format!("`{}` is not a whole number of bytes in hexadecimal", text.value);
                table.push(Diagnostic::error("GW0730", message).at(&text.span));
            }
            return bytes.map(Template::Raw);
        }
        let inner = value.table()?;
        let mut ends = *ends;
        for (key, end) in [("from", &mut ends.from), ("to", &mut ends.to)] {
            if let Some(t) = inner.get(key).and_then(|v| v.table()) {
                end.read(&t);
                t.finish();
            }
        }
        let word = |key: &str, default: u16| {
            inner.get(key).map_or(Some(default), |v| v.unsigned(0..=65535).map(|n| u16::try_from(n.value).unwrap_or(default)))
        };
        let flag = |key: &str, default: bool| inner.get(key).map_or(Some(default), |v| v.boolean().map(|b| b.value));
        let template = match *kind {
            "arp" => flag("reply", false).map(|reply| Template::Arp { ends, reply }),
            "ping" => word("id", 1).map(|id| Template::Ping { ends, id }),
            _ => match (word("src-port", 40000), word("dst-port", 7), flag("checksum", true)) {
                (Some(src_port), Some(dst_port), Some(checksum)) => Some(Template::Udp { ends, src_port, dst_port, checksum }),
                _ => None,
            },
        };
        inner.finish();
        template
    }

    /// The frame without padding and FCS. `length` is the number of payload bytes (of all bytes where the template is
    /// raw); `number` is IPv4's identification, the sequence number, and what the payload starts with.
    pub fn build(&self, length: Option<u64>, number: u64) -> Vec<u8> {
        let size = |default: usize| length.map_or(default, |l| usize::try_from(l).unwrap_or(default));
        let payload = |n: usize| (0..n).map(|i| (i as u64).wrapping_add(number) as u8);
        let serial = (number as u16).to_be_bytes();
        match self {
            Template::Raw(bytes) => {
                let mut frame = bytes.clone();
                let want = size(frame.len());
                frame.truncate(want);
                let have = frame.len();
                frame.extend(payload(want).skip(have));
                frame
            }
            Template::Arp { ends, reply } => {
                let mut frame = head(ends, !reply, 0x0806);
                frame.extend([0, 1, 8, 0, 6, 4, 0, if *reply { 2 } else { 1 }]);
                frame.extend(ends.from.mac);
                frame.extend(ends.from.ip.octets());
                frame.extend(if *reply { ends.to.mac } else { [0; 6] });
                frame.extend(ends.to.ip.octets());
                frame
            }
            Template::Ping { ends, id } => {
                let mut icmp = vec![8, 0, 0, 0];
                icmp.extend(id.to_be_bytes());
                icmp.extend(serial);
                icmp.extend(payload(size(56)));
                let sum = checksum(&[&icmp]);
                icmp[2..4].copy_from_slice(&sum.to_be_bytes());
                ipv4(ends, 1, serial, &icmp)
            }
            Template::Udp { ends, src_port, dst_port, checksum: wanted } => {
                let n = size(18);
                let mut udp = Vec::with_capacity(8 + n);
                udp.extend(src_port.to_be_bytes());
                udp.extend(dst_port.to_be_bytes());
                udp.extend(((8 + n) as u16).to_be_bytes());
                udp.extend([0, 0]);
                udp.extend(payload(n));
                if *wanted {
                    let mut pseudo = Vec::from(ends.from.ip.octets());
                    pseudo.extend(ends.to.ip.octets());
                    pseudo.extend([0, 17]);
                    pseudo.extend(((8 + n) as u16).to_be_bytes());
                    let sum = match checksum(&[&pseudo, &udp]) {
                        0 => 0xffff, // RFC 768: 0 would say that there is none
                        sum => sum,
                    };
                    udp[6..8].copy_from_slice(&sum.to_be_bytes());
                }
                ipv4(ends, 17, serial, &udp)
            }
        }
    }
}

fn head(ends: &Ends, broadcast: bool, kind: u16) -> Vec<u8> {
    let mut frame = Vec::from(if broadcast { [0xff; 6] } else { ends.to.mac });
    frame.extend(ends.from.mac);
    frame.extend(kind.to_be_bytes());
    frame
}

fn ipv4(ends: &Ends, protocol: u8, id: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend(((20 + payload.len()) as u16).to_be_bytes());
    ip.extend(id);
    ip.extend([0x40, 0, 64, protocol, 0, 0]);
    ip.extend(ends.from.ip.octets());
    ip.extend(ends.to.ip.octets());
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = head(ends, false, 0x0800);
    frame.extend(ip);
    frame.extend(payload);
    frame
}

/// The Internet checksum over parts, each but the last of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u64::from(*b));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
