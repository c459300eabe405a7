//! The register client against a bridge in Rust that follows `plugins/uart-regs/README.md`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use gateweave::regs_client::{self, RegsClient, RegsError};
use serde_json::json;

/// What the bridge of the board does with bytes; SLVERR from 0x8000, DECERR from 0xc000.
fn bridge(mut line: UnixStream, mut words: BTreeMap<u32, u32>) {
    let (mut arguments, mut address) = (Vec::new(), 0_u32);
    let mut byte = [0];
    while matches!(line.read(&mut byte), Ok(1)) {
        if byte[0] < 0x80 {
            arguments.push(byte[0]);
            continue;
        }
        let value = arguments.iter().rev().fold(0_u64, |value, b| value << 7 | u64::from(*b)) as u32;
        let code = |address: u32| {
            if address >= 0xc000 {
                0x83
            } else if address >= 0x8000 {
                0x82
            } else {
                0x80
            }
        };
        let mut answer = Vec::new();
        match (byte[0], arguments.len()) {
            (0x80, _) => answer.push(0x80),
            (0x81, 2) => {
                address = 4 * value;
                answer.push(0x80);
            }
            (0x82, 5) => {
                answer.push(code(address));
                words.insert(address, value);
                address += 4;
            }
            (0xc0.., 0) => {
                for _ in 0..=byte[0] & 0x3f {
                    let word = words.get(&address).copied().unwrap_or(0);
                    answer.push(code(address));
                    answer.extend((0..5).map(|k| (u64::from(word) >> (7 * k)) as u8 & 0x7f));
                    address += 4;
                }
            }
            _ => answer.push(0x81),
        }
        arguments.clear();
        if line.write_all(&answer).is_err() {
            return;
        }
    }
}

/// A client of a bridge that has these words, with what an earlier session left on the line.
fn client(words: BTreeMap<u32, u32>, left_over: &'static [u8]) -> (RegsClient, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("regs");
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || {
        let (mut line, _) = listener.accept().expect("a client");
        line.write_all(left_over).expect("written");
        bridge(line, words);
    });
    (RegsClient::open(&path, 115_200).expect("in step"), folder)
}

#[test]
fn words_are_read_and_written_over_a_socket() {
    let (mut client, _folder) = client(BTreeMap::new(), &[]);
    client.write(0x40, 0xdead_beef).expect("taken");
    client.write(0x44, u32::MAX).expect("taken");
    assert_eq!(client.read(0x3c, 4).expect("answered"), [0, 0xdead_beef, u32::MAX, 0]);
    assert_eq!(client.read(0, 200).expect("several bursts").len(), 200);
}

#[test]
fn what_an_earlier_session_left_is_skipped() {
    let (mut client, _folder) = client(BTreeMap::from([(8, 7)]), &[0x80, 0x12, 0x34, 0x00, 0x7f, 0x01, 0x82]);
    assert_eq!(client.read(8, 1).expect("answered"), [7]);
}

#[test]
fn errors_of_the_bus_name_the_address_and_leave_the_line_in_step() {
    let (mut client, _folder) = client(BTreeMap::from([(0, 3)]), &[]);
    assert!(matches!(client.write(0x8004, 1), Err(RegsError::Bus { address: 0x8004, decode: false })));
    assert!(matches!(client.read(0xbff8, 4), Err(RegsError::Bus { address: 0xbff8, decode: false })));
    assert!(matches!(client.read(0xc000, 2), Err(RegsError::Bus { address: 0xc000, decode: true })));
    assert!(matches!(client.read(2, 1), Err(RegsError::Bus { address: 2, .. })));
    assert!(matches!(client.write(0x10000, 1), Err(RegsError::Bus { address: 0x10000, .. })));
    assert_eq!(client.read(0, 1).expect("still in step"), [3]);
}

#[test]
fn every_readable_register_is_dumped_by_name() {
    let (mut client, _folder) = client(BTreeMap::from([(0, 10), (4, 11), (0x40, 12)]), &[]);
    let register =
        |name: &str, address: u32, access: &str, kind: &str| json!({ "name": name, "address": address, "access": access, "kind": kind });
    let map = json!({ "schema": 1, "blocks": [
        { "instance": "mac0", "registers": [register("rx", 0, "ro", "counter"), register("tx", 4, "ro", "counter"), register("go", 8, "wo", "control")] },
        { "instance": "net", "registers": [register("mode", 0x40, "rw", "control")] } ] });
    let readings = client.dump(&map).expect("answered");
    let short: Vec<_> = readings.iter().map(|r| (format!("{}.{}", r.instance, r.register), r.counter, r.value)).collect();
    assert_eq!(short, [("mac0.rx".to_owned(), true, 10), ("mac0.tx".to_owned(), true, 11), ("net.mode".to_owned(), false, 12)]);
    assert!(matches!(client.dump(&json!({ "schema": 2 })), Err(RegsError::Map(_))));
    assert!(matches!(client.dump(&json!({ "schema": 1, "blocks": [{ "instance": 3 }] })), Err(RegsError::Map(_))));
}

#[test]
fn what_a_simulation_asks_and_hears_is_a_dump() {
    let register = |address: u32| json!({ "name": format!("r{address}"), "address": address, "access": "ro", "kind": "counter" });
    let map = json!({ "schema": 1, "blocks": [{ "instance": "a", "registers": [register(0), register(4), register(0x40)] }] });
    let script = regs_client::script(&map).expect("a map");
    let (near, far) = UnixStream::pair().expect("a pair");
    thread::spawn(move || bridge(far, BTreeMap::from([(0, 7), (4, u32::MAX), (0x40, 9)])));
    let mut heard = Vec::new();
    for (bytes, answer) in script {
        (&near).write_all(&bytes).expect("written");
        let mut part = vec![0; answer];
        (&near).read_exact(&mut part).expect("answered");
        heard.extend(part);
    }
    let values: Vec<u32> = regs_client::replay(&map, heard.clone()).expect("whole").iter().map(|r| r.value).collect();
    assert_eq!(values, [7, u32::MAX, 9]);
    heard.pop();
    assert!(matches!(regs_client::replay(&map, heard), Err(RegsError::Io(_))));
}

#[test]
fn a_line_that_ends_is_an_error_not_a_hang() {
    let (near, far) = UnixStream::pair().expect("a pair");
    drop(far);
    let mut client = RegsClient::on(Box::new(near));
    assert!(matches!(client.sync(), Err(RegsError::Io(_))));
}
