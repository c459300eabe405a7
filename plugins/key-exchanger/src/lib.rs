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
    #[schemars(range(min = 1, max = 256))]
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
    /// Port of the key exchange; 0 = none.
    #[serde(default = "keys")]
    keys: u16,
    /// Port of the server of ucmatose, whose own default is that of `echo`; 0 = none.
    #[serde(default = "ucmatose")]
    ucmatose: u16,
    /// Messages of ucmatose in each direction.
    #[serde(default = "ucmatose_count")]
    #[schemars(range(min = 1, max = 65_535))]
    ucmatose_count: u32,
    /// Bytes of a message to ucmatose, at most `message`.
    #[serde(default = "ucmatose_bytes")]
    #[schemars(range(min = 1, max = 4096))]
    ucmatose_bytes: u32,
    /// The regions that peers may use, as the transport has them: what the REP of the key exchange tells.
    #[serde(default)]
    #[schemars(length(max = 3))]
    regions: Vec<Region>,
    /// With the client of rping, which registers start: the region of the transport that holds the large buffers, which its peer reads and writes.
    client: Option<Region>,
}

/// A memory region of the transport.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Region {
    /// Virtual address of the first byte; its low 32 bits are the address in the board's memory.
    #[serde(default)]
    address: u64,
    /// Bytes.
    length: u32,
    /// `index << 8 | variant`.
    #[serde(default)]
    key: u32,
}

impl Region {
    /// Whether `bytes` from `at` of the board's memory on lie in it.
    fn holds(&self, at: u32, bytes: u32) -> bool {
        let start = u64::from(self.address as u32);
        u64::from(at) >= start && u64::from(at) + u64::from(bytes) <= start + u64::from(self.length)
    }
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

fn keys() -> u16 {
    18_515
}

fn ucmatose() -> u16 {
    7472
}

fn ucmatose_count() -> u32 {
    10
}

fn ucmatose_bytes() -> u32 {
    100
}

/// Completions that one connection may have reserved at a time: two receive requests and four work requests, or three and two.
const PLACES: u32 = 6;

/// The registers, in the order of `program/data.seq`.
fn registers() -> Registers {
    Registers::new()
        .counter("accepted", "connections accepted")
        .counter("rejected", "connections refused for want of a buffer or of completions")
        .counter("closed", "connections that ended")
        .value("active", "connections now")
        .counter("errors", "requests that completed in error, and messages that a service does not understand")
        .counter("rping_rounds", "rounds of the rping server: a buffer read and written back")
        .counter("echoed", "messages sent back")
        .counter("messages", "messages of ucmatose")
        .counter("keys", "keys that peers have given")
        .value("key_qp", "31: the newest key may be used; 23:0 its queue pair")
        .value("key_rkey", "the newest key")
        .value("key_address_low", "address that belongs to it")
        .value("key_address_high", "address that belongs to it")
        .value("key_length", "bytes, 0 = not said")
        .value("client", "0 = the rping client is idle")
        .counter("client_failed", "calls that came to nothing")
        .value("client_reason", "why the last one did: the reason of a REJ, 4 no answer, 1 no queue pair")
        .counter("client_rounds", "rounds of the rping client: a buffer read, written and compared")
        .counter("client_wrong", "words that were not what they should be")
        .at(4 * CONTROL)
        .control("peer_address", Access::Rw, "IPv4 address that the rping client calls, first byte highest")
        .control("peer_port", Access::Rw, "its port")
        .control("peer_size", Access::Rw, "bytes of a round, a multiple of 4 up to `buffer`")
        .control("peer_rounds", Access::Rw, "rounds; writing it starts the call, SLVERR if one is under way or cannot be")
        .size(256)
}

/// Index of the first register that is written.
const CONTROL: u32 = 32;

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
    let least = messages + if params.rping != 0 || params.client.is_some() { params.buffer } else { 0 };
    if params.size < least {
        let help = format!("{least} bytes for one buffer, {} for one of every queue pair", messages + params.queue_pairs * params.buffer);
        wrong.push(Diagnostic::error("size", "/size", format!("{} bytes are not enough", params.size)).help(help));
    }
    let buffers_at = params.base.wrapping_add(messages);
    if params.client.as_ref().is_some_and(|r| !r.holds(buffers_at, buffers * params.buffer)) {
        let help = format!("a region of {} bytes from {buffers_at:#x} on, or a larger one", buffers * params.buffer);
        wrong.push(Diagnostic::error("client", "/client", "the region does not hold the buffers").help(help));
    }
    if params.ucmatose_bytes > params.message {
        let message = format!("{} bytes are more than `message`", params.ucmatose_bytes);
        wrong.push(Diagnostic::error("ucmatose", "/ucmatose-bytes", message).help(format!("at most {}", params.message)));
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
        buffers_at,
        buffers,
        buffer: params.buffer,
        rping: params.rping,
        echo: params.echo,
        keys: params.keys,
        ucmatose: params.ucmatose,
        ucmatose_count: params.ucmatose_count,
        ucmatose_bytes: params.ucmatose_bytes,
        offers: params.regions.iter().map(|r| (r.address, r.length, r.key)).collect(),
        client: params.client.as_ref().map(|r| ((r.address >> 32) as u32, r.key)),
    })
}

struct KeyExchanger;

impl Plugin for KeyExchanger {
    type Params = Params;

    fn info() -> About {
        about!("services of an RDMA endpoint: key exchange, rping, rdma_client, ucmatose")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        settings(params)?;
        let services: Vec<u16> = [params.rping, params.echo, params.keys, params.ucmatose].into_iter().filter(|p| *p != 0).collect();
        let rdma = Port::client("rdma", "gateweave/rdma@1", "sys");
        let cm = Port::client("cm", "gateweave/rdma-cm@1", "sys").prop("services", services);
        let memory = Port::client("memory", "gateweave/memory@1", "sys").widths([32]).prop("burst-beats", 1);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        let keys = Port::provider("keys", "gateweave/rdma-keys@1", "sys").links(0, 1);
        Ok(Shape::new().domain("sys", Clock::System).port(rdma).port(cm).port(memory).port(keys).port(regs).registers(&registers()))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let program = program::assemble(&settings(&plan.params)?).map_err(|e| vec![Diagnostic::error("program", "", e.to_string())])?;
        Ok(Output::new("key_exchanger")
            .parameter("CODE_WORDS", program.code.len())
            .parameter("CODE", program.code_list())
            .parameter("DATA_A", program.data_bits())
            .parameter("DATA_WORDS", program.data.len())
            .parameter("DATA", program.data_list())
            .sources(sources!["hdl/memory_words.veryl", "hdl/key_exchanger.veryl"]))
    }
}

gateweave_sdk::export!(KeyExchanger);

#[cfg(test)]
mod tests;
