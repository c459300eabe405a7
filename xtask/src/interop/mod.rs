//! `cargo xtask interop`: programs of Linux against the simulated board, or against a second Linux guest in its place.
//!
//! Between the guests and the board is a [`relay`] that records every frame; at the end of each boot the capture is judged too. The
//! second guest (`--against guest`) proves the harness: what fails there is a fault of the harness or of Linux, not of the board.

mod cases;
mod design;
mod judge;
mod registers;
mod relay;

use crate::accept::ping;
use crate::gateweave::{Gateweave, Simulation};
use crate::guest::image::{self, Image, Made};
use crate::guest::machine::{Extra, Guest, Outcome, Settings};
use crate::stage::Stage;
use crate::{places, run};
use anyhow::{Context, Result, bail, ensure};
use cases::{CASES, Case, Kind};
pub use design::{Design, Memory};
use registers::{Place, Registers};
use relay::{Port, Relay};
use roce_peer::model::link::Faults;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Of every design that is tried.
const QUEUE_PAIRS: usize = 4;

/// A simulated second lasts minutes for the guests, whose patience is in seconds.
const SPEED_UP: u32 = 64;

const BOARD: &str = "192.168.7.2";

/// Who is in the board's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Against {
    /// `gateweave sim PROJECT`.
    Design,
    /// A second Linux guest.
    Guest,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// Only this case; may be repeated
    #[arg(long)]
    case: Vec<String>,
    /// Name all cases
    #[arg(long)]
    list: bool,
    #[arg(long, value_enum, default_value = "design")]
    against: Against,
    #[command(flatten)]
    design: Design,
    /// What decides which frames the cases with loss harm
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where captures are kept (default: xtask/interop in cargo's target folder)
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// One line of the result.
struct Row {
    name: String,
    error: Option<String>,
    note: String,
}

impl Row {
    fn of(name: &str, result: Result<String>) -> Row {
        match result {
            Ok(note) => Row { name: name.to_string(), error: None, note },
            Err(error) => Row { name: name.to_string(), error: Some(format!("{error:#}")), note: String::new() },
        }
    }
}

/// What every boot needs.
struct Bench<'a> {
    made: Made,
    files: Vec<Extra>,
    gateweave: Option<Gateweave>,
    arguments: &'a Arguments,
    keep: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        for case in CASES {
            println!("{:<26} MTU {:<5} {:?}", case.name, case.mtu, case.kind);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = arguments.case.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        bail!("there is no case {unknown}; cargo xtask interop --list names all");
    }
    Ok(report(&selected(arguments)?))
}

/// Some cases for the suite, all if none is named, with more options: how many rows passed and failed, and what the failed ones say.
///
/// # Errors
/// If the guest, the host programs or the simulation cannot be made.
pub fn some(cases: &[&str], options: &[&str]) -> Result<(u64, u64, String)> {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }
    let line = ["interop"].into_iter().chain(options.iter().copied()).chain(cases.iter().flat_map(|case| ["--case", *case]));
    let rows = selected(&<Line as clap::Parser>::parse_from(line).arguments)?;
    let faults = rows.iter().filter_map(|row| Some(format!("{}: {}", row.name, row.error.as_ref()?))).collect::<Vec<_>>();
    Ok(((rows.len() - faults.len()) as u64, faults.len() as u64, faults.join("\n")))
}

fn selected(arguments: &Arguments) -> Result<Vec<Row>> {
    let chosen = CASES.iter().filter(|case| arguments.case.is_empty() || arguments.case.iter().any(|name| name == case.name));
    let chosen = chosen.collect::<Vec<_>>();

    let stage = Stage::start("preparing interop");
    let gateweave = match arguments.against {
        Against::Design => {
            let gateweave = Gateweave::build(&stage)?;
            gateweave.build_plugins(&stage)?;
            Some(gateweave)
        }
        Against::Guest => None,
    };
    let udp_check = Extra { path: "/gateweave/udp-check".to_string(), data: ping::udp_check(&stage)? };
    let rdma_test = Extra { path: "/gateweave/rdma-test".to_string(), data: rdma_test(&stage)? };
    let made = image::prepare(Image::Rdma, &stage)?;
    let keep = arguments.keep.clone().map_or_else(|| Ok(places::target()?.join("xtask/interop")), Ok::<_, anyhow::Error>)?;
    std::fs::create_dir_all(&keep).with_context(|| format!("making {}", keep.display()))?;
    stage.done(&made.description);

    let bench = Bench { made, files: vec![udp_check, rdma_test], gateweave, arguments, keep };
    let mut rows = Vec::new();
    // Cases that need nothing of their own share a boot.
    for mtu in [1500, 4200] {
        let together = chosen.iter().copied().filter(|case| case.kind == Kind::Script && case.mtu == mtu).collect::<Vec<_>>();
        if !together.is_empty() {
            rows.extend(bench.boot(&format!("scripts-{mtu}"), &together));
        }
    }
    for case in chosen.iter().filter(|case| case.kind != Kind::Script) {
        rows.extend(bench.boot(case.name, &[case]));
    }
    Ok(rows)
}

fn report(rows: &[Row]) -> ExitCode {
    println!();
    for row in rows {
        println!("{:<6} {:<40} {}", if row.error.is_some() { "FAILED" } else { "ok" }, row.name, row.note);
        for line in row.error.iter().flat_map(|error| error.lines()) {
            println!("         {line}");
        }
    }
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    println!("{} passed, {failed} failed", rows.len() - failed);
    ExitCode::from(u8::from(failed > 0))
}

/// Builds `projects/rdma/host` and gives its bytes.
fn rdma_test(stage: &Stage) -> Result<Vec<u8>> {
    stage.say("building rdma-test");
    let folder = places::root().join("projects/rdma/host");
    let target = places::target()?.join("hosts");
    let mut command = Command::new(places::cargo());
    command.args(["build", "--release", "--quiet", "--manifest-path"]).arg(folder.join("Cargo.toml")).arg("--target-dir").arg(&target);
    run::output(&mut command)?;
    let program = target.join("release/rdma-test");
    std::fs::read(&program).with_context(|| format!("reading {}", program.display()))
}

/// Whoever is in the board's place; ends when dropped.
enum Peer {
    Design { simulation: Box<Simulation>, registers: Place },
    Guest { _guest: Box<Guest> },
}

impl Bench<'_> {
    /// Boots a guest for `cases`, which share its kind, and judges what went over the wire.
    fn boot(&self, name: &str, cases: &[&Case]) -> Vec<Row> {
        let stage = Stage::start(&format!("interop {name}"));
        let capture = self.keep.join(format!("{name}.pcap"));
        let result = self.session(cases, &capture, &stage);
        let mut rows = match result {
            Ok(rows) => rows,
            Err(error) => vec![Row::of(name, Err(error))],
        };
        let kind = cases.first().map(|case| case.kind);
        rows.push(Row::of(&format!("{name}: frames"), judge::frames(&capture, matches!(kind, Some(Kind::Loss(_))))));
        if matches!(kind, Some(Kind::PowerOff { .. })) && self.gateweave.is_some() {
            rows.push(Row::of(&format!("{name}: places of dead peers"), judge::places(&capture, QUEUE_PAIRS)));
        }
        rows.push(Row::of(&format!("{name}: tshark"), judge::tshark(&capture)));
        match rows.iter().filter(|row| row.error.is_some()).count() {
            0 => stage.done(""),
            failed => stage.failed(&format!("{failed} failed")),
        };
        rows
    }

    fn session(&self, cases: &[&Case], capture: &Path, stage: &Stage) -> Result<Vec<Row>> {
        let case = cases.first().context("no case")?;
        let folder = tempfile::Builder::new().prefix("gateweave-wire-").tempdir()?;
        let port = |name: &str| Port { here: folder.path().join(format!("{name}-relay")), there: folder.path().join(name) };
        let (board, first, second) = (port("board"), port("first"), port("second"));
        let faults = match case.kind {
            Kind::Loss(parts) => Faults::all(parts),
            _ => Faults::default(),
        };
        let seed = self.arguments.seed;
        let relay = Relay::start(&[board.clone(), first.clone(), second.clone()], capture, faults, seed)?;
        let (peer, witness) = self.peer(&board, case.mtu, stage)?;
        let guests = Guests { bench: self, mtu: case.mtu, quiet: faults != Faults::default(), witness };
        let rows = match case.kind {
            Kind::Script | Kind::Loss(_) => guests.scripts(&first, cases, stage),
            Kind::Two => guests.two([&first, &second], case, stage),
            Kind::PowerOff { times, after } => guests.power_off(&first, case, times, after, stage),
            Kind::Calls { rounds, size } => match &peer {
                Peer::Design { registers, .. } => guests.calls(&first, case, (rounds, size), registers, stage),
                Peer::Guest { .. } => Ok(vec![Row::of(case.name, Ok("not run: only a board has registers".to_string()))]),
            },
        };
        let rows = match (rows, peer) {
            (Ok(rows), Peer::Design { simulation, .. }) => simulation.stop().map(|()| rows),
            (Err(error), Peer::Design { mut simulation, .. }) => Err(simulation.explain(error)),
            (rows, Peer::Guest { .. }) => rows,
        };
        let counts = relay.stop();
        stage.note(&format!("{} frames, {} harmed (seed {seed}), {} that nobody took", counts.frames, counts.harmed, counts.lost));
        rows
    }

    /// Starts the board or its stand-in on `port`. Only one guest at a time may run on a machine without its knowing of the other.
    fn peer(&self, port: &Port, mtu: u32, stage: &Stage) -> Result<(Peer, bool)> {
        if let Some(gateweave) = &self.gateweave {
            let folder = port.here.parent().context("the socket has no folder")?;
            let project = self.arguments.design.folder(folder, mtu, SPEED_UP)?;
            let out = places::target()?.join("xtask/interop-sim");
            let wire = format!("unix:{},{}", port.there.display(), port.here.display());
            let registers = Place { socket: folder.join("registers"), map: out.join("sim/registers.json") };
            let simulation = Simulation::on_wire(gateweave, &project, &out, &wire, Some(&registers.socket), None, stage)?;
            return Ok((Peer::Design { simulation: Box::new(simulation), registers }, false));
        }
        stage.say("booting the guest that stands in for the board");
        let mut settings = Settings::new(&port.there, &port.here, include_str!("server.sh"));
        settings.mac = "52:54:00:47:57:02".to_string();
        settings.address = format!("{BOARD}/24");
        settings.mtu = mtu;
        settings.files = self.files.clone();
        let mut guest = Guest::boot(&self.made, &settings)?;
        guest.wait_for("@serving", Duration::from_secs(300))?;
        Ok((Peer::Guest { _guest: Box::new(guest) }, true))
    }
}

/// The guests that test.
struct Guests<'a> {
    bench: &'a Bench<'a>,
    mtu: u32,
    /// No checks beside the cases: the wire loses frames, or the guest is switched off.
    quiet: bool,
    /// A guest runs already.
    witness: bool,
}

impl Guests<'_> {
    /// Guest number `number`, from 1, about to run `cases`.
    fn start(&self, port: &Port, number: u32, cases: &[&Case], quiet: bool, beside: bool) -> Result<Guest> {
        let list = cases.iter().map(|case| format!("{}:{}", case.name, case.limit)).collect::<Vec<_>>().join(" ");
        let echo = u8::from(self.bench.gateweave.is_some());
        // The stand-in listens where a board would, and offers its region by itself.
        let design = &self.bench.arguments.design;
        let port_of_test = if self.bench.gateweave.is_some() { design.port } else { 18515 };
        // .2 is the board.
        let host = if number == 1 { 1 } else { number + 1 };
        let address = format!("192.168.7.{host}");
        let values = format!(
            "OWN={address}\nBOARD={BOARD}\nCASES=\"{list}\"\nECHO={echo}\nQUIET={}\nTEST_PORT={port_of_test}\nREGION={}\nSELF={number}\n",
            u8::from(quiet || self.quiet),
            design.region.as_ref().map_or(String::new(), |region| format!("'--region {region}'"))
        );
        let mut settings = Settings::new(&port.there, &port.here, &(values + include_str!("client.sh")));
        settings.mac = format!("52:54:00:47:57:{:02x}", 0x10 + host);
        settings.address = format!("{address}/24");
        settings.mtu = self.mtu;
        settings.files = self.bench.files.clone();
        let scripts = cases.iter().map(|case| Extra { path: format!("/gateweave/case-{}", case.name), data: case.script.into() });
        settings.files.extend(scripts);
        if beside || self.witness { Guest::boot_beside(&self.bench.made, &settings) } else { Guest::boot(&self.bench.made, &settings) }
    }

    fn limit(cases: &[&Case]) -> Duration {
        // A boot takes a minute on a loaded machine.
        Duration::from_secs(300 + cases.iter().map(|case| u64::from(case.limit)).sum::<u64>())
    }

    fn scripts(&self, port: &Port, cases: &[&Case], stage: &Stage) -> Result<Vec<Row>> {
        stage.say(&format!("booting the guest ({})", self.bench.made.description));
        let guest = self.start(port, 1, cases, false, false)?;
        let outcome = guest.wait(Self::limit(cases), |line| stage.say(line))?;
        rows(cases, &outcome, !self.quiet)
    }

    fn two(&self, ports: [&Port; 2], case: &Case, stage: &Stage) -> Result<Vec<Row>> {
        stage.say("booting two guests");
        let first = self.start(ports[0], 1, &[case], false, false)?;
        let second = self.start(ports[1], 2, &[case], true, true)?;
        let limit = Self::limit(&[case]);
        let outcomes = std::thread::scope(|scope| {
            let other = scope.spawn(move || second.wait(limit, |_| {}));
            [first.wait(limit, |line| stage.say(line)), other.join().unwrap_or_else(|_| bail!("the second guest's thread panicked"))]
        });
        let [first, second] = outcomes;
        let mut all = rows(&[case], &first?, true)?;
        all.extend(rows(&[case], &second?, false)?);
        Ok(all)
    }

    fn power_off(&self, port: &Port, case: &Case, times: u32, after: &'static str, stage: &Stage) -> Result<Vec<Row>> {
        for number in 1..=times {
            stage.say(&format!("booting a guest, to be switched off, {number} of {times}"));
            self.start(port, number, &[case], true, false)?.wait_for("@busy", Duration::from_secs(600))?;
        }
        stage.say("booting the guest that connects afterwards");
        let then = Case { script: after, ..*case };
        let outcome = self.start(port, times + 1, &[&then], false, false)?.wait(Self::limit(&[case]), |line| stage.say(line))?;
        rows(&[case], &outcome, true)
    }

    fn calls(&self, port: &Port, case: &Case, (rounds, size): (u32, u32), place: &Place, stage: &Stage) -> Result<Vec<Row>> {
        stage.say("booting the guest that is called");
        let mut guest = self.start(port, 1, &[case], false, false)?;
        guest.wait_for("@busy", Duration::from_secs(300))?;
        let result = called(place, rounds, size, Duration::from_secs(case.limit.into()));
        let outcome = guest.wait(Self::limit(&[case]), |line| stage.say(line));
        // What the board says of itself first: the guest may wait in vain.
        let mut all = vec![Row::of(&format!("{}: the board's own count", case.name), result)];
        match outcome {
            Ok(outcome) => all.extend(rows(&[case], &outcome, true)?),
            Err(error) => all.push(Row::of(case.name, Err(error))),
        }
        Ok(all)
    }
}

/// Starts the board's client of rping and waits until it has done its rounds.
fn called(place: &Place, rounds: u32, size: u32, limit: Duration) -> Result<String> {
    const CLIENT: &str = "services";
    let mut registers = Registers::open(place)?;
    let before = ["client_rounds", "client_wrong", "client_failed"].map(|name| registers.read(CLIENT, name));
    let guest = u32::from(std::net::Ipv4Addr::new(192, 168, 7, 1));
    for (name, value) in [("peer_address", guest), ("peer_port", 7174), ("peer_size", size), ("peer_rounds", rounds)] {
        registers.write(CLIENT, name, value)?;
    }
    let started = Instant::now();
    while registers.read(CLIENT, "client")? != 0 {
        ensure!(started.elapsed() < limit, "the board's client is at it after {} s", limit.as_secs());
        std::thread::sleep(Duration::from_millis(500));
    }
    let [done, wrong, failed] = before;
    let done = registers.read(CLIENT, "client_rounds")?.wrapping_sub(done?);
    let wrong = registers.read(CLIENT, "client_wrong")?.wrapping_sub(wrong?);
    let failed = registers.read(CLIENT, "client_failed")?.wrapping_sub(failed?);
    let reason = registers.read(CLIENT, "client_reason")?;
    ensure!(
        (done, wrong, failed) == (rounds, 0, 0),
        "{done} of {rounds} rounds, {wrong} words wrong, {failed} calls failed (reason {reason})"
    );
    Ok(format!("{done} rounds of {size} bytes, none wrong"))
}

/// A row for each case that the guest told of.
fn rows(cases: &[&Case], outcome: &Outcome, beside: bool) -> Result<Vec<Row>> {
    let value =
        |line: &str, key: &str| line.split_whitespace().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=').map(str::to_string));
    let mut rows = Vec::new();
    let names = cases.iter().map(|case| case.name).chain(beside.then_some("beside"));
    for name in names {
        let line = outcome.lines.iter().find(|line| line.starts_with(&format!("case name={name} ")));
        let line = line.with_context(|| {
            format!("the guest ended (status {}) without a word of {name}\n{}", outcome.status, outcome.lines.join("\n"))
        })?;
        let status = value(line, "status").unwrap_or_default();
        let seconds = value(line, "seconds").unwrap_or_default();
        let what = if name == "beside" { "ping and UDP echo beside it" } else { name };
        let result = if status == "0" {
            let asked = value(line, "asked").map_or(String::new(), |asked| format!(", {asked} times"));
            Ok(format!("{seconds} s{asked}"))
        } else {
            let said =
                outcome.lines.iter().skip_while(|line| **line != format!("# {name}")).skip(1).take_while(|line| line.starts_with("#   "));
            Err(anyhow::anyhow!("status {status}\n{}", said.cloned().collect::<Vec<_>>().join("\n")))
        };
        rows.push(Row::of(what, result));
    }
    ensure!(!rows.is_empty(), "no case ran");
    Ok(rows)
}
