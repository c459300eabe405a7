//! The designs that are tried: a project as it is, or `projects/rdma` on board `sim` at any width and MTU.

use crate::places;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Which design.
#[derive(Clone, Debug, clap::Args)]
pub struct Design {
    /// A project as it is, such as projects/rdma; without it a variant of that on board sim, with 1 MiB of block RAM
    #[arg(long)]
    project: Option<PathBuf>,
    /// Bits of the variant's datapath
    #[arg(long, default_value_t = 32)]
    pub width: u32,
    /// Clock of the variant, in MHz
    #[arg(long, default_value = "62.5")]
    clock: String,
    /// The region to use instead of the one that the board's REP offers: ADDRESS:RKEY:LENGTH
    #[arg(long)]
    pub region: Option<String>,
    /// TCP port of the service that offers it
    #[arg(long, default_value_t = 18515)]
    pub port: u16,
}

impl Design {
    /// The folder of the project; a variant is written to `folder`. `mtu` is IP's.
    pub fn folder(&self, folder: &Path, mtu: u32) -> Result<PathBuf> {
        if let Some(project) = &self.project {
            return Ok(places::root().join(project));
        }
        let pmtu = if mtu >= 4200 { 4096 } else { 1024 };
        let text = include_str!("variant.toml")
            .replace("@PLUGINS@", &places::root().join("plugins").to_string_lossy())
            .replace("@WIDTH@", &self.width.to_string())
            .replace("@CLOCK@", &format!("{} MHz", self.clock))
            .replace("@MTU@", &mtu.to_string())
            .replace("@PMTU@", &pmtu.to_string());
        let file = folder.join("project.toml");
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(folder.to_path_buf())
    }
}
