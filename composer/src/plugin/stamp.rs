//! What a plugin crate is made of, as one hash.
//!
//! Content decides. So that an unchanged crate costs a few `stat` calls, the hash of a folder is kept with size, times and inode
//! of each of its files, and trusted while they are the same.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item, TableLike};

use super::answers::write_whole;
use super::host::sha256;

/// A file changed this shortly before it was hashed could change again without a trace.
const SETTLE_NS: i128 = 50_000_000;
/// Most files of a crate.
const FILES: usize = 10_000;

/// What was hashed, and the hash.
#[derive(Serialize, Deserialize)]
struct Stamp {
    /// Folders whose files count: the crate, and those that it depends on by path.
    folders: Vec<PathBuf>,
    /// The workspace's manifest and lock file.
    singles: Vec<PathBuf>,
    files: Vec<Seen>,
    hash: String,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Seen {
    path: PathBuf,
    size: u64,
    modified: i128,
    changed: i128,
    inode: u64,
}

/// Hash of a crate with the crates that it depends on by path, its workspace's manifest and lock file.
///
/// # Errors
/// In words, if a file cannot be read.
pub fn crate_hash(cache: &Path, folder: &Path) -> Result<String, String> {
    let folder = folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))?;
    let store = cache.join("stamps").join(format!("{}.json", sha256(folder.as_os_str().as_encoded_bytes())));
    if let Some(stamp) = std::fs::read(&store).ok().and_then(|text| serde_json::from_slice::<Stamp>(&text).ok()) {
        if look(&stamp.folders, &stamp.singles).is_ok_and(|files| files == stamp.files) {
            return Ok(stamp.hash);
        }
    }
    let (folders, singles) = parts(&folder)?;
    let files = look(&folders, &singles)?;
    let hash = content(&folders, &singles, &files)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i128);
    if files.iter().all(|f| f.changed + SETTLE_NS < now) {
        let stamp = Stamp { folders, singles, files, hash: hash.clone() };
        if let Ok(text) = serde_json::to_vec(&stamp) {
            let _ = write_whole(&store, &text);
        }
    }
    Ok(hash)
}

/// The files that [`crate_hash`] is over.
///
/// # Errors
/// In words, if a folder cannot be read.
pub fn crate_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))?;
    let (folders, singles) = parts(&folder)?;
    Ok(look(&folders, &singles)?.into_iter().map(|f| f.path).collect())
}

/// The crate's folder and those of the crates that it depends on by path.
///
/// # Errors
/// In words, if a folder cannot be read.
pub fn crate_folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(parts(folder)?.0)
}

/// Folders whose files count, and single files beside them.
fn parts(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), String> {
    let mut folders = BTreeSet::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        let next = next.canonicalize().map_err(|e| format!("{}: {e}", next.display()))?;
        if folders.insert(next.clone()) {
            waiting.extend(path_dependencies(&next));
        }
    }
    let singles = workspace_root(folder).map_or(Vec::new(), |root| ["Cargo.toml", "Cargo.lock"].map(|n| root.join(n)).to_vec());
    Ok((folders.into_iter().collect(), singles))
}

/// All files that count, in order.
fn look(folders: &[PathBuf], singles: &[PathBuf]) -> Result<Vec<Seen>, String> {
    let mut files = Vec::new();
    for folder in folders {
        list(folder, folder, &mut files)?;
    }
    for path in singles {
        if let Ok(meta) = std::fs::metadata(path) {
            files.push(seen(path.clone(), &meta));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The hash of the texts, each under its path within its folder, so that where a checkout lies does not matter.
fn content(folders: &[PathBuf], singles: &[PathBuf], files: &[Seen]) -> Result<String, String> {
    let mut parts = Vec::new();
    for file in files {
        let text = std::fs::read(&file.path).map_err(|e| format!("{}: {e}", file.path.display()))?;
        let text = sha256(&text);
        if singles.contains(&file.path) {
            parts.push(format!("{text} workspace {}", file.path.file_name().unwrap_or_default().display()));
        }
        for folder in folders {
            if let Ok(inner) = file.path.strip_prefix(folder) {
                parts.push(format!("{text} {}/{}", folder.file_name().unwrap_or_default().display(), inner.display()));
            }
        }
    }
    parts.sort();
    Ok(sha256(parts.join("\n").as_bytes()))
}

/// Folder of the manifest with `[workspace]` that `folder`'s crate belongs to.
pub fn workspace_root(folder: &Path) -> Option<PathBuf> {
    let own = manifest(folder)?;
    if own.get("workspace").is_some() {
        return Some(folder.to_owned());
    }
    if let Some(named) = own.get("package").and_then(|p| p.get("workspace")).and_then(Item::as_str) {
        return folder.join(named).canonicalize().ok();
    }
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().skip(1).find(|a| manifest(a).is_some_and(|m| m.get("workspace").is_some())).map(Path::to_owned)
}

/// A folder's `Cargo.toml`.
pub fn manifest(folder: &Path) -> Option<DocumentMut> {
    std::fs::read_to_string(folder.join("Cargo.toml")).ok()?.parse().ok()
}

fn path_dependencies(folder: &Path) -> Vec<PathBuf> {
    let Some(own) = manifest(folder) else { return Vec::new() };
    let root = workspace_root(folder);
    let shared = root.as_deref().and_then(manifest);
    let mut found = Vec::new();
    for table in ["dependencies", "build-dependencies"] {
        for (name, item) in own.get(table).and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter) {
            if let Some(path) = item.get("path").and_then(Item::as_str) {
                found.push(folder.join(path));
            } else if item.get("workspace").and_then(Item::as_bool) == Some(true) {
                let entry = shared.as_ref().and_then(|s| s.get("workspace")?.get("dependencies")?.get(name)?.get("path")?.as_str());
                found.extend(entry.zip(root.as_ref()).map(|(path, root)| root.join(path)));
            }
        }
    }
    found
}

fn list(root: &Path, folder: &Path, files: &mut Vec<Seen>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || name == "target" {
            continue;
        }
        let path = entry.path();
        let meta = entry.metadata().map_err(|e| format!("{}: {e}", path.display()))?;
        if meta.is_dir() {
            list(root, &path, files)?;
        } else if meta.is_file() {
            if files.len() >= FILES {
                return Err(format!("{}: more than {FILES} files", root.display()));
            }
            files.push(seen(path, &meta));
        }
    }
    Ok(())
}

fn seen(path: PathBuf, meta: &std::fs::Metadata) -> Seen {
    Seen {
        path,
        size: meta.len(),
        modified: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
        changed: i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec()),
        inode: meta.ino(),
    }
}
