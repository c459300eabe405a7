//! Untrusted Veryl is parsed in a child process with limits on memory and time.
//!
//! The child is this program again, as `gateweave __hdl`. [`names::depth`](super::names::depth) has turned away text that nests
//! too deep before; the child is what holds when that is not enough.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::PluginError;
use super::types::{Language, PluginSource};

/// Name of the hidden command.
pub const COMMAND: &str = "__hdl";
/// Address space of the child in bytes.
const MEMORY: u64 = 2 << 30;
/// Processor time of the child in seconds.
const SECONDS: u64 = 20;

#[derive(Serialize, Deserialize)]
struct Question {
    path: String,
    text: String,
    /// Whether the formatter is asked too.
    format: bool,
}

/// What the parser said of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The file.
    pub path: String,
    /// The parser's message with line and column, if it is not Veryl.
    pub error: Option<String>,
    /// Whether Veryl's formatter would leave it as it is; `false` where it was not asked.
    pub formatted: bool,
}

/// The program to run as the child: this one, where it is `gateweave`.
pub(super) fn helper() -> Option<PathBuf> {
    std::env::current_exe().ok().filter(|p| p.file_name().is_some_and(|n| n == "gateweave"))
}

/// Parses and formats the Veryl sources, in a child if there is a helper, else on a thread of its own.
///
/// # Errors
/// GW0315 if the parser gave up under its limits.
pub fn verdicts(helper: Option<&Path>, sources: &[PluginSource]) -> Result<Vec<Verdict>, PluginError> {
    ask(helper, sources, true)
}

fn ask(helper: Option<&Path>, sources: &[PluginSource], format: bool) -> Result<Vec<Verdict>, PluginError> {
    let veryl = sources.iter().filter(|s| s.language == Language::Veryl);
    let questions: Vec<Question> = veryl.map(|s| Question { path: s.path.clone(), text: s.text.clone(), format }).collect();
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    match helper {
        Some(helper) => ask_child(helper, &questions).map_err(|e| {
            PluginError::new("GW0315", format!("its HDL could not be read within {SECONDS} s and {} MiB: {e}", MEMORY >> 20))
                .help("this is a fault of the plugin")
        }),
        None => Ok(questions.iter().map(verdict).collect()),
    }
}

/// Parses the Veryl sources and wants all of them to be Veryl.
///
/// # Errors
/// GW0314 with the first message, GW0315 as above.
pub fn check(helper: Option<&Path>, sources: &[PluginSource]) -> Result<(), PluginError> {
    let bad = ask(helper, sources, false)?.into_iter().find_map(|v| v.error.map(|e| (v.path, e)));
    match bad {
        None => Ok(()),
        Some((path, error)) => {
            Err(PluginError::new("GW0314", format!("its source `{path}` is not Veryl: {error}")).help("this is a fault of the plugin"))
        }
    }
}

fn verdict(question: &Question) -> Verdict {
    let result = std::panic::catch_unwind(|| match question.format {
        true => crate::hdl::format(&question.path, &question.text).map(|text| text == question.text),
        false => crate::hdl::parse(&question.path, &question.text).map(|()| false),
    });
    let (error, formatted) = match result {
        Ok(Ok(formatted)) => (None, formatted),
        Ok(Err(m)) => {
            let place = m.at.map_or(String::new(), |(line, column)| format!(" at line {line}, column {column}"));
            (Some(format!("{}{place}", m.message.lines().next().unwrap_or("syntax error"))), false)
        }
        Err(_) => (Some("the parser failed".to_owned()), false),
    };
    Verdict { path: question.path.clone(), error, formatted }
}

fn ask_child(helper: &Path, questions: &[Question]) -> Result<Vec<Verdict>, String> {
    let mut child = Command::new(helper)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", helper.display()))?;
    let text = serde_json::to_vec(questions).map_err(|e| e.to_string())?;
    // The child reads everything before it writes, so neither waits for the other. One that died early gives EPIPE here
    // and an empty answer below.
    if let Some(mut pipe) = child.stdin.take() {
        let _ = pipe.write_all(&text);
    }
    let answer = child.stdout.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            let _ = pipe.read_to_end(&mut answer);
            answer
        })
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() < Duration::from_secs(3 * SECONDS) => std::thread::sleep(Duration::from_millis(1)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("the parser did not end".into());
            }
        }
    };
    let answer = answer.and_then(|a| a.join().ok()).unwrap_or_default();
    if !status.success() {
        return Err(format!("the parser ended with {status}"));
    }
    serde_json::from_slice(&answer).map_err(|e| e.to_string())
}

/// The child: questions on standard input, verdicts on standard output. Returns the exit code.
pub fn child() -> u8 {
    limit(libc::RLIMIT_AS, MEMORY);
    limit(libc::RLIMIT_CPU, SECONDS);
    limit(libc::RLIMIT_CORE, 0);
    let mut text = Vec::new();
    if std::io::stdin().read_to_end(&mut text).is_err() {
        return 2;
    }
    let Ok(questions) = serde_json::from_slice::<Vec<Question>>(&text) else { return 2 };
    let verdicts: Vec<Verdict> = questions.iter().map(verdict).collect();
    match serde_json::to_writer(std::io::stdout().lock(), &verdicts) {
        Ok(()) => 0,
        Err(_) => 2,
    }
}

fn limit(what: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the pointer is to a live, initialised `rlimit`; the call has no other effect on memory.
    #[allow(unsafe_code)]
    unsafe {
        libc::setrlimit(what, &raw const limit);
    }
}
