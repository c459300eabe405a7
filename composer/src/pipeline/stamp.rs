//! Whether anything changed since the last run: a stamp file with the hash of every input and output.
//!
//! An unchanged project costs one read per file and no plugin call, no Veryl pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache;

/// What a run was made from and what it made.
#[derive(Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Stamp {
    /// Version and build of the program, target and options.
    pub key: String,
    /// Hash of each input file, by path as it was given.
    pub inputs: BTreeMap<PathBuf, String>,
    /// Hash of each output file, by path below the output folder.
    pub outputs: BTreeMap<PathBuf, String>,
}

/// Hash of a file; a file that cannot be read hashes to nothing that a readable one does.
fn hash(path: &Path) -> String {
    cache::sha256_file(path).unwrap_or_else(|_| "absent".to_owned())
}

impl Stamp {
    /// Hashes the inputs.
    pub fn of_inputs(key: String, inputs: &[PathBuf]) -> Stamp {
        let inputs = inputs.iter().map(|p| (p.clone(), hash(p))).collect();
        Stamp { key, inputs, outputs: BTreeMap::new() }
    }

    /// Whether every input and output is still what it was.
    pub fn holds(&self, key: &str, out: &Path) -> bool {
        self.key == key
            && !self.outputs.is_empty()
            && self.inputs.iter().all(|(path, was)| hash(path) == *was)
            && self.outputs.iter().all(|(path, was)| hash(&out.join(path)) == *was)
    }
}
