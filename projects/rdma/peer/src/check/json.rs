//! The report for programs.

use super::Report;
use std::collections::BTreeMap;

fn text(value: &str) -> String {
    let escaped = value.chars().map(|c| match c {
        '"' => "\\\"".to_string(),
        '\\' => "\\\\".to_string(),
        c if (c as u32) < 0x20 => format!("\\u{:04x}", c as u32),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn map(values: &BTreeMap<String, usize>) -> String {
    let pairs = values.iter().map(|(key, value)| format!("{}: {value}", text(key))).collect::<Vec<_>>();
    format!("{{{}}}", pairs.join(", "))
}

/// One object; its keys are the fields of [`Report`].
pub fn to_json(report: &Report) -> String {
    let faults = report
        .faults
        .iter()
        .map(|fault| format!("{{\"frame\": {}, \"rule\": {}, \"text\": {}}}", fault.frame, text(fault.rule), text(&fault.text)));
    let faults = faults.collect::<Vec<_>>().join(", ");
    let numbers = [
        ("frames", report.frames as u64),
        ("roce", report.roce as u64),
        ("bytes", report.bytes),
        ("connections", report.connections as u64),
        ("resends", report.resends as u64),
        ("sequence_naks", report.sequence_naks as u64),
        ("rnr_naks", report.rnr_naks as u64),
        ("error_naks", report.error_naks as u64),
        ("gaps", report.gaps as u64),
        ("unpaired", report.unpaired as u64),
    ];
    let numbers = numbers.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect::<Vec<_>>().join(", ");
    format!("{{{numbers}, \"opcodes\": {}, \"messages\": {}, \"faults\": [{faults}]}}", map(&report.opcodes), map(&report.messages))
}
