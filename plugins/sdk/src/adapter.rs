//! From the wire's strings to the plugin's types and back.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::exports::gateweave::plugin::contract as wire;
use crate::contract::json;
use crate::{About, Diagnostic, Output, Peer, Plugin, Shape, Target, Wired, panic};

/// What is known of the board, as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Board(pub Value);

impl Board {
    /// The value under a JSON Pointer such as `"/part/family"`.
    pub fn get(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer)
    }

    /// The same as a string.
    pub fn str(&self, pointer: &str) -> Option<&str> {
        self.get(pointer)?.as_str()
    }

    /// The same as an unsigned number.
    pub fn u64(&self, pointer: &str) -> Option<u64> {
        self.get(pointer)?.as_u64()
    }
}

/// The settled plan of one instance, with typed parameters.
#[derive(Clone, Debug)]
pub struct Plan<P> {
    /// Name of the instance.
    pub instance: String,
    /// What every global name of templated or SystemVerilog sources must start with.
    pub prefix: String,
    /// Parameters.
    pub params: P,
    /// Board.
    pub board: Board,
    /// What the HDL is for.
    pub target: Target,
    /// Links, by port and index.
    pub links: Vec<Wired>,
    /// Byte address of the register block, if there is a bus.
    pub register_base: Option<u64>,
    /// Width of register data in bits.
    pub register_data_bits: u32,
}

impl<P> Plan<P> {
    /// The links of a port, by index.
    pub fn links<'a>(&'a self, port: &'a str) -> impl Iterator<Item = &'a Wired> {
        self.links.iter().filter(move |w| w.port == port)
    }

    /// The first link of a port.
    pub fn link(&self, port: &str) -> Option<&Wired> {
        self.links.iter().find(|w| w.port == port)
    }

    /// Number of links of a port.
    pub fn count(&self, port: &str) -> u32 {
        self.links(port).count() as u32
    }

    /// Data width of a port in bits.
    ///
    /// # Panics
    /// Where the port has no link, which the host makes impossible for ports with `links-min` above 0.
    pub fn width(&self, port: &str) -> u32 {
        match self.link(port) {
            Some(wired) => wired.width,
            None => panic!("port `{port}` has no link"),
        }
    }
}

fn params<P: DeserializeOwned>(text: &str) -> Result<P, Vec<Diagnostic>> {
    serde_json::from_str(text).map_err(|e| vec![Diagnostic::error("params", "", format!("the parameters do not fit: {e}"))])
}

fn board(text: &str) -> Result<Board, Vec<Diagnostic>> {
    let value = serde_json::from_str(text).map_err(|e| vec![Diagnostic::error("board", "", format!("the board is not JSON: {e}"))])?;
    Ok(Board(value))
}

/// Export `info`.
pub fn info<P: Plugin>() -> About {
    panic::install();
    let mut about = P::info();
    if about.params_schema.is_empty() {
        about.params_schema = json(schemars::schema_for!(P::Params));
    }
    about
}

/// Export `describe`.
pub fn describe<P: Plugin>(params_json: &str, board_json: &str) -> Result<Shape, Vec<Diagnostic>> {
    panic::install();
    P::describe(&params(params_json)?, &board(board_json)?)
}

/// Export `elaborate`.
pub fn elaborate<P: Plugin>(params_json: &str, board_json: &str, peers: &[Peer]) -> Result<Shape, Vec<Diagnostic>> {
    panic::install();
    P::elaborate(&params(params_json)?, &board(board_json)?, peers)
}

/// Export `generate`.
pub fn generate<P: Plugin>(plan: wire::Plan) -> Result<Output, Vec<Diagnostic>> {
    panic::install();
    P::generate(&Plan {
        params: params(&plan.params)?,
        board: board(&plan.board)?,
        instance: plan.instance,
        prefix: plan.prefix,
        target: plan.target,
        links: plan.links,
        register_base: plan.register_base,
        register_data_bits: plan.register_data_bits,
    })
}
