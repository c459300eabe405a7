//! The way from a project to files, in the order that data flows:
//! [`elaborate`] (manifest to plan), [`generate`] (plan to HDL, constraints and documents), then the tools.

pub mod bitstream;
pub mod elaborate;
pub mod generate;
mod parallel;
pub mod simulate;
mod stamp;

use std::path::{Path, PathBuf};

use crate::cache::{Cache, Key};
use crate::diag::Diagnostic;
use crate::manifest::project::Project;

/// Lays the board files that are part of the program out in the cache, once per version of them, and returns the folder.
///
/// # Errors
/// `GW0111` if the cache cannot be written.
pub fn shipped_boards(cache: &Cache) -> Result<PathBuf, Diagnostic> {
    let mut key = Key::new("boards");
    for (path, text) in crate::assets::BOARDS {
        key = key.field(path, text);
    }
    let dir = cache.root().join("boards").join(&key.finish()[..16]);
    if dir.is_dir() {
        return Ok(dir);
    }
    let lay = || -> std::io::Result<()> {
        let temp = cache.temp()?;
        for (path, text) in crate::assets::BOARDS {
            let file = temp.path().join(path);
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(file, text)?;
        }
        std::fs::create_dir_all(cache.root().join("boards"))?;
        // Another process may have been first; its files are the same.
        match std::fs::rename(temp.path(), &dir) {
            Err(_) if dir.is_dir() => Ok(()),
            other => other,
        }
    };
    lay().map_err(|e| Diagnostic::error("GW0111", format!("cannot write `{}`: {e}", dir.display())))?;
    Ok(dir)
}

/// Folder of a project's output: `--out`, or `build/<project>` in the working folder.
pub fn out_dir(project: &Project, out: Option<&Path>) -> PathBuf {
    out.map_or_else(|| Path::new("build").join(&project.name.value), Path::to_owned)
}
