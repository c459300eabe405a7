//! The cache folder: what was fetched, compiled or computed once and is used again.
//!
//! Its place is `$GATEWEAVE_CACHE`, else `$XDG_CACHE_HOME/gateweave`, else
//! `~/.cache/gateweave`. Everything in it can be deleted at any time; whatever
//! is missing or damaged is made again. Files appear by rename, so a reader sees
//! the whole of a file or none of it, and long jobs hold a file lock, so two
//! processes never do the same job at once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs4::fs_std::FileExt;
use sha2::{Digest, Sha256};

use crate::diag::Diagnostic;

/// SHA-256 of some bytes as 64 lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a file's content, read in pieces.
///
/// # Errors
/// Those of reading the file.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Builds the key of a computation from everything that its result depends on.
///
/// Each field is hashed with its name and length, so that no two lists of
/// fields give one key by running into each other.
#[derive(Clone)]
pub struct Key(Sha256);

impl Key {
    /// Starts the key of a computation of this `kind`.
    pub fn new(kind: &str) -> Self {
        Self(Sha256::new()).field("kind", kind)
    }

    /// Adds one input.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        for part in [name.as_bytes(), value.as_ref()] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
        self
    }

    /// The key: 64 lower-case hexadecimal digits.
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Writes a file so that it appears whole or not at all.
///
/// # Errors
/// Those of creating the temporary file beside it and of renaming it.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    // Temporary files are made for their owner only; a cache entry has ordinary permissions.
    let mode = fs::Permissions::from(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    file.as_file().set_permissions(mode)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// A lock on a name in the cache, given up when dropped (or when the process ends).
#[derive(Debug)]
pub struct Lock(#[allow(dead_code)] File);

/// The cache folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

/// What [`Cache::step`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Folder with the products. Do not write into it.
    pub folder: PathBuf,
    /// Whether they were there already.
    pub cached: bool,
    /// Seconds of wall time that making them took, now or when they were made.
    pub seconds: f64,
}

impl Cache {
    /// The cache folder of this user.
    ///
    /// # Errors
    /// `GW0601` where no place is known for it, or it cannot be made or written to.
    pub fn open() -> Result<Self, Diagnostic> {
        let from = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let root = from("GATEWEAVE_CACHE")
            .or_else(|| from("XDG_CACHE_HOME").map(|p| p.join("gateweave")))
            .or_else(|| from("HOME").map(|p| p.join(".cache/gateweave")))
            .ok_or_else(|| {
                Diagnostic::error("GW0601", "no folder for the cache is known: neither GATEWEAVE_CACHE nor HOME is set")
                    .help("set GATEWEAVE_CACHE to a folder that may grow to about 1 GB")
            })?;
        Self::at(root)
    }

    /// A cache in a folder of the caller's choice.
    ///
    /// # Errors
    /// `GW0601` where it cannot be made or written to.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, Diagnostic> {
        let root = root.into();
        let cache = Self { root: std::path::absolute(&root).unwrap_or(root) };
        let made = cache.dir("tmp").and_then(|tmp| {
            sweep(&tmp);
            tempfile::Builder::new().prefix("probe-").tempfile_in(&tmp).map(drop)
        });
        match made {
            Ok(()) => Ok(cache),
            Err(e) => Err(cache.trouble(&e)),
        }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `GW0601` for an error of reading or writing the cache.
    pub fn trouble(&self, error: &io::Error) -> Diagnostic {
        Diagnostic::error("GW0601", format!("the cache folder `{}` cannot be used: {error}", self.root.display()))
            .help("make it writable and give it space, or set GATEWEAVE_CACHE to another folder")
    }

    /// A folder in the cache, made if need be.
    ///
    /// # Errors
    /// Those of making it.
    pub fn dir(&self, area: &str) -> io::Result<PathBuf> {
        let path = self.root.join(area);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// A temporary folder on the same file system, deleted when dropped.
    ///
    /// # Errors
    /// Those of making it.
    pub fn temp(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix("t-").tempdir_in(self.dir("tmp")?)
    }

    /// Takes the lock of a name, waiting for whoever has it. Calls `waiting` once before it waits.
    ///
    /// # Errors
    /// Those of making and locking the lock file.
    pub fn lock(&self, name: &str, waiting: impl FnOnce()) -> io::Result<Lock> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(self.dir("locks")?.join(name))?;
        if !FileExt::try_lock_exclusive(&file)? {
            waiting();
            FileExt::lock_exclusive(&file)?;
        }
        Ok(Lock(file))
    }

    /// Stores an answer under the key of its question.
    ///
    /// # Errors
    /// Those of writing.
    pub fn put(&self, area: &str, key: &str, bytes: &[u8]) -> io::Result<()> {
        let mut framed = sha256(bytes).into_bytes();
        framed.push(b'\n');
        framed.extend_from_slice(bytes);
        write_atomic(&self.place(area, key)?, &framed)
    }

    /// The answer to a question, if it is known and undamaged.
    pub fn get(&self, area: &str, key: &str) -> Option<Vec<u8>> {
        let path = self.place(area, key).ok()?;
        let mut framed = fs::read(&path).ok()?;
        let sound = framed.len() > 64 && framed[64] == b'\n' && sha256(&framed[65..]).as_bytes() == &framed[..64];
        if !sound {
            let _ = fs::remove_file(&path);
            return None;
        }
        framed.drain(..65);
        Some(framed)
    }

    fn place(&self, area: &str, key: &str) -> io::Result<PathBuf> {
        if key.len() < 8 || !key.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a cache key is a hash in hexadecimal"));
        }
        Ok(self.dir(area)?.join(&key[..2]).join(&key[2..]))
    }

    /// The products of a computation, made by `make` in an empty folder if they are not there.
    ///
    /// `make` runs under the key's lock. What it leaves in the folder is kept
    /// only if it returns `Ok`; each file is checked against its hash when it is
    /// used again, and a damaged entry is made anew. `area` keeps at most
    /// `keep` entries; the longest unused go first.
    ///
    /// # Errors
    /// What `make` returns, or `GW0601`.
    pub fn step<E: From<Diagnostic>>(
        &self,
        area: &str,
        key: &str,
        keep: usize,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Stored, E> {
        let io = |e: io::Error| E::from(self.trouble(&e));
        let home = self.dir(area).map_err(io)?;
        let folder = home.join(key);
        if let Some(seconds) = check(&folder) {
            return Ok(Stored { folder, cached: true, seconds });
        }
        let _lock = self.lock(&format!("{area}-{key}"), || {}).map_err(io)?;
        if let Some(seconds) = check(&folder) {
            return Ok(Stored { folder, cached: true, seconds });
        }
        let work = self.temp().map_err(io)?;
        let start = std::time::Instant::now();
        make(work.path())?;
        let seconds = start.elapsed().as_secs_f64();
        let finished = seal(work.path(), seconds).and_then(|()| {
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            fs::rename(work.keep(), &folder)
        });
        finished.map_err(io)?;
        prune(&home, keep);
        Ok(Stored { folder, cached: false, seconds })
    }
}

/// Name of the file in a step's folder that lists its products.
const SEAL: &str = ".sealed";

fn seal(folder: &Path, seconds: f64) -> io::Result<()> {
    let mut text = format!("{seconds:.3}\n");
    for (name, path) in files(folder)? {
        text.push_str(&format!("{} {name}\n", sha256_file(&path)?));
    }
    fs::write(folder.join(SEAL), text)
}

/// Seconds that the products of a step took, if all of them are there as they were sealed.
fn check(folder: &Path) -> Option<f64> {
    let text = fs::read_to_string(folder.join(SEAL)).ok()?;
    let mut lines = text.lines();
    let seconds = lines.next()?.parse().ok()?;
    for line in lines {
        let (hash, name) = line.split_once(' ')?;
        if sha256_file(&folder.join(name)).ok()? != hash {
            return None;
        }
    }
    // The seal's time is the time of last use, which pruning goes by.
    if let Ok(file) = File::options().append(true).open(folder.join(SEAL)) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(seconds)
}

/// All files below a folder with their relative names, sorted.
fn files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), folder.to_path_buf())];
    while let Some((prefix, folder)) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                open.push((format!("{name}/"), entry.path()));
            } else if name != SEAL {
                found.push((name, entry.path()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Deletes the longest unused entries above `keep`. Failing to is no harm.
fn prune(home: &Path, keep: usize) {
    let Ok(entries) = fs::read_dir(home) else { return };
    let mut entries: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|e| {
            let path = e.ok()?.path();
            Some((fs::metadata(path.join(SEAL)).ok()?.modified().ok()?, path))
        })
        .collect();
    entries.sort();
    let excess = entries.len().saturating_sub(keep);
    for (_, path) in &entries[..excess] {
        let _ = fs::remove_dir_all(path);
    }
}

/// Deletes what processes that were killed left in the folder for temporary things.
fn sweep(tmp: &Path) {
    const OLD: Duration = Duration::from_secs(2 * 24 * 3600);
    for entry in fs::read_dir(tmp).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            let path = entry.path();
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("c")).unwrap();
        (folder, cache)
    }

    #[test]
    fn a_key_depends_on_where_fields_end() {
        let one = Key::new("t").field("a", "bc").finish();
        let other = Key::new("t").field("ab", "c").finish();
        assert_ne!(one, other);
        assert_eq!(one, Key::new("t").field("a", b"bc").finish());
        assert_eq!(one.len(), 64);
    }

    #[test]
    fn sha256_of_a_file_is_that_of_its_bytes() {
        let (folder, _) = cache();
        let path = folder.path().join("f");
        fs::write(&path, b"abc").unwrap();
        assert_eq!(sha256_file(&path).unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256_file(&path).unwrap(), sha256(b"abc"));
    }

    #[test]
    fn a_damaged_answer_is_no_answer() {
        let (_folder, cache) = cache();
        let key = Key::new("t").finish();
        assert_eq!(cache.get("answers", &key), None);
        cache.put("answers", &key, b"forty-two").unwrap();
        assert_eq!(cache.get("answers", &key).as_deref(), Some(&b"forty-two"[..]));
        let path = cache.place("answers", &key).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.get("answers", &key), None);
        assert!(cache.put("answers", "../x", b"").is_err());
    }

    #[test]
    fn a_step_is_made_once_and_again_when_damaged() {
        let (_folder, cache) = cache();
        let key = Key::new("t").finish();
        let mut made = 0;
        let mut run = || {
            cache
                .step::<Diagnostic>("steps", &key, 8, |folder| {
                    made += 1;
                    fs::create_dir(folder.join("sub")).unwrap();
                    fs::write(folder.join("sub/out"), "x").unwrap();
                    Ok(())
                })
                .unwrap()
        };
        assert!(!run().cached);
        let stored = run();
        assert!(stored.cached);
        fs::write(stored.folder.join("sub/out"), "y").unwrap();
        assert!(!run().cached);
        assert_eq!(fs::read_to_string(stored.folder.join("sub/out")).unwrap(), "x");
        assert_eq!(made, 2);
    }

    #[test]
    fn a_failed_step_leaves_nothing_and_old_ones_go() {
        let (_folder, cache) = cache();
        let key = |n: u32| Key::new("t").field("n", n.to_string()).finish();
        let failed = cache.step::<Diagnostic>("steps", &key(0), 2, |_| Err(Diagnostic::error("GW0610", "no")));
        assert_eq!(failed.unwrap_err().code, "GW0610");
        for n in 0..4 {
            let stored = cache.step::<Diagnostic>("steps", &key(n), 2, |_| Ok(())).unwrap();
            let seal = File::options().append(true).open(stored.folder.join(SEAL)).unwrap();
            seal.set_modified(SystemTime::now() - Duration::from_secs(100 - u64::from(n))).unwrap();
        }
        let left: Vec<bool> = (0..4).map(|n| cache.root().join("steps").join(key(n)).exists()).collect();
        assert_eq!(left, [false, false, true, true]);
    }

    #[test]
    fn an_unusable_folder_is_gw0601() {
        let (folder, _) = cache();
        fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(Cache::at(folder.path().join("file")).unwrap_err().code, "GW0601");
    }
}
