//! The board as RDMA requester: posts WRITE, READ, SEND and atomic requests, counts and times them, checks what they moved.

use gateweave_sdk::prelude::*;

mod program;

use program::{MESSAGES, Settings};

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Queue pairs of the transport, a power of two.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 64))]
    queue_pairs: u32,
    /// Work requests that a queue pair of the transport holds: the greatest depth.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 64))]
    send_queue: u32,
    /// Completions that the transport keeps for an application: two for each queue pair, and the depth.
    #[serde(default = "thirty_two")]
    #[schemars(range(min = 8, max = 64))]
    completions: u32,
    /// Port that peers connect to.
    #[serde(default = "port")]
    #[schemars(range(min = 1))]
    port: u16,
    /// Address of the part of the board's memory that the bench has, a multiple of 64.
    #[serde(default)]
    base: u32,
    /// Bytes of it: 128 for each queue pair, the others are the buffer.
    size: u32,
    /// Remote key of the buffer, which the REP tells; the transport's region must hold it.
    #[serde(default)]
    key: u32,
}

fn four() -> u32 {
    4
}

fn eight() -> u32 {
    8
}

fn thirty_two() -> u32 {
    32
}

fn port() -> u16 {
    18_516
}

/// Largest buffer: sums of two sizes have 32 bits.
const LARGEST: u32 = 1 << 30;

/// Index of the first register that is written.
const CONTROL: u32 = 32;

/// The registers, in the order of `program/data.seq`.
fn registers() -> Registers {
    Registers::new()
        .value("state", "0 idle, 1 fills the buffer, 2 runs, 3 checks")
        .value("active", "connections now")
        .value("newest", "queue pair of the newest connection")
        .value(
            "status",
            "0 = all well; 1 to 15: status of the first completion in error; 0x100: makes no sense; 0x101: completions out of order",
        )
        .value("done", "requests that completed well")
        .value("cycles_high", "clock cycles from the first request posted to the last completion")
        .value("cycles_low", "low half")
        .value("least", "least latency of a request in clock cycles, from its posting to its completion")
        .value("most", "greatest latency")
        .value("wrong", "words of the buffer that are not what they should be")
        .counter("errors", "completions in error")
        .counter("runs", "runs that have ended")
        .counter("refused", "commands that make no sense")
        .counter("accepted", "connections accepted")
        .counter("closed", "connections that ended")
        .counter("keys", "keys that were given")
        .value("key_qp", "31: the newest key may be used; 23:0 queue pair of the connection that gave it")
        .value("key_rkey", "the newest key")
        .value("key_address_low", "address that belongs to it")
        .value("key_address_high", "address that belongs to it")
        .value("key_length", "bytes, 0 = not said")
        .at(4 * CONTROL)
        .control(
            "op",
            Access::Rw,
            "0 WRITE, 1 WRITE with immediate, 2 SEND, 3 SEND with immediate, 4 READ, 5 compare and swap, 6 fetch and add, 7 WRITE and READ in turn",
        )
        .control("size", Access::Rw, "bytes of a message")
        .control("count", Access::Rw, "messages")
        .control("depth", Access::Rw, "outstanding at a time; 0 = as many as there can be")
        .control("rkey", Access::Rw, "remote key")
        .control("address_high", Access::Rw, "remote address")
        .control("address_low", Access::Rw, "remote address")
        .control(
            "flags",
            Access::Rw,
            "0 fill first, 1 check at the end, 2 fill with the pattern of the inverted seed, 3 use the newest key that was given",
        )
        .control("offset", Access::Rw, "where the span begins in the buffer")
        .control("span", Access::Rw, "bytes that the messages go through, here and there; 0 = one message")
        .control("seed", Access::Rw, "of the pattern")
        .control("operand_high", Access::Rw, "swap or add operand")
        .control("operand_low", Access::Rw, "swap or add operand")
        .control("compare_high", Access::Rw, "compare operand")
        .control("compare_low", Access::Rw, "compare operand")
        .control("qp", Access::Rw, "queue pair, 0 = the newest connection's")
        .control("start", Access::Wo, "any write starts a run, SLVERR if one is under way or it makes no sense")
        .size(256)
}

/// What the program is assembled for, or what is wrong with the parameters.
fn settings(params: &Params) -> Result<Settings, Diagnostics> {
    let mut wrong = Vec::new();
    if !params.queue_pairs.is_power_of_two() {
        let help = format!("{} would be right", params.queue_pairs.next_power_of_two());
        wrong.push(Diagnostic::error("queue-pairs", "/queue-pairs", format!("{} is not a power of two", params.queue_pairs)).help(help));
    }
    if params.base % 64 != 0 {
        let help = format!("{} would be right", params.base / 64 * 64);
        wrong.push(Diagnostic::error("base", "/base", format!("{} is not a multiple of 64", params.base)).help(help));
    }
    let messages = MESSAGES * params.queue_pairs;
    let buffer = params.size.saturating_sub(messages) / 64 * 64;
    if buffer == 0 {
        let help = format!("{} bytes for the messages, then the buffer", messages);
        wrong.push(Diagnostic::error("size", "/size", format!("{} bytes are not enough", params.size)).help(help));
    }
    if u64::from(params.base) + u64::from(params.size) > 1 << 32 {
        wrong.push(Diagnostic::error("size", "/size", "base and size go beyond 32 bits"));
    }
    let places = 2 * params.queue_pairs;
    if params.completions <= places {
        let message = format!("{} are not enough for {} queue pairs", params.completions, params.queue_pairs);
        wrong.push(Diagnostic::error("completions", "/completions", message).help(format!("more than {places}")));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(Settings {
        slots: params.queue_pairs,
        depth: params.send_queue.min(params.completions - places),
        base: params.base,
        buffer_at: params.base + messages,
        buffer: buffer.min(LARGEST),
        key: params.key,
    })
}

struct RdmaBench;

impl Plugin for RdmaBench {
    type Params = Params;

    fn info() -> About {
        about!("the board as RDMA requester: posts, times and checks requests")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        settings(params)?;
        let rdma = Port::client("rdma", "gateweave/rdma@1", "sys");
        let cm = Port::client("cm", "gateweave/rdma-cm@1", "sys").prop("services", [params.port]);
        let memory = Port::client("memory", "gateweave/memory@1", "sys").widths([32]).prop("burst-beats", 16);
        let keys = Port::client("keys", "gateweave/rdma-keys@1", "sys").links(0, 1);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        Ok(Shape::new().domain("sys", Clock::System).port(rdma).port(cm).port(memory).port(keys).port(regs).registers(&registers()))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let program = program::assemble(&settings(&plan.params)?).map_err(|e| vec![Diagnostic::error("program", "", e.to_string())])?;
        Ok(Output::new("rdma_bench")
            .parameter("CODE_WORDS", program.code.len())
            .parameter("CODE", program.code_list())
            .parameter("DATA_A", program.data_bits())
            .parameter("DATA_WORDS", program.data.len())
            .parameter("DATA", program.data_list())
            .sources(sources!["hdl/bench_memory.veryl", "hdl/rdma_bench.veryl"]))
    }
}

gateweave_sdk::export!(RdmaBench);

#[cfg(test)]
mod tests;
