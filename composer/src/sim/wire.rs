//! Wire arguments: `[NAME=]unix:LOCAL,REMOTE`, `tap:IFNAME`, `pcap:IN,OUT`, `pattern:FILE.toml`, `step:SOCKET`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use super::class;
use super::plan::SimPlan;
use crate::diag::Diagnostic;

/// One `--wire`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The resource; may be absent where the project has one wire.
    pub resource: Option<String>,
    /// What its end is tied to.
    pub kind: WireKind,
}

/// What a wire ends in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireKind {
    /// Unix datagram sockets: one datagram is one Ethernet frame without FCS.
    Unix {
        /// Bound here.
        local: PathBuf,
        /// Sent to.
        remote: PathBuf,
    },
    /// A TAP interface.
    Tap {
        /// Its name.
        interface: String,
    },
    /// Capture files.
    Pcap {
        /// Frames that go in.
        input: Option<PathBuf>,
        /// Frames that come out.
        output: Option<PathBuf>,
    },
    /// A pattern file.
    Pattern {
        /// The file.
        file: PathBuf,
    },
    /// A stream socket on which the peer grants simulated time.
    Step {
        /// Bound here.
        socket: PathBuf,
    },
}

const KINDS: &[&str] = &["unix", "tap", "pcap", "pattern", "step"];

impl FromStr for Wire {
    type Err = Diagnostic;

    /// # Errors
    /// `GW0707` if the text is not a wire.
    fn from_str(text: &str) -> Result<Wire, Diagnostic> {
        let wrong = |message: String| Diagnostic::error("GW0707", format!("wire `{text}`: {message}"));
        let shape = "[NAME=]unix:LOCAL,REMOTE, tap:IFNAME, pcap:IN,OUT, pattern:FILE.toml or step:SOCKET";
        let (head, rest) = text.split_once(':').ok_or_else(|| wrong("there is no `:`".to_owned()).help(shape))?;
        let (resource, kind) = match head.split_once('=') {
            Some((name, kind)) => (Some(name.to_owned()), kind),
            None => (None, head),
        };
        let pair = || rest.split_once(',').filter(|(a, b)| !(a.is_empty() && b.is_empty()));
        let file = |p: &str| Some(PathBuf::from(p)).filter(|p| !p.as_os_str().is_empty());
        let kind = match kind {
            "unix" => match pair() {
                Some((local, remote)) if !local.is_empty() && !remote.is_empty() => {
                    WireKind::Unix { local: local.into(), remote: remote.into() }
                }
                _ => return Err(wrong("two socket paths are needed".to_owned()).help("unix:LOCAL,REMOTE")),
            },
            "tap" if !rest.is_empty() => WireKind::Tap { interface: rest.to_owned() },
            "tap" => return Err(wrong("the interface is missing".to_owned()).help("tap:IFNAME")),
            "pcap" => match pair() {
                Some((input, output)) => WireKind::Pcap { input: file(input), output: file(output) },
                None => return Err(wrong("two files are needed".to_owned()).help("pcap:IN,OUT; one of them may be left empty")),
            },
            "pattern" if !rest.is_empty() => WireKind::Pattern { file: rest.into() },
            "pattern" => return Err(wrong("the file is missing".to_owned()).help("pattern:FILE.toml")),
            "step" if !rest.is_empty() => WireKind::Step { socket: rest.into() },
            "step" => return Err(wrong("the socket is missing".to_owned()).help("step:SOCKET")),
            other => return Err(wrong(format!("there is no wire `{other}`")).nearest(other, KINDS.iter().copied())),
        };
        Ok(Wire { resource, kind })
    }
}

/// `--regs`: what is done with the serial line that has the register bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regs {
    /// The resource, of class `uart`; may be absent where the project uses one.
    pub resource: Option<String>,
    /// What is at its far end.
    pub kind: RegsKind,
}

/// The far end of a serial line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegsKind {
    /// A stream socket that carries the line's bytes; made by the run, gone after it.
    Unix(PathBuf),
    /// Nobody, until all input has gone in; then all registers are read. Needs [`super::RunOptions::registers`].
    Read,
}

impl FromStr for Regs {
    type Err = Diagnostic;

    /// # Errors
    /// `GW0707` if the text is something else.
    fn from_str(text: &str) -> Result<Regs, Diagnostic> {
        let (resource, rest) = match text.split_once('=') {
            Some((name, rest)) if !name.contains(':') => (Some(name.to_owned()), rest),
            _ => (None, text),
        };
        let kind = match rest.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            Some(path) => RegsKind::Unix(path.into()),
            None if rest == "read" => RegsKind::Read,
            None => {
                return Err(
                    Diagnostic::error("GW0707", format!("`{text}` is no place for registers")).help("[NAME=]unix:PATH or [NAME=]read")
                );
            }
        };
        Ok(Regs { resource, kind })
    }
}

impl Regs {
    /// The resource that is meant.
    ///
    /// # Errors
    /// `GW0708`, `GW0709`.
    pub(super) fn assign(&self, plan: &SimPlan) -> Result<String, Diagnostic> {
        let lines: Vec<&str> = plan.resources.iter().filter(|r| r.class == "uart").map(|r| r.name.as_str()).collect();
        match (&self.resource, lines.as_slice()) {
            (Some(name), _) if lines.contains(&name.as_str()) => Ok(name.clone()),
            (Some(name), _) => {
                Err(Diagnostic::error("GW0708", format!("the project uses no serial line `{name}`")).nearest(name, lines.iter().copied()))
            }
            (None, [one]) => Ok((*one).to_owned()),
            (None, []) => Err(Diagnostic::error("GW0708", "the project uses no serial line, so there is no register bus")),
            (None, many) => Err(Diagnostic::error("GW0709", format!("the project uses {} serial lines", many.len()))
                .help(format!("NAME= with one of: {}", many.join(", ")))),
        }
    }
}

/// Which wire each resource has.
///
/// # Errors
/// `GW0708` for a resource that does not exist or carries no frames, `GW0709` where a name is missing or given twice.
pub(super) fn assign<'a>(plan: &SimPlan, wires: &'a [Wire]) -> Result<BTreeMap<String, &'a WireKind>, Diagnostic> {
    let carriers: Vec<&str> =
        plan.resources.iter().filter(|r| class::find(&r.class).is_some_and(|c| c.ethernet)).map(|r| r.name.as_str()).collect();
    let mut map = BTreeMap::new();
    for wire in wires {
        let name = match (&wire.resource, carriers.as_slice()) {
            (Some(name), _) if carriers.contains(&name.as_str()) => name.clone(),
            (Some(name), _) => {
                let message = format!("the project uses no wire `{name}`");
                return Err(Diagnostic::error("GW0708", message).nearest(name, carriers.iter().copied()));
            }
            (None, [one]) => (*one).to_owned(),
            (None, []) => return Err(Diagnostic::error("GW0708", "the project uses no resource that carries Ethernet frames")),
            (None, many) => {
                let message = format!("the project has {} wires; say which one is meant", many.len());
                return Err(Diagnostic::error("GW0709", message).help(format!("NAME= with one of: {}", many.join(", "))));
            }
        };
        if map.insert(name.clone(), &wire.kind).is_some() {
            return Err(Diagnostic::error("GW0709", format!("two wires for `{name}`")));
        }
    }
    Ok(map)
}
