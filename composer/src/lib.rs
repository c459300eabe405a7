pub mod diag;
pub mod hdl;
pub mod manifest;
pub mod plugin;
pub mod compose;
pub mod sim;
