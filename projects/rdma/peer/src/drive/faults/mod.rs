//! Faults that other RoCEv2 gateware has, and what its users complained about: each a named case on the wire, which fails where the board
//! has the fault. docs/testing.md has the whole table, with those that only a bench can show.

mod connections;
pub(super) mod raw;
mod requester;
mod responder;
mod sends;

use super::{Target, wrong};
use crate::cm::tcp_service;
use crate::live::{Station, Wire};
use crate::model::connection::Phase;
use crate::packet::{Frame, Refusal};
use std::io;

/// What a case needs of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The service that offers a region: any board, and a model in its place.
    Region,
    /// The echo of SENDs of the plugin `key-exchanger`.
    Echo,
    /// The plugin `rdma-bench`: the board is the requester.
    Bench,
    /// Ping.
    Ping,
}

/// A fault by name.
pub struct Case<W> {
    pub name: &'static str,
    pub needs: Needs,
    run: fn(&mut Station<W>, &Ground) -> io::Result<()>,
}

/// Whom the cases connect to.
#[derive(Clone, Copy, Debug)]
struct Ground {
    /// The service that offers a region.
    region: Target,
    echo: Target,
    bench: Target,
}

const fn case<W>(name: &'static str, needs: Needs, run: fn(&mut Station<W>, &Ground) -> io::Result<()>) -> Case<W> {
    Case { name, needs, run }
}

/// All cases; the functions say what the fault was and what is right.
pub fn cases<W: Wire>() -> Vec<Case<W>> {
    use Needs::{Bench, Echo, Ping, Region};
    vec![
        // The model's faults.
        case("sequence-nak-has-the-expected-psn", Region, responder::sequence_nak_has_the_expected_psn),
        case("requester-psn-wraps", Bench, requester::psn_wraps),
        case("resend-from-the-exact-byte", Bench, requester::resend_from_the_exact_byte),
        case("read-resumed-from-the-exact-byte", Bench, requester::read_resumed_from_the_exact_byte),
        case("duplicate-write-is-checked", Region, responder::duplicate_write_is_checked),
        case("duplicate-read-is-checked", Region, responder::duplicate_read_is_checked),
        case("duplicate-atomic-is-checked", Region, responder::duplicate_atomic_is_checked),
        case("read-is-bounded", Region, responder::read_is_bounded),
        case("write-stays-inside", Region, responder::write_stays_inside),
        case("unaligned-write-spares-neighbours", Region, responder::unaligned_write_spares_neighbours),
        case("wrong-icrc-is-dropped", Region, responder::wrong_icrc_is_dropped),
        case("icrc-after-a-ping", Ping, connections::icrc_after_a_ping),
        case("coalesced-ack-retires-all", Bench, requester::coalesced_ack_retires_all),
        case("empty-receive-queue-gets-rnr", Echo, sends::empty_receive_queue_gets_rnr),
        case("send-without-a-receive-is-not-lost", Echo, sends::send_without_a_receive_is_not_lost),
        case("retries-run-out-in-error", Bench, requester::retries_run_out_in_error),
        case("rnr-timer-is-kept", Bench, requester::rnr_timer_is_kept),
        case("timeout-is-the-negotiated-one", Bench, requester::timeout_is_the_negotiated_one),
        case("pmtu-4096-is-done-or-refused", Region, connections::pmtu_4096_is_done_or_refused),
        case("dreq-is-answered", Region, connections::dreq_is_answered),
        case("second-req-gets-the-same-rep", Region, connections::second_req_gets_the_same_rep),
        case("udp-source-port", Bench, requester::udp_source_port),
        case("source-ip-is-checked", Region, responder::source_ip_is_checked),
        case("truncated-packet-spoils-nothing", Region, responder::truncated_packet_spoils_nothing),
        case("many-acks-then-a-read", Region, responder::many_acks_then_a_read),
        // What users complained about.
        case("long-write-does-not-stall", Region, responder::long_write_does_not_stall),
        case("replay-keeps-the-last-flag", Bench, requester::replay_keeps_the_last_flag),
        case("read-replay-keeps-the-last-flag", Region, responder::read_replay_keeps_the_last_flag),
        case("goes-on-after-loss", Region, responder::goes_on_after_loss),
        case("requester-goes-on-after-loss", Bench, requester::goes_on_after_loss),
        case("every-packet-has-an-icrc", Bench, requester::every_packet_has_an_icrc),
        case("completion-does-not-lag", Bench, requester::completion_does_not_lag),
        case("read-of-every-size", Region, responder::read_of_every_size),
        case("not-dead-after-one-packet", Region, responder::not_dead_after_one_packet),
        case("second-connection-has-its-own-psn", Region, connections::second_connection_has_its_own_psn),
        case("no-storm-of-rnr-naks", Echo, sends::no_storm_of_rnr_naks),
        case("teardown-in-mid-transfer", Bench, connections::teardown_in_mid_transfer),
        case("peer-restarts", Region, connections::peer_restarts),
        case("rnr-during-a-replay", Bench, requester::rnr_during_a_replay),
        case("many-connects", Region, connections::many_connects),
        case("zero-length-takes-a-psn", Region, responder::zero_length_takes_a_psn),
        case("requester-zero-length-takes-a-psn", Bench, requester::zero_length_takes_a_psn),
        case("rnr-code-0-is-the-longest", Bench, requester::rnr_code_0_is_the_longest),
    ]
}

/// The names of all.
pub fn names() -> Vec<&'static str> {
    cases::<crate::live::ModelBoard>().iter().map(|case| case.name).collect()
}

/// The names of those that any board can be tried with, and a model.
pub fn of_a_region() -> Vec<String> {
    let cases = cases::<crate::live::ModelBoard>();
    cases.iter().filter(|case| case.needs == Needs::Region).map(|case| case.name.to_owned()).collect()
}

/// Runs the cases whose names are in `only`, all if it is empty; `say` gets each one's name and what went wrong, if anything did. A case
/// that fails does not stop the next.
///
/// # Errors
/// A name that is none; a wire that is gone.
pub fn run<W: Wire>(
    station: &mut Station<W>,
    target: Target,
    only: &[String],
    mut say: impl FnMut(&'static str, Result<(), String>),
) -> io::Result<()> {
    let service = |port| Target { service: tcp_service(port), region: Some(raw::NOWHERE), ..target };
    let ground = Ground { region: target, echo: service(super::all::ECHO_PORT), bench: service(super::all::BENCH_PORT) };
    let cases = cases::<W>();
    if let Some(unknown) = only.iter().find(|name| cases.iter().all(|case| case.name != **name)) {
        let names = cases.iter().map(|case| case.name).collect::<Vec<_>>().join(", ");
        return Err(wrong(format!("there is no case {unknown}; there are {names}")));
    }
    for case in cases.iter().filter(|case| only.is_empty() || only.iter().any(|name| name == case.name)) {
        let (limits, from) = (station.node.limits, station.records.len());
        let result = (case.run)(station, &ground).and_then(|()| whole(station, from, target));
        station.node.limits = limits;
        clear(station)?;
        say(case.name, result.map_err(|error| error.to_string()));
    }
    Ok(())
}

/// Every RoCEv2 frame of the board's has right lengths and a right ICRC.
fn whole<W: Wire>(station: &Station<W>, from: usize, target: Target) -> io::Result<()> {
    let ours = |frame: &[u8]| frame.len() >= 34 && frame[26..30] == target.ip.octets();
    let frames = station.records[from..].iter().filter(|record| ours(&record.frame));
    for record in frames {
        if let Err(refusal @ (Refusal::Icrc { .. } | Refusal::Malformed(_))) = Frame::decode(&record.frame) {
            return Err(wrong(format!("the board's frame {}: {refusal}", record.number)));
        }
    }
    Ok(())
}

/// What a case has left open is closed, so that the next one finds all queue pairs free.
fn clear<W: Wire>(station: &mut Station<W>) -> io::Result<()> {
    use crate::model::link::{Faults, Link};
    (station.outward, station.inward) = (Link::new(0, Faults::default(), 0), Link::new(0, Faults::default(), 0));
    for id in 0..station.node.connections.len() {
        if station.node.connections[id].phase != Phase::Closed {
            // An answer that does not come is the next case's failure.
            let _ = super::disconnect(station, id);
        }
    }
    let until = station.now() + 20_000;
    station.run(until, |_| false).map(|_| ())
}
