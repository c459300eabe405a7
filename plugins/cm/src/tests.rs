use super::*;

/// What the benches run: two applications, on rping's port and on two more.
fn bench_settings() -> Settings {
    Settings {
        slots: 4,
        apps: 2,
        services: vec![(7174, 0), (18515, 1), (7471, 1)],
        rd_atomic: 4,
        pmtu: 3,
        guid: 0x0047_57ff_fe00_0001,
        ip: 0x0a00_0001,
        ack_timeout: 19,
        // Times are short in a bench; 16 is the shortest that the program grants a peer.
        cm_timeout: 14,
    }
}

#[test]
fn the_program_fits_for_every_number_of_queue_pairs() {
    for bits in 0..=8 {
        let settings = Settings { slots: 1 << bits, apps: 8, services: (1..=32).map(|p| (p, 0)).collect(), ..bench_settings() };
        program::assemble(&settings).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The bench carries the program as text: it must be what the assembler makes.
#[test]
fn the_bench_runs_this_program() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench_program.veryl");
    let program = program::assemble(&bench_settings()).unwrap_or_else(|e| panic!("{e}"));
    let text = format!(
        "/// The program that the benches run, made by `UPDATE_PROGRAM=1 cargo test -p cm`.\npackage bench_program {{\n    const CODE_WORDS: u32 = {};\n    const CODE: bit<{}> = {};\n    const DATA_A: u32 = {};\n    const DATA_WORDS: u32 = {};\n    const DATA: bit<{}> = {};\n}}\n",
        program.code.len(),
        16 * program.code.len(),
        program.code_literal(),
        program.data_bits(),
        program.data.len(),
        32 * program.data.len(),
        program.data_literal()
    );
    if std::env::var_os("UPDATE_PROGRAM").is_some() {
        std::fs::write(&path, text).expect("written");
        std::fs::write("/tmp/cm.lst", program.listing()).expect("written");
    } else {
        // The formatter aligns.
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(words(&std::fs::read_to_string(&path).expect("the file")), words(&text), "UPDATE_PROGRAM=1 cargo test -p cm");
    }
}
