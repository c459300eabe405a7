//! Reading back from a placed ECP5 design which delay each I/O cell has.
//!
//! A delay that is given as a string, or in a mode that the tools do not know,
//! is dropped without a word and the board is dead on the bench; so what counts
//! is what the configuration says in the end.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// Picoseconds of one tap of an ECP5 delay cell (Lattice FPGA-DS-02012, DELAYF/DELAYG step).
pub const TAP_PS: u32 = 25;

/// Which way a delay cell works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Between the pin and the fabric.
    Input,
    /// Between the fabric and the pin.
    Output,
}

/// The delay of one pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delay {
    /// Port of the top level, with its index if it is a vector: `eth0_rx_data[2]`.
    pub port: String,
    /// Pin of the package, if the design places it.
    pub pin: Option<String>,
    /// Which way it works.
    pub direction: Direction,
    /// Taps of [`TAP_PS`] picoseconds each, 0 to 127.
    pub taps: u32,
}

/// The delays of a design that nextpnr placed, by port: one entry for each pin that uses an I/O logic cell.
///
/// `placed` is what nextpnr's `--write` gave and `config` what `--textcfg` gave; that both say the same is checked.
///
/// # Errors
/// What does not fit, in words.
pub fn read_back(placed: &str, config: &str) -> Result<Vec<Delay>, String> {
    let json: Value = serde_json::from_str(placed).map_err(|e| format!("the placed netlist is not JSON: {e}"))?;
    // nextpnr writes one module and calls it `top`, whatever the design's own name is.
    let module = json.get("modules").and_then(Value::as_object).and_then(|m| m.values().next());
    let cells = module.and_then(|m| m.get("cells")).and_then(Value::as_object).ok_or("the placed netlist has no cells")?;
    let mut delays = Vec::new();
    let mut from_netlist: BTreeMap<(String, u32), u32> = BTreeMap::new();
    for (name, cell) in cells {
        if !matches!(cell.get("type").and_then(Value::as_str), Some("IOLOGIC" | "SIOLOGIC")) {
            continue;
        }
        let parameter = |key: &str| cell.get("parameters").and_then(|p| p.get(key)).and_then(Value::as_str);
        let taps = match parameter("DELAY.DEL_VALUE") {
            Some(bits) => u32::from_str_radix(bits.trim(), 2).map_err(|_| format!("the delay of `{name}` is `{bits}`, not a number"))?,
            None => 0,
        };
        let bel = cell.pointer("/attributes/NEXTPNR_BEL").and_then(Value::as_str).unwrap_or_default();
        let letter = bel.chars().last().map(String::from).unwrap_or_default();
        *from_netlist.entry((letter, taps)).or_default() += 1;
        let io = name.strip_suffix("$IOL").unwrap_or(name);
        let pin = cells.get(io).and_then(|c| c.pointer("/attributes/LOC")).and_then(Value::as_str).map(str::to_owned);
        let output = parameter("DELAY.OUTDEL").is_some_and(|v| v.trim() == "ENABLED") || uses_output(cells.get(io));
        let direction = if output { Direction::Output } else { Direction::Input };
        delays.push(Delay { port: io.strip_suffix("$tr_io").unwrap_or(io).to_owned(), pin, direction, taps });
    }
    let from_config = words(config)?;
    if from_netlist != from_config {
        return Err(format!("the configuration has other delays than the placed netlist: {from_config:?} and {from_netlist:?}"));
    }
    delays.sort_by(|a, b| a.port.cmp(&b.port));
    Ok(delays)
}

/// Whether a pin only drives.
fn uses_output(io: Option<&Value>) -> bool {
    io.and_then(|c| c.pointer("/parameters/DIR")).and_then(Value::as_str).is_some_and(|d| d.trim() == "OUTPUT")
}

/// How often each cell letter has each value in the textual configuration.
fn words(config: &str) -> Result<BTreeMap<(String, u32), u32>, String> {
    let mut found = BTreeMap::new();
    for line in config.lines() {
        let Some((cell, bits)) = line.strip_prefix("word: ").and_then(|l| l.split_once(".DELAY.DEL_VALUE ")) else { continue };
        let taps = u32::from_str_radix(bits.trim(), 2).map_err(|_| format!("a delay in the configuration is `{bits}`, not a number"))?;
        let letter = cell.chars().last().map(String::from).unwrap_or_default();
        *found.entry((letter, taps)).or_default() += 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACED: &str = r#"{"modules":{"top":{"cells":{
        "rx_d$tr_io$IOL":{"type":"IOLOGIC","parameters":{"DELAY.DEL_VALUE":"00000000000000000000000001010000","DELAY.OUTDEL":"DISABLED"},
            "attributes":{"NEXTPNR_BEL":"X0/Y32/IOLOGICA"}},
        "rx_d$tr_io":{"type":"TRELLIS_IO","parameters":{"DIR":"INPUT"},"attributes":{"LOC":"K2","NEXTPNR_BEL":"X0/Y32/PIOA"}},
        "q[1]$tr_io$IOL":{"type":"IOLOGIC","parameters":{"DELAY.DEL_VALUE":"0000000"},"attributes":{"NEXTPNR_BEL":"X0/Y26/IOLOGICD"}},
        "q[1]$tr_io":{"type":"TRELLIS_IO","parameters":{"DIR":"OUTPUT"},"attributes":{"LOC":"G1"}},
        "lut":{"type":"TRELLIS_COMB","parameters":{},"attributes":{}}}}}}"#;
    const CONFIG: &str =
        ".tile MIB_R32C0:PICL0\nword: IOLOGICA.DELAY.DEL_VALUE 1010000\nenum: X Y\n.tile Z\nword: IOLOGICD.DELAY.DEL_VALUE 0000000\n";

    #[test]
    fn delays_come_back_by_port_and_pin() {
        let delays = read_back(PLACED, CONFIG).unwrap();
        assert_eq!(
            delays,
            [
                Delay { port: "q[1]".into(), pin: Some("G1".into()), direction: Direction::Output, taps: 0 },
                Delay { port: "rx_d".into(), pin: Some("K2".into()), direction: Direction::Input, taps: 80 },
            ]
        );
    }

    #[test]
    fn a_configuration_that_differs_is_noticed() {
        let other = CONFIG.replace("1010000", "0000000");
        assert!(read_back(PLACED, &other).unwrap_err().contains("other delays"));
        assert!(read_back("{}", CONFIG).unwrap_err().contains("no cells"));
        assert!(read_back("[", CONFIG).unwrap_err().contains("not JSON"));
        let text = PLACED.replace("00000000000000000000000001010000", "DELAY80");
        assert!(read_back(&text, CONFIG).unwrap_err().contains("DELAY80"));
    }
}
