//! Real Linux traffic against the decoder and encoder of packets and CM.

use roce_peer::cm::{IpHeader, Mad, Message, QKEY};
use roce_peer::packet::{Class, Frame, Refusal};
use roce_peer::pcap;
use std::path::PathBuf;

fn captures() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    // More captures, such as large ones that are not kept here.
    let more = std::env::var_os("ROCE_CAPTURES").map(PathBuf::from);
    let files = [Some(folder), more].into_iter().flatten().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files = files.map(|file| file.unwrap().path()).filter(|file| file.extension().is_some_and(|e| e == "pcap")).collect::<Vec<_>>();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn every_frame_has_a_right_icrc_and_is_made_again_byte_for_byte() {
    let mut seen = 0;
    for file in captures() {
        for record in pcap::read(&file).unwrap() {
            match Frame::decode(&record.frame) {
                Ok(frame) => {
                    // A pad that is not zero is legal; Linux sends zeros.
                    let mut again = frame.encode();
                    again.resize(record.frame.len().max(again.len()), 0);
                    // Linux clears MigReq; the encoder keeps what was decoded.
                    assert_eq!(again, record.frame, "{} frame {}", file.display(), record.number);
                    seen += 1;
                }
                Err(Refusal::NotRoce) => {}
                Err(error) => panic!("{} frame {}: {error}", file.display(), record.number),
            }
        }
    }
    assert!(seen > 100, "{seen}");
    println!("{seen} frames");
}

#[test]
fn a_flipped_bit_is_seen_in_every_byte_that_the_icrc_covers() {
    let file = captures().into_iter().find(|file| file.ends_with("rping.pcap")).unwrap();
    let records = pcap::read(&file).unwrap();
    let frame = &records.iter().find(|record| Frame::decode(&record.frame).is_ok()).unwrap().frame;
    // From the UDP source port on; the masked bytes are the UDP checksum and the BTH's fifth.
    for at in 34..frame.len() {
        for bit in 0..8 {
            let mut wrong = frame.clone();
            wrong[at] ^= 1 << bit;
            let result = Frame::decode(&wrong);
            match at {
                46 => assert!(result.is_ok(), "byte {at} is masked"),
                36..=41 => assert!(result.is_err(), "byte {at}"),
                _ => assert!(matches!(result, Err(Refusal::Icrc { .. })), "byte {at} bit {bit}: {result:?}"),
            }
        }
    }
}

#[test]
fn cm_of_rping_has_the_fields_of_the_fact_sheet() {
    let file = captures().into_iter().find(|file| file.ends_with("rping.pcap")).unwrap();
    let mut names = Vec::new();
    for record in pcap::read(&file).unwrap() {
        let Ok(frame) = Frame::decode(&record.frame) else { continue };
        if frame.packet.bth.opcode.class() != Some(Class::Datagram) {
            continue;
        }
        assert_eq!(frame.packet.ext.deth.map(|deth| (deth.qkey, deth.source)), Some((QKEY, 1)));
        let mad = Mad::decode(&frame.packet.payload).unwrap();
        assert_eq!(mad.encode(), frame.packet.payload, "frame {}: {mad:?}", record.number);
        names.push(mad.message.name());
        if let Message::Req(req) = &mad.message {
            assert_eq!(req.service_id, 0x0106_1c06);
            assert_eq!((req.responder_resources, req.initiator_depth), (1, 1));
            assert_eq!((req.retry_count, req.rnr_retry_count, req.path_mtu, req.ack_timeout), (7, 7, 3, 19));
            assert_eq!((req.local_lid, req.remote_lid, req.pkey, req.transport_type), (0xffff, 0xffff, 0xffff, 0));
            assert_eq!(req.local_gid, roce_peer::cm::gid(frame.source_ip));
            let header = IpHeader::decode(&req.private_data).unwrap();
            assert_eq!((header.source, header.destination), (frame.source_ip, frame.destination_ip));
            assert_eq!(header.encode(), req.private_data[..36]);
        }
    }
    assert_eq!(names, ["REQ", "REP", "RTU", "DREQ", "DREP"]);
}
