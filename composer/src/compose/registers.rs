//! Where the register blocks are: addresses that stay where they are.
//!
//! Every instance with registers gets a block, a power of two in size and naturally aligned, in one 16-bit byte
//! address space. `registers.lock` beside `project.toml` pins the places: an instance that is in it stays there
//! whatever else comes or goes, and the place of an instance that was removed stays reserved until its line is
//! deleted.

mod lock;
mod table;

use std::path::Path;

use crate::diag::{Diagnostic, Diagnostics};

pub use table::{ADDRESS_BITS, Access, Field, Kind, Register, SPACE, Table};

use lock::{Lock, Place};

/// Smallest block in bytes: gives every plugin room for a few registers more without a move.
const BLOCK_MIN: u64 = 64;

/// The block of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Instance name.
    pub instance: String,
    /// First byte address, a multiple of `size`.
    pub base: u64,
    /// Bytes reserved, a power of two.
    pub size: u64,
    /// What is in it.
    pub table: Table,
}

impl Block {
    /// `size` as a power of two, as `gw::axil_interconnect` takes it.
    pub fn size_log2(&self) -> u32 {
        self.size.trailing_zeros()
    }
}

/// All blocks of a project.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// The blocks, by address.
    pub blocks: Vec<Block>,
    /// What `registers.lock` must say, if that is not what it says already.
    pub lock: Option<String>,
    /// What happened that the user should know, none of it an error.
    pub warnings: Diagnostics,
}

impl Map {
    /// The block of an instance.
    pub fn block(&self, instance: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.instance == instance)
    }

    /// Writes the lock file if it has to change.
    ///
    /// # Errors
    /// `GW0456` if it cannot be written.
    pub fn write_lock(&self, path: &Path) -> Result<(), Diagnostic> {
        let Some(text) = &self.lock else { return Ok(()) };
        // A new name and a rename: whoever reads meanwhile sees the old file or the new one.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            file.as_file().set_permissions(mode)?;
            file.persist(path).map(drop).map_err(|e| e.error)
        };
        write().map_err(|e: std::io::Error| {
            Diagnostic::error("GW0456", format!("cannot write `{}`: {e}", path.display()))
                .help("the file pins register addresses; make the folder writable")
        })
    }
}

/// Gives every instance its block.
///
/// `lock` is the path of `registers.lock`; a file that does not exist is an empty one. Nothing is written: see
/// [`Map::write_lock`].
///
/// # Errors
/// `GW0450` and TOML diagnostics for a lock that cannot be read, `GW0451` for an entry of it that cannot be right, `GW0452` for
/// two entries in one place, `GW0454` if the space is full.
pub fn allocate(blocks: &[(String, Table)], lock: Option<&Path>) -> Result<Map, Diagnostics> {
    let mut lock = match lock {
        Some(path) => Lock::open(path)?,
        None => Lock::empty(Path::new("registers.lock")),
    };
    let mut faults = Diagnostics::default();
    let mut warnings = Diagnostics::default();
    let mut placed: Vec<Block> = Vec::new();

    // Those without a place come after all that have one, large ones first: that packs without gaps.
    let mut homeless: Vec<(&String, &Table, u64)> = Vec::new();
    for (instance, table) in blocks {
        let need = table.size.max(BLOCK_MIN);
        match lock.place(instance) {
            Some(place) if place.size >= need => {
                placed.push(Block { instance: instance.clone(), base: place.base, size: place.size, table: table.clone() });
            }
            Some(place) if lock.is_free(place.base, need, Some(instance)) && place.base % need == 0 && place.base + need <= SPACE => {
                lock.set(instance, Place { base: place.base, size: need });
                placed.push(Block { instance: instance.clone(), base: place.base, size: need, table: table.clone() });
            }
            _ => homeless.push((instance, table, need)),
        }
    }
    homeless.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(b.0)));

    for (instance, table, need) in homeless {
        let old = lock.place(instance);
        let Some(base) = (0..SPACE / need).map(|i| i * need).find(|base| lock.is_free(*base, need, Some(instance))) else {
            faults.push(full(instance, need, &lock, blocks));
            continue;
        };
        if let Some(old) = old {
            let message = format!(
                "the register block of `{instance}` moves from {:#06x} to {base:#06x}: it grew from {} to {need} bytes and has no room where it was",
                old.base, old.size
            );
            let mut warning = Diagnostic::warning("GW0453", message).help("programs that have its old addresses must be built again");
            warning.span = lock.span(instance);
            warnings.push(warning);
        }
        lock.set(instance, Place { base, size: need });
        placed.push(Block { instance: instance.clone(), base, size: need, table: table.clone() });
    }
    if faults.has_errors() {
        return Err(faults);
    }
    placed.sort_by_key(|block| block.base);
    Ok(Map { blocks: placed, lock: lock.changed_text(), warnings })
}

fn full(instance: &str, need: u64, lock: &Lock, blocks: &[(String, Table)]) -> Diagnostic {
    let message = format!("no room for the register block of `{instance}`: {need} bytes in one piece of the {SPACE} that there are");
    let unused: Vec<String> = lock.names().filter(|name| !blocks.iter().any(|(b, _)| b == name)).map(|name| format!("`{name}`")).collect();
    let help = if unused.is_empty() {
        "remove an instance, or use plugins with smaller register blocks".to_owned()
    } else {
        format!("`{}` reserves places for instances that are gone; delete the lines of {}", lock.path().display(), unused.join(", "))
    };
    Diagnostic::error("GW0454", message).help(help)
}
