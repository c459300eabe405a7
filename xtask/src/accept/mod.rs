//! What a stranger sees: a Linux guest on the wire of a simulation.

pub mod ping;

use crate::gateweave::Gateweave;
use crate::guest::image::Made;
use crate::places;
use crate::stage::Stage;
use anyhow::Result;
use ping::{Figures, Load};
use std::path::PathBuf;

/// One design that the guest is let loose on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    /// A project as it is in the repository, with its own board.
    Project { folder: &'static str },
    /// A variant of `projects/ping` on board `sim`.
    Variant { width: u32, mtu: u32 },
}

/// The designs of `cargo xtask test`; with `all` every width and both MTUs.
pub fn cases(all: bool) -> Vec<Case> {
    let mut cases = vec![Case::Project { folder: "projects/ping" }];
    let widths: &[u32] = if all { &[8, 16, 32, 64, 128, 256, 512] } else { &[8, 32, 64] };
    cases.extend(widths.iter().map(|&width| Case::Variant { width, mtu: 1500 }));
    let widths: &[u32] = if all { widths } else { &[64] };
    cases.extend(widths.iter().map(|&width| Case::Variant { width, mtu: 9000 }));
    cases
}

impl Case {
    pub fn name(&self) -> String {
        match self {
            Case::Project { folder } => format!("guest on {folder}"),
            Case::Variant { width, mtu } => format!("guest on board sim, {width} bits, MTU {mtu}"),
        }
    }

    /// 1000 pings and every UDP length.
    pub fn run(&self, gateweave: &Gateweave, made: &Made, program: &[u8], stage: &Stage) -> Result<Figures> {
        let folder = tempfile::Builder::new().prefix("gateweave-project-").tempdir()?;
        let (project, mtu) = match self {
            Case::Project { folder } => (places::root().join(folder), 1500),
            Case::Variant { width, mtu } => (self.write(folder.path(), *width, *mtu)?, *mtu),
        };
        let out = places::target()?.join("xtask").join(self.name().replace([' ', '/', ','], "-"));
        ping::against_simulation((gateweave, &project, &out), made, program, Load::full(mtu), None, stage)
    }

    fn write(&self, folder: &std::path::Path, width: u32, mtu: u32) -> Result<PathBuf> {
        let text = include_str!("variant.toml")
            .replace("@PLUGINS@", &places::root().join("plugins").to_string_lossy())
            .replace("@WIDTH@", &width.to_string())
            .replace("@MTU@", &mtu.to_string());
        std::fs::write(folder.join("project.toml"), text)?;
        Ok(folder.to_path_buf())
    }
}
