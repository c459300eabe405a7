//! Every opcode cut at every byte: inside the transport with lengths and ICRC made to fit, and the frame itself with nothing made to fit.

use super::Scope;
use super::ground::Ground;
use crate::live::Wire;
use crate::packet::{Class, Opcode};
use std::io;

/// Bytes of a long payload at its start and end that are cut, unless all are.
const ENDS: usize = 8;

/// Ethernet's header: a shorter frame says nothing.
const SHORTEST: usize = 14;

pub fn run<W: Wire>(ground: &mut Ground<W>, scope: &Scope) -> io::Result<()> {
    let address = ground.offer.address + 256;
    for opcode in Opcode::all().filter(|opcode| opcode.is_request() || opcode.is_response()) {
        let mut cut = 0;
        // The length is the same in every connection.
        while let Some(length) = inside(ground, opcode, cut, address)? {
            let start = length.min(12 + opcode.extension_size() + ENDS);
            cut = if !scope.all && cut >= start && cut < length.saturating_sub(ENDS) { length - ENDS } else { cut + 1 };
        }
        let mut cut = SHORTEST;
        while let Some(length) = outside(ground, opcode, cut, address)? {
            cut = if !scope.all && cut > 100 && cut < length - ENDS { length - ENDS } else { cut + 1 };
        }
    }
    Ok(())
}

/// The transport cut at `cut`; its length, or `None` where nothing is left to cut off.
fn inside<W: Wire>(ground: &mut Ground<W>, opcode: Opcode, cut: usize, address: u64) -> io::Result<Option<usize>> {
    let offer = ground.offer;
    let bout = ground.bout()?;
    let (before, packet) = bout.sample(opcode, offer, address);
    let transport = packet.encode();
    if cut >= transport.len() {
        return Ok(None);
    }
    let mut frames = before.iter().map(|packet| bout.frame(packet)).collect::<Vec<_>>();
    frames.push(bout.head.wrap(&transport[..cut]));
    // A message with fewer bytes, where nothing announces how many: no harm is done to it.
    let harmless = matches!(opcode.class(), Some(Class::Send)) && opcode.starts() && opcode.ends();
    if !harmless || cut < 12 + opcode.extension_size() {
        ground.give(&format!("{opcode} cut to {cut} bytes"), &frames, address)?;
    }
    Ok(Some(transport.len()))
}

fn outside<W: Wire>(ground: &mut Ground<W>, opcode: Opcode, cut: usize, address: u64) -> io::Result<Option<usize>> {
    let offer = ground.offer;
    let bout = ground.bout()?;
    let (before, packet) = bout.sample(opcode, offer, address);
    let frame = bout.frame(&packet);
    if cut >= frame.len() {
        return Ok(None);
    }
    let mut frames = before.iter().map(|packet| bout.frame(packet)).collect::<Vec<_>>();
    frames.push(frame[..cut].to_vec());
    ground.give(&format!("a frame with {opcode} cut to {cut} bytes"), &frames, address)?;
    Ok(Some(frame.len()))
}
