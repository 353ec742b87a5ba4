//! The ledger: the charges of a run, each written before the computation that spends it.
//!
//! Each line is a JSON object with the digest of the line before it and its own. A line is on the
//! disk (`fdatasync`) before the computation that it announces begins, so a crash can only
//! overcount. Each *attempt* of a step is a line: a step that a crash burned is charged again when
//! it runs again.
//!
//! # Torn last line
//! A crash during an append can leave the beginning of a line. Its `fdatasync` never returned, so
//! the step it announces never ran. A disk that reports unfinished writes as done leaves the same
//! trace, so the unfinished line is charged as the step it would have reserved. Any other malformed
//! line is an error and is never repaired.
//!
//! # One file, one writer
//! The file is locked. Every append first checks that the path still leads to this file, by its
//! [`FileIdentity`], and that nobody else changed its length. The identity reveals when the run
//! began, so a private file of the run folder contains it, and the ledger does not. Each position
//! is mirrored outside the folder, so that an older state of the file is noticed.

mod charges;
mod entry;
mod lines;
mod parent;
mod state;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) use charges::Charges;
pub use entry::FileDigest;
pub(crate) use entry::{
    Computation, Entry, Header, NoiseDraw, PublicStage, Randomness, RoundedModel, Search,
};
pub(crate) use parent::{Parent, events_on_same_units, spent_by};
pub(crate) use state::LedgerPosition;
pub use state::LedgerState;

use super::files;
use super::mirror::Mirror;
use crate::RunError;
use durable::FileIdentity;

/// A ledger open for appending.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    identity: FileIdentity,
    length: u64,
    state: LedgerState,
    mirror: Option<Mirror>,
}

impl Ledger {
    /// Creates a ledger with its header and the stages that the run builds on. It is on the disk
    /// when this returns. `record` is called with the identity of the new file before the ledger
    /// exists.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written, or exists already.
    pub fn create(
        folder: &Path,
        header: Header,
        parents: &[Parent],
        record: impl FnOnce(FileIdentity) -> Result<(), RunError>,
    ) -> Result<Self, RunError> {
        let path = folder.join(files::LEDGER);
        // The file is written whole or not at all, so that a run folder never holds a ledger
        // without a header.
        if path.exists() {
            return Err(RunError::Refused(format!(
                "{} exists already; continue that run with --resume",
                path.display()
            )));
        }
        let mut state = LedgerState::empty();
        durable::write_new(&path, |identity| {
            record(identity)?;
            let mut lines = state.extend(Entry::Header(header))?;
            for parent in parents {
                lines.push_str(&state.extend(Entry::Parent(parent.clone()))?);
            }
            Ok::<_, RunError>(lines)
        })?;
        let (file, identity, length) = open_to_append(&path)?;
        Ok(Self { path, file, identity, length, state, mirror: None })
    }

    /// Opens the ledger of a run that stopped and removes a torn last line.
    ///
    /// Also returns the number of torn bytes. The caller charges them (see the module's documentation).
    ///
    /// # Errors
    /// [`RunError::Verification`] if any line but the last was altered.
    pub(crate) fn reopen(folder: &Path) -> Result<(Self, u64), RunError> {
        let path = folder.join(files::LEDGER);
        let (file, identity, length) = open_to_append(&path)?;
        let (state, torn) = LedgerState::read_tolerating_torn_end(&path)?;
        let length = length - torn;
        if torn > 0 {
            file.set_len(length)
                .and_then(|()| file.sync_all())
                .map_err(|error| RunError::storage("write", &path, &error))?;
        }
        Ok((Self { path, file, identity, length, state, mirror: None }, torn))
    }

    /// Records every later position outside the folder, too.
    pub(crate) fn mirror_to(&mut self, mirror: Option<Mirror>) {
        self.mirror = mirror;
    }

    /// Appends an entry; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be made durable, [`RunError::Failed`] if it does not follow from the entries
    /// before it. The computation it announces must then not run.
    pub fn append(&mut self, entry: Entry) -> Result<(), RunError> {
        let (line, digest) = self.state.line_after(&entry)?;
        self.check_untouched()?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        let written = written.map_err(|error| RunError::storage("write", &self.path, &error));
        let position = LedgerPosition { lines: self.state.position().lines + 1, sha256: digest.clone() };
        let noted =
            written.and_then(|()| self.mirror.as_mut().map_or(Ok(()), |mirror| mirror.note(&position)));
        if let Err(error) = noted {
            // Remove the part that was written, so that the failure is not read as a torn line
            // later. If this fails too, the torn line is charged, which is safe.
            let _ = self.file.set_len(self.length).and_then(|()| self.file.sync_all());
            return Err(error);
        }
        self.length += line.len() as u64;
        self.state.push(entry, digest);
        Ok(())
    }

    /// Refuses to continue if another program removed, replaced, shortened or extended the file.
    fn check_untouched(&self) -> Result<(), RunError> {
        let there = fs::metadata(&self.path);
        if there.is_ok_and(|file| FileIdentity::of(&file) == self.identity && file.len() == self.length) {
            return Ok(());
        }
        Err(self.touched())
    }

    /// Refuses to continue if any byte of the file differs from what was written.
    ///
    /// # Errors
    /// [`RunError::Verification`].
    pub fn check_contents(&self) -> Result<(), RunError> {
        self.check_untouched()?;
        match LedgerState::read_tolerating_torn_end(&self.path) {
            Ok((state, 0)) if state.position() == self.state.position() => Ok(()),
            _ => Err(self.touched()),
        }
    }

    fn touched(&self) -> RunError {
        RunError::Verification(format!(
            "{} was removed, replaced or changed by another program during the run, so its charges are no longer on the disk; \
             put the file back as it was, then continue with --resume",
            self.path.display()
        ))
    }

    /// Returns the identity of the file.
    #[must_use]
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns the entries written so far.
    #[must_use]
    pub fn state(&self) -> &LedgerState {
        &self.state
    }
}

/// Opens the file and returns it with its lock, its identity and its length. The lock ends with the
/// process.
fn open_to_append(path: &Path) -> Result<(File, FileIdentity, u64), RunError> {
    let storage = |error: std::io::Error| RunError::storage("open", path, &error);
    let file = OpenOptions::new().append(true).open(path).map_err(storage)?;
    // On systems with mandatory locks, a lock would keep this process from reading the file.
    if cfg!(unix)
        && let Err(fs::TryLockError::WouldBlock) = file.try_lock()
    {
        return Err(RunError::Refused(format!(
            "another process writes {}; wait until it ends, or choose another folder with --out",
            path.display()
        )));
    }
    let metadata = file.metadata().map_err(storage)?;
    Ok((file, FileIdentity::of(&metadata), metadata.len()))
}

#[cfg(test)]
mod tests;
