//! LPF, XDC and Vivado scripts of real boards.

use std::path::{Path, PathBuf};

use super::*;
use crate::emit::vendor::{VivadoProject, board_level};

fn boards() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../boards")
}

fn load(name: &str) -> Board {
    match Board::load(&boards().join(format!("{name}.toml"))) {
        Ok((board, _)) => board,
        Err(found) => panic!("{name}: {:?}", found.0),
    }
}

/// Everything of a board that a project like `ping` uses.
fn plan(board: &Board, resources: &[&str]) -> Constraints {
    let oscillator = board.default_clock().expect("a board has a clock");
    let mut plan = Constraints { design: "ping".into(), ports: oscillator.top_ports(), ..Constraints::default() };
    plan.clocks.push(ClockLine { at: ClockAt::Port(oscillator.name.value.clone()), hz: oscillator.hz, comment: "oscillator".into() });
    plan.clocks.push(ClockLine { at: ClockAt::PllNet("clk_sys".into()), hz: 62_500_000, comment: "system clock".into() });
    plan.ports.extend(board.resets.first().map(|r| r.top_port()));
    for name in resources {
        let resource = board.resource(name).expect("the board has it");
        plan.ports.extend(resource.top_ports(512).into_iter().filter(|_| !resource.class.virtual_pins));
        for shared in board.shared_of(resource) {
            plan.ports.extend(shared.top_ports(0));
        }
        if let (Some(pin), Some(hz)) = (resource.class.clock_pin(), resource.rates_mbps().first().and_then(|m| resource.clock_hz(*m)))
            && !resource.class.virtual_pins
        {
            let at = ClockAt::Port(format!("{name}_{}", pin.name));
            plan.clocks.push(ClockLine { at, hz, comment: "from the PHY".into() });
        }
        if resource.class.name == "rgmii" {
            plan.delays.extend(rgmii_delays(resource));
        }
        if resource.class.virtual_pins {
            plan.vendor_ip.push(resource.clone());
        }
    }
    plan.exceptions.push(Timing {
        rule: TimingRule::MaxDelay,
        start: "mac0/rx_gray".into(),
        end: "mac0/rx_gray_meta".into(),
        value_ps: 8000,
        why: "Gray pointer: its bits may differ by less than one period of the writing clock".into(),
    });
    plan
}

#[test]
fn lpf_of_the_colorlight_i5() {
    let board = load("colorlight-i5");
    insta::assert_snapshot!(plan(&board, &["eth0", "serial0", "leds"]).lpf(&board).expect("every port has a pin"));
}

#[test]
fn xdc_of_the_nexys_video() {
    let board = load("nexys-video");
    insta::assert_snapshot!(plan(&board, &["eth0", "serial0", "leds"]).xdc(&board).expect("every port has a pin"));
}

#[test]
fn everything_for_a_board_with_a_hard_mac() {
    let board = load("vcu118");
    let mut plan = plan(&board, &["eth0", "serial0"]);
    let eth0 = board.resource("eth0").expect("eth0");
    let mut ports = plan.ports.clone();
    ports.extend(eth0.top_ports(512));
    let level = board_level(&board, "ping", "top_top", &ports, &plan.vendor_ip).expect("the board has four more oscillators");
    assert_eq!(level.init_clock.name.value, "clk250");
    plan.ports.clone_from(&level.ports);
    let at = ClockAt::Port(level.init_clock.name.value.clone());
    plan.clocks.push(ClockLine { at, hz: level.init_clock.hz, comment: "start-up of the MACs".into() });
    insta::assert_snapshot!("vcu118_board", level.text);
    insta::assert_snapshot!("vcu118_xdc", plan.xdc(&board).expect("every port has a pin"));
    let project = VivadoProject {
        design: "ping",
        top: &level.module,
        sources: &["hdl/gw.sv".into(), "hdl/top.sv".into(), "hdl/ping_board.sv".into()],
        xdc: "ping.xdc",
        vendor_ip: &plan.vendor_ip,
    };
    insta::assert_snapshot!("vcu118_tcl", project.tcl(&board).expect("the template renders"));
}

#[test]
fn a_board_without_a_free_oscillator_cannot_start_a_hard_mac() {
    let board = load("kcu105");
    let ports: Vec<_> = board.clocks.iter().flat_map(|c| c.top_ports()).collect();
    let macs = [board.resource("eth0").expect("eth0").clone()];
    let error = board_level(&board, "ping", "top_top", &ports, &macs).expect_err("both oscillators are taken");
    assert_eq!(error.code, "GW0213");
    // The reference clock of the KCU105's cages is not known: it has a port and no pin.
    let level = board_level(&board, "ping", "top_top", &ports[..2], &macs).expect("clk300 is free");
    assert!(level.text.contains("input  wire eth0_ref_p") && !level.ports.iter().any(|p| p.name == "eth0_ref_p"));
    assert!(level.ports.iter().any(|p| p.name == "eth0_gt_rx_p" && p.locations == ["T2"]));
}

#[test]
fn a_port_without_a_pin_is_refused() {
    let board = load("sim");
    let error = plan(&board, &["serial0"]).lpf(&board).expect_err("sim has no pins");
    assert_eq!(error.code, "GW0211");
    assert!(error.message.contains("`clk`"), "{}", error.message);
}

#[test]
fn rgmii_timing_follows_the_delays_of_the_board() {
    let board = load("butterstick");
    let delays = rgmii_delays(board.resource("eth0").expect("eth0"));
    // The PHY delays rx_clk by 1.2 ns, so data changes 2.8 ns (+- 0.5) after the edge before; the FPGA delays tx_clk by 2 ns.
    assert_eq!((delays[0].max_ps, delays[0].min_ps), (3300, 2300));
    assert_eq!((delays[1].max_ps, delays[1].min_ps), (1000, -1000));
    let board = load("colorlight-i5");
    let delays = rgmii_delays(board.resource("eth1").expect("eth1"));
    // The FPGA does not delay tx_clk, so the PHY must.
    assert_eq!((delays[1].max_ps, delays[1].min_ps), (-1000, -3000));
}
