//! A running guest: QEMU under software emulation, its network card on a pair of unix datagram sockets.
//!
//! One datagram is one Ethernet frame without FCS; short frames are not padded. Two parameters of the kernel command line are not a
//! matter of taste: `clocksource=acpi_pm`, because on a loaded machine the emulated TSC runs up to four times fast, and
//! `no_timer_check`, without which a boot now and then loses its console.

use super::cpio::Archive;
use super::image::Made;
use crate::{places, run};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const QEMU: &str = "qemu-system-x86_64";

/// A file put into the guest, mode 755.
#[derive(Clone, Debug)]
pub struct Extra {
    /// Path in the guest, such as `/gateweave/udp-check`; its folder must exist there.
    pub path: String,
    pub data: Vec<u8>,
}

/// How to start a guest.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The datagram socket that QEMU binds.
    pub local: PathBuf,
    /// The one that it sends to: the simulator's. It may appear later.
    pub remote: PathBuf,
    pub mac: String,
    /// With prefix length: `192.168.7.1/24`.
    pub address: String,
    /// IP MTU in bytes, 68 to 65521.
    pub mtu: u32,
    /// Shell script that the guest runs; what it prints are the result lines.
    pub script: String,
    pub files: Vec<Extra>,
    /// QEMU records the wire here.
    pub pcap: Option<PathBuf>,
}

impl Settings {
    /// The guest that all tests use: 192.168.7.1/24, MTU 1500, no recording.
    pub fn new(local: &Path, remote: &Path, script: &str) -> Self {
        Settings {
            local: local.to_path_buf(),
            remote: remote.to_path_buf(),
            mac: "52:54:00:47:57:01".to_string(),
            address: "192.168.7.1/24".to_string(),
            mtu: 1500,
            script: script.to_string(),
            files: Vec::new(),
            pcap: None,
        }
    }
}

/// How a script in the guest ended.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status of the script.
    pub status: i32,
    /// What it printed.
    pub lines: Vec<String>,
    /// From the start of QEMU to the start of the script.
    pub boot: Duration,
    /// From there to its end.
    pub script: Duration,
}

impl Outcome {
    /// The values of the first line `word key=value key=value ...`.
    pub fn value(&self, word: &str, key: &str) -> Option<&str> {
        let line = self.lines.iter().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))?;
        line.split_whitespace().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }
}

/// A guest that runs a script. Killed when dropped.
pub struct Guest {
    qemu: Child,
    lines: Receiver<String>,
    folder: TempDir,
    socket: PathBuf,
    started: Instant,
    /// One guest at a time on this machine: emulation takes a whole core. Only one beside another has none.
    _turn: Option<File>,
}

impl Guest {
    /// Starts QEMU; returns at once.
    pub fn boot(made: &Made, settings: &Settings) -> Result<Guest> {
        Guest::boot_with(made, settings, Some(turn()?))
    }

    /// As [`Guest::boot`] for a guest beside another of the same program, which holds the turn.
    pub fn boot_beside(made: &Made, settings: &Settings) -> Result<Guest> {
        Guest::boot_with(made, settings, None)
    }

    fn boot_with(made: &Made, settings: &Settings, turn: Option<File>) -> Result<Guest> {
        let folder = tempfile::Builder::new().prefix("gateweave-guest-").tempdir()?;
        let mut command = command(made, settings, folder.path(), false)?;
        let errors = File::create(folder.path().join("qemu.log"))?;
        let mut qemu =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn().with_context(|| format!("starting {QEMU}"))?;
        let stdout = qemu.stdout.take().context("no stdout")?;
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_string();
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Guest { qemu, lines, folder, socket: settings.local.clone(), started: Instant::now(), _turn: turn })
    }

    /// Waits until the script prints `wanted` as a line of its own.
    pub fn wait_for(&mut self, wanted: &str, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        let mut lines = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line == wanted => return Ok(()),
                Ok(line) => lines.push(line),
                Err(_) => bail!("the guest did not say {wanted} within {} s\n{}", timeout.as_secs(), self.said(&lines)),
            }
        }
    }

    /// Waits for the script's end; `on_line` sees every line that it prints as it comes.
    pub fn wait(mut self, timeout: Duration, mut on_line: impl FnMut(&str)) -> Result<Outcome> {
        let deadline = self.started + timeout;
        let (mut lines, mut boot) = (Vec::new(), None);
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with("@up ") => boot = Some(self.started.elapsed()),
                Ok(line) if line.starts_with("@exit ") => {
                    let boot = boot.unwrap_or_default();
                    let status = line["@exit ".len()..].trim().parse().context("the guest's exit status")?;
                    return Ok(Outcome { status, lines, boot, script: self.started.elapsed() - boot });
                }
                Ok(line) => {
                    on_line(&line);
                    lines.push(line);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let state = if boot.is_some() { "the script was still running" } else { "it had not booted" };
                    bail!("the guest took longer than {} s: {state}\n{}", timeout.as_secs(), self.said(&lines));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.qemu.wait()?;
                    bail!("the guest ended by itself ({status})\n{}", self.said(&lines));
                }
            }
        }
    }

    /// The end of everything that the guest and QEMU wrote, for an error.
    fn said(&self, lines: &[String]) -> String {
        let mut text = format!("script:\n{}\n", run::tail(&lines.join("\n"), 15));
        for (name, file) in [("console", "console.log"), ("QEMU", "qemu.log")] {
            let log = std::fs::read(self.folder.path().join(file)).unwrap_or_default();
            text += &format!("{name}:\n{}\n", run::tail(&String::from_utf8_lossy(&log), 15));
        }
        text
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.qemu.kill().ok();
        self.qemu.wait().ok();
        std::fs::remove_file(&self.socket).ok();
    }
}

/// A guest with a shell on this terminal; returns when it ends.
pub fn interactive(made: &Made, settings: &Settings) -> Result<()> {
    let _turn = turn()?;
    let folder = tempfile::Builder::new().prefix("gateweave-guest-").tempdir()?;
    let status = command(made, settings, folder.path(), true)?.status().with_context(|| format!("starting {QEMU}"))?;
    std::fs::remove_file(&settings.local).ok();
    if !status.success() {
        bail!("{QEMU} ended with {status}");
    }
    Ok(())
}

/// Waits for other guests of this user to end.
fn turn() -> Result<File> {
    let folder = places::cache()?.join("guest");
    std::fs::create_dir_all(&folder)?;
    let turn = File::create(folder.join("turn"))?;
    turn.lock().context("waiting for another guest to end")?;
    Ok(turn)
}

fn command(made: &Made, settings: &Settings, folder: &Path, interactive: bool) -> Result<Command> {
    for path in [&settings.local, &settings.remote] {
        // A comma would start the next option of QEMU's; the length is the kernel's (sun_path with its zero).
        let text = path.to_str().filter(|text| text.len() < 108 && !text.contains(','));
        text.with_context(|| format!("{}: a socket path has at most 107 bytes and no comma", path.display()))?;
    }
    // A socket left behind by a killed run would make bind fail.
    std::fs::remove_file(&settings.local).ok();
    let initramfs = folder.join("initramfs.cpio");
    append(&made.initramfs, settings, interactive, &initramfs)?;
    let mut command = Command::new("nice");
    // --pdeathsig: should this program be killed, QEMU does not stay behind.
    command.args(["-n", "5", "setpriv", "--pdeathsig", "KILL", QEMU]);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-accel", "tcg", "-cpu", "max", "-m", "512", "-smp", "1"]);
    command.args(["-display", "none", "-monitor", "none"]);
    if interactive {
        command.args(["-serial", "mon:stdio"]);
    } else {
        command.arg("-serial").arg(format!("file:{}", folder.join("console.log").display()));
        command.args(["-serial", "stdio"]);
    }
    command.arg("-kernel").arg(&made.kernel).arg("-initrd").arg(&initramfs);
    command.args(["-append", "console=ttyS0 quiet panic=-1 no_timer_check clocksource=acpi_pm ipv6.disable=1 mitigations=off"]);
    let wire = format!(
        "dgram,id=n0,local.type=unix,local.path={},remote.type=unix,remote.path={}",
        settings.local.display(),
        settings.remote.display()
    );
    command.args(["-netdev", &wire, "-device"]);
    command.arg(format!("virtio-net-pci,netdev=n0,mac={},romfile=,host_mtu={}", settings.mac, settings.mtu));
    if let Some(pcap) = &settings.pcap {
        command.arg("-object").arg(format!("filter-dump,id=f0,netdev=n0,file={}", pcap.display()));
    }
    Ok(command)
}

/// The initramfs with a second archive behind it (the kernel unpacks both): settings, script, files.
fn append(base: &Path, settings: &Settings, interactive: bool, out: &Path) -> Result<()> {
    std::fs::copy(base, out).with_context(|| format!("copying {}", base.display()))?;
    let file = File::options().append(true).open(out)?;
    let mut archive = Archive::new(BufWriter::new(file));
    archive.directory("gateweave")?;
    let values = format!("MTU={}\nADDRESS={}\nINTERACTIVE={}\n", settings.mtu, settings.address, u8::from(interactive));
    archive.file("gateweave/settings", 0o644, values.as_bytes())?;
    archive.file("gateweave/script", 0o755, settings.script.as_bytes())?;
    for extra in &settings.files {
        archive.file(&extra.path, 0o755, &extra.data)?;
    }
    archive.finish()?.flush()?;
    Ok(())
}
