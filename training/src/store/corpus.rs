//! Checks that a resumed run still has its training text and its ledger.
//!
//! A digest of private text confirms a guess of that text. It is therefore keyed, stays in the run
//! folder only while the run lasts, is readable by its owner alone, and is removed with the
//! checkpoint. Neither the ledger nor the certificate contains it.

use std::fs;
use std::path::Path;

use mechanisms::{OsRng, PrivacyRng, Purpose};
use serde::{Deserialize, Serialize};

use super::files;
use crate::RunError;
use crate::data::Units;
use durable::FileIdentity;

/// The record of a run's text and ledger that the folder keeps while the run lasts.
#[derive(Serialize, Deserialize)]
pub(super) struct Recorded {
    /// Random key, which only this file contains. The mirror of the ledger is also named after it.
    pub key: String,
    /// Keyed digest of the text.
    #[serde(default)]
    text_sha256: Option<String>,
    /// Identity of the ledger's own file, by which a copy is noticed. It reveals when the run
    /// began, so the ledger does not contain it.
    pub ledger: FileIdentity,
}

/// Draws a key of 256 bits.
///
/// # Errors
/// [`RunError::Failed`] if the system gives none.
pub(super) fn draw_key() -> Result<String, RunError> {
    let mut stream = OsRng::new()?.stream(Purpose::Data, 0, 0);
    let key: Vec<u8> = (0..4).flat_map(|_| stream.next_u64().to_le_bytes()).collect();
    Ok(durable::hex(&key))
}

/// Records the text that a run begins with, and the ledger that it begins.
///
/// # Errors
/// [`RunError::Storage`] if the file cannot be written.
pub(super) fn record(
    folder: &Path,
    key: String,
    units: &Units,
    ledger: FileIdentity,
) -> Result<(), RunError> {
    Recorded { text_sha256: Some(units.keyed_digest(key.as_bytes())), key, ledger }.write(folder)
}

impl Recorded {
    /// Reads what was recorded.
    ///
    /// # Errors
    /// [`RunError::Refused`] if it is missing.
    pub fn read(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(files::CORPUS_DIGEST);
        let recorded: Option<Self> =
            durable::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        recorded.ok_or_else(|| {
            RunError::Refused(format!(
                "{} is missing or damaged, so the training text cannot be compared with the text that the run began with; \
                 restore this file, or begin a new run in another folder with --out (the ε of the two runs add up)",
                path.display()
            ))
        })
    }

    /// Writes the record durably.
    ///
    /// # Errors
    /// [`RunError::Storage`] if the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_vec(self).map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(durable::write_atomic(&folder.join(files::CORPUS_DIGEST), &text)?)
    }

    /// Refuses text other than that which the run began with.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the text differs.
    pub fn check(&self, units: &Units) -> Result<(), RunError> {
        let Some(recorded) = &self.text_sha256 else {
            return Err(RunError::Refused(
                "the run was begun by an earlier version of this program, which recorded its training text in another way; resume it with \
                 that version, or begin a new run in another folder with --out (the ε of the two runs add up)"
                    .to_owned(),
            ));
        };
        if units.keyed_digest(self.key.as_bytes()) == *recorded {
            return Ok(());
        }
        Err(RunError::Refused(
            "data.source: the training text is not the text that the run began with, or its records are in another order; \
             restore it, or begin a new run in another folder with --out (the ε of the two runs add up)"
                .to_owned(),
        ))
    }
}

/// Removes the digest, which must not be published with its key.
///
/// # Errors
/// [`RunError::Storage`] if it exists and cannot be removed.
pub(crate) fn forget(folder: &Path) -> Result<(), RunError> {
    let path = folder.join(files::CORPUS_DIGEST);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(RunError::storage("remove", &path, &error))
        }
        _ => Ok(()),
    }
}
