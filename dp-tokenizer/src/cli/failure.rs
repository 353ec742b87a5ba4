//! How a failed command reports: one line on stderr and an exit code.

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

/// A refusal of the command line, without the usage that follows it.
pub(super) fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let (text, _) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
    let (text, _) = text.split_once("\n\nFor more").unwrap_or((text, ""));
    let words: Vec<&str> = text.trim_start_matches("error: ").split_whitespace().collect();
    format!("{}; --help shows what is allowed", words.join(" "))
}

/// Writes the error to stderr, if it is open.
pub(super) fn report(error: &anyhow::Error) -> ExitCode {
    let pipe_closed = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    if pipe_closed.into_iter().any(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    let line = without_codes(&format!("{error:#}").replace('\n', " "));
    // If stderr is closed too, nothing can be reported.
    let _ = writeln!(io::stderr(), "dp-tokenizer: {line}");
    // A file that cannot be read or written is the user's to mend, as refused input is.
    let is_storage = error.chain().any(|cause| cause.is::<io::Error>());
    ExitCode::from(if error.is::<Refused>() || is_storage { 2 } else { 1 })
}

/// A message without the system's codes, "(os error N)".
fn without_codes(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}
