//! From texts to plain lines: macros are put in, what `.if` leaves out is gone.

use std::collections::HashMap;
use std::rc::Rc;

use crate::error::{Error, Fault};
use crate::expression::{Span, is_name};

/// Where a line stands.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub file: Rc<str>,
    pub number: usize,
    pub text: Rc<str>,
    pub used_at: Option<(Rc<str>, usize)>,
}

impl Line {
    pub fn error(&self, fault: Fault) -> Error {
        Error {
            file: self.file.to_string(),
            line: self.number,
            column: fault.column + 1,
            message: fault.message,
            help: fault.help,
            text: self.text.to_string(),
            used_at: self.used_at.as_ref().map(|(file, line)| (file.to_string(), *line)),
        }
    }

    /// The line without its comment.
    pub fn code(&self) -> Span<'_> {
        let text = self.text.split(';').next().unwrap_or("");
        Span { text, column: 0 }.trim()
    }
}

/// The first word of a span and the rest.
pub(crate) fn word(span: Span) -> (Span, Span) {
    let end = span.text.find(char::is_whitespace).unwrap_or(span.text.len());
    (Span { text: &span.text[..end], ..span }, span.skip(end).trim())
}

pub(crate) fn lines(file: &str, text: &str) -> Vec<Line> {
    let file: Rc<str> = file.into();
    text.lines().enumerate().map(|(i, text)| Line { file: file.clone(), number: i + 1, text: text.into(), used_at: None }).collect()
}

struct Macro {
    parameters: Vec<String>,
    body: Vec<Line>,
}

/// The macros of a program.
#[derive(Default)]
pub(crate) struct Macros {
    known: HashMap<String, Macro>,
    open: Option<(String, Macro, Line)>,
    uses: usize,
}

/// How deep macros may use macros.
const DEPTH: usize = 16;

impl Macros {
    /// Takes the lines of a definition, `true` if the line was one.
    pub fn define(&mut self, line: &Line) -> Result<bool, Fault> {
        let (first, rest) = word(line.code());
        if first.text == ".endm" {
            let Some((name, body, _)) = self.open.take() else { return Err(Fault::new(first.column, "no macro is open")) };
            self.known.insert(name, body);
            return Ok(true);
        }
        if let Some((_, body, _)) = &mut self.open {
            body.body.push(line.clone());
            return Ok(true);
        }
        if first.text != ".macro" {
            return Ok(false);
        }
        let (name, parameters) = word(rest);
        if !is_name(name.text) || name.text.starts_with('.') {
            return Err(Fault::new(name.column, "a macro needs a name"));
        }
        if self.known.contains_key(name.text) {
            return Err(Fault::new(name.column, format!("macro `{}` exists", name.text)));
        }
        let parameters = parameters.split().iter().map(|p| p.text.to_owned()).collect();
        self.open = Some((name.text.to_owned(), Macro { parameters, body: Vec::new() }, line.clone()));
        Ok(true)
    }

    /// The lines that a use of a macro stands for; `None` if there is no such macro.
    pub fn expand(&mut self, name: Span, arguments: Span, line: &Line, depth: usize) -> Option<Result<Vec<Line>, Fault>> {
        let known = self.known.get(name.text)?;
        let arguments = arguments.split();
        if arguments.len() != known.parameters.len() {
            let message = format!("macro `{}` takes {} arguments, not {}", name.text, known.parameters.len(), arguments.len());
            return Some(Err(Fault::new(name.column, message).help(format!("{} {}", name.text, known.parameters.join(", ")))));
        }
        if depth >= DEPTH {
            return Some(Err(Fault::new(name.column, format!("macros use each other more than {DEPTH} deep"))));
        }
        self.uses += 1;
        let put = |text: &str| {
            // The longest names first, so that `\ab` is not `\a` and a b.
            let mut pairs: Vec<(&String, &Span)> = known.parameters.iter().zip(&arguments).collect();
            pairs.sort_by_key(|(p, _)| std::cmp::Reverse(p.len()));
            let text = pairs.iter().fold(text.to_owned(), |text, (p, a)| text.replace(&format!("\\{p}"), a.text));
            text.replace("\\@", &self.uses.to_string())
        };
        let at = line.used_at.clone().unwrap_or((line.file.clone(), line.number));
        Some(Ok(known.body.iter().map(|l| Line { text: put(&l.text).into(), used_at: Some(at.clone()), ..l.clone() }).collect()))
    }

    pub fn is_macro(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// The definition that has no end.
    pub fn unfinished(&self) -> Option<&Line> {
        self.open.as_ref().map(|(_, _, line)| line)
    }
}
