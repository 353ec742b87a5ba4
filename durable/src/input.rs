//! Reads files that anybody may have made.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::FileError;

/// Opens a file to read it. An archive can hold a pipe or a device in its place, which would have
/// no end.
///
/// # Errors
/// [`FileError::Storage`] if it cannot be read, [`FileError::Refused`] for anything but a file.
pub fn open(path: &Path) -> Result<File, FileError> {
    let storage = |error: std::io::Error| FileError::storage("read", path, &error);
    // Opening a pipe would wait for its other end.
    let found = fs::metadata(path).map_err(storage)?;
    let refused = |what: &str| Err(FileError::Refused(format!("{} is {what}", path.display())));
    if !found.is_file() && !found.is_dir() {
        return refused("a pipe or a device; allowed: a file; remove it");
    }
    if is_hole(&found) {
        return refused("a file of holes, far longer than what it takes on the disk; copy the file again");
    }
    File::open(path).map_err(storage)
}

/// Whether a file states a far larger size than it occupies on the disk. Reading it would take
/// hours.
#[cfg(unix)]
fn is_hole(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    const LEAST: u64 = 1 << 30;
    file.len() > LEAST && file.blocks().saturating_mul(512) < file.len() / 64
}

#[cfg(not(unix))]
fn is_hole(_: &fs::Metadata) -> bool {
    false
}

/// Reads a whole file.
///
/// # Errors
/// As [`open`].
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    read_from(path, open(path)?)
}

/// Reads all of a file that the user named, which may be a pipe.
///
/// # Errors
/// [`FileError::Storage`] if it cannot be read.
pub fn read_named(path: &Path) -> Result<Vec<u8>, FileError> {
    read_from(path, File::open(path).map_err(|error| FileError::storage("read", path, &error))?)
}

fn read_from(path: &Path, mut file: File) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| FileError::storage("read", path, &error))?;
    Ok(bytes)
}

/// Reads a JSON file, or returns `None` if there is no such file.
///
/// # Errors
/// [`FileError::Refused`] if it is malformed; [`FileError::Storage`] if it cannot be read.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FileError> {
    if !path.exists() {
        return Ok(None);
    }
    serde_json::from_slice(&read(path)?)
        .map(Some)
        .map_err(|error| FileError::Refused(format!("{}: {error}", path.display())))
}
