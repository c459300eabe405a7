//! Finds the compiler for plugin crates.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::PluginError;

/// The target of plugins: no WASI, so nothing to import.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A compiler that can make components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The cargo to call.
    pub cargo: PathBuf,
    /// The rustc that it must use.
    pub rustc: PathBuf,
    /// Where the standard library has to be built from source: the linker to use with it.
    pub build_std: Option<PathBuf>,
}

impl Toolchain {
    /// A cargo call in `folder` with nothing inherited that would change what is built.
    pub fn command(&self, folder: &Path) -> Command {
        let mut command = clean(&self.cargo);
        let cargo_home = std::env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
            .unwrap_or_default();
        // Panics name files; the same ones everywhere.
        let remap = format!("--remap-path-prefix={}=registry", cargo_home.join("registry/src").display());
        command.current_dir(folder).env("RUSTC", &self.rustc).env("RUSTFLAGS", remap);
        if let Some(linker) = &self.build_std {
            command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
            if let (Some(folder), Some(path)) = (self.cargo.parent(), std::env::var_os("PATH")) {
                let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
                if let Ok(path) = std::env::join_paths(folders) {
                    command.env("PATH", path);
                }
            }
        }
        command
    }

    /// Arguments that every build needs.
    pub fn arguments(&self) -> Vec<&'static str> {
        let mut arguments = vec!["--release", "--target", TARGET];
        if self.build_std.is_some() {
            arguments.push("-Zbuild-std=std,panic_abort");
        }
        arguments
    }
}

/// Finds a toolchain: rustc on PATH with the target's standard library, else rustup adds the target (unless
/// `RUSTUP_AUTO_INSTALL=0` is set), else the distribution's rustc with its library source and lld.
///
/// # Errors
/// GW0320 with what to install.
pub fn find(progress: &dyn Fn(&str)) -> Result<Toolchain, PluginError> {
    let ordinary = Toolchain { cargo: "cargo".into(), rustc: "rustc".into(), build_std: None };
    if has_target(&ordinary.rustc) {
        return Ok(ordinary);
    }
    let rustup_may = std::env::var_os("RUSTUP_AUTO_INSTALL").is_none_or(|v| v != "0");
    let mut tried = String::new();
    if rustup_may && on_path("rustup").is_some() {
        progress("rustup target add wasm32-unknown-unknown");
        let output = clean(Path::new("rustup")).args(["target", "add", TARGET]).output();
        if output.is_ok_and(|o| o.status.success()) && has_target(&ordinary.rustc) {
            return Ok(ordinary);
        }
        tried = " (`rustup target add wasm32-unknown-unknown` did not help)".into();
    }
    if let Some(found) = distribution(Path::new("/usr")) {
        return Ok(found);
    }
    let rustup = "`rustup target add wasm32-unknown-unknown`";
    let debian = "`apt-get install rustc-web cargo-web rust-web-src lld-22`";
    Err(PluginError::new("GW0320", format!("no Rust compiler here can build plugins: none has the standard library for {TARGET}{tried}"))
        .help(if rustup_may {
            format!("{rustup}, or on Debian {debian}")
        } else {
            format!("on Debian {debian} (RUSTUP_AUTO_INSTALL=0 is set, so rustup is left alone)")
        }))
}

/// The distribution's compiler below `root` (`/usr`).
fn distribution(root: &Path) -> Option<Toolchain> {
    let (cargo, rustc) = (root.join("bin/cargo"), root.join("bin/rustc"));
    if !cargo.is_file() || !rustc.is_file() {
        return None;
    }
    if has_target(&rustc) {
        return Some(Toolchain { cargo, rustc, build_std: None });
    }
    let sysroot = sysroot(&rustc)?;
    // Compiler and library must be one version: this is the source that came with this compiler.
    if !sysroot.join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file() {
        return None;
    }
    let linker = wasm_ld()?;
    Some(Toolchain { cargo, rustc, build_std: Some(linker) })
}

/// `wasm-ld` from PATH, else the newest of `/usr/lib/llvm-*`.
fn wasm_ld() -> Option<PathBuf> {
    let newest = || {
        let folders = std::fs::read_dir("/usr/lib").ok()?;
        let version = |name: &str| name.strip_prefix("llvm-")?.parse::<u32>().ok();
        folders
            .filter_map(Result::ok)
            .filter_map(|f| Some((version(f.file_name().to_str()?)?, f.path().join("bin/wasm-ld"))))
            .filter(|(_, path)| path.is_file())
            .max()
            .map(|(_, path)| path)
    };
    on_path("wasm-ld").or_else(newest)
}

fn has_target(rustc: &Path) -> bool {
    sysroot(rustc).is_some_and(|root| {
        std::fs::read_dir(root.join("lib/rustlib").join(TARGET).join("lib"))
            .is_ok_and(|files| files.filter_map(Result::ok).any(|f| f.file_name().to_string_lossy().starts_with("libstd-")))
    })
}

fn sysroot(rustc: &Path) -> Option<PathBuf> {
    let output = clean(rustc).args(["--print", "sysroot"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| PathBuf::from(text.trim()))
}

fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A command without inherited Rust and cargo variables, save for where they keep their files and what rustup may do.
fn clean(program: &Path) -> Command {
    const KEPT: [&str; 3] = ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_AUTO_INSTALL"];
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let rust =
            text.starts_with("RUST") || (text.starts_with("CARGO") && !text.starts_with("CARGO_NET_") && !text.starts_with("CARGO_HTTP_"));
        if rust && !KEPT.contains(&text.as_ref()) {
            command.env_remove(&name);
        }
    }
    command
}
