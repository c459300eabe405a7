//! Throughput and latency of the RDMA endpoint: programs of the peer (`projects/rdma/peer`) in lock-step with the simulated board.

use crate::gateweave::Gateweave;
use crate::interop::{Design, Memory};
use crate::peer::{self, Run};
use crate::stage::Stage;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write as _;

/// A design, and what is measured on it.
struct Case {
    /// Bits of the datapath, and its clock in MHz.
    width: u32,
    clock: f64,
    /// Of the link.
    gbps: u32,
    /// For which frames the rate is promised, where the clock is too low for the shortest.
    shortest_frame: Option<u32>,
    memory: Memory,
    pmtus: &'static [u32],
}

/// The clocks that the width needs for the worst case of the link's frames; 512 bits carry 100 Gb/s at 250 MHz but for frames of 65 to 75 bytes.
const CASES: [Case; 5] = [
    Case { width: 32, clock: 62.5, gbps: 1, shortest_frame: None, memory: Memory::Bram, pmtus: &[256, 512, 1024, 2048, 4096] },
    Case { width: 32, clock: 62.5, gbps: 1, shortest_frame: None, memory: Memory::Sdram, pmtus: &[256, 512, 1024, 2048, 4096] },
    Case { width: 64, clock: 156.25, gbps: 10, shortest_frame: None, memory: Memory::Bram, pmtus: &[1024, 4096] },
    Case { width: 512, clock: 250.0, gbps: 100, shortest_frame: Some(1024), memory: Memory::Bram, pmtus: &[1024, 4096] },
    Case { width: 512, clock: 322.265625, gbps: 100, shortest_frame: None, memory: Memory::Bram, pmtus: &[1024, 4096] },
];

/// Path MTU at which the latency is measured.
const LATENCY_PMTU: u32 = 1024;
/// Bytes of the messages whose throughput the table has.
const SIZE: u64 = 65536;

/// The records of all cases.
pub fn run(gateweave: &Gateweave) -> Result<Vec<Value>> {
    let mut records = Vec::new();
    for case in &CASES {
        let design = Design::variant(case.width, case.clock, case.gbps, case.shortest_frame, case.memory);
        for &pmtu in case.pmtus {
            let programs: &[&str] =
                if pmtu == LATENCY_PMTU { &["speed", "requester-speed", "latency"] } else { &["speed", "requester-speed"] };
            for program in programs {
                let stage = Stage::start(&format!(
                    "{program}: {} Gb/s, {} bits at {} MHz, {}, PMTU {pmtu}",
                    case.gbps,
                    case.width,
                    case.clock,
                    case.memory.name()
                ));
                let mut texts = Vec::new();
                let (run, settings) = (Run { design: &design, mtu: Some(4200), trace: None }, peer::settings(&design, pmtu));
                let result = peer::one(gateweave, &run, &settings, program, &stage, |line| {
                    texts.push(line.text);
                    texts.extend(line.failed.then(|| "  (misses what is wanted)".to_owned()));
                    records.extend(line.record);
                });
                result?;
                stage.done("");
                texts.iter().for_each(|text| println!("{text}"));
            }
        }
    }
    records.iter().map(|record| serde_json::from_str(record).context("a record of the peer")).collect()
}

/// Rate of the link, width and clock (in Hz) of the datapath, memory.
type Kind = (u64, u64, u64, String);

/// What stands in a row of a table: design, role, operation, the records of its cells.
type Row<'a> = (Kind, &'a str, &'a str, Vec<&'a Value>);

fn kind(record: &Value) -> Kind {
    let number = |key: &str| record[key].as_f64().unwrap_or(0.0) as u64;
    (
        number("link_gbps"),
        number("width"),
        (record["mhz"].as_f64().unwrap_or(0.0) * 1e6) as u64,
        record["memory"].as_str().unwrap_or_default().to_owned(),
    )
}

/// Those of `records` that answer to `test`, grouped by what stands in a row, in the order of their first.
fn rows<'a>(records: &'a [Value], test: &str) -> Vec<Row<'a>> {
    let mut rows: Vec<Row> = Vec::new();
    for record in records.iter().filter(|record| record["test"] == test) {
        let (kind, role, op) = (kind(record), record["role"].as_str().unwrap_or_default(), record["op"].as_str().unwrap_or_default());
        match rows.iter_mut().find(|row| row.0 == kind && row.1 == role && row.2 == op) {
            Some(row) => row.3.push(record),
            None => rows.push((kind, role, op, vec![record])),
        }
    }
    rows
}

fn label(kind: &Kind) -> String {
    let memory = match kind.3.as_str() {
        "sdram" => "SDRAM of the i5",
        "axi" => "AXI4 memory",
        _ => "block RAM",
    };
    format!("{}G, {} bits at {} MHz, {memory}", kind.0, kind.1, kind.2 as f64 / 1e6)
}

/// The tables of throughput and latency.
pub fn tables(records: &[Value]) -> String {
    let large =
        records.iter().filter(|record| record["size"].as_u64() == Some(SIZE) || record["test"] == "latency").cloned().collect::<Vec<_>>();
    let columns = |test: &str, key: &str| {
        let mut values = large.iter().filter(|record| record["test"] == test).filter_map(|record| record[key].as_u64()).collect::<Vec<_>>();
        values.sort_unstable();
        values.dedup();
        values
    };
    let mut text = String::new();
    let pmtus = columns("throughput", "pmtu");
    let heads = pmtus.iter().map(|pmtu| format!(" PMTU {pmtu} |")).collect::<String>();
    let _ = writeln!(
        text,
        "Payload in MB/s and as a share of what the wire allows, messages of 64 KiB:\n\n| | board is | |{heads}\n|---|---|---|{}",
        "---|".repeat(pmtus.len())
    );
    for (kind, role, op, found) in rows(&large, "throughput") {
        let cell = |pmtu: &u64| {
            found.iter().find(|record| record["pmtu"].as_u64() == Some(*pmtu)).map_or(" |".to_owned(), |record| {
                let number = |key: &str| record[key].as_f64().unwrap_or(0.0);
                format!(" {:.1}, {:.2} % |", number("payload_mb_s"), number("share") * 100.0)
            })
        };
        let _ = writeln!(text, "| {} | {role} | {op} |{}", label(&kind), pmtus.iter().map(cell).collect::<String>());
    }
    let sizes = columns("latency", "size");
    let heads = sizes.iter().map(|size| format!(" {size} bytes |")).collect::<String>();
    let _ = writeln!(
        text,
        "\nLatency in ns from the last FCS byte of a request in to the first preamble byte of the answer out, the longest of 8 on an idle link, PMTU {LATENCY_PMTU}:\n\n| | |{heads}\n|---|---|{}",
        "---|".repeat(sizes.len())
    );
    for (kind, _, op, found) in rows(&large, "latency") {
        let cell = |size: &u64| {
            let record = found.iter().find(|record| record["size"].as_u64() == Some(*size));
            record.and_then(|record| record["latency_ns"].as_u64()).map_or(" |".to_owned(), |ns| format!(" {ns} |"))
        };
        let answer = if op == "READ" { "READ to first response" } else { "WRITE to ACK" };
        let _ = writeln!(text, "| {} | {answer} |{}", label(&kind), sizes.iter().map(cell).collect::<String>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_have_a_cell_for_each_record() {
        let base = |test: &str, pmtu: u32, size: u32| {
            json!({ "test": test, "role": "responder", "op": "READ", "pmtu": pmtu, "size": size, "width": 32, "mhz": 62.5, "link_gbps": 1,
            "memory": "bram", "payload_mb_s": 115.72, "limit_mb_s": 115.72, "share": 0.99996, "latency_ns": 700 })
        };
        let text = tables(&[base("throughput", 1024, 65536), base("throughput", 1024, 4096), base("latency", 1024, 64)]);
        assert!(text.contains("| 1G, 32 bits at 62.5 MHz, block RAM | responder | READ | 115.7, 100.00 % |"), "{text}");
        assert!(text.contains("| 1G, 32 bits at 62.5 MHz, block RAM | READ to first response | 700 |"), "{text}");
        assert!(!text.contains("4096"), "{text}");
    }
}
