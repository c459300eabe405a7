//! ARP, ICMP echo and UDP echo of every length from a Linux guest.

use crate::gateweave::{Gateweave, Simulation};
use crate::guest::image::Made;
use crate::guest::machine::{Extra, Guest, Outcome, Settings};
use crate::guest::responder::{Counts, Responder, Station};
use crate::stage::Stage;
use crate::{places, run};
use anyhow::{Context, Result, ensure};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Who answers in `projects/ping`.
pub const STATION: Station = Station { mac: [0x02, 0x47, 0x57, 0x00, 0x00, 0x01], ip: Ipv4Addr::new(192, 168, 7, 2), port: 7 };

/// How much is asked of a peer.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// IP MTU of both sides in bytes.
    pub mtu: u32,
    /// ICMP echoes, a multiple of four, with sizes spread over 0 to `mtu` - 28.
    pub pings: u32,
    /// UDP payload lengths, each sent once.
    pub lengths: (u32, u32),
    pub timeout: Duration,
}

impl Load {
    /// Everything that MTU `mtu` holds: 1000 pings and every UDP length.
    pub fn full(mtu: u32) -> Load {
        Load { mtu, pings: 1000, lengths: (0, mtu - 28), timeout: Duration::from_secs(900) }
    }
}

/// The figures of a run that passed.
#[derive(Clone, Debug)]
pub struct Figures {
    pub pings: u64,
    pub datagrams: u64,
    /// Seconds of the guest's UDP part.
    pub seconds: f64,
    pub boot: Duration,
    pub script: Duration,
}

impl Figures {
    pub fn sentence(&self) -> String {
        let Figures { pings, datagrams, seconds, .. } = self;
        let (boot, script) = (self.boot.as_secs_f64(), self.script.as_secs_f64());
        format!("{pings} pings and {datagrams} UDP echoes, no loss (boot {boot:.1} s, checks {script:.1} s, UDP part {seconds:.2} s)")
    }
}

/// Builds `projects/ping/host` as a static program and gives its bytes.
pub fn udp_check(stage: &Stage) -> Result<Vec<u8>> {
    stage.say("building udp-check");
    let crate_folder = places::root().join("projects/ping/host");
    let target = places::target()?.join("hosts");
    let mut command = Command::new(places::cargo());
    command.args(["build", "--release", "--quiet", "--manifest-path"]).arg(crate_folder.join("Cargo.toml"));
    command.arg("--target-dir").arg(&target);
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C target-feature=+crt-static");
    run::output(&mut command)?;
    let program = target.join("release/udp-check");
    std::fs::read(&program).with_context(|| format!("reading {}", program.display()))
}

/// Boots a guest on the sockets `local` (its own) and `remote` (the peer's) and runs the checks.
pub fn check(made: &Made, program: &[u8], (local, remote): (&Path, &Path), load: Load, stage: &Stage) -> Result<Figures> {
    let largest = load.mtu - 28;
    let values = format!(
        "BOARD={}\nPORT={}\nLARGEST={largest}\nPINGS={}\nLENGTHS={}..={}\n",
        STATION.ip, STATION.port, load.pings, load.lengths.0, load.lengths.1
    );
    let mut settings = Settings::new(local, remote, &(values + include_str!("ping.sh")));
    settings.mtu = load.mtu;
    settings.files.push(Extra { path: "/gateweave/udp-check".to_string(), data: program.to_vec() });
    stage.say(&format!("booting the guest ({})", made.description));
    let outcome = Guest::boot(made, &settings)?.wait(load.timeout, |line| stage.say(line))?;
    judge(&outcome, load)
}

fn judge(outcome: &Outcome, load: Load) -> Result<Figures> {
    let said = outcome.lines.join("\n");
    let number = |word: &str, key: &str| -> Result<f64> {
        let value = outcome.value(word, key).with_context(|| format!("no figure {key} in a line {word}\n{said}"))?;
        value.parse().with_context(|| format!("{word} {key}={value}"))
    };
    let mac = STATION.mac.map(|byte| format!("{byte:02x}")).join(":");
    ensure!(outcome.value("arp", "address") == Some(&mac), "ARP does not give {mac}\n{said}");
    ensure!(outcome.status == 0, "{} part(s) failed in the guest\n{said}", outcome.status);
    let (pings, datagrams) = (number("ping", "received")?, number("udp-check", "received")?);
    ensure!(pings == f64::from(load.pings), "{pings} of {} pings answered\n{said}", load.pings);
    ensure!(datagrams == f64::from(load.lengths.1 - load.lengths.0 + 1), "{datagrams} UDP echoes\n{said}");
    Ok(Figures {
        pings: pings as u64,
        datagrams: datagrams as u64,
        seconds: number("udp-check", "seconds")?,
        boot: outcome.boot,
        script: outcome.script,
    })
}

/// The same checks with [`Responder`] in place of the gateware: whether the guest and this harness work.
pub fn against_responder(made: &Made, program: &[u8], load: Load, stage: &Stage) -> Result<Figures> {
    let folder = tempfile::Builder::new().prefix("gateweave-wire-").tempdir()?;
    let (local, remote) = (folder.path().join("guest"), folder.path().join("peer"));
    let responder = Responder::start(STATION, &remote, &local)?;
    let figures = check(made, program, (&local, &remote), load, stage)?;
    let Counts { arp, icmp, udp, .. } = responder.stop();
    ensure!(arp > 0 && icmp > figures.pings && udp == figures.datagrams, "the responder answered {arp} ARP, {icmp} ICMP, {udp} UDP");
    Ok(figures)
}

/// The same checks against `gateweave sim PROJECT`.
pub fn against_simulation(
    (gateweave, project, out): (&Gateweave, &Path, &Path),
    made: &Made,
    program: &[u8],
    load: Load,
    trace: Option<&Path>,
    stage: &Stage,
) -> Result<Figures> {
    let folder = tempfile::Builder::new().prefix("gateweave-wire-").tempdir()?;
    let (local, remote) = (folder.path().join("guest"), folder.path().join("sim"));
    let mut simulation = Simulation::start(gateweave, project, out, (&remote, &local), trace, stage)?;
    match check(made, program, (&local, &remote), load, stage) {
        Ok(figures) => simulation.stop().map(|()| figures),
        Err(error) => Err(simulation.explain(error)),
    }
}
