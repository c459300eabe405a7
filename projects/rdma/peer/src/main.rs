//! `roce-peer check FILE.pcap ... [--json] [--lossless]`
//!
//! Goes over every frame of captures. Exit status: 0 no fault, 1 faults, 2 could not run.

use roce_peer::check::{self, Options};
use roce_peer::pcap;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: roce-peer check FILE.pcap ... [--json] [--lossless]

  --json      one object a file on standard output
  --lossless  resends, gaps and sequence NAKs are faults";

/// Faults of one file that are shown.
const SHOWN: usize = 40;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let files = arguments.iter().skip(1).filter(|argument| !argument.starts_with("--")).collect::<Vec<_>>();
    let unknown = arguments.iter().find(|argument| argument.starts_with("--") && !["--json", "--lossless"].contains(&argument.as_str()));
    if arguments.first().map(String::as_str) != Some("check") || files.is_empty() || unknown.is_some() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mut faults = 0;
    for file in files {
        let records = match pcap::read(Path::new(file)) {
            Ok(records) => records,
            Err(error) => {
                eprintln!("roce-peer: {error}");
                return ExitCode::from(2);
            }
        };
        let report = check::check(&records, Options { lossless: flag("--lossless"), pmtu: None });
        faults += report.faults.len();
        if flag("--json") {
            println!("{}", check::to_json(&report));
            continue;
        }
        println!(
            "{file}: {} frames, {} RoCEv2, {} connections, {} resends, {} gaps, NAKs: {} sequence, {} RNR, {} other; {} faults",
            report.frames,
            report.roce,
            report.connections,
            report.resends,
            report.gaps,
            report.sequence_naks,
            report.rnr_naks,
            report.error_naks,
            report.faults.len()
        );
        for fault in report.faults.iter().take(SHOWN) {
            println!("  frame {}: {}: {}", fault.frame, fault.rule, fault.text);
        }
        if report.faults.len() > SHOWN {
            println!("  and {} more", report.faults.len() - SHOWN);
        }
    }
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
