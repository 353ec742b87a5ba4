//! Saves the tokenizer's file so that the result of a charged release is not lost.
//!
//! The contents are on the disk under a temporary name before the ledger names their digest, and are renamed after it.
//! Therefore only the file that the ledger names is ever taken for the tokenizer. Before a release is charged, the
//! temporary file reserves the space for its result.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use accountant::DpEvent;
use mechanisms::RandomnessSource;

use super::ledger::{Entry, Randomness};
use super::torn_line::result_lost;
use super::{RunStore, files};
use crate::progress::note;
use crate::{RunError, stop};
use durable::sha256_hex;

/// Time for which the result of a charged release waits for a disk that cannot be written.
const WAIT_FOR_DISK: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(500);

impl RunStore<'_> {
    /// Returns the tokenizer that the ledger names, checked against its digest; `None` before there is one.
    pub fn tokenizer(&self) -> Result<Option<Vec<u8>>, RunError> {
        let Some(sha256) = self.ledger().tokenizer() else { return Ok(None) };
        let path = self.path.join(files::TOKENIZER);
        let is_named = |path: &Path| durable::read(path).is_ok_and(|bytes| sha256_hex(&bytes) == sha256);
        let temporary = durable::temporary(&path);
        if !is_named(&path) && is_named(&temporary) {
            // An earlier process ended between the ledger's line and this point.
            fs::rename(&temporary, &path).map_err(|error| RunError::storage("write", &path, &error))?;
            durable::sync_parent(&path)?;
        }
        let bytes = durable::read(&path)?;
        if sha256_hex(&bytes) == sha256 {
            Ok(Some(bytes))
        } else {
            Err(RunError::Verification(format!("{} is not the file that the run saved", path.display())))
        }
    }

    /// Charges the vocabulary release, after taking `space` bytes of disk for its result. The release may run once this returns.
    ///
    /// # Errors
    /// [`RunError::Refused`] if an earlier process charged it with a secret key and lost its result; [`RunError::Storage`] if the
    /// disk is full, and nothing is charged.
    pub(crate) fn charge_release(
        &mut self,
        event: DpEvent,
        randomness: RandomnessSource,
        space: u64,
    ) -> Result<(), RunError> {
        match (self.ledger().release(), randomness) {
            (Some(_), RandomnessSource::OperatingSystem) => return Err(result_lost("vocabulary release")),
            // A known key gives the same output again, so nothing more is released.
            (Some(_), RandomnessSource::Test) => return Ok(()),
            (None, _) => {}
        }
        let unsaved = UnsavedTokenizer::create(&self.path.join(files::TOKENIZER), space)?;
        self.append(Entry::Release { event })?;
        self.unsaved_tokenizer = Some(unsaved);
        Ok(())
    }

    /// Saves the tokenizer and records its digest.
    ///
    /// # Errors
    /// [`RunError::Storage`]; where the tokenizer is the result of a release that cannot be repeated, only after waiting for the
    /// disk.
    pub(crate) fn save_tokenizer(&mut self, json: &str) -> Result<(), RunError> {
        let irreplaceable = self.ledger().release().is_some()
            && self.ledger().header().randomness == Randomness::OperatingSystem;
        let wait = if irreplaceable { WAIT_FOR_DISK } else { Duration::ZERO };
        let mut unsaved = match self.unsaved_tokenizer.take() {
            Some(unsaved) => unsaved,
            None => UnsavedTokenizer::create(&self.path.join(files::TOKENIZER), 0)?,
        };
        let entry = Entry::Tokenizer { sha256: sha256_hex(json.as_bytes()) };
        let saved = retry(wait, || unsaved.fill(json.as_bytes()))
            .and_then(|()| retry(wait, || self.append(entry.clone())));
        match saved {
            Ok(()) => unsaved.publish(),
            Err(error) if irreplaceable => Err(RunError::Refused(format!(
                "the vocabulary was released but cannot be saved ({error}): its privacy is spent and its result is lost; begin a \
                 new run in another folder with --out (the ε of the two runs add up)"
            ))),
            Err(error) => Err(error),
        }
    }
}

/// The tokenizer's contents under a temporary name, which is removed unless the ledger names them.
#[derive(Debug)]
pub(super) struct UnsavedTokenizer {
    file: File,
    path: PathBuf,
    published: bool,
}

impl UnsavedTokenizer {
    /// Creates the file with `space` bytes.
    fn create(path: &Path, space: u64) -> Result<Self, RunError> {
        let storage = |error: std::io::Error| RunError::storage("write", path, &error);
        let file = durable::create_private(&durable::temporary(path)).map_err(storage)?;
        let mut unsaved = Self { file, path: path.to_owned(), published: false };
        // Zeros that were written occupy disk space that can be overwritten. A length that was only
        // set does not.
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), space), &mut unsaved.file)
            .and_then(|_| unsaved.file.sync_all())
            .map_err(storage)?;
        Ok(unsaved)
    }

    fn fill(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        let file = &mut self.file;
        file.rewind()
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| file.set_len(bytes.len() as u64))
            .and_then(|()| file.sync_all())
            .map_err(|error| RunError::storage("write", &self.path, &error))
    }

    /// Renames the file. The ledger already names its digest, so a crash before this loses nothing.
    fn publish(mut self) -> Result<(), RunError> {
        self.published = true;
        fs::rename(durable::temporary(&self.path), &self.path)
            .map_err(|error| RunError::storage("write", &self.path, &error))?;
        Ok(durable::sync_parent(&self.path)?)
    }
}

impl Drop for UnsavedTokenizer {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(durable::temporary(&self.path));
        }
    }
}

/// Repeats an operation that a full or failing disk refuses, for at most `wait`.
fn retry(wait: Duration, mut attempt: impl FnMut() -> Result<(), RunError>) -> Result<(), RunError> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        match attempt() {
            Err(error @ RunError::Storage { .. }) if begun.elapsed() < wait && !stop::requested() => {
                if !std::mem::replace(&mut told, true) {
                    note(&format!(
                        "the released vocabulary waits in memory for the disk, for at most {} minutes; do not end this process: \
                         {error}",
                        wait.as_secs().div_ceil(60)
                    ));
                }
                std::thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(path: &Path) -> RunError {
        RunError::storage("write", path, &std::io::ErrorKind::StorageFull.into())
    }

    #[test]
    fn a_full_disk_is_waited_for_but_not_for_ever_and_no_other_error_is_repeated() {
        let path = Path::new("t");
        let mut left = 2;
        let twice_full = || match left {
            0 => Ok(()),
            _ => {
                left -= 1;
                Err(full(path))
            }
        };
        retry(Duration::from_secs(60), twice_full).unwrap();
        assert_eq!(left, 0);
        let mut tried = 0;
        let other = || {
            tried += 1;
            Err(RunError::Failed("other".into()))
        };
        assert!(retry(Duration::from_secs(60), other).is_err() && tried == 1);
        assert!(retry(Duration::ZERO, || Err(full(path))).is_err());
    }

    #[test]
    fn the_space_of_a_result_is_taken_before_it_exists_and_given_back_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let mut unsaved = UnsavedTokenizer::create(&path, 100_000).unwrap();
        assert_eq!(fs::metadata(durable::temporary(&path)).unwrap().len(), 100_000);
        unsaved.fill(b"{}").unwrap();
        assert!(!path.exists(), "no name before the ledger's line");
        unsaved.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{}");
        drop(UnsavedTokenizer::create(&path, 10).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
