//! Places of register blocks, the lock file, and the register map in all its forms.

use std::path::Path;

use gateweave::compose::registers::{Map, SPACE, Table, allocate};
use gateweave::diag::Diagnostics;
use gateweave::emit::registers;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn table(size: u64) -> Table {
    let tables = json!({ "registers": { "size": size, "list": [
        { "name": "rx_good", "offset": 0, "access": "ro", "kind": "counter", "doc": "frames passed on", "fields": [] } ] } });
    Table::from_tables("x", &tables).expect("a good table").expect("a table")
}

fn project(instances: &[(&str, u64)]) -> Vec<(String, Table)> {
    instances.iter().map(|(name, size)| ((*name).to_owned(), table(*size))).collect()
}

/// Allocates with a lock file of this text, and writes the new one.
fn with_lock(folder: &Path, instances: &[(&str, u64)]) -> Result<Map, Diagnostics> {
    let path = folder.join("registers.lock");
    let map = allocate(&project(instances), Some(&path))?;
    map.write_lock(&path).expect("the folder is writable");
    Ok(map)
}

fn codes(faults: &Diagnostics) -> Vec<&str> {
    faults.0.iter().map(|d| d.code).collect()
}

fn sound(map: &Map) {
    for (i, a) in map.blocks.iter().enumerate() {
        assert!(a.size.is_power_of_two() && a.base % a.size == 0 && a.base + a.size <= SPACE, "{a:?}");
        assert!(a.size >= a.table.size, "{a:?}");
        for b in &map.blocks[i + 1..] {
            assert!(a.base + a.size <= b.base, "{a:?} meets {b:?}");
        }
    }
}

#[test]
fn without_a_lock_blocks_pack_and_without_blocks_there_is_no_file() {
    let map = allocate(&project(&[("b", 64), ("a", 64), ("big", 1024)]), None).expect("room");
    sound(&map);
    let places: Vec<_> = map.blocks.iter().map(|b| (b.instance.as_str(), b.base, b.size)).collect();
    assert_eq!(places, [("big", 0, 1024), ("a", 1024, 64), ("b", 1088, 64)]);
    assert_eq!(map.block("big").map(|b| b.size_log2()), Some(10));
    assert_eq!(allocate(&[], None).expect("nothing").lock, None);
}

#[test]
fn the_lock_keeps_comments_and_order_and_is_written_only_when_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("registers.lock");
    std::fs::write(&path, "schema = 1\n\n[block] # ours\nmac0 = { base = 0x0400, size = 64 } # the driver relies on it\n")
        .expect("written");
    let map = with_lock(folder.path(), &[("net", 128), ("mac0", 64)]).expect("room");
    assert_eq!(map.block("mac0").map(|b| b.base), Some(0x400));
    let text = std::fs::read_to_string(&path).expect("there");
    assert_eq!(
        text,
        "schema = 1\n\n[block] # ours\nmac0 = { base = 0x0400, size = 64 } # the driver relies on it\nnet = { base = 0x0000, size = 128 }\n"
    );
    assert_eq!(with_lock(folder.path(), &[("net", 128), ("mac0", 64)]).expect("room").lock, None);
}

#[test]
fn an_instance_that_is_gone_keeps_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    with_lock(folder.path(), &[("a", 64), ("b", 64)]).expect("room");
    let map = with_lock(folder.path(), &[("b", 64), ("c", 64)]).expect("room");
    assert_eq!(map.block("b").map(|b| b.base), Some(0x40));
    assert_eq!(map.block("c").map(|b| b.base), Some(0x80));
    let map = with_lock(folder.path(), &[("a", 64), ("b", 64), ("c", 64)]).expect("room");
    assert_eq!(map.block("a").map(|b| b.base), Some(0));
}

#[test]
fn a_block_grows_in_place_where_it_can_and_moves_with_a_warning_where_not() {
    let folder = tempfile::tempdir().expect("a folder");
    with_lock(folder.path(), &[("a", 64), ("b", 64)]).expect("room");
    let map = with_lock(folder.path(), &[("a", 128), ("b", 64)]).expect("room");
    sound(&map);
    assert_eq!(codes(&map.warnings), ["GW0453"]);
    assert!(map.warnings.0[0].span.is_some(), "the warning shows the line");
    assert_eq!(map.block("a").map(|b| b.base), Some(0x80));
    assert_eq!(map.block("b").map(|b| b.base), Some(0x40));
    let map = with_lock(folder.path(), &[("a", 256), ("b", 64)]).expect("room");
    assert_eq!(map.block("a").map(|b| b.base), Some(0x100), "0x80 is no multiple of 256");
    let map = with_lock(folder.path(), &[("a", 256), ("b", 64), ("c", 4)]).expect("room");
    assert!(map.warnings.0.is_empty());
    let map = with_lock(folder.path(), &[("a", 512), ("b", 64), ("c", 4)]).expect("room");
    assert_eq!(codes(&map.warnings), ["GW0453"]);
    let map = with_lock(folder.path(), &[("a", 32), ("b", 64), ("c", 4)]).expect("room");
    assert_eq!((map.lock, map.blocks.len()), (None, 3), "a block that shrinks keeps its place");
}

#[test]
fn a_bad_lock_is_an_error_with_a_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("registers.lock");
    for (text, code, line) in [
        ("schema = ", "GW0102", 1),
        ("block = 3\nschema = 1\n", "GW0105", 1),
        ("[block]\n", "GW0103", 1),
        ("schema = 2\n", "GW0106", 1),
        ("schema = 1\n[block]\na = { base = 0, size = 64, bse = 1 }\n", "GW0104", 3),
        ("schema = 1\n[block]\na = { base = 0 }\n", "GW0103", 3),
        ("schema = 1\n[block]\na = 5\n", "GW0105", 3),
        ("schema = 1\n[block]\na = { base = 0, size = 48 }\n", "GW0451", 3),
        ("schema = 1\n[block]\na = { base = 32, size = 64 }\n", "GW0451", 3),
        ("schema = 1\n[block]\na = { base = -64, size = 64 }\n", "GW0106", 3),
        ("schema = 1\n[block]\na = { base = 0x10000, size = 64 }\n", "GW0106", 3),
        ("schema = 1\n[block]\na = { base = 0, size = 64 }\nb = { base = 0, size = 128 }\n", "GW0452", 4),
    ] {
        std::fs::write(&path, text).expect("written");
        let faults = allocate(&project(&[("a", 64)]), Some(&path)).map(drop).expect_err(text);
        assert_eq!(codes(&faults), [code], "{text}");
        assert_eq!(faults.0[0].span.as_ref().map(|s| s.start().0), Some(line), "{text}");
    }
    std::fs::write(&path, b"schema = 1\n\xff").expect("written");
    assert_eq!(codes(&allocate(&[], Some(&path)).map(drop).expect_err("not UTF-8")), ["GW0450"]);
}

#[test]
fn a_full_space_names_what_is_reserved_for_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    with_lock(folder.path(), &[("old", SPACE / 2), ("a", SPACE / 2)]).expect("room");
    let faults = with_lock(folder.path(), &[("a", SPACE / 2), ("b", 64)]).map(drop).expect_err("full");
    assert_eq!(codes(&faults), ["GW0454"]);
    assert!(faults.0[0].help.as_deref().is_some_and(|help| help.contains("`old`")), "{:?}", faults.0[0].help);
}

#[test]
fn a_wrong_table_is_refused_with_every_fault() {
    let list = |list: Json| json!({ "registers": { "size": 16, "list": list } });
    for (tables, wanted) in [
        (json!({ "registers": 1 }), "/registers`: not an object"),
        (json!({ "registers": { "size": 48, "list": [] } }), "not a power of two"),
        (json!({ "registers": { "size": 1u64 << 40, "list": [] } }), "not an integer from 0 to 65536"),
        (json!({ "registers": { "size": 16, "lst": [] } }), "unknown key `lst`"),
        (list(json!([{ "name": "a", "offset": 2, "access": "ro" }])), "/registers/list/0/offset`: offset 2"),
        (list(json!([{ "name": "a", "offset": 16, "access": "ro" }])), "offset 16"),
        (list(json!([{ "name": "A b", "offset": 0, "access": "ro" }])), "not a name"),
        (list(json!([{ "name": "a", "offset": 0, "access": "r" }])), "not one of ro, rw, wo, w1c"),
        (list(json!([{ "name": "a", "offset": 0, "access": "rw", "kind": "counter" }])), "a counter is `ro`"),
        (
            list(json!([{ "name": "a", "offset": 0, "access": "ro" }, { "name": "a", "offset": 4, "access": "ro" }])),
            "two registers are named `a`",
        ),
        (
            list(json!([{ "name": "a", "offset": 4, "access": "ro" }, { "name": "b", "offset": 4, "access": "ro" }])),
            "`a` and `b` are both at offset 0x4",
        ),
        (
            list(json!([{ "name": "a", "offset": 0, "access": "ro", "fields": [{ "name": "f", "lsb": 30, "width": 3 }] }])),
            "3 bits from bit 30",
        ),
        (
            list(json!([{ "name": "a", "offset": 0, "access": "ro",
                "fields": [{ "name": "f", "lsb": 0, "width": 3 }, { "name": "g", "lsb": 2, "width": 1 }] }])),
            "`f` and `g` share bit 2",
        ),
    ] {
        let faults = Table::from_tables("net", &tables).map(drop).expect_err(wanted);
        assert!(faults.0.iter().all(|d| d.code == "GW0455" && d.message.contains("`net`")), "{faults:?}");
        assert!(faults.0.iter().any(|d| d.message.contains(wanted)), "{wanted}: {faults:?}");
    }
    assert_eq!(Table::from_tables("net", &json!({})).expect("no registers"), None);
    assert_eq!(Table::from_tables("net", &Json::Null).expect("no registers"), None);
}

/// Instances with hostile names and documentation, as `registers.json` and its sisters must hold them.
fn hostile() -> Map {
    let tables = json!({ "registers": { "size": 64, "list": [
        { "name": "control", "offset": 8, "access": "rw", "kind": "control", "reset": 5u32, "doc": "a | b <c> & \"d\" */ e\n\u{1}f",
          "fields": [ { "name": "enable", "lsb": 0, "width": 1, "doc": "on" }, { "name": "whole", "lsb": 1, "width": 31, "doc": "" } ] },
        { "name": "events", "offset": 4, "access": "w1c", "doc": "what happened" },
        { "name": "push", "offset": 12, "access": "wo" },
        { "name": "rx_good", "offset": 0, "access": "ro", "kind": "counter", "doc": "frames passed on" } ] } });
    let table = Table::from_tables("x", &tables).expect("good").expect("there");
    let empty = Table { size: 4, list: Vec::new() };
    allocate(&[("mac-0".to_owned(), table), ("9 <lives>".to_owned(), empty)], None).expect("room")
}

#[test]
fn the_json_has_every_register_with_its_address() {
    let files = registers::files("ping", &hostile()).expect("rendered");
    let json: Json = serde_json::from_str(&files.json).expect("JSON");
    assert_eq!(json["blocks"][1]["instance"], "mac-0");
    assert_eq!(json["blocks"][1]["registers"][2]["name"], "control");
    assert_eq!(json["blocks"][1]["registers"][2]["address"], 64 + 8);
    assert_eq!(json["blocks"][1]["registers"][2]["fields"][1], json!({ "name": "whole", "lsb": 1, "width": 31, "doc": "" }));
}

#[test]
fn the_svd_is_well_formed_xml_with_the_right_accesses() {
    let files = registers::files("ping & pong", &hostile()).expect("rendered");
    let document = roxmltree::Document::parse(&files.svd).expect("well-formed");
    let text = |node: roxmltree::Node<'_, '_>, name: &str| {
        node.children().find(|n| n.has_tag_name(name)).and_then(|n| n.text()).unwrap_or("").to_owned()
    };
    let named = |name: &str| document.descendants().find(|n| n.has_tag_name("register") && text(*n, "name") == name).expect("a register");
    assert_eq!(text(document.root_element(), "description"), "Registers of project ping & pong");
    assert_eq!(text(named("rx_good"), "access"), "read-only");
    assert_eq!(text(named("push"), "access"), "write-only");
    assert_eq!(text(named("events"), "modifiedWriteValues"), "oneToClear");
    assert_eq!(text(named("control"), "resetValue"), "0x00000005");
    assert_eq!(text(named("control"), "description"), "a | b <c> & \"d\" */ e  f");
    let bases: Vec<_> = document.descendants().filter(|n| n.has_tag_name("baseAddress")).filter_map(|n| n.text()).collect();
    assert_eq!(bases, ["0x00000000", "0x00000040"]);
}

#[test]
fn the_header_compiles_and_has_the_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = registers::files("ping", &hostile()).expect("rendered");
    std::fs::write(folder.path().join("registers.h"), &files.header).expect("written");
    let program = "#include \"registers.h\"\n#include \"registers.h\"\n\
        _Static_assert(MAC_0_BASE == 0x40u && MAC_0_CONTROL == 0x48u && MAC_0_CONTROL_ENABLE_MASK == 1u, \"\");\n\
        _Static_assert(MAC_0_CONTROL_WHOLE_MASK == 0xfffffffeu && MAC_0_CONTROL_WHOLE_SHIFT == 1u && _9__LIVES__BASE == 0u, \"\");\n";
    std::fs::write(folder.path().join("a.c"), program).expect("written");
    let run = std::process::Command::new("cc")
        .args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "a.c"])
        .current_dir(folder.path())
        .output()
        .expect("a C compiler");
    assert!(run.status.success(), "{}\n{}", String::from_utf8_lossy(&run.stderr), files.header);
}

#[test]
fn the_markdown_has_a_row_per_register_and_no_broken_cell() {
    let files = registers::files("ping", &hostile()).expect("rendered");
    assert!(files.markdown.contains("| `0x0040` | `rx_good` | ro | counter | `0x00000000` | frames passed on |"), "{}", files.markdown);
    assert!(files.markdown.contains("a \\| b"), "{}", files.markdown);
    assert!(files.markdown.contains("| | `control[31:1]` `whole` | | | |"), "{}", files.markdown);
}

proptest! {
    #[test]
    fn places_never_overlap_and_never_move_when_others_come_and_go(
        steps in prop::collection::vec(prop::collection::btree_map("[a-h]", 2u32..11, 0..8), 1..6)
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sizes = std::collections::BTreeMap::new();
        let mut places = std::collections::BTreeMap::new();
        for step in &steps {
            // The size of an instance is that of its first appearance, so that nothing has a reason to move.
            let instances: Vec<(&str, u64)> = step.iter().map(|(name, log)| (name.as_str(), *sizes.entry(name.clone()).or_insert(1 << log))).collect();
            let map = with_lock(folder.path(), &instances).expect("8 blocks of 1 kB fit");
            sound(&map);
            prop_assert!(map.warnings.0.is_empty());
            prop_assert_eq!(map.blocks.len(), instances.len());
            for block in &map.blocks {
                let place = *places.entry(block.instance.clone()).or_insert(block.base);
                prop_assert_eq!(place, block.base, "{} moved", block.instance);
            }
        }
    }

    #[test]
    fn any_lock_text_gives_a_map_or_diagnostics(text in "(schema = 1\n)?(\\[block\\]\n)?([ab] = \\{ (base|size) = -?[0-9x]{1,6}, (base|size) = [0-9]{1,6} \\}\n){0,4}|.{0,60}") {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("registers.lock");
        std::fs::write(&path, &text).expect("written");
        match allocate(&project(&[("a", 64), ("c", 256)]), Some(&path)) {
            Ok(map) => {
                sound(&map);
                prop_assert_eq!(map.blocks.len(), 2);
            }
            Err(faults) => prop_assert!(faults.has_errors()),
        }
    }
}
