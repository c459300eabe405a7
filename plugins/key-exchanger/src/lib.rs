//! Services of an RDMA endpoint: key exchange, and what rping, rdma_client and ucmatose want.

use gateweave_sdk::prelude::*;

mod program;

use program::Settings;

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Queue pairs of the transport, a power of two.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 64))]
    queue_pairs: u32,
    /// Completions that the transport keeps for an application; a connection needs 6.
    #[serde(default = "thirty_two")]
    #[schemars(range(min = 8, max = 64))]
    completions: u32,
    /// Address of the part of the board's memory that the services have, a multiple of 64.
    #[serde(default)]
    base: u32,
    /// Bytes of it: four messages for each queue pair, then large buffers.
    size: u32,
    /// Bytes of a large buffer, a multiple of 64: the longest message of rping.
    #[serde(default = "sixty_four_kib")]
    #[schemars(range(min = 64, max = 16_777_216))]
    buffer: u32,
    /// Bytes of the longest message that is received, a power of two.
    #[serde(default = "message")]
    #[schemars(range(min = 64, max = 4096))]
    message: u32,
    /// Port of the rping server; 0 = none.
    #[serde(default = "rping")]
    rping: u16,
    /// Port where every message is sent back, as rdma_client wants it; 0 = none.
    #[serde(default = "echo")]
    echo: u16,
}

fn four() -> u32 {
    4
}

fn thirty_two() -> u32 {
    32
}

fn sixty_four_kib() -> u32 {
    65_536
}

fn message() -> u32 {
    128
}

fn rping() -> u16 {
    7174
}

fn echo() -> u16 {
    7471
}

/// Completions that one connection may have reserved at a time: two receive requests and four work requests, or three and two.
const PLACES: u32 = 6;

/// The registers, in the order of `program/data.seq`.
const COUNTERS: [(&str, &str); 7] = [
    ("accepted", "connections accepted"),
    ("rejected", "connections refused for want of a buffer or of completions"),
    ("closed", "connections that ended"),
    ("active", "connections now"),
    ("errors", "requests that completed in error, and messages that a service does not understand"),
    ("rping_rounds", "rounds of the rping server: a buffer read and written back"),
    ("echoed", "messages sent back"),
];

/// What the program is assembled for, or what is wrong with the parameters.
fn settings(params: &Params) -> Result<Settings, Diagnostics> {
    let mut wrong = Vec::new();
    for (name, value) in [("queue-pairs", params.queue_pairs), ("message", params.message)] {
        if !value.is_power_of_two() {
            let help = format!("{} would be right", value.next_power_of_two());
            wrong.push(Diagnostic::error(name, &format!("/{name}"), format!("{value} is not a power of two")).help(help));
        }
    }
    for (name, value) in [("base", params.base), ("buffer", params.buffer)] {
        if value % 64 != 0 {
            let help = format!("{} would be right", value / 64 * 64);
            wrong.push(Diagnostic::error(name, &format!("/{name}"), format!("{value} is not a multiple of 64")).help(help));
        }
    }
    let messages = 4 * params.message * params.queue_pairs;
    let buffers = (params.size.saturating_sub(messages) / params.buffer).min(params.queue_pairs);
    let least = messages + if params.rping != 0 { params.buffer } else { 0 };
    if params.size < least {
        let help = format!("{least} bytes for one buffer, {} for one of every queue pair", messages + params.queue_pairs * params.buffer);
        wrong.push(Diagnostic::error("size", "/size", format!("{} bytes are not enough", params.size)).help(help));
    }
    if u64::from(params.base) + u64::from(params.size) > 1 << 32 {
        wrong.push(Diagnostic::error("size", "/size", "base and size go beyond 32 bits"));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(Settings {
        slots: params.queue_pairs,
        limit: params.completions / PLACES,
        base: params.base,
        message: params.message,
        buffers_at: params.base + messages,
        buffers,
        buffer: params.buffer,
        rping: params.rping,
        echo: params.echo,
    })
}

struct KeyExchanger;

impl Plugin for KeyExchanger {
    type Params = Params;

    fn info() -> About {
        about!("services of an RDMA endpoint: key exchange, rping, echo")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        settings(params)?;
        let services: Vec<u16> = [params.rping, params.echo].into_iter().filter(|p| *p != 0).collect();
        let rdma = Port::client("rdma", "gateweave/rdma@1", "sys");
        let cm = Port::client("cm", "gateweave/rdma-cm@1", "sys").prop("services", services);
        let memory = Port::client("memory", "gateweave/memory@1", "sys").widths([32]).prop("burst-beats", 1);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        let registers = COUNTERS.iter().fold(Registers::new(), |r, (name, doc)| r.counter(name, doc)).size(256);
        Ok(Shape::new().domain("sys", Clock::System).port(rdma).port(cm).port(memory).port(regs).registers(&registers))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let program = program::assemble(&settings(&plan.params)?).map_err(|e| vec![Diagnostic::error("program", "", e.to_string())])?;
        Ok(Output::new("key_exchanger")
            .parameter("CODE_WORDS", program.code.len())
            .parameter("CODE", program.code_list())
            .parameter("DATA_A", program.data_bits())
            .parameter("DATA_WORDS", program.data.len())
            .parameter("DATA", program.data_list())
            .sources(sources!["hdl/memory_words.veryl", "hdl/register_words.veryl", "hdl/key_exchanger.veryl"]))
    }
}

gateweave_sdk::export!(KeyExchanger);

#[cfg(test)]
mod tests;
