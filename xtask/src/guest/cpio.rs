//! A writer for `newc` cpio archives, the format of a Linux initramfs.
//!
//! Written here because it needs neither root (device nodes are plain records of the archive) nor a `cpio` program on the
//! machine. The same tree gives the same bytes: inode numbers count up, times are zero and the owner is root.
//! Format: `Documentation/driver-api/early-userspace/buffer-format.rst` of the Linux source.

use std::io::{self, Write};

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// Writes one archive to `W`. Call [`Archive::finish`] at the end: without the trailer the kernel refuses it.
pub struct Archive<W: Write> {
    out: W,
    inode: u32,
    offset: u64,
}

impl<W: Write> Archive<W> {
    pub fn new(out: W) -> Self {
        Archive { out, inode: 1, offset: 0 }
    }

    /// A directory with mode 755. Its parent must be in the archive before it (the kernel makes none).
    pub fn directory(&mut self, path: &str) -> io::Result<()> {
        self.record(path, DIRECTORY | 0o755, &[], (0, 0))
    }

    /// A file with the permission bits `mode`.
    pub fn file(&mut self, path: &str, mode: u32, data: &[u8]) -> io::Result<()> {
        self.record(path, REGULAR | (mode & 0o7777), data, (0, 0))
    }

    /// A symbolic link at `path` that points to `target`.
    pub fn symlink(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.record(path, SYMLINK | 0o777, target.as_bytes(), (0, 0))
    }

    /// A character device, such as `/dev/console` = 5, 1.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) -> io::Result<()> {
        self.record(path, CHARACTER | 0o600, &[], (major, minor))
    }

    /// Writes the trailer and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.inode = 0;
        self.record("TRAILER!!!", 0, &[], (0, 0))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn record(&mut self, path: &str, mode: u32, data: &[u8], device: (u32, u32)) -> io::Result<()> {
        let path = path.trim_start_matches('/');
        let size = u32::try_from(data.len()).map_err(|_| io::Error::other(format!("{path} is larger than 4 GiB")))?;
        let name_size = path.len() as u32 + 1;
        let links = if mode & DIRECTORY != 0 && mode & REGULAR == 0 { 2 } else { 1 };
        let fields =
            [self.inode, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0].map(|value| format!("{value:08x}")).concat();
        self.put(b"070701")?;
        self.put(fields.as_bytes())?;
        self.put(path.as_bytes())?;
        self.put(b"\0")?;
        self.align()?;
        self.put(data)?;
        self.align()?;
        self.inode += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Header plus name, and data, each end on a multiple of four bytes.
    fn align(&mut self) -> io::Result<()> {
        let padding = (4 - self.offset % 4) % 4;
        self.put(&[0; 4][..padding as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_aligned_and_readable() {
        let mut archive = Archive::new(Vec::new());
        archive.directory("/a").unwrap();
        archive.file("/a/b", 0o644, b"hello").unwrap();
        archive.symlink("/c", "a/b").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        // Walk the archive as the kernel does.
        let (mut at, mut seen) = (0, Vec::new());
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |n: usize| {
                let start = at + 6 + 8 * n;
                usize::from_str_radix(std::str::from_utf8(&bytes[start..start + 8]).unwrap(), 16).unwrap()
            };
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = std::str::from_utf8(&bytes[at + 110..at + 110 + name_size - 1]).unwrap().to_string();
            let data = (at + 110 + name_size).next_multiple_of(4);
            seen.push((name, mode, bytes[data..data + size].to_vec()));
            at = (data + size).next_multiple_of(4);
        }
        let expected = [("a", 0o040_755, &b""[..]), ("a/b", 0o100_644, b"hello"), ("c", 0o120_777, b"a/b"), ("TRAILER!!!", 0, b"")];
        assert_eq!(seen, expected.map(|(name, mode, data)| (name.to_string(), mode, data.to_vec())));
    }
}
