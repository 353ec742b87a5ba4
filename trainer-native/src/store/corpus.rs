//! Whether a resumed run still has its training text.
//!
//! A digest of private text confirms a guess of that text. So it is keyed, stays in the run folder while the run lasts, readable
//! by its owner alone, and is removed with the checkpoint. Neither the ledger nor the certificate has it.

use std::fs;
use std::path::Path;

use mechanisms::{OsRng, PrivacyRng, Purpose};
use serde::{Deserialize, Serialize};

use super::files;
use crate::data::Units;
use crate::{RunError, durable};

#[derive(Serialize, Deserialize)]
struct Recorded {
    key: String,
    sha256: String,
}

/// Records the text that a run begins with.
///
/// # Errors
/// [`RunError::Storage`] if the file cannot be written, [`RunError::Failed`] if the system gives no random key.
pub(super) fn record(folder: &Path, units: &Units) -> Result<(), RunError> {
    let mut stream = OsRng::new()?.stream(Purpose::Data, 0, 0);
    let key: Vec<u8> = (0..4).flat_map(|_| stream.next_u64().to_le_bytes()).collect();
    let key = durable::hex(&key);
    let recorded = Recorded { sha256: units.keyed_digest(key.as_bytes())?, key };
    let text = serde_json::to_vec(&recorded).map_err(|error| RunError::Failed(error.to_string()))?;
    durable::write_private(&folder.join(files::CORPUS_DIGEST), &text)
}

/// Refuses text other than that which the run began with.
///
/// # Errors
/// [`RunError::Refused`] if the text differs, or if its digest is missing.
pub(super) fn check(folder: &Path, units: &Units) -> Result<(), RunError> {
    let path = folder.join(files::CORPUS_DIGEST);
    let recorded: Option<Recorded> =
        fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(recorded) = recorded else {
        return Err(RunError::Refused(format!(
            "{} is missing or damaged, so the training text cannot be compared with the text that the run began with; restore \
             this file, or begin a new run in another folder with --out (the ε of the two runs add up)",
            path.display()
        )));
    };
    if units.keyed_digest(recorded.key.as_bytes())? == recorded.sha256 {
        return Ok(());
    }
    Err(RunError::Refused(
        "data.source: the training text is not the text that the run began with, or its records are in another order; restore \
         it, or begin a new run in another folder with --out (the ε of the two runs add up)"
            .to_owned(),
    ))
}

/// Removes the digest, which must not be published with its key.
///
/// # Errors
/// [`RunError::Storage`] if it is there and stays.
pub(crate) fn forget(folder: &Path) -> Result<(), RunError> {
    let path = folder.join(files::CORPUS_DIGEST);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(RunError::storage("remove", &path, &error))
        }
        _ => Ok(()),
    }
}
