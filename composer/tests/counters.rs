//! Every counter of `projects/ping` is alive after synthesis: in the netlist, what waits to be counted is set by something outside of
//! the bank of counters. A counter that nothing reaches any more is found out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gateweave::build::ecp5;
use gateweave::cache::Cache;
use gateweave::hdl::Emitted;
use gateweave::pipeline::bitstream::emitted;
use gateweave::pipeline::generate::{Options, generate};
use gateweave::plugin::types::Target;
use gateweave::tools::{Origin, Talk, Tools};
use serde_json::Value;

/// A bit of a net, as Yosys numbers them.
type Bit = u64;

/// The flat netlist of a design.
struct Netlist {
    /// Bits of the nets by name.
    nets: BTreeMap<String, Vec<Bit>>,
    /// What drives a bit: whether it remembers (a flip-flop, a RAM, a cell of a pin), and the inputs that it looks at.
    drivers: BTreeMap<Bit, (bool, Vec<Bit>)>,
}

/// Cells without memory.
const LOGIC: [&str; 4] = ["LUT4", "PFUMX", "L6MUX21", "CCU2C"];

impl Netlist {
    fn read(json: &Value, top: &str) -> Netlist {
        let module = &json["modules"][top];
        // Constants are strings.
        let bits = |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_u64).collect::<Vec<Bit>>();
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let nets = object(&module["netnames"]).iter().map(|(name, net)| (name.clone(), bits(&net["bits"]))).collect();
        let mut drivers = BTreeMap::new();
        for cell in object(&module["cells"]).values() {
            let (mut from, mut to) = (Vec::new(), Vec::new());
            for (port, list) in &object(&cell["connections"]) {
                let side = if cell["port_directions"][port] == "output" { &mut to } else { &mut from };
                side.extend(bits(list));
            }
            let remembers = !LOGIC.iter().any(|logic| cell["type"] == *logic);
            drivers.extend(to.into_iter().map(|bit| (bit, (remembers, from.clone()))));
        }
        Netlist { nets, drivers }
    }

    /// What a flip-flop's next value depends on: bits of other flip-flops, of RAMs, of pins.
    fn sources(&self, flip_flop: Bit) -> BTreeSet<Bit> {
        let mut open = self.drivers.get(&flip_flop).map_or(Vec::new(), |(_, inputs)| inputs.clone());
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        while let Some(bit) = open.pop() {
            if !seen.insert(bit) {
                continue;
            }
            match self.drivers.get(&bit) {
                Some((false, inputs)) => open.extend(inputs),
                _ => drop(found.insert(bit)),
            }
        }
        found
    }

    /// Bits of all nets whose names `wanted` takes.
    fn bits(&self, wanted: impl Fn(&str) -> bool) -> BTreeSet<Bit> {
        self.nets.iter().filter(|(name, _)| wanted(name)).flat_map(|(_, bits)| bits).copied().collect()
    }
}

/// The counters of `registers.json` that nothing outside their bank changes, as `instance.counter`; and how many there are.
fn dead(netlist: &Netlist, registers: &Value) -> (Vec<String>, usize) {
    let mut counters: Vec<(String, BTreeSet<Bit>)> = Vec::new();
    for block in registers["blocks"].as_array().expect("blocks") {
        let instance = block["instance"].as_str().expect("an instance");
        for register in block["registers"].as_array().expect("registers").iter().filter(|r| r["kind"] == "counter") {
            let index = register["offset"].as_u64().expect("an offset") / 4;
            let tail = format!("bank.g_pending[{index}].g_held.held");
            let net = netlist
                .nets
                .iter()
                .find(|(name, _)| name.starts_with(&format!("u_{}.", instance.replace('-', "_"))) && name.ends_with(&tail));
            let sources = net.map_or_else(BTreeSet::new, |(name, bits)| {
                let bank = name.trim_end_matches(&tail);
                let own = netlist.bits(|n| {
                    n.strip_prefix(bank).is_some_and(|n| n == "bank.token" || n.starts_with("bank.g_pending[") && n.ends_with(".held"))
                });
                bits.iter().flat_map(|bit| netlist.sources(*bit)).filter(|bit| !own.contains(bit)).collect()
            });
            counters.push((format!("{instance}.{}", register["name"].as_str().expect("a name")), sources));
        }
    }
    // What all share is their reset.
    let mut shared = counters.iter().map(|(_, sources)| sources.clone()).filter(|sources| !sources.is_empty());
    let first = shared.next().unwrap_or_default();
    let shared = shared.fold(first, |all, sources| &all & &sources);
    let dead = counters.iter().filter(|(_, sources)| sources.is_subset(&shared)).map(|(name, _)| name.clone());
    (dead.collect(), counters.len())
}

/// Dead counters of `projects/ping` with `change` made to its SystemVerilog.
fn of_ping(change: impl Fn(&mut Emitted)) -> (Vec<String>, usize) {
    let cache = Cache::open().expect("a cache");
    let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Quiet).expect("tools.lock");
    let out = tempfile::tempdir().expect("a folder");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../projects/ping");
    let (made, _) =
        generate(&Options { dir, out: Some(out.path().to_owned()), target: Target::Fpga }, &cache).unwrap_or_else(|d| panic!("{d:?}"));
    let mut files = emitted(&made).unwrap_or_else(|d| panic!("{d:?}"));
    files.iter_mut().for_each(change);
    let synthesized =
        ecp5::synthesize(&tools, &files, &made.top, &[], &out.path().join("yosys.log")).unwrap_or_else(|d| panic!("{}", d.message));
    let text = std::fs::read(synthesized.folder.join("netlist.json")).expect("a netlist");
    let netlist = Netlist::read(&serde_json::from_slice(&text).expect("JSON"), &made.top);
    dead(&netlist, &made.registers().expect("a register map"))
}

#[test]
fn every_counter_is_alive_after_synthesis() {
    let (dead, all) = of_ping(|_| {});
    println!("{all} counters, dead: {dead:?}");
    assert_eq!((dead, all), (Vec::new(), 36));
}

#[test]
fn a_counter_that_was_cut_is_found() {
    let (dead, _) = of_ping(|file| {
        if file.path.ends_with("udp_echo.sv") {
            let cut = file.text.replacen("{lost, echoed}", "{1'b0, echoed}", 1);
            assert_ne!(cut, file.text, "what the echo counts is not where it was");
            file.text = cut;
        }
    });
    assert_eq!(dead, ["echo.dropped"]);
}
