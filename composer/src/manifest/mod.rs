//! Project and board files as typed models, every value with its place.

pub mod board;
pub mod class;
pub mod family;
pub mod project;
pub mod read;
