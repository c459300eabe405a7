//! Gateweave composes FPGA board designs from sandboxed plugins.
//!
//! A guided tour, in the order that data flows:
//!
//! 1. [`manifest`] reads `project.toml` and board files; every value keeps its place.
//! 2. [`plugin`] loads the WebAssembly components and asks them for ports, domains and registers.
//! 3. [`compose`] ties links to ports, then plans widths, clocks, addresses and adapters.
//! 4. [`emit`] writes the top level, constraints, vendor scripts and register documents.
//! 5. [`hdl`] analyses the Veryl and emits SystemVerilog.
//! 6. [`sim`] builds and runs the simulation; [`build`] makes the bitstream with [`tools`].
//!
//! [`pipeline`] walks that way for a project; [`cli`] is the command line over it. [`diag`] is the shape of
//! every message, [`cache`] keeps what was computed, [`assets`] are the files inside the program.

pub mod assets;
pub mod bench;
pub mod build;
pub mod cache;
pub mod cli;
pub mod compose;
pub mod diag;
pub mod emit;
pub mod hdl;
pub mod manifest;
pub mod pipeline;
pub mod plugin;
pub mod regs_client;
pub mod report;
pub mod sim;
pub mod tools;

/// Version of the program, part of every cache key.
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
