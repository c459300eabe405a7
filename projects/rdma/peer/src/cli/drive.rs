//! `roce-peer drive`.

use roce_peer::cm::tcp_service;
use roce_peer::drive::all::{self, PROGRAMS, Settings};
use roce_peer::drive::{Offer, Target};
use roce_peer::drive::{faults, hostile};
use roce_peer::pcap::Writer;
use roce_peer::step::Step;
use std::net::Ipv4Addr;
use std::path::Path;

pub const USAGE: &str = "usage: roce-peer drive SOCKET [PROGRAM ...] [options]

  SOCKET is that of gateweave sim PROJECT --wire step:SOCKET. Programs: speed latency cm loss drops hostile faults
  requester requester-speed requester-loss requester-drops (default: all)

  --to ADDRESS    the board's address (192.168.7.2)
  --from ADDRESS  ours (192.168.7.1)
  --port PORT     the service whose REP offers a region (18515)
  --region A:K:L  address, key and length of the region, instead of what the REP offers
  --pmtu BYTES    path MTU to ask for (1024)
  --depth N       READs and atomics to ask for (4)
  --gbps N        rate of the link (1)
  --rounds N      rounds of loss at each rate, hundreds of lists of random hostile packets (3)
  --seed N        (1)
  --case NAME     of faults or hostile, only this; may be repeated
  --all           of hostile, all that there is
  --replay LIST   of hostile, this list of steps, as a failure tells it
  --pcap FILE     keep the frames of the last program
  --model         a model in place of a simulation, which is no requester; SOCKET is left out";

/// Whether the board passes.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let mut settings = Settings {
        target: Target { ip: Ipv4Addr::new(192, 168, 7, 2), service: tcp_service(18515), region: None },
        ip: Ipv4Addr::new(192, 168, 7, 1),
        pmtu: 1024,
        gbps: 1.0,
        seed: 1,
        rounds: 3,
        depth: 4,
        queue_pairs: 4,
        cases: Vec::new(),
        all: false,
        replay: None,
        width: 0,
        mhz: 0.0,
        memory: String::new(),
    };
    let (mut places, mut pcap, mut model) = (Vec::new(), None, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--to" => settings.target.ip = number(word, value()?)?,
            "--from" => settings.ip = number(word, value()?)?,
            "--port" => settings.target.service = tcp_service(number(word, value()?)?),
            "--region" => settings.target.region = Some(Offer::parse(value()?).ok_or("--region wants ADDRESS:RKEY:LENGTH")?),
            "--pmtu" => settings.pmtu = number(word, value()?)?,
            "--depth" => settings.depth = number(word, value()?)?,
            "--gbps" => settings.gbps = number(word, value()?)?,
            "--rounds" => settings.rounds = number(word, value()?)?,
            "--seed" => settings.seed = number(word, value()?)?,
            "--case" => settings.cases.push(value()?.clone()),
            "--all" => settings.all = true,
            "--replay" => {
                settings.replay = Some(hostile::Step::list(value()?).ok_or("--replay wants KIND.HARM.SEED,...")?);
                settings.cases.push("random".to_owned());
            }
            "--pcap" => pcap = Some(value()?.clone()),
            "--model" => model = true,
            option if option.starts_with("--") => return Err(format!("unknown option {option}\n{USAGE}")),
            place => places.push(place),
        }
    }
    let (socket, programs) = match (model, places.split_first()) {
        (true, _) => (None, places.clone()),
        (false, Some((socket, programs))) => (Some(*socket), programs.to_vec()),
        (false, None) => return Err(format!("no socket\n{USAGE}")),
    };
    let all = PROGRAMS.iter().copied().filter(|program| !model || !program.starts_with("requester"));
    let programs = if programs.is_empty() { all.collect() } else { programs };
    if model && settings.cases.is_empty() {
        settings.cases = faults::of_a_region();
        settings.cases.extend(hostile::of_a_region().into_iter().map(str::to_owned));
    }
    match socket {
        Some(socket) => {
            let wire = Step::connect(Path::new(socket)).map_err(|error| format!("{socket}: {error}"))?;
            drive(wire, &programs, &settings, pcap.as_deref())
        }
        None => drive(roce_peer::drive::model_board(settings.target, 1 << 17, 4), &programs, &settings, pcap.as_deref()),
    }
}

fn drive<W: roce_peer::live::Wire>(wire: W, programs: &[&str], settings: &Settings, pcap: Option<&str>) -> Result<bool, String> {
    let mut station = all::station(wire, settings);
    let mut right = true;
    for program in programs {
        let result = all::run(&mut station, program, settings, |line| {
            right &= !line.failed;
            println!("{:<8} {}{}", line.program, if line.failed { "FAILED " } else { "" }, line.text);
        });
        if let Some(file) = pcap {
            let write = || -> std::io::Result<()> {
                let mut writer = Writer::new(std::io::BufWriter::new(std::fs::File::create(file)?))?;
                station.records.iter().try_for_each(|record| writer.record(record.time_ns, &record.frame))
            };
            write().map_err(|error| format!("{file}: {error}"))?;
        }
        if let Err(error) = result {
            println!("{program:<8} FAILED {error}");
            return Ok(false);
        }
    }
    Ok(right)
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option}: {text:?} is out of place"))
}
