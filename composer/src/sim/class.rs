//! The classes of resources that have a model, and what the model needs to know.

use super::plan::Resource;
use crate::diag::Diagnostic;

/// A class with a model.
pub(super) struct Class {
    pub name: &'static str,
    /// Pins that the model drives or watches where the top has them.
    pub pins: &'static [&'static str],
    /// The pin that the model drives as a clock.
    clock: Option<&'static str>,
    /// Period of that clock where the class fixes it, fs; 0 where the resource says it.
    period_fs: u64,
    /// Whether it carries Ethernet frames, so that `--wire` may name it.
    pub ethernet: bool,
}

pub(super) const NAMES: &[&str] = &["stream", "rgmii", "gmii", "mii", "uart", "leds", "mdio", "sdr-sdram", "axi4-memory"];

const CLASSES: &[Class] = &[
    Class {
        name: "stream",
        pins: &[
            "clk",
            "rx_tdata",
            "rx_tkeep",
            "rx_tlast",
            "rx_terr",
            "rx_tvalid",
            "rx_tready",
            "tx_tdata",
            "tx_tkeep",
            "tx_tlast",
            "tx_terr",
            "tx_tvalid",
            "tx_tready",
        ],
        clock: Some("clk"),
        period_fs: 0,
        ethernet: true,
    },
    Class {
        name: "rgmii",
        pins: &["rx_clk", "rx_ctl", "rx_data", "tx_clk", "tx_ctl", "tx_data"],
        clock: Some("rx_clk"),
        period_fs: 8_000_000,
        ethernet: true,
    },
    Class {
        name: "gmii",
        pins: &["rx_clk", "rx_dv", "rx_er", "rx_data", "gtx_clk", "tx_en", "tx_er", "tx_data"],
        clock: Some("rx_clk"),
        period_fs: 8_000_000,
        ethernet: true,
    },
    Class {
        name: "mii",
        pins: &["rx_clk", "rx_dv", "rx_er", "rx_data", "tx_clk", "tx_en", "tx_er", "tx_data"],
        clock: Some("rx_clk"),
        period_fs: 40_000_000,
        ethernet: true,
    },
    Class { name: "uart", pins: &["rx", "tx"], clock: None, period_fs: 0, ethernet: false },
    Class { name: "leds", pins: &["led"], clock: None, period_fs: 0, ethernet: false },
    Class {
        name: "sdr-sdram",
        pins: &["clock", "a", "ba", "dq_i", "dq_o", "dq_oe", "dm", "ras_n", "cas_n", "we_n", "cs_n", "cke"],
        clock: None,
        period_fs: 0,
        ethernet: false,
    },
    Class {
        name: "axi4-memory",
        pins: &[
            "clk", "awid", "awaddr", "awlen", "awvalid", "awready", "wdata", "wstrb", "wlast", "wvalid", "wready", "bid", "bresp",
            "bvalid", "bready", "arid", "araddr", "arlen", "arvalid", "arready", "rid", "rdata", "rresp", "rlast", "rvalid", "rready",
        ],
        clock: Some("clk"),
        period_fs: 0,
        ethernet: false,
    },
    Class { name: "mdio", pins: &[], clock: None, period_fs: 0, ethernet: false },
];

pub(super) fn find(name: &str) -> Option<&'static Class> {
    CLASSES.iter().find(|c| c.name == name)
}

impl Class {
    /// Port of the top that the model drives as a clock.
    pub fn clock_port(&self, resource: &Resource) -> Option<String> {
        self.clock.map(|pin| resource.clock_port.clone().unwrap_or_else(|| format!("{}_{pin}", resource.name)))
    }

    /// Period of the model's clock in femtoseconds; 0 = it has none.
    pub fn period_fs(&self, resource: &Resource) -> u64 {
        if self.period_fs != 0 { self.period_fs } else { resource.period_fs }
    }

    /// Link rate in Mbit/s: the fact `mbps`, or where the board offers several the highest that width and clock carry.
    pub fn mbps(&self, resource: &Resource) -> u64 {
        let fact = resource.facts.get("mbps");
        if let Some(one) = fact.and_then(serde_json::Value::as_u64) {
            return one;
        }
        let carried = u128::from(resource.width) * 1_000_000_000 / u128::from(self.period_fs(resource).max(1));
        let list = fact.and_then(serde_json::Value::as_array).cloned().unwrap_or_default();
        let offered = list.iter().filter_map(serde_json::Value::as_u64);
        offered.filter(|m| u128::from(*m) <= carried).max().unwrap_or(1000)
    }

    /// Checks what the class needs.
    pub fn check(&self, resource: &Resource) -> Result<(), Diagnostic> {
        let wrong = |message: String| Err(Diagnostic::error("GW0705", format!("resource `{}`: {message}", resource.name)));
        if self.name == "stream" && ![8, 16, 32, 64, 128, 256, 512].contains(&resource.width) {
            return wrong(format!("width {} is not one of 8, 16, 32, 64, 128, 256, 512", resource.width));
        }
        if self.clock.is_some() && self.period_fs(resource) < 2000 {
            return wrong(format!("a clock period of {} fs", resource.period_fs));
        }
        let baud = resource.facts.get("baud").and_then(serde_json::Value::as_i64);
        if baud.is_some_and(|b| !(1..=1_000_000_000).contains(&b)) {
            return wrong(format!("{} baud", baud.unwrap_or_default()));
        }
        if self.ethernet && self.mbps(resource) == 0 {
            return wrong("a link rate of 0 Mbit/s".to_owned());
        }
        Ok(())
    }
}
