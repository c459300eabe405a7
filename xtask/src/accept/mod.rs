//! What a stranger sees: a Linux guest on the wire of a simulation.

pub mod ping;
