//! Progress: what is being done now, for how long, and how it ended.
//!
//! On a terminal the running stage is one line with a spinner and its elapsed time; elsewhere (CI logs) every message is a line.
//! All of it goes to stderr, so that stdout stays free for results.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// One running stage. Dropped without [`Stage::done`] it counts as failed and says so.
pub struct Stage {
    name: String,
    start: Instant,
    bar: Option<ProgressBar>,
    ended: bool,
    /// When [`Stage::progress`] last wrote a line.
    shown: Cell<Option<Duration>>,
}

impl Stage {
    pub fn start(name: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(name.to_string());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        if bar.is_none() {
            eprintln!("     ...  {name}");
        }
        Stage { name: name.to_string(), start: Instant::now(), bar, ended: false, shown: Cell::new(None) }
    }

    /// What the stage is busy with.
    pub fn say(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(message.to_string()),
            None => eprintln!("{:6.1} s  {}: {message}", self.start.elapsed().as_secs_f64(), self.name),
        }
    }

    /// As [`Stage::say`] for a flood of lines: where every line stays, only one in five seconds is shown.
    pub fn progress(&self, line: &str) {
        let Some(bar) = &self.bar else {
            let now = self.start.elapsed();
            let quiet = self.shown.get().is_some_and(|last| now.saturating_sub(last) < Duration::from_secs(5));
            if !quiet && !line.trim().is_empty() {
                self.shown.set(Some(now));
                self.say(line.trim());
            }
            return;
        };
        bar.set_message(line.trim().to_string());
    }

    /// A line that stays on the screen.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("          {line}")),
            None => eprintln!("          {line}"),
        }
    }

    pub fn done(mut self, summary: &str) -> Duration {
        self.end("ok", summary);
        self.start.elapsed()
    }

    pub fn failed(mut self, summary: &str) -> Duration {
        self.end("FAILED", summary);
        self.start.elapsed()
    }

    fn end(&mut self, word: &str, summary: &str) {
        self.ended = true;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let colon = if summary.is_empty() { "" } else { ": " };
        eprintln!("{:6.1} s  {word:<6} {}{colon}{summary}", self.start.elapsed().as_secs_f64(), self.name);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.ended {
            self.end("FAILED", "");
        }
    }
}
