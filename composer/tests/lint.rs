//! What is emitted for a whole project passes `verilator --lint-only -Wall`, with the waivers that go with it and no others.

use std::path::{Path, PathBuf};

use gateweave::build::family::Family;
use gateweave::cache::Cache;
use gateweave::manifest::board::Board;
use gateweave::pipeline::bitstream::{self, emitted};
use gateweave::pipeline::generate::{Options, generate};
use gateweave::plugin::types::Target;
use gateweave::tools::{Origin, Talk, Tools};

/// Lints a project and returns its top level in Veryl. `family` is that of its board's primitives; `None` lints the simulation.
fn lint(project: &Path, family: Option<Family>) -> String {
    let target = if family.is_some() { Target::Fpga } else { Target::Simulation };
    let cache = Cache::open().expect("a cache");
    let out = tempfile::tempdir().expect("a folder");
    let options = Options { dir: project.to_owned(), out: Some(out.path().to_owned()), target };
    let (generated, _) = generate(&options, &cache).unwrap_or_else(|d| panic!("{d:?}"));
    let files = emitted(&generated).unwrap_or_else(|d| panic!("{d:?}"));
    assert!(files.len() > 20, "only {} files", files.len());
    let tools = Tools::new(cache, Origin::Pinned, Talk::Quiet).expect("tools.lock");
    let messages = bitstream::lint(&tools, &generated, &files, family).unwrap_or_else(|d| panic!("{}: {}", d.code, d.message));
    assert!(messages.is_empty(), "{messages:#?}");
    let top =
        generated.files.iter().find(|p| p.parent().is_some_and(|f| f.ends_with("hdl/top")) && p.extension().is_some_and(|e| e == "veryl"));
    let top = out.path().join(top.expect("a top level"));
    std::fs::read_to_string(&top).unwrap_or_else(|e| panic!("{}: {e}", top.display()))
}

fn ping() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("projects/ping")
}

#[test]
fn the_bitstreams_hdl_is_free_of_lint() {
    lint(&ping(), Some(Family::Ecp5));
}

/// One board for each set of primitives and each kind of hard MAC; the i5 has its own test.
const SOME: [&str; 3] = ["nexys-video", "kcu105", "alveo-u250"];

/// `projects/ping` on other boards (all with `GATEWEAVE_ALL_BENCHES`), without its register bridge where there is no serial line.
#[test]
fn other_boards_hdl_is_free_of_lint() {
    let all = std::env::var_os("GATEWEAVE_ALL_BENCHES").is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository");
    let text = std::fs::read_to_string(ping().join("project.toml"))
        .expect("the project")
        .replace("../../plugins", &root.join("plugins").to_string_lossy());
    let mut boards = 0;
    for file in std::fs::read_dir(root.join("boards")).expect("boards").map(|e| e.expect("an entry").path()).filter(|p| p.is_file()) {
        let (board, _) = Board::load(&file).unwrap_or_else(|d| panic!("{}: {d:?}", file.display()));
        if board.is_simulation_only() || !(all || SOME.contains(&board.name.value.as_str())) {
            continue;
        }
        let serial = board.resource("serial0").is_some();
        let part = if serial { text.as_str() } else { text.split("[instance.regs]").next().unwrap_or_default() };
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("project.toml"), part.replace("colorlight-i5", &board.name.value)).expect("a file");
        println!("{}", board.name.value);
        lint(folder.path(), Some(bitstream::family(&board)));
        boards += 1;
    }
    assert!(boards >= if all { 11 } else { SOME.len() }, "only {boards} boards");
}

#[test]
fn the_simulations_hdl_is_free_of_lint() {
    lint(&ping(), None);
}

/// A project with memory behind a controller from elsewhere, a client that is narrower, one on a clock of its own, and ping beside them.
fn controller(board: &str, clocks: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository");
    let text = r#"
schema  = 1
project = { name = "controller", board = "BOARD", plugins = ["ROOT/plugins", "ROOT/composer/tests/plugins"] }
CLOCKS
[instance.ram]
plugin = "dram-dma"
params = { backend = "axi" }
links  = { controller = "board.ddr0" }
[instance.scribe]
plugin = "scribe"
links  = { memory = "ram.memory" }
[instance.own]
plugin = "links"
params = { width = 512, hz = 100_000_000 }
links  = { memory = "ram.memory" }
[instance.near]
plugin = "dram-dma"
[instance.far]
plugin = "links"
params = { hz = 100_000_000 }
links  = { memory = "near.memory" }
[instance.mac0]
plugin = "mac"
links  = { phy = "board.eth0" }
[instance.net]
plugin = "ip-udp"
params = { mac = "02:47:57:00:00:01", ip = "192.168.7.2/24", mtu = 1500 }
links  = { frames = "mac0.frames" }
[instance.echo]
plugin = "udp-echo"
links  = { udp = "net.udp" }
[instance.regs]
plugin = "uart-regs"
links  = { serial = "board.serial0" }
"#;
    let text = text.replace("ROOT", &root.to_string_lossy()).replace("BOARD", board).replace("CLOCKS", clocks);
    std::fs::write(folder.path().join("project.toml"), text).expect("a file");
    folder
}

fn has_parts(top: &str, parts: &[&str]) {
    let squeezed = top.split_whitespace().collect::<String>().replace(",)", ")");
    for part in parts {
        assert!(squeezed.contains(part), "{part} is not in\n{top}");
    }
}

/// A converter stands on the faster clock; the registers of the memory, which is in the controller's domain, cross as well.
#[test]
fn memory_behind_a_controller_from_elsewhere_is_free_of_lint() {
    let slow = lint(controller("kcu105", "clocks = { sys = \"156.25 MHz\" }").path(), Some(Family::Xcu));
    has_parts(
        &slow,
        &[
            "instl_ddr0:'ddr0kinds::axi4_memory#(ID_W:1,ADDR_W:31,DATA_W:512)",
            "instl_scribe_memory_0:'ddr0kinds::axi4#(ADDR_W:32,DATA_W:32)",
            "instu_scribe_memory_width:gw::axi4_width#(CLIENT_W:32,MEMORY_W:512)(clk:clk_ddr0,rst:rst_ddr0,client:l_scribe_memory_0,memory:l_ram_memory_clients[0])",
            "instu_scribe_memory_cross:gw::axi4_cdc#(ADDR_W:32,DATA_W:32)(clk_client:clk_sys,rst_client:rst_sys,clk_memory:clk_ddr0,rst_memory:rst_ddr0,client:l_scribe_memory,memory:l_scribe_memory_0)",
            "instu_far_memory_cross:gw::axi4_cdc#(ADDR_W:32,DATA_W:32)",
            "instu_cross_ram_regs:gw::axil_cdc(clk_s:clk_sys,rst_s:rst_sys,clk_d:clk_ddr0,rst_d:rst_ddr0",
        ],
    );
    lint(controller("vcu118", "").path(), Some(Family::Xcup));
    let fast = lint(controller("sim", "clocks = { sys = \"322.265625 MHz\" }").path(), None);
    has_parts(
        &fast,
        &[
            "instu_scribe_memory_cross:gw::axi4_cdc#(ADDR_W:32,DATA_W:512)",
            "instu_scribe_memory_width:gw::axi4_width#(CLIENT_W:32,MEMORY_W:512)(clk:clk_sys,rst:rst_sys,client:l_scribe_memory,memory:l_scribe_memory_0)",
        ],
    );
}

/// Memory with clients of two widths and priorities, wires between instances: arrays of several links, and ports without one; packets through FIFOs
/// in LUT RAM and in block RAM.
#[test]
fn shared_memory_and_wires_between_instances_are_free_of_lint() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository");
    let text = r#"
schema  = 1
project = { name = "shared", board = "sim", plugins = ["ROOT/plugins", "ROOT/composer/tests/plugins"] }
[instance.ram]
plugin = "dram-dma"
[instance.one]
plugin = "links"
params = { width = 256 }
links  = { memory = "ram.memory", manage = "two.control" }
[instance.two]
plugin = "links"
links  = { memory = { to = "ram.memory", priority = 5 }, work = "one.rdma", request = "one.connections" }
[instance.three]
plugin = "links"
params = { burst = 64 }
links  = { memory = "ram.memory", work = "one.rdma", request = "one.connections" }
[instance.four]
plugin = "links"
[instance.mac0]
plugin = "mac"
links  = { phy = "board.eth0" }
[instance.net]
plugin = "ip-udp"
params = { mac = "02:47:57:00:00:01", ip = "192.168.7.2/24", mtu = 1500 }
links  = { frames = { to = "mac0.frames", fifo = 50 } }
[instance.echo]
plugin = "udp-echo"
links  = { udp = { to = "net.udp", width = 64, fifo = 5000 } }
"#;
    std::fs::write(folder.path().join("project.toml"), text.replace("ROOT", &root.to_string_lossy())).expect("a file");
    let top = lint(folder.path(), None);
    let parts = [
        "instl_ram_memory_clients:'syskinds::axi4[3]#(ADDR_W:32,DATA_W:256",
        "instu_arbiter_ram_memory:gw::axi4_arbiter#(M:3,ADDR_W:32,DATA_W:256,DEPTH:64,BLOCK:true,PRIORITY:{3'd0,3'd5,3'd0}",
        "memory:l_ram_memory_clients[0],",
        "instu_two_memory_width:gw::axi4_width#(CLIENT_W:32,MEMORY_W:256",
        "client:l_two_memory,memory:l_ram_memory_clients[1]",
        "instl_one_rdma:'syskinds::rdma[2]",
        "work:l_one_rdma[1],",
        "instu_stub_one_work:gw::rdma_stub_provider",
        "instu_stub_two_connections:gw::rdma_cm_stub_client(link:l_two_connections[0]",
        "manage:l_two_control",
        "instu_net_frames_0:gw::packet_rx_fifo#(W:16,RU:1,DEPTH:32,BLOCK:false)(clk:clk_sys,rst:rst_sys,up:l_mac0_frames,down:l_net_frames)",
        "instu_echo_udp_1:gw::packet_rx_fifo#(W:64,RU:kinds::ip_udp::RX_W,DEPTH:1024,BLOCK:true)",
        "instu_stub_four_memory:gw::axi4_stub_provider",
        "instu_stub_four_control:gw::roce_control_stub_client",
    ];
    has_parts(&top, &parts);
}
