//! Ports of the kinds that link instances with each other: memory and the wires of the RDMA endpoint, both roles, all optional.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Width of the memory port in bits.
    #[serde(default = "word")]
    width: u32,
    /// Bits of an address.
    #[serde(default = "word")]
    address: u32,
    /// Beats of the longest burst.
    #[serde(default = "sixteen")]
    burst: u32,
    /// Clock of its own in Hz; the system clock if 0.
    #[serde(default)]
    hz: u64,
}

fn word() -> u32 {
    32
}

fn sixteen() -> u32 {
    16
}

struct Links;

impl Plugin for Links {
    type Params = Params;

    fn info() -> About {
        about!("ports of the kinds that link instances with each other")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        let clock = if params.hz == 0 { Clock::System } else { Clock::ask_hz(params.hz, 100) };
        let memory = Port::client("memory", "gateweave/memory@1", "d")
            .links(0, 1)
            .widths([params.width])
            .prop("address-width", params.address)
            .prop("burst-beats", params.burst);
        Ok(Shape::new()
            .domain("d", clock)
            .port(memory)
            .port(Port::provider("rdma", "gateweave/rdma@1", "d").links(0, 8))
            .port(Port::client("work", "gateweave/rdma@1", "d").links(0, 1))
            .port(Port::provider("connections", "gateweave/rdma-cm@1", "d").links(0, 8))
            .port(Port::client("request", "gateweave/rdma-cm@1", "d").links(0, 1))
            .port(Port::provider("control", "gateweave/roce-control@1", "d").links(0, 1))
            .port(Port::client("manage", "gateweave/roce-control@1", "d").links(0, 1)))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        Ok(Output::new("links")
            .parameter("WORKS", plan.count("rdma").max(1))
            .parameter("CONNECTIONS", plan.count("connections").max(1))
            .sources(sources!["hdl/links.veryl"]))
    }
}

gateweave_sdk::export!(Links);
