//! Sends every UDP datagram back to where it came from.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// UDP port to answer on.
    #[serde(default = "seven")]
    #[schemars(range(min = 1))]
    port: u16,
    /// UDP checksum of the answers.
    #[serde(default)]
    checksum: Checksum,
}

/// Where the UDP checksum of an answer comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Checksum {
    /// From the datagram: it stays right, and 0 stays 0.
    #[default]
    Given,
    /// The provider computes it, also where the datagram had none.
    Compute,
}

fn seven() -> u16 {
    7
}

/// What the IPv4 and UDP headers take of an MTU.
const HEADERS: u64 = 28;
/// The MTU where the provider does not say one.
const ETHERNET: u64 = 1500;

struct Echo;

impl Plugin for Echo {
    type Params = Params;

    fn info() -> About {
        about!("sends every UDP datagram back to where it came from")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        let udp = Port::client("udp", "gateweave/ip-udp@1", "sys")
            .widths([32, 8, 16, 64, 128, 256, 512])
            .prop("udp-ports", [params.port])
            .prop("checksum", [if params.checksum == Checksum::Compute { "compute" } else { "given" }])
            .prop("continuous", true);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        let registers = Registers::new()
            .counter("echoed", "datagrams sent back")
            .counter("dropped", "good datagrams dropped because the store was full");
        Ok(Shape::new().domain("sys", Clock::System).port(udp).port(regs).registers(&registers))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let mtu = plan.link("udp").and_then(|w| w.peer.prop_u64("mtu")).unwrap_or(ETHERNET);
        Ok(Output::new("udp_echo")
            .parameter("W", plan.width("udp"))
            .parameter("PORT", plan.params.port)
            .parameter("COMPUTE", format!("1'b{}", u8::from(plan.params.checksum == Checksum::Compute)))
            // One datagram comes in while another goes out.
            .parameter("BYTES", 2 * mtu.saturating_sub(HEADERS))
            .sources(sources!["hdl/udp_echo.veryl"]))
    }
}

gateweave_sdk::export!(Echo);
