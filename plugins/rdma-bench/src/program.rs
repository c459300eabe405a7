//! The program of the bench.

use gateweave_sequencer::{Assembler, Errors, Program};

/// What the program is assembled for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Queue pairs of the transport, a power of two.
    pub slots: u32,
    /// Requests outstanding at most.
    pub depth: u32,
    /// Address of the messages, [`MESSAGES`] bytes for each queue pair.
    pub base: u32,
    /// Address and bytes of the buffer, multiples of 64.
    pub buffer_at: u32,
    pub buffer: u32,
    /// Remote key of the buffer.
    pub key: u32,
}

/// Bytes of a connection's messages: the one that is received and the one that is sent.
pub const MESSAGES: u32 = 128;

pub fn assemble(settings: &Settings) -> Result<Program, Errors> {
    let constants = [
        ("SLOTS", settings.slots),
        ("DEPTH", settings.depth),
        ("BASE", settings.base),
        ("BUFFER_AT", settings.buffer_at),
        ("BUFFER", settings.buffer),
        ("KEY", settings.key),
    ];
    let assembler = constants.iter().fold(Assembler::new(), |assembler, &(name, value)| assembler.define(name, value.into()));
    assembler
        .source("program/data.seq", include_str!("../program/data.seq"))
        .source("program/main.seq", include_str!("../program/main.seq"))
        .source("program/run.seq", include_str!("../program/run.seq"))
        .assemble()
}
