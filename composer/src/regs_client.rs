//! Talks to the registers of a running design: the other end of plugin `uart-regs`.
//!
//! The line is a serial device of a board, or the unix stream socket of a simulation. The protocol is in
//! `docs/registers.md`. Names come from `registers.json`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Words that one burst reads at most.
pub const BURST_MAX: usize = 64;
/// How long the other end may be silent.
const PATIENCE: Duration = Duration::from_secs(5);

const SYNC: u8 = 0x80;
const SET_ADDRESS: u8 = 0x81;
const WRITE: u8 = 0x82;
const READ: u8 = 0xc0;
/// A byte that is no command and is therefore refused.
const NO_COMMAND: u8 = 0x83;
/// Status of a command that was refused.
const REFUSED: u8 = 0x81;

/// What can go wrong on the line.
#[derive(Debug, thiserror::Error)]
pub enum RegsError {
    /// The device or socket failed, or stayed silent.
    #[error("the register line failed: {0}")]
    Io(#[from] io::Error),
    /// An answer that the protocol does not have.
    #[error("the register bridge answered {0:#04x}, which is no status")]
    Garbled(u8),
    /// The bridge did not take a command.
    #[error("the register bridge refused the command: bytes were lost on the line")]
    Refused,
    /// The bus answered an access with SLVERR or DECERR.
    #[error("no register answers at {address:#06x}: {}", if *.decode { "no block has this address" } else { "its block refused or did not answer" })]
    Bus {
        /// Byte address.
        address: u32,
        /// DECERR rather than SLVERR.
        decode: bool,
    },
    /// `registers.json` is not what this version writes.
    #[error("registers.json: {0}")]
    Map(String),
}

/// A line that bytes go over both ways.
pub trait Line: Read + Write {}
impl<T: Read + Write> Line for T {}

/// A client of the register bridge.
pub struct RegsClient {
    line: Box<dyn Line>,
}

/// A register with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Instance.
    pub instance: String,
    /// Register.
    pub register: String,
    /// Byte address.
    pub address: u32,
    /// Whether it is a counter.
    pub counter: bool,
    /// What it holds.
    pub value: u32,
}

impl RegsClient {
    /// Opens a unix stream socket or a serial device (8N1, raw, `baud` bits per second) and brings the bridge into step.
    ///
    /// # Errors
    /// [`RegsError::Io`] if it cannot be opened or nobody answers, and those of [`RegsClient::sync`].
    pub fn open(path: &Path, baud: u32) -> Result<RegsClient, RegsError> {
        let line: Box<dyn Line> = if std::fs::metadata(path)?.file_type().is_socket() {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Box::new(stream)
        } else {
            Box::new(serial(path, baud)?)
        };
        let mut client = RegsClient::on(line);
        client.sync()?;
        Ok(client)
    }

    /// A client on any line, not yet in step.
    pub fn on(line: Box<dyn Line>) -> RegsClient {
        RegsClient { line }
    }

    /// Brings both ends into step: whatever was half sent is forgotten, answers under way are skipped.
    ///
    /// # Errors
    /// [`RegsError::Io`] if nobody answers, [`RegsError::Garbled`] if what answers is not a bridge.
    pub fn sync(&mut self) -> Result<(), RegsError> {
        // A bridge that is busy with an answer does not see the first attempt; by the second it is done.
        let mut attempts = 3;
        self.send(&[NO_COMMAND])?;
        loop {
            match self.byte() {
                // Nothing else is answered with this in a session that works.
                Ok(REFUSED) => break,
                Ok(_) => {}
                Err(RegsError::Io(e)) if e.kind() == io::ErrorKind::TimedOut && attempts > 1 => {
                    attempts -= 1;
                    self.send(&[NO_COMMAND])?;
                }
                Err(error) => return Err(error),
            }
        }
        self.send(&[SYNC])?;
        self.status(0)
    }

    /// Reads `count` words from a byte address on.
    ///
    /// # Errors
    /// Those of the line, and [`RegsError::Bus`] for the first word that nothing answers for.
    pub fn read(&mut self, address: u32, count: usize) -> Result<Vec<u32>, RegsError> {
        let mut words = Vec::with_capacity(count);
        while words.len() < count {
            let burst = (count - words.len()).min(BURST_MAX);
            let start = address + 4 * words.len() as u32;
            self.set_address(start)?;
            self.send(&[READ | (burst - 1) as u8])?;
            let mut failed = None;
            for i in 0..burst {
                let status = self.status(start + 4 * i as u32);
                if let Err(RegsError::Bus { .. }) = status {
                    failed = failed.or(status.err());
                } else {
                    status?;
                }
                let mut word = 0_u64;
                for k in 0..5 {
                    let byte = self.byte()?;
                    if byte & 0x80 != 0 {
                        return Err(RegsError::Garbled(byte));
                    }
                    word |= u64::from(byte) << (7 * k);
                }
                words.push(word as u32);
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(words)
    }

    /// Writes one word.
    ///
    /// # Errors
    /// Those of the line, and [`RegsError::Bus`] if nothing takes it.
    pub fn write(&mut self, address: u32, value: u32) -> Result<(), RegsError> {
        self.set_address(address)?;
        let mut bytes = sevens(value.into(), 5);
        bytes.push(WRITE);
        self.send(&bytes)?;
        self.status(address)
    }

    /// Reads every readable register of `registers.json`, in the order of the file.
    ///
    /// # Errors
    /// [`RegsError::Map`] if the file is not of this shape, and those of [`RegsClient::read`].
    pub fn dump(&mut self, registers: &Json) -> Result<Vec<Reading>, RegsError> {
        let mut readings = readable(registers)?;
        let mut done = 0;
        while let Some(first) = readings.get(done) {
            let start = first.address;
            // One burst for as long as the addresses follow each other.
            let run = readings[done..].iter().zip(0..BURST_MAX as u32).take_while(|(r, i)| r.address == start + 4 * i).count();
            let values = self.read(start, run)?;
            for (reading, value) in readings[done..].iter_mut().zip(values) {
                reading.value = value;
            }
            done += run;
        }
        Ok(readings)
    }

    fn set_address(&mut self, address: u32) -> Result<(), RegsError> {
        if address % 4 != 0 || address > 0xffff {
            return Err(RegsError::Bus { address, decode: true });
        }
        let mut bytes = sevens((address / 4).into(), 2);
        bytes.push(SET_ADDRESS);
        self.send(&bytes)?;
        self.status(address)
    }

    fn status(&mut self, address: u32) -> Result<(), RegsError> {
        match self.byte()? {
            0x80 => Ok(()),
            REFUSED => Err(RegsError::Refused),
            0x82 => Err(RegsError::Bus { address, decode: false }),
            0x83 => Err(RegsError::Bus { address, decode: true }),
            byte => Err(RegsError::Garbled(byte)),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), RegsError> {
        self.line.write_all(bytes)?;
        Ok(self.line.flush()?)
    }

    fn byte(&mut self) -> Result<u8, RegsError> {
        let mut byte = [0];
        loop {
            match self.line.read(&mut byte) {
                Ok(1) => return Ok(byte[0]),
                // A socket that was closed, or a serial line that stayed silent.
                Ok(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer").into()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer").into());
                }
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// The low `7 * bytes` bits of a number, low ones first.
fn sevens(number: u64, bytes: u32) -> Vec<u8> {
    (0..bytes).map(|k| (number >> (7 * k)) as u8 & 0x7f).collect()
}

/// The registers of `registers.json` that can be read, values 0.
fn readable(registers: &Json) -> Result<Vec<Reading>, RegsError> {
    let shape = |what: &str| RegsError::Map(format!("{what} is missing or of the wrong type"));
    if registers["schema"] != 1 {
        return Err(RegsError::Map("not of schema 1".to_owned()));
    }
    let mut readings = Vec::new();
    for block in registers["blocks"].as_array().ok_or_else(|| shape("`blocks`"))? {
        let instance = block["instance"].as_str().ok_or_else(|| shape("`instance` of a block"))?;
        for register in block["registers"].as_array().ok_or_else(|| shape("`registers` of a block"))? {
            if register["access"] == "wo" {
                continue;
            }
            let address = register["address"].as_u64().and_then(|a| u32::try_from(a).ok());
            readings.push(Reading {
                instance: instance.to_owned(),
                register: register["name"].as_str().ok_or_else(|| shape("`name` of a register"))?.to_owned(),
                address: address.ok_or_else(|| shape("`address` of a register"))?,
                counter: register["kind"] == "counter",
                value: 0,
            });
        }
    }
    Ok(readings)
}

/// A line without a bridge: takes down what is sent, and hears what is given or, without that, a bridge whose registers are all 0.
#[derive(Default)]
struct Paper {
    said: Rc<RefCell<Vec<(Vec<u8>, usize)>>>,
    heard: VecDeque<u8>,
    given: bool,
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let answer: &[u8] = match bytes.last() {
            Some(&NO_COMMAND) => &[REFUSED],
            Some(&read) if read >= READ => &[SYNC, 0, 0, 0, 0, 0].repeat(usize::from(read - READ) + 1),
            _ => &[SYNC],
        };
        self.said.borrow_mut().push((bytes.to_vec(), answer.len()));
        if !self.given {
            self.heard.extend(answer);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Paper {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.heard.read(into)
    }
}

/// What [`RegsClient::dump`] says on a line where all goes well: bytes, and how many answer them.
///
/// # Errors
/// [`RegsError::Map`].
pub fn script(registers: &Json) -> Result<Vec<(Vec<u8>, usize)>, RegsError> {
    let said = Rc::default();
    let mut client = RegsClient::on(Box::new(Paper { said: Rc::clone(&said), ..Paper::default() }));
    client.sync()?;
    client.dump(registers)?;
    drop(client);
    Ok(said.take())
}

/// What [`RegsClient::dump`] finds, given the answers to [`script`].
///
/// # Errors
/// Those of [`RegsClient::dump`]; [`RegsError::Io`] where answers are missing.
pub fn replay(registers: &Json, heard: Vec<u8>) -> Result<Vec<Reading>, RegsError> {
    let mut client = RegsClient::on(Box::new(Paper { heard: heard.into(), given: true, ..Paper::default() }));
    client.sync()?;
    client.dump(registers)
}

/// Opens a serial device: raw, 8N1, reads give up after [`PATIENCE`].
#[allow(unsafe_code)] // termios has no safe interface in the standard library
fn serial(path: &Path, baud: u32) -> io::Result<std::fs::File> {
    let speed = match baud {
        9600 => libc::B9600,
        19200 => libc::B19200,
        38400 => libc::B38400,
        57600 => libc::B57600,
        115_200 => libc::B115200,
        230_400 => libc::B230400,
        460_800 => libc::B460800,
        921_600 => libc::B921600,
        1_000_000 => libc::B1000000,
        2_000_000 => libc::B2000000,
        3_000_000 => libc::B3000000,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{baud} baud is not a rate that Linux names"))),
    };
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    let fd = file.as_raw_fd();
    // SAFETY: `fd` is open for as long as `file` is, `settings` is a valid termios that tcgetattr fills before it is used.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(fd, &mut settings) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::cfmakeraw(&mut settings);
        settings.c_cflag |= libc::CLOCAL | libc::CREAD;
        settings.c_cflag &= !(libc::CRTSCTS | libc::CSTOPB | libc::PARENB);
        settings.c_cc[libc::VMIN] = 0;
        settings.c_cc[libc::VTIME] = (PATIENCE.as_secs() * 10) as libc::cc_t;
        if libc::cfsetspeed(&mut settings, speed) != 0 || libc::tcsetattr(fd, libc::TCSAFLUSH, &settings) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(file)
}
