//! `cargo xtask`: set-up, demo, tests and measurements of this repository.
//!
//! Small on purpose: it depends on neither wasmtime nor the Veryl crates, so that the first progress shows within seconds of the
//! first call on a new machine.

mod accept;
mod guest;
mod places;
mod run;
mod stage;

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
    /// Boot the Linux guest on a pair of unix datagram sockets
    Guest(GuestArguments),
}

#[derive(clap::Args)]
struct GuestArguments {
    /// Socket that the guest binds
    #[arg(long, default_value = "/tmp/gateweave-guest.sock")]
    local: PathBuf,
    /// Socket that it sends to: the simulator's
    #[arg(long, default_value = "/tmp/gateweave-sim.sock")]
    remote: PathBuf,
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

fn guest_command(arguments: GuestArguments) -> Result<ExitCode> {
    use std::time::Duration;
    let stage = stage::Stage::start("Linux guest");
    let made = guest::image::prepare(arguments.image, &stage)?;
    if arguments.self_check {
        let program = accept::ping::udp_check(&stage)?;
        let load = accept::ping::Load { mtu: arguments.mtu, pings: 1000, timeout: Duration::from_secs(arguments.timeout) };
        let figures = accept::ping::against_responder(&made, &program, load, &stage)?;
        stage.done(&figures.sentence());
        return Ok(ExitCode::SUCCESS);
    }
    let mut settings = guest::machine::Settings::new(&arguments.local, &arguments.remote, "");
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
