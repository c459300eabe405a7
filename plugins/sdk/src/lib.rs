//! Write Gateweave plugins in Rust.
//!
//! A plugin says what ports, clocks and registers an instance has, and hands
//! out its HDL. Implement [`Plugin`], call [`export!`] once, keep the HDL in
//! `.veryl` files and name them with [`sources!`].
//!
//! ```
//! use gateweave_sdk::prelude::*;
//!
//! /// Parameters as they stand in the project file.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(rename_all = "kebab-case")]
//! struct Params {
//!     /// UDP port to answer on.
//!     #[serde(default = "seven")]
//!     #[schemars(range(min = 1))]
//!     port: u16,
//! }
//!
//! fn seven() -> u16 {
//!     7
//! }
//!
//! struct Echo;
//!
//! impl Plugin for Echo {
//!     type Params = Params;
//!
//!     fn info() -> About {
//!         about!("answers every datagram")
//!     }
//!
//!     fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
//!         let udp = Port::client("udp", "gateweave/ip-udp@1", "sys").widths([32, 8, 16, 64]).prop("udp-ports", [params.port]);
//!         Ok(Shape::new().domain("sys", Clock::System).port(udp))
//!     }
//!
//!     fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
//!         Ok(Output::new("echo").parameter("W", plan.width("udp")))
//!     }
//! }
//!
//! gateweave_sdk::export!(Echo);
//! # fn main() {}
//! ```

mod adapter;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod bindings;
mod contract;
mod panic;
mod registers;
#[cfg(feature = "templates")]
mod templates;

pub use adapter::{Board, Plan};
pub use contract::*;
pub use registers::{Access, Field, Register, Registers};
#[cfg(feature = "templates")]
pub use templates::render;

#[doc(hidden)]
pub mod __private {
    pub use crate::adapter::{describe, elaborate, generate, info};
}

/// What a plugin's `lib.rs` needs.
pub mod prelude {
    pub use crate::{
        About, Access, Board, Clock, Diagnostic, Diagnostics, Domain, Field, Kind, Output, Peer, Plan, Plugin, Port, Protocol, Register,
        Registers, Shape, Source, Target, about, sources,
    };
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize, Serialize};
    pub use serde_json::{self, json};
}

pub use {schemars, serde, serde_json};

/// What an answer consists of when it is not the one that was asked for.
pub type Diagnostics = Vec<Diagnostic>;

/// A plugin. All functions are pure: the same arguments give the same answer, which the host may keep.
pub trait Plugin {
    /// The parameters, as they stand under `params` of an instance. Their JSON Schema is made from the type:
    /// `#[serde(default)]` gives the defaults, `#[schemars(range(...))]` and the like the limits, doc comments the
    /// documentation. The host checks all of it before any function is called.
    type Params: serde::de::DeserializeOwned + schemars::JsonSchema;

    /// Who the plugin is; see [`about!`].
    fn info() -> About;

    /// Ports, domains and registers, from parameters and board alone.
    ///
    /// # Errors
    /// What is wrong with the parameters.
    fn describe(params: &Self::Params, board: &Board) -> Result<Shape, Diagnostics>;

    /// The same, knowing the peers. May narrow widths and change properties and registers, may not add ports.
    ///
    /// # Errors
    /// What does not fit.
    fn elaborate(params: &Self::Params, board: &Board, peers: &[Peer]) -> Result<Shape, Diagnostics> {
        let _ = peers;
        Self::describe(params, board)
    }

    /// HDL for the settled plan.
    ///
    /// # Errors
    /// Why there can be none.
    fn generate(plan: &Plan<Self::Params>) -> Result<Output, Diagnostics>;
}

/// Makes the crate a plugin: `gateweave_sdk::export!(MyPlugin);`, once, in `lib.rs`.
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::exports::gateweave::plugin::contract as wire;
            struct Component;
            impl wire::Guest for Component {
                fn info() -> wire::About {
                    $crate::__private::info::<$plugin>()
                }
                fn describe(params: String, board: String) -> Result<wire::Shape, Vec<wire::Diagnostic>> {
                    $crate::__private::describe::<$plugin>(&params, &board)
                }
                fn elaborate(params: String, board: String, peers: Vec<wire::Peer>) -> Result<wire::Shape, Vec<wire::Diagnostic>> {
                    $crate::__private::elaborate::<$plugin>(&params, &board, &peers)
                }
                fn generate(plan: wire::Plan) -> Result<wire::Output, Vec<wire::Diagnostic>> {
                    $crate::__private::generate::<$plugin>(plan)
                }
            }
            $crate::bindings::export_component!(Component);
        };
    };
}

/// An [`About`] with name and version of the crate: `about!("one line")`.
#[macro_export]
macro_rules! about {
    ($summary:expr) => {
        $crate::About {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: ($summary).into(),
            params_schema: String::new(),
            kinds: Vec::new(),
        }
    };
}

/// Files of the crate as sources, with their text compiled in: `sources!["hdl/rx.veryl", "hdl/tx.veryl"]`.
///
/// Paths are relative to the crate's folder. In the output they lose a leading `hdl/`. The language follows the
/// extension; everything is [`Purpose::Design`] until [`Source::purpose`] says otherwise.
#[macro_export]
macro_rules! sources {
    ($($path:literal),+ $(,)?) => {
        vec![$($crate::Source::file($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)))),+]
    };
}
