//! SentencePiece's pre-tokenizer: a blank becomes a visible mark at the start of the next word.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Value, json};

use super::{METASPACE, PreTokenize, place};
use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::stage::{character, flag, lacking};

/// The condition for a mark before a text that starts without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrependScheme {
    /// A mark goes before every text.
    Always,
    /// A mark goes before the first stretch of a text, not after a special token.
    First,
    /// No mark is added.
    Never,
}

/// Replaces spaces by marks, and splits the text before each mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metaspace {
    /// The mark for a space.
    pub replacement: char,
    /// The condition for a mark before a text.
    pub prepend_scheme: PrependScheme,
    /// Whether the text is cut before each mark; otherwise it stays one word.
    pub split: bool,
}

impl Default for Metaspace {
    fn default() -> Self {
        Self { replacement: METASPACE, prepend_scheme: PrependScheme::Always, split: true }
    }
}

impl Metaspace {
    /// Reads the pre-tokenizer, or the decoder of the same name.
    pub(crate) fn read(part: &Value) -> Result<Self, FormatError> {
        // Files from before 2023 have a flag instead of the scheme.
        let prepend_scheme = match (part["prepend_scheme"].as_str(), part["add_prefix_space"].as_bool()) {
            (Some("always"), _) | (None, None | Some(true)) => PrependScheme::Always,
            (Some("first"), _) => PrependScheme::First,
            (Some("never"), _) | (None, Some(false)) => PrependScheme::Never,
            _ => return Err(lacking(part, "prepend_scheme", "always, first or never")),
        };
        let replacement = character(part, "replacement")?;
        Ok(Self { replacement, prepend_scheme, split: flag(part, "split", true) })
    }

    pub(crate) fn is_due(&self, is_first: bool) -> bool {
        match self.prepend_scheme {
            PrependScheme::Always => true,
            PrependScheme::First => is_first,
            PrependScheme::Never => false,
        }
    }

    /// Returns the words of a marked text. Joined, they are the text again.
    pub fn words<'a>(&self, marked: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let (mark, split) = (self.replacement, self.split);
        let mut rest = marked;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let cut = rest[first.len_utf8()..].find(mark).filter(|_| split);
            let (word, tail) = rest.split_at(cut.map_or(rest.len(), |at| at + first.len_utf8()));
            rest = tail;
            Some(word)
        })
    }
}

impl PreTokenize for Metaspace {
    fn mark<'a>(&self, text: &'a str, is_first: bool) -> Cow<'a, str> {
        let due = self.is_due(is_first);
        let opens = text.starts_with([' ', self.replacement]);
        if text.is_empty() || (!text.contains(' ') && (opens || !due)) {
            return Cow::Borrowed(text);
        }
        let mut marked = String::with_capacity(text.len() + text.len() / 2);
        if due && !opens {
            marked.push(self.replacement);
        }
        let mut rest = text;
        while let Some(space) = memchr::memchr(b' ', rest.as_bytes()) {
            marked.push_str(&rest[..space]);
            marked.push(self.replacement);
            rest = &rest[space + 1..];
        }
        marked.push_str(rest);
        Cow::Owned(marked)
    }

    fn align(&self, text: &mut AlignedText) {
        // As in Hugging Face tokenizers, every word that comes from the beginning of the input counts as the first.
        let is_first = text.spans.first().is_some_and(|span| span.0 == 0);
        text.map(|c| if c == ' ' { self.replacement } else { c });
        if self.is_due(is_first) && !text.text.starts_with(self.replacement) {
            text.prepend(self.replacement.encode_utf8(&mut [0; 4]));
        }
    }

    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        self.words(text).for_each(|word| take(place(text, word)));
    }

    fn json(&self) -> Value {
        let scheme = match self.prepend_scheme {
            PrependScheme::Always => "always",
            PrependScheme::First => "first",
            PrependScheme::Never => "never",
        };
        json!({
            "type": "Metaspace", "replacement": self.replacement, "prepend_scheme": scheme, "split": self.split,
        })
    }

    fn metaspace(&self) -> Option<&Metaspace> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_join_to_the_marked_text_and_hold_a_mark_only_in_front(text in "[a-zé \t]*") {
            let space = Metaspace::default();
            let marked = space.mark(&text, true);
            let words: Vec<&str> = space.words(&marked).collect();
            prop_assert_eq!(words.concat(), marked.as_ref());
            for word in words {
                prop_assert!(!word.chars().skip(1).any(|c| c == METASPACE));
            }
        }
    }
}
