//! The ledger: what a run has spent, written before it is spent.
//!
//! One JSON object a line, each carrying the digest of the line before and its own. A line is on the disk
//! (`fdatasync`) before the computation it announces begins, so a crash can only over-count. Each *attempt* of a step
//! is a line: a step that a crash burned is charged again when it runs again.
//!
//! # Torn last line
//! A crash inside an append can leave the beginning of a line. Its `fdatasync` never returned, so what it announces
//! never ran; but a disk that reports a write it has not finished would look the same. The unfinished line is
//! therefore charged as the step it would have reserved. Anything else malformed is an error, never repaired.

mod entry;
mod record;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

pub use entry::{Entry, FileDigest, Header, Randomness};
pub use record::{Head, Record, charge, compose};

use crate::{RunError, durable};

/// Name of the ledger in a run folder.
pub const FILE_NAME: &str = "ledger.jsonl";

/// A ledger open for appending.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    length: u64,
    record: Record,
}

impl Ledger {
    /// Begins a ledger with its header, durable when this returns.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be written, or exists already.
    pub fn create(folder: &Path, header: Header) -> Result<Self, RunError> {
        let path = folder.join(FILE_NAME);
        let mut record = Record::empty();
        let line = record.extend(Entry::Header(header))?;
        // Whole or not at all: a run folder never holds a ledger without a header.
        if path.exists() {
            return Err(RunError::Refused(format!(
                "{} exists already; continue that run with --resume",
                path.display()
            )));
        }
        durable::write_atomic(&path, line.as_bytes())?;
        let file = open_to_append(&path)?;
        Ok(Self { path, file, length: line.len() as u64, record })
    }

    /// Opens the ledger of a run that stopped, removing a torn last line.
    ///
    /// Returns the number of torn bytes beside the ledger; the caller charges them (see the module's text).
    ///
    /// # Errors
    /// [`RunError::Verification`] for any line but the last that is not as it was written.
    pub fn reopen(folder: &Path) -> Result<(Self, u64), RunError> {
        let path = folder.join(FILE_NAME);
        let bytes = durable::read(&path)?;
        let (record, torn) = Record::parse_tolerating_torn_end(&bytes)?;
        let length = bytes.len() as u64 - torn;
        let file = open_to_append(&path)?;
        if torn > 0 {
            file.set_len(length)
                .and_then(|()| file.sync_all())
                .map_err(|error| RunError::storage("write", &path, &error))?;
        }
        Ok((Self { path, file, length, record }, torn))
    }

    /// Appends an entry; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`RunError::Storage`] if it cannot be made durable, [`RunError::Failed`] if it does not follow from the entries
    /// before. What it announces must then not run.
    pub fn append(&mut self, entry: Entry) -> Result<(), RunError> {
        let line = self.record.line_after(&entry)?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Take back the part that was written, so that the failure is not read as a torn line later. If this
            // fails too, the torn line is charged: the safe side.
            let _ = self.file.set_len(self.length).and_then(|()| self.file.sync_all());
            return Err(RunError::storage("write", &self.path, &error));
        }
        self.length += line.len() as u64;
        self.record.extend(entry).map(|_| ())
    }

    /// What has been written so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }
}

fn open_to_append(path: &Path) -> Result<File, RunError> {
    OpenOptions::new().append(true).open(path).map_err(|error| RunError::storage("open", path, &error))
}

#[cfg(test)]
mod tests;
