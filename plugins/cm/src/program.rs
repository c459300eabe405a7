//! The connection manager's program.

use std::fmt::Write as _;

use gateweave_sequencer::{Assembler, Errors, Program};

/// What the program is assembled for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Queue pairs, a power of two.
    pub slots: u32,
    /// Links of port `apps`.
    pub apps: u32,
    /// Ports listened on and the link that has them.
    pub services: Vec<(u16, u32)>,
    /// READs and atomics under way in each direction of a connection.
    pub rd_atomic: u32,
    /// Code of the largest path MTU, 1 to 5.
    pub pmtu: u32,
    pub guid: u64,
    pub ip: u32,
    /// Code of the ACK timeout that the active side asks for.
    pub ack_timeout: u32,
    /// Code of the time after which a message is sent again, and the measure of all other times; Linux has 20.
    pub cm_timeout: u32,
}

pub fn assemble(settings: &Settings) -> Result<Program, Errors> {
    let mut services = String::from(".word services");
    for (port, app) in &settings.services {
        let _ = write!(services, ", {}", app << 16 | u32::from(*port));
    }
    if settings.services.is_empty() {
        services.push_str(", 0");
    }
    let mut assembler = Assembler::new();
    for (name, value) in [
        ("SLOTS", settings.slots),
        ("APPS", settings.apps),
        ("SERVICES", settings.services.len() as u32),
        ("RD_ATOMIC", settings.rd_atomic),
        ("PMTU", settings.pmtu),
        ("GUID_HIGH", (settings.guid >> 32) as u32),
        ("GUID_LOW", settings.guid as u32),
        ("IP", settings.ip),
        ("ACK_TIMEOUT", settings.ack_timeout),
        ("CM_TIMEOUT", settings.cm_timeout),
    ] {
        assembler = assembler.define(name, value.into());
    }
    macro_rules! source {
        ($($path:literal),+) => { assembler$(.source($path, include_str!(concat!("../", $path))))+ };
    }
    source!(
        "program/data.seq",
        "program/main.seq",
        "program/application.seq",
        "program/connection.seq",
        "program/messages.seq",
        "program/received.seq",
        "program/active.seq"
    )
    .source("services", &services)
    .assemble()
}
