//! Why a tokenizer file is refused.

/// Why a tokenizer file is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Not JSON, or not of the shape of a `tokenizer.json`.
    #[error("tokenizer.json, line {line}, column {column}: {reason}")]
    Json {
        /// Where.
        line: usize,
        /// Where.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// A part of the file that asks for what is not implemented; it is refused rather than read wrongly.
    #[error("tokenizer.json: {part} = {found} is not supported; allowed: {allowed}")]
    Unsupported {
        /// Which part.
        part: &'static str,
        /// What the file says.
        found: String,
        /// What can be read.
        allowed: &'static str,
    },
    /// The parts of the file contradict each other.
    #[error("tokenizer.json: {reason}")]
    Inconsistent {
        /// How.
        reason: String,
    },
    /// A file that does not follow its format.
    #[error("{format}: {reason} (at {at})")]
    Malformed {
        /// Name of the format.
        format: &'static str,
        /// Line from 1 (text formats), or entry or byte from 0 (binary formats).
        at: u64,
        /// What is wrong there, and what is allowed.
        reason: std::borrow::Cow<'static, str>,
    },
}

impl FormatError {
    pub(crate) fn malformed(
        format: &'static str,
        at: u64,
        reason: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Self {
        Self::Malformed { format, at, reason: reason.into() }
    }
}
