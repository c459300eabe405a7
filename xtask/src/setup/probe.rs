//! What is on the machine.

use super::{Gap, Wants, wasm};
use crate::run;
use crate::stage::Stage;
use std::process::Command;

/// Versions that are needed at least.
const RUST: Version = Version(1, 95);
const PYTHON: Version = Version(3, 10);
const QEMU: Version = Version(7, 2);

/// Every gap, those of the guest last.
pub fn all(wants: Wants, stage: &Stage) -> Vec<Gap> {
    let mut gaps = Vec::new();
    gaps.extend(rust());
    gaps.extend(cpp());
    gaps.extend(program("make", "builds the simulation"));
    gaps.extend(program("perl", "Verilator's own driver is a Perl program"));
    gaps.extend(program("git", "cargo and the reports name the commit"));
    gaps.extend(headers());
    gaps.extend(python());
    gaps.extend(wasm::target(stage));
    if wants.guest {
        gaps.extend(guest());
    }
    gaps
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    /// The first `N.N` in a program's version line.
    fn find(text: &str) -> Option<Version> {
        text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '+' | '-')).find_map(|word| {
            let mut parts = word.split('.');
            let major = parts.next()?.parse().ok()?;
            let minor = parts.next()?.parse().ok()?;
            Some(Version(major, minor))
        })
    }
}

fn gap(what: String, why: String, packages: &[&'static str]) -> Gap {
    Gap { what, why, packages: packages.to_vec(), remedy: None, guest_only: false }
}

/// The first line that `program` prints for `argument`, where it runs at all.
fn says(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_string())
}

/// A gap where `found` is older than `least` or absent.
fn older(name: &str, least: Version, found: Option<&str>, purpose: &str, packages: &[&'static str]) -> Option<Gap> {
    let version = found.and_then(Version::find);
    if version.is_some_and(|version| version >= least) {
        return None;
    }
    let instead = match (version, found) {
        (Some(Version(major, minor)), _) => format!("{major}.{minor} is too old"),
        (None, Some(_)) => "its version cannot be read".to_string(),
        (None, None) => "not found".to_string(),
    };
    Some(gap(format!("{name} {}.{} or newer", least.0, least.1), format!("{purpose}; {instead}"), packages))
}

fn rust() -> Option<Gap> {
    let found = says("rustc", "--version");
    let mut gap = older("rustc", RUST, found.as_deref(), "builds everything", &[])?;
    gap.remedy = Some("rustup update stable (or install Rust from https://rustup.rs)".to_string());
    Some(gap)
}

fn cpp() -> Option<Gap> {
    let source = b"#include <cstdint>\n#if __cplusplus < 201703L\n#error\n#endif\n";
    let works = run::filter(Command::new("g++").args(["-std=c++17", "-E", "-x", "c++", "-"]).stderr(std::process::Stdio::null()), source);
    works.is_err().then(|| gap("g++ with C++17".to_string(), "compiles the simulation".to_string(), &["g++"]))
}

fn program(name: &'static str, purpose: &str) -> Option<Gap> {
    run::on_path(name).is_none().then(|| gap(name.to_string(), format!("{purpose}; not found"), &[name]))
}

fn headers() -> Vec<Gap> {
    let has = |header: &str| {
        let source = format!("#include <{header}>\n");
        let mut command = Command::new("g++");
        command.args(["-E", "-x", "c++", "-"]).stderr(std::process::Stdio::null());
        run::filter(&mut command, source.as_bytes()).is_ok()
    };
    // Without a compiler the answer is unknown; with one it costs nothing to install both.
    [("lz4.h", "liblz4-dev"), ("zlib.h", "zlib1g-dev")]
        .into_iter()
        .filter(|(header, _)| !has(header))
        .map(|(header, package)| gap(header.to_string(), "header for FST waveforms; not found".to_string(), &[package]))
        .collect()
}

fn python() -> Option<Gap> {
    let found = says("python3", "--version");
    let purpose = "pip fetches the EDA tools, at pinned versions and by hash";
    older("python3", PYTHON, found.as_deref(), purpose, &["python3", "python3-pip"]).or_else(|| {
        let pip = Command::new("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|output| output.status.success());
        (!pip).then(|| gap("pip for python3".to_string(), purpose.to_string(), &["python3-pip"]))
    })
}

fn guest() -> Vec<Gap> {
    let mut gaps = Vec::new();
    let purpose = "runs the Linux guest that pings the simulation";
    gaps.extend(older("QEMU", QEMU, says("qemu-system-x86_64", "--version").as_deref(), purpose, &["qemu-system-x86"]));
    for (tool, package) in [("apt-get", "apt"), ("dpkg-deb", "dpkg"), ("setpriv", "util-linux")] {
        if run::on_path(tool).is_none() {
            gaps.push(gap(tool.to_string(), "the Linux guest is made from Debian's packages; not found".to_string(), &[package]));
        }
    }
    if run::on_path("tshark").is_none() {
        gaps.push(gap("tshark".to_string(), "judges the frames of the RDMA tests; not found".to_string(), &["tshark"]));
    }
    for gap in &mut gaps {
        gap.guest_only = true;
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (line, version) in [
            ("rustc 1.95.0 (59807616e 2026-04-14)", Version(1, 95)),
            ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", Version(7, 2)),
            ("Python 3.11.2", Version(3, 11)),
            ("rustc 1.96.0-nightly (abc 2026-01-01)", Version(1, 96)),
        ] {
            assert_eq!(Version::find(line), Some(version), "{line}");
        }
        assert_eq!(Version::find("no number"), None);
    }

    #[test]
    fn an_old_program_is_a_gap_and_a_new_one_is_none() {
        assert!(older("x", Version(3, 10), Some("Python 3.9.2"), "", &[]).unwrap().why.contains("3.9 is too old"));
        assert!(older("x", Version(3, 10), None, "", &[]).unwrap().why.contains("not found"));
        assert_eq!(older("x", Version(3, 10), Some("Python 3.10.0"), "", &[]), None);
        assert_eq!(older("x", Version(3, 10), Some("Python 4.0"), "", &[]), None);
    }
}
