//! The IP CM header: the first 36 bytes of a REQ's private data in RDMA CM's port spaces.

use std::net::Ipv4Addr;

/// For IPv4; version 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    pub source_port: u16,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
}

impl IpHeader {
    pub const SIZE: usize = 36;

    pub fn encode(&self) -> [u8; 36] {
        let mut data = [0; 36];
        data[1] = 4 << 4;
        data[2..4].copy_from_slice(&self.source_port.to_be_bytes());
        data[16..20].copy_from_slice(&self.source.octets());
        data[32..36].copy_from_slice(&self.destination.octets());
        data
    }

    /// `None` for another version or IPv6.
    pub fn decode(data: &[u8]) -> Option<Self> {
        let address = |at: usize| Ipv4Addr::new(data[at], data[at + 1], data[at + 2], data[at + 3]);
        (data.len() >= 36 && data[0] == 0 && data[1] >> 4 == 4).then(|| IpHeader {
            source_port: u16::from_be_bytes([data[2], data[3]]),
            source: address(16),
            destination: address(32),
        })
    }
}

/// An IPv4 address as a GID, `::ffff:a.b.c.d`.
pub fn gid(address: Ipv4Addr) -> [u8; 16] {
    address.to_ipv6_mapped().octets()
}
