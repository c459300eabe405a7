//! The comment lines at the head of a bench.

use std::path::{Path, PathBuf};

use crate::diag::Diagnostic;

use super::{problem, read};

/// Parameter values of one run, in the order of the `param` line.
pub type Values = Vec<(String, String)>;

/// One bench.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bench {
    /// The C++ file.
    pub path: PathBuf,
    /// File name without extension.
    pub name: String,
    /// What `top` says.
    pub top: String,
    /// One entry per run; at least one, here or in `slow`.
    pub values: Vec<Values>,
    /// Runs that take long.
    pub slow: Vec<Values>,
    /// The whole text.
    pub text: String,
    /// Headers beside it, name and text.
    pub headers: Vec<(String, String)>,
}

impl Bench {
    /// The emitted name of the module under test: `gw_crc32`.
    pub fn module(&self, project: &str) -> String {
        emitted_name(&self.top, project)
    }
}

/// The emitted name of a module: `gw::fifo` is `gw_fifo`, a name without an owner is of `project`.
pub(super) fn emitted_name(module: &str, project: &str) -> String {
    match module.split_once("::") {
        Some((owner, module)) => format!("{owner}_{module}"),
        None => format!("{project}_{module}"),
    }
}

/// Whether the text has the form of a module's name: `fifo` or `gw::fifo`.
pub(super) fn is_module(text: &str) -> bool {
    let word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    text.split("::").all(word) && text.split("::").count() <= 2
}

/// All benches of a folder, by name.
pub(super) fn find(folder: &Path, filter: Option<&str>) -> Result<Vec<Bench>, Diagnostic> {
    let tests = folder.join("tests");
    let mut benches = Vec::new();
    let Ok(entries) = std::fs::read_dir(&tests) else { return Ok(benches) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    for path in paths {
        if path.extension().is_none_or(|e| e != "cpp") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if filter.is_some_and(|f| !name.contains(f)) {
            continue;
        }
        let text = read(&path)?;
        benches.push(parse(&path, name, text)?);
    }
    Ok(benches)
}

fn parse(path: &Path, name: String, text: String) -> Result<Bench, Diagnostic> {
    let wrong = |what: String| problem("GW0330", format!("{}: {what}", path.display()));
    let mut top = None;
    let mut values = Vec::new();
    let mut slow = Vec::new();
    for line in text.lines().map_while(|l| l.strip_prefix("//")) {
        if let Some(rest) = line.trim().strip_prefix("top:") {
            top = Some(rest.trim().to_owned());
        } else if let Some(rest) = line.trim().strip_prefix("param:") {
            values.extend(sets(rest).map_err(&wrong)?);
        } else if let Some(rest) = line.trim().strip_prefix("slow-param:") {
            slow.extend(sets(rest).map_err(&wrong)?);
        }
    }
    let top = top.ok_or_else(|| wrong("the first comment lines name no module".into()).help("write `// top: gw::fifo`"))?;
    if !is_module(&top) {
        return Err(wrong(format!("`{top}` is no module")).help("write `// top: gw::fifo`"));
    }
    if values.is_empty() && slow.is_empty() {
        values.push(Values::new());
    }
    Ok(Bench { path: path.to_owned(), name, top, values, slow, text, headers: Vec::new() })
}

/// `W = 8, 32` is two sets; `W=8 DEPTH=16` is one.
fn sets(line: &str) -> Result<Vec<Values>, String> {
    let bad = || format!("`param:{line}` is not understood: write `W = 8, 32` or `W=8 DEPTH=16`");
    if let Some((name, list)) = line.split_once('=').filter(|(_, list)| list.contains(',')) {
        let name = name.trim();
        let list: Vec<&str> = list.split(',').map(str::trim).collect();
        if !is_parameter(name) || !list.iter().all(|v| is_number(v)) {
            return Err(bad());
        }
        return Ok(list.iter().map(|v| vec![(name.to_owned(), (*v).to_owned())]).collect());
    }
    set(line).map(|set| vec![set]).ok_or_else(bad)
}

/// One set of values, `W=8 DEPTH=16`.
pub(super) fn set(line: &str) -> Option<Values> {
    let spaced = line.replace('=', " = ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let pair = |group: &[&str]| match group {
        [name, "=", value] if is_parameter(name) && is_number(value) => Some(((*name).to_owned(), (*value).to_owned())),
        _ => None,
    };
    words.chunks(3).map(pair).collect()
}

fn is_parameter(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_number(word: &str) -> bool {
    word.parse::<i64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_run_per_value_and_a_row_is_one_run() {
        let text = "// top: gw::fifo\n// param: W = 8, 32\n// param: W=64 DEPTH=16\n//\n// words\n#include <x>\n// param: W=1\n";
        let bench = parse(Path::new("fifo.cpp"), "fifo".into(), text.into()).unwrap();
        let own = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Values>();
        assert_eq!(bench.values, [own(&[("W", "8")]), own(&[("W", "32")]), own(&[("W", "64"), ("DEPTH", "16")])]);
        assert_eq!(bench.module("mac_0_1_0"), "gw_fifo");
    }

    #[test]
    fn slow_sets_are_kept_apart() {
        let bench = parse(Path::new("a.cpp"), "a".into(), "// top: a\n// slow-param: W = 8, 16\n// param: W=32\n".into()).unwrap();
        assert_eq!((bench.values.len(), bench.slow.len()), (1, 2));
    }

    #[test]
    fn a_top_without_a_project_is_of_the_folders_own() {
        let bench = parse(Path::new("a.cpp"), "a".into(), "// top: core\n".into()).unwrap();
        assert_eq!(bench.module("mac_0_1_0"), "mac_0_1_0_core");
        assert_eq!(bench.values, [Values::new()]);
    }

    #[test]
    fn one_set_of_values() {
        let own = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Values>();
        assert_eq!(set("W=8 DEPTH = 16"), Some(own(&[("W", "8"), ("DEPTH", "16")])));
        assert_eq!(set(" "), Some(Values::new()));
        for wrong in ["W", "W=", "W=8,16", "8=W", "W=x"] {
            assert_eq!(set(wrong), None, "{wrong}");
        }
        assert!(is_module("gw::fifo") && is_module("core") && !is_module("a b") && !is_module("a::b::c") && !is_module(""));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in [
            "",
            "// param: W=8\n",
            "// top: a b\n",
            "// top: a\n// param: W\n",
            "// top: a\n// param: W=x\n",
            "// top: a\n// param: W=1,\n",
        ] {
            assert_eq!(parse(Path::new("a.cpp"), "a".into(), text.into()).unwrap_err().code, "GW0330", "{text:?}");
        }
    }
}
