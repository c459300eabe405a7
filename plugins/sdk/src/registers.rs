//! The register table of a block.

use serde::Serialize;

/// Who may do what with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
    /// Write only.
    Wo,
    /// Write 1 to clear.
    W1c,
}

/// A field of a register.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Lowest bit.
    pub lsb: u32,
    /// Number of bits.
    pub width: u32,
    /// What it means.
    pub doc: String,
}

/// A 32-bit register.
#[derive(Clone, Debug, Serialize)]
pub struct Register {
    /// Name.
    pub name: String,
    /// Byte offset in the block, a multiple of 4.
    pub offset: u32,
    /// Who may do what.
    pub access: Access,
    /// `counter` (32 bits, wraps), `value` or `control`.
    pub kind: &'static str,
    /// What it means.
    pub doc: String,
    /// Fields; none where the register is one number.
    pub fields: Vec<Field>,
}

impl Register {
    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &str, lsb: u32, width: u32, doc: &str) -> Self {
        self.fields.push(Field { name: name.into(), lsb, width, doc: doc.into() });
        self
    }
}

/// A register block. Registers follow each other at multiples of 4; the size is the next power of two.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Registers {
    size: u32,
    list: Vec<Register>,
}

impl Registers {
    /// An empty block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a counter.
    #[must_use]
    pub fn counter(self, name: &str, doc: &str) -> Self {
        self.next(name, Access::Ro, "counter", doc)
    }

    /// Appends a value that software reads.
    #[must_use]
    pub fn value(self, name: &str, doc: &str) -> Self {
        self.next(name, Access::Ro, "value", doc)
    }

    /// Appends a register that software writes.
    #[must_use]
    pub fn control(self, name: &str, access: Access, doc: &str) -> Self {
        self.next(name, access, "control", doc)
    }

    /// Appends a register as it stands, at its own offset.
    #[must_use]
    pub fn register(mut self, register: Register) -> Self {
        self.size = self.size.max(register.offset.saturating_add(4).next_power_of_two());
        self.list.push(register);
        self
    }

    /// The next register goes to `offset`.
    #[must_use]
    pub fn at(self, offset: u32) -> RegistersAt {
        RegistersAt { registers: self, offset }
    }

    /// Makes the block at least `bytes` large (a power of two).
    #[must_use]
    pub fn size(mut self, bytes: u32) -> Self {
        self.size = self.size.max(bytes.next_power_of_two());
        self
    }

    /// Size of the block in bytes.
    pub fn bytes(&self) -> u32 {
        self.size
    }

    /// The registers, in order.
    pub fn list(&self) -> &[Register] {
        &self.list
    }

    fn next(self, name: &str, access: Access, kind: &'static str, doc: &str) -> Self {
        let offset = self.list.last().map_or(0, |r| r.offset.saturating_add(4));
        self.at(offset).put(name, access, kind, doc)
    }
}

/// A block and the offset of its next register.
pub struct RegistersAt {
    registers: Registers,
    offset: u32,
}

impl RegistersAt {
    /// Appends a counter.
    #[must_use]
    pub fn counter(self, name: &str, doc: &str) -> Registers {
        self.put(name, Access::Ro, "counter", doc)
    }

    /// Appends a value that software reads.
    #[must_use]
    pub fn value(self, name: &str, doc: &str) -> Registers {
        self.put(name, Access::Ro, "value", doc)
    }

    /// Appends a register that software writes.
    #[must_use]
    pub fn control(self, name: &str, access: Access, doc: &str) -> Registers {
        self.put(name, access, "control", doc)
    }

    fn put(self, name: &str, access: Access, kind: &'static str, doc: &str) -> Registers {
        let register = Register { name: name.into(), offset: self.offset, access, kind, doc: doc.into(), fields: Vec::new() };
        self.registers.register(register)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_follow_each_other_in_a_block_of_a_power_of_two() {
        let block = Registers::new().counter("a", "").value("b", "").at(32).control("c", Access::Rw, "").counter("d", "");
        let offsets: Vec<_> = block.list().iter().map(|r| (r.name.as_str(), r.offset)).collect();
        assert_eq!(offsets, [("a", 0), ("b", 4), ("c", 32), ("d", 36)]);
        assert_eq!(block.bytes(), 64);
        assert_eq!(block.size(100).bytes(), 128);
    }

    #[test]
    fn the_table_has_the_shape_of_the_contract() {
        let json = serde_json::to_value(Registers::new().counter("rx_good", "frames passed on")).unwrap();
        let register = serde_json::json!({ "name": "rx_good", "offset": 0, "access": "ro", "kind": "counter", "doc": "frames passed on", "fields": [] });
        assert_eq!(json, serde_json::json!({ "size": 4, "list": [register] }));
    }
}
