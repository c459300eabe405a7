//! The command line: one thin file per command over the library.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0 fine, 1 the project is wrong, 2 the tool could not run.

mod board;
mod build;
mod check;
mod doctor;
mod flash;
mod generate;
mod graph;
mod new;
mod plugin;
mod show;
mod sim;

use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::diag::{Diagnostic, Diagnostics};

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON document on stdout: `{ "ok", "data", "diagnostics" }`.
    Json,
}

/// Compose FPGA board designs from plugins: bitstream, simulation and documents from one TOML file.
#[derive(Debug, Parser)]
#[command(name = "gateweave", version, max_term_width = 100)]
struct Cli {
    /// How results are printed.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    #[command(subcommand)]
    command: Command,
}

/// A project and where its output goes.
#[derive(Args, Clone, Debug)]
pub struct ProjectArgs {
    /// Folder that holds `project.toml`.
    pub project: PathBuf,
    /// Folder for the output; `build/<project>` where it is not given.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a project to start from.
    New(new::NewArgs),
    /// Check a project: everything short of running a tool.
    Check(check::CheckArgs),
    /// Write the HDL, the constraints, the register documents and the diagram.
    Generate(generate::GenerateArgs),
    /// Simulate the board on a wire that real programs can talk to.
    Sim(sim::SimArgs),
    /// Make the bitstream, or the vendor's project where no open flow exists.
    Build(build::BuildArgs),
    /// Load the bitstream into the board.
    Flash(flash::FlashArgs),
    /// Show instances, links and what the planner chose.
    Graph(graph::GraphArgs),
    /// Work with plugins.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Look at boards.
    #[command(subcommand)]
    Board(board::BoardCommand),
    /// Say what this machine has and lacks.
    Doctor(doctor::DoctorArgs),
    /// Parses Veryl from stdin in a process of its own; used by the plugin host.
    #[command(name = "__hdl", hide = true)]
    Hdl,
}

/// What a command ends with.
pub struct Outcome {
    /// For `--format json`.
    pub data: serde_json::Value,
    /// For people, on stdout.
    pub text: String,
    /// Warnings, or errors beside the data.
    pub diagnostics: Diagnostics,
}

impl Outcome {
    /// Data and its text without a diagnostic.
    pub fn new(data: serde_json::Value, text: impl Into<String>) -> Self {
        Self { data, text: text.into(), diagnostics: Diagnostics::default() }
    }

    /// The same with warnings.
    #[must_use]
    pub fn with(mut self, diagnostics: Diagnostics) -> Self {
        self.diagnostics.extend(diagnostics);
        self
    }
}

/// Result of a command.
pub type CommandResult = Result<Outcome, Diagnostics>;

/// Codes that say that the tool could not run, rather than that the project is wrong: files and folders of the
/// machine (GW0111), tools, the surroundings of a simulation, and commands (GW08xx).
fn could_not_run(diagnostic: &Diagnostic) -> bool {
    let code = diagnostic.code;
    matches!(code, "GW0111" | "GW0320" | "GW0335" | "GW0336")
        || code.starts_with("GW08")
        || crate::tools::is_tool_failure(code)
        || crate::sim::is_tool_failure(code)
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let talk = cli.format == Format::Human;
    let result = match cli.command {
        Command::New(args) => new::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Sim(args) => sim::run(&args, talk),
        Command::Build(args) => build::run(&args),
        Command::Flash(args) => flash::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Plugin(command) => plugin::run(&command),
        Command::Board(command) => board::run(&command),
        Command::Doctor(args) => doctor::run(&args),
        Command::Hdl => return plugin::hdl_child(),
    };
    finish(cli.format, result)
}

/// A text and a line's end on standard output. Nobody reads on where a pipe is closed, and that is no fault.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn finish(format: Format, result: CommandResult) -> ExitCode {
    let (data, text, diagnostics) = match result {
        Ok(outcome) => (outcome.data, outcome.text, outcome.diagnostics),
        Err(diagnostics) => (serde_json::Value::Null, String::new(), diagnostics),
    };
    let mut diagnostics = diagnostics;
    diagnostics.sort();
    let failed = diagnostics.has_errors();
    match format {
        Format::Json => {
            let json = serde_json::json!({ "ok": !failed, "data": data, "diagnostics": show::json(&diagnostics) });
            say(&serde_json::to_string_pretty(&json).unwrap_or_default());
        }
        Format::Human => {
            if !text.is_empty() {
                say(text.trim_end_matches('\n'));
            }
            let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            eprint!("{}", show::human(&diagnostics, color));
            if failed {
                let count = diagnostics.0.iter().filter(|d| d.severity == crate::diag::Severity::Error).count();
                eprintln!("{count} error{}; `docs/errors/CODE.md` explains a code", if count == 1 { "" } else { "s" });
            }
        }
    }
    if !failed {
        ExitCode::SUCCESS
    } else if diagnostics.0.iter().any(could_not_run) {
        ExitCode::from(2)
    } else {
        ExitCode::from(1)
    }
}
