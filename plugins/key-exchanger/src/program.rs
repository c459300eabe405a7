//! The program of the services.

use std::fmt::Write as _;

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
    pub keys: u16,
    pub ucmatose: u16,
    /// Messages of ucmatose in each direction, and bytes of those that are sent.
    pub ucmatose_count: u32,
    pub ucmatose_bytes: u32,
    /// What a REP of `keys` tells: address, length, key.
    pub offers: Vec<(u64, u32, u32)>,
    /// The rping client: high half of the address and key of the region that holds the buffers.
    pub client: Option<(u32, u32)>,
}

/// Words of private data that an application gives.
const PRIVATE_WORDS: usize = 14;

pub fn assemble(settings: &Settings) -> Result<Program, Errors> {
    let mut offers = settings.offers.iter().flat_map(|&(address, length, key)| [(address >> 32) as u32, address as u32, key, length]).collect::<Vec<_>>();
    offers.resize(PRIVATE_WORDS, 0);
    let offers = offers.iter().fold(String::from(".word offers"), |mut text, word| {
        let _ = write!(text, ", {word}");
        text
    });
    let (own_high, own_key) = settings.client.unwrap_or_default();
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
        ("KEYS_PORT", settings.keys.into()),
        ("UCMATOSE", settings.ucmatose.into()),
        ("UCMATOSE_COUNT", settings.ucmatose_count),
        ("UCMATOSE_BYTES", settings.ucmatose_bytes),
        ("CLIENT", settings.client.is_some().into()),
        ("OWN_HIGH", own_high),
        ("OWN_KEY", own_key),
    ] {
        assembler = assembler.define(name, value.into());
    }
    macro_rules! source {
        ($($path:literal),+) => { assembler$(.source($path, include_str!(concat!("../", $path))))+ };
    }
    source!(
        "program/data.seq",
        "program/main.seq",
        "program/rping.seq",
        "program/echo.seq",
        "program/keys.seq",
        "program/ucmatose.seq",
        "program/client.seq"
    )
    .source("offers", &offers)
    .assemble()
}
