//! Memory behind AXI4: block RAM, the SDR SDRAM chip of a board, or a controller that comes from elsewhere.

mod axi;
mod sdram;

use axi::Controller;
use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// What the memory is made of.
    #[serde(default)]
    backend: Backend,
    /// Bytes of block RAM, a power of two; other memory is as large as the board says.
    #[serde(default = "size")]
    #[schemars(range(min = 4096, max = 16_777_216))]
    size: u32,
    /// Address of byte 0, a multiple of the size.
    #[serde(default)]
    base: u32,
    /// Clock of the SDRAM chip in MHz.
    #[serde(default = "clock_mhz")]
    #[schemars(range(min = 50, max = 133))]
    clock_mhz: u32,
}

/// What the memory is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Backend {
    /// RAM blocks of the FPGA.
    #[default]
    BlockRam,
    /// The board's SDR SDRAM chip, linked to `chip`.
    Sdram,
    /// Whatever is behind the AXI4 port of the board's controller, linked to `controller`.
    Axi,
}

/// Bits of an address of port `memory`.
const ADDRESS_BITS: u32 = 32;

fn size() -> u32 {
    32_768
}

fn clock_mhz() -> u32 {
    100
}

/// Nanoseconds from an address to its first beat that block RAM never exceeds: three cycles at the slowest clock that is planned.
const BLOCK_RAM_STALL_NS: u64 = 60;

/// What the parameters' schema cannot say of block RAM.
fn check(params: &Params) -> Result<(), Diagnostics> {
    if !params.size.is_power_of_two() {
        let below = 1 << params.size.ilog2();
        return Err(Diagnostic::error("size", "/size", "the size is not a power of two").help(format!("{below} or {}", 2 * below)).into());
    }
    multiple(params.base, u64::from(params.size))
}

/// The base must be a multiple of the size in bytes.
fn multiple(base: u32, size: u64) -> Result<(), Diagnostics> {
    let base = u64::from(base);
    if base % size != 0 {
        let message = format!("the base is not a multiple of the size, {size} bytes");
        return Err(Diagnostic::error("base", "/base", message).help(format!("{}", base / size * size)).into());
    }
    Ok(())
}

fn registers() -> Registers {
    Registers::new()
        .counter("reads", "read bursts begun")
        .counter("writes", "write bursts begun")
        .counter("read_beats", "words read")
        .counter("write_beats", "words written, masked ones included")
        .counter("refused_reads", "read bursts answered with DECERR because their address is outside of the memory")
        .counter("refused_writes", "write bursts answered so")
}

/// Ports, clocks and registers. `controller` is known once the ports have peers.
fn shape(params: &Params, controller: Option<&Controller>) -> Shape {
    // A controller has a clock of its own, and all that is before it runs on that: the links to its clients cross.
    let domain = if params.backend == Backend::Axi { "ram" } else { "sys" };
    let memory = Port::provider("memory", "gateweave/memory@1", domain);
    let bounded = |port: Port, ns: u64| port.prop("bounded", true).prop("worst-stall-ns", ns);
    let regs = Port::provider("regs", "gateweave/registers@1", domain).links(0, 1);
    let shape = match params.backend {
        Backend::BlockRam => {
            let widths = [32, 8, 16, 64, 128, 256, 512];
            Shape::new().domain("sys", Clock::System).port(bounded(memory.widths(widths), BLOCK_RAM_STALL_NS))
        }
        Backend::Sdram => Shape::new()
            .domain("sys", Clock::System)
            .domain("ram", Clock::ask_hz(u64::from(params.clock_mhz) * 1_000_000, sdram::TOLERANCE_PPM))
            .port(bounded(memory.widths([32]), sdram::worst_stall_ns(params.clock_mhz)))
            .port(Port::client("chip", "gateweave/sdr-sdram@1", "ram")),
        Backend::Axi => {
            // Nobody knows how long somebody else's controller stalls: nothing is promised.
            let widths = controller.map_or(axi::WIDTHS.to_vec(), |c| vec![c.data_bits]);
            Shape::new()
                .domain("ram", Clock::from_port("controller"))
                .port(memory.widths(widths))
                .port(Port::client("controller", "gateweave/axi4-memory@1", "ram"))
        }
    };
    shape.port(regs).registers(&registers())
}

struct DramDma;

impl Plugin for DramDma {
    type Params = Params;

    fn info() -> About {
        about!("memory behind AXI4: block RAM, an SDR SDRAM chip or a controller from elsewhere")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        if params.backend == Backend::BlockRam {
            check(params)?;
        }
        Ok(shape(params, None))
    }

    fn elaborate(params: &Params, _board: &Board, peers: &[Peer]) -> Result<Shape, Diagnostics> {
        let controller = peers.iter().find(|p| p.port == "controller").map(Controller::of).transpose()?;
        Ok(shape(params, controller.as_ref()))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        match plan.params.backend {
            Backend::BlockRam => Ok(Output::new("block_ram")
                .parameter("W", plan.width("memory"))
                .parameter("SIZE_LOG2", plan.params.size.ilog2())
                .parameter("BASE", format!("64'h{:08x}", plan.params.base))
                .sources(sources!["hdl/events_pkg.veryl", "hdl/block_ram.veryl"])),
            Backend::Sdram => sdram::generate(plan),
            Backend::Axi => axi::generate(plan),
        }
    }
}

gateweave_sdk::export!(DramDma);

#[cfg(test)]
mod tests {
    use super::*;

    fn params(size: u32, base: u32) -> Params {
        Params { backend: Backend::BlockRam, size, base, clock_mhz: 100 }
    }

    #[test]
    fn sizes_and_bases_that_do_not_fit_are_refused_with_what_would() {
        assert!(check(&params(32_768, 0x1000_0000)).is_ok());
        assert_eq!(check(&params(5000, 0)).expect_err("no power of two")[0].help.as_deref(), Some("4096 or 8192"));
        assert_eq!(check(&params(32_768, 40_000)).expect_err("no multiple")[0].help.as_deref(), Some("32768"));
    }
}
