//! Reading TOML with every value's place kept.
//!
//! A [`Table`] hands out typed values, records what is missing or of the wrong
//! type, and on [`Table::finish`] reports every key that nobody asked for.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use toml_edit::{Document, Item, TableLike};

use crate::diag::{Diagnostic, Diagnostics, SourceFile, Span, Spanned, nearest};

/// Where the tables of one document put their diagnostics.
pub type Sink = Rc<RefCell<Diagnostics>>;

/// A parsed TOML file.
pub struct Doc {
    file: Arc<SourceFile>,
    document: Document<String>,
    sink: Sink,
}

/// A table of a [`Doc`].
pub struct Table<'a> {
    file: &'a Arc<SourceFile>,
    table: &'a dyn TableLike,
    span: Span,
    /// Dotted name, for messages; empty for the root.
    name: String,
    asked: RefCell<BTreeSet<String>>,
    sink: Sink,
}

/// A value of a table, with its place.
#[derive(Clone)]
pub struct Value<'a> {
    file: &'a Arc<SourceFile>,
    /// The TOML item.
    pub item: &'a Item,
    /// Its place.
    pub span: Span,
    /// Dotted name, for messages.
    pub name: String,
    sink: Sink,
}

impl Doc {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// `GW0101` if the file cannot be read, `GW0102` if it is not TOML.
    pub fn open(path: &Path) -> Result<Doc, Diagnostics> {
        let text =
            std::fs::read_to_string(path).map_err(|e| Diagnostic::error("GW0101", format!("cannot read `{}`: {e}", path.display())))?;
        Doc::parse(path, text)
    }

    /// Parses text that was read from `path`.
    ///
    /// # Errors
    /// `GW0102` if it is not TOML.
    pub fn parse(path: &Path, text: String) -> Result<Doc, Diagnostics> {
        let file = Arc::new(SourceFile { path: path.to_owned(), text: text.clone() });
        match Document::parse(text) {
            Ok(document) => Ok(Doc { file, document, sink: Sink::default() }),
            Err(e) => {
                let range = e.span().unwrap_or(0..0);
                let message = format!("not valid TOML: {}", e.message().lines().collect::<Vec<_>>().join(", "));
                Err(Diagnostic::error("GW0102", message).at(&Span { file, range }).into())
            }
        }
    }

    /// The root table.
    pub fn root(&self) -> Table<'_> {
        Table {
            file: &self.file,
            table: self.document.as_table(),
            span: Span { file: self.file.clone(), range: 0..0 },
            name: String::new(),
            asked: RefCell::default(),
            sink: self.sink.clone(),
        }
    }

    /// The file.
    pub fn file(&self) -> &Arc<SourceFile> {
        &self.file
    }

    /// Ends reading: all diagnostics that the tables recorded.
    pub fn finish(self) -> Diagnostics {
        self.sink.take()
    }

    /// Takes the diagnostics recorded so far and keeps the document.
    pub fn take(&self) -> Diagnostics {
        self.sink.take()
    }

    /// Place of the value at `path`, or of the deepest value on the way to it; `None` where not even the first step is there.
    pub fn span_at(&self, path: &[String]) -> Option<Span> {
        let mut range = None;
        let mut item = self.document.as_item();
        for step in path {
            let next = match step.parse::<usize>() {
                Ok(index) if item.is_array() || item.is_array_of_tables() => item.get(index),
                _ => item.get(step.as_str()),
            };
            let Some(next) = next else { break };
            let key = item.as_table_like().and_then(|t| t.get_key_value(step)).and_then(|(k, _)| k.span());
            range = next.span().or(key).or(range);
            item = next;
        }
        range.map(|range| Span { file: self.file.clone(), range })
    }

    /// Adds a diagnostic to those of the document.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.sink.borrow_mut().push(diagnostic);
    }
}

impl<'a> Table<'a> {
    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Place of the table (of its header, or of the inline table).
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Dotted name; empty for the root.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a diagnostic.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.sink.borrow_mut().push(diagnostic);
    }

    /// How many diagnostics the document has so far.
    pub fn recorded(&self) -> usize {
        self.sink.borrow().0.len()
    }

    fn lacks(&self, key: &str) -> String {
        let whole = if self.name.is_empty() { "the file".to_owned() } else { format!("`{}`", self.name) };
        format!("{whole} lacks the key `{key}`")
    }

    /// A value that may be absent.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.asked.borrow_mut().insert(key.to_owned());
        let (k, item) = self.table.get_key_value(key)?;
        let range = item.span().or_else(|| k.span()).unwrap_or(self.span.range.clone());
        Some(Value { file: self.file, item, span: Span { file: self.file.clone(), range }, name: self.full(key), sink: self.sink.clone() })
    }

    /// A value that must be there; its absence is recorded as `GW0103`.
    pub fn need(&self, key: &str) -> Option<Value<'a>> {
        let value = self.get(key);
        if value.is_none() {
            self.push(Diagnostic::error("GW0103", self.lacks(key)).at(&self.span));
        }
        value
    }

    /// Every key with its value, in file order. All of them count as asked for.
    pub fn entries(&self) -> Vec<(Spanned<String>, Value<'a>)> {
        let keys: Vec<String> = self.table.iter().map(|(k, _)| k.to_owned()).collect();
        keys.iter()
            .filter_map(|key| {
                let value = self.get(key)?;
                let range = self.table.get_key_value(key)?.0.span().unwrap_or(value.span.range.clone());
                Some((Spanned { value: key.clone(), span: Span { file: self.file.clone(), range } }, value))
            })
            .collect()
    }

    /// Reports, as `GW0104`, every key that nobody asked for.
    pub fn finish(&self) {
        let asked = self.asked.borrow();
        for (key, item) in self.table.iter() {
            if asked.contains(key) {
                continue;
            }
            let range =
                self.table.get_key_value(key).and_then(|(k, _)| k.span()).or_else(|| item.span()).unwrap_or(self.span.range.clone());
            let whole = if self.name.is_empty() { "at the top".to_owned() } else { format!("in `{}`", self.name) };
            // A misspelt key is one mistake, not an unknown key and a missing one.
            if let Some(meant) = nearest(key, asked.iter().map(String::as_str)) {
                let missing = self.lacks(meant);
                self.sink.borrow_mut().0.retain(|d| d.code != "GW0103" || d.message != missing);
            }
            self.push(
                Diagnostic::error("GW0104", format!("unknown key `{key}` {whole}"))
                    .at(&Span { file: self.file.clone(), range })
                    .nearest(key, asked.iter().map(String::as_str)),
            );
        }
    }
}

impl<'a> Value<'a> {
    fn wrong<T>(&self, wanted: &str) -> Option<T> {
        let found = with_article(self.item.type_name());
        self.push(Diagnostic::error("GW0105", format!("`{}` is {found}, not {wanted}", self.name)).at(&self.span));
        None
    }

    /// Adds a diagnostic.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.sink.borrow_mut().push(diagnostic);
    }

    /// Wraps a value with this value's place.
    pub fn spanned<T>(&self, value: T) -> Spanned<T> {
        Spanned { value, span: self.span.clone() }
    }

    /// A string; anything else is recorded as `GW0105`.
    pub fn string(&self) -> Option<Spanned<String>> {
        match self.item.as_str() {
            Some(s) => Some(self.spanned(s.to_owned())),
            None => self.wrong("a string"),
        }
    }

    /// A boolean.
    pub fn boolean(&self) -> Option<Spanned<bool>> {
        match self.item.as_bool() {
            Some(b) => Some(self.spanned(b)),
            None => self.wrong("a boolean"),
        }
    }

    /// An integer.
    pub fn integer(&self) -> Option<Spanned<i64>> {
        match self.item.as_integer() {
            Some(i) => Some(self.spanned(i)),
            None => self.wrong("an integer"),
        }
    }

    /// An integer within `range`; outside it is `GW0106`.
    pub fn unsigned(&self, range: std::ops::RangeInclusive<u64>) -> Option<Spanned<u64>> {
        let i = self.integer()?;
        match u64::try_from(i.value) {
            Ok(u) if range.contains(&u) => Some(i.map(|_| u)),
            _ => {
                let message = format!("`{}` is {}, outside {} to {}", self.name, i.value, range.start(), range.end());
                self.push(Diagnostic::error("GW0106", message).at(&self.span));
                None
            }
        }
    }

    /// A number, written as integer or float.
    pub fn number(&self) -> Option<Spanned<f64>> {
        match self.item.as_float().or_else(|| self.item.as_integer().map(|i| i as f64)) {
            Some(f) => Some(self.spanned(f)),
            None => self.wrong("a number"),
        }
    }

    /// A table, inline or not.
    pub fn table(&self) -> Option<Table<'a>> {
        match self.item.as_table_like() {
            Some(table) => Some(Table {
                file: self.file,
                table,
                span: self.span.clone(),
                name: self.name.clone(),
                asked: RefCell::default(),
                sink: self.sink.clone(),
            }),
            None => self.wrong("a table"),
        }
    }

    /// The tables of an array of tables.
    pub fn tables(&self) -> Vec<Table<'a>> {
        let Some(tables) = self.item.as_array_of_tables() else {
            let _: Option<()> = self.wrong("an array of tables");
            return Vec::new();
        };
        let tables = tables.iter().enumerate().map(|(index, table)| Table {
            file: self.file,
            table,
            span: Span { file: self.file.clone(), range: table.span().unwrap_or(self.span.range.clone()) },
            name: format!("{}[{index}]", self.name),
            asked: RefCell::default(),
            sink: self.sink.clone(),
        });
        tables.collect()
    }

    /// The members of a list, `None` where the value is not one.
    pub fn items(&self) -> Option<Vec<Value<'a>>> {
        let item: &'a Item = self.item;
        let length = item.as_array()?.len();
        let members = (0..length).filter_map(|index| {
            let member = item.get(index)?;
            Some(Value {
                file: self.file,
                item: member,
                span: Span { file: self.file.clone(), range: member.span().unwrap_or(self.span.range.clone()) },
                name: format!("{}[{index}]", self.name),
                sink: self.sink.clone(),
            })
        });
        Some(members.collect())
    }

    /// A list; a single value that is not a list counts as a list of one.
    pub fn strings(&self) -> Option<Vec<Spanned<String>>> {
        if let Some(s) = self.item.as_str() {
            return Some(vec![self.spanned(s.to_owned())]);
        }
        let Some(array) = self.item.as_array() else { return self.wrong("a list of strings") };
        let mut list = Vec::new();
        for (index, value) in array.iter().enumerate() {
            let span = Span { file: self.file.clone(), range: value.span().unwrap_or(self.span.range.clone()) };
            match value.as_str() {
                Some(s) => list.push(Spanned { value: s.to_owned(), span }),
                None => {
                    let message = format!("`{}[{index}]` is {}, not a string", self.name, with_article(value.type_name()));
                    self.push(Diagnostic::error("GW0105", message).at(&span));
                }
            }
        }
        Some(list)
    }

    /// The value as JSON, for plugin parameters. Dates become strings.
    pub fn to_json(&self) -> serde_json::Value {
        json_of_item(self.item)
    }
}

fn with_article(word: &str) -> String {
    format!("{} {word}", if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" })
}

fn json_of_item(item: &Item) -> serde_json::Value {
    if let Some(value) = item.as_value() {
        return json_of_value(value);
    }
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(k, v)| (k.to_owned(), json_of_item(v))).collect();
    }
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(|t| t.iter().map(|(k, v)| (k.to_owned(), json_of_item(v))).collect::<serde_json::Value>()).collect();
    }
    serde_json::Value::Null
}

fn json_of_value(value: &toml_edit::Value) -> serde_json::Value {
    use toml_edit::Value as V;
    match value {
        V::String(s) => s.value().clone().into(),
        V::Integer(i) => (*i.value()).into(),
        V::Float(f) => (*f.value()).into(),
        V::Boolean(b) => (*b.value()).into(),
        V::Datetime(d) => d.value().to_string().into(),
        V::Array(a) => a.iter().map(json_of_value).collect(),
        V::InlineTable(t) => t.iter().map(|(k, v)| (k.to_owned(), json_of_value(v))).collect(),
    }
}
