//! Diagnostics: what is wrong, where, and what would be right.
//!
//! Every error that a user can cause is a [`Diagnostic`] with a stable code
//! (`GW` and four digits, one page each in `docs/errors/`). A stage collects
//! all of its diagnostics before it stops, so that one run shows them all.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

/// A text file that diagnostics point into.
#[derive(Debug)]
pub struct SourceFile {
    /// Path as the user would write it.
    pub path: PathBuf,
    /// Whole text.
    pub text: String,
}

/// A range of bytes in a file.
#[derive(Clone, Debug)]
pub struct Span {
    /// The file.
    pub file: Arc<SourceFile>,
    /// Bytes from start (inclusive) to end (exclusive).
    pub range: Range<usize>,
}

impl Span {
    /// Line and column of the start, both counted from 1, columns in characters.
    pub fn start(&self) -> (usize, usize) {
        line_column(&self.file.text, self.range.start)
    }

    /// Line and column just past the end.
    pub fn end(&self) -> (usize, usize) {
        line_column(&self.file.text, self.range.end)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

/// Two spans are equal when they name the same bytes of the same path.
impl PartialEq for Span {
    fn eq(&self, other: &Self) -> bool {
        self.range == other.range && self.file.path == other.file.path
    }
}

impl Eq for Span {}

fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

/// A value with the place in the file that it came from.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// The same place with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: f(self.value), span: self.span }
    }
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The project cannot be used as it stands.
    Error,
    /// It can, but this is likely not what was meant.
    Warning,
    /// A remark.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// One message.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Stable code, such as `GW0102`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, one sentence, lower case, no full stop.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// The place.
    pub span: Option<Span>,
    /// Further places, each with what it has to do with the message.
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// An error without a place yet.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, message: message.into(), help: None, span: None, related: Vec::new() }
    }

    /// A warning without a place yet.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, span: &Span) -> Self {
        self.span = Some(span.clone());
        self
    }

    /// Sets what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn also(mut self, span: &Span, label: impl Into<String>) -> Self {
        self.related.push((span.clone(), label.into()));
        self
    }

    /// Sets the help to the nearest of `known`, or to the whole list where none is near.
    #[must_use]
    pub fn nearest<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known: Vec<&str> = known.into_iter().collect();
        known.sort_unstable();
        known.dedup();
        if let Some(best) = nearest(name, known.iter().copied()) {
            return self.help(format!("did you mean `{best}`?"));
        }
        if known.is_empty() {
            return self;
        }
        let list = known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
        self.help(format!("known here: {list}"))
    }

    /// The JSON shape: `code, severity, message, help, file, line, column, end_line, end_column, related`.
    pub fn to_json(&self) -> serde_json::Value {
        let place = |span: &Span| {
            let (line, column) = span.start();
            let (end_line, end_column) = span.end();
            serde_json::json!({ "file": span.path().to_string_lossy(), "line": line, "column": column,
                "end_line": end_line, "end_column": end_column })
        };
        let mut json = serde_json::json!({ "code": self.code, "severity": self.severity, "message": self.message,
            "help": self.help, "file": null, "line": null, "column": null, "end_line": null, "end_column": null });
        if let Some(span) = &self.span {
            for (key, value) in place(span).as_object().into_iter().flatten() {
                json[key] = value.clone();
            }
        }
        json["related"] = self
            .related
            .iter()
            .map(|(span, label)| {
                let mut related = place(span);
                related["message"] = label.clone().into();
                related
            })
            .collect();
        json
    }
}

/// The nearest of `known` to a misspelt `name`, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&name.to_lowercase(), &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= limit && *distance < k.chars().count())
        .min()
        .map(|(_, k)| k)
}

/// The diagnostics of one run.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// Puts them in the order in which a reader meets them: file by file, from the top down, those without a place last.
    /// Files keep the order of their first message; a message that was said already is dropped.
    pub fn sort(&mut self) {
        let mut files: Vec<PathBuf> = Vec::new();
        for span in self.0.iter().filter_map(|d| d.span.as_ref()) {
            if !files.iter().any(|f| f == span.path()) {
                files.push(span.path().to_owned());
            }
        }
        let key = |d: &Diagnostic| match &d.span {
            Some(span) => (files.iter().position(|f| f == span.path()).unwrap_or(usize::MAX), span.range.start),
            None => (usize::MAX, 0),
        };
        self.0.sort_by_key(key);
        let mut said: Vec<Diagnostic> = Vec::new();
        for diagnostic in self.0.drain(..) {
            let same = |d: &Diagnostic| d.code == diagnostic.code && d.message == diagnostic.message && d.span == diagnostic.span;
            if !said.iter().any(same) {
                said.push(diagnostic);
            }
        }
        self.0 = said;
    }

    /// Ends a stage: `value` if no error was found, else all that was.
    ///
    /// # Errors
    /// All diagnostics, warnings included, if at least one is an error.
    pub fn finish<T>(self, value: T) -> Result<(T, Diagnostics), Diagnostics> {
        if self.has_errors() { Err(self) } else { Ok((value, self)) }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics(vec![diagnostic])
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, iter: I) {
        self.0.extend(iter);
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
