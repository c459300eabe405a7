//! `rdma-test`: what a host with rdma-core does to a board. See [`options::USAGE`].
//!
//! It connects by RDMA CM. The board's REP says which region may be used: `{be64 address, be32 rkey, be32 length}` in the first 16
//! bytes of its private data. Exit status: 0 all came back right, 1 wrong bytes or requests in error, 2 could not run.

mod by_board;
mod ffi;
mod modes;
mod options;
mod rdma;

use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match options::Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("rdma-test: {message}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let lib = match ffi::Functions::load() {
        Ok(lib) => lib,
        Err(error) => {
            eprintln!("rdma-test: {error} (Debian: apt-get install librdmacm1 ibverbs-providers)");
            return ExitCode::from(2);
        }
    };
    match if options.by_board { by_board::run(&lib, &options) } else { modes::run(&lib, &options) } {
        Ok(reports) => {
            for report in &reports {
                if options.json {
                    println!("{}", report.json());
                } else {
                    println!("rdma-test {}", report.line());
                }
            }
            if reports.iter().all(|report| report.wrong == 0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("rdma-test: {}:{}: {error}", options.address, options.port);
            ExitCode::FAILURE
        }
    }
}
