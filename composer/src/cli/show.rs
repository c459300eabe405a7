//! Showing diagnostics: for people on stderr, as JSON on stdout.

use std::fmt;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

use crate::diag::{Diagnostic, Diagnostics, Severity, Span};

/// Adapter to miette's renderer.
#[derive(Debug)]
struct Shown<'a> {
    message: String,
    code: Option<&'a str>,
    help: Option<&'a str>,
    severity: Severity,
    source: Option<NamedSource<String>>,
    labels: Vec<(String, std::ops::Range<usize>)>,
    related: Vec<Shown<'a>>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.code.map(|c| Box::new(c) as Box<dyn fmt::Display>)
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Note => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.labels.is_empty() {
            return None;
        }
        let labels = self.labels.iter().map(|(text, range)| {
            let text = (!text.is_empty()).then(|| text.clone());
            LabeledSpan::new(text, range.start, range.len().max(1))
        });
        Some(Box::new(labels))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if self.related.is_empty() {
            return None;
        }
        Some(Box::new(self.related.iter().map(|r| r as &dyn miette::Diagnostic)))
    }
}

fn source(span: &Span) -> NamedSource<String> {
    NamedSource::new(span.path().to_string_lossy(), span.file.text.clone()).with_language("TOML")
}

fn shown(diagnostic: &Diagnostic) -> Shown<'_> {
    let mut labels = Vec::new();
    let mut related = Vec::new();
    let file = diagnostic.span.as_ref().map(|s| s.path().to_owned());
    if let Some(span) = &diagnostic.span {
        labels.push((if diagnostic.related.is_empty() { String::new() } else { "here".to_owned() }, span.range.clone()));
    }
    for (span, text) in &diagnostic.related {
        if Some(span.path()) == file.as_deref() {
            labels.push((text.clone(), span.range.clone()));
        } else {
            related.push(Shown {
                message: text.clone(),
                code: None,
                help: None,
                severity: Severity::Note,
                source: Some(source(span)),
                labels: vec![(String::new(), span.range.clone())],
                related: Vec::new(),
            });
        }
    }
    Shown {
        message: diagnostic.message.clone(),
        code: Some(diagnostic.code),
        help: diagnostic.help.as_deref(),
        severity: diagnostic.severity,
        source: diagnostic.span.as_ref().map(source),
        labels,
        related,
    }
}

/// Text for a terminal.
pub fn human(diagnostics: &Diagnostics, color: bool) -> String {
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(120);
    let mut text = String::new();
    for diagnostic in &diagnostics.0 {
        // A formatter into a String does not fail.
        let _ = handler.render_report(&mut text, &shown(diagnostic));
    }
    text
}

/// The JSON list of all diagnostics.
pub fn json(diagnostics: &Diagnostics) -> serde_json::Value {
    diagnostics.0.iter().map(Diagnostic::to_json).collect()
}
