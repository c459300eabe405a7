//! The two passes: places for labels and data, then the words.

use std::collections::HashMap;

use crate::error::{Error, Errors, Fault};
use crate::expression::{Span, evaluate, is_name};
use crate::instruction::{self, DIRECT, INDEX_X, INDEX_Y, INSTRUCTIONS, LITERAL, Shape};
use crate::source::{Line, Macros, lines, word};
use crate::{CODE_WORDS, NEAR_WORDS, Program};

const DIRECTIVES: [&str; 12] =
    [".equ", ".var", ".word", ".far", ".record", ".field", ".macro", ".endm", ".if", ".else", ".endif", ".error"];

pub(crate) fn run(constants: &[(String, i64)], sources: &[(String, String)]) -> Result<Program, Errors> {
    let mut pass = Pass::default();
    for (name, value) in constants {
        pass.symbols.insert(name.clone(), *value);
        pass.order.push(name.clone());
    }
    for (path, text) in sources {
        pass.feed(lines(path, text), 0);
    }
    if let Some(line) = pass.macros.unfinished() {
        pass.errors.push(line.error(Fault::new(line.code().column, "this macro has no `.endm`")));
    }
    if let Some((line, _)) = pass.conditions.last() {
        pass.errors.push(line.error(Fault::new(line.code().column, "this `.if` has no `.endif`")));
    }
    pass.finish()
}

/// What one branch of an `.if` does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    Taken,
    Skipped,
    /// Inside of something that is left out.
    Outer,
}

/// An instruction whose operand is still text.
struct Pending {
    line: Line,
    opcode: u16,
    shape: Shape,
    /// Byte range of the operand in the line.
    operand: (usize, usize),
    /// Argument of a rotation.
    turn: u16,
    scope: String,
}

#[derive(Default)]
struct Pass {
    macros: Macros,
    conditions: Vec<(Line, Branch)>,
    symbols: HashMap<String, i64>,
    order: Vec<String>,
    /// Label that `.local` labels belong to.
    scope: String,
    code: Vec<Pending>,
    near: Vec<u32>,
    far: usize,
    field: i64,
    errors: Vec<Error>,
}

impl Pass {
    fn feed(&mut self, lines: Vec<Line>, depth: usize) {
        for line in lines {
            if let Err(fault) = self.line(&line, depth) {
                self.errors.push(line.error(fault));
            }
        }
    }

    fn line(&mut self, line: &Line, depth: usize) -> Result<(), Fault> {
        let code = line.code();
        let (first, rest) = word(code);
        if self.condition(first, rest, line)? || self.conditions.iter().any(|(_, b)| *b != Branch::Taken) || self.macros.define(line)? {
            return Ok(());
        }
        let (first, rest) = match code.text.split_once(':') {
            Some((label, _)) if is_name(label) => {
                if !label.starts_with('.') {
                    self.scope = label.to_owned();
                }
                let address = self.code.len() as i64;
                self.symbol(Span { text: label, ..code }, address)?;
                word(code.skip(label.len() + 1).trim())
            }
            _ => (first, rest),
        };
        if first.text.is_empty() {
            return Ok(());
        }
        if first.text.starts_with('.') {
            return self.directive(first, rest);
        }
        if let Some(instruction) = instruction::find(first.text) {
            let times = if instruction.shape == Shape::Turn { turns(self.value(rest)?, rest.column)? } else { vec![0] };
            for turn in times {
                self.code.push(Pending {
                    line: line.clone(),
                    opcode: instruction.opcode,
                    shape: instruction.shape,
                    operand: (rest.column, rest.column + rest.text.len()),
                    turn,
                    scope: self.scope.clone(),
                });
            }
            return Ok(());
        }
        match self.macros.expand(first, rest, line, depth) {
            Some(lines) => {
                self.feed(lines?, depth + 1);
                Ok(())
            }
            None => {
                let names = INSTRUCTIONS.iter().map(|i| i.name).chain(self.macros.names());
                Err(Fault::new(first.column, format!("unknown instruction `{}`", first.text)).nearest(first.text, names))
            }
        }
    }

    /// `.if`, `.else`, `.endif`; `true` if the line was one.
    fn condition(&mut self, first: Span, rest: Span, line: &Line) -> Result<bool, Fault> {
        match first.text {
            ".if" => {
                let outer = self.conditions.iter().any(|(_, b)| *b != Branch::Taken);
                // Left open even where it is wrong, so that its `.endif` is no second fault.
                self.conditions.push((line.clone(), Branch::Outer));
                if !outer {
                    let branch = if self.value(rest)? != 0 { Branch::Taken } else { Branch::Skipped };
                    self.conditions.last_mut().expect("just pushed").1 = branch;
                }
            }
            ".else" => match self.conditions.last_mut() {
                Some((_, branch)) => {
                    *branch = match branch {
                        Branch::Taken => Branch::Skipped,
                        Branch::Skipped => Branch::Taken,
                        Branch::Outer => Branch::Outer,
                    }
                }
                None => return Err(Fault::new(first.column, "`.else` without `.if`")),
            },
            ".endif" => {
                if self.conditions.pop().is_none() {
                    return Err(Fault::new(first.column, "`.endif` without `.if`"));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn directive(&mut self, first: Span, rest: Span) -> Result<(), Fault> {
        let parts = rest.split();
        let name = parts.first().copied().unwrap_or(rest);
        let words = |pass: &Self| match parts.as_slice() {
            [_] => Ok(1),
            [_, words] => match pass.value(*words)? {
                n @ 0..=65536 => Ok(n),
                n => Err(Fault::new(words.column, format!("{n} words are not possible"))),
            },
            _ => Err(Fault::new(rest.column, format!("`{} NAME` or `{} NAME, WORDS`", first.text, first.text))),
        };
        match first.text {
            ".equ" => match parts.as_slice() {
                [_, value] => {
                    let value = self.value(*value)?;
                    self.symbol(name, value)
                }
                _ => Err(Fault::new(rest.column, "`.equ NAME, VALUE`")),
            },
            ".var" => {
                let words = words(self)?;
                self.symbol(name, self.near.len() as i64)?;
                self.near.resize(self.near.len() + words as usize, 0);
                if self.near.len() > NEAR_WORDS {
                    return Err(Fault::new(name.column, format!("more than {NEAR_WORDS} words of data"))
                        .help("use `.far` for what is reached through x and y only"));
                }
                Ok(())
            }
            ".word" => {
                if parts.len() < 2 {
                    return Err(Fault::new(rest.column, "`.word NAME, VALUE, ...`"));
                }
                let values: Result<Vec<u32>, Fault> = parts[1..].iter().map(|&p| fit(self.value(p)?, p.column)).collect();
                self.symbol(name, self.near.len() as i64)?;
                self.near.extend(values?);
                Ok(())
            }
            ".far" => {
                let words = words(self)?;
                self.symbol(name, (NEAR_WORDS + self.far) as i64)?;
                self.far += words as usize;
                Ok(())
            }
            ".record" => {
                self.field = if rest.text.is_empty() { 0 } else { self.value(rest)? };
                Ok(())
            }
            ".field" => {
                let words = words(self)?;
                self.symbol(name, self.field)?;
                self.field += words;
                Ok(())
            }
            ".error" => Err(Fault::new(first.column, rest.text)),
            other => Err(Fault::new(first.column, format!("unknown directive `{other}`")).nearest(other, DIRECTIVES)),
        }
    }

    fn symbol(&mut self, name: Span, value: i64) -> Result<(), Fault> {
        if !is_name(name.text) {
            return Err(Fault::new(name.column, format!("`{}` is no name", name.text)));
        }
        if matches!(name.text, "x" | "y") || instruction::find(name.text).is_some() || self.macros.is_macro(name.text) {
            return Err(Fault::new(name.column, format!("`{}` means something else", name.text)));
        }
        let full = qualified(name.text, &self.scope);
        if self.symbols.insert(full.clone(), value).is_some() {
            return Err(Fault::new(name.column, format!("`{}` exists already", name.text)));
        }
        self.order.push(full);
        Ok(())
    }

    /// A value that must be known at this place of the text.
    fn value(&self, span: Span) -> Result<i64, Fault> {
        self.value_in(span, &self.scope)
    }

    fn value_in(&self, span: Span, scope: &str) -> Result<i64, Fault> {
        let lookup = |name: &str, column: usize| {
            self.symbols.get(&qualified(name, scope)).copied().ok_or_else(|| {
                let prefix = if name.starts_with('.') { scope } else { "" };
                let names =
                    self.symbols.keys().filter_map(|k| k.strip_prefix(prefix)).filter(|k| k.starts_with('.') == name.starts_with('.'));
                Fault::new(column, format!("unknown name `{name}`")).nearest(name, names)
            })
        };
        evaluate(span, &lookup)
    }

    fn finish(mut self) -> Result<Program, Errors> {
        let mut literals = Literals::default();
        let mut words = Vec::new();
        let mut listing = Vec::new();
        for (address, pending) in std::mem::take(&mut self.code).iter().enumerate() {
            let (from, to) = pending.operand;
            let operand = Span { text: &pending.line.text[from..to], column: from };
            let encoded = if address < CODE_WORDS {
                self.encode(pending, operand, &mut literals)
            } else if address == CODE_WORDS {
                Err(Fault::new(operand.column, format!("the program has more than {CODE_WORDS} instructions")))
            } else {
                break;
            };
            match encoded {
                Ok(argument) => words.push(pending.opcode << 11 | argument),
                Err(fault) => self.errors.push(pending.line.error(fault)),
            }
            listing.push((address, pending.line.text.to_string()));
        }
        if self.near.len() + literals.values.len() > NEAR_WORDS {
            let message = format!("{} words of data and {} of literals are more than {NEAR_WORDS}", self.near.len(), literals.values.len());
            self.errors.push(Error { file: String::new(), line: 0, column: 1, message, help: None, text: String::new(), used_at: None });
        }
        if !self.errors.is_empty() {
            return Err(Errors(self.errors));
        }
        let mut data = self.near;
        data.resize(NEAR_WORDS, 0);
        for (i, value) in literals.values.iter().enumerate() {
            data[NEAR_WORDS - 1 - i] = *value;
        }
        let symbols = self.order.into_iter().map(|name| (self.symbols[&name], name)).map(|(v, n)| (n, v)).collect();
        Ok(Program { code: words, data, data_words: NEAR_WORDS + self.far, symbols, listing })
    }

    /// Bits 10:0.
    fn encode(&self, pending: &Pending, operand: Span, literals: &mut Literals) -> Result<u16, Fault> {
        let value = |span: Span| self.value_in(span, &pending.scope);
        let within = |span: Span, limit: usize, what: &str| {
            let v = value(span)?;
            usize::try_from(v)
                .ok()
                .filter(|v| *v < limit)
                .map(|v| v as u16)
                .ok_or_else(|| Fault::new(span.column, format!("{v} is no {what}: 0 to {}", limit - 1)))
        };
        if operand.text.is_empty() != (pending.shape == Shape::None) {
            let message = if operand.text.is_empty() { "an operand is missing" } else { "no operand is expected here" };
            return Err(Fault::new(operand.column, message));
        }
        match pending.shape {
            Shape::None => Ok(0),
            Shape::Target => within(operand, CODE_WORDS, "program address"),
            Shape::Port => within(operand, 32, "port"),
            Shape::Turn => Ok(pending.turn),
            Shape::Operand | Shape::Place | Shape::Address => {
                if operand.text.starts_with('#') {
                    if pending.shape != Shape::Operand {
                        return Err(Fault::new(operand.column, "a number is no place"));
                    }
                    let number = fit(value(operand.skip(1))?, operand.column)?;
                    return Ok(if (number as usize) < NEAR_WORDS { LITERAL | number as u16 } else { DIRECT | literals.place(number) });
                }
                if let Some((mode, offset)) = indexed(operand) {
                    let offset = if offset.text.is_empty() { 0 } else { value(offset)? };
                    if !(-256..256).contains(&offset) {
                        return Err(Fault::new(operand.column, format!("offset {offset} is not within -256 to 255")));
                    }
                    return Ok(mode | (offset & 0x1ff) as u16);
                }
                let address = within(operand, NEAR_WORDS, "direct address");
                address
                    .map(|a| DIRECT | a)
                    .map_err(|f| if f.message.contains("direct") { f.help("load x or y with `#` and use an offset") } else { f })
            }
        }
    }
}

/// `x`, `x+N`, `x-N`: mode, and `+N` or `-N` without a leading plus.
fn indexed(operand: Span) -> Option<(u16, Span)> {
    let mode = match operand.text.as_bytes()[0] {
        b'x' => INDEX_X,
        b'y' => INDEX_Y,
        _ => return None,
    };
    let rest = operand.skip(1).trim();
    match rest.text.chars().next() {
        None | Some('-') => Some((mode, rest)),
        Some('+') => Some((mode, rest.skip(1))),
        _ => None,
    }
}

fn qualified(name: &str, scope: &str) -> String {
    if name.starts_with('.') { format!("{scope}{name}") } else { name.to_owned() }
}

/// Rotations by 8 (2) and by 1 (1) that make up a rotation to the right.
fn turns(by: i64, column: usize) -> Result<Vec<u16>, Fault> {
    if !(1..32).contains(&by) {
        return Err(Fault::new(column, format!("cannot rotate by {by}")).help("1 to 31; the processor knows 1 and 8"));
    }
    Ok((0..by / 8).map(|_| 2).chain((0..by % 8).map(|_| 1)).collect())
}

/// A word, given with or without sign.
fn fit(value: i64, column: usize) -> Result<u32, Fault> {
    if (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(Fault::new(column, format!("{value} has more than 32 bits")))
    }
}

/// Numbers that do not fit into an instruction: at the end of the near data, downwards.
#[derive(Default)]
struct Literals {
    values: Vec<u32>,
}

impl Literals {
    fn place(&mut self, value: u32) -> u16 {
        let i = self.values.iter().position(|v| *v == value).unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        (NEAR_WORDS - 1).saturating_sub(i) as u16
    }
}
