//! Carries the text of a panic out of the component.
//!
//! A panic ends in a trap; a component that trapped cannot be called again,
//! and one without imports has nobody to tell. But it may ask for memory, and
//! the host sees what it asks for. So the hook spells the text in requests that
//! no host grants: growing by [`BEGIN`] pages starts a note, growing by
//! [`BYTE`]` + b` pages appends the byte `b` (UTF-8). The host refuses each, keeps
//! the note, and shows it with the trap. Authors in other languages can do the
//! same with their `memory.grow`.

use std::fmt::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::Once;

/// Pages (of 64 KiB) that start a note: 2,016 MiB, far above what the host grants.
const BEGIN: usize = 0x7e00;
/// Pages for a byte of 0.
const BYTE: usize = 0x7f00;
/// Longest text in bytes; the rest is cut.
const LIMIT: usize = 2000;

/// Sets the hook, once per instance.
pub fn install() {
    static ONCE: Once = Once::new();
    if cfg!(target_arch = "wasm32") {
        ONCE.call_once(|| std::panic::set_hook(Box::new(tell)));
    }
}

/// Allocates nothing: the panic may be about memory.
fn tell(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    ask(BEGIN);
    let mut note = Note { room: LIMIT };
    let _ = note.write_str(text.unwrap_or("a panic without a message"));
    if let Some(place) = info.location() {
        let _ = write!(note, " ({}:{})", place.file(), place.line());
    }
}

struct Note {
    room: usize,
}

impl Write for Note {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes().take(self.room) {
            ask(BYTE + usize::from(byte));
        }
        self.room = self.room.saturating_sub(text.len());
        Ok(())
    }
}

#[cfg(target_arch = "wasm32")]
fn ask(pages: usize) {
    let _refused = core::arch::wasm32::memory_grow::<0>(pages);
}

#[cfg(not(target_arch = "wasm32"))]
fn ask(_pages: usize) {}
