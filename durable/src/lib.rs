//! Writes files that are whole or absent after a crash. Until they are published, only their owner
//! can read them, whatever the umask.

//!
//! An error says in one line what could not be done, where, why, and what to do about it.

mod error;
mod exclusive;
mod input;

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use error::{FileError, without_codes};
pub use exclusive::{ExclusiveError, ExclusiveFile, for_the_owner_alone};
pub use input::{open, read, read_json, read_named};

/// Replaces the file at `path`: a reader sees the old file or the whole new one, even after a power failure.
///
/// # Errors
/// [`FileError::Storage`]; the old file, if any, is then untouched and nothing half-written stays.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_new(path, |_| Ok::<_, FileError>(bytes))
}

/// Writes a file outside of run folders as [`write_atomic`] does, and lets others read it as the
/// umask permits.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_public(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_atomic(path, bytes)?;
    publish(path, Published::of(path)?)
}

/// Options that create a file which only its owner can read.
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has such rights"))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a new file as [`write_atomic`] does, with contents that may depend on the file's
/// identity.
///
/// # Errors
/// As [`write_atomic`], and those of `contents`.
pub fn write_new<T: AsRef<[u8]>, E: From<FileError>>(
    path: &Path,
    contents: impl FnOnce(FileIdentity) -> Result<T, E>,
) -> Result<(), E> {
    let temporary = temporary(path);
    let storage = |error: std::io::Error| FileError::storage("write", path, &error);
    let written = (|| {
        let mut file = create_private(&temporary).map_err(storage)?;
        let bytes = contents(FileIdentity::of(&file.metadata().map_err(storage)?))?;
        file.write_all(bytes.as_ref()).and_then(|()| file.sync_all()).map_err(storage)?;
        Ok(fs::rename(&temporary, path).map_err(storage)?)
    })();
    if written.is_err() {
        // Report the first error. The next attempt removes a leftover.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| Ok(sync_parent(path)?))
}

/// Creates a file that only its owner can read. It removes an older file of this name, which others
/// might be able to read.
pub fn create_private(path: &Path) -> std::io::Result<File> {
    let _ = fs::remove_file(path);
    private_file().write(true).create(true).truncate(true).open(path)
}

/// Writes a file that is too large for memory as [`write_atomic`] does: `write` writes one part at
/// a time.
///
/// # Errors
/// As [`write_atomic`], and those of `write`.
pub fn write_by(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), FileError> {
    let temporary = temporary(path);
    let written = (|| {
        let mut file = BufWriter::with_capacity(1 << 20, create_private(&temporary)?);
        write(&mut file)?;
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(|error| FileError::storage("write", path, &error))?;
    sync_parent(path)
}

/// Copies a file as [`write_atomic`] writes it.
///
/// # Errors
/// [`FileError::Storage`] if one cannot be read or the other not be written.
pub fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    let mut source = open(from)?;
    write_by(to, |file| std::io::copy(&mut source, file).map(drop))
}

/// Returns the name under which a file is written before it is renamed to `path`.
pub fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.tmp"))
}

/// Creates a folder and those above it, for their owner alone. Their names are durable when this
/// returns.
///
/// # Errors
/// [`FileError::Storage`] if one cannot be created.
pub fn create_folder(folder: &Path) -> Result<(), FileError> {
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder).map_err(|error| FileError::storage("create", folder, &error))?;
    missing.into_iter().try_for_each(sync_parent)
}

/// The time of every file of a finished run, 1 January 2000. The true time would reveal when
/// private work was done, and its pace.
const PUBLISHED_TIME: Duration = Duration::from_secs(946_684_800);

/// The rights of new files under the umask.
#[derive(Clone, Copy, Debug)]
struct Published {
    #[cfg(unix)]
    mode: u32,
}

impl Published {
    /// Returns the rights that a new file beside `path` gets.
    #[cfg(unix)]
    fn of(path: &Path) -> Result<Self, FileError> {
        use std::os::unix::fs::PermissionsExt;
        let probe = temporary(path);
        let _ = fs::remove_file(&probe);
        let found = File::create(&probe).and_then(|file| file.metadata());
        let _ = fs::remove_file(&probe);
        let found = found.map_err(|error| FileError::storage("write", &probe, &error))?;
        Ok(Self { mode: found.permissions().mode() & 0o666 })
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> Result<Self, FileError> {
        Ok(Self {})
    }
}

/// Gives a file or a folder the rights that a new one gets under the umask.
fn publish(path: &Path, rights: Published) -> Result<(), FileError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Who may read a folder may enter it.
        let enter = if path.is_dir() { (rights.mode & 0o444) >> 2 } else { 0 };
        fs::set_permissions(path, fs::Permissions::from_mode(rights.mode | enter))
            .map_err(|error| FileError::storage("publish", path, &error))?;
    }
    #[cfg(not(unix))]
    let _ = (path, rights);
    Ok(())
}

/// Prepares a finished folder for publication. Its contents get the rights of new files under the
/// umask, and one fixed time that reveals nothing. The folder itself keeps its rights, and links
/// are left as they are. If the file system refuses a change, a note says so.
pub fn settle(folder: &Path) -> Result<(), FileError> {
    settle_below(folder, Published::of(&folder.join("rights"))?)
}

fn settle_below(folder: &Path, rights: Published) -> Result<(), FileError> {
    let unreadable = |error| FileError::storage("read", folder, &error);
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let (path, found) =
            entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))).map_err(unreadable)?;
        if found.is_symlink() {
            continue;
        }
        publish(&path, rights)?;
        if found.is_dir() {
            settle_below(&path, rights)?;
        } else {
            forget_time(&path)?;
        }
    }
    forget_time(folder)
}

/// Gives a file or a folder the time of all published files.
///
/// # Errors
/// [`FileError::Storage`] if it cannot be changed.
pub fn forget_time(path: &Path) -> Result<(), FileError> {
    // On other systems than Unix, only a writer can set a time, and a folder is not opened as a
    // file.
    if cfg!(not(unix)) && path.is_dir() {
        return Ok(());
    }
    let time = UNIX_EPOCH + PUBLISHED_TIME;
    let times = FileTimes::new().set_accessed(time).set_modified(time);
    let set = if cfg!(unix) { File::open(path) } else { File::options().write(true).open(path) };
    set.and_then(|file| file.set_times(times))
        .map_err(|error| FileError::storage("set the time of", path, &error))
}

/// Identity of a file, which its copies do not share: its number in the file system and the time of
/// its creation. A file keeps both when it is renamed. A part that the system does not report is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    inode: u64,
    created_ns: u64,
}

impl FileIdentity {
    /// Returns the identity that `metadata` gives its file.
    #[must_use]
    pub fn of(metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        let created = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { inode, created_ns: created.map_or(0, |time| time.as_nanos() as u64) }
    }
}

/// Makes the name of a created or renamed file durable.
///
/// # Errors
/// [`FileError::Storage`] if the folder cannot be synchronised.
pub fn sync_parent(path: &Path) -> Result<(), FileError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Only Unix opens a folder as a file. Elsewhere the rename has to suffice.
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| FileError::storage("synchronise", folder, &error))?;
    }
    Ok(())
}

/// Returns a value as indented JSON with a line end.
///
/// # Errors
/// [`FileError::Refused`] for a value that has no JSON form.
pub fn pretty_json(value: &impl Serialize) -> Result<String, FileError> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| FileError::Refused(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// Returns the SHA-256 as lower-case hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of a file, reading one part of it at a time.
///
/// # Errors
/// [`FileError::Storage`] if it cannot be read.
pub fn sha256_of(path: &Path) -> Result<String, FileError> {
    let storage = |error: std::io::Error| FileError::storage("read", path, &error);
    let (mut file, mut digest) = (open(path)?, Sha256::new());
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part).map_err(storage)? {
            0 => return Ok(hex(&digest.finalize())),
            read => digest.update(&part[..read]),
        }
    }
}

/// Returns bytes as lower-case hexadecimal digits, two a byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
        .collect()
}

/// Keeps other processes out of a folder until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    _file: ExclusiveFile,
}

impl FolderLock {
    /// Takes the lock of `folder`.
    ///
    /// # Errors
    /// [`FileError::Refused`] if another process holds it, [`FileError::Storage`] if the folder cannot be written.
    pub fn take(folder: &Path) -> Result<Self, FileError> {
        Self::lock(&folder.join(".lock"), folder)
    }

    /// Takes the lock of the output file `path`, beside it.
    ///
    /// # Errors
    /// As [`FolderLock::take`].
    pub fn of_file(path: &Path) -> Result<Self, FileError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self::lock(&path.with_file_name(format!(".{name}.lock")), path)
    }

    fn lock(path: &Path, locked: &Path) -> Result<Self, FileError> {
        match ExclusiveFile::take(path) {
            Ok(file) => Ok(Self { _file: file }),
            Err(ExclusiveError::Io { source, .. }) => Err(FileError::storage("lock", path, &source)),
            Err(_) => Err(FileError::Refused(format!(
                "another process uses {}; wait until it ends, or choose another --out",
                locked.display()
            ))),
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
        assert!(matches!(write_atomic(&path, b"new").unwrap_err(), FileError::Storage { .. }));
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
