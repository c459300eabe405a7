//! Debian packages without root: which ones a guest needs, fetched and unpacked into a folder.
//!
//! apt's own resolver is asked what it would install on an empty machine (`--print-uris` with an empty status file); it
//! needs no root and no lock, and gives names, versions and sizes. apt checks the hashes of what it downloads.

use crate::run;
use crate::stage::Stage;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A package as apt would fetch it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// Bytes to download.
    pub size: u64,
}

/// All packages that `roots` need, themselves included, sorted by name.
pub fn closure(roots: &[&str]) -> Result<Vec<Package>> {
    let folder = tempfile::tempdir()?;
    let status = folder.path().join("status");
    std::fs::write(&status, "")?;
    // An empty archive folder as well: apt leaves out what it has already downloaded.
    let archives = folder.path().join("archives");
    std::fs::create_dir_all(archives.join("partial"))?;
    let mut command = Command::new("apt-get");
    command.args(["install", "--print-uris", "--yes", "-qq", "--no-install-recommends", "-o", "Debug::NoLocking=1", "-o"]);
    command.arg(format!("Dir::State::status={}", status.display()));
    command.arg("-o").arg(format!("Dir::Cache::archives={}", archives.display())).args(roots).env("LC_ALL", "C");
    let output = run::output(&mut command)?;
    let mut packages = output.lines().filter_map(parse).collect::<Vec<_>>();
    if packages.is_empty() {
        bail!("apt names no files for: {}", roots.join(" "));
    }
    packages.sort();
    packages.dedup();
    Ok(packages)
}

/// As [`closure`]; where the package lists are missing or old, root updates them once, a plain user is told how to.
pub fn closure_with_update(roots: &[&str], stage: &Stage) -> Result<Vec<Package>> {
    let first = match closure(roots) {
        Ok(packages) => return Ok(packages),
        Err(error) => error,
    };
    if !run::is_root() {
        return Err(first.context("apt's package lists are missing or too old; run once: sudo apt-get update"));
    }
    stage.say("apt-get update (the package lists are missing)");
    run::output(Command::new("apt-get").args(["update", "-qq"]))?;
    closure(roots)
}

/// `'http://.../foo_1%3a2-3_amd64.deb' foo_1%3a2-3_amd64.deb 1234 SHA256:...`
fn parse(line: &str) -> Option<Package> {
    let mut words = line.split_whitespace();
    let (_, file, size) = (words.next()?, words.next()?, words.next()?);
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(Package { name: name.to_string(), version: version.replace("%3a", ":").replace("%2b", "+"), size: size.parse().ok()? })
}

/// Downloads `packages` and unpacks all of them into `root`. Nothing is installed: no script of a package runs.
pub fn unpack(packages: &[Package], root: &Path, stage: &Stage) -> Result<()> {
    let folder = tempfile::tempdir_in(root.parent().context("the target folder has no parent")?)?;
    let bytes = packages.iter().map(|package| package.size).sum::<u64>();
    stage.say(&format!("downloading {} Debian packages, {:.1} MB", packages.len(), bytes as f64 / 1e6));
    let mut command = Command::new("apt-get");
    command.args(["download", "-qq", "-o", "APT::Sandbox::User=root"]).current_dir(folder.path()).env("LC_ALL", "C");
    command.args(packages.iter().map(|package| format!("{}={}", package.name, package.version)));
    run::output(&mut command).context("downloading packages for the Linux guest")?;
    let mut files = std::fs::read_dir(folder.path())?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    stage.say(&format!("unpacking {} Debian packages", files.len()));
    for file in files {
        run::output(Command::new("dpkg-deb").arg("-x").args([&file, &root.to_path_buf()]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_apt() {
        let line = "'http://deb.debian.org/debian/pool/main/i/iputils/iputils-ping_20221126-1+deb12u1_amd64.deb' \
                    iputils-ping_3%3a20221126-1+deb12u1_amd64.deb 47172 SHA256:00";
        let expected = Package { name: "iputils-ping".into(), version: "3:20221126-1+deb12u1".into(), size: 47172 };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("NOTE: This is only a simulation!"), None);
        assert_eq!(parse(""), None);
    }
}
