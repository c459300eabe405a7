//! Board files as they are shipped, and every error that a board file can have.

use std::path::{Path, PathBuf};

use super::*;

fn boards() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../boards")
}

fn load(name: &str) -> Board {
    let path = boards().join(format!("{name}.toml"));
    match Board::load(&path) {
        Ok((board, remarks)) => {
            assert!(remarks.0.is_empty(), "{name}: {:?}", remarks.0);
            board
        }
        Err(found) => panic!("{name}: {:#?}", found.0.iter().map(|d| d.to_json()).collect::<Vec<_>>()),
    }
}

#[test]
fn every_board_loads_without_a_diagnostic() {
    let names: Vec<String> = list(&[boards()]).into_keys().collect();
    for name in &names {
        let board = load(name);
        assert_eq!(&*board.name, name);
        assert!(board.default_clock().is_some(), "{name} has a clock");
        assert!(!board.resources.is_empty(), "{name} has resources");
    }
    assert!(names.iter().any(|n| n == "colorlight-i5") && names.iter().any(|n| n == "sim"), "{names:?}");
}

/// The codes of a board file: the Colorlight i5's with a text replaced.
fn refused(from: &str, to: &str) -> Vec<Diagnostic> {
    let text = std::fs::read_to_string(boards().join("colorlight-i5.toml")).expect("the board is there");
    assert!(text.contains(from), "`{from}` is in the file");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("colorlight-i5.toml");
    std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
    match Board::load_in(&path, &[boards()]) {
        Ok(_) => panic!("`{to}` is accepted"),
        Err(found) => found.0,
    }
}

/// That there is one error, with this code, this in its message, this in its help, and that its place is `place` in the changed text.
#[track_caller]
fn one(from: &str, to: &str, code: &str, message: &str, help: &str, place: &str) {
    let found = refused(from, to);
    let [error] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(error.code, code, "{error:?}");
    assert!(error.message.contains(message), "{}", error.message);
    assert!(error.help.as_deref().unwrap_or_default().contains(help), "{:?}", error.help);
    let span = error.span.as_ref().expect("a place");
    assert_eq!(&span.file.text[span.range.clone()], place);
}

#[test]
fn a_misspelt_board_has_a_nearest_name() {
    let error = find(&[boards()], "colorlight-i6", None).expect_err("there is none");
    assert_eq!((error.code, error.help.as_deref()), ("GW0201", Some("did you mean `colorlight-i5`?")));
    assert!(find(&[boards()], "arty-a7", None).is_ok_and(|p| p.ends_with("arty-a7.toml")));
}

#[test]
fn wrong_parts_are_refused() {
    one("\"ecp5\"", "\"ecp6\"", "GW0202", "family `ecp6`", "`ecp5`", "\"ecp6\"");
    one("\"LFE5U-25F\"", "\"LFE5U-26F\"", "GW0202", "device `LFE5U-26F`", "LFE5U-25F", "\"LFE5U-26F\"");
    one("speed   = 6", "speed   = 5", "GW0202", "speed grade `5`", "`6`", "5");
    one("schema = 1", "schema = 2", "GW0202", "schema 2", "schema = 1", "2");
}

#[test]
fn wrong_resources_are_refused() {
    one("class = \"rgmii\"", "class = \"rgmi\"", "GW0203", "`rgmi`", "`rgmii`", "\"rgmi\"");
    one("tx_ctl  = \"K1\"", "tx_ctrl = \"K1\"\ntx_ctl = \"K1\"", "GW0205", "no pin `tx_ctrl`", "`tx_ctl`", "tx_ctrl");
    one("[\"G2\", \"H1\", \"J1\", \"J3\"]", "[\"G2\", \"H1\", \"J1\"]", "GW0205", "3 locations", "4 bits", "[\"G2\", \"H1\", \"J1\"]");
    one("[\"shared.mdio\"]", "[\"shared.mdoi\"]", "GW0206", "`shared.mdoi`", "`mdio`", "\"shared.mdoi\"");
    one("[\"shared.mdio\"]", "[\"mdio\"]", "GW0206", "not a shared resource", "shared.<name>", "\"mdio\"");
    one("\"H1\", \"J1\"", "\"H1\", \"H1\"", "GW0207", "pin H1 stands twice", "", "\"H1\"");
    one("rx-delay-ps  = 2000", "rx-dealy-ps  = 2000\nrx-delay-ps = 0", "GW0209", "no fact `rx-dealy-ps`", "`rx-delay-ps`", "rx-dealy-ps");
    one("mbps         = 1000", "mbps         = 100", "GW0209", "cannot be 100", "one of 1000", "100");
    one("rx-delay-ps  = 2000", "rx-delay-ps  = \"2 ns\"", "GW0209", "cannot be \"2 ns\"", "an integer", "\"2 ns\"");
    one("active = \"low\"\nio", "active = \"lo\"\nio", "GW0204", "cannot be `lo`", "`low`", "\"lo\"");
    one("[resource.leds]", "[resource.LEDs]", "GW0204", "`LEDs` cannot be a name", "lower case", "LEDs");
    one("mhz = 25", "mhz = -25", "GW0204", "not a frequency", "positive", "-25");
    one("name     = \"colorlight-i5\"", "name     = \"i5\"", "GW0204", "names its board `i5`", "name of its file", "\"i5\"");
}

#[test]
fn what_is_missing_is_named() {
    let found = refused("tx-delay-ps  = 0\n", "");
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), ["GW0209"]);
    assert!(found[0].message.contains("lacks the fact `tx-delay-ps`"), "{}", found[0].message);
    let found = refused("rx_clk  = \"H2\"\n", "");
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), ["GW0205"]);
    assert!(found[0].message.contains("lacks the pin `rx_clk`"), "{}", found[0].message);
}

#[test]
fn all_errors_of_a_file_come_at_once() {
    let found = refused("mhz = 25\nio  = \"LVCMOS33\"", "mhz = \"fast\"\nio  = \"LVCMOS33\"\ncolour = \"red\"");
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), ["GW0104", "GW0105"]);
}

/// A place that stands for one in a project file.
fn place(text: &str, at: usize) -> Span {
    let file = crate::diag::SourceFile { path: "project.toml".into(), text: text.into() };
    Span { file: Arc::new(file), range: at..at + 1 }
}

#[test]
fn a_pin_has_one_claim_and_shared_ones_have_many() {
    let board = load("colorlight-i5");
    let mut claims = Claims::new();
    let (a, b) = (place("ab", 0), place("ab", 1));
    let resource = |name: &str| board.resource(name).expect("the board has it");
    // Both ports use the PHYs' management bus: allowed.
    claims.resource(&board, resource("eth0"), &a).expect("eth0 is free");
    claims.resource(&board, resource("eth1"), &b).expect("eth1 is free, the bus is shared");
    let found = claims.resource(&board, resource("eth0"), &b).expect_err("taken").0;
    assert_eq!(found[0].code, "GW0207");
    assert_eq!((found[0].span.as_ref(), &found[0].related[0].0), (Some(&b), &a), "both places");

    let board = load("colorlight-5a-75b");
    let resource = |name: &str| board.resource(name).expect("the board has it");
    let mut claims = Claims::new();
    assert_eq!(board.free_reset(&claims).map(|r| r.name.value.as_str()), Some("button"));
    claims.resource(&board, resource("serial0"), &a).expect("free");
    assert!(board.free_reset(&claims).is_none(), "the button is the serial line's input");
    let found = claims.resource(&board, resource("leds"), &b).expect_err("the lamp is the serial line's output").0;
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("pin T6 is claimed by `resource.serial0` and by `resource.leds`"), "{}", found[0].message);
    assert_eq!((found[0].span.as_ref(), &found[0].related[0].0), (Some(&b), &a), "both places in the project");
    assert_eq!(found[0].related.len(), 3, "and both on the board");
    let found = claims.reset(&board.resets[0], &b).expect_err("taken").0;
    assert_eq!(found[0].code, "GW0207");
}

#[test]
fn a_resource_that_the_board_lacks_shows_both_places() {
    let board = load("ecpix-5");
    let at = place("links", 0);
    let error = board.need_resource("eth1", &at).expect_err("it has one port");
    assert_eq!((error.code, error.help.as_deref()), ("GW0208", Some("did you mean `eth0`?")));
    assert_eq!(error.span.as_ref(), Some(&at));
    assert!(error.related[0].0.path().ends_with("ecpix-5.toml"));
}

#[test]
fn every_rgmii_port_has_its_delays_and_their_source() {
    let mut ports = Vec::new();
    for name in list(&[boards()]).into_keys() {
        let board = load(&name);
        for resource in board.resources.iter().filter(|r| r.class.name == "rgmii") {
            let port = format!("{name}.{}", resource.name.value);
            let delays = (resource.integer("tx-delay-ps"), resource.integer("rx-delay-ps"));
            let (Some(tx), Some(rx)) = delays else { panic!("{port} lacks a delay") };
            assert!(resource.facts.contains_key("delay-source"), "{port} says where they come from");
            ports.push(format!("{port} {tx}/{rx}"));
        }
    }
    let expected = [
        "butterstick.eth0 2000/0",
        "colorlight-5a-75b.eth0 0/2000",
        "colorlight-5a-75b.eth1 0/2000",
        "colorlight-i5.eth0 0/2000",
        "colorlight-i5.eth1 0/2000",
        "ecpix-5.eth0 2000/0",
        "nexys-video.eth0 2000/2000",
        "versa-ecp5.eth0 0/0",
        "versa-ecp5.eth1 0/0",
    ];
    assert_eq!(ports, expected);
}

#[test]
fn all_twelve_boards_are_there_and_only_one_has_no_pins() {
    let boards: Vec<Board> = list(&[boards()]).into_keys().map(|n| load(&n)).collect();
    assert_eq!(boards.len(), 12);
    let open: Vec<&str> = boards.iter().filter(|b| b.flow.open).map(|b| b.name.value.as_str()).collect();
    assert_eq!(open, ["butterstick", "colorlight-5a-75b", "colorlight-i5", "ecpix-5", "versa-ecp5"]);
    for board in &boards {
        let name = &board.name.value;
        assert_eq!(board.is_simulation_only(), name == "sim");
        assert_eq!(board.pll_limits().is_none(), name == "sim");
        assert!(!board.system_clocks().is_empty(), "{name}");
        assert_eq!(board.flow.open, board.device.nextpnr.is_some(), "{name}: what nextpnr places has an open flow");
        let pins = board.resources.iter().flat_map(|r| &r.pins).filter(|p| !p.locations.is_empty()).count();
        assert_eq!(pins == 0, name == "sim", "{name}");
    }
}

#[test]
fn plugins_see_facts_as_canonical_json() {
    let facts = load("colorlight-i5").facts_json();
    assert_eq!(facts["resources"]["eth0"]["facts"]["rx-delay-ps"], 2000);
    assert_eq!(facts["resources"]["eth0"]["clock-hz"]["1000"], 125_000_000);
    assert_eq!(facts["resources"]["sdram0"]["pins"]["dq"], 32);
    assert_eq!(facts["clocks"]["clk25"], 25_000_000);
    let sim = load("sim").facts_json();
    assert_eq!(sim["resources"]["eth0"]["rates-mbps"], json!([1000, 10000, 100_000]));
    assert_eq!(sim["resources"]["eth0"]["data-width"]["100000"], 512);
    // Canonical: every object's keys are sorted in the text.
    fn sorted(value: &Json) -> bool {
        match value {
            Json::Object(map) => map.keys().is_sorted() && map.values().all(sorted),
            Json::Array(list) => list.iter().all(sorted),
            _ => true,
        }
    }
    assert!(sorted(&facts) && sorted(&sim));
}

#[test]
fn ports_of_the_top_level_are_named_after_resource_and_pin() {
    let board = load("colorlight-i5");
    let ports = board.resource("sdram0").expect("sdram0").top_ports(0);
    let dq = ports.iter().find(|p| p.name == "sdram0_dq").expect("dq");
    assert_eq!((dq.dir, dq.bus, dq.width, dq.locations[31].as_str()), (Dir::InOut, true, 32, "C15"));
    assert_eq!(dq.attrs.get("SLEWRATE").map(String::as_str), Some("FAST"));
    let clock = ports.iter().find(|p| p.name == "sdram0_clock").expect("clock");
    assert_eq!((clock.bus, clock.attrs.get("SLEWRATE").map(String::as_str)), (false, Some("SLOW")));
    let stream = load("sim").resource("eth0").expect("eth0").top_ports(512);
    assert_eq!(stream.iter().find(|p| p.name == "eth0_rx_tkeep").map(|p| p.width), Some(64));
    // A pin that the interface does not have gets no port.
    let arty = load("arty-a7");
    let eth0 = arty.resource("eth0").expect("eth0");
    assert!(eth0.pin("crs").is_some() && eth0.top_ports(0).iter().all(|p| p.name != "eth0_crs"));
}
