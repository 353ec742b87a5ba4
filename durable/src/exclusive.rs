//! A file that one process at a time writes: a lock, or an output that gets its name once it is complete.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that this process has locked, and that only its owner can read. The file is removed when this value is
/// dropped.
///
/// The kernel holds the lock on the open file, so a killed process leaves no lock behind. It leaves the file behind,
/// and the next process that takes the file empties it.
#[derive(Debug)]
pub struct ExclusiveFile {
    path: PathBuf,
    file: File,
    is_named: bool,
}

/// The reason why an [`ExclusiveFile`] cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ExclusiveError {
    /// Another process has the file.
    #[error("{}: another process uses it; wait until it ends, or name another output", path.display())]
    Taken {
        /// The file that the other process has locked.
        path: PathBuf,
    },
    /// The file cannot be created or locked.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl From<ExclusiveError> for io::Error {
    fn from(error: ExclusiveError) -> Self {
        match error {
            ExclusiveError::Io { source, .. } => source,
            ExclusiveError::Taken { .. } => Self::new(io::ErrorKind::ResourceBusy, error.to_string()),
        }
    }
}

impl ExclusiveFile {
    /// Takes the file at `path` and empties it.
    ///
    /// ```
    /// use durable::ExclusiveFile;
    /// let folder = tempfile::tempdir()?;
    /// let first = ExclusiveFile::take(&folder.path().join(".lock"))?;
    /// assert!(ExclusiveFile::take(&folder.path().join(".lock")).is_err());
    /// drop(first);
    /// assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ExclusiveError::Taken`] while another process has the file, [`ExclusiveError::Io`] where it cannot be created
    /// or locked.
    pub fn take(path: &Path) -> Result<Self, ExclusiveError> {
        let io = |source| ExclusiveError::Io { path: path.to_owned(), source };
        loop {
            let file = options().open(path).map_err(io)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(ExclusiveError::Taken { path: path.to_owned() });
                }
                Err(TryLockError::Error(error)) => return Err(io(error)),
            }
            // Another process may have removed or renamed the file between opening and locking.
            if is_at(&file, path).map_err(io)? {
                for_the_owner_alone(&file).and_then(|()| file.set_len(0)).map_err(io)?;
                return Ok(Self { path: path.to_owned(), file, is_named: true });
            }
        }
    }

    /// Takes the hidden file beside `path` in which the contents of `path` are written until they are complete.
    ///
    /// # Errors
    /// As [`ExclusiveFile::take`].
    pub fn take_for(path: &Path) -> Result<Self, ExclusiveError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self::take(&path.with_file_name(format!(".{name}.partial")))
    }

    /// Returns the open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the name `path` once its contents are on the disk. Another file of that name is replaced.
    ///
    /// # Errors
    /// Errors of the system, after which the file is gone.
    pub fn persist(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, path)?;
        self.is_named = false;
        Ok(())
    }
}

impl Write for ExclusiveFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl io::Seek for ExclusiveFile {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl Drop for ExclusiveFile {
    fn drop(&mut self) {
        if self.is_named && is_at(&self.file, &self.path).unwrap_or(false) {
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let before = folder.and_then(|folder| fs::metadata(folder).ok()?.modified().ok());
            // The file is still locked, so that no other process has taken it. If it cannot be removed, the next
            // process takes it over.
            let _ = fs::remove_file(&self.path);
            // The time of a folder tells when its contents were written, not when the lock was removed.
            if let (Some(folder), Some(before)) = (folder, before) {
                let _ = File::open(folder).and_then(|folder| folder.set_modified(before));
            }
        }
    }
}

fn options() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes an open file unreadable for others, whatever mode it was left with.
///
/// # Errors
/// Errors of the system.
pub fn for_the_owner_alone(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Whether `path` leads to this open file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let open = file.metadata()?;
        match fs::symlink_metadata(path) {
            Ok(named) => Ok((open.dev(), open.ino()) == (named.dev(), named.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        // Elsewhere than on Unix, an open file keeps its name.
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_killed_process_left_is_taken_over_empty_and_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(folder.path().join(".out.partial"), "private text of a process that was killed").unwrap();
        let mut file = ExclusiveFile::take_for(&path).unwrap();
        file.write_all(b"whole").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            assert_eq!(file.file().metadata().unwrap().mode() & 0o777, 0o600);
        }
        file.persist(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn of_many_threads_that_take_and_drop_one_file_one_has_it_at_a_time() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let (holders, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let Ok(file) = ExclusiveFile::take(&path) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two have it");
                        taken.fetch_add(1, Ordering::SeqCst);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(file);
                    }
                });
            }
        });
        assert!(taken.into_inner() >= 4);
    }
}
