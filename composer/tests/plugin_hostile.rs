//! Hostile plugins: each gives one clear error, and the same host then serves a good one.

mod plugin_common;

use gateweave::plugin::types::{Plan, Target};
use gateweave::plugin::{Failure, Host, Limits, PluginError};
use plugin_common::{Wat, component};
use serde_json::json;

fn limits() -> Limits {
    Limits { fuel: 50_000_000, memory: 16 << 20, ..Limits::default() }
}

struct Bench {
    host: Host,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // HDL is parsed by the real program, in a child.
        let helper = Some(env!("CARGO_BIN_EXE_gateweave").into());
        Self { host: Host::with_helper(folder.path(), limits(), helper), _folder: folder }
    }

    /// Everything a good plugin is asked.
    fn run(&self, wat: &Wat) -> Result<(), PluginError> {
        let fault = |failure: Failure| match failure {
            Failure::Fault(error) => error,
            Failure::Refused(list) => panic!("refused: {list:?}"),
        };
        let plugin = self.host.load(wat.component())?;
        let shape = plugin.describe(&json!({}), &json!({})).map_err(fault)?;
        plugin.elaborate(&json!({}), &json!({}), &[], &shape).map_err(fault)?;
        plugin.generate(&plan()).map_err(fault)?;
        Ok(())
    }

    /// The error of a hostile plugin, which must name the instance once shown; afterwards a good plugin must work.
    fn hostile(&self, wat: &Wat) -> PluginError {
        let error = self.run(wat).expect_err("a hostile plugin must not pass");
        self.still_sound();
        let shown = error.diagnostic("instance `evil` (plugin `probe`)", None);
        assert!(shown.message.starts_with("instance `evil`"), "{}", shown.message);
        assert!(!shown.message.contains("wasm backtrace"), "{}", shown.message);
        error
    }

    fn still_sound(&self) {
        self.run(&Wat { name: "good".into(), ..Wat::default() }).expect("a good plugin works after a hostile one");
    }
}

fn plan() -> Plan {
    Plan {
        instance: "evil".into(),
        prefix: "probe_evil_".into(),
        params: json!({}),
        board: json!({}),
        target: Target::Lint,
        links: Vec::new(),
        register_base: None,
        register_data_bits: 32,
    }
}

fn veryl(text: &str) -> Vec<(String, bool, String)> {
    vec![("probe.veryl".into(), false, text.into())]
}

#[test]
fn a_good_one_passes() {
    Bench::new().still_sound();
}

#[test]
fn endless_loop_in_each_question() {
    let bench = Bench::new();
    let endless = || "(loop $l (br $l))".to_owned();
    for wat in [
        Wat { info: endless(), ..Wat::default() },
        Wat { describe: endless(), ..Wat::default() },
        Wat { generate: endless(), ..Wat::default() },
    ] {
        let error = bench.hostile(&wat);
        assert_eq!(error.code, "GW0305", "{error}");
    }
}

#[test]
fn memory_without_end() {
    let error = Bench::new().hostile(&Wat { describe: "(loop $l (drop (memory.grow (i32.const 16))) (br $l))".into(), ..Wat::default() });
    assert_eq!(error.code, "GW0306", "{error}");
    assert!(error.message.contains("16 MiB"), "{error}");
}

#[test]
fn more_memory_than_allowed_at_the_start() {
    let error = Bench::new().hostile(&Wat { pages: 30_000, ..Wat::default() });
    assert_eq!(error.code, "GW0306", "{error}");
}

#[test]
fn a_table_without_end() {
    let fields = "(table $t 1 funcref)".to_owned();
    let describe = "(drop (table.grow $t (ref.null func) (i32.const 200000)))".to_owned();
    let error = Bench::new().hostile(&Wat { fields, describe, ..Wat::default() });
    assert_eq!(error.code, "GW0306", "{error}");
}

#[test]
fn endless_recursion() {
    let fields = "(func $r (param i32) (result i32) (i32.add (call $r (local.get 0)) (i32.const 1)))".to_owned();
    let error = Bench::new().hostile(&Wat { fields, describe: "(drop (call $r (i32.const 0)))".into(), ..Wat::default() });
    assert_eq!(error.code, "GW0307", "{error}");
}

#[test]
fn trap_without_a_word() {
    let error = Bench::new().hostile(&Wat { generate: "unreachable".into(), ..Wat::default() });
    assert_eq!(error.code, "GW0304", "{error}");
    assert!(error.message.contains("generate") && error.message.contains("unreachable"), "{error}");
}

#[test]
fn trap_with_a_note() {
    let note: String = std::iter::once(0x7e00)
        .chain("no room".bytes().map(|b| 0x7f00 + i32::from(b)))
        .map(|pages| format!("(drop (memory.grow (i32.const {pages})))"))
        .collect();
    let error = Bench::new().hostile(&Wat { describe: format!("{note} unreachable"), ..Wat::default() });
    assert_eq!(error.code, "GW0304", "{error}");
    assert!(error.message.ends_with("no room"), "{error}");
}

#[test]
fn imports_are_named_and_refused() {
    let wit = include_str!("../../plugins/wit/0.1.0/plugin.wit").replace(
        "world plugin { export contract; }",
        "interface clock { now: func() -> u64; }\nworld plugin { import clock; export contract; }",
    );
    let wat = Wat { fields: r#"(import "gateweave:plugin/clock@0.1.0" "now" (func $now (result i64)))"#.into(), ..Wat::default() };
    let bench = Bench::new();
    let error = bench.host.load(component(&wat.module(), Some(&wit))).map(|_| ()).unwrap_err();
    assert_eq!(error.code, "GW0302", "{error}");
    assert!(error.message.contains("gateweave:plugin/clock@0.1.0"), "{error}");
    bench.still_sound();
}

#[test]
fn an_unknown_version_of_the_contract() {
    let wit = include_str!("../../plugins/wit/0.1.0/plugin.wit").replace("plugin@0.1.0", "plugin@9.0.0");
    let module = Wat::default().module().replace("contract@0.1.0", "contract@9.0.0");
    let bench = Bench::new();
    let error = bench.host.load(component(&module, Some(&wit))).map(|_| ()).unwrap_err();
    assert_eq!(error.code, "GW0303", "{error}");
    assert!(error.message.contains("9.0.0") && error.help.as_deref().is_some_and(|h| h.contains("0.1.0")), "{error:?}");
    bench.still_sound();
}

#[test]
fn an_answer_of_50_megabytes() {
    let roomy = Limits { memory: 128 << 20, ..limits() };
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench { host: Host::with_helper(folder.path(), roomy, None), _folder: folder };
    for docs in [9 << 20, 50 << 20] {
        let error = bench.hostile(&Wat { docs, pages: 1000, ..Wat::default() });
        assert_eq!(error.code, "GW0308", "{error}");
    }
}

#[test]
fn two_hundred_sources_in_one_buffer() {
    // Each source is the same 500 KB: 100 MB of answer from little memory.
    let mut wat = Wat { pages: 100, ..Wat::default() };
    wat.sources = (0..200).map(|i| (format!("s{i}.veryl"), false, String::new())).collect();
    let module = wat.module();
    // The texts are empty strings in the image; each becomes half a megabyte at the first megabyte, where memory is zero.
    let store = |at: i32, value: i32| format!("(i32.store (i32.add (i32.load (local.get 0)) (i32.const {at})) (i32.const {value}))");
    let patch: String = (0..200).map(|i| store(i * 20 + 12, 1_000_000) + &store(i * 20 + 16, 500_000)).collect();
    // `generate` returns `$out`; its list of sources is at offset 20.
    let at = module.rfind("(i32.const ").unwrap();
    let out: String = module[at + 11..].chars().take_while(char::is_ascii_digit).collect();
    let body = format!("(local.set 0 (i32.add (i32.const {out}) (i32.const 20))) {patch}");
    wat.generate = body;
    let error = Bench::new().hostile(&wat);
    assert_eq!(error.code, "GW0308", "{error}");
}

#[test]
fn lies_about_ports() {
    let bench = Bench::new();
    let port =
        |name: &str, kind: &str, domain: &str, widths: &[u32]| (name.to_owned(), kind.to_owned(), domain.to_owned(), widths.to_vec());
    let good = || port("udp", "gateweave/ip-udp@1", "sys", &[32]);
    let cases = [
        (vec![port("udp", "gateweave/ip-udp@1", "nowhere", &[32])], "`nowhere`"),
        (vec![good(), good()], "twice"),
        (vec![port("u-d p", "gateweave/ip-udp@1", "sys", &[32])], "not an identifier"),
        (vec![port("module", "gateweave/ip-udp@1", "sys", &[32])], "not an identifier"),
        (vec![port("udp", "gateweave/ip-udp@1", "sys", &[33])], "33 bits"),
        (vec![port("udp", "gateweave/ip-udp@1", "sys", &[32, 32])], "twice"),
        (vec![port("udp", "ip udp", "sys", &[32])], "maker/name@1"),
    ];
    for (ports, word) in cases {
        let error = bench.hostile(&Wat { ports, ..Wat::default() });
        assert_eq!(error.code, "GW0309", "{error}");
        assert!(error.message.contains(word), "{word}: {error}");
    }
}

#[test]
fn lies_about_registers_names_and_schema() {
    let bench = Bench::new();
    let register = |offset: u32| format!(r#"{{"registers":{{"size":8,"list":[{{"name":"a","offset":{offset},"access":"ro"}}]}}}}"#);
    let cases = [
        Wat { tables: register(2), ..Wat::default() },
        Wat { tables: register(8), ..Wat::default() },
        Wat { tables: "{".into(), ..Wat::default() },
        Wat { tables: "[]".into(), ..Wat::default() },
        Wat { schema: "{".into(), ..Wat::default() },
        Wat { schema: r#"{"type":"object","if":{}}"#.into(), ..Wat::default() },
        Wat { schema: r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#.into(), ..Wat::default() },
        Wat { schema: format!("{}{}", r#"{"items":"#.repeat(100), "{}") + &"}".repeat(100), ..Wat::default() },
        Wat { name: "Not A Name".into(), ..Wat::default() },
        Wat { domains: vec!["sys".into(), "sys".into()], ..Wat::default() },
        Wat { top: "absent".into(), ..Wat::default() },
    ];
    for wat in cases {
        let error = bench.hostile(&wat);
        assert_eq!(error.code, "GW0309", "{error}");
    }
}

#[test]
fn paths_that_leave_the_folder() {
    let bench = Bench::new();
    for path in ["../evil.veryl", "/etc/evil.veryl", "a/../../evil.veryl", "a//b.veryl", ".hidden.veryl", "a\\b.veryl", "evil.sv"] {
        let sources = vec![(path.to_owned(), false, "module probe {}\n".to_owned())];
        let error = bench.hostile(&Wat { sources, ..Wat::default() });
        assert_eq!(error.code, "GW0309", "{path}: {error}");
    }
}

#[test]
fn a_module_twice() {
    let mut sources = veryl("module probe {}\n");
    sources.push(("again.veryl".into(), false, "module probe {}\n".into()));
    let error = Bench::new().hostile(&Wat { sources, ..Wat::default() });
    assert_eq!(error.code, "GW0317", "{error}");
    assert!(error.message.contains("probe.veryl") && error.message.contains("again.veryl"), "{error}");
}

#[test]
fn system_verilog_without_the_prefix() {
    let mut sources = veryl("module probe {}\n");
    sources.push(("box.sv".into(), true, "module probe_evil_box; endmodule\nmodule other; endmodule\n".into()));
    let error = Bench::new().hostile(&Wat { sources, ..Wat::default() });
    assert_eq!(error.code, "GW0316", "{error}");
    assert!(error.message.contains("`other`") && error.message.contains("probe_evil_"), "{error}");
}

#[test]
fn hdl_that_does_not_parse() {
    let error = Bench::new().hostile(&Wat { sources: veryl("module probe { assign = ; }\n"), ..Wat::default() });
    assert_eq!(error.code, "GW0314", "{error}");
    assert!(error.message.contains("line 1"), "{error}");
}

#[test]
fn hdl_that_nests_10000_deep() {
    let bench = Bench::new();
    let n = 10_000;
    let texts = [
        format!("module probe {{ assign a = {}1{}; }}\n", "(".repeat(n), ")".repeat(n)),
        format!("module probe {{ assign a = {}1; }}\n", "~".repeat(n)),
        format!("module probe {{ assign a = {}1{}; }}\n", "{".repeat(n), "}".repeat(n)),
        format!("module probe {{ always_comb {{ {} {} }} }}\n", "if a {".repeat(n), "}".repeat(n)),
        format!("module probe {{ always_comb {{ if a {{}} {} }} }}\n", "else if a {}".repeat(n)),
    ];
    for text in texts {
        let error = bench.hostile(&Wat { sources: veryl(&text), ..Wat::default() });
        assert_eq!(error.code, "GW0315", "{error}");
    }
}

/// What the scan before the parser does not see must not take the host down either: the child holds.
#[test]
fn long_flat_expressions_end_in_an_answer() {
    let bench = Bench::new();
    let texts = [
        format!("module probe {{ assign a = 1{}; }}\n", " + 1".repeat(20_000)),
        format!("module probe {{ assign a = b{}; }}\n", ".c".repeat(20_000)),
        format!("module probe {{ {} }}\n", "var a: logic;".repeat(20_000)),
    ];
    for text in texts {
        match bench.run(&Wat { sources: veryl(&text), ..Wat::default() }) {
            Ok(()) => {}
            Err(error) => assert!(matches!(error.code, "GW0314" | "GW0315"), "{error}"),
        }
        bench.still_sound();
    }
}

#[test]
fn bytes_that_are_no_component() {
    let bench = Bench::new();
    let good = Wat::default().component();
    let mut cases = vec![Vec::new(), b"\0asm".to_vec(), vec![0; 1000], b"not a component".to_vec()];
    cases.extend((0..good.len()).step_by(97).map(|n| good[..n].to_vec()));
    for bytes in cases {
        let error = bench.host.load(bytes).map(|_| ()).unwrap_err();
        assert!(matches!(error.code, "GW0301" | "GW0303"), "{error}");
    }
    bench.still_sound();
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    /// A component with some bytes changed loads or is refused; it never takes the host down. proptest prints the seed.
    #[test]
    fn damaged_components(changes in proptest::collection::vec((0_usize..1_000_000, proptest::num::u8::ANY), 1..8)) {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::with_helper(folder.path(), Limits { fuel: 1_000_000, ..limits() }, None);
        let mut bytes = Wat::default().component();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(plugin) = host.load(bytes) {
            let _ = plugin.describe(&json!({}), &json!({}));
            let _ = plugin.generate(&plan());
        }
        host.load(Wat::default().component()).expect("a good plugin");
    }
}

#[test]
fn kept_answers_make_no_calls() {
    let folder = tempfile::tempdir().unwrap();
    let helper = || Some(env!("CARGO_BIN_EXE_gateweave").into());
    let bench = Bench { host: Host::with_helper(folder.path(), limits(), helper()), _folder: tempfile::tempdir().unwrap() };
    bench.run(&Wat::default()).unwrap();
    assert_eq!(bench.host.calls(), 4);
    bench.run(&Wat::default()).unwrap();
    assert_eq!(bench.host.calls(), 4, "the same host");
    let next = Bench { host: Host::with_helper(folder.path(), limits(), helper()), _folder: tempfile::tempdir().unwrap() };
    next.run(&Wat::default()).unwrap();
    assert_eq!(next.host.calls(), 0, "another host on the same cache");
    next.host.load(Wat::default().component()).unwrap().describe(&json!({ "other": 1 }), &json!({})).unwrap();
    assert_eq!(next.host.calls(), 1, "another question");
}

#[test]
fn traps_are_not_kept() {
    let bench = Bench::new();
    let wat = Wat { describe: "unreachable".into(), ..Wat::default() };
    let _ = bench.run(&wat).unwrap_err();
    let calls = bench.host.calls();
    let _ = bench.run(&wat).unwrap_err();
    assert_eq!(bench.host.calls(), calls + 1);
}

#[test]
fn a_damaged_compiled_component_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let host = || Host::with_helper(folder.path(), limits(), None);
    host().load(Wat::default().component()).unwrap();
    let compiled: Vec<_> = std::fs::read_dir(folder.path().join("plugins/compiled")).unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(compiled.len(), 1);
    let whole = std::fs::read(&compiled[0]).unwrap();
    for damage in [whole[..whole.len() / 2].to_vec(), Vec::new(), [&whole[..whole.len() - 1], b"x"].concat()] {
        std::fs::write(&compiled[0], damage).unwrap();
        std::fs::remove_dir_all(folder.path().join("plugins/answers")).unwrap();
        host().load(Wat::default().component()).unwrap();
        assert_eq!(std::fs::read(&compiled[0]).unwrap(), whole);
    }
}
