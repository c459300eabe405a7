use super::*;

/// What the bench runs: room for three buffers of 4 KiB.
fn bench_params() -> Params {
    Params {
        queue_pairs: 4,
        completions: 32,
        base: 0x4000,
        size: 2048 + 3 * 4096,
        buffer: 4096,
        message: 128,
        rping: 7174,
        echo: 7471,
        keys: 18515,
        ucmatose: 7472,
        ucmatose_count: 10,
        ucmatose_bytes: 100,
        regions: vec![Region { address: 0x12_0000_0000, length: 1 << 20, key: 0x305 }, Region { address: 0x34_0000_8000, length: 64, key: 0x400 }],
        client: Some(Region { address: 0x12_0000_0000, length: 1 << 20, key: 0x305 }),
    }
}

#[test]
fn the_program_fits_for_every_number_of_queue_pairs() {
    for bits in 0..=8 {
        let params = Params { queue_pairs: 1 << bits, size: 1 << 19, ..bench_params() };
        program::assemble(&settings(&params).expect("good parameters")).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn memory_that_does_not_suffice_is_refused_with_what_would() {
    let wrong = settings(&Params { size: 4096, ..bench_params() }).expect_err("too small");
    assert_eq!(wrong[0].help.as_deref(), Some("6144 bytes for one buffer, 18432 for one of every queue pair"));
    let far = Region { address: 0x1_0000, length: 1 << 20, key: 0 };
    let wrong = settings(&Params { client: Some(far), ..bench_params() }).expect_err("the buffers lie outside");
    assert_eq!(wrong[0].help.as_deref(), Some("a region of 12288 bytes from 0x4800 on, or a larger one"));
}

/// The bench carries the program as text: it must be what the assembler makes.
#[test]
fn the_bench_runs_this_program() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench_program.veryl");
    let program = program::assemble(&settings(&bench_params()).expect("good parameters")).unwrap_or_else(|e| panic!("{e}"));
    let text = format!(
        "/// The program that the bench runs, made by `UPDATE_PROGRAM=1 cargo test -p key-exchanger`.\npackage bench_program {{\n    const CODE_WORDS: u32 = {};\n    const CODE: bit<{}> = {};\n    const DATA_A: u32 = {};\n    const DATA_WORDS: u32 = {};\n    const DATA: bit<{}> = {};\n}}\n",
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
        assert_eq!(words(&std::fs::read_to_string(&path).expect("the file")), words(&text), "UPDATE_PROGRAM=1 cargo test -p key-exchanger");
    }
}
