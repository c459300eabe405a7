//! `registers.lock`: reading it with every entry's place in the file, and editing it without touching the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use super::SPACE;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::manifest::read::Doc;

/// The only version of the file so far.
const SCHEMA: u64 = 1;

/// Head of a new file.
const HEAD: &str = "# Where the register blocks are. Commit this file: it keeps addresses from moving.\n\
    # The line of an instance that is gone reserves its place; delete it to free the place.\n\
    schema = 1\n";

/// A range of byte addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First byte address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Place {
    fn overlaps(self, other: Place) -> bool {
        self.base < other.base + other.size && other.base < self.base + self.size
    }
}

/// The lock file.
pub struct Lock {
    path: PathBuf,
    document: DocumentMut,
    places: BTreeMap<String, (Place, Option<Span>)>,
    changed: bool,
}

impl Lock {
    /// A lock that pins nothing yet.
    pub fn empty(path: &Path) -> Lock {
        let document = HEAD.parse().unwrap_or_default();
        Lock { path: path.to_owned(), document, places: BTreeMap::new(), changed: false }
    }

    /// Reads a lock file; one that does not exist is empty.
    ///
    /// # Errors
    /// `GW0450` if it cannot be read, the reader's own codes if it is not TOML of this shape, `GW0451` and `GW0452` for
    /// entries that cannot be right.
    pub fn open(path: &Path) -> Result<Lock, Diagnostics> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Lock::empty(path)),
            Err(e) => {
                let message = format!("cannot read `{}`: {e}", path.display());
                return Err(Diagnostic::error("GW0450", message).help("restore it from version control").into());
            }
        };
        let doc = Doc::parse(path, text.clone())?;
        let mut places: BTreeMap<String, (Place, Option<Span>)> = BTreeMap::new();
        {
            let root = doc.root();
            if let Some(schema) = root.need("schema") {
                schema.unsigned(SCHEMA..=SCHEMA);
            }
            if let Some(block) = root.get("block").and_then(|value| value.table()) {
                for (name, value) in block.entries() {
                    let Some(entry) = value.table() else { continue };
                    let base = entry.need("base").and_then(|v| v.unsigned(0..=SPACE - 1));
                    let size = entry.need("size").and_then(|v| v.unsigned(4..=SPACE));
                    entry.finish();
                    let (Some(base), Some(size)) = (base, size) else { continue };
                    if !size.value.is_power_of_two() {
                        let message = format!("the block of `{}` has {} bytes, which is not a power of two", name.value, size.value);
                        doc.push(Diagnostic::error("GW0451", message).at(&size.span).help("restore the file from version control"));
                        continue;
                    }
                    let place = Place { base: base.value, size: size.value };
                    if place.base % place.size != 0 || place.base + place.size > SPACE {
                        let message = format!(
                            "the block of `{}` is at {:#06x}, which is not a multiple of its {} bytes below {SPACE:#x}",
                            name.value, place.base, place.size
                        );
                        doc.push(Diagnostic::error("GW0451", message).at(&base.span).help("restore the file from version control"));
                        continue;
                    }
                    if let Some((other, (_, there))) = places.iter().find(|(_, (other, _))| other.overlaps(place)) {
                        let message = format!("the blocks of `{other}` and `{}` overlap", name.value);
                        let help = "keep the line that programs rely on and delete the other; its instance gets a new place";
                        let mut fault = Diagnostic::error("GW0452", message).at(&value.span).help(help);
                        if let Some(there) = there {
                            fault = fault.also(there, format!("`{other}` is here"));
                        }
                        doc.push(fault);
                        continue;
                    }
                    places.insert(name.value, (place, Some(value.span.clone())));
                }
            }
            root.finish();
        }
        let faults = doc.finish();
        if faults.has_errors() {
            return Err(faults);
        }
        // It was parsed above; this form of it can be edited.
        let document = text.parse::<DocumentMut>().map_err(|e| Diagnostic::error("GW0450", e.message().to_owned()))?;
        Ok(Lock { path: path.to_owned(), document, places, changed: false })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everyone who has a place.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// The place of an instance.
    pub fn place(&self, instance: &str) -> Option<Place> {
        self.places.get(instance).map(|(place, _)| *place)
    }

    /// Where the file says so.
    pub fn span(&self, instance: &str) -> Option<Span> {
        self.places.get(instance).and_then(|(_, span)| span.clone())
    }

    /// Whether nobody, but for `owner`, has any of these addresses.
    pub fn is_free(&self, base: u64, size: u64, owner: Option<&str>) -> bool {
        let place = Place { base, size };
        self.places.iter().all(|(name, (other, _))| owner == Some(name) || !other.overlaps(place))
    }

    /// Gives an instance a place.
    pub fn set(&mut self, instance: &str, place: Place) {
        let span = self.span(instance);
        self.places.insert(instance.to_owned(), (place, span));
        self.changed = true;
        let table = self.document.entry("block").or_insert_with(|| Item::Table(Table::new()));
        let Some(table) = table.as_table_like_mut() else { return };
        if let Some(entry) = table.get_mut(instance).and_then(Item::as_table_like_mut) {
            for (key, number) in [("base", hexadecimal(place.base)), ("size", Value::from(place.size as i64))] {
                if let Some(value) = entry.get_mut(key).and_then(Item::as_value_mut) {
                    let decor = value.decor().clone();
                    *value = number;
                    *value.decor_mut() = decor;
                }
            }
        } else {
            let mut entry = InlineTable::new();
            entry.insert("base", hexadecimal(place.base));
            entry.insert("size", Value::from(place.size as i64));
            table.insert(instance, Item::Value(Value::InlineTable(entry)));
        }
    }

    /// The text that the file must have, if that is another than it has.
    pub fn changed_text(&self) -> Option<String> {
        self.changed.then(|| self.document.to_string())
    }
}

/// An address as people read it.
fn hexadecimal(number: u64) -> Value {
    format!("0x{number:04x}").parse().unwrap_or_else(|_| Value::from(number as i64))
}
