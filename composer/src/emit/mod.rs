//! Files that are made from a plan.

pub mod registers;
