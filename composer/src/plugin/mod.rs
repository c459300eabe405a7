//! Plugins: found, built, loaded, asked, checked.
//!
//! [`locate`] finds plugin crates and prebuilt components in the plugin folders and
//! builds what is stale. A [`host::Host`] loads
//! components, which import nothing, and asks their four questions within
//! [`limits::Limits`]; it checks every answer ([`validate`]) and keeps the good
//! ones by content ([`answers`]). [`params`] checks an instance's parameters
//! against the plugin's schema. [`commands`] is what `gateweave plugin` does.

mod answers;
pub mod build;
pub mod commands;
pub mod error;
pub mod hdl_check;
pub mod host;
pub mod limits;
pub mod locate;
pub mod merge;
pub mod names;
pub mod params;
mod stamp;
pub mod toolchain;
pub mod types;
pub mod validate;
mod wire;

pub use error::{Failure, PluginError};
pub use host::{Host, Plugin};
pub use limits::Limits;
