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
