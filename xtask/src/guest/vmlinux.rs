//! The ELF kernel inside a bzImage.
//!
//! QEMU enters an ELF `vmlinux` through its PVH note, which skips the decompressor: under software emulation the guest is up in a
//! third of the time. The place of the payload comes from the header, `Documentation/arch/x86/boot.rst` of the Linux source.

use crate::run;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// Where the compressed kernel is in a bzImage (needs boot protocol 2.08 or newer), without the size that follows it.
fn payload(image: &[u8]) -> Result<&[u8]> {
    let word = |at: usize| -> Result<usize> {
        let bytes = image.get(at..at + 4).context("too short for a bzImage")?;
        Ok(u32::from_le_bytes(bytes.try_into()?) as usize)
    };
    ensure!(image.get(0x202..0x206) == Some(b"HdrS"), "no bzImage: the boot header's magic is missing");
    let protocol = word(0x206)? & 0xffff;
    ensure!(protocol >= 0x208, "boot protocol {protocol:#x} is too old, 0x208 names the payload");
    let sectors = match image.get(0x1f1).copied().unwrap_or(0) {
        0 => 4,
        sectors => sectors as usize,
    };
    let start = (sectors + 1) * 512 + word(0x248)?;
    let end = start + word(0x24c)?;
    image.get(start..end).with_context(|| format!("the payload {start}..{end} is outside the file"))
}

/// Writes the ELF kernel of `bzimage` to `out`. `tools` is a folder with `usr/bin/xz` and `usr/bin/zstd` for machines that lack them.
pub fn extract(bzimage: &Path, tools: &Path, out: &Path) -> Result<()> {
    let image = std::fs::read(bzimage).with_context(|| format!("reading {}", bzimage.display()))?;
    let payload = payload(&image).with_context(|| format!("{}", bzimage.display()))?;
    // All formats but gzip carry the kernel's size in four more bytes.
    let body = &payload[..payload.len().saturating_sub(4)];
    let (tool, body) = match payload {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => ("xz", body),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", body),
        [0x1f, 0x8b, ..] => ("gzip", payload),
        _ => bail!("{}: the kernel is packed with a method other than xz, zstd and gzip", bzimage.display()),
    };
    let unpacked = tools.join("usr/bin").join(tool);
    let program = if run::on_path(tool).is_some() { Path::new(tool) } else { &unpacked };
    let elf = run::filter(Command::new(program).args(["-d", "-c"]), body).with_context(|| format!("unpacking {}", bzimage.display()))?;
    ensure!(elf.starts_with(b"\x7fELF"), "{}: what is packed inside is no ELF file", bzimage.display());
    std::fs::write(out, elf).with_context(|| format!("writing {}", out.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_found_where_the_header_says() {
        let mut image = vec![0; 4096];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&5_u32.to_le_bytes());
        image[1040..1045].copy_from_slice(b"hello");
        assert_eq!(payload(&image).unwrap(), b"hello");
        image[0x24c..0x250].copy_from_slice(&4096_u32.to_le_bytes());
        assert!(payload(&image).is_err());
        assert!(payload(&image[..0x240]).is_err());
        assert!(payload(b"MZ").is_err());
    }
}
