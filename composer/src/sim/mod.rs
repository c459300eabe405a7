//! Simulation: a planned design, models of what its pins are soldered to, and
//! wires that carry Ethernet frames to programs and files.
//!
//! The composer describes a design as a [`SimPlan`]. The loop that runs it, the
//! models and the wires are C++ (`templates/sim/`), compiled together with what
//! Verilator makes of the design.

mod build;
mod class;
mod packet;
pub mod pattern;
pub mod plan;
mod run;
pub mod time;
mod wire;

/// Whether a code of this stage means that the simulation could not run (exit code 2), not that the project or its input is wrong (1).
pub fn is_tool_failure(code: &str) -> bool {
    matches!(code, "GW0702" | "GW0710" | "GW0711" | "GW0712" | "GW0714" | "GW0715")
}

pub use build::{Simulator, Trace, build};
pub use plan::{Clock, PinDelay, Reset, Resource, SimPlan, SvFile};
pub use run::{DRAIN_FS, Latency, ResourceSummary, RunOptions, RunSummary, WireSummary, run};
pub use wire::{Regs, RegsKind, Wire, WireKind};
