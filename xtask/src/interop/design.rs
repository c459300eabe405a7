//! The designs that are tried: a project as it is, or `projects/rdma` at any width, rate and MTU, on board `sim`, with the memory of that or of the i5.

use crate::places;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What is behind `dram-dma` in the variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Memory {
    /// 1 MiB of block RAM on board `sim`, whose link is a stream
    Bram,
    /// The SDRAM chip of the Colorlight i5, whose link is RGMII
    Sdram,
    /// 512 bits at 300 MHz behind the AXI4 port of a controller from elsewhere, on board `sim`
    Axi,
}

impl Memory {
    /// As in `bench.json`.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Bram => "bram",
            Memory::Sdram => "sdram",
            Memory::Axi => "axi",
        }
    }

    fn board(self) -> &'static str {
        match self {
            Memory::Bram | Memory::Axi => "sim",
            Memory::Sdram => "colorlight-i5",
        }
    }

    /// Parameters and links of the instance.
    fn instance(self) -> &'static str {
        match self {
            Memory::Bram => "params = { size = 1048576 }",
            Memory::Sdram => "params = { backend = \"sdram\", clock-mhz = 100 }\nlinks  = { chip = \"board.sdram0\" }",
            Memory::Axi => "params = { backend = \"axi\" }\nlinks  = { controller = \"board.ddr0\" }",
        }
    }
}

/// TCP port of the service of the variant that offers a region.
const SERVICE_PORT: u16 = 18515;

/// Which design.
#[derive(Clone, Debug, clap::Args)]
pub struct Design {
    /// A project as it is, such as projects/rdma; without it a variant of that
    #[arg(long)]
    project: Option<PathBuf>,
    /// Bits of the variant's datapath
    #[arg(long, default_value_t = 32)]
    pub width: u32,
    /// Clock of the variant, in MHz
    #[arg(long, default_value_t = 62.5)]
    pub clock: f64,
    /// Rate of the variant's link in Gb/s
    #[arg(long, default_value_t = 1)]
    pub gbps: u32,
    /// Bytes without FCS of the shortest frame for which the variant's rate is promised; without it that of Ethernet
    #[arg(long)]
    shortest_frame: Option<u32>,
    /// Memory of the variant
    #[arg(long, value_enum, default_value = "bram")]
    pub memory: Memory,
    /// The region to use instead of the one that the board's REP offers: ADDRESS:RKEY:LENGTH
    #[arg(long)]
    pub region: Option<String>,
    /// TCP port of the service that offers it
    #[arg(long, default_value_t = SERVICE_PORT)]
    pub port: u16,
}

impl Design {
    /// The variant with `width` bits at `clock` MHz.
    pub fn variant(width: u32, clock: f64, gbps: u32, shortest_frame: Option<u32>, memory: Memory) -> Design {
        Design { project: None, width, clock, gbps, shortest_frame, memory, region: None, port: SERVICE_PORT }
    }

    /// The folder of the project; a variant is written to `folder`. `mtu` is IP's; the times of the variant's connection manager pass `speed_up` times faster.
    pub fn folder(&self, folder: &Path, mtu: u32, speed_up: u32) -> Result<PathBuf> {
        if let Some(project) = &self.project {
            return Ok(places::root().join(project));
        }
        let pmtu = if mtu >= 4200 { 4096 } else { 1024 };
        let text = include_str!("variant.toml")
            .replace("@PLUGINS@", &places::root().join("plugins").to_string_lossy())
            .replace("@WIDTH@", &self.width.to_string())
            .replace("@CLOCK@", &format!("{} MHz", self.clock))
            .replace("@GBPS@", &self.gbps.to_string())
            .replace("@SHORTEST@", &self.shortest_frame.map(|bytes| format!(", shortest-frame = {bytes}")).unwrap_or_default())
            .replace("@BOARD@", self.memory.board())
            .replace("@MEMORY@", self.memory.instance())
            .replace("@SPEED_UP@", &speed_up.to_string())
            .replace("@MTU@", &mtu.to_string())
            .replace("@PMTU@", &pmtu.to_string());
        let file = folder.join("project.toml");
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(folder.to_path_buf())
    }
}
