//! One connection of CM, active or passive.

use crate::cm::{Message, Rep, Req};
use std::net::Ipv4Addr;

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Active: the peer's MAC address is asked for.
    Resolving,
    ReqSent,
    RepSent,
    Established,
    DreqSent,
    /// Over; repeated messages are still answered.
    Closed,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub id: usize,
    pub phase: Phase,
    pub active: bool,
    pub peer: Ipv4Addr,
    pub local_comm_id: u32,
    pub remote_comm_id: u32,
    pub transaction: u64,
    pub local_qpn: u32,
    pub remote_qpn: u32,
    /// The peer's, to recognize it when it comes again.
    pub ca_guid: u64,
    pub req: Req,
    pub rep: Option<Rep>,
    /// What is repeated until it is answered, when, and how often still.
    pub repeat: Option<(Message, u64, u8)>,
}

impl Connection {
    /// A message for it names its IDs as (sender's, receiver's).
    pub fn matches(&self, peer: Ipv4Addr, ids: (u32, u32)) -> bool {
        self.peer == peer && self.remote_comm_id == ids.0 && self.local_comm_id == ids.1
    }
}
