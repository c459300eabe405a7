//! FPGA families: PLL limits, devices with their resource counts, sensible system clocks.
//!
//! A family is a file `boards/families/<name>.toml`; every figure has its source beside it.

use std::collections::BTreeMap;
use std::path::Path;

use super::class::{one_of, schema, text_of};
use super::read::{Doc, Table, Value};
use crate::compose::pll::{PllLimits, PllStyle};
use crate::diag::{Diagnostic, Diagnostics, Span};

/// Usable cells of a device. A figure that is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Name as in `part.device`.
    pub name: String,
    /// LUTs, as the tools count them (ECP5: TRELLIS_COMB, 4 inputs; AMD: 6 inputs).
    pub luts: Option<u64>,
    /// Flip-flops.
    pub ffs: Option<u64>,
    /// Block RAMs (ECP5: 18 kbit; AMD: 36 kbit).
    pub brams: Option<u64>,
    /// DSP blocks (ECP5: MULT18X18D; AMD: DSP48/DSP58).
    pub dsps: Option<u64>,
    /// PLLs (ECP5) or MMCMs (AMD).
    pub plls: Option<u64>,
    /// Yosys synthesis command, where it is not that of the family.
    pub yosys: Option<String>,
    /// Option that selects it in nextpnr, without the dashes, such as `25k`.
    pub nextpnr: Option<String>,
}

/// A family of FPGAs.
#[derive(Clone, Debug)]
pub struct Family {
    /// Name, also of the folder below `composer/hdl/io/`.
    pub name: String,
    /// One line.
    pub summary: String,
    /// Where the figures come from.
    pub source: String,
    /// Yosys synthesis command, such as `synth_ecp5`.
    pub yosys: Option<String>,
    /// Devices by name.
    pub devices: BTreeMap<String, Device>,
    /// PLL limits by speed grade; empty for simulation.
    pub plls: BTreeMap<String, PllLimits>,
    /// Sensible system clocks in Hz by speed grade, the preferred first.
    pub system_clocks: BTreeMap<String, Vec<u64>>,
    /// Place of the file.
    pub span: Span,
}

impl Family {
    /// Reads a family file.
    ///
    /// # Errors
    /// `GW01xx` for TOML, `GW0202` for another schema, `GW0204` for a word that is not one of those allowed.
    pub fn load(path: &Path) -> Result<Family, Diagnostics> {
        let doc = Doc::open(path)?;
        let family = read(&doc);
        let diagnostics = doc.finish();
        match family {
            Some(family) if !diagnostics.has_errors() => Ok(family),
            _ => Err(diagnostics),
        }
    }
}

fn read(doc: &Doc) -> Option<Family> {
    let root = doc.root();
    schema(&root);
    let head = root.need("family")?.table()?;
    let name = text_of(&head, "name");
    let summary = text_of(&head, "summary");
    let source = text_of(&head, "source");
    let yosys = head.get("yosys").and_then(|v| v.string()).map(|s| s.value);
    head.finish();

    let mut devices = BTreeMap::new();
    if let Some(table) = root.need("device").and_then(|v| v.table()) {
        for (key, value) in table.entries() {
            if let Some(device) = read_device(&key.value, &value) {
                devices.insert(key.value, device);
            }
        }
    }
    let mut system_clocks = BTreeMap::new();
    let mut plls = BTreeMap::new();
    if let Some(table) = root.need("speed").and_then(|v| v.table()) {
        for (grade, value) in table.entries() {
            let Some(speed) = value.table() else { continue };
            if let Some(list) = speed.need("system-clocks-mhz") {
                system_clocks.insert(grade.value.clone(), frequencies(&list));
            }
            if let Some(limits) = speed.get("pll").and_then(|v| read_pll(&v)) {
                plls.insert(grade.value, limits);
            }
            speed.finish();
        }
    }
    root.finish();
    let span = Span { file: doc.file().clone(), range: 0..0 };
    Some(Family { name: name?, summary: summary?, source: source?, yosys, devices, plls, system_clocks, span })
}

fn read_device(name: &str, value: &Value<'_>) -> Option<Device> {
    let table = value.table()?;
    let count = |key: &str| table.get(key).and_then(|v| v.unsigned(0..=100_000_000)).map(|v| v.value);
    let device = Device {
        name: name.to_owned(),
        luts: count("luts"),
        ffs: count("ffs"),
        brams: count("brams"),
        dsps: count("dsps"),
        plls: count("plls"),
        yosys: table.get("yosys").and_then(|v| v.string()).map(|s| s.value),
        nextpnr: table.get("nextpnr").and_then(|v| v.string()).map(|s| s.value),
    };
    table.finish();
    Some(device)
}

/// A frequency in MHz as whole Hz.
pub(super) fn hz_of_mhz(mhz: f64) -> Option<u64> {
    let hz = (mhz * 1e6).round();
    (mhz.is_finite() && (1.0..=1e11).contains(&hz)).then_some(hz as u64)
}

fn wrong_frequency(value: &Value<'_>) {
    let message = format!("`{}` is not a frequency in MHz", value.name);
    value.push(Diagnostic::error("GW0204", message).at(&value.span).help("write a positive number, such as 62.5"));
}

/// A list of frequencies in MHz.
fn frequencies(value: &Value<'_>) -> Vec<u64> {
    let json = value.to_json();
    let list: Option<Vec<u64>> =
        json.as_array().and_then(|list| list.iter().map(|v| v.as_f64().and_then(hz_of_mhz)).collect::<Option<Vec<u64>>>());
    match list {
        Some(list) => list,
        None => {
            wrong_frequency(value);
            Vec::new()
        }
    }
}

fn range_mhz(table: &Table<'_>, key: &str) -> Option<(u64, u64)> {
    let value = table.need(key)?;
    match frequencies(&value).as_slice() {
        [low, high] if low <= high => Some((*low, *high)),
        _ => {
            let message = format!("`{}` is not a range", value.name);
            value.push(Diagnostic::error("GW0204", message).at(&value.span).help("write [lowest, highest] in MHz"));
            None
        }
    }
}

/// A range of dividers: `[lowest, highest]`, each a multiple of 1/8, as numbers of eighths.
fn range_eighths(table: &Table<'_>, key: &str) -> Option<(u32, u32)> {
    let value = table.need(key)?;
    let json = value.to_json();
    let eighth = |v: &serde_json::Value| {
        let e = v.as_f64()? * 8.0;
        (e.fract() == 0.0 && (8.0..=65536.0).contains(&e)).then_some(e as u32)
    };
    let pair = json.as_array().filter(|l| l.len() == 2).and_then(|l| Some((eighth(l.first()?)?, eighth(l.get(1)?)?)));
    match pair {
        Some((low, high)) if low <= high => Some((low, high)),
        _ => {
            let message = format!("`{}` is not a range of dividers", value.name);
            value
                .push(Diagnostic::error("GW0204", message).at(&value.span).help("write [lowest, highest], from 1 to 8192 in steps of 1/8"));
            None
        }
    }
}

fn read_pll(value: &Value<'_>) -> Option<PllLimits> {
    let table = value.table()?;
    let style = table.need("style").and_then(|v| one_of(&v, &[("ehxplll", PllStyle::Ehxplll), ("mmcm", PllStyle::Mmcm)]));
    let input = range_mhz(&table, "input-mhz");
    let pfd = range_mhz(&table, "pfd-mhz");
    let vco = range_mhz(&table, "vco-mhz");
    let output = range_mhz(&table, "output-mhz");
    let input_div = range_eighths(&table, "input-divider");
    let feedback = range_eighths(&table, "feedback-divider");
    let output_div = range_eighths(&table, "output-divider");
    let outputs = table.need("outputs").and_then(|v| v.unsigned(1..=8));
    let fractional = table.get("fractional").and_then(|v| v.boolean()).is_some_and(|b| b.value);
    table.finish();
    Some(PllLimits {
        style: style?.value,
        input_hz: input?,
        pfd_hz: pfd?,
        vco_hz: vco?,
        output_hz: output?,
        input_div: input_div.map(|(l, h)| (l / 8, h / 8))?,
        feedback_eighths: feedback?,
        output_eighths: output_div?,
        outputs: outputs?.value as u32,
        fractional,
    })
}
