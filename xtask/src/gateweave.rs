//! Building and calling the `gateweave` program.

use crate::places;
use crate::run::{self, Next, Running};
use crate::stage::Stage;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The compiled program.
#[derive(Clone, Debug)]
pub struct Gateweave {
    program: PathBuf,
}

impl Gateweave {
    /// Compiles it (about 400 crates on a new machine, else nothing) and takes the path that cargo reports.
    pub fn build(stage: &Stage) -> Result<Gateweave> {
        let mut command = Command::new(places::cargo());
        command.args(["build", "--release", "--package", "gateweave", "--message-format=json-render-diagnostics"]);
        let lines = run::streaming_lines(command.current_dir(places::root()), "cargo-build", Duration::from_secs(3600), stage)?;
        let program = lines.iter().filter(|line| line.starts_with('{')).find_map(|line| {
            let message = serde_json::from_str::<serde_json::Value>(line).ok()?;
            let ours = message["target"]["name"] == "gateweave";
            message["executable"].as_str().filter(|_| ours).map(PathBuf::from)
        });
        Ok(Gateweave { program: program.context("cargo built no program named gateweave")? })
    }

    /// `gateweave ARGUMENTS` in the repository's root.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(places::root());
        command
    }

    /// Runs to the end, output to the log `name`.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, name: &str, limit: Duration, stage: &Stage) -> Result<()> {
        run::streaming(&mut self.command(arguments), name, limit, stage)
    }

    /// Compiles every plugin of the repository.
    pub fn build_plugins(&self, stage: &Stage) -> Result<()> {
        self.run(["plugin", "build", "plugins"], "plugin-build", Duration::from_secs(1800), stage)
    }
}

/// `gateweave sim` with its wire on a unix datagram socket. Ended when dropped.
pub struct Simulation {
    running: Running,
}

impl Simulation {
    /// Starts the simulation of `project` and waits until its socket is bound; making it (Verilator, a C++ compiler) takes up to
    /// some minutes. `wire` is (its socket, the peer's).
    pub fn start(
        gateweave: &Gateweave,
        project: &Path,
        out: &Path,
        wire: (&Path, &Path),
        trace: Option<&Path>,
        stage: &Stage,
    ) -> Result<Simulation> {
        Simulation::on_wire(gateweave, project, out, &format!("unix:{},{}", wire.0.display(), wire.1.display()), None, trace, stage)
    }

    /// As [`Simulation::start`] with any wire, as `gateweave sim --wire` takes it. `regs` is a socket for the register bus.
    pub fn on_wire(
        gateweave: &Gateweave,
        project: &Path,
        out: &Path,
        wire: &str,
        regs: Option<&Path>,
        trace: Option<&Path>,
        stage: &Stage,
    ) -> Result<Simulation> {
        let mut command = gateweave.command(["sim"]);
        command.arg(project).arg("--out").arg(out).arg("--wire").arg(wire);
        if let Some(regs) = regs {
            command.arg("--regs").arg(format!("unix:{}", regs.display()));
        }
        if let Some(trace) = trace {
            command.arg("--trace").arg(trace);
        }
        let name = format!("sim-{}", out.file_name().unwrap_or_default().to_string_lossy());
        let mut running = Running::start(&mut command, &name, stage)?;
        let deadline = Instant::now() + Duration::from_secs(900);
        loop {
            match running.next(deadline.saturating_duration_since(Instant::now()))? {
                Next::Line(line) if line.trim() == "ready" => return Ok(Simulation { running }),
                Next::Line(line) => stage.progress(&line),
                Next::Ended(status) => bail!("the simulation ended before it was ready ({status})\n{}", running.said()),
                Next::Silent => bail!("the simulation was not ready after 900 s\n{}", running.said()),
            }
        }
    }

    /// Adds what the simulation said last to an error.
    pub fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        while let Ok(Next::Line(_)) = self.running.next(Duration::ZERO) {}
        error.context(format!("the simulation said:\n{}", self.running.said()))
    }

    /// Waits for it to end by itself, as it does when its wire has ended.
    pub fn ended(&mut self) -> Result<()> {
        loop {
            match self.running.next(Duration::from_secs(60))? {
                Next::Line(_) => {}
                Next::Ended(status) if status.success() => return Ok(()),
                Next::Ended(status) => bail!("the simulation ended with {status}\n{}", self.running.said()),
                Next::Silent => bail!("the simulation did not end within 60 s of its wire"),
            }
        }
    }

    /// Ends it as Ctrl-C does; it closes its trace and exits with 0.
    pub fn stop(self) -> Result<()> {
        match self.running.interrupt(Duration::from_secs(60))? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the simulation ended with {status} on Ctrl-C"),
            None => bail!("the simulation did not end within 60 s of Ctrl-C"),
        }
    }
}
