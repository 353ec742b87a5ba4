//! Files that a crash leaves whole or absent.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::RunError;

/// Replaces the file at `path`: a reader sees the old file or the whole new one, even after a power failure.
///
/// # Errors
/// [`RunError::Storage`]; the old file, if any, is then untouched and nothing half-written stays.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = path.with_file_name(format!(".{name}.tmp"));
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if let Err(error) = written {
        // Report the first error. The next attempt overwrites a leftover.
        let _ = fs::remove_file(&temporary);
        return Err(RunError::storage("write", path, &error));
    }
    sync_parent(path)
}

/// Makes the name of a created or renamed file as durable as its contents.
///
/// # Errors
/// [`RunError::Storage`] if the folder cannot be synchronised.
pub(crate) fn sync_parent(path: &Path) -> Result<(), RunError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Only Unix opens a folder as a file. Elsewhere the rename has to suffice.
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| RunError::storage("synchronise", folder, &error))?;
    }
    Ok(())
}

/// Reads a whole file.
///
/// # Errors
/// [`RunError::Storage`] if it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    fs::read(path).map_err(|error| RunError::storage("read", path, &error))
}

/// SHA-256 as lower-case hexadecimal digits.
#[must_use]
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
        .collect()
}

/// Keeps other processes out of a run folder until it is dropped.
///
/// The kernel holds the lock on an open file, so a killed process leaves no lock behind.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock of `folder`.
    ///
    /// # Errors
    /// [`RunError::Refused`] if another process holds it, [`RunError::Storage`] if the folder cannot be written.
    pub(crate) fn take(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(".lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| RunError::storage("lock", &path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(fs::TryLockError::WouldBlock) => Err(RunError::Refused(format!(
                "another process uses the run folder {}; wait until it ends, or choose another folder with --out",
                folder.display()
            ))),
            Err(fs::TryLockError::Error(error)) => Err(RunError::storage("lock", &path, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: FIPS 180-4's example "abc".
    #[test]
    fn digest_is_sha256_in_lower_case() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn failed_write_leaves_the_old_file_and_no_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomic(&path, b"old").unwrap();
        // A folder in the temporary file's place makes the write fail.
        fs::create_dir(folder.path().join(".a.tmp")).unwrap();
        assert_eq!(write_atomic(&path, b"new").unwrap_err().exit_code(), 2);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn second_lock_on_a_folder_is_refused_until_the_first_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        let refused = FolderLock::take(folder.path()).unwrap_err();
        assert!(refused.to_string().contains("another process"), "{refused}");
        drop(first);
        FolderLock::take(folder.path()).unwrap();
    }
}
