//! The smallest plugin: one domain, no ports.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Entries.
    #[serde(default = "sixteen")]
    #[schemars(range(min = 1, max = 4096))]
    depth: u32,
}

fn sixteen() -> u32 {
    16
}

struct Blank;

impl Plugin for Blank {
    type Params = Params;

    fn info() -> About {
        about!("does nothing")
    }

    fn describe(_params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        Ok(Shape::new().domain("sys", Clock::System))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        Ok(Output::new("blank").parameter("DEPTH", plan.params.depth).sources(sources!["hdl/blank.veryl"]))
    }
}

gateweave_sdk::export!(Blank);
