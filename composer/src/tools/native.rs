//! Tools that are installed on the machine: finding and probing them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{Key, sha256_file};
use crate::diag::Diagnostic;

/// The file of a command on `PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0))
}

/// What a command prints, both streams together, and whether it ended with 0. `None` if it does not start.
pub fn output(command: &mut Command) -> Option<(bool, String)> {
    let out = command.stdin(Stdio::null()).output().ok()?;
    let text = [out.stdout, out.stderr].concat();
    Some((out.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The first version number (`major.minor`) in a text.
pub fn version(text: &str) -> Option<(u32, u32)> {
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | '-' | ',')) {
        let word = word.trim_start_matches('v');
        let mut parts = word.split(['.', '+']);
        if let (Some(Ok(major)), Some(Ok(minor))) = (parts.next().map(str::parse), parts.next().map(str::parse)) {
            return Some((major, minor));
        }
    }
    None
}

/// A tool on `PATH` that passed its probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Native {
    /// The file.
    pub path: PathBuf,
    /// First line of what it says its version is.
    pub version: String,
    /// Hash of version and file, for keys.
    pub identity: String,
}

/// What a tool must be able to do to be used.
pub(crate) struct Probe {
    pub name: &'static str,
    pub version_arg: &'static str,
    /// Lowest version.
    pub floor: (u32, u32),
    /// Arguments of a second run that must succeed, and what is missing if it does not.
    pub feature: Option<(&'static [&'static str], &'static str)>,
}

/// Yosys needs the SystemVerilog front end.
pub(crate) const YOSYS: Probe = Probe {
    name: "yosys",
    version_arg: "-V",
    floor: (0, 44),
    feature: Some((&["-q", "-p", "help read_slang"], "the SystemVerilog front end `read_slang`")),
};
/// nextpnr needs its report and the textual configuration.
pub(crate) const NEXTPNR: Probe = Probe { name: "nextpnr-ecp5", version_arg: "--version", floor: (0, 6), feature: None };
/// ecppack (Project Trellis).
pub(crate) const ECPPACK: Probe = Probe { name: "ecppack", version_arg: "--version", floor: (1, 0), feature: None };
/// Verilator; 5.006 is Debian 12's.
pub(crate) const VERILATOR: Probe = Probe { name: "verilator", version_arg: "--version", floor: (5, 6), feature: None };

/// Finds a tool on `PATH` and probes it.
///
/// # Errors
/// `GW0607` if it is absent, too old, or lacks what is needed.
pub(crate) fn find(probe: &Probe) -> Result<Native, Diagnostic> {
    let lacking = |message: String| {
        Diagnostic::error("GW0607", message)
            .help("without `--tools native` the pinned tools are fetched and used; they need no installation")
    };
    let path = which(probe.name).ok_or_else(|| lacking(format!("native {} is asked for, but it is not on PATH", probe.name)))?;
    check(probe, &path).map_err(lacking)
}

fn check(probe: &Probe, path: &Path) -> Result<Native, String> {
    let (name, file) = (probe.name, path.display());
    let (_, said) = output(Command::new(path).arg(probe.version_arg)).ok_or_else(|| format!("native {name} ({file}) does not start"))?;
    let line = said.lines().map(str::trim).find(|l| version(l).is_some()).unwrap_or_default().trim_matches('"').to_owned();
    let (major, minor) = version(&line).ok_or_else(|| format!("native {name} ({file}) does not say which version it is"))?;
    let (floor_major, floor_minor) = probe.floor;
    if (major, minor) < probe.floor {
        return Err(format!("native {name} ({file}) is version {major}.{minor}, at least {floor_major}.{floor_minor} is needed"));
    }
    if let Some((args, what)) = probe.feature {
        let able = output(Command::new(path).args(args)).is_some_and(|(ok, text)| ok && !text.contains("No such command"));
        if !able {
            return Err(format!("native {name} ({file}, version {major}.{minor}) lacks {what}"));
        }
    }
    let content = sha256_file(path).map_err(|e| format!("native {name} ({file}) cannot be read: {e}"))?;
    let identity = Key::new("native").field("version", &line).field("content", content).finish();
    Ok(Native { path: path.to_path_buf(), version: line, identity })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_print() {
        assert_eq!(version("Yosys 0.23 (git sha1 7ce5011c24b)"), Some((0, 23)));
        assert_eq!(version("\"nextpnr-ecp5\" -- Next Generation Place and Route (Version nextpnr-0.4-1)"), Some((0, 4)));
        assert_eq!(version("Verilator 5.006 2023-01-22 rev v5.006"), Some((5, 6)));
        assert_eq!(version("Project Trellis ecppack Version 1.2.1"), Some((1, 2)));
        assert_eq!(version("Yosys 0.70+12 (x)"), Some((0, 70)));
        assert_eq!(version("nothing"), None);
    }

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("yosys");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn an_old_or_incomplete_yosys_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let old = script(temp.path(), "echo 'Yosys 0.23 (git sha1 x)'");
        assert!(check(&YOSYS, &old).unwrap_err().contains("at least 0.44"));
        let plain = script(temp.path(), "case $1 in -V) echo 'Yosys 0.50';; *) echo 'No such command or cell type: read_slang';; esac");
        assert!(check(&YOSYS, &plain).unwrap_err().contains("read_slang"));
        let mute = script(temp.path(), "exit 3");
        assert!(check(&YOSYS, &mute).unwrap_err().contains("which version"));
        let good = script(temp.path(), "echo 'Yosys 0.70+3'");
        assert_eq!(check(&YOSYS, &good).unwrap().version, "Yosys 0.70+3");
    }
}
