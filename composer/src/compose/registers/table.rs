//! The register table of a block: what a plugin says about its registers, validated.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map as Object, Value as Json};

use crate::diag::{Diagnostic, Diagnostics};

/// Largest block in bytes: the whole register space.
pub const SPACE: u64 = 1 << ADDRESS_BITS;
/// Width of a register address in bits, the default of `kinds::axi4_lite`.
pub const ADDRESS_BITS: u32 = 16;

/// What the bus may do with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
    /// Write only.
    Wo,
    /// Read, and write 1 to clear a bit.
    W1c,
}

impl Access {
    const NAMES: [&str; 4] = ["ro", "rw", "wo", "w1c"];

    fn parse(name: &str) -> Option<Access> {
        Some(match name {
            "ro" => Access::Ro,
            "rw" => Access::Rw,
            "wo" => Access::Wo,
            "w1c" => Access::W1c,
            _ => return None,
        })
    }
}

/// What a register is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Counts events: 32 bits, wraps, read without side effects.
    Counter,
    /// Tells a state.
    Value,
    /// Sets something.
    Control,
}

impl Kind {
    const NAMES: [&str; 3] = ["counter", "value", "control"];

    fn parse(name: &str) -> Option<Kind> {
        Some(match name {
            "counter" => Kind::Counter,
            "value" => Kind::Value,
            "control" => Kind::Control,
            _ => return None,
        })
    }
}

/// A part of a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Name, unique in the register.
    pub name: String,
    /// Lowest bit.
    pub lsb: u32,
    /// Number of bits.
    pub width: u32,
    /// What it means.
    pub doc: String,
}

/// A 32-bit register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Register {
    /// Name, unique in the block: `a-z`, `0-9` and `_`, starting with a letter.
    pub name: String,
    /// Byte offset in the block, a multiple of 4.
    pub offset: u32,
    /// What the bus may do with it.
    pub access: Access,
    /// What it is for.
    pub kind: Kind,
    /// Value after reset.
    pub reset: u32,
    /// What it means.
    pub doc: String,
    /// Its parts, by lowest bit; empty where the whole is one value.
    pub fields: Vec<Field>,
}

/// The registers of one block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Bytes that the block decodes; a power of two.
    pub size: u64,
    /// The registers, by offset.
    pub list: Vec<Register>,
}

impl Table {
    /// The register block in the `tables` of a plugin's shape, if it has one.
    ///
    /// # Errors
    /// Every fault of the table as `GW0455`, with the JSON Pointer in the message.
    pub fn from_tables(instance: &str, tables: &Json) -> Result<Option<Table>, Diagnostics> {
        let Some(json) = tables.get("registers").filter(|json| !json.is_null()) else { return Ok(None) };
        let mut reader = Reader { instance, faults: Diagnostics::default() };
        let table = reader.table(json);
        match table {
            Some(table) if !reader.faults.has_errors() => Ok(Some(table)),
            _ => Err(reader.faults),
        }
    }
}

/// Reads the table of one instance and collects its faults.
struct Reader<'a> {
    instance: &'a str,
    faults: Diagnostics,
}

impl Reader<'_> {
    fn fault(&mut self, pointer: &str, message: &str) -> &mut Diagnostic {
        let message = format!("the register table of `{}` is wrong at `{pointer}`: {message}", self.instance);
        self.faults.push(Diagnostic::error("GW0455", message));
        let last = self.faults.0.len() - 1;
        &mut self.faults.0[last]
    }

    fn object<'j>(&mut self, pointer: &str, json: &'j Json, known: &[&str]) -> Option<&'j Object<String, Json>> {
        let Some(object) = json.as_object() else {
            self.fault(pointer, "not an object");
            return None;
        };
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let fault = self.fault(pointer, &format!("unknown key `{key}`"));
            *fault = fault.clone().nearest(key, known.iter().copied());
        }
        Some(object)
    }

    fn number(&mut self, pointer: &str, json: Option<&Json>, max: u64) -> Option<u64> {
        let number = json.and_then(Json::as_u64).filter(|number| *number <= max);
        if number.is_none() {
            self.fault(pointer, &format!("not an integer from 0 to {max}"));
        }
        number
    }

    fn text(&mut self, pointer: &str, json: Option<&Json>) -> Option<String> {
        let text = json.map_or(Some(""), Json::as_str).map(str::to_owned);
        if text.is_none() {
            self.fault(pointer, "not a string");
        }
        text
    }

    fn name(&mut self, pointer: &str, json: Option<&Json>) -> Option<String> {
        let name = json.and_then(Json::as_str).filter(|name| is_identifier(name)).map(str::to_owned);
        if name.is_none() {
            self.fault(pointer, "not a name: `a-z`, `0-9` and `_`, starting with a letter, at most 64 characters");
        }
        name
    }

    fn choice<T>(&mut self, pointer: &str, json: Option<&Json>, known: &[&str], parse: fn(&str) -> Option<T>) -> Option<T> {
        let word = json.and_then(Json::as_str).unwrap_or("");
        let choice = parse(word);
        if choice.is_none() {
            let fault = self.fault(pointer, &format!("not one of {}", known.join(", ")));
            *fault = fault.clone().nearest(word, known.iter().copied());
        }
        choice
    }

    fn table(&mut self, json: &Json) -> Option<Table> {
        let object = self.object("/registers", json, &["size", "list"])?;
        let size = self.number("/registers/size", object.get("size"), SPACE)?;
        if size < 4 || !size.is_power_of_two() {
            let right = size.max(4).next_power_of_two();
            self.fault("/registers/size", &format!("{size} is not a power of two from 4")).help = Some(format!("use {right}"));
            return None;
        }
        let Some(array) = object.get("list").and_then(Json::as_array) else {
            self.fault("/registers/list", "not a list of registers");
            return None;
        };
        let mut list: Vec<Register> =
            array.iter().enumerate().filter_map(|(i, json)| self.register(&format!("/registers/list/{i}"), json, size)).collect();
        list.sort_by_key(|register| register.offset);
        let mut names = BTreeMap::new();
        for register in &list {
            if let Some(other) = names.insert(register.name.as_str(), register.offset) {
                let message = format!("two registers are named `{}`, at offsets {other:#x} and {:#x}", register.name, register.offset);
                self.fault("/registers/list", &message);
            }
        }
        for (a, b) in list.iter().zip(list.iter().skip(1)).filter(|(a, b)| a.offset == b.offset) {
            self.fault("/registers/list", &format!("`{}` and `{}` are both at offset {:#x}", a.name, b.name, a.offset));
        }
        Some(Table { size, list })
    }

    fn register(&mut self, pointer: &str, json: &Json, size: u64) -> Option<Register> {
        let object = self.object(pointer, json, &["name", "offset", "access", "kind", "reset", "doc", "fields"])?;
        let name = self.name(&format!("{pointer}/name"), object.get("name"));
        let offset = self.number(&format!("{pointer}/offset"), object.get("offset"), u32::MAX.into());
        if let Some(offset) = offset.filter(|offset| offset % 4 != 0 || offset + 4 > size) {
            self.fault(&format!("{pointer}/offset"), &format!("offset {offset} is not a multiple of 4 below the block's size {size}"));
        }
        let access = self.choice(&format!("{pointer}/access"), object.get("access"), &Access::NAMES, Access::parse);
        let kind = match object.get("kind") {
            Some(json) => self.choice(&format!("{pointer}/kind"), Some(json), &Kind::NAMES, Kind::parse),
            None => access.map(|access| if access == Access::Ro { Kind::Value } else { Kind::Control }),
        };
        if kind == Some(Kind::Counter) && access.is_some_and(|access| access != Access::Ro) {
            self.fault(&format!("{pointer}/access"), "a counter is `ro`");
        }
        let reset = match object.get("reset") {
            Some(json) => self.number(&format!("{pointer}/reset"), Some(json), u32::MAX.into()),
            None => Some(0),
        };
        let doc = self.text(&format!("{pointer}/doc"), object.get("doc"));
        let fields = self.fields(&format!("{pointer}/fields"), object.get("fields"));
        Some(Register {
            name: name?,
            offset: offset? as u32,
            access: access?,
            kind: kind?,
            reset: reset? as u32,
            doc: doc?,
            fields: fields?,
        })
    }

    fn fields(&mut self, pointer: &str, json: Option<&Json>) -> Option<Vec<Field>> {
        let Some(json) = json else { return Some(Vec::new()) };
        let Some(array) = json.as_array() else {
            self.fault(pointer, "not a list of fields");
            return None;
        };
        let mut fields: Vec<Field> = array.iter().enumerate().filter_map(|(i, json)| self.field(&format!("{pointer}/{i}"), json)).collect();
        fields.sort_by_key(|field| field.lsb);
        let mut names = BTreeMap::new();
        for (i, field) in fields.iter().enumerate() {
            if names.insert(field.name.as_str(), ()).is_some() {
                self.fault(pointer, &format!("two fields are named `{}`", field.name));
            }
            if let Some(next) = fields.get(i + 1).filter(|next| next.lsb < field.lsb + field.width) {
                self.fault(pointer, &format!("`{}` and `{}` share bit {}", field.name, next.name, next.lsb));
            }
        }
        Some(fields)
    }

    fn field(&mut self, pointer: &str, json: &Json) -> Option<Field> {
        let object = self.object(pointer, json, &["name", "lsb", "width", "doc"])?;
        let name = self.name(&format!("{pointer}/name"), object.get("name"));
        let lsb = self.number(&format!("{pointer}/lsb"), object.get("lsb"), 31)?;
        let width = self.number(&format!("{pointer}/width"), object.get("width"), 32)?;
        if width == 0 || lsb + width > 32 {
            self.fault(&format!("{pointer}/width"), &format!("{width} bits from bit {lsb} are not within 32"));
            return None;
        }
        let doc = self.text(&format!("{pointer}/doc"), object.get("doc"));
        Some(Field { name: name?, lsb: lsb as u32, width: width as u32, doc: doc? })
    }
}

/// Whether `name` can be a name in C, SVD and JSON without change.
fn is_identifier(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}
