//! From generated files to a bitstream, or, where no open flow exists, to a checked vendor project.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::elaborate::board_dirs;
use super::generate::{Generated, Options, generate, pretty};
use crate::build::delays::Delay;
use crate::build::ecp5::{self, Job, Part};
use crate::build::family::{Family, synthesize_only};
use crate::cache::write_atomic;
use crate::diag::{Diagnostic, Diagnostics};
use crate::hdl::Emitted;
use crate::manifest::board::{self, Board};
use crate::manifest::project::Project;
use crate::plugin::types::Target;
use crate::report;
use crate::tools::Tools;
use crate::tools::verilator::LintMessage;

/// What `build` is asked for.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Folder of the project.
    pub dir: PathBuf,
    /// Folder for the output.
    pub out: Option<PathBuf>,
    /// Seed of the placement.
    pub seed: u32,
    /// Whether a clock may miss its frequency.
    pub allow_timing_failure: bool,
}

/// Generates, synthesizes, places, packs. Returns the report as data and as text.
///
/// # Errors
/// Of the project, of the tools; `GW0651` for a board that exists in simulation only.
pub fn build(tools: &Tools, options: &BuildOptions) -> Result<(Json, String, Diagnostics), Diagnostics> {
    let generate_options = Options { dir: options.dir.clone(), out: options.out.clone(), target: Target::Fpga };
    let (made, warnings) = generate(&generate_options, &tools.cache)?;
    let project = Project::load(&options.dir)?;
    let dirs = board_dirs(Some(&project), &tools.cache)?;
    let path = board::find(&dirs, &project.board, Some(&project.board.span))?;
    let (board, _) = Board::load_in(&path, &dirs)?;
    if board.is_simulation_only() {
        return Err(Diagnostic::error("GW0651", format!("board `{}` exists in simulation only", board.name.value))
            .at(&project.board.span)
            .help("use `gateweave sim`, or name a board that has a bitstream")
            .into());
    }
    let files = emitted(&made)?;
    let family = family(&board);
    let linted = lint(tools, &made, &files, Some(family))?;
    let (mut report, mut text) =
        if board.flow.open { bitstream(tools, options, &made, &board, &files)? } else { vendor(tools, &made, &board, family, &files)? };
    report["lint"] = json!(linted);
    for LintMessage { code, place, message, .. } in &linted {
        let place = place.as_ref().map_or(String::new(), |(file, line, column)| format!("{file}:{line}:{column}: "));
        text.push_str(&format!("  verilator -Wall: {place}{message} ({code})\n"));
    }
    let path = made.out.join("report.json");
    write_atomic(&path, pretty(&report).as_bytes())
        .map_err(|e| Diagnostic::error("GW0111", format!("cannot write `{}`: {e}", path.display())))?;
    Ok((report, text, warnings))
}

/// The SystemVerilog of a generated project, in order.
///
/// # Errors
/// `GW0111` if a file cannot be read.
pub fn emitted(made: &Generated) -> Result<Vec<Emitted>, Diagnostics> {
    let mut files = Vec::new();
    for path in &made.system_verilog {
        let whole = made.out.join(path);
        let text =
            std::fs::read_to_string(&whole).map_err(|e| Diagnostic::error("GW0111", format!("cannot read `{}`: {e}", whole.display())))?;
        files.push(Emitted { path: path.to_string_lossy().into_owned(), text });
    }
    Ok(files)
}

fn plan_of(out: &Path) -> Json {
    std::fs::read(out.join("plan.json")).ok().and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or(Json::Null)
}

fn bitstream(
    tools: &Tools,
    options: &BuildOptions,
    made: &Generated,
    board: &Board,
    files: &[Emitted],
) -> Result<(Json, String), Diagnostics> {
    let name = super::super::emit::top::ident(&made.name);
    let lpf = std::fs::read_to_string(made.out.join(format!("{name}.lpf")))
        .map_err(|e| Diagnostic::error("GW0111", format!("cannot read the constraints: {e}")))?;
    let part = Part::of(board);
    let job = Job {
        files,
        top: &made.top,
        part: &part,
        lpf: &lpf,
        seed: options.seed,
        allow_timing_failure: options.allow_timing_failure,
        name: &name,
        out: &made.out,
    };
    let mut built = ecp5::build(tools, &job)?;
    check_delays(board, &lpf, &built.delays)?;
    let plan = plan_of(&made.out);
    report::build::name_clocks(&mut built.clocks, &plan);
    let json = report::build::json(&made.name, &board.name.value, &built, &plan);
    Ok((json, report::build::text(&built)))
}

/// Picoseconds of one tap of an ECP5 delay cell (data sheet FPGA-DS-02012, DELAYF/DELAYG).
const TAP_PS: i64 = 25;

/// The RGMII delays of the placed design are those of the board file. A delay that does not arrive passes every other
/// test and is dead on the bench.
fn check_delays(board: &Board, lpf: &str, placed: &[Delay]) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    for resource in board.resources.iter().filter(|r| r.class.name == "rgmii") {
        let name = &resource.name.value;
        let fact = |key: &str| resource.integer(key).unwrap_or(0);
        for (pin, ps) in
            [("rx_ctl", fact("rx-delay-ps")), ("rx_data", fact("rx-delay-ps")), ("tx_clk", fact("tx-delay-ps")), ("tx_data", 0)]
        {
            let ports = (0..4).map(|bit| format!("{name}_{pin}[{bit}]")).chain([format!("{name}_{pin}")]);
            for port in ports.filter(|port| lpf.contains(&format!("LOCATE COMP \"{port}\""))) {
                let wanted = (ps + TAP_PS / 2) / TAP_PS;
                let found = placed.iter().find(|d| d.port == port).map_or(0, |d| i64::from(d.taps));
                if found != wanted {
                    let message =
                        format!("the placed design delays `{port}` by {found} taps of {TAP_PS} ps, the board file asks for {wanted}");
                    diagnostics.push(Diagnostic::error("GW0652", message).at(&resource.name.span));
                }
            }
        }
    }
    diagnostics.finish(()).map(|((), _)| ())
}

/// What Verilator's `--lint-only -Wall` says about `files`, those of [`emitted`], with the waivers that go with them. `family` is
/// whose primitives they use; `None` for a simulation.
///
/// # Errors
/// Those of [`crate::tools::Verilator::lint`].
pub fn lint(tools: &Tools, made: &Generated, files: &[Emitted], family: Option<Family>) -> Result<Vec<LintMessage>, Diagnostic> {
    let path = made.files.iter().find(|p| p.ends_with("lint.vlt")).map(|p| made.out.join(p)).unwrap_or_default();
    let text = std::fs::read_to_string(&path).map_err(|e| Diagnostic::error("GW0111", format!("cannot read `{}`: {e}", path.display())))?;
    let mut all = vec![Emitted { path: "lint.vlt".to_owned(), text }];
    all.extend(files.iter().cloned());
    let primitives = family.map_or_else(|| Ok(Vec::new()), |family| tools.primitives(family))?;
    tools.verilator()?.lint(&all, &made.top, &primitives)
}

/// The family that Yosys synthesizes for.
pub fn family(board: &Board) -> Family {
    match board.yosys_synth() {
        _ if board.flow.open => Family::Ecp5,
        Some(command) if command.contains("xcup") => Family::Xcup,
        Some(command) if command.contains("xcu") => Family::Xcu,
        _ => Family::Xc7,
    }
}

fn vendor(tools: &Tools, made: &Generated, board: &Board, family: Family, files: &[Emitted]) -> Result<(Json, String), Diagnostics> {
    let synthesized = synthesize_only(tools, family, files, &made.top, &made.out)?;
    let script = made.out.join(format!("{}.tcl", super::super::emit::top::ident(&made.name)));
    let text = format!(
        "  Yosys ({family:?}): {} LUT, {} FF, {} block RAM\n  no open flow makes a bitstream for {}: run `vivado -mode batch -source {}`\n",
        synthesized.luts,
        synthesized.ffs,
        synthesized.block_rams,
        board.name.value,
        script.display()
    );
    let report = json!({
        "project": made.name, "board": board.name.value, "synthesis": synthesized, "vendor-script": script, "plan": plan_of(&made.out),
    });
    Ok((report, text))
}
