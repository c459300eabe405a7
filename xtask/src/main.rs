//! `cargo xtask`: set-up, demo, tests and measurements of this repository.
//!
//! Small on purpose: it depends on neither wasmtime nor the Veryl crates, so that the first progress shows within seconds of the
//! first call on a new machine.

mod accept;
mod bare;
mod bench;
mod boards;
mod demo;
mod gateweave;
mod guest;
mod interop;
mod marked;
mod peer;
mod places;
mod run;
mod setup;
mod stage;
mod suite;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, demo, tests and measurements of Gateweave")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Look for everything that is needed; as root install what is missing
    Setup,
    /// Set up, build the plugins, make the bitstream of projects/ping, and let a Linux guest ping its simulation
    Demo,
    /// Set up and run all tests
    Test {
        /// Every width and MTU, and the plugins' own benches
        #[arg(long)]
        all: bool,
    },
    /// Measure, and write bench.json and the tables and plots of the README
    Bench(bench::Arguments),
    /// Build, synthesize and lint projects/ping for every board, and write the table of it into the documents
    Boards,
    /// Run demo and test in a bare Debian 12 as a plain user (needs root, for debootstrap)
    BareCheck {
        /// Command to run in the fresh clone; may be repeated
        #[arg(long = "command", default_values = ["cargo xtask demo", "cargo xtask test"])]
        commands: Vec<String>,
        /// As root with only git and a linker installed: the set-up installs the rest
        #[arg(long)]
        root: bool,
        /// Leave the system in the cache
        #[arg(long)]
        keep: bool,
    },
    /// Let programs of Linux use the simulated board's RDMA
    Interop(interop::Arguments),
    /// Try the simulated board with a peer in software, in simulated time: speed, loss, hostile packets
    Peer(peer::Arguments),
    /// Boot the Linux guest on a pair of unix datagram sockets
    Guest(GuestArguments),
}

#[derive(clap::Args)]
struct GuestArguments {
    /// Socket that the guest binds (default: gateweave-guest.sock in the folder for temporary files)
    #[arg(long)]
    local: Option<PathBuf>,
    /// Socket that it sends to, the simulator's (default: gateweave-sim.sock in the same folder)
    #[arg(long)]
    remote: Option<PathBuf>,
    /// Shell script to run in the guest; without it a shell on this terminal
    #[arg(long)]
    script: Option<PathBuf>,
    /// Host files to put into the guest's /gateweave folder
    #[arg(long)]
    file: Vec<PathBuf>,
    #[arg(long, default_value_t = 1500)]
    mtu: u32,
    #[arg(long, default_value = "192.168.7.1/24")]
    address: String,
    /// Record the wire
    #[arg(long)]
    pcap: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "net")]
    image: guest::image::Image,
    /// Seconds that a script may take
    #[arg(long, default_value_t = 600)]
    timeout: u64,
    /// Check guest and test harness against a responder of our own instead of a simulation, then exit
    #[arg(long)]
    self_check: bool,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Task::Setup => setup_command(),
        Task::Demo => demo::run(),
        Task::Test { all } => suite::run(all),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Boards => boards::run(),
        Task::BareCheck { commands, root, keep } => bare::run(&bare::Options { commands, root, keep }),
        Task::Peer(arguments) => peer::run(&arguments),
        Task::Interop(arguments) => interop::run(&arguments),
        Task::Guest(arguments) => guest_command(arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn setup_command() -> Result<ExitCode> {
    let stage = stage::Stage::start("set-up");
    let machine = setup::run(setup::Wants { guest: true }, &stage)?;
    stage.done("");
    if let Some(why) = machine.no_guest {
        eprintln!("The Linux guest cannot run here. {why}");
    }
    Ok(ExitCode::SUCCESS)
}

fn guest_command(arguments: GuestArguments) -> Result<ExitCode> {
    use std::time::Duration;
    let stage = stage::Stage::start("Linux guest");
    let made = guest::image::prepare(arguments.image, &stage)?;
    if arguments.self_check {
        let program = accept::ping::udp_check(&stage)?;
        let load = accept::ping::Load { timeout: Duration::from_secs(arguments.timeout), ..accept::ping::Load::full(arguments.mtu) };
        let figures = accept::ping::against_responder(&made, &program, load, &stage)?;
        stage.done(&figures.sentence());
        return Ok(ExitCode::SUCCESS);
    }
    let default = |name: &str| std::env::temp_dir().join(name);
    let local = arguments.local.unwrap_or_else(|| default("gateweave-guest.sock"));
    let remote = arguments.remote.unwrap_or_else(|| default("gateweave-sim.sock"));
    let mut settings = guest::machine::Settings::new(&local, &remote, "");
    settings.mtu = arguments.mtu;
    settings.address = arguments.address;
    settings.pcap = arguments.pcap;
    for file in &arguments.file {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        settings.files.push(guest::machine::Extra { path: format!("/gateweave/{name}"), data: std::fs::read(file)? });
    }
    let Some(script) = arguments.script else {
        stage.done(&made.description);
        guest::machine::interactive(&made, &settings)?;
        return Ok(ExitCode::SUCCESS);
    };
    settings.script = std::fs::read_to_string(script)?;
    stage.say("booting");
    let outcome = guest::machine::Guest::boot(&made, &settings)?.wait(Duration::from_secs(arguments.timeout), |line| println!("{line}"))?;
    stage.done(&format!("exit status {}, boot {:.1} s", outcome.status, outcome.boot.as_secs_f64()));
    Ok(ExitCode::from(outcome.status.clamp(0, 255) as u8))
}
