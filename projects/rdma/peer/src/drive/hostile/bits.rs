//! Every bit of the headers flipped, with the ICRC as it was and with one that fits; and every opcode that there is.

use super::Scope;
use super::ground::Ground;
use crate::live::Wire;
use crate::packet::{Opcode, checksum, icrc::icrc};
use std::io;

/// Offsets in a frame.
const IP: usize = 14;
const CHECKSUM: usize = IP + 10;
const BTH: usize = IP + 20 + 8;

/// Without `all`, every so manieth bit of an address, key or length of requests other than WRITE.
const COARSE: usize = 5;

pub fn run<W: Wire>(ground: &mut Ground<W>, scope: &Scope) -> io::Result<()> {
    for opcode in [Opcode::WRITE_ONLY, Opcode::READ_REQUEST, Opcode::FETCH_ADD, Opcode::COMPARE_SWAP] {
        let end = 8 * (BTH + 12 + opcode.extension_size());
        // What is below the extension headers is the same for all.
        let start = if opcode == Opcode::WRITE_ONLY || scope.all { 0 } else { 8 * (BTH + 12) };
        for bit in start..end {
            if bit >= 8 * (BTH + 12) && opcode != Opcode::WRITE_ONLY && !scope.all && bit % COARSE != 0 {
                continue;
            }
            flip(ground, opcode, bit, true)?;
        }
        for bit in start..end {
            flip(ground, opcode, bit, false)?;
        }
    }
    every_opcode(ground)
}

/// One bit of a right frame; `sealed`: checksum and ICRC are made to fit.
fn flip<W: Wire>(ground: &mut Ground<W>, opcode: Opcode, bit: usize, sealed: bool) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 8192);
    let bout = ground.bout()?;
    let mut frame = bout.frame(&bout.sample(opcode, offer, address).1);
    frame[bit / 8] ^= 0x80 >> (bit % 8);
    if sealed {
        if !(CHECKSUM..CHECKSUM + 2).contains(&(bit / 8)) {
            seal_header(&mut frame);
        }
        let end = frame.len() - 4;
        let value = icrc(&frame[IP..end]).to_le_bytes();
        frame[end..].copy_from_slice(&value);
    }
    let how = if sealed { "sealed again" } else { "not sealed again" };
    ground.give(&format!("{opcode}, bit {} of byte {} flipped, {how}", 7 - bit % 8, bit / 8), &[frame], address)
}

/// The IPv4 header's checksum, as for a header of 20 bytes.
fn seal_header(frame: &mut [u8]) {
    frame[CHECKSUM..CHECKSUM + 2].fill(0);
    let sum = checksum(&frame[IP..IP + 20], 0).to_be_bytes();
    frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum);
}

/// All 256 opcodes over the same bytes: the expected PSN, one ahead, one behind.
fn every_opcode<W: Wire>(ground: &mut Ground<W>) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 8192);
    for ahead in [0, 1, -1] {
        for code in 0..=255 {
            let opcode = Opcode(code);
            // One that takes a receive and is accepted is nothing wrong.
            let accepted = [Opcode::SEND_ONLY, Opcode::SEND_ONLY_IMM, Opcode::SEND_ONLY_INV].contains(&opcode);
            if ahead == 0 && accepted {
                continue;
            }
            let bout = ground.bout()?;
            let mut packet = bout.write(ahead, offer, address, &[7; 16]);
            packet.bth.opcode = Opcode::WRITE_ONLY;
            let mut transport = packet.encode();
            transport[0] = code;
            let frame = bout.head.wrap(&transport);
            ground.give(&format!("{opcode} with the bytes of a WRITE, {ahead} ahead"), &[frame], address)?;
        }
    }
    Ok(())
}
