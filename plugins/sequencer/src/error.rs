//! What is wrong with a program, and where.

use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Path as given to [`crate::Assembler::source`].
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// The line; inside a macro after its arguments have been put in.
    pub text: String,
    /// File and line of the use of the macro that the line is in.
    pub used_at: Option<(String, usize)>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        writeln!(f, "{:5} | {}", self.line, self.text)?;
        // Tabs stay tabs, so that the mark stands below its place.
        let indent: String = self.text.chars().take(self.column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "      | {indent}^")?;
        if let Some((file, line)) = &self.used_at {
            write!(f, "\n      = in the macro used at {file}:{line}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n      = help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// All faults of a program, in the order of the text; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub Vec<Error>);

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// A fault at a column (from 0) of the line at hand.
pub(crate) struct Fault {
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
}

impl Fault {
    pub fn new(column: usize, message: impl Into<String>) -> Self {
        Self { column, message: message.into(), help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the nearest of `names`, if one is near.
    pub fn nearest<'a>(mut self, name: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let near = names.into_iter().map(|n| (distance(name, n), n)).min();
        self.help = near.filter(|&(d, _)| d <= name.len().div_ceil(3)).map(|(_, n)| format!("did you mean `{n}`?"));
        self
    }
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
        assert_eq!(distance("same", "same"), 0);
    }
}
