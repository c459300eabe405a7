//! Progress of long jobs, on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How much the tools say while they work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Talk {
    /// Bars on a terminal, a line per job elsewhere.
    #[default]
    Normal,
    /// Nothing.
    Quiet,
}

impl Talk {
    /// A bar for a job of so many bytes.
    pub fn bytes(self, what: &str, total: u64) -> ProgressBar {
        let style = ProgressStyle::with_template("{msg} [{bar:30}] {bytes} of {total_bytes}");
        self.start(what, ProgressBar::new(total), style.ok())
    }

    /// A moving sign for a job of unknown length.
    pub fn spinner(self, what: &str) -> ProgressBar {
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        self.start(what, ProgressBar::new_spinner(), style.ok())
    }

    fn start(self, what: &str, bar: ProgressBar, style: Option<ProgressStyle>) -> ProgressBar {
        if self == Talk::Quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            return bar;
        }
        if let Some(style) = style {
            bar.set_style(style);
        }
        if bar.is_hidden() {
            eprintln!("{what}");
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}
