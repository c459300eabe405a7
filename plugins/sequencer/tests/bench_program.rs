//! The bench of `gw::sequencer` carries a program as text: it must be what the assembler makes of `sum.seq`.

use std::path::Path;

use gateweave_sequencer::Assembler;

#[test]
fn the_bench_of_the_hdl_runs_this_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../composer/hdl/tests/bench_sequencer.veryl");
    let program = Assembler::new().source("sum.seq", include_str!("sum.seq")).assemble().unwrap_or_else(|e| panic!("{e}"));
    let text = std::fs::read_to_string(&path).expect("the bench");
    let expected: String = text
        .lines()
        .map(|line| match line.trim_start().split_once(':') {
            Some(("const CODE", _)) => format!("    const CODE: bit<{}> = {};\n", 16 * program.code.len(), program.code_literal()),
            Some(("const DATA", _)) => format!("    const DATA: bit<{}> = {};\n", 32 * program.data.len(), program.data_literal()),
            _ => format!("{line}\n"),
        })
        .collect();
    if std::env::var_os("UPDATE_PROGRAM").is_some() {
        std::fs::write(&path, expected).expect("written");
    } else {
        // The formatter aligns.
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<String>();
        assert_eq!(words(&text), words(&expected), "UPDATE_PROGRAM=1 cargo test -p gateweave-sequencer");
    }
}
