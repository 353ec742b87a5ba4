//! The reasons why a tokenizer file is refused.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;

/// The reason why a tokenizer file is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The text is not JSON, or not of the shape of a `tokenizer.json`.
    #[error("tokenizer.json, line {line}, column {column}: {reason}")]
    Json {
        /// The line of the error.
        line: usize,
        /// The column of the error.
        column: usize,
        /// The message of the parser.
        reason: String,
    },
    /// A part of the file that asks for what is not implemented; it is refused rather than read wrongly.
    #[error("tokenizer.json: {part} = {found} is not supported; allowed: {allowed}")]
    Unsupported {
        /// The part of the file.
        part: &'static str,
        /// The content of the file there.
        found: String,
        /// The content that is supported.
        allowed: Cow<'static, str>,
    },
    /// The parts of the file contradict each other.
    #[error("tokenizer.json: {reason}")]
    Inconsistent {
        /// How they contradict each other.
        reason: String,
    },
    /// A file that does not follow its format.
    #[error("{format}: {reason} (at {at})")]
    Malformed {
        /// Name of the format.
        format: &'static str,
        /// Line from 1 (text formats), or entry or byte from 0 (binary formats).
        at: u64,
        /// The fault there, and what is allowed.
        reason: Cow<'static, str>,
    },
}

impl FormatError {
    /// Returns the message for the file at `path`, which stands in place of the name `tokenizer.json`.
    #[must_use]
    pub fn in_file(&self, path: &Path) -> String {
        let message = self.to_string();
        match message.strip_prefix("tokenizer.json") {
            Some(rest) => format!("{}{rest}", path.display()),
            None => format!("{}: {message}", path.display()),
        }
    }

    pub(crate) fn malformed(format: &'static str, at: u64, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed { format, at, reason: reason.into() }
    }

    pub(crate) fn inconsistent(reason: impl Into<String>) -> Self {
        Self::Inconsistent { reason: reason.into() }
    }

    pub(crate) fn unsupported(
        part: &'static str,
        found: &Value,
        allowed: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Unsupported { part, found: shortened(&found.to_string()), allowed: allowed.into() }
    }
}

/// Returns `text`, shortened to 200 characters for a message.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
