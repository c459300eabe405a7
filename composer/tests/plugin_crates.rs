//! Plugin crates: found, built with the machine's own toolchain, asked, checked.

mod plugin_common;

use gateweave::plugin::locate::{self, Origin, PluginCrate};
use gateweave::plugin::types::PluginSeverity;
use gateweave::plugin::{Failure, Host, Limits, commands, params};
use plugin_common::{Wat, cache, crates};
use serde_json::{Value, json};

fn helper() -> Option<std::path::PathBuf> {
    Some(env!("CARGO_BIN_EXE_gateweave").into())
}

fn fixture(name: &str) -> PluginCrate {
    let found = locate::locate(&[crates()], &cache()).unwrap();
    found.into_iter().find(|p| p.name == name).unwrap_or_else(|| panic!("no test plugin `{name}`"))
}

/// Builds both test plugins, in one call of cargo.
fn built(name: &str) -> Vec<u8> {
    let found = locate::locate(&[crates()], &cache()).unwrap();
    locate::build_stale(&found, &|line| eprintln!("{line}")).unwrap_or_else(|e| panic!("{e:#?}"));
    fixture(name).component(&|_| panic!("built twice")).unwrap()
}

#[test]
fn a_crate_becomes_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::with_helper(folder.path(), Limits::default(), helper());
    let bytes = built("blank");
    assert!(bytes.len() < 400_000, "{} bytes", bytes.len());
    let plugin = host.load(bytes).unwrap();
    assert_eq!((plugin.info().name.as_str(), plugin.info().version.as_str()), ("blank", "0.1.0"));
    let full = params::check(&plugin.info().params_schema, &json!({})).unwrap();
    assert_eq!(full, json!({ "depth": 16 }));
    let shape = plugin.describe(&full, &json!({})).unwrap();
    assert_eq!(shape.domains.len(), 1);
    let findings = commands::check(&host, &fixture("blank"), &json!({}), &json!({}), &|_| {}).unwrap();
    assert!(findings.len() >= 6 && findings.iter().all(|f| f.problem.is_none()), "{findings:#?}");
}

#[test]
fn the_sdk_carries_panics_and_diagnostics_out() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::with_helper(folder.path(), Limits { fuel: 1_000_000_000, ..Limits::default() }, helper());
    let plugin = host.load(built("faulty")).unwrap();
    let ask = |fault: &str| {
        let full = params::check(&plugin.info().params_schema, &json!({ "fault": fault })).unwrap();
        plugin.describe(&full, &Value::Null)
    };
    let fault = |name: &str| match ask(name) {
        Err(Failure::Fault(error)) => error,
        other => panic!("{name}: {other:?}"),
    };
    let panic = fault("panic");
    assert_eq!(panic.code, "GW0304");
    assert!(panic.message.contains("the table has no room for 10 entries") && panic.message.contains("src/lib.rs:"), "{panic}");
    let index = fault("index");
    assert!(index.message.contains("index out of bounds: the len is 10 but the index is 10"), "{index}");
    assert_eq!(fault("loop").code, "GW0305");
    assert_eq!(fault("recursion").code, "GW0307");
    assert_eq!(fault("memory").code, "GW0306");
    match ask("refuse") {
        Err(Failure::Refused(list)) => {
            assert_eq!(list.len(), 1);
            assert_eq!(
                (list[0].severity, list[0].pointer.as_str(), list[0].help.as_deref()),
                (PluginSeverity::Error, "/entries", Some("at most 3"))
            );
        }
        other => panic!("{other:?}"),
    }
    ask("none").unwrap();
}

#[test]
fn an_unchanged_crate_is_not_built_again_and_a_changed_one_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("one");
    std::fs::create_dir_all(copy.join("src")).unwrap();
    std::fs::write(copy.join("Cargo.toml"), "[package]\nname = \"one\"\nversion = \"0.1.0\"\n[package.metadata.gateweave]\n[workspace]\n")
        .unwrap();
    std::fs::write(copy.join("src/lib.rs"), "// one\n").unwrap();
    std::fs::create_dir_all(folder.path().join("not-a-plugin")).unwrap();
    std::fs::write(folder.path().join("two.wasm"), Wat::default().component()).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let found = || locate::locate(&[folder.path().to_owned()], cache.path()).unwrap();
    let names: Vec<_> = found().iter().map(|p| (p.name.clone(), matches!(p.origin, Origin::Crate(_)))).collect();
    assert_eq!(names, [("one".to_owned(), true), ("two".to_owned(), false)]);
    let first = found()[0].built().unwrap().unwrap();
    assert_eq!(found()[0].built().unwrap().unwrap(), first);
    std::fs::write(copy.join("src/lib.rs"), "// 0ne\n").unwrap();
    assert_ne!(found()[0].built().unwrap().unwrap(), first, "another text of the same length");
    std::fs::write(copy.join("src/lib.rs"), "// one\n").unwrap();
    assert_eq!(found()[0].built().unwrap().unwrap(), first, "the text decides, not the time");
}

#[test]
fn two_plugins_of_one_name_and_version_and_folders_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let package = |place: &str, version: &str| {
        let dir = folder.path().join(place);
        std::fs::create_dir_all(&dir).unwrap();
        let text = format!("[package]\nname = \"same\"\nversion = \"{version}\"\n[package.metadata.gateweave]\n");
        std::fs::write(dir.join("Cargo.toml"), text).unwrap();
    };
    package("a/same", "0.1.0");
    package("a/same2", "0.10.0");
    package("a/same3", "0.9.0");
    let versions: Vec<_> = locate::locate(&[folder.path().join("a")], folder.path()).unwrap().into_iter().map(|p| p.version).collect();
    assert_eq!(versions, ["0.1.0", "0.9.0", "0.10.0"].map(|v| Some(v.to_owned())), "several versions of one plugin, in their order");
    package("b/same", "0.1.0");
    let folders = ["a", "b", "absent"].map(|f| folder.path().join(f));
    let errors = locate::locate(&folders, folder.path()).unwrap_err();
    let codes: Vec<_> = errors.iter().map(|e| e.code).collect();
    assert_eq!(codes, ["GW0324", "GW0322"], "{errors:?}");
}

#[test]
fn a_crate_that_does_not_build_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let sdk = crates().join("../../../plugins/sdk");
    commands::new("broken-one", folder.path(), &sdk).unwrap();
    let lib = folder.path().join("broken-one/src/lib.rs");
    std::fs::write(&lib, std::fs::read_to_string(&lib).unwrap().replace("plan.params.counter_bits", "plan.params.absent")).unwrap();
    let plugin = locate::at(&folder.path().join("broken-one"), &cache()).unwrap().remove(0);
    let error = plugin.component(&|_| {}).unwrap_err();
    assert_eq!(error.code, "GW0321");
    assert!(error.message.contains("no field `absent`") && error.message.contains("src/lib.rs"), "{error}");
}

#[test]
fn a_new_plugin_builds_and_passes_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let sdk = crates().join("../../../plugins/sdk");
    commands::new("frame-tap", folder.path(), &sdk).unwrap();
    assert_eq!(commands::new("frame-tap", folder.path(), &sdk).unwrap_err().code, "GW0325");
    for bad in ["", "Tap", "module", "a b", "../x", "x-"] {
        assert_eq!(commands::new(bad, folder.path(), &sdk).unwrap_err().code, "GW0325", "{bad:?}");
    }
    let plugin = locate::at(&folder.path().join("frame-tap"), &cache()).unwrap().remove(0);
    let host = Host::with_helper(folder.path(), Limits::default(), helper());
    let findings = commands::check(&host, &plugin, &json!({}), &json!({}), &|line| eprintln!("{line}")).unwrap();
    assert!(findings.iter().all(|f| f.problem.is_none()), "{findings:#?}");
    assert!(findings.iter().any(|f| f.check == "generate, 512 bits"), "{findings:#?}");
    let listed = commands::list(&host, &[folder.path().to_owned()], &cache()).unwrap();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].built && listed[0].version.as_deref() == Some("0.1.0"), "{listed:?}");
    assert!(commands::info(&host, &plugin, &json!({}), &|_| {}).unwrap().shape.is_some_and(|s| s.ports.len() == 2));
}
