//! The registers of a simulated board over its serial line: the protocol of plugin `uart-regs`.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Into step: no command, so that whatever was half sent is forgotten.
const NO_COMMAND: u8 = 0x83;
const ADDRESS: u8 = 0x81;
const WRITE: u8 = 0x82;
const READ: u8 = 0xc0;
const DONE: u8 = 0x80;
const REFUSED: u8 = 0x81;
/// A block that did not answer in time; it may be asked again.
const SLVERR: u8 = 0x82;
const TRIES: usize = 5;

/// Where the registers of a run are: the socket of `--regs`, and the map that came with the simulation.
#[derive(Clone, Debug)]
pub struct Place {
    pub socket: PathBuf,
    pub map: PathBuf,
}

pub struct Registers {
    line: UnixStream,
    map: serde_json::Value,
}

impl Registers {
    /// # Errors
    /// If the map cannot be read or nobody answers.
    pub fn open(place: &Place) -> Result<Registers> {
        let text = std::fs::read_to_string(&place.map).with_context(|| format!("reading {}", place.map.display()))?;
        let line = UnixStream::connect(&place.socket).with_context(|| format!("connecting to {}", place.socket.display()))?;
        line.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut registers = Registers { line, map: serde_json::from_str(&text)? };
        registers.line.write_all(&[NO_COMMAND])?;
        while registers.byte()? != REFUSED {}
        Ok(registers)
    }

    fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.line.read_exact(&mut byte).context("the register bus does not answer")?;
        Ok(byte[0])
    }

    /// Word address of a register.
    fn address(&self, instance: &str, register: &str) -> Result<u64> {
        address(&self.map, instance, register).with_context(|| format!("there is no register {instance}.{register}"))
    }

    fn command(&mut self, value: u64, arguments: usize, command: u8) -> Result<u8> {
        self.line.write_all(&encoded(value, arguments, command))?;
        self.byte()
    }

    /// # Errors
    /// If there is no such register, or the block refuses.
    pub fn write(&mut self, instance: &str, register: &str, value: u32) -> Result<()> {
        let address = self.address(instance, register)?;
        match (self.command(address, 2, ADDRESS)?, self.command(value.into(), 5, WRITE)?) {
            (DONE, DONE) => Ok(()),
            status => bail!("writing {instance}.{register}: status {status:x?}"),
        }
    }

    /// # Errors
    /// If there is no such register, or the block refuses again and again.
    pub fn read(&mut self, instance: &str, register: &str) -> Result<u32> {
        let address = self.address(instance, register)?;
        for _ in 0..TRIES {
            let set = self.command(address, 2, ADDRESS)?;
            let status = self.command(0, 0, READ)?;
            let mut value = 0;
            for at in 0..5 {
                value |= u64::from(self.byte()?) << (7 * at);
            }
            match (set, status) {
                (DONE, DONE) => return Ok(value as u32),
                (DONE, SLVERR) => {}
                status => bail!("reading {instance}.{register}: status {status:x?}"),
            }
        }
        bail!("reading {instance}.{register}: refused {TRIES} times")
    }
}

/// Arguments, 7 bits a byte, the low ones first, then the command.
fn encoded(value: u64, arguments: usize, command: u8) -> Vec<u8> {
    (0..arguments).map(|at| (value >> (7 * at)) as u8 & 0x7f).chain([command]).collect()
}

fn address(map: &serde_json::Value, instance: &str, register: &str) -> Option<u64> {
    let block = map["blocks"].as_array()?.iter().find(|block| block["instance"] == instance)?;
    let found = block["registers"].as_array()?.iter().find(|found| found["name"] == register)?;
    Some(found["address"].as_u64()? / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_addresses() {
        assert_eq!(encoded(0xffff_ffff, 5, WRITE), [0x7f, 0x7f, 0x7f, 0x7f, 0x0f, WRITE]);
        assert_eq!(encoded(0x83, 2, ADDRESS), [0x03, 0x01, ADDRESS]);
        let map = serde_json::json!({ "blocks": [{ "instance": "a", "registers": [{ "name": "x", "address": 260 }] }] });
        assert_eq!((address(&map, "a", "x"), address(&map, "a", "y"), address(&map, "b", "x")), (Some(65), None, None));
    }
}
