//! The instruction set: names, opcodes, and what stands behind them.

/// What an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A word of the data memory or a number: `name`, `x+3`, `#5`.
    Operand,
    /// A word of the data memory: `name`, `x+3`.
    Place,
    /// The same, of which only the address counts.
    Address,
    /// How far to rotate, 1 to 31: one word for each 8 and each 1 of it.
    Turn,
    /// Number of a port.
    Port,
    /// A label.
    Target,
    /// Nothing.
    None,
}

pub(crate) struct Instruction {
    pub name: &'static str,
    pub opcode: u16,
    pub shape: Shape,
}

const fn i(name: &'static str, opcode: u16, shape: Shape) -> Instruction {
    Instruction { name, opcode, shape }
}

/// The same numbers as in `composer/hdl/sequencer_core.veryl`; names that share a number are two words for one thing.
pub(crate) const INSTRUCTIONS: [Instruction; 36] = [
    i("ld", 0, Shape::Operand),
    i("and", 1, Shape::Operand),
    i("or", 2, Shape::Operand),
    i("xor", 3, Shape::Operand),
    i("add", 4, Shape::Operand),
    i("sub", 5, Shape::Operand),
    i("adc", 6, Shape::Operand),
    i("cmp", 7, Shape::Operand),
    i("lea", 8, Shape::Address),
    i("tst", 9, Shape::Operand),
    i("lex", 10, Shape::Address),
    i("ley", 11, Shape::Address),
    i("ror", 12, Shape::Turn),
    i("st", 13, Shape::Place),
    i("ldx", 14, Shape::Operand),
    i("ldy", 15, Shape::Operand),
    i("in", 16, Shape::Port),
    i("tin", 17, Shape::Port),
    i("tax", 18, Shape::None),
    i("tay", 19, Shape::None),
    i("out", 20, Shape::Port),
    i("tout", 21, Shape::Port),
    i("outl", 22, Shape::Port),
    i("ret", 23, Shape::None),
    i("jmp", 24, Shape::Target),
    i("call", 25, Shape::Target),
    i("bz", 26, Shape::Target),
    i("bnz", 27, Shape::Target),
    i("bc", 28, Shape::Target),
    i("bnc", 29, Shape::Target),
    i("bn", 30, Shape::Target),
    i("bp", 31, Shape::Target),
    i("beq", 26, Shape::Target),
    i("bne", 27, Shape::Target),
    i("bhs", 28, Shape::Target),
    i("blo", 29, Shape::Target),
];

/// Modes of an operand, bits 10:9.
pub(crate) const DIRECT: u16 = 0 << 9;
pub(crate) const INDEX_X: u16 = 1 << 9;
pub(crate) const INDEX_Y: u16 = 2 << 9;
pub(crate) const LITERAL: u16 = 3 << 9;

pub(crate) fn find(name: &str) -> Option<&'static Instruction> {
    INSTRUCTIONS.iter().find(|i| i.name == name)
}
