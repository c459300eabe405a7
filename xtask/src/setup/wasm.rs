//! The standard library that plugins are compiled against (target `wasm32-unknown-unknown`).
//!
//! Three sources, in this order: the toolchain in use has it; rustup adds it; Debian's `-web` packages bring a compiler of their
//! own with its source. Where RUSTUP_AUTO_INSTALL=0 is set, rustup is left alone.

use super::Gap;
use crate::stage::Stage;
use crate::{places, run};
use std::path::Path;
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
/// Debian's compiler for WebAssembly, with the source of its standard library and the linker.
pub const DEBIAN: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-22"];

/// A gap where no source has it. Adds the target through rustup where that is allowed.
pub fn target(stage: &Stage) -> Option<Gap> {
    if in_toolchain() || debian_compiler() {
        return None;
    }
    let mut why = format!("plugins are compiled for {TARGET}");
    if run::on_path("rustup").is_some() && std::env::var_os("RUSTUP_AUTO_INSTALL").is_none_or(|value| value != "0") {
        stage.note(&format!("rustup target add {TARGET} (about 20 MB)"));
        let added = run::output(Command::new("rustup").args(["target", "add", TARGET]).current_dir(places::root()));
        match added {
            Ok(_) if in_toolchain() => return None,
            Ok(_) => why += "; rustup added it to another toolchain than the one in use",
            Err(error) => why += &format!("; {error:#}"),
        }
    }
    Some(Gap { what: format!("Rust's {TARGET} target"), why, packages: DEBIAN.to_vec(), remedy: None, guest_only: false })
}

/// Whether the toolchain in use has the target.
pub fn in_toolchain() -> bool {
    let sysroot = run::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(places::root()));
    sysroot.is_ok_and(|sysroot| Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("lib").is_dir())
}

/// Debian's own rustc and cargo with the library's source, all of one version.
fn debian_compiler() -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status} ${Version}\n"]).args(&DEBIAN[..3]);
    let Ok(lines) = run::output(&mut query) else { return false };
    let lines = lines.lines().collect::<Vec<_>>();
    let same = lines.iter().all(|line| line.starts_with("installed ") && Some(line) == lines.first());
    same && lines.len() == 3 && ["/usr/bin/rustc", "/usr/bin/cargo", "/usr/bin/wasm-ld-22"].iter().all(|file| Path::new(file).is_file())
}
