//! A reference RC queue pair and CM, as pure state machines: packets, work requests, receives and the time go in; packets,
//! completions and changes of memory come out. Nothing here waits, and time is whatever the caller says, in nanoseconds.
//!
//! [`qp::Qp`] is the oracle for one queue pair; [`node::Node`] is a whole station with ARP and CM that can be put on a wire.

pub mod connection;
pub mod link;
pub mod memory;
pub mod node;
pub mod qp;
mod requester;
mod responder;

pub use memory::{Access, Memory, Region};
pub use node::{Event, Limits, Listener, Node};
pub use qp::{Config, Qp, State};

/// What a work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Send {
        imm: Option<u32>,
        /// A key of the other side that is no longer valid afterwards.
        invalidate: Option<u32>,
    },
    Write {
        imm: Option<u32>,
    },
    Read,
    CompareSwap {
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        add: u64,
    },
}

/// A request to the requester half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    pub id: u64,
    pub operation: Operation,
    /// Where the data is, or is put, in the node's own memory. An atomic's eight bytes are put there little-endian.
    pub local: u64,
    /// Bytes; 8 for atomics.
    pub length: u32,
    pub remote: u64,
    pub rkey: u32,
    /// Whether it completes when it succeeds. In error every one does.
    pub signaled: bool,
}

/// A place for a SEND, or a slot for a WRITE's immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveRequest {
    pub id: u64,
    pub address: u64,
    pub length: u32,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Success,
    /// A SEND was longer than its receive.
    LocalLength,
    /// A READ or atomic was posted on a connection that allows none.
    LocalOperation,
    RemoteInvalidRequest,
    RemoteAccess,
    RemoteOperation,
    RetriesExceeded,
    RnrRetriesExceeded,
    BadResponse,
    Flushed,
}

/// One request or receive that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub id: u64,
    pub status: Status,
    /// Of a receive, not of a work request.
    pub receive: bool,
    pub length: u32,
    pub imm: Option<u32>,
    pub invalidated: Option<u32>,
}
