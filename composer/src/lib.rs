pub mod diag;
pub mod emit;
pub mod hdl;
pub mod manifest;
pub mod plugin;
pub mod compose;
pub mod sim;
pub mod regs_client;
