//! Frames of RoCEv2 over IPv4, from the Ethernet header to the ICRC. FCS and padding to 60 bytes belong to the wire.

mod frame;
mod headers;
pub mod icrc;
mod opcode;

pub(crate) use frame::checksum;
pub use frame::{Frame, Refusal, UDP_PORT};
pub use headers::{Aeth, AtomicEth, Bth, Deth, Extensions, Packet, Reth, Syndrome};
pub use opcode::{Class, Extension, Opcode, Position};

/// Path MTU in bytes of its code in CM and BTH context, 1 to 5.
pub fn mtu_of_code(code: u8) -> Option<u32> {
    (1..=5).contains(&code).then(|| 128 << code)
}

/// The code of a path MTU of 256, 512, 1024, 2048 or 4096 bytes.
pub fn code_of_mtu(mtu: u32) -> Option<u8> {
    (1..=5).find(|&code| mtu_of_code(code) == Some(mtu))
}

/// RNR timer codes 0 to 31 in units of 10 us (Table 45 of the InfiniBand specification, volume 1).
pub const RNR_TIMER_10US: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
    16384, 24576, 32768, 49152,
];
