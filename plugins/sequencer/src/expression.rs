//! Expressions of constants: numbers, names, and Rust's operators with Rust's precedence.

use crate::error::Fault;

/// A piece of a line with its column, from 0.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    pub text: &'a str,
    pub column: usize,
}

impl<'a> Span<'a> {
    pub fn trim(self) -> Self {
        let text = self.text.trim_start();
        Self { text: text.trim_end(), column: self.column + self.text.len() - text.len() }
    }

    pub fn skip(self, bytes: usize) -> Self {
        Self { text: &self.text[bytes..], column: self.column + bytes }
    }

    /// Parts between commas, trimmed; none of an empty span.
    pub fn split(self) -> Vec<Span<'a>> {
        if self.trim().text.is_empty() {
            return Vec::new();
        }
        let mut column = self.column;
        let parts = self.text.split(',').map(|text| {
            let part = Span { text, column }.trim();
            column += text.len() + 1;
            part
        });
        parts.collect()
    }
}

/// Looks up a name; `Err` is the fault that names what is near.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str, usize) -> Result<i64, Fault>;

/// The value of a whole span.
pub(crate) fn evaluate(span: Span, lookup: Lookup) -> Result<i64, Fault> {
    let mut parser = Parser { rest: span, lookup };
    let value = parser.binary(0)?;
    parser.space();
    match parser.rest.text.chars().next() {
        None => Ok(value),
        Some(c) => Err(Fault::new(parser.rest.column, format!("`{c}` is not expected here"))),
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '.') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct Parser<'a> {
    rest: Span<'a>,
    lookup: Lookup<'a>,
}

/// Longer ones first; the number binds.
const OPERATORS: [(&str, u8); 16] = [
    ("==", 1),
    ("!=", 1),
    ("<=", 1),
    (">=", 1),
    ("<<", 5),
    (">>", 5),
    ("<", 1),
    (">", 1),
    ("|", 2),
    ("^", 3),
    ("&", 4),
    ("+", 6),
    ("-", 6),
    ("*", 7),
    ("/", 7),
    ("%", 7),
];

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim();
    }

    fn binary(&mut self, least: u8) -> Result<i64, Fault> {
        let mut left = self.unary()?;
        loop {
            self.space();
            let at = self.rest.column;
            let Some(&(operator, binds)) = OPERATORS.iter().find(|(o, _)| self.rest.text.starts_with(o)) else { return Ok(left) };
            if binds < least {
                return Ok(left);
            }
            self.rest = self.rest.skip(operator.len());
            let right = self.binary(binds + 1)?;
            let shift = u32::try_from(right).unwrap_or(64);
            left = match operator {
                "==" => Some(i64::from(left == right)),
                "!=" => Some(i64::from(left != right)),
                "<=" => Some(i64::from(left <= right)),
                ">=" => Some(i64::from(left >= right)),
                "<" => Some(i64::from(left < right)),
                ">" => Some(i64::from(left > right)),
                "<<" => left.checked_shl(shift),
                ">>" => left.checked_shr(shift),
                "|" => Some(left | right),
                "^" => Some(left ^ right),
                "&" => Some(left & right),
                "+" => left.checked_add(right),
                "-" => left.checked_sub(right),
                "*" => left.checked_mul(right),
                "/" => left.checked_div(right),
                _ => left.checked_rem(right),
            }
            .ok_or_else(|| Fault::new(at, format!("`{left} {operator} {right}` has no value")))?;
        }
    }

    fn unary(&mut self) -> Result<i64, Fault> {
        self.space();
        let at = self.rest.column;
        let Some(first) = self.rest.text.chars().next() else { return Err(Fault::new(at, "a value is missing here")) };
        if first == '-' || first == '~' {
            self.rest = self.rest.skip(1);
            let value = self.unary()?;
            return Ok(if first == '-' { value.wrapping_neg() } else { !value });
        }
        if first == '(' {
            self.rest = self.rest.skip(1);
            let value = self.binary(0)?;
            self.space();
            if !self.rest.text.starts_with(')') {
                return Err(Fault::new(self.rest.column, "`)` is missing"));
            }
            self.rest = self.rest.skip(1);
            return Ok(value);
        }
        let end = self.rest.text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(self.rest.text.len());
        let word = &self.rest.text[..end];
        if end == 0 {
            return Err(Fault::new(at, format!("`{first}` is no value")));
        }
        self.rest = self.rest.skip(end);
        if first.is_ascii_digit() {
            number(word).ok_or_else(|| Fault::new(at, format!("`{word}` is no number")))
        } else {
            (self.lookup)(word, at)
        }
    }
}

fn number(word: &str) -> Option<i64> {
    let word = word.replace('_', "");
    match word.get(..2) {
        Some("0x") => i64::from_str_radix(&word[2..], 16).ok(),
        Some("0b") => i64::from_str_radix(&word[2..], 2).ok(),
        _ => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i64, (usize, String)> {
        let lookup = |name: &str, column: usize| if name == "TEN" { Ok(10) } else { Err(Fault::new(column, "unknown")) };
        evaluate(Span { text, column: 0 }, &lookup).map_err(|f| (f.column, f.message))
    }

    #[test]
    fn operators_bind_as_in_rust() {
        assert_eq!(value("1 + 2 * 3"), Ok(7));
        assert_eq!(value("(1 + 2) * 3"), Ok(9));
        assert_eq!(value("0xff & 1 << 4 | 0b11"), Ok(19));
        assert_eq!(value("TEN - 3 - 2"), Ok(5));
        assert_eq!(value("-TEN + ~0"), Ok(-11));
        assert_eq!(value("1_000 >= 1000"), Ok(1));
    }

    #[test]
    fn faults_have_their_column() {
        assert_eq!(value("1 + nine"), Err((4, "unknown".into())));
        assert_eq!(value("1 +"), Err((3, "a value is missing here".into())));
        assert_eq!(value("(1 + 2"), Err((6, "`)` is missing".into())));
        assert_eq!(value("0xfg"), Err((0, "`0xfg` is no number".into())));
        assert_eq!(value("7 / 0"), Err((2, "`7 / 0` has no value".into())));
        assert_eq!(value("1 2"), Err((2, "`2` is not expected here".into())));
    }
}
