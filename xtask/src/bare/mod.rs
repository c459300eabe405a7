//! `cargo xtask bare-check`: both commands of the README in a bare Debian 12, as a plain user.
//!
//! Makes a minimal Debian with debootstrap in the cache (root is needed for this check only), installs in it exactly the packages
//! that the README lists, clones the committed state of this repository, and runs `cargo xtask demo` and `cargo xtask test` there.
//! The Rust toolchain of this machine is mounted read-only: the README says "has Rust", and how it came there is not under test.

use crate::stage::Stage;
use crate::{places, run, setup};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// What to run in the bare system.
pub struct Options {
    /// Command lines, each run in the clone.
    pub commands: Vec<String>,
    /// Run them as root with nothing installed but git and a linker, so that the set-up has to install the rest.
    pub root: bool,
    /// Leave the system in the cache for a look.
    pub keep: bool,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    ensure!(run::is_root(), "bare-check makes a Debian system with debootstrap and chroot, which needs root; nothing else does");
    let packages = if options.root { FOR_ROOT.map(str::to_string).to_vec() } else { of_readme()? };

    let stage = Stage::start("bare Debian 12");
    let folder = places::cache()?.join("bare");
    std::fs::create_dir_all(&folder)?;
    let base = base(&folder, &stage)?;
    let system = Removed { path: folder.join(format!("run-{}", std::process::id())), keep: options.keep };
    stage.say("copying the system");
    run::output(Command::new("cp").arg("-a").args([&base, &system.path]))?;
    clone(&system.path, options.root, &stage)?;
    let sysroot = run::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(places::root()))?;
    stage.done("");

    let inside = Inside { system: &system.path, rust: Path::new(sysroot.trim()) };
    let stage = Stage::start("packages");
    let install = format!("apt-get update -qq && apt-get install --yes -qq --no-install-recommends {}", packages.join(" "));
    inside.run("root", &install, "bare-packages", &stage)?;
    stage.done(&packages.join(" "));
    let user = if options.root { "root" } else { "user" };
    for command in &options.commands {
        let stage = Stage::start(command);
        let name = format!("bare-{}", command.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        inside.run(user, &format!("cd /home/user/gateweave && {command}"), &name, &stage)?;
        stage.done("");
    }
    Ok(ExitCode::SUCCESS)
}

/// What cargo itself needs to compile the set-up; the set-up installs the rest.
const FOR_ROOT: [&str; 4] = ["ca-certificates", "git", "gcc", "libc6-dev"];

/// The README's list, and what it names for toolchains without rustup: the mounted one comes without.
fn of_readme() -> Result<Vec<String>> {
    let mut packages = listed(&std::fs::read_to_string(places::root().join("README.md")).context("reading README.md")?)?;
    if !setup::wasm::in_toolchain() {
        packages.extend(setup::wasm::DEBIAN.map(str::to_string));
    }
    Ok(packages)
}

/// The packages of the README's first `apt-get install` line, backslash continuations included.
fn listed(readme: &str) -> Result<Vec<String>> {
    let joined = readme.replace("\\\n", " ");
    let line = joined.lines().find(|line| line.contains("apt-get install")).context("README.md has no `apt-get install` line")?;
    let after = line.split("apt-get install").nth(1).unwrap_or_default();
    let words = after.split_whitespace().take_while(|word| !matches!(*word, "&&" | ";" | "#"));
    let packages = words.filter(|word| !word.starts_with('-')).map(|word| word.trim_matches('`').to_string()).collect::<Vec<_>>();
    let named = |package: &String| package.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    ensure!(!packages.is_empty() && packages.iter().all(named), "README.md: no package list in {line:?}");
    Ok(packages)
}

/// A minimal Debian 12 with security updates, made once.
fn base(folder: &Path, stage: &Stage) -> Result<PathBuf> {
    let base = folder.join("bookworm");
    if base.is_dir() {
        return Ok(base);
    }
    let work = tempfile::Builder::new().prefix("making-").tempdir_in(folder)?;
    stage.say("fetching debootstrap");
    run::output(
        Command::new("apt-get").args(["download", "-qq", "-o", "APT::Sandbox::User=root", "debootstrap"]).current_dir(work.path()),
    )?;
    let tool = work.path().join("tool");
    let package = std::fs::read_dir(work.path())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "deb"));
    run::output(Command::new("dpkg-deb").arg("-x").arg(package.context("apt-get brought no debootstrap")?).arg(&tool))?;
    let system = work.path().join("system");
    let mut command = Command::new(tool.join("usr/sbin/debootstrap"));
    command.args(["--variant=minbase", "bookworm"]).arg(&system).arg("http://deb.debian.org/debian");
    run::streaming(command.env("DEBOOTSTRAP_DIR", tool.join("usr/share/debootstrap")), "debootstrap", Duration::from_secs(1800), stage)?;
    let suites = [("debian", "bookworm"), ("debian", "bookworm-updates"), ("debian-security", "bookworm-security")];
    let sources = suites.map(|(archive, suite)| format!("deb http://deb.debian.org/{archive} {suite} main\n")).concat();
    std::fs::write(system.join("etc/apt/sources.list"), sources)?;
    run::output(Command::new("chroot").arg(&system).args(["useradd", "--create-home", "--shell", "/bin/bash", "user"]))?;
    std::fs::rename(&system, &base)?;
    Ok(base)
}

/// The committed state of this repository in the user's home.
fn clone(system: &Path, root: bool, stage: &Stage) -> Result<()> {
    stage.say("cloning the repository");
    let home = system.join("home/user/gateweave");
    run::output(Command::new("git").args(["clone", "--quiet", "--no-hardlinks"]).arg(places::root()).arg(&home))?;
    if !root {
        run::output(Command::new("chroot").arg(system).args(["chown", "-R", "user:user", "/home/user"]))?;
    }
    // Where this machine reaches registries through certificates of its own, the bare system must know them too.
    let certificates = "etc/ssl/certs/ca-certificates.crt";
    let ours = Path::new("/").join(certificates);
    if ours.is_file() {
        std::fs::create_dir_all(system.join("opt/host"))?;
        std::fs::copy(ours, system.join("opt/host/ca-certificates.crt"))?;
    }
    Ok(())
}

/// A system to run commands in.
struct Inside<'a> {
    system: &'a Path,
    rust: &'a Path,
}

impl Inside<'_> {
    /// Runs a shell line as `user`, in mount and process namespaces of its own, with an empty environment.
    fn run(&self, user: &str, line: &str, log: &str, stage: &Stage) -> Result<()> {
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            include_str!("inside.sh"),
            "inside",
        ]);
        command.arg(self.system).arg(self.rust).args([user, line]);
        run::streaming(&mut command, log, Duration::from_secs(2 * 3600), stage)
    }
}

/// A folder that goes away at the end.
struct Removed {
    path: PathBuf,
    keep: bool,
}

impl Drop for Removed {
    fn drop(&mut self) {
        if self.keep {
            eprintln!("          left in {}", self.path.display());
        } else {
            std::fs::remove_dir_all(&self.path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_a_readme() {
        let text = "# x\n```sh\nsudo apt-get update && sudo apt-get install --yes git g++ \\\n    make && true\n```\n";
        assert_eq!(listed(text).unwrap(), ["git", "g++", "make"]);
        assert!(listed("# x").is_err());
        assert!(listed("apt-get install").is_err());
    }
}
