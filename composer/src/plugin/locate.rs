//! Finds plugins in folders, and their components.

use std::path::{Path, PathBuf};

use toml_edit::Item;

use super::build;
use super::error::PluginError;
use super::stamp;

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A crate with `[package.metadata.gateweave]`, in this folder.
    Crate(PathBuf),
    /// A component, or a core module that can become one, in this file.
    File(PathBuf),
}

/// A plugin that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginCrate {
    /// Name, as in `plugin = "..."`: of the package, or of the file.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Version in the crate's manifest; `None` for files, which say it themselves.
    pub version: Option<String>,
    /// Gateweave's cache.
    pub cache: PathBuf,
}

/// A semantic version.
pub type Version = cargo_metadata::semver::Version;

/// Reads a semantic version.
pub fn version(text: &str) -> Option<Version> {
    Version::parse(text).ok()
}

/// GW0324: two plugins of one name and version.
pub fn twins(name: &str, version: &str, a: &Path, b: &Path) -> PluginError {
    let (a, b) = (a.display().to_string(), b.display().to_string());
    let (first, second) = if a <= b { (a, b) } else { (b, a) };
    PluginError::new("GW0324", format!("two plugins are named `{name}` and have version {version}: `{first}` and `{second}`"))
        .help("remove one of them, or give it another version")
}

impl PluginCrate {
    /// Folder or file.
    pub fn path(&self) -> &Path {
        match &self.origin {
            Origin::Crate(path) | Origin::File(path) => path,
        }
    }

    /// Where the built component is kept; the name is the hash of what it is built from. `None` for files.
    ///
    /// # Errors
    /// GW0322 if the crate cannot be read.
    pub fn built(&self) -> Result<Option<PathBuf>, PluginError> {
        let Origin::Crate(folder) = &self.origin else { return Ok(None) };
        let cache = self.cache.join("plugins");
        let hash = stamp::crate_hash(&cache, folder)
            .map_err(|e| PluginError::new("GW0322", format!("the crate of plugin `{}` cannot be read: {e}", self.name)))?;
        Ok(Some(cache.join("components").join(format!("{}-{hash}.wasm", self.name))))
    }

    /// Every file that the component is made from.
    ///
    /// # Errors
    /// GW0322 if the crate cannot be read.
    pub fn sources(&self) -> Result<Vec<PathBuf>, PluginError> {
        let Origin::Crate(folder) = &self.origin else { return Ok(vec![self.path().to_owned()]) };
        stamp::crate_files(folder)
            .map_err(|e| PluginError::new("GW0322", format!("the crate of plugin `{}` cannot be read: {e}", self.name)))
    }

    /// Parameters for trying the plugin: `example` in `[package.metadata.gateweave]`, for what has no default. An empty object
    /// where the crate says nothing.
    pub fn example(&self) -> serde_json::Value {
        let empty = || serde_json::Value::Object(serde_json::Map::new());
        let Origin::Crate(folder) = &self.origin else { return empty() };
        let Some(manifest) = stamp::manifest(folder) else { return empty() };
        let example =
            manifest.get("package").and_then(|p| p.get("metadata")).and_then(|m| m.get("gateweave")).and_then(|g| g.get("example"));
        let Some(example) = example else { return empty() };
        // As TOML text of its own, so that every kind of value is converted in one way.
        let mut document = toml_edit::DocumentMut::new();
        document.insert("example", example.clone());
        toml_edit::de::from_str::<serde_json::Value>(&document.to_string())
            .ok()
            .and_then(|mut value| value.get_mut("example").map(serde_json::Value::take))
            .unwrap_or_else(empty)
    }

    /// The component. Builds the crate if the one that is kept was made from other sources.
    ///
    /// # Errors
    /// GW0320 (no compiler), GW0321 (does not build), GW0322 (cannot be read).
    pub fn component(&self, progress: &dyn Fn(&str)) -> Result<Vec<u8>, PluginError> {
        match self.built()? {
            None => {
                let bytes =
                    std::fs::read(self.path()).map_err(|e| PluginError::new("GW0322", format!("{}: {e}", self.path().display())))?;
                build::componentize(bytes)
            }
            Some(path) => {
                if let Ok(bytes) = std::fs::read(&path) {
                    return Ok(bytes);
                }
                build::build(&[self], progress)
                    .remove(self.path())
                    .unwrap_or_else(|| Err(PluginError::new("GW0321", "cargo built nothing")))
            }
        }
    }
}

/// All plugins directly below `folders`: subfolders whose `Cargo.toml` has `[package.metadata.gateweave]`, and `*.wasm` files.
/// Sorted by name, then by version.
///
/// # Errors
/// GW0322 for a folder that cannot be read, GW0324 for two crates of one name and version.
pub fn locate(folders: &[PathBuf], cache: &Path) -> Result<Vec<PluginCrate>, Vec<PluginError>> {
    let mut found: Vec<PluginCrate> = Vec::new();
    let mut errors = Vec::new();
    for folder in folders {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) => {
                errors.push(PluginError::new("GW0322", format!("the plugin folder `{}` cannot be read: {e}", folder.display())));
                continue;
            }
        };
        for path in entries.filter_map(Result::ok).map(|e| e.path()) {
            let Some((name, origin)) = plugin_at(&path) else { continue };
            let plugin = PluginCrate { name, version: crate_version(&origin), origin, cache: cache.to_owned() };
            let same = |other: &&PluginCrate| other.path().canonicalize().ok() == plugin.path().canonicalize().ok();
            if found.iter().any(|other| same(&other)) {
                continue;
            }
            let twin = found.iter().find(|o| o.name == plugin.name && o.version.is_some() && o.version == plugin.version);
            if let (Some(twin), Some(version)) = (twin, &plugin.version) {
                errors.push(twins(&plugin.name, version, twin.path(), plugin.path()));
                continue;
            }
            found.push(plugin);
        }
    }
    let order = |p: &PluginCrate| (p.name.clone(), p.version.as_deref().and_then(version), p.path().to_owned());
    found.sort_by_key(order);
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// `package.version` of a crate, its own or that of the workspace.
fn crate_version(origin: &Origin) -> Option<String> {
    let Origin::Crate(folder) = origin else { return None };
    let own = stamp::manifest(folder)?;
    let field = own.get("package")?.get("version")?;
    if let Some(text) = field.as_str() {
        return Some(text.to_owned());
    }
    let root = stamp::manifest(&stamp::workspace_root(folder)?)?;
    root.get("workspace")?.get("package")?.get("version")?.as_str().map(str::to_owned)
}

/// The plugin that a folder or file is, if it is one.
fn plugin_at(path: &Path) -> Option<(String, Origin)> {
    if path.is_dir() {
        let manifest = stamp::manifest(path)?;
        let package = manifest.get("package")?;
        package.get("metadata")?.get("gateweave")?;
        let name = package.get("name").and_then(Item::as_str)?;
        return Some((name.to_owned(), Origin::Crate(path.to_owned())));
    }
    let name = path.file_name()?.to_str()?.strip_suffix(".wasm")?;
    Some((name.to_owned(), Origin::File(path.to_owned())))
}

/// The plugin crate at `path` itself, or, where `path` is a folder of plugins, all in it.
///
/// # Errors
/// As [`locate`]; GW0322 if there is none.
pub fn at(path: &Path, cache: &Path) -> Result<Vec<PluginCrate>, Vec<PluginError>> {
    if let Some((name, origin)) = plugin_at(path) {
        return Ok(vec![PluginCrate { name, version: crate_version(&origin), origin, cache: cache.to_owned() }]);
    }
    let found = locate(&[path.to_owned()], cache)?;
    if found.is_empty() {
        return Err(vec![
            PluginError::new("GW0322", format!("there is no plugin in `{}`", path.display()))
                .help("a plugin is a crate with `[package.metadata.gateweave]` in its Cargo.toml, or a `.wasm` file"),
        ]);
    }
    Ok(found)
}

/// Builds all stale crates of `plugins`, those of one workspace in one go. Returns how many were stale.
///
/// # Errors
/// One error for each plugin that did not build.
pub fn build_stale(plugins: &[PluginCrate], progress: &dyn Fn(&str)) -> Result<usize, Vec<(PluginCrate, PluginError)>> {
    let mut stale = Vec::new();
    let mut errors = Vec::new();
    for plugin in plugins {
        match plugin.built() {
            Ok(Some(path)) if !path.is_file() => stale.push(plugin),
            Ok(_) => {}
            Err(error) => errors.push((plugin.clone(), error)),
        }
    }
    let mut results = build::build(&stale, progress);
    for plugin in &stale {
        if let Some(Err(error)) = results.remove(plugin.path()) {
            errors.push(((*plugin).clone(), error));
        }
    }
    if errors.is_empty() { Ok(stale.len()) } else { Err(errors) }
}
