//! Set-up: what the machine lacks, in one message with one command; as root the set-up installs it by itself.
//!
//! Idempotent: on a machine that has everything it only looks, which takes about a second.

mod install;
mod probe;
pub mod wasm;

use crate::places;
use crate::stage::Stage;
use anyhow::Result;
use std::fmt;

/// What a command needs beyond the tools that everything needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// QEMU, apt and dpkg for the Linux guest. Where it is absent, the rest goes on without.
    pub guest: bool,
}

/// Something that the machine lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// "g++ with C++17".
    pub what: String,
    /// What it is for, and what was found instead.
    pub why: String,
    /// Debian packages that bring it; empty where no package does.
    pub packages: Vec<&'static str>,
    /// Where no package helps: what to do.
    pub remedy: Option<String>,
    /// Only the Linux guest needs it.
    pub guest_only: bool,
}

/// What set-up found.
pub struct Machine {
    /// Why there can be no Linux guest here; `None` where there can be one.
    pub no_guest: Option<String>,
}

/// An error of its own type, so that its text is shown as it stands.
#[derive(Debug)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// Probes, installs where it may, probes again. An error names every gap at once.
pub fn run(wants: Wants, stage: &Stage) -> Result<Machine> {
    stage.say("looking for compilers and tools");
    let mut gaps = probe::all(wants, stage);
    if !gaps.is_empty() && install::may_install() {
        let packages = packages_of(&gaps);
        if !packages.is_empty() {
            install::packages(&packages, stage)?;
            gaps = probe::all(wants, stage);
        }
    }
    let needed = gaps.iter().filter(|gap| !gap.guest_only).count();
    if needed > 0 {
        return Err(Missing(message(&gaps)).into());
    }
    let no_guest = (!gaps.is_empty()).then(|| message(&gaps));
    stage.say(&format!("everything is there; the cache is {}", places::cache()?.display()));
    Ok(Machine { no_guest })
}

fn packages_of(gaps: &[Gap]) -> Vec<&'static str> {
    let mut packages = gaps.iter().flat_map(|gap| gap.packages.iter().copied()).collect::<Vec<_>>();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// All gaps, then the one command that closes those which packages can close.
fn message(gaps: &[Gap]) -> String {
    let things = if gaps.len() == 1 { "1 thing is".to_string() } else { format!("{} things are", gaps.len()) };
    let mut text = format!("{things} missing on this machine:\n");
    for gap in gaps {
        text += &format!("  {}: {}\n", gap.what, gap.why);
        if let Some(remedy) = &gap.remedy {
            text += &format!("      {remedy}\n");
        }
    }
    let packages = packages_of(gaps);
    if !packages.is_empty() {
        text += "One command installs what Debian and Ubuntu have of it:\n  ";
        text += &install::command_line(&packages);
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(what: &str, packages: &[&'static str], guest_only: bool) -> Gap {
        Gap { what: what.to_string(), why: "for a test".to_string(), packages: packages.to_vec(), remedy: None, guest_only }
    }

    #[test]
    fn one_message_with_one_command() {
        let text = message(&[gap("make", &["make"], false), gap("g++", &["g++", "make"], false)]);
        assert!(text.starts_with("2 things are missing"));
        assert_eq!(text.matches("apt-get install").count(), 1);
        assert!(text.contains(" g++ make\n"), "{text}");
    }

    #[test]
    fn no_command_where_no_package_helps() {
        let mut only = gap("rustc 1.95", &[], false);
        only.remedy = Some("rustup update stable".to_string());
        let text = message(&[only]);
        assert!(!text.contains("apt-get") && text.contains("rustup update stable"));
    }
}
