//! RoCEv2 transport: reliable connected queue pairs, responder and requester.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Queue pairs, a power of two.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 256))]
    queue_pairs: u32,
}

fn four() -> u32 {
    4
}

struct Roce;

impl Plugin for Roce {
    type Params = Params;

    fn info() -> About {
        about!("RoCEv2 transport: reliable connected queue pairs, responder and requester")
    }

    fn describe(_params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        let udp = Port::client("udp", "gateweave/ip-udp@1", "sys").widths([32, 64, 128, 256, 512]).prop("udp-ports", [4791]).prop("checksum", ["none"]).prop("continuous", true);
        let memory = Port::client("memory", "gateweave/memory@1", "sys").widths([32, 64, 128, 256, 512]);
        let control = Port::provider("control", "gateweave/roce-control@1", "sys").links(0, 1);
        let rdma = Port::provider("rdma", "gateweave/rdma@1", "sys").links(0, 16);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        Ok(Shape::new().domain("sys", Clock::System).port(udp).port(memory).port(control).port(rdma).port(regs))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        Ok(Output::new("roce").parameter("W", plan.width("udp")).sources(sources!["hdl/roce_pkg.veryl"]))
    }
}

gateweave_sdk::export!(Roce);
