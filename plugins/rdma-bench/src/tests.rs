use super::*;

/// What the bench runs: a buffer of 16 KiB.
fn bench_params() -> Params {
    Params { queue_pairs: 4, send_queue: 8, completions: 32, port: 18516, base: 0x4000, size: 512 + 16384, key: 0x305 }
}

#[test]
fn the_program_fits_for_every_number_of_queue_pairs() {
    for bits in 0..=4 {
        let params = Params { queue_pairs: 1 << bits, completions: 64, ..bench_params() };
        let program = program::assemble(&settings(&params).expect("good parameters")).unwrap_or_else(|e| panic!("{e}"));
        assert!(
            program.code.len() <= 1024 && program.data_words <= 512,
            "{} instructions, {} words",
            program.code.len(),
            program.data_words
        );
    }
}

#[test]
fn what_does_not_suffice_is_refused_with_what_would() {
    let help = |params: Params| settings(&params).expect_err("refused")[0].help.clone().unwrap_or_default();
    assert_eq!(help(Params { size: 512, ..bench_params() }), "512 bytes for the messages, then the buffer");
    assert_eq!(help(Params { queue_pairs: 16, ..bench_params() }), "more than 32");
    assert_eq!(help(Params { base: 100, ..bench_params() }), "64 would be right");
}

/// The bench carries the program as text: it must be what the assembler makes.
#[test]
fn the_bench_runs_this_program() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench_program.veryl");
    let program = program::assemble(&settings(&bench_params()).expect("good parameters")).unwrap_or_else(|e| panic!("{e}"));
    let text = format!(
        "/// The program that the bench runs, made by `UPDATE_PROGRAM=1 cargo test -p rdma-bench`.\npackage bench_program {{\n    const CODE_WORDS: u32 = {};\n    const CODE: bit<{}> = {};\n    const DATA_A: u32 = {};\n    const DATA_WORDS: u32 = {};\n    const DATA: bit<{}> = {};\n}}\n",
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
        println!("{}", program.listing());
    } else {
        // The formatter aligns.
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(words(&std::fs::read_to_string(&path).expect("the file")), words(&text), "UPDATE_PROGRAM=1 cargo test -p rdma-bench");
    }
}
