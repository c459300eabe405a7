//! Embeds the HDL library, the templates and the board files, so that the binary stands alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("assets.rs");
    let mut code = String::new();
    for (name, folder, endings) in [
        ("HDL", root.join("hdl"), &["veryl"][..]),
        ("TEMPLATES", root.join("../templates"), &["tera", "hpp", "cpp", "h", "css", "vlt"][..]),
        ("BOARDS", root.join("../boards"), &["toml"][..]),
    ] {
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        walk(&folder, endings, &mut files);
        files.sort();
        writeln!(code, "/// Path below the folder, and text.\npub static {name}: &[(&str, &str)] = &[").expect("a string");
        for file in files {
            let below = file.strip_prefix(&folder).expect("a path below the folder").to_string_lossy().into_owned();
            writeln!(code, "    ({below:?}, include_str!({:?})),", file.to_string_lossy()).expect("a string");
        }
        code.push_str("];\n");
    }
    std::fs::write(out, code).expect("OUT_DIR is writable");
}

fn walk(folder: &Path, endings: &[&str], files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|n| n != "tests") {
                walk(&path, endings, files);
            }
        } else if path.extension().is_some_and(|e| endings.iter().any(|x| e == *x)) {
            files.push(path);
        }
    }
}
