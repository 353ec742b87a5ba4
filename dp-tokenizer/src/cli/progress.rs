//! Shows the user the progress of the work.

use std::io::{self, Write};

use cli::Reading;
use dp_tokenizer::corpus::Source;

/// Shows how much of a source has been read, until dropped. Invented notes have no progress.
pub(super) fn reading(what: &str, source: &Source) -> Option<Reading> {
    let Source::Files(files) = source else { return None };
    let progress = files.progress.clone();
    Some(Reading::start(format!("dp-tokenizer: {what}"), &files.paths, move || progress.bytes()))
}

/// Shows a line about the work.
pub(super) fn note(line: &str) {
    // A closed stderr must not stop the work.
    let _ = writeln!(io::stderr(), "dp-tokenizer: {line}");
}
