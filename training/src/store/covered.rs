//! Reads files of a finished run that its ledger names with their digests.
//!
//! A folder may hold other files too. No command takes a file for the run's unless its digest is in
//! the ledger.

use std::path::Path;

use super::ledger::{FileDigest, LedgerState, RoundedModel};
use super::{digest, files};
use crate::RunError;

/// The files from which a model is loaded. A file with such a name that the run did not write would
/// change the model's output.
const OF_MODEL: [&str; 8] = [
    files::MODEL,
    files::CONFIG,
    files::TOKENIZER,
    files::TOKENIZER_CONFIG,
    files::CHAT_TEMPLATE,
    files::GENERATION_CONFIG,
    files::ADAPTER,
    files::ADAPTER_CONFIG,
];

/// Name of an index of weights in parts. If a folder held one, the parts would be loaded in preference to the run's own
/// weights.
const INDEX: &str = "model.safetensors.index.json";

/// Reads a file of a finished run; [`None`] if the run wrote no such file, whatever the folder holds.
///
/// # Errors
/// [`RunError::Verification`] if it is not as the run wrote it, [`RunError::Storage`] if it cannot be read.
pub fn read(folder: &Path, written: &[FileDigest], name: &str) -> Result<Option<Vec<u8>>, RunError> {
    let Some(file) = written.iter().find(|file| file.name == name) else { return Ok(None) };
    let bytes = durable::read(&folder.join(name))?;
    if durable::sha256_hex(&bytes) == file.sha256 { Ok(Some(bytes)) } else { Err(altered(folder, name)) }
}

/// Refuses a finished run whose model, tokenizer or plan differs from what the run wrote. Its
/// weights may be those of an export in 16 bits.
///
/// # Errors
/// [`RunError::Refused`] if the run is not finished, [`RunError::Verification`] if a file was
/// changed or added.
pub(crate) fn check_model(folder: &Path) -> Result<(), RunError> {
    files::require_finished(folder)?;
    let ledger = LedgerState::read(folder)?;
    let Some((_, written)) = ledger.completed() else { return Err(files::unfinished(folder)) };
    let plan = FileDigest { name: files::PLAN.to_owned(), sha256: ledger.header().plan_file_sha256.clone() };
    let of_model = |file: &&FileDigest| OF_MODEL.contains(&&*file.name);
    let mut changed = Vec::new();
    for file in written.iter().filter(of_model).chain([&plan]) {
        if digest(folder, &file.name)? != *file {
            changed.push(file.name.as_str());
        }
    }
    if let Some(name) = changed.iter().find(|name| !ROUNDED.contains(name)) {
        return Err(altered(folder, name));
    }
    if let Some(last) = changed.last()
        && rounded(folder, &ledger)?.is_none()
    {
        return Err(altered(folder, last));
    }
    check_nothing_added(folder, written)
}

/// The files that an export in 16 bits changes.
pub(crate) const ROUNDED: [&str; 2] = [files::CONFIG, files::MODEL];

/// Returns the number format of the weights in a folder, if they are the run's weights in 16 bits,
/// with their configuration.
///
/// # Errors
/// [`RunError::Storage`] if they cannot be read.
pub(crate) fn rounded(folder: &Path, ledger: &LedgerState) -> Result<Option<String>, RunError> {
    let [config, model] = ROUNDED.map(|name| durable::sha256_of(&folder.join(name)));
    let (config, model) = (config?, model?);
    let is_here = |rounded: &&RoundedModel| rounded.config_sha256 == config && rounded.model_sha256 == model;
    Ok(ledger.rounded().iter().find(is_here).map(|rounded| rounded.dtype.clone()))
}

/// Refuses a folder with a file that the run did not write and from which a model would be loaded.
///
/// # Errors
/// [`RunError::Verification`].
pub fn check_nothing_added(folder: &Path, written: &[FileDigest]) -> Result<(), RunError> {
    let is_added = |name: &&str| {
        folder.join(name).symlink_metadata().is_ok() && written.iter().all(|file| file.name != **name)
    };
    match OF_MODEL.into_iter().chain([INDEX]).find(is_added) {
        None => Ok(()),
        Some(name) => Err(RunError::Verification(format!(
            "{} is not a file of the run, and it would change what the model says; remove it",
            folder.join(name).display()
        ))),
    }
}

fn altered(folder: &Path, name: &str) -> RunError {
    RunError::Verification(format!(
        "{} is not the file that the run wrote; put it back as it was",
        folder.join(name).display()
    ))
}
