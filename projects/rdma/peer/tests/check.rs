//! The checker passes real traffic, and finds what is put into it.

use roce_peer::check::{Options, Report, check};
use roce_peer::packet::{Bth, Extensions, Frame, Opcode, Packet, Syndrome};
use roce_peer::pcap::{self, Record};
use std::path::PathBuf;

fn capture(name: &str) -> Vec<Record> {
    pcap::read(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name)).unwrap()
}

#[test]
fn real_traffic_passes() {
    for name in ["rping.pcap", "atomics.pcap", "odd-sizes.pcap", "perftest-write-cm.pcap"] {
        let report = check(&capture(name), Options::default());
        assert_eq!(report.faults, [], "{name}");
        assert!(report.roce >= 20 && report.unpaired == 0, "{name}: {report:?}");
    }
}

/// rping with one frame changed and sealed again; `pick` chooses and changes it.
fn changed(mut pick: impl FnMut(&mut Frame) -> bool) -> (usize, Report) {
    let mut records = capture("rping.pcap");
    for record in &mut records {
        let Ok(mut frame) = Frame::decode(&record.frame) else { continue };
        if pick(&mut frame) {
            record.frame = frame.encode();
            let number = record.number;
            return (number, check(&records, Options::default()));
        }
    }
    panic!("no frame was changed");
}

fn expect(rule: &str, (number, report): (usize, Report)) {
    assert!(report.faults.iter().any(|fault| fault.rule == rule && fault.frame >= number), "{rule} at {number}: {:?}", report.faults);
}

/// The `n`-th frame with `opcode`, from 0.
fn nth(opcode: Opcode, n: usize, change: impl Fn(&mut Frame)) -> impl FnMut(&mut Frame) -> bool {
    let mut seen = 0;
    move |frame| {
        let hit = frame.packet.bth.opcode == opcode && {
            seen += 1;
            seen == n + 1
        };
        if hit {
            change(frame);
        }
        hit
    }
}

#[test]
fn wrong_numbers_are_found() {
    expect("answer", changed(nth(Opcode::ACK, 3, |f| f.packet.bth.psn = (f.packet.bth.psn + 9) & 0xff_ffff)));
    expect("gap", changed(nth(Opcode::SEND_ONLY, 2, |f| f.packet.bth.psn = (f.packet.bth.psn + 1) & 0xff_ffff)));
    expect("resend", changed(nth(Opcode::WRITE_ONLY, 1, |f| f.packet.bth.psn = (f.packet.bth.psn.wrapping_sub(1)) & 0xff_ffff)));
    expect("opcode-sequence", changed(nth(Opcode::SEND_ONLY, 1, |f| f.packet.bth.opcode = Opcode::SEND_MIDDLE)));
    expect("size", changed(nth(Opcode::WRITE_ONLY, 0, |f| f.packet.ext.reth.as_mut().unwrap().length += 1)));
    expect("size", changed(nth(Opcode::READ_RESPONSE_ONLY, 1, |f| f.packet.payload.extend([0; 4]))));
    expect("opcode-sequence", changed(nth(Opcode::READ_RESPONSE_ONLY, 1, |f| f.packet.bth.opcode = Opcode::READ_RESPONSE_LAST)));
    expect("answer", changed(nth(Opcode::READ_RESPONSE_ONLY, 1, |f| f.packet.bth.psn -= 1)));
    expect("msn", changed(nth(Opcode::ACK, 12, |f| f.packet.ext.aeth.as_mut().unwrap().msn = 1)));
    expect("aeth", changed(nth(Opcode::ACK, 2, |f| f.packet.ext.aeth.as_mut().unwrap().syndrome = Syndrome::Other(0x65))));
    expect("udp-port", changed(nth(Opcode::ACK, 0, |f| f.source_port = 0)));
    expect("udp-port", changed(nth(Opcode::ACK, 1, |f| f.source_port ^= 1)));
    expect("ack-request", changed(nth(Opcode::SEND_ONLY, 0, |f| f.packet.bth.ack_request = false)));
    expect("aeth", changed(nth(Opcode::ACK, 2, |f| f.packet.ext.aeth.as_mut().unwrap().syndrome = Syndrome::Ack(0))));
    let cnp = |becn: bool, length: usize| {
        changed(nth(Opcode::ACK, 0, move |f| {
            f.packet =
                Packet::new(Bth { becn, ..Bth::new(Opcode::CNP, f.packet.bth.destination, 0) }, Extensions::default(), vec![0; length]);
        }))
    };
    expect("cnp", cnp(false, 16));
    expect("cnp", cnp(true, 12));
    assert!(cnp(true, 16).1.faults.iter().all(|fault| fault.rule != "cnp"));
    // One byte behind nothing: no whole number of words.
    expect("malformed", changed(nth(Opcode::ACK, 0, |f| f.packet.bth.pad = 1)));
    expect("tver", changed(nth(Opcode::ACK, 0, |f| f.packet.bth.version = 1)));
    expect("opcode", changed(nth(Opcode::ACK, 0, |f| f.packet.bth.opcode = Opcode(0x15))));
}

#[test]
fn wrong_fields_of_cm_are_found() {
    // Offsets of the MAD in the UD payload: 24 bytes of header, then the message.
    let byte = |n: usize, at: usize, value: u8| nth(Opcode::UD_SEND_ONLY, n, move |f| f.packet.payload[24 + at] = value);
    expect("req", changed(byte(0, 52, 0)));
    expect("req", changed(byte(0, 50, 0x07)));
    expect("req", changed(byte(0, 71, 9)));
    expect("req", changed(byte(0, 140, 1)));
    expect("req", changed(byte(0, 94, 8)));
    expect("comm-id", changed(byte(1, 4, 0x77)));
    expect("rep", changed(byte(1, 24, 3)));
    // Another starting PSN in either makes the first request one that was never announced.
    expect("gap", changed(byte(0, 46, 0)));
    expect("dreq", changed(byte(3, 10, 0x55)));
    expect("deth", changed(nth(Opcode::UD_SEND_ONLY, 0, |f| f.packet.ext.deth.as_mut().unwrap().qkey = 1)));
}

#[test]
fn one_flipped_bit_in_a_file_is_found() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures/rping.pcap");
    let bytes = std::fs::read(path).unwrap();
    // A payload byte of the first WRITE.
    let record =
        capture("rping.pcap").into_iter().find(|r| Frame::decode(&r.frame).is_ok_and(|f| f.packet.bth.opcode == Opcode::WRITE_ONLY));
    let record = record.unwrap();
    let at = bytes.windows(record.frame.len()).position(|window| window == record.frame).unwrap();
    let mut wrong = bytes.clone();
    wrong[at + 80] ^= 0x10;
    let report = check(&pcap::parse(&wrong).unwrap(), Options::default());
    assert!(report.faults.iter().any(|fault| fault.rule == "icrc" && fault.frame == record.number), "{:?}", report.faults);
}
