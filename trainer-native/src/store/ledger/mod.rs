//! The ledger: what a run has spent, written before it is spent.
//!
//! Each line is a JSON object with the digest of the line before it and its own. A line is on the disk (`fdatasync`)
//! before the computation it announces begins, so a crash can only over-count. Each *attempt* of a step is a line: a
//! step that a crash burned is charged again when it runs again.
//!
//! # Torn last line
//! A crash during an append can leave the beginning of a line. Its `fdatasync` never returned, so the step it announces
//! never ran. A disk that reports unfinished writes as done leaves the same trace, so the unfinished line is charged as
//! the step it would have reserved. Any other malformed line is an error and is never repaired.

mod charges;
mod entry;
mod parent;
mod state;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) use charges::Charges;
pub(crate) use entry::{Entry, FileDigest, Header, Randomness};
pub(crate) use parent::{Parent, events_on_same_units};
pub(crate) use state::{LedgerPosition, LedgerState};

use super::files;
use crate::{RunError, durable};

/// A ledger open for appending.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    length: u64,
    state: LedgerState,
}

impl Ledger {
    /// Creates a ledger with its header and what the run builds on; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written, or exists already.
    pub fn create(folder: &Path, header: Header, parents: &[Parent]) -> Result<Self, RunError> {
        let path = folder.join(files::LEDGER);
        let mut state = LedgerState::empty();
        let mut line = state.extend(Entry::Header(header))?;
        for parent in parents {
            line.push_str(&state.extend(Entry::Parent(parent.clone()))?);
        }
        // Written whole or not at all, so that a run folder never holds a ledger without a header.
        if path.exists() {
            return Err(RunError::Refused(format!(
                "{} exists already; continue that run with --resume",
                path.display()
            )));
        }
        durable::write_atomic(&path, line.as_bytes())?;
        let file = open_to_append(&path)?;
        Ok(Self { path, file, length: line.len() as u64, state })
    }

    /// Opens the ledger of a run that stopped and removes a torn last line.
    ///
    /// Also returns the number of torn bytes. The caller charges them (see the module's documentation).
    ///
    /// # Errors
    /// [`RunError::Verification`] if any line but the last was altered.
    pub fn reopen(folder: &Path) -> Result<(Self, u64), RunError> {
        let path = folder.join(files::LEDGER);
        let bytes = durable::read(&path)?;
        let (state, torn) = LedgerState::parse_tolerating_torn_end(&bytes)?;
        let length = bytes.len() as u64 - torn;
        let file = open_to_append(&path)?;
        if torn > 0 {
            file.set_len(length)
                .and_then(|()| file.sync_all())
                .map_err(|error| RunError::storage("write", &path, &error))?;
        }
        Ok((Self { path, file, length, state }, torn))
    }

    /// Appends an entry; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be made durable, [`RunError::Failed`] if it does not follow from the entries
    /// before it. The computation it announces must then not run.
    pub fn append(&mut self, entry: Entry) -> Result<(), RunError> {
        let line = self.state.line_after(&entry)?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Remove the part that was written, so that the failure is not read as a torn line later. If this fails
            // too, the torn line is charged, which is the safe side.
            let _ = self.file.set_len(self.length).and_then(|()| self.file.sync_all());
            return Err(RunError::storage("write", &self.path, &error));
        }
        self.length += line.len() as u64;
        self.state.extend(entry).map(|_| ())
    }

    /// What has been written so far.
    #[must_use]
    pub fn state(&self) -> &LedgerState {
        &self.state
    }
}

fn open_to_append(path: &Path) -> Result<File, RunError> {
    OpenOptions::new().append(true).open(path).map_err(|error| RunError::storage("open", path, &error))
}

#[cfg(test)]
mod tests;
