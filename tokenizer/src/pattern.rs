//! The pattern of a stage of a `tokenizer.json`: a text or a regular expression.

use std::ops::Range;

use serde_json::{Value, json};

use crate::FormatError;
use crate::error::shortened;
use crate::regex::Regex;

/// A text or a regular expression.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// The text itself; never empty.
    Text(String),
    /// A regular expression.
    Regex(Box<Regex>),
}

impl Pattern {
    /// Reads the field `pattern` of a stage: `{"String": …}` or `{"Regex": …}`.
    ///
    /// # Errors
    /// If it is neither, or an expression that is not supported.
    pub(crate) fn read(part: &Value) -> Result<Self, FormatError> {
        let pattern = &part["pattern"];
        let read = match (pattern["String"].as_str(), pattern["Regex"].as_str()) {
            (Some(text), None) if !text.is_empty() => Ok(Self::Text(text.to_owned())),
            (None, Some(source)) => Regex::new(source).map(|regex| Self::Regex(Box::new(regex))),
            _ => {
                Err("a pattern is {\"String\": text that is not empty} or {\"Regex\": expression}".to_owned())
            }
        };
        read.map_err(|reason| {
            let kind = part["type"].as_str().unwrap_or_default();
            FormatError::inconsistent(format!(
                "{kind}, pattern {}: {reason}",
                shortened(&pattern.to_string())
            ))
        })
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"String": text}),
            Self::Regex(regex) => json!({"Regex": regex.source()}),
        }
    }

    /// Whether the pattern is a single given character.
    pub(crate) fn is_character(&self) -> bool {
        matches!(self, Self::Text(text) if text.chars().nth(1).is_none())
    }

    /// Returns the most bytes that the stages of a file may make of `given` bytes. A replacement that would exceed this
    /// is left out, so a chain of replacements that double a text ends there. Stages of models come nowhere near it.
    pub(crate) fn byte_limit(given: usize) -> usize {
        given.saturating_mul(100).saturating_add(1 << 20)
    }

    /// Hands each match to `take`, from left to right.
    pub(crate) fn each_match(&self, text: &str, mut take: impl FnMut(Range<usize>)) {
        match self {
            Self::Text(sought) => {
                let found = memchr::memmem::find_iter(text.as_bytes(), sought);
                found.for_each(|at| take(at..at + sought.len()));
            }
            Self::Regex(regex) => regex.each_match(text, take),
        }
    }

    /// Returns `text` with `content` in place of each match; `None` where nothing matches, or if the result would have
    /// more than `limit` bytes.
    pub(crate) fn replace(&self, text: &str, content: &str, limit: usize) -> Option<String> {
        let limit = limit.max(text.len());
        let mut out: Option<String> = None;
        let mut last = 0;
        self.each_match(text, |range| {
            if out.as_ref().is_some_and(|out| out.len() > limit) {
                return;
            }
            let out = out.get_or_insert_with(|| String::with_capacity(text.len() + text.len() / 2));
            out.push_str(&text[last..range.start]);
            out.push_str(content);
            last = range.end;
        });
        if let Some(out) = &mut out {
            out.push_str(&text[last..]);
        }
        out.filter(|out| out.len() <= limit)
    }
}
