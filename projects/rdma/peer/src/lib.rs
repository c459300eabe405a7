//! A RoCEv2 peer in software, independent of any gateware: it knows the wire and nothing else.
//!
//! - [`packet`]: frames, BTH and all extension headers of RC and UD, ICRC.
//! - [`cm`]: management datagrams and the messages of the connection manager.
//! - [`pcap`] and [`check`]: capture files, and what must hold over every frame of one.
//! - [`model`]: responder, requester and CM as pure state machines. They are the oracle of tests, and a live peer.
//!
//! No module reads a clock or opens a socket, except [`step`], the client of the simulator's lock-step wire.

pub mod check;
pub mod cm;
pub mod drive;
pub mod live;
pub mod model;
pub mod packet;
pub mod pcap;
pub mod psn;
pub mod rng;
pub mod step;
