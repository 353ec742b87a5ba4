//! Whether a checkpoint or a tokenizer was made from private text, by what its folder holds.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::certificate::DECLARED_PUBLIC;
use super::files;
use super::ledger::LedgerState;
use crate::RunError;

/// What `dp-tokenizer` states beside a vocabulary.
const PRIVACY_STATEMENT: &str = "privacy.json";

/// Refuses what a program of this project made from private text: the ε of a run would not cover it. `field` of the plan
/// names `folder`, or a file in it.
///
/// # Errors
/// [`RunError::Refused`] with the file that tells.
pub(crate) fn check_public(field: &str, folder: &Path) -> Result<(), RunError> {
    let ledger = folder.join(files::LEDGER);
    let was_public_run = ledger.exists().then(|| LedgerState::read(folder)).transpose()?;
    if was_public_run.is_some_and(|ledger| !ledger.header().public_data) {
        return Err(refused(field, &ledger));
    }
    for name in [files::CERTIFICATE_JSON, files::CONFIG, PRIVACY_STATEMENT] {
        let path = folder.join(name);
        let Some(found) = read(field, &path)? else { continue };
        let is_private = match name {
            files::CERTIFICATE_JSON => found["public_data"] != true,
            PRIVACY_STATEMENT => found["private"] != false,
            _ => found["privacy"].as_str().is_some_and(|mark| !mark.contains(DECLARED_PUBLIC)),
        };
        if is_private {
            return Err(refused(field, &path));
        }
    }
    Ok(())
}

/// A JSON file, if there is one.
fn read(field: &str, path: &Path) -> Result<Option<Value>, RunError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(RunError::storage("read", path, &error)),
    };
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|error| {
        RunError::Refused(format!(
            "{field}: {} is not JSON ({error}), so it cannot say whether private text was used; restore it",
            path.display()
        ))
    })
}

fn refused(field: &str, evidence: &Path) -> RunError {
    RunError::Refused(format!(
        "{field}: {} says that private text was used, and the ε of this run would not cover it; allowed: what was made from \
         public text; fix: start from such a checkpoint, let this plan train the vocabulary (tokenizer.train), or train in one run",
        evidence.display()
    ))
}
