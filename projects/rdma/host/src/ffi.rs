//! What is used of librdmacm and libibverbs, by hand: `rdma/rdma_cma.h` and `infiniband/verbs.h` of rdma-core.
//!
//! The libraries are opened when the program starts, so that it builds on machines without rdma-core. Posting and polling are inline
//! functions of the header; they call through the context's table of operations, and so do we.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// `struct rdma_cm_id`, its beginning.
#[repr(C)]
pub struct CmId {
    pub verbs: *mut Context,
    pub channel: *mut c_void,
    pub context: *mut c_void,
    pub qp: *mut Qp,
}

/// `struct rdma_conn_param`.
#[repr(C)]
pub struct ConnParam {
    pub private_data: *const c_void,
    pub private_data_len: u8,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retry_count: u8,
    pub rnr_retry_count: u8,
    pub srq: u8,
    pub qp_num: u32,
}

/// `struct rdma_cm_event` with the parameters of a connection.
#[repr(C)]
pub struct CmEvent {
    pub id: *mut CmId,
    pub listen_id: *mut CmId,
    pub event: c_int,
    pub status: c_int,
    pub conn: ConnParam,
}

/// `enum rdma_cm_event_type`.
pub mod event {
    pub const ADDR_RESOLVED: i32 = 0;
    pub const ROUTE_RESOLVED: i32 = 2;
    pub const CONNECT_REQUEST: i32 = 4;
    pub const ESTABLISHED: i32 = 9;
    pub const DISCONNECTED: i32 = 10;
    pub const TIMEWAIT_EXIT: i32 = 15;
}

/// `struct ibv_context`, its beginning: the device and the table of operations.
#[repr(C)]
pub struct Context {
    device: *mut c_void,
    operations: [*const c_void; 32],
}

/// Places in `struct ibv_context_ops`.
const POLL_CQ: usize = 11;
const POST_SEND: usize = 25;
const POST_RECV: usize = 26;

/// `struct ibv_qp` and `struct ibv_cq`, their beginning.
#[repr(C)]
pub struct Qp {
    context: *mut Context,
}
#[repr(C)]
pub struct Cq {
    context: *mut Context,
}

/// `struct ibv_mr`.
#[repr(C)]
pub struct Mr {
    context: *mut Context,
    pd: *mut c_void,
    pub addr: *mut c_void,
    pub length: usize,
    handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub struct QpInitAttr {
    pub qp_context: *mut c_void,
    pub send_cq: *mut Cq,
    pub recv_cq: *mut Cq,
    pub srq: *mut c_void,
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
    /// 2 = RC.
    pub qp_type: c_int,
    pub sq_sig_all: c_int,
}

/// `struct ibv_sge`.
#[repr(C)]
pub struct Sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

/// `struct ibv_send_wr` of SEND, WRITE and READ.
#[repr(C)]
pub struct SendWr {
    pub wr_id: u64,
    pub next: *mut SendWr,
    pub sg_list: *mut Sge,
    pub num_sge: c_int,
    /// `enum ibv_wr_opcode`: 0 WRITE, 2 SEND, 4 READ.
    pub opcode: c_int,
    /// 2 = signaled.
    pub send_flags: u32,
    pub imm_data: u32,
    pub remote_addr: u64,
    pub rkey: u32,
    /// The rest of the union, for larger members.
    rest: [u32; 5],
    qp_type: u64,
    tail: [u64; 6],
}

const _: () = assert!(size_of::<SendWr>() == 128 && size_of::<QpInitAttr>() == 64 && size_of::<Wc>() == 48 && size_of::<ConnParam>() == 24);

impl SendWr {
    pub fn new(wr_id: u64, opcode: c_int, sge: &mut Sge, remote_addr: u64, rkey: u32) -> Self {
        let next = std::ptr::null_mut();
        SendWr {
            wr_id,
            next,
            sg_list: sge,
            num_sge: 1,
            opcode,
            send_flags: 2,
            imm_data: 0,
            remote_addr,
            rkey,
            rest: [0; 5],
            qp_type: 0,
            tail: [0; 6],
        }
    }
}

/// `struct ibv_recv_wr`.
#[repr(C)]
pub struct RecvWr {
    pub wr_id: u64,
    pub next: *mut RecvWr,
    pub sg_list: *mut Sge,
    pub num_sge: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Wc {
    pub wr_id: u64,
    pub status: c_int,
    pub opcode: c_int,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm_data: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: u32,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

/// `struct sockaddr_in`.
#[repr(C)]
pub struct SockaddrIn {
    family: u16,
    port: [u8; 2],
    address: [u8; 4],
    zero: [u8; 8],
}

impl SockaddrIn {
    pub fn new(address: std::net::Ipv4Addr, port: u16) -> Self {
        // AF_INET
        SockaddrIn { family: 2, port: port.to_be_bytes(), address: address.octets(), zero: [0; 8] }
    }
}

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

fn open(name: &str) -> Result<*mut c_void, String> {
    let text = CString::new(name).map_err(|_| "a zero in a name")?;
    // SAFETY: a terminated string; RTLD_NOW | RTLD_GLOBAL. dlerror gives a terminated string after a failure.
    let (library, error) = unsafe {
        let library = dlopen(text.as_ptr(), 2 | 0x100);
        (library, if library.is_null() { CStr::from_ptr(dlerror()).to_string_lossy().into_owned() } else { String::new() })
    };
    if library.is_null() { Err(format!("{name}: {error}")) } else { Ok(library) }
}

fn symbol(library: *mut c_void, name: &str) -> Result<*mut c_void, String> {
    let text = CString::new(name).map_err(|_| "a zero in a name")?;
    // SAFETY: an open library and a terminated string.
    let found = unsafe { dlsym(library, text.as_ptr()) };
    if found.is_null() { Err(format!("rdma-core has no {name}")) } else { Ok(found) }
}

macro_rules! functions {
    ($($library:literal { $($name:ident: fn($($argument:ty),*) -> $result:ty;)* })*) => {
        /// The functions of both libraries.
        pub struct Functions { $($(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*)* }
        impl Functions {
            /// Opens the libraries and finds every function.
            pub fn load() -> Result<Functions, String> {
                Ok(Functions {
                    $($(
                        // SAFETY: the type is the one that the header declares for this name.
                        $name: unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(symbol(open($library)?, stringify!($name))?)
                        },
                    )*)*
                })
            }
        }
    };
}

functions! {
    "librdmacm.so.1" {
        rdma_create_event_channel: fn() -> *mut c_void;
        rdma_create_id: fn(*mut c_void, *mut *mut CmId, *mut c_void, c_int) -> c_int;
        rdma_destroy_id: fn(*mut CmId) -> c_int;
        rdma_resolve_addr: fn(*mut CmId, *const SockaddrIn, *const SockaddrIn, c_int) -> c_int;
        rdma_resolve_route: fn(*mut CmId, c_int) -> c_int;
        rdma_bind_addr: fn(*mut CmId, *const SockaddrIn) -> c_int;
        rdma_listen: fn(*mut CmId, c_int) -> c_int;
        rdma_create_qp: fn(*mut CmId, *mut c_void, *mut QpInitAttr) -> c_int;
        rdma_destroy_qp: fn(*mut CmId) -> ();
        rdma_connect: fn(*mut CmId, *mut ConnParam) -> c_int;
        rdma_accept: fn(*mut CmId, *mut ConnParam) -> c_int;
        rdma_disconnect: fn(*mut CmId) -> c_int;
        rdma_set_option: fn(*mut CmId, c_int, c_int, *mut c_void, usize) -> c_int;
        rdma_get_cm_event: fn(*mut c_void, *mut *mut CmEvent) -> c_int;
        rdma_ack_cm_event: fn(*mut CmEvent) -> c_int;
        rdma_event_str: fn(c_int) -> *const c_char;
    }
    "libibverbs.so.1" {
        ibv_alloc_pd: fn(*mut Context) -> *mut c_void;
        ibv_dealloc_pd: fn(*mut c_void) -> c_int;
        ibv_reg_mr: fn(*mut c_void, *mut c_void, usize, c_int) -> *mut Mr;
        ibv_dereg_mr: fn(*mut Mr) -> c_int;
        ibv_create_cq: fn(*mut Context, c_int, *mut c_void, *mut c_void, c_int) -> *mut Cq;
        ibv_destroy_cq: fn(*mut Cq) -> c_int;
        ibv_wc_status_str: fn(c_int) -> *const c_char;
    }
}

/// `ibv_post_send`.
///
/// # Safety
/// `qp` is alive, and what `wr` points to stays until its completion.
pub unsafe fn post_send(qp: *mut Qp, wr: &mut SendWr) -> c_int {
    let mut bad = std::ptr::null_mut();
    // SAFETY: by the caller; the table's entry has this type.
    unsafe {
        let call: unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int =
            std::mem::transmute((*(*qp).context).operations[POST_SEND]);
        call(qp, wr, &mut bad)
    }
}

/// `ibv_post_recv`.
///
/// # Safety
/// As [`post_send`].
pub unsafe fn post_recv(qp: *mut Qp, wr: &mut RecvWr) -> c_int {
    let mut bad = std::ptr::null_mut();
    // SAFETY: by the caller; the table's entry has this type.
    unsafe {
        let call: unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int =
            std::mem::transmute((*(*qp).context).operations[POST_RECV]);
        call(qp, wr, &mut bad)
    }
}

/// `ibv_poll_cq`; how many completions it wrote, negative on error.
///
/// # Safety
/// `cq` is alive.
pub unsafe fn poll_cq(cq: *mut Cq, completions: &mut [Wc]) -> c_int {
    // SAFETY: by the caller; the table's entry has this type.
    unsafe {
        let call: unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int = std::mem::transmute((*(*cq).context).operations[POLL_CQ]);
        call(cq, completions.len() as c_int, completions.as_mut_ptr())
    }
}

/// A string of the libraries'.
///
/// # Safety
/// `text` is terminated and lives for ever, as those of `rdma_event_str` and `ibv_wc_status_str` do.
pub unsafe fn text(text: *const c_char) -> String {
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
