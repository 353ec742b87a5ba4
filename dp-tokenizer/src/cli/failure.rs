//! The report of a failed command: one line on stderr and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use ::cli::without_codes;

/// Input that is refused, as opposed to a machine that failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// Turns any error into a refusal.
pub(super) fn refuse(reason: impl ToString) -> anyhow::Error {
    Refused(reason.to_string()).into()
}

/// Writes the error to stderr, if it is open.
pub(super) fn report(error: &anyhow::Error) -> ExitCode {
    let pipe_closed = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    if pipe_closed.into_iter().any(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    let Failure { message, refused } = Failure::of(error);
    // If stderr is closed too, nothing can be reported.
    let _ = writeln!(io::stderr(), "dp-tokenizer: {}", ::cli::as_line(&message));
    ExitCode::from(if refused { 2 } else { 1 })
}

/// The reason why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// One line that says what was given, what is allowed, and how to fix it.
    pub message: String,
    /// Whether the user can mend it, as opposed to a failure of the machine.
    pub refused: bool,
}

impl Failure {
    pub(super) fn of(error: &anyhow::Error) -> Self {
        // The user can mend a file that cannot be read or written, as refused input.
        let is_storage = error.chain().any(|cause| cause.is::<io::Error>());
        let message = without_codes(&format!("{error:#}").replace('\n', " "));
        Self { message, refused: error.is::<Refused>() || is_storage }
    }
}
