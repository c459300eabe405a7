//! Connections and registered memory in terms of Rust.

#![allow(unsafe_code)]

use crate::ffi::{self, CmEvent, CmId, ConnParam, Cq, Functions, Mr, QpInitAttr, RecvWr, SendWr, Sge, SockaddrIn, Wc, event};
use crate::options::Options;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::time::Instant;

/// RDMA_PS_TCP.
const TCP: c_int = 0x0106;
/// Milliseconds that resolving may take.
const RESOLVE_MS: c_int = 20_000;
/// Local write, remote write, remote read, remote atomic.
const ACCESS: c_int = 1 | 2 | 4 | 8;

/// What a board offers: 16 bytes of its REP's private data, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub address: u64,
    pub rkey: u32,
    pub length: u32,
}

impl Offer {
    pub fn decode(data: &[u8]) -> Option<Offer> {
        let word = |at: usize| data.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        let address = u64::from(word(0)?) << 32 | u64::from(word(4)?);
        let (rkey, length) = (word(8)?, word(12)?);
        (length != 0).then_some(Offer { address, rkey, length })
    }

    pub fn encode(&self) -> [u8; 16] {
        let mut data = [0; 16];
        data[..8].copy_from_slice(&self.address.to_be_bytes());
        data[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        data[12..].copy_from_slice(&self.length.to_be_bytes());
        data
    }

    /// The record that a SEND carries: {rkey 4 B, address 8 B}.
    pub fn record(&self) -> [u8; 12] {
        let mut data = [0; 12];
        data[..4].copy_from_slice(&self.rkey.to_be_bytes());
        data[4..].copy_from_slice(&self.address.to_be_bytes());
        data
    }
}

/// What a work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Send,
    Read,
}

impl Operation {
    fn code(self) -> c_int {
        match self {
            Operation::Write => 0,
            Operation::Send => 2,
            Operation::Read => 4,
        }
    }
}

/// Registered memory.
pub struct Region<'a> {
    lib: &'a Functions,
    mr: *mut Mr,
    pub bytes: Vec<u8>,
}

impl Region<'_> {
    pub fn offer(&self) -> Offer {
        // SAFETY: `mr` lives as long as this.
        let rkey = unsafe { (*self.mr).rkey };
        Offer { address: self.bytes.as_ptr() as u64, rkey, length: self.bytes.len() as u32 }
    }
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        // SAFETY: `mr` came from ibv_reg_mr.
        unsafe { (self.lib.ibv_dereg_mr)(self.mr) };
    }
}

/// A part of a region: where data comes from, or goes.
pub struct Place<'r, 'a> {
    pub region: &'r Region<'a>,
    pub offset: usize,
    pub length: u32,
}

impl Place<'_, '_> {
    fn sge(&self) -> Result<Sge, String> {
        if self.offset + self.length as usize > self.region.bytes.len() {
            return Err("a request beyond the region's end".to_string());
        }
        // SAFETY: the region is alive.
        let lkey = unsafe { (*self.region.mr).lkey };
        Ok(Sge { addr: self.region.bytes.as_ptr() as u64 + self.offset as u64, length: self.length, lkey })
    }
}

/// A channel of CM events.
pub struct Channel<'a> {
    pub lib: &'a Functions,
    raw: *mut c_void,
}

/// An event, acknowledged already.
pub struct Happened {
    pub id: *mut CmId,
    pub kind: i32,
    pub status: i32,
    pub private_data: Vec<u8>,
    pub responder_resources: u8,
    pub initiator_depth: u8,
}

fn check(result: c_int, what: &str) -> Result<(), String> {
    if result == 0 { Ok(()) } else { Err(format!("{what}: {}", std::io::Error::last_os_error())) }
}

impl<'a> Channel<'a> {
    pub fn new(lib: &'a Functions) -> Result<Self, String> {
        // SAFETY: no arguments.
        let raw = unsafe { (lib.rdma_create_event_channel)() };
        if raw.is_null() { Err(format!("no event channel: {}", std::io::Error::last_os_error())) } else { Ok(Channel { lib, raw }) }
    }

    /// Waits for the next event. Destroying an ID needs its events acknowledged, so that is done here.
    pub fn next(&self) -> Result<Happened, String> {
        let mut raw: *mut CmEvent = null_mut();
        // SAFETY: the channel is alive; the event and its private data are until it is acknowledged.
        unsafe {
            check((self.lib.rdma_get_cm_event)(self.raw, &mut raw), "waiting for an event")?;
            let ConnParam { private_data, private_data_len, responder_resources, initiator_depth, .. } = (*raw).conn;
            let data = if private_data.is_null() || !matches!((*raw).event, event::CONNECT_REQUEST | event::ESTABLISHED) {
                Vec::new()
            } else {
                std::slice::from_raw_parts(private_data.cast::<u8>(), private_data_len.into()).to_vec()
            };
            let happened = Happened {
                id: (*raw).id,
                kind: (*raw).event,
                status: (*raw).status,
                private_data: data,
                responder_resources,
                initiator_depth,
            };
            (self.lib.rdma_ack_cm_event)(raw);
            Ok(happened)
        }
    }

    /// Waits for the event `wanted`; another one is an error, except the end of an earlier connection's timewait.
    fn expect(&self, wanted: i32) -> Result<Happened, String> {
        loop {
            let happened = self.next()?;
            if happened.kind == wanted && happened.status == 0 {
                return Ok(happened);
            }
            if happened.kind != event::TIMEWAIT_EXIT {
                // SAFETY: a string constant of the library's.
                let name = unsafe { ffi::text((self.lib.rdma_event_str)(happened.kind)) };
                return Err(format!("{name}, status {}", happened.status));
            }
        }
    }

    pub fn new_id(&self) -> Result<*mut CmId, String> {
        let mut id = null_mut();
        // SAFETY: the channel is alive.
        check(unsafe { (self.lib.rdma_create_id)(self.raw, &mut id, null_mut(), TCP) }, "making an ID")?;
        Ok(id)
    }

    /// Binds `id` and listens.
    pub fn listen(&self, id: *mut CmId, options: &Options) -> Result<(), String> {
        let address = SockaddrIn::new(options.address, options.port);
        // SAFETY: `id` is alive; the address is copied.
        unsafe {
            check((self.lib.rdma_bind_addr)(id, &address), "binding")?;
            check((self.lib.rdma_listen)(id, 64), "listening")
        }
    }
}

impl Drop for Channel<'_> {
    fn drop(&mut self) {
        // The process ends soon: IDs that still hang on the channel make destroying it unsafe.
        let _ = self.raw;
    }
}

/// A protection domain of a device.
pub struct Domain<'a> {
    lib: &'a Functions,
    raw: *mut c_void,
}

impl<'a> Domain<'a> {
    /// Of the device that `id` is on.
    pub fn of(lib: &'a Functions, id: *mut CmId) -> Result<Self, String> {
        // SAFETY: `id` is alive and bound to a device.
        let raw = unsafe { (lib.ibv_alloc_pd)((*id).verbs) };
        if raw.is_null() { Err(format!("no protection domain: {}", std::io::Error::last_os_error())) } else { Ok(Domain { lib, raw }) }
    }

    /// Registers `length` zeros for all access.
    pub fn region(&self, length: usize) -> Result<Region<'a>, String> {
        let mut bytes = vec![0; length];
        // SAFETY: the bytes stay where they are until the region is dropped: the vector is never grown.
        let mr = unsafe { (self.lib.ibv_reg_mr)(self.raw, bytes.as_mut_ptr().cast(), length, ACCESS) };
        if mr.is_null() {
            return Err(format!("registering {length} bytes: {} (ulimit -l?)", std::io::Error::last_os_error()));
        }
        Ok(Region { lib: self.lib, mr, bytes })
    }
}

impl Drop for Domain<'_> {
    fn drop(&mut self) {
        // SAFETY: it came from ibv_alloc_pd; fails harmlessly while something is in use.
        unsafe { (self.lib.ibv_dealloc_pd)(self.raw) };
    }
}

/// A connection with its queue pair.
pub struct Connection<'a> {
    lib: &'a Functions,
    pub id: *mut CmId,
    cq: *mut Cq,
    timeout: std::time::Duration,
}

impl<'a> Connection<'a> {
    /// Makes a queue pair on `id`.
    fn with_qp(lib: &'a Functions, id: *mut CmId, domain: &Domain, options: &Options) -> Result<Self, String> {
        let entries = options.depth + 16;
        // SAFETY: `id` is alive and bound to a device, and what is made is destroyed when the connection is dropped.
        unsafe {
            let cq = (lib.ibv_create_cq)((*id).verbs, 2 * entries as c_int, null_mut(), null_mut(), 0);
            if cq.is_null() {
                return Err(format!("no completion queue: {}", std::io::Error::last_os_error()));
            }
            let connection = Connection { lib, id, cq, timeout: options.timeout };
            let mut attributes = QpInitAttr {
                qp_context: null_mut(),
                send_cq: cq,
                recv_cq: cq,
                srq: null_mut(),
                max_send_wr: entries,
                max_recv_wr: 16,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
                qp_type: 2,
                sq_sig_all: 0,
            };
            check((lib.rdma_create_qp)(id, domain.raw, &mut attributes), "making a queue pair")?;
            Ok(connection)
        }
    }

    /// Resolves the address on a new ID.
    pub fn resolve(channel: &Channel<'a>, options: &Options) -> Result<*mut CmId, String> {
        let (lib, id) = (channel.lib, channel.new_id()?);
        let address = SockaddrIn::new(options.address, options.port);
        // SAFETY: `id` is alive; address and option are copied.
        unsafe {
            check((lib.rdma_resolve_addr)(id, std::ptr::null(), &address, RESOLVE_MS), "resolving the address")?;
            channel.expect(event::ADDR_RESOLVED)?;
            if let Some(mut exponent) = options.ack_timeout {
                // RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT
                check((lib.rdma_set_option)(id, 0, 3, (&raw mut exponent).cast(), 1), "setting the ACK timeout")?;
            }
            check((lib.rdma_resolve_route)(id, RESOLVE_MS), "resolving the route")?;
        }
        channel.expect(event::ROUTE_RESOLVED)?;
        Ok(id)
    }

    /// Connects `id`; gives the private data of the REP, too.
    pub fn connect(channel: &Channel<'a>, id: *mut CmId, domain: &Domain, options: &Options) -> Result<(Self, Vec<u8>), String> {
        let connection = Connection::with_qp(channel.lib, id, domain, options)?;
        let mut parameters = parameters(&[], (16, 16), options.retries);
        // SAFETY: `id` is alive; the parameters are copied.
        check(unsafe { (channel.lib.rdma_connect)(id, &mut parameters) }, "connecting")?;
        let established = channel.expect(event::ESTABLISHED)?;
        Ok((connection, established.private_data))
    }

    /// Accepts a CONNECT_REQUEST with private data for the REP.
    pub fn accept(channel: &Channel<'a>, request: &Happened, domain: &Domain, data: &[u8], options: &Options) -> Result<Self, String> {
        let connection = Connection::with_qp(channel.lib, request.id, domain, options)?;
        let mut parameters = parameters(data, (request.responder_resources, request.initiator_depth), options.retries);
        // SAFETY: the ID is alive; parameters and data are copied.
        check(unsafe { (channel.lib.rdma_accept)(request.id, &mut parameters) }, "accepting")?;
        Ok(connection)
    }

    /// Posts a signaled request.
    pub fn post(&self, id: u64, operation: Operation, place: &Place, remote: u64, rkey: u32) -> Result<(), String> {
        let mut sge = place.sge()?;
        // SAFETY: region and queue pair are alive; the list of addresses is read while posting.
        unsafe {
            let mut wr = SendWr::new(id, operation.code(), &mut sge, remote, rkey);
            match ffi::post_send((*self.id).qp, &mut wr) {
                0 => Ok(()),
                error => Err(format!("posting: {}", std::io::Error::from_raw_os_error(error))),
            }
        }
    }

    /// Posts a receive.
    pub fn post_receive(&self, id: u64, place: &Place) -> Result<(), String> {
        let mut sge = place.sge()?;
        // SAFETY: as in `post`.
        unsafe {
            let mut wr = RecvWr { wr_id: id, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
            match ffi::post_recv((*self.id).qp, &mut wr) {
                0 => Ok(()),
                error => Err(format!("posting a receive: {}", std::io::Error::from_raw_os_error(error))),
            }
        }
    }

    /// The IDs of requests that have completed, at least one. A bad status is an error, and so is a long silence.
    pub fn completions(&self) -> Result<Vec<u64>, String> {
        let started = Instant::now();
        let mut found = [Wc::default(); 16];
        loop {
            // SAFETY: the queue is alive.
            let count = unsafe { ffi::poll_cq(self.cq, &mut found) };
            if count < 0 {
                return Err("polling failed".to_string());
            }
            for wc in &found[..count as usize] {
                if wc.status != 0 {
                    // SAFETY: a string constant of the library's.
                    let status = unsafe { ffi::text((self.lib.ibv_wc_status_str)(wc.status)) };
                    return Err(format!("request {} completed in error: {status}", wc.wr_id));
                }
            }
            if count > 0 {
                return Ok(found[..count as usize].iter().map(|wc| wc.wr_id).collect());
            }
            if started.elapsed() > self.timeout {
                return Err(format!("nothing completed for {} s", self.timeout.as_secs()));
            }
            std::thread::yield_now();
        }
    }

    /// Says goodbye and waits until the other side has answered.
    pub fn disconnect(self, channel: &Channel) -> Result<(), String> {
        // SAFETY: the ID is alive.
        check(unsafe { (self.lib.rdma_disconnect)(self.id) }, "disconnecting")?;
        channel.expect(event::DISCONNECTED).map(|_| ())
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: made by us and used by nobody else; the queue pair goes before its completion queue.
        unsafe {
            if !(*self.id).qp.is_null() {
                (self.lib.rdma_destroy_qp)(self.id);
            }
            (self.lib.ibv_destroy_cq)(self.cq);
            (self.lib.rdma_destroy_id)(self.id);
        }
    }
}

fn parameters(data: &[u8], (responder_resources, initiator_depth): (u8, u8), retry_count: u8) -> ConnParam {
    ConnParam {
        private_data: if data.is_empty() { std::ptr::null() } else { data.as_ptr().cast() },
        private_data_len: data.len() as u8,
        responder_resources,
        initiator_depth,
        flow_control: 1,
        retry_count,
        rnr_retry_count: 7,
        srq: 0,
        qp_num: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_sixteen_bytes() {
        let offer = Offer { address: 0x1_0000_0020, rkey: 0x105, length: 65536 };
        assert_eq!(offer.encode(), [0, 0, 0, 1, 0, 0, 0, 0x20, 0, 0, 1, 5, 0, 1, 0, 0]);
        assert_eq!(Offer::decode(&offer.encode()), Some(offer));
        assert_eq!(offer.record(), [0, 0, 1, 5, 0, 0, 0, 1, 0, 0, 0, 0x20]);
        assert_eq!((Offer::decode(&[0; 196]), Offer::decode(&[1; 15])), (None, None));
    }
}
