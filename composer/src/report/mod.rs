//! What people look at: the block diagram, the report of a build.

pub mod build;
pub mod diagram;
