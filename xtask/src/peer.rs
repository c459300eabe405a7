//! `cargo xtask peer`: the programs of `projects/rdma/peer` against the simulated board, in lock-step with it. Deterministic: the same
//! seed gives the same frames at the same times.

use crate::gateweave::{Gateweave, Simulation};
use crate::interop::{Design, Memory};
use crate::places;
use crate::stage::Stage;
use anyhow::{Context, Result};
use roce_peer::cm::tcp_service;
use roce_peer::drive::all::{self, Line, PROGRAMS, Settings};
use roce_peer::drive::{Offer, Target};
use roce_peer::drive::{faults, hostile};
use roce_peer::pcap::Writer;
use roce_peer::step::Step;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Arguments {
    /// Only this program; may be repeated
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(PROGRAMS))]
    program: Vec<String>,
    /// Of the programs `faults` and `hostile`, only this case; may be repeated
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(cases()))]
    case: Vec<String>,
    /// Of the program `hostile`, all that there is: every byte and bit
    #[arg(long)]
    all: bool,
    /// Of the program `hostile`, this list of steps in place of random ones, as a failure tells it
    #[arg(long, value_parser = steps)]
    replay: Option<Steps>,
    #[command(flatten)]
    design: Design,
    #[arg(long, default_value = "192.168.7.2")]
    to: Ipv4Addr,
    /// Path MTUs, each run by itself
    #[arg(long, default_values_t = [1024, 4096])]
    pmtu: Vec<u32>,
    /// IP MTU of the variant; without it the least that carries the path MTU: 1500 or 4200
    #[arg(long)]
    mtu: Option<u32>,
    /// Rounds of loss at each rate, hundreds of lists of random hostile packets
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write records for bench.json here, one a line
    #[arg(long)]
    records: Option<PathBuf>,
    /// Record a waveform of the last run
    #[arg(long)]
    trace: Option<PathBuf>,
}

/// Of `faults` and `hostile`.
fn cases() -> Vec<&'static str> {
    faults::names().into_iter().chain(hostile::names()).collect()
}

/// A list of steps of `hostile`.
#[derive(Clone, Debug)]
struct Steps(Vec<hostile::Step>);

fn steps(text: &str) -> Result<Steps, String> {
    hostile::Step::list(text).map(Steps).ok_or_else(|| "KIND.HARM.SEED,... is wanted".to_owned())
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stage = Stage::start("preparing peer");
    let gateweave = Gateweave::build(&stage)?;
    gateweave.build_plugins(&stage)?;
    stage.done("");
    let replay = arguments.replay.iter().map(|_| "random".to_string());
    let cases = arguments.case.iter().cloned().chain(replay).collect::<Vec<_>>();
    let programs = match (&arguments.program[..], &cases[..]) {
        ([], []) => PROGRAMS.iter().map(|name| (*name).to_string()).collect(),
        ([], cases) => {
            let of = |names: &[&str]| cases.iter().any(|case| names.contains(&case.as_str()));
            let programs = [("faults", of(&faults::names())), ("hostile", of(&hostile::names()))];
            programs.iter().filter(|program| program.1).map(|program| program.0.to_string()).collect()
        }
        (programs, _) => programs.to_vec(),
    };
    let (mut failed, mut records) = (0, Vec::new());
    for &pmtu in &arguments.pmtu {
        for program in &programs {
            let stage = Stage::start(&format!("peer {program}, PMTU {pmtu}"));
            let run = Run { design: &arguments.design, mtu: arguments.mtu, trace: arguments.trace.as_deref() };
            let mut settings = Settings {
                seed: arguments.seed,
                rounds: arguments.rounds,
                cases: cases.clone(),
                all: arguments.all,
                replay: arguments.replay.clone().map(|steps| steps.0),
                ..settings(&arguments.design, pmtu)
            };
            settings.target.ip = arguments.to;
            let mut wrong = 0;
            let result = one(&gateweave, &run, &settings, program, &stage, |line| {
                wrong += usize::from(line.failed);
                println!("{:<8} {}{}", line.program, if line.failed { "FAILED " } else { "" }, line.text);
                records.extend(line.record);
            });
            match result.map(|()| wrong) {
                Ok(0) => stage.done(""),
                Ok(wrong) => {
                    failed += wrong;
                    stage.failed(&format!("{wrong} wrong"))
                }
                Err(error) => {
                    failed += 1;
                    println!("{program:<8} FAILED {error:#}");
                    stage.failed("")
                }
            };
        }
    }
    if let Some(file) = &arguments.records {
        std::fs::write(file, records.join("\n") + "\n").with_context(|| format!("writing {}", file.display()))?;
    }
    println!("{failed} failed");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// One program on the variant with `memory`, one round at path MTU `pmtu`, for the suite: how many of its lines are right, and those that are wrong.
///
/// # Errors
/// If the simulation cannot be made; what the program cannot go on after.
pub fn short(gateweave: &Gateweave, program: &str, memory: Memory, pmtu: u32, stage: &Stage) -> Result<(u64, Vec<String>)> {
    #[derive(clap::Parser)]
    struct Default {
        #[command(flatten)]
        design: Design,
    }
    let design = <Default as clap::Parser>::parse_from(["peer", "--memory", memory.name()]).design;
    let run = Run { design: &design, mtu: None, trace: None };
    let (mut right, mut wrong) = (0, Vec::new());
    let settings = Settings { rounds: 1, ..settings(&design, pmtu) };
    one(gateweave, &run, &settings, program, stage, |line| if line.failed { wrong.push(line.text) } else { right += 1 })?;
    Ok((right, wrong))
}

/// As for a design whose address is the usual one; seed 1, three rounds.
pub fn settings(design: &Design, pmtu: u32) -> Settings {
    Settings {
        target: Target {
            ip: Ipv4Addr::new(192, 168, 7, 2),
            service: tcp_service(design.port),
            region: design.region.as_deref().and_then(Offer::parse),
        },
        ip: Ipv4Addr::new(192, 168, 7, 1),
        pmtu,
        gbps: f64::from(design.gbps),
        seed: 1,
        rounds: 3,
        depth: 4,
        queue_pairs: 4,
        cases: Vec::new(),
        all: false,
        replay: None,
        width: design.width,
        mhz: design.clock,
        memory: design.memory.name().to_owned(),
    }
}

/// What a program runs against.
pub struct Run<'a> {
    pub design: &'a Design,
    /// IP MTU of the variant.
    pub mtu: Option<u32>,
    pub trace: Option<&'a Path>,
}

/// One program on a simulation of its own; `say` gets its lines.
pub fn one(gateweave: &Gateweave, run: &Run, settings: &Settings, program: &str, stage: &Stage, say: impl FnMut(Line)) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("gateweave-wire-").tempdir()?;
    let socket = folder.path().join("step");
    let (out, keep) = (places::target()?.join("xtask/peer-sim"), places::target()?.join("xtask/peer"));
    std::fs::create_dir_all(&keep)?;
    let pmtu = settings.pmtu;
    let project = run.design.folder(folder.path(), run.mtu.unwrap_or(if pmtu > 1024 { 4200 } else { 1500 }), 1)?;
    let wire = format!("step:{}", socket.display());
    let mut simulation = Simulation::on_wire(gateweave, &project, &out, &wire, None, run.trace, stage)?;
    let mut station = all::station(Step::connect(&socket).with_context(|| format!("connecting to {}", socket.display()))?, settings);
    let result = all::run(&mut station, program, settings, say);
    let capture = keep.join(format!("{program}-{pmtu}.pcap"));
    let mut writer = Writer::new(std::io::BufWriter::new(std::fs::File::create(&capture)?))?;
    station.records.iter().try_for_each(|record| writer.record(record.time_ns, &record.frame))?;
    stage.note(&format!("capture: {}", capture.display()));
    match result {
        Ok(()) => {
            // Closing the socket ends the run.
            drop(station);
            simulation.ended()
        }
        Err(error) => Err(simulation.explain(error.into())),
    }
}
