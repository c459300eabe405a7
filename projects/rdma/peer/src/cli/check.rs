//! `roce-peer check`.

use roce_peer::check::{self, Options};
use roce_peer::pcap;
use std::path::Path;

pub const USAGE: &str = "usage: roce-peer check FILE.pcap ... [--json] [--lossless] [--pmtu BYTES]

  --json      one object a file on standard output
  --lossless  resends, gaps and sequence NAKs are faults
  --pmtu      path MTU of connections that are older than the capture";

/// Faults of one file that are shown.
const SHOWN: usize = 40;

/// Whether no capture has a fault.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (mut files, mut json, mut options) = (Vec::new(), false, Options::default());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => json = true,
            "--lossless" => options.lossless = true,
            "--pmtu" => options.pmtu = Some(words.next().and_then(|value| value.parse().ok()).ok_or("--pmtu wants a number of bytes")?),
            option if option.starts_with("--") => return Err(format!("unknown option {option}\n{USAGE}")),
            file => files.push(file),
        }
    }
    if files.is_empty() {
        return Err(format!("no file\n{USAGE}"));
    }
    let mut right = true;
    for file in files {
        let report = check::check(&pcap::read(Path::new(file))?, options);
        right &= report.faults.is_empty();
        if json {
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
    Ok(right)
}
