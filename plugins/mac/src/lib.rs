//! The Ethernet MAC: frames on one side, a PHY's pins or a hard MAC's stream on the other.

use gateweave_sdk::prelude::*;

/// Widths of `frames` in bits, the preferred first.
const WIDTHS: [u32; 7] = [32, 64, 8, 16, 128, 256, 512];

/// Bytes of a frame beside its IP packet: header, and a VLAN tag that a receiver may have to look at.
const OVERHEAD: u32 = 14 + 4;

/// The PHY's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phy {
    /// What the board's Ethernet ports have, if they all have the same.
    #[default]
    Auto,
    /// Reduced GMII at 1000 Mb/s.
    Rgmii,
    /// GMII at 1000 Mb/s.
    Gmii,
    /// MII at 100 Mb/s.
    Mii,
    /// Whole frames without preamble and FCS: simulation, hard MACs.
    Stream,
}

/// Parameters, as they stand under `params` of an instance.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Params {
    /// The PHY's side.
    #[serde(default)]
    phy: Phy,
    /// Largest IP packet in bytes. Frames longer than this and 18 bytes are cut and counted.
    #[serde(default = "mtu")]
    #[schemars(range(min = 64, max = 9000))]
    mtu: u32,
    /// Words in each of the two FIFOs, a power of two.
    #[serde(default = "fifo")]
    #[schemars(range(min = 8, max = 4096))]
    fifo: u32,
}

fn mtu() -> u32 {
    1500
}

fn fifo() -> u32 {
    16
}

/// The plugin.
pub struct Mac;

impl Phy {
    /// The kind of port `phy`.
    fn kind(self) -> &'static str {
        match self {
            Phy::Auto | Phy::Stream => "gateweave/phy-stream@1",
            Phy::Rgmii => "gateweave/rgmii@1",
            Phy::Gmii => "gateweave/gmii@1",
            Phy::Mii => "gateweave/mii@1",
        }
    }

    /// By the name of a board's class.
    fn of_class(class: &str) -> Option<Phy> {
        match class {
            "rgmii" => Some(Phy::Rgmii),
            "gmii" => Some(Phy::Gmii),
            "mii" => Some(Phy::Mii),
            "stream" => Some(Phy::Stream),
            _ => None,
        }
    }

    /// `auto` settled by what the board has.
    fn settle(self, board: &Board) -> Result<Phy, Diagnostics> {
        if self != Phy::Auto {
            return Ok(self);
        }
        let mut found: Vec<Phy> = Vec::new();
        for resource in board.get("/resources").and_then(|r| r.as_object()).into_iter().flat_map(|r| r.values()) {
            let class = resource.get("class").and_then(|c| c.as_str()).unwrap_or_default();
            if let Some(phy) = Phy::of_class(class)
                && !found.contains(&phy)
            {
                found.push(phy);
            }
        }
        match found.as_slice() {
            [phy] => Ok(*phy),
            [] => Err(Diagnostic::error("no-phy", "/phy", "the board has no Ethernet port that this MAC knows")
                .help("rgmii, gmii, mii and stream ports are known")
                .into()),
            _ => Err(Diagnostic::error("many-phys", "/phy", "the board has Ethernet ports of several kinds")
                .help("say which: phy = \"rgmii\", \"gmii\", \"mii\" or \"stream\"")
                .into()),
        }
    }
}

impl Plugin for Mac {
    type Params = Params;

    fn info() -> About {
        about!("Ethernet MAC: RGMII, GMII, MII and a plain stream side")
    }

    fn describe(params: &Params, board: &Board) -> Result<Shape, Diagnostics> {
        if !params.fifo.is_power_of_two() {
            let help = format!("{} or {}", params.fifo.next_power_of_two() / 2, params.fifo.next_power_of_two());
            return Err(Diagnostic::error("fifo", "/fifo", "the length of the FIFOs is no power of two").help(help).into());
        }
        let phy = params.phy.settle(board)?;
        let mut side = Port::client("phy", phy.kind(), if phy == Phy::Stream { "phy" } else { "rx" });
        let mut shape = Shape::new().domain("sys", Clock::System);
        match phy {
            Phy::Stream | Phy::Auto => {
                side = side.widths([64, 8, 16, 32, 128, 256, 512]);
                shape = shape.domain("phy", Clock::from_port("phy"));
            }
            // The transmit clock comes from the board's PLL, never from the receive clock. A PHY takes 50 ppm for granted.
            Phy::Rgmii | Phy::Gmii | Phy::Mii => {
                shape = shape.domain("rx", Clock::from_port("phy")).domain("tx", Clock::ask_hz(125_000_000, 50));
                side = side.mbps(if phy == Phy::Mii { 100 } else { 1000 });
            }
        }
        let frames = Port::provider("frames", "gateweave/eth-frames@1", "sys").widths(WIDTHS).prop("mtu", params.mtu);
        let regs = Port::provider("regs", "gateweave/registers@1", "sys").links(0, 1);
        Ok(shape.port(side).port(frames).port(regs).registers(&registers()))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let phy = plan.params.phy.settle(&plan.board)?;
        let width = plan.width("frames");
        let top = match phy {
            Phy::Rgmii => "mac_rgmii",
            Phy::Gmii => "mac_gmii",
            Phy::Mii => "mac_mii",
            Phy::Stream | Phy::Auto => "mac_stream",
        };
        let mut output = Output::new(top).parameter("W", width);
        if phy == Phy::Stream {
            output = output.parameter("PHY_W", if plan.width("phy") == 0 { width } else { plan.width("phy") });
        }
        output = output.parameter("MAX", plan.params.mtu + OVERHEAD).parameter("DEPTH", plan.params.fifo);
        match phy {
            Phy::Rgmii | Phy::Gmii => {
                let delay = |name: &str| plan.link("phy").and_then(|l| l.peer.prop_u64(name)).unwrap_or(0);
                output = output.parameter("RX_PS", delay("rx-delay-ps")).parameter("TX_PS", delay("tx-delay-ps"));
            }
            Phy::Stream => output = output.parameter("OUT_REG", plan.width("phy").max(width) > 64),
            Phy::Mii | Phy::Auto => {}
        }
        Ok(output.sources(sources![
            "hdl/event_list.veryl",
            "hdl/in_band.veryl",
            "hdl/link_core.veryl",
            "hdl/mac_gmii.veryl",
            "hdl/mac_mii.veryl",
            "hdl/mac_regs.veryl",
            "hdl/mac_rgmii.veryl",
            "hdl/mac_stream.veryl",
            "hdl/mii_in.veryl",
            "hdl/mii_out.veryl",
            "hdl/reason.veryl",
            "hdl/rx_bytes.veryl",
            "hdl/rx_port.veryl",
            "hdl/rx_stream.veryl",
            "hdl/rx_stream_wide.veryl",
            "hdl/tx_bytes.veryl",
            "hdl/tx_port.veryl",
            "hdl/tx_stream.veryl",
            "hdl/tx_stream_wide.veryl",
        ]))
    }
}

/// The register block: counters in the order of `event_list`, then the status word (`mac_regs`).
fn registers() -> Registers {
    Registers::new()
        .counter("rx_good", "frames passed on as good")
        .counter("rx_fcs", "frames with a wrong FCS")
        .counter("rx_runt", "frames shorter than 60 bytes without FCS")
        .counter("rx_oversize", "frames longer than the MTU and 18 bytes; cut there")
        .counter("rx_overflow", "frames lost because the client was not ready")
        .counter("rx_error", "frames with an error of the PHY, and broken preambles")
        .counter("tx_frames", "frames taken for sending")
        .counter("tx_aborted", "frames that the client aborted; sent with a wrong FCS")
        .counter("tx_underrun", "frames whose next word was not there; sent with a wrong FCS")
        .counter("tx_refused", "frames thrown away while transmission was shut")
        .at(64)
        .value("status", "bit 0 link up, 2:1 speed (0 10, 1 100, 2 1000 Mb/s), 3 full duplex: RGMII in-band, 0 elsewhere; 4 transmission is shut: another speed than 1000 Mb/s")
        .size(128)
}

gateweave_sdk::export!(Mac);
