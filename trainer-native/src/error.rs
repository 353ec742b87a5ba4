//! Errors in one line: the fault, its place, what is allowed, and how to fix it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reasons why the trainer refused, failed or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The user's input cannot be used as it is.
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
    /// A file of a run was altered, or a figure does not follow from the others.
    #[error("verification failed: {0}")]
    Verification(String),
    /// The engine, the device or an arithmetic bound failed.
    #[error("{0}")]
    Failed(String),
    /// The user asked to stop. The run can resume from its checkpoint, or from its vocabulary.
    #[error("interrupted; everything done so far is saved; continue with: {resume}")]
    Interrupted {
        /// The command that continues.
        resume: String,
    },
    /// Another rank of the run failed or was stopped, and the first rank shows why.
    #[error("another rank of the run ended; the first rank says why")]
    Elsewhere {
        /// The exit code of that rank.
        code: u8,
    },
}

impl RunError {
    /// The process's exit code: 2 refused input or unusable storage, 130 interrupted, 1 anything else.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Storage { .. } => 2,
            Self::Interrupted { .. } => 130,
            Self::Verification(_) | Self::Failed(_) => 1,
            Self::Elsewhere { code } => *code,
        }
    }

    /// A storage failure, with the fix for its kind.
    pub(crate) fn storage(action: &'static str, path: &Path, error: &io::Error) -> Self {
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
        Self::Storage { action, path: path.to_owned(), reason: cli::without_codes(&error.to_string()), fix }
    }
}

impl From<mechanisms::MechanismError> for RunError {
    fn from(error: mechanisms::MechanismError) -> Self {
        Self::Failed(error.to_string())
    }
}
