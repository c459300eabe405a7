//! Where the HDL is.

use std::path::{Path, PathBuf};

use gateweave::cache::Cache;
use gateweave::tools::{Origin, Talk, Tools, Verilator};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub fn library() -> PathBuf {
    root().join("composer/hdl")
}

/// Builds of benches survive between runs beside Cargo's own.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench")
}

pub fn verilator() -> Verilator {
    let tools = Tools::new(Cache::open().expect("a cache"), Origin::Pinned, Talk::Quiet).expect("tools.lock");
    tools.verilator().unwrap_or_else(|d| panic!("{}: {}", d.code, d.message))
}

/// Crates of plugins that have HDL.
pub fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root().join("plugins"))
        .expect("plugins/")
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.join("hdl").is_dir() && p.join("Cargo.toml").is_file())
        .collect();
    folders.sort();
    folders
}

/// Every `.veryl` file of the tree.
pub fn veryl_files() -> Vec<PathBuf> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|n| n != "target") {
                    walk(&path, files);
                }
            } else if path.extension().is_some_and(|e| e == "veryl") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    for folder in ["composer", "plugins", "projects", "templates"] {
        walk(&root().join(folder), &mut files);
    }
    files.sort();
    files
}
