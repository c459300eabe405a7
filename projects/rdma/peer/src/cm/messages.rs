//! CM messages with named fields. A field's place is `byte[bit], width`: byte offset behind the MAD header, its most significant bit.

use super::fields::message;

message! {
    /// Request for a connection.
    Req {
        local_comm_id: u32 = 0[7], 32;
        service_id: u64 = 8[7], 64;
        ca_guid: u64 = 16[7], 64;
        local_qkey: u32 = 28[7], 32;
        local_qpn: u32 = 32[7], 24;
        responder_resources: u8 = 35[7], 8;
        local_eecn: u32 = 36[7], 24;
        initiator_depth: u8 = 39[7], 8;
        remote_eecn: u32 = 40[7], 24;
        /// 4.096 us x 2^n, as all timeouts of CM.
        remote_response_timeout: u8 = 43[7], 5;
        /// 0 = RC.
        transport_type: u8 = 43[2], 2;
        flow_control: bool = 43[0], 1;
        /// The one that the recipient starts sending at.
        starting_psn: u32 = 44[7], 24;
        local_response_timeout: u8 = 47[7], 5;
        retry_count: u8 = 47[2], 3;
        pkey: u16 = 48[7], 16;
        /// Code, 1 to 5.
        path_mtu: u8 = 50[7], 4;
        rdc_exists: bool = 50[3], 1;
        rnr_retry_count: u8 = 50[2], 3;
        max_cm_retries: u8 = 51[7], 4;
        srq: bool = 51[3], 1;
        extended_transport: u8 = 51[2], 3;
        local_lid: u16 = 52[7], 16;
        remote_lid: u16 = 54[7], 16;
        flow_label: u32 = 88[7], 20;
        packet_rate: u8 = 91[5], 6;
        traffic_class: u8 = 92[7], 8;
        hop_limit: u8 = 93[7], 8;
        service_level: u8 = 94[7], 4;
        subnet_local: bool = 94[3], 1;
        ack_timeout: u8 = 95[7], 5;
    }
    bytes {
        local_gid: 16 = 56;
        remote_gid: 16 = 72;
        alternate_path: 44 = 96;
        private_data: 92 = 140;
    }
}

message! {
    /// Reply to a REQ.
    Rep {
        local_comm_id: u32 = 0[7], 32;
        remote_comm_id: u32 = 4[7], 32;
        local_qkey: u32 = 8[7], 32;
        local_qpn: u32 = 12[7], 24;
        local_eecn: u32 = 16[7], 24;
        /// The one that the sender of the REQ starts at.
        starting_psn: u32 = 20[7], 24;
        responder_resources: u8 = 24[7], 8;
        initiator_depth: u8 = 25[7], 8;
        target_ack_delay: u8 = 26[7], 5;
        failover_accepted: u8 = 26[2], 2;
        flow_control: bool = 26[0], 1;
        rnr_retry_count: u8 = 27[7], 3;
        srq: bool = 27[4], 1;
        ca_guid: u64 = 28[7], 64;
    }
    bytes { private_data: 196 = 36; }
}

message! {
    /// Ready to use.
    Rtu {
        local_comm_id: u32 = 0[7], 32;
        remote_comm_id: u32 = 4[7], 32;
    }
    bytes { private_data: 224 = 8; }
}

message! {
    /// Message receipt acknowledgement: more time is asked for.
    Mra {
        local_comm_id: u32 = 0[7], 32;
        remote_comm_id: u32 = 4[7], 32;
        /// 0 REQ, 1 REP, 2 LAP.
        message_mraed: u8 = 8[7], 2;
        service_timeout: u8 = 9[7], 5;
    }
    bytes { private_data: 222 = 10; }
}

message! {
    /// Reject.
    Rej {
        local_comm_id: u32 = 0[7], 32;
        remote_comm_id: u32 = 4[7], 32;
        /// 0 REQ, 1 REP, 2 other.
        message_rejected: u8 = 8[7], 2;
        /// Bytes of `info` that count.
        info_length: u8 = 9[7], 7;
        reason: u16 = 10[7], 16;
    }
    bytes {
        info: 72 = 12;
        private_data: 148 = 84;
    }
}

message! {
    /// Disconnect request.
    Dreq {
        local_comm_id: u32 = 0[7], 32;
        remote_comm_id: u32 = 4[7], 32;
        remote_qpn: u32 = 8[7], 24;
    }
    bytes { private_data: 220 = 12; }
}

message! {
    /// Disconnect reply.
    Drep {
        local_comm_id: u32 = 0[7], 32;
        remote_comm_id: u32 = 4[7], 32;
    }
    bytes { private_data: 224 = 8; }
}

message! {
    /// Service ID resolution request.
    SidrReq {
        request_id: u32 = 0[7], 32;
        pkey: u16 = 4[7], 16;
        service_id: u64 = 8[7], 64;
    }
    bytes { private_data: 216 = 16; }
}

message! {
    /// Service ID resolution response.
    SidrRep {
        request_id: u32 = 0[7], 32;
        /// 0 valid, 1 not supported, 2 rejected, 3 no QP, 4 redirect, 5 version.
        status: u8 = 4[7], 8;
        info_length: u8 = 5[7], 8;
        qpn: u32 = 8[7], 24;
        service_id: u64 = 12[7], 64;
        qkey: u32 = 20[7], 32;
    }
    bytes {
        info: 72 = 24;
        private_data: 136 = 96;
    }
}

message! {
    /// LAP (load alternate path) and APR (its response): only the IDs are named, RoCE has no alternate paths.
    ApAlternate {
        local_comm_id: u32 = 0[7], 32;
        remote_comm_id: u32 = 4[7], 32;
    }
    bytes { rest: 224 = 8; }
}

/// A message of the CM class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Req(Box<Req>),
    Mra(Box<Mra>),
    Rej(Box<Rej>),
    Rep(Box<Rep>),
    Rtu(Box<Rtu>),
    Dreq(Box<Dreq>),
    Drep(Box<Drep>),
    SidrReq(Box<SidrReq>),
    SidrRep(Box<SidrRep>),
    Lap(Box<ApAlternate>),
    Apr(Box<ApAlternate>),
    /// Another attribute, class, version or method.
    Other(u16, Box<[u8; 232]>),
}

/// What a REJ refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Req,
    Rep,
    Other,
}

impl Refused {
    pub fn code(self) -> u8 {
        match self {
            Refused::Req => 0,
            Refused::Rep => 1,
            Refused::Other => 2,
        }
    }
}

impl Message {
    /// Attribute ID.
    pub fn attribute(&self) -> u16 {
        match self {
            Message::Req(_) => 0x10,
            Message::Mra(_) => 0x11,
            Message::Rej(_) => 0x12,
            Message::Rep(_) => 0x13,
            Message::Rtu(_) => 0x14,
            Message::Dreq(_) => 0x15,
            Message::Drep(_) => 0x16,
            Message::SidrReq(_) => 0x17,
            Message::SidrRep(_) => 0x18,
            Message::Lap(_) => 0x19,
            Message::Apr(_) => 0x1a,
            Message::Other(attribute, _) => *attribute,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Message::Req(_) => "REQ",
            Message::Mra(_) => "MRA",
            Message::Rej(_) => "REJ",
            Message::Rep(_) => "REP",
            Message::Rtu(_) => "RTU",
            Message::Dreq(_) => "DREQ",
            Message::Drep(_) => "DREP",
            Message::SidrReq(_) => "SIDR_REQ",
            Message::SidrRep(_) => "SIDR_REP",
            Message::Lap(_) => "LAP",
            Message::Apr(_) => "APR",
            Message::Other(..) => "another message",
        }
    }

    /// (sender's, receiver's) communication ID; a REQ has only the first, SIDR none.
    pub fn comm_ids(&self) -> Option<(u32, u32)> {
        match self {
            Message::Req(m) => Some((m.local_comm_id, 0)),
            Message::Mra(m) => Some((m.local_comm_id, m.remote_comm_id)),
            Message::Rej(m) => Some((m.local_comm_id, m.remote_comm_id)),
            Message::Rep(m) => Some((m.local_comm_id, m.remote_comm_id)),
            Message::Rtu(m) => Some((m.local_comm_id, m.remote_comm_id)),
            Message::Dreq(m) => Some((m.local_comm_id, m.remote_comm_id)),
            Message::Drep(m) => Some((m.local_comm_id, m.remote_comm_id)),
            Message::Lap(m) | Message::Apr(m) => Some((m.local_comm_id, m.remote_comm_id)),
            Message::SidrReq(_) | Message::SidrRep(_) | Message::Other(..) => None,
        }
    }

    /// The 232 bytes behind the MAD header.
    pub fn encode(&self) -> [u8; 232] {
        match self {
            Message::Req(m) => m.encode(),
            Message::Mra(m) => m.encode(),
            Message::Rej(m) => m.encode(),
            Message::Rep(m) => m.encode(),
            Message::Rtu(m) => m.encode(),
            Message::Dreq(m) => m.encode(),
            Message::Drep(m) => m.encode(),
            Message::SidrReq(m) => m.encode(),
            Message::SidrRep(m) => m.encode(),
            Message::Lap(m) | Message::Apr(m) => m.encode(),
            Message::Other(_, data) => **data,
        }
    }

    /// From 232 bytes.
    pub fn decode(attribute: u16, data: &[u8]) -> Self {
        match attribute {
            0x10 => Message::Req(Box::new(Req::decode(data))),
            0x11 => Message::Mra(Box::new(Mra::decode(data))),
            0x12 => Message::Rej(Box::new(Rej::decode(data))),
            0x13 => Message::Rep(Box::new(Rep::decode(data))),
            0x14 => Message::Rtu(Box::new(Rtu::decode(data))),
            0x15 => Message::Dreq(Box::new(Dreq::decode(data))),
            0x16 => Message::Drep(Box::new(Drep::decode(data))),
            0x17 => Message::SidrReq(Box::new(SidrReq::decode(data))),
            0x18 => Message::SidrRep(Box::new(SidrRep::decode(data))),
            0x19 => Message::Lap(Box::new(ApAlternate::decode(data))),
            0x1a => Message::Apr(Box::new(ApAlternate::decode(data))),
            _ => {
                let mut whole = [0; 232];
                whole.copy_from_slice(&data[..232]);
                Message::Other(attribute, Box::new(whole))
            }
        }
    }
}
