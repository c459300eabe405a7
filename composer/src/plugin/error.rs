//! What can go wrong with a plugin.

use crate::diag::{Diagnostic, Severity, Span};

use super::types::{PluginDiagnostic, PluginSeverity};

/// A plugin misbehaved, or could not be loaded: a fault of the plugin, not of the project.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PluginError {
    /// `GW03xx`.
    pub code: &'static str,
    /// What happened, without the name of instance or plugin.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl PluginError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// One diagnostic that names `who` (such as ``instance `net` (plugin `ip-udp`)``).
    pub fn diagnostic(&self, who: &str, span: Option<&Span>) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(self.code, format!("{who}: {}", self.message));
        diagnostic.help = self.help.clone();
        diagnostic.span = span.cloned();
        diagnostic
    }
}

/// Why a call gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The plugin says that its configuration cannot work.
    Refused(Vec<PluginDiagnostic>),
    /// The plugin misbehaved.
    Fault(PluginError),
}

impl From<PluginError> for Failure {
    fn from(error: PluginError) -> Self {
        Failure::Fault(error)
    }
}

impl Failure {
    /// Diagnostics that name `who`; `place` finds the span of a JSON Pointer into the parameters (empty: the instance).
    pub fn diagnostics(&self, who: &str, place: impl Fn(&str) -> Option<Span>) -> Vec<Diagnostic> {
        match self {
            Failure::Refused(list) => list.iter().map(|d| diagnostic(d, who, place(&d.pointer))).collect(),
            Failure::Fault(error) => vec![error.diagnostic(who, place("").as_ref())],
        }
    }
}

/// A plugin's diagnostic, or one of [`params::check`](super::params::check), as the host shows it.
pub fn diagnostic(of: &PluginDiagnostic, who: &str, span: Option<Span>) -> Diagnostic {
    let own = ["GW0311", "GW0312", "GW0313"].into_iter().find(|c| *c == of.code);
    let message = match own {
        Some(_) => format!("{who}: {}", of.message),
        None => format!("{who}: {} [{}]", of.message, of.code),
    };
    Diagnostic {
        code: own.unwrap_or("GW0310"),
        severity: match of.severity {
            PluginSeverity::Error => Severity::Error,
            PluginSeverity::Warning => Severity::Warning,
            PluginSeverity::Note => Severity::Note,
        },
        message,
        help: of.help.clone(),
        span,
        related: Vec::new(),
    }
}
