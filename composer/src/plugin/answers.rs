//! Answers kept by content.
//!
//! A component is pure, so an answer is a function of component, question, limits and host. Kept are good answers, after
//! validation, and a plugin's own diagnostics; traps, timeouts and breaches are not.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::types::PluginDiagnostic;

/// Changes when the checks of answers or their form do.
const FORMAT: u32 = 1;

/// What is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    /// The answer itself.
    Good(Json),
    /// The plugin's diagnostics.
    Refused(Vec<PluginDiagnostic>),
}

/// The store: memory, and a folder.
pub(super) struct Answers {
    folder: PathBuf,
    memory: Mutex<HashMap<String, Answer>>,
}

impl Answers {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, memory: Mutex::new(HashMap::new()) }
    }

    /// The key of a question.
    pub(super) fn key(component: &str, question: &str, wit: &str, limits: &super::Limits, input: &Json) -> String {
        let key = serde_json::json!([FORMAT, env!("CARGO_PKG_VERSION"), wit, component, question, limits, input]);
        super::host::sha256(key.to_string().as_bytes())
    }

    pub(super) fn get(&self, key: &str) -> Option<Answer> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = memory.get(key) {
            return Some(answer.clone());
        }
        // A torn or foreign file is no answer.
        let answer: Answer = serde_json::from_slice(&std::fs::read(self.path(key)).ok()?).ok()?;
        memory.insert(key.to_owned(), answer.clone());
        Some(answer)
    }

    /// Keeps an answer. A folder that cannot be written only makes the next run slower.
    pub(super) fn put(&self, key: &str, answer: &Answer) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), answer.clone());
        if let Ok(text) = serde_json::to_vec(answer) {
            let _ = write_whole(&self.path(key), &text);
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// Writes a file under a temporary name and renames it, so that nobody sees half of it.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
