//! Errors in one line: the fault, its place, what is allowed, and how to fix it.

use std::io;
use std::path::Path;

/// The reasons why the trainer refused, failed or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The user's input cannot be used as it is.
    #[error("{0}")]
    Refused(String),
    /// A file or folder could not be read or written.
    #[error("{0}")]
    Storage(durable::FileError),
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
    /// Returns the process's exit code: 2 for refused input or unusable storage, 130 for an interrupt, 1 for anything
    /// else.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Storage(_) => 2,
            Self::Interrupted { .. } => 130,
            Self::Verification(_) | Self::Failed(_) => 1,
            Self::Elsewhere { code } => *code,
        }
    }

    /// Creates a storage failure, with the fix for its kind.
    pub fn storage(action: &'static str, path: &Path, error: &io::Error) -> Self {
        durable::FileError::storage(action, path, error).into()
    }
}

impl From<durable::FileError> for RunError {
    fn from(error: durable::FileError) -> Self {
        match error {
            durable::FileError::Refused(what) => Self::Refused(what),
            error @ durable::FileError::Storage { .. } => Self::Storage(error),
        }
    }
}

impl From<mechanisms::MechanismError> for RunError {
    fn from(error: mechanisms::MechanismError) -> Self {
        Self::Failed(error.to_string())
    }
}
