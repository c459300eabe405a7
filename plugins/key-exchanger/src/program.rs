//! The program of the services.

use gateweave_sequencer::{Assembler, Errors, Program};

/// What the program is assembled for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Queue pairs of the transport, a power of two.
    pub slots: u32,
    /// Connections at a time.
    pub limit: u32,
    /// Address of the message areas, one for each queue pair.
    pub base: u32,
    /// Bytes of a message, a power of two; an area has four.
    pub message: u32,
    /// Address, number and bytes of the large buffers.
    pub buffers_at: u32,
    pub buffers: u32,
    pub buffer: u32,
    /// Ports of the services, 0 where one is off.
    pub rping: u16,
    pub echo: u16,
}

pub fn assemble(settings: &Settings) -> Result<Program, Errors> {
    let mut assembler = Assembler::new();
    for (name, value) in [
        ("SLOTS", settings.slots),
        ("LIMIT", settings.limit),
        ("BASE", settings.base),
        ("MESSAGE", settings.message),
        ("AREA_SHIFT", (4 * settings.message).ilog2()),
        ("BUFFERS_AT", settings.buffers_at),
        ("BUFFERS", settings.buffers),
        ("BUFFER", settings.buffer),
        ("RPING", settings.rping.into()),
        ("ECHO", settings.echo.into()),
    ] {
        assembler = assembler.define(name, value.into());
    }
    macro_rules! source {
        ($($path:literal),+) => { assembler$(.source($path, include_str!(concat!("../", $path))))+ };
    }
    source!("program/data.seq", "program/main.seq", "program/rping.seq", "program/echo.seq").assemble()
}
