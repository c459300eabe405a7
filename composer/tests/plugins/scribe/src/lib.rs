//! Writes memory and reads it back, and stops when something is wrong.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Bursts to write and read back.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 65535))]
    rounds: u32,
}

fn hundred() -> u32 {
    100
}

struct Scribe;

impl Plugin for Scribe {
    type Params = Params;

    fn info() -> About {
        about!("writes memory and reads it back until something is wrong")
    }

    fn describe(_params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        Ok(Shape::new()
            .domain("sys", Clock::System)
            .port(Port::client("memory", "gateweave/memory@1", "sys").widths([32])))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        Ok(Output::new("scribe").parameter("ROUNDS", plan.params.rounds).sources(sources!["hdl/scribe.veryl"]))
    }
}

gateweave_sdk::export!(Scribe);
