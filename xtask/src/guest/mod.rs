//! A Linux guest: the stranger that talks to the gateware through a simulation.
//!
//! Made from Debian's packages without root ([`packages`], [`modules`], [`vmlinux`], [`cpio`], put together by [`image`]), booted in
//! QEMU ([`machine`]). [`responder`] stands in for the gateware where the guest itself is under test.

mod cpio;
pub mod image;
pub mod machine;
mod modules;
mod packages;
pub mod responder;
mod vmlinux;
