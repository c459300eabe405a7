//! `roce-peer check ...` goes over captures, `roce-peer drive ...` tries a board in a simulation.
//!
//! Exit status: 0 all was right, 1 something was wrong, 2 could not run.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let result = match arguments.split_first() {
        Some((command, rest)) if command == "check" => cli::check::run(rest),
        Some((command, rest)) if command == "drive" => cli::drive::run(rest),
        _ => Err(format!("{}\n\n{}", cli::check::USAGE, cli::drive::USAGE)),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("roce-peer: {error}");
            ExitCode::from(2)
        }
    }
}
