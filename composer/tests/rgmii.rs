//! RGMII on each board that has it: with the delays of its board file the PHY's and the FPGA's windows are kept and a datagram
//! comes back; with a delay that is off by a bit's width of error, the run ends with the window that was missed.

use std::fs;
use std::path::Path;

use gateweave::cache::Cache;
use gateweave::pipeline::generate::Options;
use gateweave::pipeline::simulate::simulation;
use gateweave::plugin::types::Target;
use gateweave::sim::{self, PinDelay, RunOptions, SimPlan, Trace};
use gateweave::tools::{Origin, Talk, Tools};

struct Bench {
    folder: tempfile::TempDir,
    tools: Tools,
    plan: SimPlan,
}

fn bench(board: &str) -> Bench {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open().expect("a cache");
    let tools = Tools::new(cache.clone(), Origin::Pinned, Talk::Quiet).expect("tools");
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").canonicalize().expect("plugins/");
    let text = format!(
        "schema = 1\nproject = {{ name = \"rgmii\", board = \"{board}\", plugins = [\"{}\"] }}\n\
         [instance.mac0]\nplugin = \"mac\"\nlinks = {{ phy = \"board.eth0\" }}\n\
         [instance.net]\nplugin = \"ip-udp\"\nparams = {{ mac = \"02:47:57:00:00:01\", ip = \"192.168.7.2/24\" }}\n\
         links = {{ frames = \"mac0.frames\" }}\n\
         [instance.echo]\nplugin = \"udp-echo\"\nlinks = {{ udp = \"net.udp\" }}\n",
        plugins.display()
    );
    fs::write(folder.path().join("project.toml"), text).expect("a file");
    let pattern = "schema = 1\n[from]\nmac = \"02:00:00:00:00:01\"\nip = \"192.168.7.1\"\n[to]\nmac = \"02:47:57:00:00:01\"\nip = \"192.168.7.2\"\n\
                   [step.arp]\nat = \"50us\"\narp = {}\n[step.echo]\nat = \"60us\"\nudp = { src-port = 40000, dst-port = 7 }\nlength = 100\ncount = 20\n";
    fs::write(folder.path().join("pattern.toml"), pattern).expect("a file");
    let options = Options { dir: folder.path().to_owned(), out: Some(folder.path().join("out")), target: Target::Simulation };
    let (_, plan, _) = simulation(&options, &cache).unwrap_or_else(|d| panic!("{board}: {:?}", d.0));
    Bench { folder, tools, plan }
}

/// Frames that came back, or the code and text of what ended the run.
fn run(bench: &Bench, plan: &SimPlan) -> Result<u64, (String, String)> {
    let simulator = sim::build(plan, Trace::None, &bench.tools).unwrap_or_else(|d| panic!("{}", d.message));
    let wires = vec![format!("pattern:{}", bench.folder.path().join("pattern.toml").display()).parse().expect("a wire")];
    match sim::run(&simulator, &RunOptions { wires, ..RunOptions::default() }) {
        Ok(summary) => Ok(summary.wire("eth0").expect("eth0 has a wire").frames_out),
        Err(d) => Err((d.0[0].code.to_owned(), d.0[0].message.clone())),
    }
}

/// The same plan with `ps` more delay at a pin.
fn off(plan: &SimPlan, pin: &str, ps: u64) -> SimPlan {
    let mut plan = plan.clone();
    for resource in plan.resources.iter_mut().filter(|r| r.class == "rgmii") {
        match resource.delays.iter_mut().find(|d| d.pin == pin) {
            Some(delay) => delay.ps += ps,
            None => resource.delays.push(PinDelay { pin: pin.to_owned(), ps }),
        }
    }
    plan
}

fn windows_are_kept(board: &str) {
    let bench = bench(board);
    assert_eq!(run(&bench, &bench.plan), Ok(21), "{board}: with the delays of its file");
    // 1.9 ns of 4: nearer to the next edge than to its own.
    for pin in ["rx_data", "tx_data"] {
        let (code, message) = run(&bench, &off(&bench.plan, pin, 1900)).expect_err("a missed window");
        assert_eq!(code, "GW0720", "{board}, {pin}: {message}");
        println!("{board}: {pin} 1.9 ns late: {}", message.split(';').next().unwrap_or_default());
    }
}

#[test]
fn colorlight_i5() {
    windows_are_kept("colorlight-i5");
}

#[test]
fn colorlight_5a_75b() {
    windows_are_kept("colorlight-5a-75b");
}

#[test]
fn ecpix_5() {
    windows_are_kept("ecpix-5");
}

#[test]
fn butterstick() {
    windows_are_kept("butterstick");
}

#[test]
fn versa_ecp5() {
    windows_are_kept("versa-ecp5");
}

#[test]
fn nexys_video() {
    windows_are_kept("nexys-video");
}
