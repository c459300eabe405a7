//! Running other programs: their output kept, their failures told with what they said.

use crate::places;
use crate::stage::Stage;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Runs to the end and gives stdout; a failure is an error with the command and the end of what it wrote.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting {}", shown(command)))?;
    if !output.status.success() {
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("{} failed ({})\n{}", shown(command), output.status, tail(&said, 20));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a long command: each line that it writes is shown as progress and kept in the log `name`. Killed with all its children when
/// it takes longer than `limit`.
pub fn streaming(command: &mut Command, name: &str, limit: Duration, stage: &Stage) -> Result<()> {
    let text = shown(command);
    let run = Running::start(command, name, stage)?;
    run.finish(limit, |line| stage.progress(line), &text).map(|_| ())
}

/// As [`streaming`], and gives all lines. Lines of JSON are for programs and are not shown.
pub fn streaming_lines(command: &mut Command, name: &str, limit: Duration, stage: &Stage) -> Result<Vec<String>> {
    let text = shown(command);
    let run = Running::start(command, name, stage)?;
    let show = |line: &str| {
        if !line.starts_with('{') {
            stage.progress(line)
        }
    };
    run.finish(limit, show, &text)
}

/// A command under way, its output going to a log and to the reader of [`Running::next`]. Killed when dropped.
pub struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    all: Vec<String>,
    log: PathBuf,
    started: Instant,
}

/// What a command under way did next.
pub enum Next {
    Line(String),
    Ended(std::process::ExitStatus),
    Silent,
}

impl Running {
    /// Starts `command`; its log is `<target>/xtask/<name>.log`.
    pub fn start(command: &mut Command, name: &str, stage: &Stage) -> Result<Running> {
        let folder = places::target()?.join("xtask");
        std::fs::create_dir_all(&folder)?;
        let log = folder.join(format!("{name}.log"));
        let mut file = File::create(&log).with_context(|| format!("writing {}", log.display()))?;
        stage.progress(&shown(command));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", shown(command)))?;
        let (send, lines) = mpsc::channel();
        let streams: [Option<Box<dyn std::io::Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn std::io::Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn std::io::Read + Send>),
        ];
        for stream in streams.into_iter().flatten() {
            let (send, mut file) = (send.clone(), file.try_clone()?);
            std::thread::spawn(move || {
                for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line).trim_end().to_string();
                    writeln!(file, "{line}").ok();
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        file.flush()?;
        Ok(Running { child, lines, all: Vec::new(), log, started: Instant::now() })
    }

    /// The next line, waiting at most `patience`.
    pub fn next(&mut self, patience: Duration) -> Result<Next> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                self.all.push(line.clone());
                Ok(Next::Line(line))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Next::Silent),
            Err(RecvTimeoutError::Disconnected) => Ok(Next::Ended(self.child.wait()?)),
        }
    }

    /// What it wrote last, and where all of it is.
    pub fn said(&self) -> String {
        let from = self.all.len().saturating_sub(40);
        format!("{}\n(all of it: {})", self.all[from..].join("\n"), self.log.display())
    }

    /// Asks it to end as Ctrl-C on a terminal would, which reaches its children too, and waits `patience` before all are killed.
    pub fn interrupt(mut self, patience: Duration) -> Result<Option<std::process::ExitStatus>> {
        let family = descendants(self.child.id());
        output(Command::new("kill").arg("-INT").args(family.iter().map(u32::to_string))).ok();
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            match self.next(deadline.saturating_duration_since(Instant::now()))? {
                Next::Ended(status) => return Ok(Some(status)),
                Next::Line(_) | Next::Silent => {}
            }
        }
        Ok(None)
    }

    fn finish(mut self, limit: Duration, mut on_line: impl FnMut(&str), text: &str) -> Result<Vec<String>> {
        let deadline = self.started + limit;
        loop {
            match self.next(deadline.saturating_duration_since(Instant::now()))? {
                Next::Line(line) => on_line(&line),
                Next::Ended(status) if status.success() => return Ok(std::mem::take(&mut self.all)),
                Next::Ended(status) => bail!("{text} failed ({status})\n{}", self.said()),
                Next::Silent => bail!("{text} took longer than {} s and was ended\n{}", limit.as_secs(), self.said()),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let family = descendants(self.child.id());
            output(Command::new("kill").arg("-KILL").args(family.iter().map(u32::to_string))).ok();
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// The processes below `parent`, itself included.
fn descendants(parent: u32) -> Vec<u32> {
    let mut found = vec![parent];
    let processes =
        std::fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let parents = processes.filter_map(|process| Some((process, parent_of(process)?))).collect::<Vec<_>>();
    let mut at = 0;
    while let Some(&current) = found.get(at) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == current).map(|(process, _)| *process));
        at += 1;
    }
    found
}

fn parent_of(process: u32) -> Option<u32> {
    // "pid (name) state ppid ...": the name may hold anything, so count from its closing bracket.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Feeds `input` to the command and gives its stdout.
pub fn filter(command: &mut Command, input: &[u8]) -> Result<Vec<u8>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().with_context(|| format!("starting {}", shown(command)))?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let output = std::thread::scope(|scope| {
        // A reader that ends early (trailing bytes) closes the pipe: its exit status is what counts.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output()
    })?;
    if !output.status.success() {
        bail!("{} failed ({})", shown(command), output.status);
    }
    Ok(output.stdout)
}

/// The command line, for messages; a word of several lines (a script) is cut short.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let short = |word: &std::ffi::OsStr| match word.to_string_lossy() {
        word if word.contains('\n') => "'...'".to_string(),
        word => word.into_owned(),
    };
    words.map(short).collect::<Vec<_>>().join(" ")
}

/// The last `lines` lines of `text`.
pub fn tail(text: &str, lines: usize) -> String {
    let all = text.lines().collect::<Vec<_>>();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Where `program` is on PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_command_is_ended_with_its_children() {
        let stage = Stage::start("test");
        let started = Instant::now();
        let mut command = Command::new("sh");
        // Other runs of this test on the machine sleep for other times.
        let seconds = 86400 + u64::from(std::process::id());
        command.args(["-c", &format!("echo first; sleep {seconds} & wait")]);
        let error = streaming(&mut command, "test-slow", Duration::from_millis(300), &stage).unwrap_err().to_string();
        stage.done("");
        assert!(error.contains("took longer") && error.contains("first"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(3600));
        // The grandchild is gone too; the kernel may take a moment for it after the signal on a loaded machine.
        let wanted = format!("sleep\0{seconds}\0");
        let left = || {
            let lines = std::fs::read_dir("/proc").unwrap().filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
            lines.filter(|line| line.as_slice() == wanted.as_bytes()).count()
        };
        for _ in 0..1000 {
            if left() == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(left(), 0);
    }

    #[test]
    fn a_failure_tells_what_was_said() {
        let error = output(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("one") && error.contains("two") && error.contains('3'), "{error}");
    }
}
