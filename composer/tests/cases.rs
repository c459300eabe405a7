//! Wrong projects and what the program says of them: one folder each in `tests/cases`, with the whole of stderr in
//! `expected.stderr`. `SNAPSHOTS=overwrite cargo test --release -p gateweave --test cases` writes what is said now.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use snapbox::Data;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// Runs the program in a case's folder, as a user there would.
fn gateweave(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gateweave")).args(arguments).current_dir(folder).output().unwrap()
}

/// The board files that came with the program lie in the cache, where every machine has another path. Talk about the
/// build of plugins is not part of what is wrong.
fn said(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let shipped = regex::Regex::new(r"[^\[\s]*/boards/[0-9a-f]{16}/").unwrap();
    let talk = regex::Regex::new(r"(?m)^(building|waiting for|[0-9]+: ).*\n").unwrap();
    talk.replace_all(&shipped.replace_all(&text, "(shipped boards)/"), "").into_owned()
}

#[test]
fn every_wrong_project_is_explained() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    let mut folders: Vec<_> = std::fs::read_dir(cases()).unwrap().map(|e| e.unwrap().path()).collect();
    folders.sort();
    for folder in folders.into_iter().filter(|f| f.join("project.toml").is_file()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let output = gateweave(&folder, &["check", "."]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{name}:\n{text}");
        assert!(output.stdout.is_empty(), "{name}: errors go to stderr");
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{name}: a path of this machine:\n{text}");
        let expected = Data::read_from(&folder.join("expected.stderr"), None);
        if let Err(difference) = snapbox::Assert::new().action_env("SNAPSHOTS").try_eq(Some(&name), text.into(), expected) {
            wrong.push(difference.to_string());
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 39, "{seen} cases");
}

/// The same messages as data: every key there is, in each of them.
#[test]
fn json_has_the_documented_shape() {
    let output = gateweave(&cases().join("udp_port_twice"), &["check", ".", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["ok"], &json["data"]), (&false.into(), &serde_json::Value::Null));
    let expected = Data::read_from(&cases().join("udp_port_twice/expected.json"), None);
    let text = serde_json::to_string_pretty(&json["diagnostics"]).unwrap() + "\n";
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(text, expected.raw());

    let output = gateweave(&cases().join("several_errors"), &["check", ".", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = json["diagnostics"].as_array().unwrap();
    assert_eq!(list.iter().map(|d| d["code"].as_str().unwrap()).collect::<Vec<_>>(), ["GW0402", "GW0312", "GW0112", "GW0402"]);
    for diagnostic in list {
        for key in ["code", "severity", "message", "help", "file", "line", "column", "end_line", "end_column"] {
            assert!(diagnostic.get(key).is_some(), "{key}: {diagnostic}");
        }
        assert_eq!((diagnostic["severity"].as_str(), diagnostic["file"].as_str()), (Some("error"), Some("./project.toml")));
    }
}

#[test]
fn exit_codes_tell_a_wrong_project_from_a_tool_that_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| gateweave(folder.path(), arguments).status.code();
    assert_eq!(code(&["board", "list"]), Some(0));
    assert_eq!(code(&["check", "absent"]), Some(1), "no such project");
    assert_eq!(code(&["check"]), Some(2), "an argument is missing");
    assert_eq!(code(&["no-such-command"]), Some(2));
    assert_eq!(code(&["--help"]), Some(0));
    // A cache that cannot be written to is no fault of the project.
    std::fs::write(folder.path().join("file"), "").unwrap();
    let ping = Path::new(env!("CARGO_MANIFEST_DIR")).join("../projects/ping");
    let output = Command::new(env!("CARGO_BIN_EXE_gateweave"))
        .args(["check", &ping.to_string_lossy()])
        .env("GATEWEAVE_CACHE", folder.path().join("file"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}
