//! Where things are: the repository, cargo's target folder, the cache.

use crate::run;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The cache that all checkouts of one user share: `$GATEWEAVE_CACHE`, else `$XDG_CACHE_HOME/gateweave`, else `~/.cache/gateweave`.
pub fn cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("GATEWEAVE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("gateweave")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/gateweave")))
        .context("no place for the cache: set HOME or GATEWEAVE_CACHE")
}

/// Cargo's target folder as cargo itself sees it (CARGO_TARGET_DIR and configuration files included).
pub fn target() -> Result<PathBuf> {
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root());
    let metadata = serde_json::from_str::<serde_json::Value>(&run::output(&mut command)?).context("reading cargo's metadata")?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(PathBuf::from(folder))
}

/// The cargo that runs this program, else the one on PATH.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}
