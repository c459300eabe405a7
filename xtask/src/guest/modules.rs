//! Which kernel modules a guest loads, and in which order.
//!
//! Every module names the modules it needs in its `.modinfo` section (`depends=a,b`), so the order follows from the files and does
//! not have to be kept for each kernel.

use crate::run;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module file with its name as `modprobe` spells it (underscores).
pub struct Module {
    pub name: String,
    /// The uncompressed ELF object.
    pub object: Vec<u8>,
}

/// The modules below `tree` (a `lib/modules/<release>` folder) that `roots` need, each after the ones it depends on.
/// Built-in modules are left out. `tools` as in [`super::vmlinux::extract`].
pub fn in_load_order(tree: &Path, roots: &[&str], tools: &Path) -> Result<Vec<Module>> {
    let mut files = BTreeMap::new();
    find(tree, &mut files).with_context(|| format!("reading {}", tree.display()))?;
    let built_in = std::fs::read_to_string(tree.join("modules.builtin")).unwrap_or_default();
    let built_in = built_in.lines().filter_map(|line| module_name(Path::new(line))).collect();
    let mut order = Order { files, built_in, tools, done: BTreeSet::new(), modules: Vec::new() };
    for root in roots {
        order.visit(root, &mut Vec::new())?;
    }
    Ok(order.modules)
}

struct Order<'a> {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    tools: &'a Path,
    done: BTreeSet<String>,
    modules: Vec<Module>,
}

impl Order<'_> {
    fn visit(&mut self, name: &str, path: &mut Vec<String>) -> Result<()> {
        let name = name.replace('-', "_");
        if self.built_in.contains(&name) || self.done.contains(&name) {
            return Ok(());
        }
        if path.contains(&name) {
            bail!("modules depend on each other in a circle: {}", path.join(" -> "));
        }
        let Some(file) = self.files.get(&name) else { bail!("the kernel packages have no module {name}") };
        let object = read(file, self.tools)?;
        path.push(name.clone());
        for dependency in dependencies(&object) {
            self.visit(&dependency, path)?;
        }
        path.pop();
        self.done.insert(name.clone());
        self.modules.push(Module { name, object });
        Ok(())
    }
}

fn find(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            find(&entry.path(), files)?;
        } else if let Some(name) = module_name(&entry.path()) {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

/// `kernel/drivers/virtio/virtio-pci.ko.xz` -> `virtio_pci`.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (stem, suffix) = name.split_once(".ko")?;
    matches!(suffix, "" | ".xz" | ".zst" | ".gz").then(|| stem.replace('-', "_"))
}

fn read(file: &Path, tools: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let tool = match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return Ok(bytes),
    };
    let unpacked = tools.join("usr/bin").join(tool);
    let program = if run::on_path(tool).is_some() { Path::new(tool) } else { &unpacked };
    run::filter(Command::new(program).args(["-d", "-c"]), &bytes).with_context(|| format!("unpacking {}", file.display()))
}

/// The modules named by `depends=` in `.modinfo`, a list of zero-terminated strings.
fn dependencies(object: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = object.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let list = &object[at + KEY.len()..];
    let list = &list[..list.iter().position(|&byte| byte == 0).unwrap_or(list.len())];
    let list = String::from_utf8_lossy(list);
    list.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(folder: &Path, name: &str, depends: &str) {
        std::fs::write(folder.join(format!("{name}.ko")), format!("\x7fELF\0license=GPL\0depends={depends}\0retpoline=Y\0")).unwrap();
    }

    #[test]
    fn modules_come_after_what_they_need() {
        let folder = tempfile::tempdir().unwrap();
        module(folder.path(), "virtio-net", "virtio,net_failover");
        module(folder.path(), "net_failover", "failover,virtio");
        module(folder.path(), "failover", "");
        std::fs::write(folder.path().join("modules.builtin"), "kernel/drivers/virtio/virtio.ko\n").unwrap();
        let order = in_load_order(folder.path(), &["virtio_net", "failover"], Path::new("/")).unwrap();
        assert_eq!(order.iter().map(|module| module.name.as_str()).collect::<Vec<_>>(), ["failover", "net_failover", "virtio_net"]);
    }

    #[test]
    fn circles_and_missing_modules_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        module(folder.path(), "a", "b");
        module(folder.path(), "b", "a");
        module(folder.path(), "c", "d");
        assert!(in_load_order(folder.path(), &["a"], Path::new("/")).is_err());
        assert!(in_load_order(folder.path(), &["c"], Path::new("/")).is_err());
    }
}
