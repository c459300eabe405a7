//! `udp-check ADDRESS PORT [--lengths A..=B] [--window N] [--timeout SECONDS] [--seed N]`
//!
//! Sends one UDP datagram of every payload length and compares the echo byte for byte. Nothing is sent twice: a datagram that does
//! not come back is lost, and loss is failure. Exit status: 0 all came back right, 1 not all did, 2 could not run.
//!
//! Build it static, so that it runs in any guest: `RUSTFLAGS="-C target-feature=+crt-static" cargo build --release`.

mod check;
mod options;

use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match options::Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("udp-check: {message}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match check::run(&options) {
        Ok(report) => {
            // One line for programs, one for people.
            println!("udp-check {report}");
            println!("{}", report.sentence());
            if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("udp-check: {}:{}: {error}", options.address, options.port);
            ExitCode::from(2)
        }
    }
}
