//! From the graph to the settled plan.

pub mod graph;
pub mod kinds;
mod link;
pub mod memory;
pub mod plan;
pub mod pll;
pub mod rate;
pub mod registers;
