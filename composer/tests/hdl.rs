//! The library's HDL and that of the plugins: formatted, free of lint, and right in their benches.

mod hdl_common;

use std::path::{Path, PathBuf};

use gateweave::bench;
use hdl_common::{cache, folders, library, verilator, veryl_files};

fn run(folder: &Path) {
    let options = bench::Options {
        library: library(),
        folder: folder.to_owned(),
        cache: cache(),
        verilator: verilator(),
        filter: None,
        seed: None,
        all: std::env::var_os("GATEWEAVE_ALL_BENCHES").is_some(),
        limit: std::time::Duration::from_secs(600),
    };
    let outcomes = bench::run(&options, &mut |o| {
        println!("{} {}{}", if o.passed { "ok" } else { "FAILED" }, o.title(), if o.cached { " (as before)" } else { "" })
    })
    .unwrap_or_else(|d| panic!("{}: {}", d.code, d.message));
    assert!(!outcomes.is_empty(), "{} has no bench", folder.display());
    let failed: Vec<String> = outcomes.iter().filter(|o| !o.passed).map(|o| format!("{}\n{}", o.title(), o.output)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn benches_of_the_library_pass() {
    run(&library());
}

#[test]
fn benches_of_the_plugins_pass() {
    let with_benches: Vec<PathBuf> = folders()
        .into_iter()
        .filter(|f| std::fs::read_dir(f.join("tests")).is_ok_and(|d| d.flatten().any(|e| e.path().extension().is_some_and(|x| x == "cpp"))))
        .collect();
    assert!(!with_benches.is_empty());
    for folder in with_benches {
        run(&folder);
    }
}

#[test]
fn every_veryl_file_is_formatted() {
    let files = veryl_files();
    assert!(files.len() > 20, "only {} files found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        match gateweave::hdl::format(&file.to_string_lossy(), &text) {
            Ok(formatted) if formatted == text => {}
            Ok(_) => wrong.push(format!("{} is not formatted", file.display())),
            Err(e) => wrong.push(format!("{}: {}", file.display(), e.message)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
