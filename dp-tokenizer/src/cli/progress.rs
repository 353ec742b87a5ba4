//! Progress of reading a corpus.

use cli::Reading;
use dp_tokenizer::corpus::Source;

/// Shows how much of a source has been read, until dropped. Invented notes have no progress.
pub(super) fn of(what: &str, source: &Source) -> Option<Reading> {
    let Source::Files(files) = source else { return None };
    let progress = files.progress.clone();
    Some(Reading::start(format!("dp-tokenizer: {what}"), &files.paths, move || progress.bytes()))
}
