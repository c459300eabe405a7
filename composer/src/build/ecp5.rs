//! Lattice ECP5: Yosys, nextpnr-ecp5, ecppack.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::build::delays::{self, Delay};
use crate::build::family::Family;
use crate::build::yosys::{self, Synthesis};
use crate::build::{Clock, Step, Usage, deliver};
use crate::cache::{Key, Stored, sha256_file};
use crate::diag::{Diagnostic, Diagnostics};
use crate::hdl::Emitted;
use crate::manifest::board::Board;
use crate::tools::{Tools, Used};

/// Placements kept in the cache; one has some 50 MB.
const KEEP: usize = 24;

/// MHz given to nextpnr as the target of every clock that nobody constrained. No design asks for it, so a
/// clock with this target is one that was forgotten.
const UNCONSTRAINED_MHZ: f64 = 0.5;

/// Arguments of synth_ecp5 for the fewest look-up tables.
const SYNTHESIS: &str = "-abc9";

/// A part number: device, package, speed grade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Such as `LFE5U-25F`.
    pub device: String,
    /// Such as `CABGA381`.
    pub package: String,
    /// 6, 7 or 8 (`LFE5UM5G` parts are 8 only).
    pub speed: u8,
}

/// Devices with the option of nextpnr that chooses each.
const DEVICES: [(&str, &str); 10] = [
    ("LFE5U-12F", "--12k"),
    ("LFE5U-25F", "--25k"),
    ("LFE5U-45F", "--45k"),
    ("LFE5U-85F", "--85k"),
    ("LFE5UM-25F", "--um-25k"),
    ("LFE5UM-45F", "--um-45k"),
    ("LFE5UM-85F", "--um-85k"),
    ("LFE5UM5G-25F", "--um5g-25k"),
    ("LFE5UM5G-45F", "--um5g-45k"),
    ("LFE5UM5G-85F", "--um5g-85k"),
];

/// Packages as nextpnr names them.
const PACKAGES: [&str; 7] = ["CABGA256", "CABGA381", "CABGA554", "CABGA756", "CSFBGA285", "CSFBGA381", "TQFP144"];

impl Part {
    /// The part of a board.
    pub fn of(board: &Board) -> Self {
        Self {
            device: board.part.device.value.clone(),
            package: board.part.package.value.clone(),
            speed: board.part.speed.value.parse().unwrap_or(0),
        }
    }

    /// The option of nextpnr for the device.
    ///
    /// # Errors
    /// `GW0615` for a device, package or speed grade that does not exist.
    pub fn check(&self) -> Result<&'static str, Diagnostic> {
        let wrong = |what: &str, value: &str| Diagnostic::error("GW0615", format!("`{value}` is no {what} of the ECP5 family"));
        let option = DEVICES.iter().find(|(name, _)| *name == self.device).map(|(_, option)| *option);
        let option = option.ok_or_else(|| wrong("device", &self.device).nearest(&self.device, DEVICES.iter().map(|(name, _)| *name)))?;
        if !PACKAGES.contains(&self.package.as_str()) {
            return Err(wrong("package", &self.package).nearest(&self.package, PACKAGES));
        }
        let speeds: &[u8] = if self.device.starts_with("LFE5UM5G") { &[8] } else { &[6, 7, 8] };
        if !speeds.contains(&self.speed) {
            let known: Vec<String> = speeds.iter().map(u8::to_string).collect();
            return Err(wrong("speed grade", &self.speed.to_string()).help(format!("{} comes in {}", self.device, known.join(", "))));
        }
        Ok(option)
    }
}

/// What to build.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// SystemVerilog, in order of dependency, under relative paths.
    pub files: &'a [Emitted],
    /// Top module.
    pub top: &'a str,
    /// The part.
    pub part: &'a Part,
    /// Constraints in Lattice's LPF: pins, I/O standards, `FREQUENCY`.
    pub lpf: &'a str,
    /// Seed of the placement.
    pub seed: u32,
    /// Whether a clock may miss its frequency.
    pub allow_timing_failure: bool,
    /// Name of the bitstream: `NAME.bit` and `NAME.svf`.
    pub name: &'a str,
    /// Folder for the products.
    pub out: &'a Path,
}

/// A bitstream, and what the tools said about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Built {
    /// `TRELLIS_COMB` as nextpnr counts them.
    pub luts: Usage,
    /// `TRELLIS_FF`.
    pub ffs: Usage,
    /// `DP16KD`, 18 Kbit each.
    pub block_rams: Usage,
    /// `MULT18X18D`.
    pub dsps: Usage,
    /// Everything that nextpnr counts, by its own name.
    pub utilization: BTreeMap<String, Usage>,
    /// Clocks, by name.
    pub clocks: Vec<Clock>,
    /// Delays of the I/O cells as the configuration has them.
    pub delays: Vec<Delay>,
    /// Seed of the placement.
    pub seed: u32,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Tools in order.
    pub tools: Vec<Used>,
    /// Netlist of Yosys, JSON.
    pub netlist: PathBuf,
    /// Placed and routed design, textual configuration.
    pub config: PathBuf,
    /// Placed and routed design, nextpnr's JSON.
    pub placed: PathBuf,
    /// Timing report of nextpnr, JSON.
    pub timing: PathBuf,
    /// The bitstream.
    pub bitstream: PathBuf,
    /// The bitstream as a JTAG player's file.
    pub svf: PathBuf,
    /// Logs of the three tools.
    pub logs: Vec<PathBuf>,
}

/// Synthesizes for ECP5: `netlist.json` in the folder of the result. `parameters` are those of the top module, names and values.
///
/// # Errors
/// Those of [`yosys::run`].
pub fn synthesize(tools: &Tools, files: &[Emitted], top: &str, parameters: &[(String, String)], log: &Path) -> Result<Stored, Diagnostic> {
    let commands = [format!("synth_ecp5 {SYNTHESIS} -top {top} -json netlist.json")];
    yosys::run(tools, &tools.yosys()?, &Synthesis { files, top, parameters, family: Family::Ecp5, commands: &commands, log })
}

/// A placement.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    /// Netlist of Yosys, JSON.
    pub netlist: &'a Path,
    /// Top module, for what is said meanwhile.
    pub top: &'a str,
    /// The part.
    pub part: &'a Part,
    /// Constraints in Lattice's LPF.
    pub lpf: &'a str,
    /// MHz for every clock that the constraints leave out.
    pub mhz: f64,
    /// Whether the top module has no ports and so no pins: there is no configuration then.
    pub out_of_context: bool,
    /// Seed.
    pub seed: u32,
    /// Folder for the products: those of [`Placement::products`] and `logs/nextpnr.log`.
    pub out: &'a Path,
}

impl Placement<'_> {
    /// Names of what [`place`] makes.
    fn products(&self) -> &'static [&'static str] {
        if self.out_of_context {
            &["placed.json", "timing.json", "constraints.lpf"]
        } else {
            &["placed.json", "timing.json", "constraints.lpf", CONFIG]
        }
    }
}

/// The placed and routed design for ecppack.
const CONFIG: &str = "placed.config";

/// Places and routes with nextpnr; a clock may miss its frequency.
///
/// # Errors
/// Those of the tool, `GW0611` (placement), `GW0615` (no such part).
pub fn place(tools: &Tools, job: &Placement) -> Result<Stored, Diagnostic> {
    let io = |e: io::Error| tools.cache.trouble(&e);
    let option = job.part.check()?;
    let out = |name: &str| job.out.join(name);
    let nextpnr = tools.nextpnr_ecp5()?;
    let (seed, mhz, speed) = (job.seed.to_string(), job.mhz.to_string(), job.part.speed.to_string());
    let args = [option, "--package", &job.part.package, "--speed", &speed, "--json", "netlist.json", "--lpf", "constraints.lpf"];
    let config: &[&str] = if job.out_of_context { &["--out-of-context"] } else { &["--textcfg", CONFIG] };
    let args = args.into_iter().chain(config.iter().copied()).chain(["--write", "placed.json", "--report", "timing.json"]);
    let args = args.chain(["--freq", &mhz, "--seed", &seed, "--timing-allow-fail"]);
    let args: Vec<String> = args.map(String::from).collect();
    let key = Key::new("placement").field("tool", &nextpnr.identity).field("arguments", args.join("\n")).field("lpf", job.lpf);
    let key = key.field("netlist", sha256_file(job.netlist).map_err(io)?).finish();
    let placed = tools.cache.step("placement", &key, KEEP, |folder| {
        let work = tools.cache.temp().map_err(io)?;
        fs::copy(job.netlist, work.path().join("netlist.json")).map_err(io)?;
        fs::write(work.path().join("constraints.lpf"), job.lpf).map_err(io)?;
        let log = out("logs/nextpnr.log");
        let bar = tools.talk.spinner(&format!("placing {} with {} (seed {seed})", job.top, nextpnr.version));
        let ended = nextpnr.run(tools, &args, work.path(), &log);
        bar.finish_and_clear();
        if ended?.0 != 0 {
            return Err(refused("GW0611", "placement failed", &log));
        }
        fs::copy(&log, folder.join("nextpnr.log")).map_err(io)?;
        for name in job.products() {
            fs::copy(work.path().join(name), folder.join(name)).map_err(io)?;
        }
        Ok(())
    })?;
    for name in job.products() {
        deliver(&placed.folder.join(name), &out(name)).map_err(io)?;
    }
    deliver(&placed.folder.join("nextpnr.log"), &out("logs/nextpnr.log")).map_err(io)?;
    Ok(placed)
}

/// Builds a bitstream.
///
/// Products in `job.out`: `netlist.json`, `constraints.lpf`, `placed.config`, `placed.json`, `timing.json`, `NAME.bit`,
/// `NAME.svf`, `logs/*.log`. All but the bitstream are there even if the timing is not met.
///
/// # Errors
/// Those of the tools; `GW0610` (synthesis), `GW0611` (placement), `GW0612` (a clock misses its frequency), `GW0613` (a clock
/// without one), `GW0614` (packing), `GW0615` (no such part), `GW0617` (a report that is not readable).
pub fn build(tools: &Tools, job: &Job) -> Result<Built, Diagnostics> {
    let io = |e: io::Error| Diagnostics::from(tools.cache.trouble(&e));
    job.part.check()?;
    let out = |name: &str| job.out.join(name);

    let log = out("logs/yosys.log");
    let synthesized = synthesize(tools, job.files, job.top, &[], &log)?;
    let netlist = out("netlist.json");
    deliver(&synthesized.folder.join("netlist.json"), &netlist).map_err(io)?;

    let placement = Placement {
        netlist: &netlist,
        top: job.top,
        part: job.part,
        lpf: job.lpf,
        mhz: UNCONSTRAINED_MHZ,
        out_of_context: false,
        seed: job.seed,
        out: job.out,
    };
    let placed = place(tools, &placement)?;
    let read = |name: &str| fs::read_to_string(placed.folder.join(name)).map_err(io);
    let report = Report::parse(&read("timing.json")?).map_err(unreadable)?;
    let delays = delays::read_back(&read("placed.json")?, &read("placed.config")?).map_err(unreadable)?;
    report.judge(job.allow_timing_failure)?;

    let ecppack = tools.ecppack()?;
    let (bit, svf) = (format!("{}.bit", job.name), format!("{}.svf", job.name));
    let key = Key::new("bitstream").field("tool", &ecppack.identity).field("name", job.name);
    let key = key.field("config", sha256_file(&out("placed.config")).map_err(io)?).finish();
    let packed = tools.cache.step("bitstream", &key, KEEP, |folder| {
        let io = |e: io::Error| tools.cache.trouble(&e);
        let work = tools.cache.temp().map_err(io)?;
        fs::copy(out("placed.config"), work.path().join("placed.config")).map_err(io)?;
        let log = out("logs/ecppack.log");
        let args = ["--compress", "--svf", &svf, "placed.config", &bit].map(String::from);
        if ecppack.run(tools, &args, work.path(), &log)?.0 != 0 {
            return Err(refused("GW0614", "the bitstream cannot be made", &log));
        }
        fs::copy(&log, folder.join("ecppack.log")).map_err(io)?;
        for name in [&bit, &svf] {
            fs::copy(work.path().join(name), folder.join(name)).map_err(io)?;
        }
        Ok(())
    })?;
    for name in [&bit, &svf] {
        deliver(&packed.folder.join(name), &out(name)).map_err(io)?;
    }
    deliver(&packed.folder.join("ecppack.log"), &out("logs/ecppack.log")).map_err(io)?;

    let usage = |name: &str| report.usage(name);
    let step = |name, stored: &Stored| Step { name, seconds: stored.seconds, cached: stored.cached };
    Ok(Built {
        luts: usage("TRELLIS_COMB"),
        ffs: usage("TRELLIS_FF"),
        block_rams: usage("DP16KD"),
        dsps: usage("MULT18X18D"),
        utilization: report.utilization.clone(),
        clocks: report.clocks,
        delays,
        seed: job.seed,
        steps: vec![step("synthesis", &synthesized), step("placement", &placed), step("bitstream", &packed)],
        tools: vec![tools.yosys()?.used(), tools.nextpnr_ecp5()?.used(), ecppack.used()],
        netlist,
        config: out("placed.config"),
        placed: out("placed.json"),
        timing: out("timing.json"),
        bitstream: out(&bit),
        svf: out(&svf),
        logs: ["yosys", "nextpnr", "ecppack"].map(|n| out(&format!("logs/{n}.log"))).into(),
    })
}

/// `GW0617`.
pub(super) fn unreadable(why: String) -> Diagnostic {
    Diagnostic::error("GW0617", format!("what nextpnr reported is not readable: {why}"))
}

/// nextpnr's JSON report, as far as it is used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    utilization: BTreeMap<String, Usage>,
    pub(super) clocks: Vec<Clock>,
    /// The slowest path of each clock, in words, by the clock's own name.
    paths: BTreeMap<String, String>,
}

impl Report {
    /// How much of a resource is used, by nextpnr's name for it.
    pub(super) fn usage(&self, name: &str) -> Usage {
        self.utilization.get(name).copied().unwrap_or_default()
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let object = |name: &str| json.get(name).and_then(Value::as_object).ok_or_else(|| format!("it has no `{name}`"));
        let mut utilization = BTreeMap::new();
        for (name, entry) in object("utilization")? {
            let number = |key: &str| entry.get(key).and_then(Value::as_u64).ok_or_else(|| format!("`{name}` has no `{key}`"));
            utilization.insert(name.clone(), Usage { used: number("used")?, available: number("available")? });
        }
        let mut clocks = Vec::new();
        for (name, entry) in object("fmax")? {
            let number = |key: &str| entry.get(key).and_then(Value::as_f64).ok_or_else(|| format!("clock `{name}` has no `{key}`"));
            let (asked, reached) = (number("constraint")?, number("achieved")?);
            let constrained = (asked - UNCONSTRAINED_MHZ).abs() > 1e-3;
            clocks.push(Clock {
                name: plain(name).to_owned(),
                asked_mhz: constrained.then(|| hundredths(asked)),
                reached_mhz: hundredths(reached),
                met: constrained && reached >= asked,
            });
        }
        let mut paths = BTreeMap::new();
        for path in json.get("critical_paths").and_then(Value::as_array).into_iter().flatten() {
            let end = |key: &str| path.get(key).and_then(Value::as_str).and_then(|s| s.split_once(' ')).map(|(_, net)| net);
            if let (Some(from), true) = (end("from"), end("from") == end("to")) {
                paths.insert(plain(from).to_owned(), describe(path));
            }
        }
        Ok(Self { utilization, clocks, paths })
    }

    /// Fails for clocks without a frequency and, unless allowed, for clocks that miss theirs.
    fn judge(&self, allow_failure: bool) -> Result<(), Diagnostics> {
        let mut found = Diagnostics::default();
        for clock in &self.clocks {
            let path = self.paths.get(&clock.name).map(|p| format!("; slowest path: {p}")).unwrap_or_default();
            match clock.asked_mhz {
                None => found.push(
                    Diagnostic::error(
                        "GW0613",
                        format!("clock `{}` has no frequency, so nothing about its timing was checked", clock.name),
                    )
                    .help("give it one in the constraints: FREQUENCY PORT or FREQUENCY NET"),
                ),
                Some(asked) if !clock.met && !allow_failure => found.push(
                    Diagnostic::error("GW0612", format!("clock `{}` reaches {:.2} MHz, not {asked:.2} MHz", clock.name, clock.reached_mhz))
                        .help(format!("ask for less, try another seed, or choose a wider datapath at a slower clock{path}")),
                ),
                Some(_) => {}
            }
        }
        if self.clocks.is_empty() {
            found.push(Diagnostic::error("GW0613", "the design has no clock that reaches a register").help("connect a clock of the board"));
        }
        found.finish(()).map(drop)
    }
}

/// One line about a critical path: where it starts and ends, its delay and how much of it is routing.
fn describe(path: &Value) -> String {
    let segments = path.get("path").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let delay = |s: &Value| s.get("delay").and_then(Value::as_f64).unwrap_or(0.0);
    let cell = |s: Option<&Value>, key: &str| {
        let name = s.and_then(|s| s.pointer(&format!("/{key}/cell"))).and_then(Value::as_str).unwrap_or("?");
        name.to_owned()
    };
    let total: f64 = segments.iter().map(delay).sum();
    let routing: f64 = segments.iter().filter(|s| s.get("type").and_then(Value::as_str) == Some("routing")).map(delay).sum();
    let (from, to) = (cell(segments.first(), "from"), cell(segments.last(), "to"));
    format!("{from} to {to}, {total:.1} ns of which {routing:.1} ns routing")
}

/// A net's name without what nextpnr added when it promoted the net to a global one or split it off a pin.
fn plain(name: &str) -> &str {
    let name = name.strip_prefix("$glbnet$").unwrap_or(name);
    name.strip_suffix("$TRELLIS_IO_IN").unwrap_or(name)
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The diagnostic for a tool that ended with an error, from its log.
fn refused(code: &'static str, what: &str, log: &Path) -> Diagnostic {
    let said = fs::read_to_string(log).unwrap_or_default();
    let mut errors: Vec<&str> = said.lines().filter_map(|l| l.strip_prefix("ERROR: ").or_else(|| l.strip_prefix("Error: "))).collect();
    errors.dedup();
    let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
    let why = if errors.is_empty() { last.to_owned() } else { errors.join("; ") };
    Diagnostic::error(code, format!("{what}: {}", why.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(device: &str, package: &str, speed: u8) -> Part {
        Part { device: device.into(), package: package.into(), speed }
    }

    #[test]
    fn parts_that_do_not_exist_are_refused_with_the_nearest() {
        assert_eq!(part("LFE5U-25F", "CABGA381", 6).check().unwrap(), "--25k");
        assert_eq!(part("LFE5UM5G-85F", "CABGA554", 8).check().unwrap(), "--um5g-85k");
        let error = part("LFE5U-25", "CABGA381", 6).check().unwrap_err();
        assert_eq!((error.code, error.help.as_deref()), ("GW0615", Some("did you mean `LFE5U-25F`?")));
        assert!(part("LFE5U-25F", "CABGA380", 6).check().unwrap_err().message.contains("CABGA380"));
        assert_eq!(part("LFE5UM5G-45F", "CABGA381", 6).check().unwrap_err().help.unwrap(), "LFE5UM5G-45F comes in 8");
    }

    const REPORT: &str = r#"{"critical_paths":[
        {"from":"posedge $glbnet$sys","to":"posedge $glbnet$sys","path":[
            {"delay":0.5,"from":{"cell":"a","port":"Q"},"to":{"cell":"a","port":"Q"},"type":"clk-to-q"},
            {"delay":9.0,"from":{"cell":"a","port":"Q"},"to":{"cell":"b","port":"D"},"type":"routing"}]},
        {"from":"posedge $glbnet$sys","to":"<async>","path":[]}],
        "fmax":{"$glbnet$sys":{"achieved":70.004,"constraint":75.0018},"$glbnet$rx_clk$TRELLIS_IO_IN":{"achieved":373.8,"constraint":0.5}},
        "utilization":{"TRELLIS_COMB":{"available":24288,"used":45}}}"#;

    #[test]
    fn the_report_is_read() {
        let report = Report::parse(REPORT).unwrap();
        assert_eq!(report.utilization["TRELLIS_COMB"], Usage { used: 45, available: 24288 });
        let clock = |name: &str| report.clocks.iter().find(|c| c.name == name).unwrap().clone();
        assert_eq!(clock("sys"), Clock { name: "sys".into(), asked_mhz: Some(75.0), reached_mhz: 70.0, met: false });
        assert_eq!(clock("rx_clk").asked_mhz, None);
        assert!(Report::parse("{}").unwrap_err().contains("utilization"));
    }

    #[test]
    fn slow_and_forgotten_clocks_fail_the_build() {
        let report = Report::parse(REPORT).unwrap();
        let codes = |allow| report.judge(allow).unwrap_err().0.iter().map(|d| d.code).collect::<Vec<_>>();
        assert_eq!(codes(false), ["GW0613", "GW0612"]);
        assert_eq!(codes(true), ["GW0613"]);
        let slow = report.judge(false).unwrap_err().0.pop().unwrap();
        assert!(slow.help.unwrap().contains("a to b, 9.5 ns of which 9.0 ns routing"));
        let none = Report::parse(r#"{"fmax":{},"utilization":{}}"#).unwrap();
        assert_eq!(none.judge(true).unwrap_err().0[0].code, "GW0613");
    }
}
