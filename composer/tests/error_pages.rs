//! Every code that the program uses has a page in `docs/errors/`, and every page a code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Codes in string literals of the program, each with the top folders of `src` that use it.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 50, "{} files", files.len());
    let code = regex::Regex::new("\"(GW[0-9]{4})\"").unwrap();
    let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let part = file.strip_prefix(&src).unwrap().iter().next().unwrap().to_string_lossy().into_owned();
        for found in code.captures_iter(&std::fs::read_to_string(&file).unwrap()) {
            codes.entry(found[1].to_owned()).or_default().insert(part.clone());
        }
    }
    codes
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let used: BTreeSet<String> = used().into_keys().collect();
    let mut pages = BTreeSet::new();
    for path in std::fs::read_dir(root().join("docs/errors")).unwrap().map(|e| e.unwrap().path()) {
        let code = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("# {code}: ")), "{code}: the title");
        assert!(text.contains('`') && text.lines().count() >= 5, "{code}: says too little");
        assert!(!text.lines().any(|l| l.starts_with("<<<<<<<") || l.starts_with(">>>>>>>")), "{code}: two pages in one");
        pages.insert(code);
    }
    let lacking: Vec<_> = used.difference(&pages).collect();
    let spare: Vec<_> = pages.difference(&used).collect();
    assert!(lacking.is_empty() && spare.is_empty(), "without a page: {lacking:?}; without a use: {spare:?}");
}

/// The plugin host and the bench runner share a range of codes; one code has one meaning.
#[test]
fn codes_of_the_plugin_host_and_of_the_bench_runner_differ() {
    for (code, parts) in used() {
        let both = parts.contains("bench") && (parts.contains("plugin") || parts.contains("pipeline"));
        assert!(!both, "{code} is used by {parts:?}");
    }
}
