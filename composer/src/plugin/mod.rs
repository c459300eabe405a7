//! Plugins: found, built, loaded, asked, checked.
//!
//! A [`host::Host`] loads
//! components, which import nothing, and asks their four questions within
//! [`limits::Limits`]; it checks every answer ([`validate`]) and keeps the good
//! ones by content ([`answers`]). [`params`] checks an instance's parameters
//! against the plugin's schema.

mod answers;
pub mod error;
pub mod hdl_check;
pub mod host;
pub mod limits;
pub mod names;
pub mod params;
pub mod types;
pub mod validate;
mod wire;

pub use error::{Failure, PluginError};
pub use host::{Host, Plugin};
pub use limits::Limits;
