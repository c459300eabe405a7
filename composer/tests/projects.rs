//! Whole projects: every board, several versions of a plugin, and texts that nobody would write.

mod plugin_common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gateweave::manifest::project::Project;
use plugin_common::Wat;
use proptest::prelude::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn generate(project: &Path, out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gateweave")).arg("generate").arg(project).arg("--out").arg(out).output().unwrap()
}

fn generated(project: &Path, out: &Path) {
    let output = generate(project, out);
    assert!(output.status.success(), "{}:\n{}", project.display(), String::from_utf8_lossy(&output.stderr));
}

const PING: &str = include_str!("../../projects/ping/project.toml");

fn ping_on(board: &str, serial: bool) -> String {
    let plugins = root().join("plugins");
    let text = PING.replace("colorlight-i5", board).replace("../../plugins", &plugins.to_string_lossy());
    match text.find("[instance.regs]") {
        Some(at) if !serial => text[..at].to_owned(),
        _ => text,
    }
}

/// `projects/ping` on every board: only the name of the board changes.
#[test]
fn ping_is_generated_for_every_board() {
    let folder = tempfile::tempdir().unwrap();
    let mut boards = 0;
    for path in std::fs::read_dir(root().join("boards")).unwrap().map(|e| e.unwrap().path()) {
        let Some(board) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".toml")) else { continue };
        let text = std::fs::read_to_string(&path).unwrap();
        let project = folder.path().join(board);
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(project.join("project.toml"), ping_on(board, text.contains("[resource.serial0]"))).unwrap();
        let out = project.join("out");
        generated(&project, &out);
        let file = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{board}: {name}: {e}"));
        assert!(file("hdl/top/ping.sv").contains("module top_ping"), "{board}");
        if board == "sim" {
            assert!(!out.join("ping.lpf").exists() && !out.join("ping.xdc").exists(), "{board}: has no pins");
        } else if text.lines().any(|l| l.split_whitespace().eq(["open", "=", "true"])) {
            assert!(file("ping.lpf").contains("FREQUENCY PORT \"eth0_rx_clk\""), "{board}");
        } else {
            let hard_mac = text.contains("class = \"stream\"");
            let tcl = file("ping.tcl");
            assert!(tcl.contains(if hard_mac { "set top  ping_board\n" } else { "set top  top_ping\n" }), "{board}");
            assert_eq!(tcl.contains("hdl/ping_board.sv"), hard_mac, "{board}");
            assert!(!tcl.contains("black_box/"), "{board}: the user's wrapper takes its place");
            let xdc = file("ping.xdc");
            assert_eq!(xdc.contains("[get_nets -hierarchical {eth0_clk}]"), hard_mac, "{board}");
            for source in tcl.lines().filter_map(|l| l.strip_prefix("read_verilog -sv {")?.strip_suffix('}')) {
                file(source);
            }
            if hard_mac {
                assert!(file("hdl/ping_board.sv").contains("io_hard_mac_"), "{board}");
                assert!(!xdc.contains("eth0_rx_tdata"), "{board}: a stream has no pins");
            }
        }
        boards += 1;
    }
    assert_eq!(boards, 12);
}

/// The button of the 5A-75B has the pin of its serial input: whoever uses the line has no button.
#[test]
fn a_reset_button_whose_pin_is_taken_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for (serial, button) in [(true, false), (false, true)] {
        let project = folder.path().join(format!("serial-{serial}"));
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(project.join("project.toml"), ping_on("colorlight-5a-75b", serial)).unwrap();
        let out = project.join("out");
        generated(&project, &out);
        let lpf = std::fs::read_to_string(out.join("ping.lpf")).unwrap();
        assert_eq!(lpf.contains("LOCATE COMP \"button\""), button, "serial {serial}:\n{lpf}");
        assert_eq!(lpf.matches("SITE \"R7\"").count(), 1, "one port at the shared pin");
    }
}

/// What a link asks for stands among the choices, and at the link in plan and diagram.
#[test]
fn overrides_of_links_are_choices() {
    let folder = tempfile::tempdir().unwrap();
    let text = ping_on("sim", false).replace("links  = { udp = \"net.udp\" }", "links = { udp = { to = \"net.udp\", fifo = 3000 } }");
    assert!(text.contains("fifo"), "{text}");
    let shared = "[instance.ram]\nplugin = \"dram-dma\"\n[instance.one]\nplugin = \"links\"\nlinks = { memory = { to = \"ram.memory\", priority = 6 } }\n\
                  [instance.two]\nplugin = \"links\"\nlinks = { memory = \"ram.memory\" }\n";
    let tests = root().join("composer/tests/plugins");
    let text = text.replace("/plugins\"]", &format!("/plugins\", {:?}]", tests.to_string_lossy())) + shared;
    let text = text.replace("schema  = 1", "schema  = 1\ndatapath = { shortest-frame = 1024 }");
    std::fs::write(folder.path().join("project.toml"), text).unwrap();
    let out = folder.path().join("out");
    generated(folder.path(), &out);
    let plan: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(out.join("plan.json")).unwrap()).unwrap();
    let choices = plan["choices"].as_array().unwrap();
    for (what, value) in [
        ("link net.udp -> echo.udp", "FIFO of 4096 bytes"),
        ("link ram.memory -> one.memory", "priority 6"),
        ("datapath shortest frame", "1024 bytes"),
    ] {
        let choice = choices.iter().find(|c| c["what"] == what && c["value"] == value);
        assert_eq!(choice.map(|c| &c["overridden"]), Some(&true.into()), "{what}: {choices:#?}");
    }
    let link = |client: &str| plan["links"].as_array().unwrap().iter().find(|l| l["client"] == client).unwrap().clone();
    assert_eq!((&link("one.memory")["priority"], &link("two.memory")["priority"]), (&6.into(), &serde_json::Value::Null));
    assert_eq!(link("echo.udp")["adapters"], serde_json::json!(["Fifo(4096)"]));
    let diagram = std::fs::read_to_string(out.join("diagram.svg")).unwrap();
    assert!(diagram.contains(">FIFO 4096 bytes<") && diagram.contains(">priority 6<"), "{diagram}");
}

/// A crossing that is asked for at a memory link is a choice, and what the memory promises of its stalls reaches the client with it: the transport
/// begins a packet so many cycles later. (5 of the one clock and 5 of the other, here the same.)
#[test]
fn a_memory_across_clocks_promises_its_words_later() {
    let folder = tempfile::tempdir().unwrap();
    let text = include_str!("../../projects/rdma/project.toml").replace("../../plugins", &root().join("plugins").to_string_lossy());
    let lead = |name: &str, text: &str| {
        let project = folder.path().join(name);
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(project.join("project.toml"), text).unwrap();
        generated(&project, &project.join("out"));
        let top = std::fs::read_to_string(project.join("out/hdl/top/rdma.veryl")).unwrap();
        let lead = top.lines().find_map(|l| l.trim().strip_prefix("LEAD")).expect("the transport's parameter");
        (lead.trim_matches([' ', ':', ',']).parse::<u32>().unwrap(), std::fs::read_to_string(project.join("out/plan.json")).unwrap())
    };
    let link = "links  = { udp = \"net.udp\", memory = \"ram.memory\" }";
    let crossing = text.replace(link, "links  = { udp = \"net.udp\", memory = { to = \"ram.memory\", crossing = true } }");
    assert!(crossing != text);
    let ((near, _), (far, plan)) = (lead("near", &text), lead("far", &crossing));
    assert_eq!(far, near + 10);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let choice = plan["choices"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["what"] == "link ram.memory -> roce.memory" && c["value"] == "clock crossing");
    assert_eq!(choice.map(|c| &c["overridden"]), Some(&true.into()), "{plan:#}");
}

/// A project on board `sim` with prebuilt components in `plugins`.
fn components(folder: &Path, plugins: &[(&str, Wat)], instances: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let mut places = Vec::new();
    for (place, wat) in plugins {
        std::fs::create_dir_all(folder.join(place)).unwrap();
        std::fs::write(folder.join(place).join(format!("{}.wasm", wat.name)), wat.component()).unwrap();
        places.push(format!("{place:?}"));
    }
    let head = format!("schema = 1\nproject = {{ name = \"versions\", board = \"sim\", plugins = [{}] }}\n", places.join(", "));
    std::fs::write(folder.join("project.toml"), head + instances).unwrap();
}

/// A component whose module has one domain and says its version in a comment.
fn with_domain(version: &str) -> Wat {
    let text = format!(
        "/// Version {version}.\npub module probe (\n    clk_sys: input clock,\n    rst_sys: input reset,\n) {{\n    var _state: logic;\n    always_ff {{\n        if_reset {{\n            _state = 0;\n        }} else {{\n            _state = ~_state;\n        }}\n    }}\n}}\n"
    );
    Wat { version: version.into(), sources: vec![("probe.veryl".into(), false, text)], ..Wat::default() }
}

#[test]
fn two_versions_of_a_plugin_and_two_instances_of_one_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("p");
    let both = [("old", with_domain("0.9.0")), ("new", with_domain("0.10.0"))];
    let text = "[instance.a]\nplugin = \"probe\"\nversion = \"0.9.0\"\n[instance.b]\nplugin = \"probe\"\n[instance.c]\nplugin = \"probe\"\nversion = \"0.10.0\"\n";
    components(&project, &both, text);
    let out = folder.path().join("out");
    generated(&project, &out);
    let top = std::fs::read_to_string(out.join("hdl/top/versions.sv")).unwrap();
    let count = |name: &str| top.matches(&format!("probe_{name}_probe ")).count();
    assert_eq!((count("0_9_0"), count("0_10_0")), (1, 2), "`b` asks for none and has the highest:\n{top}");
    for (file, version) in [("probe_0_9_0", "0.9.0"), ("probe_0_10_0", "0.10.0")] {
        let text = std::fs::read_to_string(out.join(format!("hdl/{file}/probe.sv"))).unwrap();
        assert!(text.contains(&format!("Version {version}")) && text.contains(&format!("module {file}_probe")), "{text}");
    }
}

#[test]
fn two_plugins_of_one_name_and_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    components(folder.path(), &[("one", with_domain("0.1.0")), ("two", with_domain("0.1.0"))], "[instance.a]\nplugin = \"probe\"\n");
    let output = generate(folder.path(), &folder.path().join("out"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("GW0324") && text.contains("instance `a`") && text.contains("0.1.0"), "{text}");
}

/// A change of a text: bytes go, come or change places.
#[derive(Clone, Debug)]
enum Change {
    Remove(usize, usize),
    Insert(usize, String),
    Swap(usize, usize),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let bits = prop_oneof![
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("\"".to_owned()),
        Just("=".to_owned()),
        Just(".".to_owned()),
        Just("\n".to_owned()),
        Just("[[instance]]\n".to_owned()),
        Just("[clocks]\nsys = ".to_owned()),
        Just("[datapath]\nwidth = 99999999999999999999\n".to_owned()),
        Just("datapath = { gbps = nan }\n".to_owned()),
        Just("clocks = { sys = -1 }\n".to_owned()),
        Just("clocks = { sys = \"1e999 GHz\" }\n".to_owned()),
        Just("version = \"\u{1F980}\"\n".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        "\\PC{0,6}",
    ];
    prop_oneof![
        (any::<usize>(), 1..40_usize).prop_map(|(at, n)| Change::Remove(at, n)),
        (any::<usize>(), bits).prop_map(|(at, text)| Change::Insert(at, text)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Swap(a, b)),
        (any::<usize>(), 1..80_usize).prop_map(|(at, n)| Change::Repeat(at, n)),
    ]
}

fn changed(changes: &[Change]) -> String {
    let mut text: Vec<char> = PING.chars().collect();
    for change in changes {
        let length = text.len().max(1);
        match change {
            Change::Remove(at, n) => {
                let at = at % length;
                text.drain(at.min(text.len())..(at + n).min(text.len()));
            }
            Change::Insert(at, new) => {
                let at = (at % length).min(text.len());
                text.splice(at..at, new.chars());
            }
            Change::Swap(a, b) if !text.is_empty() => text.swap(a % length, b % length),
            Change::Swap(..) => {}
            Change::Repeat(at, n) => {
                let at = (at % length).min(text.len());
                let part: Vec<char> = text[at..(at + n).min(text.len())].to_vec();
                text.splice(at..at, part);
            }
        }
    }
    text.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No text makes the reader panic: it gives a project, or errors with places inside the text.
    #[test]
    fn any_text_is_a_project_or_an_error(changes in prop::collection::vec(change(), 1..6)) {
        let text = changed(&changes);
        match Project::parse(Path::new("p"), text.clone()) {
            Ok(project) => prop_assert!(!project.name.value.is_empty()),
            Err(found) => {
                prop_assert!(found.has_errors(), "{text}");
                for diagnostic in &found.0 {
                    let json = diagnostic.to_json();
                    prop_assert!(diagnostic.span.as_ref().is_none_or(|s| s.range.end <= text.len() + 1), "{json}");
                    prop_assert!(!diagnostic.message.is_empty() && json["line"].as_u64() != Some(0), "{json}");
                }
            }
        }
    }
}
