//! Assembler for `gw::sequencer`, the small processor that slow protocols run on. Instructions and syntax: `docs/sequencer.md`.
//!
//! A plugin keeps its program beside its HDL, assembles it in `generate`, and hands code and data to the HDL as parameters:
//!
//! ```
//! use gateweave_sequencer::Assembler;
//!
//! let program = Assembler::new()
//!     .define("LIMIT", 3)
//!     .source("program/count.seq", "
//!         .var count
//!     loop:
//!         ld   count
//!         add  #1
//!         st   count
//!         cmp  #LIMIT
//!         bne  loop
//!         outl 0
//!     stop:
//!         jmp  stop
//!     ")
//!     .assemble()?;
//! assert_eq!(program.code.len(), 7);
//! assert_eq!(program.code_literal().split('\'').next(), Some("112"));
//! # Ok::<(), gateweave_sequencer::Errors>(())
//! ```

mod assemble;
mod error;
mod expression;
mod instruction;
mod source;

use std::fmt::Write as _;

pub use error::{Error, Errors};

/// Words of the program memory.
pub const CODE_WORDS: usize = 2048;
/// Words of the data memory that an instruction can name without an index register.
pub const NEAR_WORDS: usize = 512;

/// Takes constants and source texts, gives a [`Program`].
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    constants: Vec<(String, i64)>,
    sources: Vec<(String, String)>,
}

impl Assembler {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Defines a constant, as `.equ` does.
    #[must_use]
    pub fn define(mut self, name: &str, value: i64) -> Self {
        self.constants.push((name.into(), value));
        self
    }

    /// Adds a source; several are one program, in this order. The path is for messages only.
    #[must_use]
    pub fn source(mut self, path: &str, text: &str) -> Self {
        self.sources.push((path.into(), text.into()));
        self
    }

    /// Assembles.
    ///
    /// # Errors
    /// All faults that were found, each with file, line and column.
    pub fn assemble(self) -> Result<Program, Errors> {
        assemble::run(&self.constants, &self.sources)
    }
}

/// Code and initial data of a sequencer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Instructions from address 0 on.
    pub code: Vec<u16>,
    /// Words of the data memory from address 0 on, as far as they have contents.
    pub data: Vec<u32>,
    /// Words of the data memory.
    pub data_words: usize,
    /// Names and their values, in order of definition: constants, labels and addresses of data.
    pub symbols: Vec<(String, i64)>,
    listing: Vec<(usize, String)>,
}

impl Program {
    /// Parameter `CODE` of the HDL as the contract has vectors: sized literals, word 0 first.
    #[must_use]
    pub fn code_list(&self) -> Vec<String> {
        self.code.iter().map(|w| format!("16'h{w:04x}")).collect()
    }

    /// Parameter `DATA` of the HDL, likewise.
    #[must_use]
    pub fn data_list(&self) -> Vec<String> {
        self.data.iter().map(|w| format!("32'h{w:08x}")).collect()
    }

    /// The code as one sized literal, word 0 in the low bits: for benches.
    #[must_use]
    pub fn code_literal(&self) -> String {
        let digits: String = self.code.iter().rev().map(|w| format!("{w:04x}")).collect();
        format!("{}'h{digits}", 16 * self.code.len())
    }

    /// The data as one sized literal, word 0 in the low bits.
    #[must_use]
    pub fn data_literal(&self) -> String {
        let digits: String = self.data.iter().rev().map(|w| format!("{w:08x}")).collect();
        format!("{}'h{digits}", 32 * self.data.len())
    }

    /// Parameter `DATA_A` of the HDL: bits of a data address.
    #[must_use]
    pub fn data_bits(&self) -> u32 {
        self.data_words.next_power_of_two().trailing_zeros()
    }

    /// The value of a name.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<i64> {
        self.symbols.iter().find(|(n, _)| n == name).map(|&(_, value)| value)
    }

    /// Addresses, words and source lines, for a look at what a trace shows.
    #[must_use]
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for (address, line) in &self.listing {
            let _ = writeln!(text, "{address:03x} {:04x}  {line}", self.code[*address]);
        }
        text
    }
}
