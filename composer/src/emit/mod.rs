//! Files that are made from a plan.

pub mod constraints;
pub mod registers;
pub mod vendor;
