//! What an export in 16 bits changed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files;
use super::ledger::FileDigest;
use crate::{RunError, durable};

/// Digests of the files that an export in 16 bits changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    /// Version of this format.
    pub format: u32,
    /// Number format of the weights, as `transformers` names it.
    pub dtype: String,
    /// The files.
    pub files: Vec<FileDigest>,
}

impl Export {
    /// What the export that wrote a folder changed; [`None`] in a run folder, and where nothing was changed.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the file is malformed.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        durable::read_json(&folder.join(files::EXPORT))
    }

    /// The files that were changed.
    pub fn names(&self) -> Vec<&str> {
        self.files.iter().map(|file| file.name.as_str()).collect()
    }

    /// SHA-256 of a file that was changed.
    pub fn digest(&self, name: &str) -> Option<&str> {
        self.files.iter().find(|file| file.name == name).map(|file| file.sha256.as_str())
    }
}
