//! How a command ends badly: one line on stderr and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

/// Input that is refused, as opposed to a machine that failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// Turns any error into a refusal.
pub(super) fn refuse(reason: impl ToString) -> anyhow::Error {
    Refused(reason.to_string()).into()
}

/// Says what went wrong, where there is still someone to listen.
pub(super) fn report(error: &anyhow::Error) -> ExitCode {
    let pipe_closed = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    if pipe_closed.into_iter().any(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    let line = format!("{error:#}").replace('\n', " ");
    // Nothing is left to do if stderr is closed too.
    let _ = writeln!(io::stderr(), "dp-tokenizer: {line}");
    ExitCode::from(if error.is::<Refused>() { 2 } else { 1 })
}
