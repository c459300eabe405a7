use super::*;
use gateweave_sdk::prelude::serde_json::Value;

/// What the benches run: two applications, on rping's port and on two more.
fn bench_settings(slots: u32) -> Settings {
    Settings {
        slots,
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

fn params(json: &str) -> Params {
    serde_json::from_str(json).expect("parameters")
}

fn peer(port: &str, index: u32, props: &[(&str, Value)]) -> Peer {
    let props = props.iter().map(|(key, value)| gateweave_sdk::Prop { key: (*key).into(), value: value.to_string() }).collect();
    Peer { port: port.into(), index, instance: format!("{port}{index}"), props }
}

#[test]
fn parameters_that_do_not_fit_the_transport_are_refused() {
    let params = params(r#"{ "mac": "02:47:57:00:00:01", "queue-pairs": 4, "rd-atomic": 4 }"#);
    let says = |queue_pairs: u32, rd_atomic: u32| {
        agree(&params, Some(&peer("control", 0, &[("queue-pairs", queue_pairs.into()), ("rd-atomic", rd_atomic.into())])))
    };
    assert!(says(4, 4).is_ok() && says(4, 8).is_ok() && agree(&params, None).is_ok());
    assert_eq!(says(8, 4).expect_err("other queue pairs")[0].help.as_deref(), Some("queue-pairs = 8"));
    assert_eq!(says(4, 2).expect_err("fewer slots")[0].pointer, "/rd-atomic");
}

#[test]
fn services_belong_to_one_application() {
    let apps =
        [peer("apps", 0, &[("services", json!([7174]))]), peer("apps", 1, &[]), peer("apps", 2, &[("services", json!([7471, 18515]))])];
    let found = services(apps.iter().map(|p| (p.index, p)));
    assert_eq!(found.expect("no port twice"), [(7174, 0), (7471, 2), (18515, 2)]);
    let twice = [peer("apps", 0, &[("services", json!([7174]))]), peer("apps", 1, &[("services", json!([7174]))])];
    assert!(services(twice.iter().map(|p| (p.index, p))).is_err());
    let wrong = [peer("apps", 0, &[("services", json!([0]))])];
    assert!(services(wrong.iter().map(|p| (p.index, p))).is_err());
}

#[test]
fn the_program_fits_for_every_number_of_queue_pairs() {
    for bits in 0..=8 {
        let settings = Settings { slots: 1 << bits, apps: 8, services: (1..=32).map(|p| (p, 0)).collect(), ..bench_settings(4) };
        program::assemble(&settings).unwrap_or_else(|e| panic!("{e}"));
    }
}

fn package(slots: u32) -> String {
    let program = program::assemble(&bench_settings(slots)).unwrap_or_else(|e| panic!("{e}"));
    let constants = [
        ("CODE_WORDS", "u32".into(), program.code.len().to_string()),
        ("CODE", format!("bit<{}>", 16 * program.code.len()), program.code_literal()),
        ("DATA_A", "u32".into(), program.data_bits().to_string()),
        ("DATA_WORDS", "u32".into(), program.data.len().to_string()),
        ("DATA", format!("bit<{}>", 32 * program.data.len()), program.data_literal()),
    ];
    let lines: String =
        constants.iter().map(|(name, kind, value): &(&str, String, String)| format!("    const {name}: {kind} = {value};\n")).collect();
    format!(
        "/// The program for {slots} queue pairs, made by `UPDATE_PROGRAM=1 cargo test -p cm`.\npackage bench_program_{slots} {{\n{lines}}}\n"
    )
}

/// The benches carry their programs as text: it must be what the assembler makes.
#[test]
fn the_benches_run_this_program() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench_program.veryl");
    let text = [1, 4, 16, 64].map(package).join("\n");
    if std::env::var_os("UPDATE_PROGRAM").is_some() {
        std::fs::write(&path, text).expect("written");
    } else {
        // The formatter aligns.
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(words(&std::fs::read_to_string(&path).expect("the file")), words(&text), "UPDATE_PROGRAM=1 cargo test -p cm");
    }
}
