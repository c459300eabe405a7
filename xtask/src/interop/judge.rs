//! What must hold over a capture: our own checker over every frame, and tshark, which finds no malformed packet.

use crate::run;
use anyhow::{Context, Result, bail};
use roce_peer::check::{Options, check};
use roce_peer::cm::{Mad, Message};
use roce_peer::packet::Frame;
use roce_peer::pcap::{self, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

/// Faults that a message shows.
const SHOWN: usize = 10;

/// Our own checker: ICRC, opcodes, PSNs, AETH, CM fields. Where the wire is not `lossy`, nobody may have missed a packet either; resends are no fault, for
/// Linux asks again when it has waited for long.
pub fn frames(capture: &Path, lossy: bool) -> Result<String> {
    let records = pcap::read(capture).map_err(anyhow::Error::msg)?;
    let report = check(&records, Options::default());
    if report.roce == 0 {
        bail!("{}: no RoCEv2 frame", capture.display());
    }
    if !report.faults.is_empty() {
        let shown = report.faults.iter().take(SHOWN).map(|fault| format!("frame {}: {}: {}", fault.frame, fault.rule, fault.text));
        bail!("{}: {} faults\n{}", capture.display(), report.faults.len(), shown.collect::<Vec<_>>().join("\n"));
    }
    if !lossy && report.gaps + report.sequence_naks > 0 {
        bail!(
            "{}: {} packets left out and {} sequence NAKs on a wire that loses nothing",
            capture.display(),
            report.gaps,
            report.sequence_naks
        );
    }
    Ok(format!(
        "{} frames, {} RoCEv2, {} connections, {} resends, NAKs: {} sequence, {} RNR, {} other",
        report.frames, report.roce, report.connections, report.resends, report.sequence_naks, report.rnr_naks, report.error_naks
    ))
}

/// That a board with so many queue pairs had given them all to peers that said no more, asked each for a sign of life, and then took a new one in.
pub fn places(capture: &Path, queue_pairs: usize) -> Result<String> {
    let records = pcap::read(capture).map_err(anyhow::Error::msg)?;
    let Some(entry) = entries(&records).into_iter().find(|entry| entry.held.len() >= queue_pairs) else {
        bail!("{}: nobody was let in while {queue_pairs} connections were open", capture.display());
    };
    if let Some((peer, _)) = entry.held.iter().find(|(_, asked)| **asked == 0) {
        bail!("{}: {} was let in, and {} not asked for a sign of life", capture.display(), entry.peer, peer.0);
    }
    let asked = entry.held.values().sum::<usize>();
    Ok(format!(
        "{} of {queue_pairs} were held, {asked} REPs went to their peers in vain before {} was let in",
        entry.held.len(),
        entry.peer
    ))
}

/// A peer and its communication ID.
type Caller = (Ipv4Addr, u32);

/// A REQ that was answered with a REP.
#[derive(Debug)]
struct Entry {
    peer: Ipv4Addr,
    /// The other connections without a goodbye, each with how many REPs it got again that nothing answered.
    held: BTreeMap<Caller, usize>,
}

fn entries(records: &[Record]) -> Vec<Entry> {
    let mut found = Vec::new();
    // Those whose RTU has been seen, and REPs since then; those that have a REP only.
    let (mut open, mut replied) = (BTreeMap::<Caller, usize>::new(), BTreeSet::<Caller>::new());
    for record in records {
        let Ok(frame) = Frame::decode(&record.frame) else { continue };
        let Some(mad) = Some(&frame.packet).filter(|packet| packet.bth.destination == 1).and_then(|packet| Mad::decode(&packet.payload))
        else {
            continue;
        };
        let (from, to) = (frame.source_ip, frame.destination_ip);
        match &mad.message {
            Message::Rep(rep) => match open.get_mut(&(to, rep.remote_comm_id)) {
                Some(again) => *again += 1,
                None if replied.insert((to, rep.remote_comm_id)) => found.push(Entry { peer: to, held: open.clone() }),
                None => {}
            },
            // Also a sign of life.
            Message::Rtu(rtu) => {
                replied.remove(&(from, rtu.local_comm_id));
                open.insert((from, rtu.local_comm_id), 0);
            }
            Message::Dreq(_) | Message::Drep(_) | Message::Rej(_) => {
                for (end, id) in mad.message.comm_ids().into_iter().flat_map(|(ours, theirs)| [(from, ours), (to, theirs)]) {
                    open.remove(&(end, id));
                    replied.remove(&(end, id));
                }
            }
            _ => {}
        }
    }
    found
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
    use roce_peer::cm::{Dreq, Rep, Rtu};

    /// Real traffic passes both; with one bit flipped it does not pass ours.
    #[test]
    fn captures_are_judged() {
        let capture = places::root().join("projects/rdma/peer/tests/captures/perftest-write-cm.pcap");
        frames(&capture, false).unwrap();
        if run::on_path("tshark").is_some() {
            tshark(&capture).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let wrong = folder.path().join("wrong.pcap");
        let mut bytes = std::fs::read(&capture).unwrap();
        let at = bytes.len() - 20;
        bytes[at] ^= 1;
        std::fs::write(&wrong, bytes).unwrap();
        assert!(frames(&wrong, false).unwrap_err().to_string().contains("icrc"));
    }

    /// Four peers that are gone and were asked, and a fifth that is let in; without the questions, or with a goodbye, that proves nothing.
    #[test]
    fn places_of_dead_peers() {
        let base = pcap::read(&places::root().join("projects/rdma/peer/tests/captures/perftest-write-cm.pcap")).unwrap();
        let base =
            base.iter().filter_map(|record| Frame::decode(&record.frame).ok()).find(|frame| frame.packet.bth.destination == 1).unwrap();
        let peer = |number: u8| Ipv4Addr::new(192, 168, 7, number);
        let said = |from, to, message| {
            let mut frame = base.clone();
            (frame.source_ip, frame.destination_ip) = (peer(from), peer(to));
            frame.packet.payload = Mad::new(message, 1).encode();
            frame.encode()
        };
        let rep = |n: u8| Message::Rep(Box::new(Rep { local_comm_id: 100 + u32::from(n), remote_comm_id: n.into(), ..Rep::default() }));
        let rtu = |n: u8| Message::Rtu(Box::new(Rtu { local_comm_id: n.into(), remote_comm_id: 100 + u32::from(n), ..Rtu::default() }));
        let dreq = |n: u8| Message::Dreq(Box::new(Dreq { local_comm_id: n.into(), remote_comm_id: 100 + u32::from(n), ..Dreq::default() }));
        let judged = |asked: std::ops::Range<u8>, answers: Option<u8>, leaves: Option<u8>| {
            let mut frames = (11..15).flat_map(|n| [said(2, n, rep(n)), said(n, 2, rtu(n))]).collect::<Vec<_>>();
            frames.extend(asked.map(|n| said(2, n, rep(n))));
            frames.extend(answers.map(|n| said(n, 2, rtu(n))));
            frames.extend(leaves.map(|n| said(n, 2, dreq(n))));
            frames.extend([said(2, 15, rep(15)), said(15, 2, rtu(15)), said(15, 2, dreq(15))]);
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("made.pcap");
            let mut writer = pcap::Writer::new(std::fs::File::create(&file).unwrap()).unwrap();
            frames.iter().for_each(|frame| writer.record(0, frame).unwrap());
            drop(writer);
            super::places(&file, 4).map_err(|error| error.to_string())
        };
        assert!(judged(11..15, None, None).unwrap().contains("4 REPs went to their peers in vain before 192.168.7.15"));
        assert!(judged(11..14, None, None).unwrap_err().contains("192.168.7.14 not asked"));
        assert!(judged(11..15, Some(12), None).unwrap_err().contains("192.168.7.12 not asked"));
        assert!(judged(11..15, None, Some(13)).unwrap_err().contains("nobody was let in"));
    }
}
