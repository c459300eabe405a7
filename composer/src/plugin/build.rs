//! Builds plugin crates into components.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cargo_metadata::Message;

use super::answers::write_whole;
use super::error::PluginError;
use super::locate::{Origin, PluginCrate};
use super::{stamp, toolchain};

/// Lines of the compiler's own words in an error.
const LINES: usize = 40;

/// Makes a component of a core module that the SDK's bindings describe; a component stays as it is.
///
/// # Errors
/// GW0321 if the module does not fit the contract.
pub fn componentize(bytes: Vec<u8>) -> Result<Vec<u8>, PluginError> {
    // Byte 6 of the preamble is the layer: 0 for a core module.
    if bytes.get(..4) != Some(b"\0asm") || bytes.get(6) != Some(&0) {
        return Ok(bytes);
    }
    let encoded = wit_component::ComponentEncoder::default().validate(true).module(&bytes).and_then(|mut encoder| encoder.encode());
    encoded.map_err(|e| {
        PluginError::new("GW0321", format!("the module does not fit the plugin contract: {e:#}"))
            .help("call `gateweave_sdk::export!` once in `lib.rs`, and use nothing that needs an operating system")
    })
}

/// Builds crates, those of one workspace in one go, and keeps the components. The results are by folder. Only one build runs at a time on this cache.
pub fn build(plugins: &[&PluginCrate], progress: &dyn Fn(&str)) -> BTreeMap<PathBuf, Result<Vec<u8>, PluginError>> {
    let mut results = BTreeMap::new();
    let mut groups: BTreeMap<PathBuf, Vec<&PluginCrate>> = BTreeMap::new();
    for plugin in plugins {
        if let Origin::Crate(folder) = &plugin.origin {
            groups.entry(stamp::workspace_root(folder).unwrap_or_else(|| folder.clone())).or_default().push(plugin);
        }
    }
    for (root, group) in groups {
        // Components that another process makes while this one waits for the lock need no second build.
        match locked(&group, &root, progress) {
            Ok(built) => results.extend(built),
            Err(error) => results.extend(group.iter().map(|p| (p.path().to_owned(), Err(error.clone())))),
        }
    }
    results
}

type Built = BTreeMap<PathBuf, Result<Vec<u8>, PluginError>>;

fn locked(group: &[&PluginCrate], root: &Path, progress: &dyn Fn(&str)) -> Result<Built, PluginError> {
    let Some(cache) = group.first().map(|p| p.cache.join("plugins")) else { return Ok(Built::new()) };
    let io = |e: std::io::Error| PluginError::new("GW0321", format!("the cache `{}` cannot be used: {e}", cache.display()));
    std::fs::create_dir_all(&cache).map_err(io)?;
    let lock = std::fs::File::create(cache.join("build.lock")).map_err(io)?;
    if lock.try_lock().is_err() {
        progress("waiting for another build of plugins");
        lock.lock().map_err(io)?;
    }
    let mut results = Built::new();
    let mut stale = Vec::new();
    for plugin in group {
        let Some(path) = plugin.built()? else { continue };
        match std::fs::read(&path) {
            Ok(bytes) => {
                results.insert(plugin.path().to_owned(), Ok(bytes));
            }
            Err(_) => stale.push((*plugin, path)),
        }
    }
    if stale.is_empty() {
        return Ok(results);
    }
    let toolchain = toolchain::find(progress)?;
    if toolchain.build_std.is_some() && !cache.join("target").exists() {
        progress("building the standard library for WebAssembly first, once: about a minute");
    }
    let lock_file = || std::fs::read(root.join("Cargo.lock")).unwrap_or_default();
    let versions = lock_file();
    let names = stale.iter().map(|(p, _)| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ");
    progress(&format!("building {names}"));
    let target = cache.join("target");
    forget(&target, &stale);
    let modules = cargo(&toolchain, root, &target, &stale, progress)?;
    // Cargo writes the lock file that was missing or out of date, and it is part of what the component is made from.
    let relocked = lock_file() != versions;
    for (plugin, path) in stale {
        let path = if relocked { plugin.built()?.unwrap_or(path) } else { path };
        let result = match modules.get(plugin.path()) {
            Some(module) => std::fs::read(module)
                .map_err(|e| PluginError::new("GW0321", format!("{}: {e}", module.display())))
                .and_then(componentize)
                .and_then(|bytes| write_whole(&path, &bytes).map_err(io).map(|()| bytes)),
            None => Err(PluginError::new("GW0321", "the crate makes no WebAssembly module")
                .help("its Cargo.toml needs `[lib]` with `crate-type = [\"cdylib\"]`")),
        };
        results.insert(plugin.path().to_owned(), result);
    }
    Ok(results)
}

/// Makes cargo compile the stale crates, and what they depend on by path, whatever it remembers of them: two checkouts share its target folder,
/// a crate has the same name in both, and cargo compares times, so it would take the other checkout's build for this one's.
fn forget(target: &Path, stale: &[(&PluginCrate, PathBuf)]) {
    let folders = stale.iter().filter_map(|(p, _)| stamp::crate_folders(p.path()).ok()).flatten();
    let names: BTreeSet<String> =
        folders.filter_map(|f| stamp::manifest(&f)?.get("package")?.get("name")?.as_str().map(str::to_owned)).collect();
    let Ok(entries) = std::fs::read_dir(target.join("wasm32-unknown-unknown/release/.fingerprint")) else { return };
    for entry in entries.flatten() {
        let known = entry.file_name().to_string_lossy().rsplit_once('-').is_some_and(|(name, _)| names.contains(name));
        if known {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs cargo and returns the modules by folder of the crate.
fn cargo(
    toolchain: &toolchain::Toolchain,
    root: &Path,
    target: &Path,
    stale: &[(&PluginCrate, PathBuf)],
    progress: &dyn Fn(&str),
) -> Result<BTreeMap<PathBuf, PathBuf>, PluginError> {
    let mut command = toolchain.command(root);
    command.arg("build").args(toolchain.arguments()).arg("--target-dir").arg(target).arg("--message-format=json-render-diagnostics");
    for (plugin, _) in stale {
        // Two versions of one package may be members of one workspace.
        let package = plugin.version.as_ref().map_or_else(|| plugin.name.clone(), |v| format!("{}@{v}", plugin.name));
        command.args(["--package", &package]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| {
        PluginError::new("GW0320", format!("`{}` does not start: {e}", toolchain.cargo.display())).help("install Rust: https://rustup.rs")
    })?;
    let talk = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = pipe.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let mut names: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    let mut count = 0;
    for message in child.stdout.take().into_iter().flat_map(|pipe| Message::parse_stream(BufReader::new(pipe))) {
        let Ok(Message::CompilerArtifact(artifact)) = message else { continue };
        count += 1;
        progress(&format!("{count}: {}", artifact.target.name));
        let wasm = artifact.filenames.iter().find(|f| f.extension() == Some("wasm"));
        let plugin = stale.iter().find(|(p, _)| same_package(p, artifact.manifest_path.as_std_path()));
        if let (Some(wasm), Some((plugin, _))) = (wasm, plugin) {
            names.insert(plugin.path().to_owned(), wasm.clone().into_std_path_buf());
        }
    }
    let talk = talk.and_then(|t| t.join().ok()).unwrap_or_default();
    match child.wait() {
        Ok(status) if status.success() => Ok(names),
        _ => {
            let from = talk.find("error").map_or(0, |at| talk.get(..at).and_then(|t| t.rfind('\n')).map_or(0, |n| n + 1));
            let words: Vec<&str> = talk.get(from..).unwrap_or(&talk).lines().take(LINES).collect();
            Err(PluginError::new("GW0321", format!("the crate does not build:\n{}", words.join("\n"))))
        }
    }
}

fn same_package(plugin: &PluginCrate, manifest: &Path) -> bool {
    plugin.path().join("Cargo.toml").canonicalize().ok() == manifest.canonicalize().ok()
}
