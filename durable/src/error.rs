//! The reasons why a file cannot be used, in one line: what failed, where, why, and how to fix it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reason why a file or folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file or folder cannot be used as it is. The message says why.
    #[error("{0}")]
    Refused(String),
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {reason}; {fix}", path.display())]
    Storage {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's message.
        reason: String,
        /// The fix.
        fix: &'static str,
    },
}

impl FileError {
    /// Returns a storage failure, with the fix for its kind.
    #[must_use]
    pub fn storage(action: &'static str, path: &Path, error: &io::Error) -> Self {
        let fix = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                "free some space, then run the same command again, with --resume if the run had begun"
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "choose a folder that you can write with --out, or change its permissions"
            }
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => "check the path",
            _ if action == "read" && !path.is_file() => "check the path",
            _ => "check the disk, then run again (with --resume if the run had begun)",
        };
        Self::Storage { action, path: path.to_owned(), reason: without_codes(&error.to_string()), fix }
    }
}

/// Returns a message without the system's codes, "(os error N)".
///
/// ```
/// assert_eq!(durable::without_codes("a: No such file (os error 2); check the path"), "a: No such file; check the path");
/// ```
#[must_use]
pub fn without_codes(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}
