//! The Veryl that a bench compiles, and the part of the emission that its module uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::diag::Diagnostic;
use crate::hdl::{self, Source};

use super::{problem, read};

/// A folder with HDL, as a Veryl project, together with the library.
#[derive(Clone, Debug)]
pub struct Project {
    /// Name of the Veryl project: `gw`, or a plugin's name and version.
    pub name: String,
    /// Sources of all projects.
    pub sources: Vec<Source>,
    /// Headers of the benches, name and text: the library's own, those of `bench-with`, the folder's.
    pub headers: Vec<(String, String)>,
}

/// Reads a folder: the library itself (`gw`), or a plugin's crate (`hdl/` and the wrappers in `tests/`).
///
/// # Errors
/// If a file cannot be read or a plugin's `Cargo.toml` does not say name and version.
pub fn project(library: &Path, folder: &Path) -> Result<Project, Diagnostic> {
    let same = |a: &Path, b: &Path| a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b);
    let own = same(library, folder);
    let name = if own { "gw".to_owned() } else { project_name(folder)? };
    let mut sources = Vec::new();
    add(&mut sources, "kinds", &library.join("kinds"), "kinds")?;
    add(&mut sources, "gw", library, "gw")?;
    add(&mut sources, "io", &library.join("io/sim"), "io")?;
    if !own {
        add(&mut sources, &name, &folder.join("hdl"), &name)?;
    }
    add(&mut sources, &name, &folder.join("tests"), &format!("{name}/tests"))?;
    let mut headers = Vec::new();
    if !own {
        add_headers(&mut headers, &library.join("tests"))?;
        for other in bench_with(folder)? {
            let other = folder.join(other);
            let project = project_name(&other)?;
            add(&mut sources, &project, &other.join("hdl"), &project)?;
            add_headers(&mut headers, &other.join("tests"))?;
        }
    }
    add_headers(&mut headers, &folder.join("tests"))?;
    Ok(Project { name, sources, headers })
}

fn add(sources: &mut Vec<Source>, project: &str, folder: &Path, prefix: &str) -> Result<(), Diagnostic> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let mut paths: Vec<_> =
        entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.extension().is_some_and(|e| e == "veryl")).collect();
    paths.sort();
    for path in paths {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let library = matches!(project, "kinds" | "gw" | "io");
        sources.push(Source { project: project.to_owned(), path: format!("{prefix}/{file}"), text: read(&path)?, library });
    }
    Ok(())
}

fn add_headers(headers: &mut Vec<(String, String)>, folder: &Path) -> Result<(), Diagnostic> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let mut paths: Vec<_> =
        entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.extension().is_some_and(|e| e == "hpp")).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        headers.push((name, read(&path)?));
    }
    Ok(())
}

/// Folders of the plugins whose modules the benches need too, relative to the plugin's own.
fn bench_with(folder: &Path) -> Result<Vec<String>, Diagnostic> {
    let manifest = folder.join("Cargo.toml");
    let document: toml_edit::DocumentMut =
        read(&manifest)?.parse().map_err(|e| problem("GW0333", format!("`{}` is not TOML: {e}", manifest.display())))?;
    let list = document.get("package").and_then(|p| p.get("metadata")).and_then(|m| m.get("gateweave")).and_then(|g| g.get("bench-with"));
    Ok(list.and_then(|l| l.as_array()).map(|a| a.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()).unwrap_or_default())
}

/// `<name>_<version>` with `-` and `.` as `_`.
fn project_name(folder: &Path) -> Result<String, Diagnostic> {
    let manifest = folder.join("Cargo.toml");
    let parse = |path: &Path| -> Result<toml_edit::DocumentMut, Diagnostic> {
        read(path)?.parse().map_err(|e| problem("GW0333", format!("`{}` is not TOML: {e}", path.display())))
    };
    let document = parse(&manifest)?;
    let package = document.get("package");
    let field = |key: &str| package.and_then(|p| p.get(key)).and_then(|v| v.as_str()).map(str::to_owned);
    let name = field("name").ok_or_else(|| problem("GW0333", format!("`{}` has no package name", manifest.display())))?;
    let mut version = field("version");
    if version.is_none() {
        // `version.workspace = true`
        for parent in folder.ancestors().skip(1) {
            let Ok(text) = std::fs::read_to_string(parent.join("Cargo.toml")) else { continue };
            let Ok(document) = text.parse::<toml_edit::DocumentMut>() else { continue };
            version = document
                .get("workspace")
                .and_then(|w| w.get("package"))
                .and_then(|p| p.get("version"))
                .and_then(|v| v.as_str())
                .map(str::to_owned);
            if version.is_some() {
                break;
            }
        }
    }
    let version = version.ok_or_else(|| problem("GW0333", format!("`{}` has no version", manifest.display())))?;
    Ok(format!("{name}_{version}").replace(['-', '.', '+'], "_"))
}

/// Emitted files with what each defines.
pub(super) struct Emission {
    files: Vec<(String, BTreeSet<String>, String)>,
}

/// Compiles a project.
pub(super) fn compile(project: &Project) -> Result<Emission, Diagnostic> {
    let compiled = hdl::compile(&project.name, &project.sources, &[]).map_err(|messages| {
        let text: Vec<String> = messages
            .iter()
            .filter(|m| m.error)
            .map(|m| {
                let (line, column) = m.at.unwrap_or((1, 1));
                format!("{}:{line}:{column}: {}", m.path.as_deref().unwrap_or("?"), m.message)
            })
            .collect();
        problem("GW0334", format!("the HDL does not compile:\n{}", text.join("\n")))
    })?;
    let files = compiled.files.into_iter().map(|f| (f.path, defined(&f.text), f.text)).collect();
    Ok(Emission { files })
}

/// Names of the modules, interfaces and packages of a text.
fn defined(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if matches!(words.next(), Some("module" | "interface" | "package"))
            && let Some(name) = words.next()
        {
            names.insert(name.trim_end_matches([';', '(']).to_owned());
        }
    }
    names
}

impl Emission {
    /// The files that `module` uses, in the order that compilers want; empty if it is not there.
    pub(super) fn reachable(&self, module: &str) -> Vec<(String, String)> {
        let mut owner = BTreeMap::new();
        for (index, (_, names, _)) in self.files.iter().enumerate() {
            for name in names {
                owner.insert(name.as_str(), index);
            }
        }
        let mut wanted = BTreeSet::new();
        let mut open: Vec<usize> = owner.get(module).copied().into_iter().collect();
        while let Some(index) = open.pop() {
            if !wanted.insert(index) {
                continue;
            }
            let Some((_, _, text)) = self.files.get(index) else { continue };
            for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
                if let Some(&other) = owner.get(word) {
                    open.push(other);
                }
            }
        }
        wanted.iter().filter_map(|&i| self.files.get(i)).map(|(path, _, text)| (path.clone(), text.clone())).collect()
    }
}
