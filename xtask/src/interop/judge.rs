//! What must hold over a capture: our own checker over every frame, and tshark, which finds no malformed packet.

use crate::run;
use anyhow::{Context, Result, bail};
use roce_peer::check::{Options, check};
use roce_peer::pcap;
use std::path::Path;
use std::process::Command;

/// Faults that a message shows.
const SHOWN: usize = 10;

/// Our own checker: ICRC, opcodes, PSNs, AETH, CM fields.
pub fn frames(capture: &Path) -> Result<String> {
    let records = pcap::read(capture).map_err(anyhow::Error::msg)?;
    let report = check(&records, Options::default());
    if report.roce == 0 {
        bail!("{}: no RoCEv2 frame", capture.display());
    }
    if !report.faults.is_empty() {
        let shown = report.faults.iter().take(SHOWN).map(|fault| format!("frame {}: {}: {}", fault.frame, fault.rule, fault.text));
        bail!("{}: {} faults\n{}", capture.display(), report.faults.len(), shown.collect::<Vec<_>>().join("\n"));
    }
    Ok(format!(
        "{} frames, {} RoCEv2, {} connections, {} resends, NAKs: {} sequence, {} RNR, {} other",
        report.frames, report.roce, report.connections, report.resends, report.sequence_naks, report.rnr_naks, report.error_naks
    ))
}

/// tshark's opinion. Its guess that SENDs carry RPC over RDMA calls short ones malformed, Linux' own included, so it must not guess.
pub fn tshark(capture: &Path) -> Result<String> {
    if run::on_path("tshark").is_none() {
        bail!("tshark is not installed; run once: apt-get install tshark");
    }
    let mut command = Command::new("tshark");
    command.args([
        "-n",
        "--disable-protocol",
        "rpcordma",
        "-Y",
        "_ws.malformed",
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "_ws.col.Info",
        "-r",
    ]);
    let said = run::output(command.arg(capture)).context("tshark")?;
    let lines = said.lines().collect::<Vec<_>>();
    if !lines.is_empty() {
        bail!("{}: tshark calls {} frames malformed\n{}", capture.display(), lines.len(), lines[..lines.len().min(SHOWN)].join("\n"));
    }
    Ok("no malformed packet".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places;

    /// Real traffic passes both; with one bit flipped it does not pass ours.
    #[test]
    fn captures_are_judged() {
        let capture = places::root().join("projects/rdma/peer/tests/captures/perftest-write-cm.pcap");
        frames(&capture).unwrap();
        if run::on_path("tshark").is_some() {
            tshark(&capture).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let wrong = folder.path().join("wrong.pcap");
        let mut bytes = std::fs::read(&capture).unwrap();
        let at = bytes.len() - 20;
        bytes[at] ^= 1;
        std::fs::write(&wrong, bytes).unwrap();
        assert!(frames(&wrong).unwrap_err().to_string().contains("icrc"));
    }
}
