//! The guest's kernel and initramfs, made once for each set of package versions and kept in the cache.

use super::{cpio::Archive, modules, packages, vmlinux};
use crate::stage::Stage;
use crate::{places, run};
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a guest can do. More programs and modules take longer to boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Image {
    /// Busybox, iproute2, ping, tcpdump and a virtio network card.
    Net,
    /// `Net` plus soft-RoCE (`rdma_rxe`), rdma-core's tools and perftest.
    Rdma,
}

/// Changes when the same packages would make another image.
const RECIPE: &str = "2";

impl Image {
    fn name(self) -> &'static str {
        match self {
            Image::Net => "net",
            Image::Rdma => "rdma",
        }
    }

    /// Packages whose programs the image holds; their libraries follow.
    fn programs(self) -> &'static [&'static str] {
        const NET: &[&str] = &["busybox-static", "dash", "iproute2", "iputils-ping", "tcpdump", "ethtool"];
        const RDMA: &[&str] = &[
            "busybox-static",
            "dash",
            "iproute2",
            "iputils-ping",
            "tcpdump",
            "ethtool",
            "rdma-core",
            "ibverbs-utils",
            "ibverbs-providers",
            "rdmacm-utils",
            "libibverbs1",
            "librdmacm1",
            "perftest",
            "libgcc-s1", // pthread_cancel in rping loads it at exit
        ];
        match self {
            Image::Net => NET,
            Image::Rdma => RDMA,
        }
    }

    /// Modules to load; those that they need follow.
    fn modules(self) -> &'static [&'static str] {
        match self {
            Image::Net => &["virtio_pci", "virtio_net"],
            Image::Rdma => &["virtio_pci", "virtio_net", "crc32_generic", "crc32c_generic", "ib_umad", "ib_uverbs", "rdma_ucm", "rdma_rxe"],
        }
    }
}

/// Files that QEMU boots.
#[derive(Clone, Debug)]
pub struct Made {
    /// ELF kernel with a PVH note.
    pub kernel: PathBuf,
    /// Uncompressed newc archive: unpacking a compressed one is what emulation does worst.
    pub initramfs: PathBuf,
    /// For reports: the kernel's package and version.
    pub description: String,
}

/// The image from the cache, or made now from Debian's packages (about 80 MB to download once, no root).
pub fn prepare(image: Image, stage: &Stage) -> Result<Made> {
    let folder = places::cache()?.join("guest");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock().context("waiting for another process that makes the guest")?;
    // Asking apt takes seconds; while its lists and the recipe are the same, so is the answer.
    let (note, now) = (folder.join(format!("{}.current", image.name())), stamp());
    let known = std::fs::read_to_string(&note).ok().and_then(|text| text.strip_prefix(&now).map(|place| folder.join(place)));
    if let Some(made) = known.and_then(|place| made(&place)) {
        return Ok(made);
    }
    let plan = match Plan::of(image, stage) {
        Ok(plan) => plan,
        // Without package lists a guest that was made before serves as well.
        Err(error) => match newest(&folder, image) {
            Some(made) => return Ok(made),
            None => return Err(error),
        },
    };
    let place = folder.join(format!("{}-{}", image.name(), plan.key()));
    if !place.join("description").is_file() {
        let work = tempfile::Builder::new().prefix("making-").tempdir_in(&folder)?;
        make(image, &plan, work.path(), stage)?;
        std::fs::remove_dir_all(&place).ok();
        std::fs::rename(work.path().join("out"), &place).context("moving the new guest into place")?;
    }
    let made = made(&place).context("the guest in the cache is incomplete")?;
    // A hint only: a run that cannot write it asks apt again.
    std::fs::write(note, now + &format!("{}-{}", image.name(), plan.key())).ok();
    Ok(made)
}

/// Changes with apt's package lists and with the recipe.
fn stamp() -> String {
    let lists = std::fs::read_dir("/var/lib/apt/lists").into_iter().flatten().filter_map(|entry| entry.ok());
    let mut lists = lists
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(|metadata| metadata.is_file())?;
            Some(format!("{:?} {} {:?}", entry.file_name(), metadata.len(), metadata.modified().ok()?))
        })
        .collect::<Vec<_>>();
    lists.sort();
    format!("{:016x} ", fnv(lists.iter().flat_map(|line| line.bytes()).chain(recipe())))
}

/// What an image depends on besides its packages.
fn recipe() -> impl Iterator<Item = u8> {
    RECIPE.bytes().chain(include_bytes!("init.sh").iter().copied())
}

/// FNV-1a, 64 bits: short names for things that nobody forges.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What goes into an image.
struct Plan {
    kernel: Vec<packages::Package>,
    programs: Vec<packages::Package>,
}

impl Plan {
    fn of(image: Image, stage: &Stage) -> Result<Plan> {
        stage.say("asking apt which packages the guest needs");
        // Debian's name, then Ubuntu's.
        let kernel = match packages::closure_with_update(&["linux-image-amd64", "xz-utils", "zstd"], stage) {
            Ok(packages) => packages,
            Err(error) => packages::closure(&["linux-image-generic", "xz-utils", "zstd"]).map_err(|_| error)?,
        };
        let is_kernel = |name: &str| {
            let rest = ["linux-image-", "linux-modules-extra-", "linux-modules-"].iter().find_map(|prefix| name.strip_prefix(prefix));
            rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        let is_tool =
            |name: &str| (name == "xz-utils" && run::on_path("xz").is_none()) || (name == "zstd" && run::on_path("zstd").is_none());
        let kernel = kernel.into_iter().filter(|package| is_kernel(&package.name) || is_tool(&package.name)).collect();
        let is_library = |name: &str| (name.starts_with("lib") || name.starts_with("zlib")) && !name.contains("perl");
        let programs = packages::closure_with_update(image.programs(), stage)?;
        let programs =
            programs.into_iter().filter(|package| image.programs().contains(&package.name.as_str()) || is_library(&package.name));
        Ok(Plan { kernel, programs: programs.collect() })
    }

    /// A short name for this set of versions.
    fn key(&self) -> String {
        let words = self.kernel.iter().chain(&self.programs).flat_map(|package| [&package.name, &package.version]);
        format!("{:016x}", fnv(words.flat_map(|word| word.bytes().chain([0])).chain(recipe())))
    }
}

fn made(place: &Path) -> Option<Made> {
    let description = std::fs::read_to_string(place.join("description")).ok()?;
    let (kernel, initramfs) = (place.join("vmlinux"), place.join("initramfs.cpio"));
    (kernel.is_file() && initramfs.is_file()).then_some(Made { kernel, initramfs, description })
}

fn newest(folder: &Path, image: Image) -> Option<Made> {
    let prefix = format!("{}-", image.name());
    let entries = std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok());
    let places = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).map(|entry| entry.path());
    let newest = places.max_by_key(|place| std::fs::metadata(place).and_then(|metadata| metadata.modified()).ok())?;
    made(&newest)
}

/// Makes `work/out/{vmlinux,initramfs.cpio,description}`; `description` is written last.
fn make(image: Image, plan: &Plan, work: &Path, stage: &Stage) -> Result<()> {
    let (kernel, programs, out) = (work.join("kernel"), work.join("programs"), work.join("out"));
    std::fs::create_dir(&out)?;
    packages::unpack(&plan.kernel, &kernel, stage)?;
    packages::unpack(&plan.programs, &programs, stage)?;

    stage.say("taking the kernel out of its boot image");
    let boot = only_entry(&kernel.join("boot"), "vmlinuz-")?;
    vmlinux::extract(&boot, &kernel, &out.join("vmlinux"))?;
    let trees = [kernel.join("lib/modules"), kernel.join("usr/lib/modules")];
    let tree = trees.iter().find(|tree| tree.is_dir()).context("the kernel packages hold no modules")?;
    let modules = modules::in_load_order(&only_entry(tree, "")?, image.modules(), &kernel)?;

    stage.say("writing the initramfs");
    write_initramfs(&programs, &modules, &out.join("initramfs.cpio"))?;
    let package = plan.kernel.iter().find(|package| package.name.starts_with("linux-image-")).context("no kernel package")?;
    std::fs::write(out.join("description"), format!("{} {}", package.name, package.version))?;
    Ok(())
}

/// The one entry of `folder` whose name starts with `prefix`.
fn only_entry(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut entries = entries.filter_map(|entry| entry.ok()).filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    match (entries.next(), entries.next()) {
        (Some(entry), None) => Ok(entry.path()),
        (None, _) => bail!("{} holds no {prefix}*", folder.display()),
        _ => bail!("{} holds more than one {prefix}*", folder.display()),
    }
}

/// Programs, libraries and provider lists of `tree` (unpacked packages), as paths of a merged `/usr`.
fn collect(tree: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(tree.join(&folder))? {
            let entry = entry?;
            let relative = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(relative);
                continue;
            }
            let path = relative.to_string_lossy().into_owned();
            let path = path.strip_prefix("usr/").unwrap_or(&path);
            let program = ["bin/", "sbin/"].iter().any(|prefix| path.starts_with(prefix));
            let library =
                ["lib/", "lib64/"].iter().any(|prefix| path.starts_with(prefix)) && path.contains(".so") && !path.contains("/gconv/");
            let kept = if program || library {
                format!("usr/{path}")
            } else if path.starts_with("etc/libibverbs.d/") || path.starts_with("etc/rdma/") {
                path.to_string()
            } else {
                continue;
            };
            found.insert(kept, entry.path());
        }
    }
    Ok(found)
}

fn write_initramfs(programs: &Path, modules: &[modules::Module], out: &Path) -> Result<()> {
    let files = collect(programs)?;
    for needed in ["usr/bin/dash", "usr/bin/ip", "usr/bin/ping", "usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib64/ld-linux-x86-64.so.2"] {
        ensure!(files.contains_key(needed), "the packages that apt named hold no {needed}");
    }
    let mut archive = Archive::new(BufWriter::new(File::create(out)?));
    let mut folders = BTreeSet::new();
    let mut parents = |archive: &mut Archive<_>, path: &str| -> std::io::Result<()> {
        for (at, _) in path.match_indices('/') {
            if folders.insert(path[..at].to_string()) {
                archive.directory(&path[..at])?;
            }
        }
        Ok(())
    };
    for folder in
        ["dev/", "proc/", "sys/", "tmp/", "run/", "root/", "gateweave/", "etc/", "usr/bin/", "usr/sbin/", "usr/lib/", "usr/lib64/"]
    {
        parents(&mut archive, folder)?;
    }
    for folder in ["bin", "sbin", "lib", "lib64"] {
        archive.symlink(folder, &format!("usr/{folder}"))?;
    }
    archive.symlink("var", "run")?;
    archive.character_device("dev/console", 5, 1)?;
    archive.character_device("dev/null", 1, 3)?;
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\n")?;
    archive.file("etc/group", 0o644, b"root:x:0:\n")?;
    archive.file("etc/hosts", 0o644, b"127.0.0.1 localhost\n")?;
    for (path, file) in &files {
        parents(&mut archive, path)?;
        let metadata = std::fs::symlink_metadata(file)?;
        if metadata.is_symlink() {
            archive.symlink(path, &std::fs::read_link(file)?.to_string_lossy())?;
        } else {
            archive.file(path, metadata.permissions().mode() & 0o777, &std::fs::read(file)?)?;
        }
    }
    // Busybox fills the gaps, from a folder that comes last on PATH. It is static and runs here as well as in the guest.
    let busybox = files.iter().find(|(path, _)| path.ends_with("bin/busybox")).context("busybox-static holds no busybox")?;
    parents(&mut archive, "usr/lib/gateweave/busybox/")?;
    for applet in run::output(Command::new(busybox.1).arg("--list"))?.lines() {
        archive.symlink(&format!("usr/lib/gateweave/busybox/{applet}"), &format!("/{}", busybox.0))?;
    }
    if !files.contains_key("usr/bin/sh") {
        archive.symlink("usr/bin/sh", "dash")?;
    }
    parents(&mut archive, "usr/lib/gateweave/modules/")?;
    let mut order = String::new();
    for module in modules {
        archive.file(&format!("usr/lib/gateweave/modules/{}.ko", module.name), 0o644, &module.object)?;
        order.push_str(&module.name);
        order.push('\n');
    }
    archive.file("usr/lib/gateweave/modules/order", 0o644, order.as_bytes())?;
    archive.file("init", 0o755, include_bytes!("init.sh"))?;
    archive.finish()?;
    Ok(())
}
