//! Throughput as a share of the wire's limit, and latency, from simulated time.

use super::{LOCAL, Target, complete, connect, disconnect, work, wrong};
use crate::live::{Station, Wire};
use crate::model::{Operation, Status};
use crate::psn;
use std::io;

/// A measurement of throughput.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    pub pmtu: u32,
    pub size: u32,
    pub payload_mb_s: f64,
    /// What the wire allows.
    pub limit_mb_s: f64,
    /// Packets that were resent.
    pub resends: u64,
}

impl Throughput {
    /// Of the limit, 1 = all.
    pub fn share(&self) -> f64 {
        self.payload_mb_s / self.limit_mb_s
    }
}

/// Ethernet with preamble, FCS and gap (38), IPv4, UDP, BTH and ICRC (44).
const PACKET: u32 = 82;

/// Payload MB/s of messages of `size` bytes on a wire on which a byte takes `byte_ns`. `extension`: bytes of headers that a message has
/// beyond those of every packet (RETH 16; AETH of a READ's first and last response, 4 or 8).
pub fn limit(size: u32, pmtu: u32, extension: u32, byte_ns: f64) -> f64 {
    let wire = size + psn::count(size, pmtu) * PACKET + extension;
    f64::from(size) / (f64::from(wire) * byte_ns) * 1000.0
}

/// `count` messages of `size` bytes, `depth` of them READs in flight at most.
///
/// # Errors
/// Those of the wire; a request that fails.
pub fn throughput<W: Wire>(
    station: &mut Station<W>,
    target: Target,
    operation: Operation,
    size: u32,
    count: u64,
) -> io::Result<Throughput> {
    let (id, offer) = connect(station, target)?;
    let size = size.min(offer.length);
    let pmtu = super::qp(station, id)?.config.pmtu;
    let works = (0..count).map(|n| work(n, operation, LOCAL, size, offer.address, &offer)).collect::<Vec<_>>();
    let (entered, left) = (station.entered.len(), station.left.len());
    let patience = (count * u64::from(size) * 100).max(super::PATIENCE_NS);
    let done = complete(station, id, &works, patience)?;
    if let Some(failed) = done.iter().find(|done| done.status != Status::Success) {
        return Err(wrong(format!("{operation:?} of {size} bytes: {failed:?}")));
    }
    // What carries the payload, from its first bit to its last, and one gap.
    let read = operation == Operation::Read;
    let frames = if read { &station.left[left..] } else { &station.entered[entered..] };
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return Err(wrong("no frame was seen".into())) };
    let ns = (last.1 - first.0) as f64 + 12.0 * station.byte_ns;
    let extension = match (read, size <= pmtu) {
        (true, true) => 4,
        (true, false) => 8,
        (false, _) => 16,
    };
    let result = Throughput {
        pmtu,
        size,
        payload_mb_s: (count * u64::from(size)) as f64 / ns * 1000.0,
        limit_mb_s: limit(size, pmtu, extension, station.byte_ns),
        resends: super::qp(station, id)?.resends().0,
    };
    disconnect(station, id)?;
    Ok(result)
}

/// From the last FCS bit of a request in to the first preamble bit of the board's answer, ns: shortest and longest of `tries` on an idle wire.
///
/// # Errors
/// Those of the wire; a request that fails.
pub fn latency<W: Wire>(station: &mut Station<W>, target: Target, operation: Operation, size: u32, tries: u64) -> io::Result<(u64, u64)> {
    let (id, offer) = connect(station, target)?;
    let pmtu = super::qp(station, id)?.config.pmtu;
    let (mut shortest, mut longest) = (u64::MAX, 0);
    for n in 0..tries {
        // Idle for a time that differs, so that refresh and clocks stand differently.
        let until = station.now() + 20_000 + n * 1237;
        station.run(until, |_| false)?;
        let (entered, left) = (station.entered.len(), station.left.len());
        let done = complete(station, id, &[work(n, operation, LOCAL, size, offer.address, &offer)], super::PATIENCE_NS)?;
        if done.iter().any(|done| done.status != Status::Success) {
            return Err(wrong(format!("{operation:?} of {size} bytes: {done:?}")));
        }
        // The request's last packet; a READ has one.
        let packets = if operation == Operation::Read { 1 } else { psn::count(size, pmtu) as usize };
        let (Some(request), Some(answer)) = (station.entered.get(entered + packets - 1), station.left.get(left)) else {
            return Err(wrong("no frame was seen".into()));
        };
        let ns = answer.0.saturating_sub(request.1);
        (shortest, longest) = (shortest.min(ns), longest.max(ns));
    }
    disconnect(station, id)?;
    Ok((shortest, longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the fact sheet, 64 KiB at 1 Gbit/s.
    #[test]
    fn limits_are_those_of_the_fact_sheet() {
        for (pmtu, write, read) in
            [(256, 94.66, 94.67), (512, 107.72, 107.73), (1024, 115.71, 115.72), (2048, 120.16, 120.17), (4096, 122.52, 122.53)]
        {
            assert!((limit(65536, pmtu, 16, 8.0) - write).abs() < 0.006, "{pmtu}: {}", limit(65536, pmtu, 16, 8.0));
            assert!((limit(65536, pmtu, 8, 8.0) - read).abs() < 0.006, "{pmtu}: {}", limit(65536, pmtu, 8, 8.0));
        }
    }
}
