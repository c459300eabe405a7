//! What a plugin may use.

use serde::Serialize;

/// Limits of one call. Part of the key of every kept answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Fuel: about one per WebAssembly instruction. It decides, so that the same call ends the same way everywhere.
    pub fuel: u64,
    /// Wall-clock backstop in milliseconds, about 20 times what the fuel takes.
    pub wall_ms: u64,
    /// Linear memory in bytes.
    pub memory: usize,
    /// Stack in bytes.
    pub stack: usize,
    /// Elements of a table.
    pub table: usize,
    /// Bytes that one answer may have, all strings together.
    pub answer: usize,
    /// Bytes that a component may have.
    pub component: usize,
    /// Bytes that the host copies out of a component per call, whatever the answer looks like.
    pub hostcall: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 2_000_000_000,
            wall_ms: 40_000,
            memory: 256 << 20,
            stack: 512 << 10,
            table: 100_000,
            answer: 8 << 20,
            component: 64 << 20,
            hostcall: 16 << 20,
        }
    }
}

/// Pages that start the note of a panic; see `plugins/sdk/src/panic.rs`.
const NOTE_BEGIN: usize = 0x7e00;
/// Pages for a byte of 0 of the note.
const NOTE_BYTE: usize = 0x7f00;
/// Bytes of a note that are kept.
const NOTE_LIMIT: usize = 4000;
const PAGE: usize = 65_536;

/// Watches what a component asks for; also where the text of a panic comes in.
#[derive(Debug)]
pub(super) struct Limiter {
    memory: usize,
    table: usize,
    note: Vec<u8>,
    /// Set once the memory limit was hit.
    pub out_of_memory: bool,
}

impl Limiter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { memory: limits.memory, table: limits.table, note: Vec::new(), out_of_memory: false }
    }

    /// The text of the panic, if the component left one.
    pub(super) fn note(&self) -> Option<String> {
        (!self.note.is_empty()).then(|| String::from_utf8_lossy(&self.note).into_owned())
    }
}

impl wasmtime::ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let pages = desired.saturating_sub(current) / PAGE;
        if pages == NOTE_BEGIN {
            self.note.clear();
            return Ok(false);
        }
        if let Some(byte) = pages.checked_sub(NOTE_BYTE).and_then(|b| u8::try_from(b).ok()) {
            if self.note.len() < NOTE_LIMIT {
                self.note.push(byte);
            }
            return Ok(false);
        }
        if desired > self.memory {
            self.out_of_memory = true;
            return Err(wasmtime::Error::msg("forcing trap when growing memory"));
        }
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table {
            self.out_of_memory = true;
            return Err(wasmtime::Error::msg("forcing trap when growing a table"));
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        4
    }
}
