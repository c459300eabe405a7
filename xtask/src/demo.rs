//! `cargo xtask demo`: from the project file to a bitstream, and to a Linux guest that gets its answers.

use crate::accept::ping::{self, Load};
use crate::gateweave::Gateweave;
use crate::stage::Stage;
use crate::{guest, places, setup};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Pings and UDP lengths of the run that leaves a waveform: few enough for a viewer. A second run without one does them all.
const TRACED: Load = Load { mtu: 1500, pings: 40, lengths: (0, 255), timeout: Duration::from_secs(600) };

pub fn run() -> Result<ExitCode> {
    let stage = Stage::start("set-up");
    let machine = setup::run(setup::Wants { guest: true }, &stage)?;
    stage.done("");

    let stage = Stage::start("gateweave");
    let gateweave = Gateweave::build(&stage)?;
    stage.done("");

    let stage = Stage::start("plugins");
    gateweave.build_plugins(&stage)?;
    stage.done("");

    let out = places::root().join("build/ping");
    let stage = Stage::start("bitstream for projects/ping");
    gateweave.run(["build", "projects/ping"], "build-ping", Duration::from_secs(3600), &stage)?;
    let report = Report::read(&out.join("report.json"))?;
    stage.done(&report.timing());

    let trace = out.join("ping.fst");
    let ended = match machine.no_guest {
        Some(why) => Err(why),
        None => {
            let stage = Stage::start("Linux guest");
            let made = guest::image::prepare(guest::image::Image::Net, &stage)?;
            let program = ping::udp_check(&stage)?;
            stage.done(&made.description);
            let stage = Stage::start("the guest pings the simulation, with a waveform");
            let project = (&gateweave, Path::new("projects/ping"), out.as_path());
            let figures = ping::against_simulation(project, &made, &program, TRACED, Some(&trace), &stage)?;
            stage.done(&figures.sentence());
            let stage = Stage::start("1000 pings and every UDP length");
            let figures = ping::against_simulation(project, &made, &program, Load::full(TRACED.mtu), None, &stage)?;
            stage.done(&figures.sentence());
            Ok(figures)
        }
    };

    println!("bitstream  {}", report.bitstream()?);
    println!("timing     {}", report.timing());
    println!("report     {}", out.join("report.json").display());
    match ended {
        Ok(figures) => {
            println!("waveform   {}", trace.display());
            println!("guest      ARP, {}", figures.sentence());
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            println!("guest      NOT RUN");
            eprintln!("{why}");
            Ok(ExitCode::from(2))
        }
    }
}

/// The figures of `report.json` that the demo shows.
pub struct Report(Value);

impl Report {
    pub fn read(path: &Path) -> Result<Report> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Ok(Report(serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?))
    }

    /// Where the bitstream is.
    pub fn bitstream(&self) -> Result<&str> {
        self.0["bitstream"].as_str().context("the report names no bitstream")
    }

    /// Whether every clock reaches what is asked of it, and there is one.
    pub fn timing_met(&self) -> bool {
        let clocks = self.0["clocks"].as_array().map_or(&[][..], Vec::as_slice);
        let met =
            |clock: &Value| clock["reached_mhz"].as_f64().zip(clock["asked_mhz"].as_f64()).is_some_and(|(reached, asked)| reached >= asked);
        !clocks.is_empty() && clocks.iter().all(met)
    }

    /// Each clock with the frequency asked and reached.
    pub fn timing(&self) -> String {
        let clocks = self.0["clocks"].as_array().cloned().unwrap_or_default();
        let shown = clocks.iter().map(|clock| {
            let name = clock["name"].as_str().unwrap_or("?");
            let number = |key: &str| clock[key].as_f64().map_or("?".to_string(), |mhz| format!("{mhz:.2}"));
            format!("{name} {} of {} MHz", number("reached_mhz"), number("asked_mhz"))
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn timing_is_met_only_by_clocks_that_reach_what_is_asked() {
        let report = |clocks: Value| Report(json!({ "clocks": clocks }));
        assert!(report(json!([{ "name": "a", "reached_mhz": 62.5, "asked_mhz": 62.5 }])).timing_met());
        assert!(!report(json!([{ "name": "a", "reached_mhz": 62.4, "asked_mhz": 62.5 }])).timing_met());
        assert!(!report(json!([{ "name": "a", "asked_mhz": 62.5 }])).timing_met(), "not reached at all");
        assert!(!report(json!([])).timing_met(), "nothing analysed");
    }
}
