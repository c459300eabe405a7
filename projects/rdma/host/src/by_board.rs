//! The board as requester: its plugin `rdma-bench` is told by SENDs what to do to our memory. The README of the plugin has the records.

use crate::ffi::Functions;
use crate::modes::Report;
use crate::options::{Mode, Options};
use crate::rdma::{Channel, Connection, Domain, Offer, Operation, Place};
use std::time::Instant;

/// What the board does; the numbers are those of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Write = 0,
    Read = 4,
    WriteAndRead = 7,
}

/// Flags of a command: fill the board's buffer first, check it at the end, fill it with something else than what is checked.
const FILL: u32 = 1;
const CHECK: u32 = 2;
const INVERT: u32 = 4;

impl Request {
    fn name(self) -> &'static str {
        match self {
            Request::Write => "board-write",
            Request::Read => "board-read",
            Request::WriteAndRead => "board-both",
        }
    }

    fn flags(self) -> u32 {
        match self {
            Request::Write => FILL,
            Request::Read => FILL | INVERT | CHECK,
            Request::WriteAndRead => FILL | CHECK,
        }
    }
}

/// Bytes of a command and of a result.
const COMMAND: usize = 60;
const RESULT: usize = 28;
/// Our memory that messages step through, at most.
const SPAN: u32 = 1 << 20;
/// The pattern begins at a multiple of it.
const BLOCK: u32 = 64;

/// Byte `at` of the board's pattern.
fn pattern(seed: u32, at: u32) -> u8 {
    let y = seed.wrapping_add((at / 4).wrapping_mul(0x9e37_79b9));
    (y ^ y >> 15).to_le_bytes()[at as usize % 4]
}

fn command(request: Request, messages: u32, span: u32, ours: &Offer, options: &Options) -> Vec<u8> {
    let words = [
        request as u32,
        options.size,
        messages,
        options.depth,
        ours.rkey,
        (ours.address >> 32) as u32,
        ours.address as u32,
        request.flags(),
        options.offset as u32,
        span,
        options.seed as u32,
        0,
        0,
        0,
        0,
    ];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

pub fn run(lib: &Functions, options: &Options) -> Result<Vec<Report>, String> {
    let requests: &[Request] = match options.mode {
        Mode::Bandwidth { write: true, read: true } => &[Request::Write, Request::Read],
        Mode::Bandwidth { write: true, .. } => &[Request::Write],
        Mode::Bandwidth { .. } => &[Request::Read],
        Mode::BothWays => &[Request::WriteAndRead],
        _ => return Err("--by-board wants -b or -B".to_string()),
    };
    let channel = Channel::new(lib)?;
    let id = Connection::resolve(&channel, options)?;
    let domain = Domain::of(lib, id)?;
    let (connection, private_data) = Connection::connect(&channel, id, &domain, options)?;
    let length = Offer::decode(&private_data).ok_or("the board's REP tells no buffer; is this the port of rdma-bench?")?.length;
    let room = length.saturating_sub(options.offset.min(length.into()) as u32).min(SPAN);
    if options.size > room {
        return Err(format!("{} bytes at offset {} do not fit the board's buffer of {length} bytes", options.size, options.offset));
    }
    let count = u32::try_from(options.count).map_err(|_| "-C is too large")?;
    let span = room / options.size * options.size;
    let span = span.min(count.saturating_mul(options.size));
    let mut region = domain.region(span as usize + COMMAND + RESULT)?;
    let ours = region.offer();
    let mut reports = Vec::new();
    for &request in requests {
        let skew = options.offset as u32 % BLOCK;
        for (at, byte) in (0..span).zip(&mut region.bytes[..]) {
            let right = pattern(options.seed as u32, at + skew);
            *byte = if request == Request::Read { right } else { !right };
        }
        let messages = if request == Request::WriteAndRead { count.checked_mul(2).ok_or("-C is too large")? } else { count };
        region.bytes[span as usize..][..COMMAND].copy_from_slice(&command(request, messages, span, &ours, options));
        let (told, result) = (span as usize, span as usize + COMMAND);
        connection.post_receive(1, &Place { region: &region, offset: result, length: RESULT as u32 })?;
        let started = Instant::now();
        connection.post(0, Operation::Send, &Place { region: &region, offset: told, length: COMMAND as u32 }, 0, 0)?;
        while !connection.completions()?.contains(&1) {}
        let seconds = started.elapsed().as_secs_f64();
        let words: Vec<u32> =
            region.bytes[result..].chunks_exact(4).filter_map(|word| word.try_into().ok()).map(u32::from_be_bytes).collect();
        let [status, done, cycles_high, cycles_low, least, most, wrong] = words[..] else { unreachable!("{RESULT} bytes") };
        if status != 0 || done != messages {
            return Err(format!("{}: status {status:#x}, {done} of {messages} messages", request.name()));
        }
        let cycles = u64::from(cycles_high) << 32 | u64::from(cycles_low);
        if !options.quiet {
            eprintln!("{}: {cycles} clock cycles of the board, {least} to {most} for a message", request.name());
        }
        let size = options.size as usize;
        let differs = |(number, message): (usize, &[u8])| {
            (0u32..).zip(message).any(|(at, byte)| *byte != pattern(options.seed as u32, (number * size) as u32 + at + skew))
        };
        let ours_wrong = region.bytes[..span as usize].chunks(size).enumerate().filter(|message| differs(*message)).count() as u64;
        if ours_wrong + u64::from(wrong) != 0 {
            eprintln!("{}: {ours_wrong} messages wrong in our memory, {wrong} words in the board's", request.name());
        }
        let bytes = u64::from(messages) * u64::from(options.size);
        reports.push(Report {
            mode: request.name(),
            size: options.size,
            count: messages.into(),
            bytes,
            seconds,
            wrong: ours_wrong + u64::from(wrong),
        });
    }
    connection.disconnect(&channel)?;
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of the plugin's documents.
    #[test]
    fn a_command_is_fifteen_words() {
        let options = Options::parse("-a 10.0.0.1 --by-board -b -w -S 4096 --offset 5 --seed 9".split_whitespace().map(str::to_string));
        let options = options.expect("good options");
        let ours = Offer { address: 0x1_0000_0020, rkey: 0x105, length: 0 };
        let bytes = command(Request::Write, 7, 8192, &ours, &options);
        assert_eq!(bytes.len(), COMMAND);
        let words: Vec<u32> = bytes.chunks_exact(4).filter_map(|word| word.try_into().ok()).map(u32::from_be_bytes).collect();
        assert_eq!(words, [0, 4096, 7, 8, 0x105, 1, 0x20, 1, 5, 8192, 9, 0, 0, 0, 0]);
        assert_eq!((options.port, pattern(1, 0), pattern(1, 5)), (18516, 1, 0x45));
    }
}
