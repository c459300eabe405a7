//! Installing Debian packages, as root and never otherwise.

use crate::run;
use crate::stage::Stage;
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Duration;

/// Root on a machine with apt. A plain user gets a command to run; nothing here asks for a password.
pub fn may_install() -> bool {
    run::is_root() && run::on_path("apt-get").is_some()
}

/// The command for people.
pub fn command_line(packages: &[&str]) -> String {
    let sudo = if run::is_root() { "" } else { "sudo " };
    format!("{sudo}apt-get update && {sudo}apt-get install --yes --no-install-recommends {}", packages.join(" "))
}

/// Installs `packages`, having said which and how large.
pub fn packages(packages: &[&str], stage: &Stage) -> Result<()> {
    stage.say("apt-get update");
    run::output(&mut apt(&["update", "-qq"], &[]))?;
    let plan = run::output(&mut apt(&["install", "--print-uris", "--yes", "-qq", "--no-install-recommends"], packages))
        .with_context(|| format!("asking apt for {}", packages.join(" ")))?;
    let sizes = plan.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).collect::<Vec<_>>();
    let megabytes = sizes.iter().sum::<u64>() as f64 / 1e6;
    stage.note(&format!("installing {} ({} packages, {megabytes:.1} MB to download)", packages.join(" "), sizes.len()));
    let mut install = apt(&["install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"], packages);
    run::streaming(&mut install, "apt", Duration::from_secs(1800), stage)
}

fn apt(arguments: &[&str], packages: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).args(packages).env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
    command
}
