//! CM messages of a capture: fields, and which message answers which.

use super::End;
use crate::cm::{IpHeader, Mad, Message, Rep, Req, gid};
use crate::packet::{Frame, mtu_of_code};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A connection that a REP opens.
pub struct Opened {
    pub active: End,
    pub passive: End,
    pub pmtu: u32,
    /// The PSN of the first request to the passive side.
    pub passive_receives: u32,
    /// The PSN of the first request to the active side.
    pub active_receives: u32,
}

/// What has been seen, by (address, communication ID) of the sender.
#[derive(Default)]
pub struct Exchanges {
    requests: BTreeMap<(Ipv4Addr, u32), Req>,
    replies: BTreeMap<(Ipv4Addr, u32), Rep>,
}

type Faults = Vec<(&'static str, String)>;

impl Exchanges {
    /// The faults of a message, and the connection if it opens one.
    pub fn message(&mut self, frame: &Frame, mad: &Mad) -> (Faults, Option<Opened>) {
        let (from, to) = (frame.source_ip, frame.destination_ip);
        let mut faults = Vec::new();
        let header = &mad.header;
        if header.base_version != 1 || header.class_specific != 0 || header.modifier != 0 {
            faults.push(("mad", format!("{header:?}")));
        }
        let mut opened = None;
        match &mad.message {
            Message::Req(req) => {
                request(frame, req, &mut faults);
                let old = self.requests.insert((from, req.local_comm_id), (**req).clone());
                if old.is_some_and(|old| old != **req) {
                    faults.push(("repeat", "a repeated REQ with other contents".into()));
                }
            }
            Message::Rep(rep) => match self.requests.get(&(to, rep.remote_comm_id)) {
                // A capture may begin behind the REQ.
                None => {}
                Some(req) => {
                    reply(req, rep, &mut faults);
                    let old = self.replies.insert((from, rep.local_comm_id), (**rep).clone());
                    match old {
                        Some(old) if old == **rep => {}
                        Some(old) if old.remote_comm_id == rep.remote_comm_id => {
                            faults.push(("repeat", "a repeated REP with other contents".into()));
                        }
                        _ => {
                            opened = Some(Opened {
                                active: End { ip: to, qpn: req.local_qpn },
                                passive: End { ip: from, qpn: rep.local_qpn },
                                pmtu: mtu_of_code(req.path_mtu).unwrap_or(1024),
                                // Each side's number is the one that the other starts at.
                                passive_receives: rep.starting_psn,
                                active_receives: req.starting_psn,
                            });
                        }
                    }
                }
            },
            Message::Rej(rej) if (rej.message_rejected > 2 || !(1..=33).contains(&rej.reason)) => {
                faults.push(("rej", format!("message {} rejected for reason {}", rej.message_rejected, rej.reason)));
            }
            Message::Rtu(_) | Message::Drep(_) | Message::Mra(_) => {}
            Message::Dreq(dreq) => {
                let theirs = self.replies.get(&(to, dreq.remote_comm_id)).map(|rep| rep.local_qpn);
                let theirs = theirs.or_else(|| self.requests.get(&(to, dreq.remote_comm_id)).map(|req| req.local_qpn));
                if theirs.is_some_and(|qpn| qpn != dreq.remote_qpn) {
                    faults.push(("dreq", format!("a DREQ for QP {:#x}", dreq.remote_qpn)));
                }
            }
            _ => {}
        }
        // Whatever names a peer's ID must name one that the peer gave.
        if let (Some((_, theirs)), false) = (mad.message.comm_ids(), matches!(mad.message, Message::Req(_) | Message::Rej(_))) {
            let known = self.requests.contains_key(&(to, theirs)) || self.replies.contains_key(&(to, theirs));
            let complete = self.requests.keys().any(|key| key.0 == to || key.0 == from);
            if !known && complete && matches!(mad.message, Message::Rep(_) | Message::Rtu(_)) {
                faults.push(("comm-id", format!("{} to communication ID {theirs:#010x}, which nobody gave", mad.message.name())));
            }
        }
        (faults, opened)
    }
}

fn request(frame: &Frame, req: &Req, faults: &mut Faults) {
    let mut expect = |right: bool, what: &str| {
        if !right {
            faults.push(("req", what.to_string()));
        }
    };
    expect(req.transport_type == 0, "REQ: transport type is not RC");
    expect(mtu_of_code(req.path_mtu).is_some(), "REQ: path MTU code");
    expect(req.pkey & 0x7fff != 0, "REQ: P_Key");
    expect((req.local_lid, req.remote_lid) == (0xffff, 0xffff), "REQ: LIDs are not ffff");
    expect(req.local_gid == gid(frame.source_ip), "REQ: local GID is not the source's address");
    expect(req.remote_gid == gid(frame.destination_ip), "REQ: remote GID is not the destination's address");
    expect(!req.subnet_local, "REQ: subnet local");
    expect(req.hop_limit != 0, "REQ: hop limit 0");
    expect(req.local_qpn > 1, "REQ: QPN");
    if req.service_id >> 24 == 1 {
        match IpHeader::decode(&req.private_data) {
            None => expect(false, "REQ: no IP CM header for IPv4"),
            Some(header) => {
                expect(header.source == frame.source_ip, "REQ: the IP CM header has another source");
                expect(header.destination == frame.destination_ip, "REQ: the IP CM header has another destination");
            }
        }
    }
}

fn reply(req: &Req, rep: &Rep, faults: &mut Faults) {
    let mut expect = |right: bool, what: String| {
        if !right {
            faults.push(("rep", what));
        }
    };
    expect(rep.local_qpn > 1, format!("REP: QPN {:#x}", rep.local_qpn));
    let (offered, asked) = (rep.responder_resources, req.initiator_depth);
    expect(offered <= asked, format!("REP: {offered} responder resources where {asked} were asked for"));
    let (depth, promised) = (rep.initiator_depth, req.responder_resources);
    expect(depth <= promised, format!("REP: initiator depth {depth} where {promised} resources were promised"));
}
