//! Requests to queue pairs in each state: never connected, before the RTU, in error, after the DREQ; and to numbers that are none.

use super::super::Offer;
use super::Scope;
use super::ground::{Bout, Ground};
use crate::live::Wire;
use crate::packet::{Opcode, Packet};
use crate::rng::Rng;
use std::io;

/// What is sent in each state.
const KINDS: [Opcode; 8] = [
    Opcode::WRITE_ONLY,
    Opcode::READ_REQUEST,
    Opcode::FETCH_ADD,
    Opcode::SEND_ONLY,
    Opcode::ACK,
    Opcode::READ_RESPONSE_ONLY,
    Opcode::ATOMIC_ACK,
    Opcode::CNP,
];

pub fn run<W: Wire>(ground: &mut Ground<W>, scope: &Scope) -> io::Result<()> {
    nobody(ground, scope)?;
    before_the_rtu(ground)?;
    in_error(ground)?;
    after_the_dreq(ground)
}

fn samples(bout: &Bout, offer: Offer) -> Vec<Packet> {
    KINDS.iter().map(|opcode| bout.sample(*opcode, offer, offer.address + 512).1).collect()
}

/// Queue pairs that nobody has.
fn nobody<W: Wire>(ground: &mut Ground<W>, scope: &Scope) -> io::Result<()> {
    let (offer, mut rng) = (ground.offer, Rng::new(scope.seed));
    let bout = ground.bout()?;
    let ours = bout.qp.config.local_qpn;
    let mut numbers = vec![0, 1, 2, 3, 0xff_ffff, 0x80_0000, ours ^ 1, ours ^ 2, ours ^ 3, ours ^ 0x80_0000, ours.swap_bytes() >> 8];
    numbers.extend((0..if scope.all { 200 } else { 20 }).map(|_| rng.below(1 << 24) as u32));
    for number in numbers.into_iter().filter(|number| *number != ours) {
        let bout = ground.bout()?;
        let packets = samples(bout, offer);
        let frames = packets.into_iter().map(|mut packet| {
            packet.bth.destination = number;
            bout.frame(&packet)
        });
        let frames = frames.collect::<Vec<_>>();
        ground.give(&format!("to queue pair {number:#x}"), &frames, offer.address)?;
    }
    Ok(())
}

/// The REP has come, and the RTU goes later: a good request is done and stands for it; one that is refused ends the queue pair, and then the RTU does not bring it back.
fn before_the_rtu<W: Wire>(ground: &mut Ground<W>) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 512);
    type Make = fn(&Bout, Offer, u64) -> Packet;
    let cases: [(&str, Make); 8] = [
        ("a good WRITE", |bout, offer, address| bout.write(0, offer, address, &[1, 2, 3, 4, 5])),
        ("a good READ", |bout, offer, address| bout.read(0, offer, address, 40)),
        ("a good SEND", |bout, offer, address| bout.sample(Opcode::SEND_ONLY, offer, address).1),
        ("a WRITE with a wrong key", |bout, offer, address| bout.write(0, Offer { rkey: !offer.rkey, ..offer }, address, &[9])),
        ("a READ outside", |bout, offer, _| bout.read(0, offer, offer.address.wrapping_sub(1), 4)),
        ("a WRITE last of no message", |bout, offer, address| bout.sample(Opcode::WRITE_LAST_IMM, offer, address).1),
        ("a WRITE ahead", |bout, offer, address| bout.write(3, offer, address, &[9])),
        ("a WRITE of another partition", |bout, offer, address| {
            let mut packet = bout.write(0, offer, address, &[9]);
            packet.bth.pkey = 0x8001;
            packet
        }),
    ];
    for (name, make) in cases {
        let (bout, rtu) = ground.half_open()?;
        let frame = bout.frame(&make(&bout, offer, address));
        ground.change(bout)?;
        if ground.put(&format!("{name} before the RTU"), &frame)? {
            ground.station.inject(&rtu)?;
            ground.prove(address)?;
            ground.settle()?;
        }
        ground.close()?;
    }
    Ok(())
}

/// After an error there is silence, whatever comes.
fn in_error<W: Wire>(ground: &mut Ground<W>) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 512);
    let read = {
        let bout = ground.bout()?;
        bout.frame(&bout.read(0, offer, address, 100))
    };
    ground.give("a READ", std::slice::from_ref(&read), address)?;
    let bout = ground.bout()?;
    let wrong = bout.frame(&bout.write(0, Offer { rkey: !offer.rkey, ..offer }, address, &[1]));
    let later = samples(bout, offer).iter().map(|packet| bout.frame(packet)).collect::<Vec<_>>();
    let frames = [vec![wrong], later, vec![read]].concat();
    ground.give("in error", &frames, address)
}

/// After DREQ and DREP the number is nobody's, also while there is a new connection.
fn after_the_dreq<W: Wire>(ground: &mut Ground<W>) -> io::Result<()> {
    let (offer, address) = (ground.offer, ground.offer.address + 512);
    let bout = ground.bout()?;
    let read = bout.frame(&bout.read(0, offer, address, 100));
    ground.give("a READ", std::slice::from_ref(&read), address)?;
    let bout = ground.bout()?;
    let mut frames = samples(bout, offer).iter().map(|packet| bout.frame(packet)).collect::<Vec<_>>();
    frames.push(read);
    ground.hang_up()?;
    ground.give("after the DREQ", &frames, address)?;
    ground.bout()?;
    ground.give("to the number of the connection before", &frames, address)
}
