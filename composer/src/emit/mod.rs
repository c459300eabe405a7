//! From the plan to files.

pub mod clocks;
pub mod constraints;
pub(crate) mod controller;
mod memory;
pub mod registers;
pub mod top;
pub mod vendor;
