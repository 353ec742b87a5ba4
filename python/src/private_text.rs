//! Private text that is read like a file, and leaves none behind.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tempfile::TempDir;

use crate::frames::write_records;

/// The name by which a plan names such a text.
pub(crate) const NAME: &str = "frame.jsonl";

/// Whether an argument is a text itself, not a path or a list of paths.
///
/// # Errors
/// What Python raises while it looks.
pub(crate) fn is_text(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    if data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>() {
        // A list of str is a list of files, as for the commands.
        return Ok(data.len()? > 0 && data.get_item(0)?.extract::<PathBuf>().is_err());
    }
    Ok(data.extract::<PathBuf>().is_err())
}

/// Records that are read by a path until they are dropped. Linux keeps them in memory, and the path is a link to it; other
/// systems keep them in a file that only its owner can read.
pub(crate) struct PrivateText {
    folder: TempDir,
    /// Keeps the memory.
    _file: File,
}

impl PrivateText {
    /// Reads the records of a frame or an iterable.
    ///
    /// # Errors
    /// As [`write_records`]; OSError if there is no room.
    pub fn of(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let folder =
            tempfile::Builder::new().prefix("private-lm-").tempdir().map_err(|error| kept(&error))?;
        let mut out = BufWriter::new(open(&folder.path().join(NAME)).map_err(|error| kept(&error))?);
        write_records(source, &mut out)?;
        out.flush().map_err(|error| kept(&error))?;
        let file = out.into_inner().map_err(|error| kept(error.error()))?;
        Ok(Self { folder, _file: file })
    }

    /// The path by which the records are read.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }
}

fn kept(error: &io::Error) -> PyErr {
    PyOSError::new_err(format!("the text cannot be kept: {error}; free memory or disk space"))
}

#[cfg(target_os = "linux")]
fn open(path: &Path) -> io::Result<File> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{MemfdFlags, memfd_create};

    let file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
    std::os::unix::fs::symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), path)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
