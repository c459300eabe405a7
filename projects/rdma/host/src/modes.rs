//! What the program does once it can talk to rdma-core.

use crate::ffi::{Functions, event};
use crate::options::{Mode, Options};
use crate::rdma::{Channel, Connection, Domain, Offer, Operation, Place, Region};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One measurement.
#[derive(Clone, Debug)]
pub struct Report {
    pub mode: &'static str,
    pub size: u32,
    pub count: u64,
    /// Payload in both directions.
    pub bytes: u64,
    pub seconds: f64,
    /// Messages that came back with a wrong byte.
    pub wrong: u64,
}

impl Report {
    pub fn mb_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds.max(1e-9)
    }

    pub fn line(&self) -> String {
        let Report { mode, size, count, bytes, seconds, wrong } = self;
        format!("mode={mode} size={size} count={count} bytes={bytes} seconds={seconds:.3} mb_s={:.3} wrong={wrong}", self.mb_s())
    }

    pub fn json(&self) -> String {
        let Report { mode, size, count, bytes, seconds, wrong } = self;
        format!(
            "{{\"mode\": \"{mode}\", \"size\": {size}, \"count\": {count}, \"bytes\": {bytes}, \"seconds\": {seconds:.6}, \"mb_s\": {:.3}, \"wrong\": {wrong}}}",
            self.mb_s()
        )
    }
}

/// A line on standard error once a second.
struct Progress {
    quiet: bool,
    shown: Instant,
}

impl Progress {
    fn new(options: &Options) -> Self {
        Progress { quiet: options.quiet, shown: Instant::now() }
    }

    fn show(&mut self, what: &str, done: u64, of: u64) {
        if !self.quiet && self.shown.elapsed() >= Duration::from_secs(1) {
            self.shown = Instant::now();
            eprintln!("{what}: {done} of {of}");
        }
    }
}

/// Contents of message `number`: a byte depends on its place, on the message and on the seed.
fn fill(bytes: &mut [u8], seed: u64, number: u64) {
    let mut state = (seed << 32 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for byte in bytes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        *byte = (state >> 56) as u8;
    }
}

/// Runs the mode; a report for each measurement.
pub fn run(lib: &Functions, options: &Options) -> Result<Vec<Report>, String> {
    match options.mode {
        Mode::Serve => serve(lib, options),
        Mode::Connects(count) => connects(lib, options, count).map(|report| vec![report]),
        _ => client(lib, options),
    }
}

fn client(lib: &Functions, options: &Options) -> Result<Vec<Report>, String> {
    let channel = Channel::new(lib)?;
    let id = Connection::resolve(&channel, options)?;
    let domain = Domain::of(lib, id)?;
    let (connection, private_data) = Connection::connect(&channel, id, &domain, options)?;
    let named = options.region.map(|(address, rkey, length)| Offer { address, rkey, length });
    let offer = named.or(Offer::decode(&private_data)).ok_or("the board's REP offers no region; --region names one")?;
    if options.offset + u64::from(options.size) > u64::from(offer.length) {
        return Err(format!("{} bytes at offset {} do not fit the board's region of {} bytes", options.size, options.offset, offer.length));
    }
    let size = options.size as usize;
    // What is written, what is read, and a record.
    let mut region = domain.region(2 * size + 12)?;
    if options.offer {
        let record = region.offer().record();
        region.bytes[2 * size..].copy_from_slice(&record);
        connection.post(0, Operation::Send, &Place { region: &region, offset: 2 * size, length: 12 }, 0, 0)?;
        connection.completions()?;
    }
    let mut work = Work { connection: &connection, offer, options, region: &mut region };
    let reports = match options.mode {
        Mode::Check => vec![work.check()?],
        Mode::BothWays => vec![work.stream("both", &[Operation::Write, Operation::Read])?],
        Mode::Bandwidth { write, read } => {
            let kinds = [(write, "write", Operation::Write), (read, "read", Operation::Read)];
            kinds.into_iter().filter(|kind| kind.0).map(|(_, name, operation)| work.stream(name, &[operation])).collect::<Result<_, _>>()?
        }
        Mode::Connects(_) | Mode::Serve => vec![],
    };
    connection.disconnect(&channel)?;
    Ok(reports)
}

struct Work<'a, 'b> {
    connection: &'a Connection<'b>,
    offer: Offer,
    options: &'a Options,
    region: &'a mut Region<'b>,
}

impl Work<'_, '_> {
    fn post(&self, id: u64, operation: Operation) -> Result<(), String> {
        let length = self.options.size;
        let place = Place { region: self.region, offset: if operation == Operation::Read { length as usize } else { 0 }, length };
        self.connection.post(id, operation, &place, self.offer.address + self.options.offset, self.offer.rkey)
    }

    /// Writes, reads back, compares.
    fn check(&mut self) -> Result<Report, String> {
        let Options { count, size, seed, compare, .. } = *self.options;
        let (half, started, mut wrong) = (size as usize, Instant::now(), 0);
        let mut progress = Progress::new(self.options);
        for number in 0..count {
            let (written, read) = self.region.bytes.split_at_mut(half);
            fill(written, seed, number);
            read[..half].iter_mut().zip(written).for_each(|(byte, written)| *byte = !*written);
            for operation in [Operation::Write, Operation::Read] {
                self.post(number, operation)?;
                self.connection.completions()?;
            }
            let (written, read) = self.region.bytes.split_at(half);
            if compare && let Some(at) = written.iter().zip(&read[..half]).position(|(a, b)| a != b) {
                eprintln!("message {number}, byte {at}: wrote {:#04x}, read {:#04x}", written[at], read[at]);
                wrong += 1;
            }
            progress.show("written and read back", number + 1, count);
        }
        let bytes = 2 * count * u64::from(size);
        Ok(Report { mode: "check", size, count, bytes, seconds: started.elapsed().as_secs_f64(), wrong })
    }

    /// `count` messages of each operation, `depth` outstanding.
    fn stream(&mut self, mode: &'static str, operations: &[Operation]) -> Result<Report, String> {
        let Options { count, size, depth, seed, .. } = *self.options;
        let total = count * operations.len() as u64;
        fill(&mut self.region.bytes[..size as usize], seed, 0);
        let started = Instant::now();
        let (mut posted, mut done) = (0, 0);
        let mut progress = Progress::new(self.options);
        while done < total {
            while posted < total && posted - done < u64::from(depth) {
                self.post(posted, operations[posted as usize % operations.len()])?;
                posted += 1;
            }
            done += self.connection.completions()?.len() as u64;
            progress.show(mode, done, total);
        }
        Ok(Report { mode, size, count: total, bytes: total * u64::from(size), seconds: started.elapsed().as_secs_f64(), wrong: 0 })
    }
}

fn connects(lib: &Functions, options: &Options, count: u32) -> Result<Report, String> {
    let channel = Channel::new(lib)?;
    let started = Instant::now();
    let mut progress = Progress::new(options);
    for number in 0..count {
        let once = || -> Result<(), String> {
            let id = Connection::resolve(&channel, options)?;
            let domain = Domain::of(lib, id)?;
            let (connection, _) = Connection::connect(&channel, id, &domain, options)?;
            connection.disconnect(&channel)
        };
        once().map_err(|error| format!("connection {number}: {error}"))?;
        progress.show("connected", (number + 1).into(), count.into());
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Report { mode: "connects", size: 0, count: count.into(), bytes: 0, seconds, wrong: 0 })
}

/// Bytes that a server offers.
const OFFERED: usize = 1 << 20;

fn serve(lib: &Functions, options: &Options) -> Result<Vec<Report>, String> {
    let channel = Channel::new(lib)?;
    let listener = channel.new_id()?;
    channel.listen(listener, options)?;
    let mut connections = BTreeMap::new();
    // Made with the first connection, when the device is known.
    let mut shared: Option<(Domain, Region)> = None;
    loop {
        let happened = channel.next()?;
        match happened.kind {
            event::CONNECT_REQUEST => {
                if shared.is_none() {
                    let domain = Domain::of(lib, happened.id)?;
                    let region = domain.region(OFFERED)?;
                    shared = Some((domain, region));
                }
                let Some((domain, region)) = &shared else { continue };
                match Connection::accept(&channel, &happened, domain, &region.offer().encode(), options) {
                    Ok(connection) => {
                        for receive in 0..8 {
                            connection.post_receive(receive, &Place { region, offset: OFFERED - 64, length: 64 })?;
                        }
                        connections.insert(happened.id as usize, connection);
                    }
                    Err(error) => eprintln!("a connection: {error}"),
                }
            }
            event::DISCONNECTED => {
                connections.remove(&(happened.id as usize));
            }
            _ => {}
        }
    }
}
