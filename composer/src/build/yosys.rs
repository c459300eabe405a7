//! Running a Yosys script over SystemVerilog.

use std::fs;
use std::path::Path;

use crate::build::deliver;
use crate::build::family::Family;
use crate::cache::{Key, Stored};
use crate::diag::Diagnostic;
use crate::hdl::Emitted;
use crate::tools::verilator::{check_names, write_all};
use crate::tools::{Tool, Tools};

/// Syntheses kept in the cache; the netlist of a full ECP5 design has some 20 MB.
const KEEP: usize = 32;

/// A synthesis.
#[derive(Clone, Debug)]
pub struct Synthesis<'a> {
    /// SystemVerilog, in order of dependency.
    pub files: &'a [Emitted],
    /// Top module.
    pub top: &'a str,
    /// Parameters of the top module, names and values.
    pub parameters: &'a [(String, String)],
    /// Whose primitives the design may use.
    pub family: Family,
    /// Commands after the design is read.
    pub commands: &'a [String],
    /// File for what Yosys prints, there also when it fails.
    pub log: &'a Path,
}

/// Name of the log among the products.
const LOG: &str = "yosys.log";
/// What the names of the files with the family's primitives start with.
const LIBRARY: &str = "library";

/// Runs Yosys over a design, unless the cache has the result.
///
/// The commands write their products into the current folder, which becomes [`Stored::folder`].
///
/// # Errors
/// Those of the tool, `GW0610` with the first thing that Yosys said was wrong, or `GW0618` (a name that tools would misread).
pub fn run(tools: &Tools, yosys: &Tool, job: &Synthesis) -> Result<Stored, Diagnostic> {
    check_names(job.files, job.top)?;
    let mut key = Key::new("synthesis").field("tool", &yosys.identity).field("top", job.top);
    for file in job.files {
        key = key.field("path", &file.path).field("text", &file.text);
    }
    for (name, value) in job.parameters {
        key = key.field("parameter", name).field("value", value);
    }
    let primitives = tools.primitives(job.family)?;
    for text in primitives.iter().map(|f| f.text.as_str()).chain(job.commands.iter().map(String::as_str)) {
        key = key.field("line", text);
    }
    let io = |e: std::io::Error| tools.cache.trouble(&e);
    let stored = tools.cache.step("synthesis", &key.finish(), KEEP, |out| {
        let work = tools.cache.temp().map_err(io)?;
        let names = write_all(work.path(), job.files).map_err(io)?;
        let mut read = format!("read_slang --threads 1 --top {}", job.top);
        for (name, value) in job.parameters {
            read.push_str(&format!(" -G {name}={value}"));
        }
        for name in &names {
            read.push_str(&format!(" {name}"));
        }
        for (index, file) in primitives.iter().enumerate() {
            let name = format!("{LIBRARY}{index}.v");
            // Yosys' cells have no parameters that are real; the number behind the point changes nothing but the cell.
            fs::write(work.path().join(&name), file.text.replace("parameter real ", "parameter integer ")).map_err(io)?;
            read.push_str(&format!(" -v {name}"));
        }
        let script = [read].iter().chain(job.commands).map(|line| format!("{line}\n")).collect::<String>();
        fs::write(work.path().join("script.ys"), script).map_err(io)?;
        let args = ["-Q", "-T", "-s", "script.ys"].map(String::from);
        if let Some(folder) = job.log.parent() {
            fs::create_dir_all(folder).map_err(io)?;
        }
        let bar = tools.talk.spinner(&format!("synthesizing {} with {}", job.top, yosys.version));
        let ended = yosys.run(tools, &args, work.path(), job.log);
        bar.finish_and_clear();
        let (code, _) = ended?;
        if code != 0 {
            return Err(refused(job.log));
        }
        fs::copy(job.log, out.join(LOG)).map_err(io)?;
        for name in &names {
            let _ = fs::remove_file(work.path().join(name));
        }
        for entry in fs::read_dir(work.path()).map_err(io)? {
            let entry = entry.map_err(io)?;
            let input = entry.file_name() == "script.ys" || entry.file_name().to_string_lossy().starts_with(LIBRARY);
            if entry.file_type().map_err(io)?.is_file() && !input {
                fs::copy(entry.path(), out.join(entry.file_name())).map_err(io)?;
            }
        }
        Ok::<_, Diagnostic>(())
    })?;
    deliver(&stored.folder.join(LOG), job.log).map_err(io)?;
    Ok(stored)
}

/// `GW0610` from what Yosys printed.
fn refused(log: &Path) -> Diagnostic {
    let said = fs::read_to_string(log).unwrap_or_default();
    let mut errors: Vec<&str> =
        said.lines().filter(|l| (l.contains("ERROR") || l.contains("error:")) && !l.contains("see full log for details")).collect();
    errors.dedup();
    let why = match errors.len() {
        0 => said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing").to_owned(),
        1..=5 => errors.join("; "),
        n => format!("{}; and {} more", errors[..5].join("; "), n - 5),
    };
    Diagnostic::error("GW0610", format!("synthesis failed: {}", why.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_errors_are_shown_and_the_rest_counted() {
        let temp = tempfile::tempdir().unwrap();
        let log = temp.path().join("log");
        let text: String = (0..7).map(|n| format!("a.sv:{n}: ERROR: no {n}\n")).collect();
        fs::write(&log, text + "ERROR: Design elaboration failed; see full log for details\n").unwrap();
        let error = refused(&log);
        assert_eq!(error.code, "GW0610");
        assert!(error.message.contains("no 4; and 2 more"), "{}", error.message);
        fs::write(&log, "").unwrap();
        assert!(refused(&log).message.ends_with("it said nothing"));
    }
}
