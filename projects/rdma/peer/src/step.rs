//! The peer's side of the simulator's lock-step wire (`gateweave sim --wire step:SOCKET`, docs/simulation.md).

use crate::live::{Report, Sent, Wire};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection to a simulator. Closing it ends the run.
pub struct Step {
    reader: BufReader<UnixStream>,
    writer: BufWriter<UnixStream>,
    now: u64,
}

impl Step {
    /// Connects to a simulator that has said `ready`, and waits until it can receive frames.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn connect(path: &Path) -> io::Result<Step> {
        let stream = UnixStream::connect(path)?;
        let mut step = Step { reader: BufReader::new(stream.try_clone()?), writer: BufWriter::new(stream), now: 0 };
        step.report()?;
        Ok(step)
    }

    fn report(&mut self) -> io::Result<Report> {
        let mut report = Report::default();
        loop {
            let mut kind = [0];
            self.reader.read_exact(&mut kind)?;
            match kind[0] {
                1 => {
                    let (start, end) = (self.number()?, self.number()?);
                    let mut length = [0; 4];
                    self.reader.read_exact(&mut length)?;
                    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
                    self.reader.read_exact(&mut frame)?;
                    report.sent.push(Sent { start, end, frame });
                }
                2 => {
                    self.now = self.number()?;
                    return Ok(report);
                }
                3 => report.entered.push((self.number()?, self.number()?)),
                kind => return Err(io::Error::other(format!("the simulator sent a message of kind {kind}"))),
            }
        }
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl Wire for Step {
    fn now(&self) -> u64 {
        self.now
    }

    fn send(&mut self, time: u64, frame: &[u8]) -> io::Result<()> {
        self.writer.write_all(&[1])?;
        self.writer.write_all(&time.to_le_bytes())?;
        self.writer.write_all(&(frame.len() as u32).to_le_bytes())?;
        self.writer.write_all(frame)
    }

    fn advance(&mut self, time: u64) -> io::Result<Report> {
        self.writer.write_all(&[2])?;
        self.writer.write_all(&time.to_le_bytes())?;
        self.writer.flush()?;
        self.report()
    }
}
