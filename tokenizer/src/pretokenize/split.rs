//! Pre-tokenizers that cut a text where a pattern or a character is found.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::PreTokenize;
use crate::FormatError;
use crate::character_class::is_bert_punctuation;
use crate::pattern::Pattern;
use crate::regex::Regex;
use crate::stage::{character, flag, lacking};

/// What happens to a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behavior {
    /// A match is dropped.
    Removed,
    /// A match is a word of its own.
    Isolated,
    /// A match closes the word before it.
    MergedWithPrevious,
    /// A match opens the word after it.
    MergedWithNext,
    /// Matches in a row are one word.
    Contiguous,
}

impl Behavior {
    const NAMES: [(&'static str, Self); 5] = [
        ("Removed", Self::Removed),
        ("Isolated", Self::Isolated),
        ("MergedWithPrevious", Self::MergedWithPrevious),
        ("MergedWithNext", Self::MergedWithNext),
        ("Contiguous", Self::Contiguous),
    ];

    fn read(part: &Value) -> Result<Self, FormatError> {
        let known = Self::NAMES.into_iter().find(|known| part["behavior"] == known.0);
        let names = Self::NAMES.map(|known| known.0).join(", ");
        known.map(|known| known.1).ok_or_else(|| lacking(part, "behavior", &names))
    }

    fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|known| known.1 == self).map_or("", |known| known.0)
    }
}

/// Joins matches and the text between them into words, none of which is empty.
pub(super) struct Joiner<'a> {
    behavior: Behavior,
    take: &'a mut dyn FnMut(Range<usize>),
    /// The last word, which may still grow.
    open: Range<usize>,
    follows_match: bool,
}

impl<'a> Joiner<'a> {
    pub(super) fn new(behavior: Behavior, take: &'a mut dyn FnMut(Range<usize>)) -> Self {
        Self { behavior, take, open: 0..0, follows_match: false }
    }

    /// Adds the next part of the text: a match, or the text between two.
    pub(super) fn add(&mut self, part: Range<usize>, is_match: bool) {
        let joins = match self.behavior {
            Behavior::Removed | Behavior::Isolated => false,
            Behavior::MergedWithPrevious => is_match && !self.follows_match,
            Behavior::MergedWithNext => !is_match && self.follows_match,
            Behavior::Contiguous => is_match == self.follows_match,
        };
        self.follows_match = is_match;
        if joins {
            self.open.end = part.end;
            return;
        }
        self.close();
        let is_dropped = is_match && self.behavior == Behavior::Removed;
        self.open = if is_dropped { part.end..part.end } else { part };
    }

    /// Hands on the last word.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            (self.take)(self.open.clone());
        }
    }
}

/// The words of a pattern of which each match is a word.
#[derive(Clone, Copy)]
pub(crate) struct Matches<'a> {
    regex: &'a Regex,
    /// Whether the text between two matches is a word, too.
    has_gaps: bool,
}

impl Matches<'_> {
    /// Hands each word of `text` to `take`, in order, with its [`crate::short_key::short_key`], or 0.
    #[inline]
    pub(crate) fn each(self, text: &str, mut take: impl FnMut(Range<usize>, u128)) {
        let mut last = 0;
        self.regex.each_with_key(text, |found, key| {
            if self.has_gaps && found.start > last {
                take(last..found.start, 0);
            }
            last = found.end;
            if !found.is_empty() {
                take(found, key);
            }
        });
        if self.has_gaps && last < text.len() {
            take(last..text.len(), 0);
        }
    }
}

/// Cuts where a pattern is found, or where it is not.
#[derive(Debug)]
pub(super) struct Split {
    pattern: Pattern,
    behavior: Behavior,
    /// Whether the text between the matches counts as the matches.
    invert: bool,
}

impl Split {
    pub(super) fn read(part: &Value) -> Result<Arc<dyn PreTokenize>, FormatError> {
        let (pattern, behavior) = (Pattern::read(part)?, Behavior::read(part)?);
        Ok(Arc::new(Self { pattern, behavior, invert: flag(part, "invert", false) }))
    }
}

impl PreTokenize for Split {
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        if let Some(matches) = self.matches() {
            return matches.each(text, |place, _| take(place));
        }
        let mut last = 0;
        let mut joiner = Joiner::new(self.behavior, take);
        self.pattern.each_match(text, |found| {
            if found.start > last {
                joiner.add(last..found.start, self.invert);
            }
            last = found.end;
            joiner.add(found, !self.invert);
        });
        if last < text.len() {
            joiner.add(last..text.len(), self.invert);
        }
        joiner.close();
    }

    fn json(&self) -> Value {
        json!({
            "type": "Split", "pattern": self.pattern.json(), "behavior": self.behavior.name(), "invert": self.invert,
        })
    }

    fn only_cuts(&self) -> bool {
        true
    }

    fn matches(&self) -> Option<Matches<'_>> {
        let has_gaps = self.behavior == Behavior::Isolated;
        let Pattern::Regex(regex) = &self.pattern else { return None };
        let are_words = has_gaps || (self.behavior == Behavior::Removed && self.invert);
        are_words.then_some(Matches { regex, has_gaps })
    }
}

/// Cuts at single characters.
#[derive(Debug)]
pub(super) enum CutAt {
    /// Cuts at numbers (category N), one by one or together.
    Digits { individual: bool },
    /// Cuts at punctuation as BERT defines it.
    Punctuation(Behavior),
    /// Cuts at a character, which is dropped.
    Delimiter(char),
}

impl CutAt {
    pub(super) fn digits(part: &Value) -> Result<Arc<dyn PreTokenize>, FormatError> {
        Ok(Arc::new(Self::Digits { individual: flag(part, "individual_digits", false) }))
    }

    pub(super) fn punctuation(part: &Value) -> Result<Arc<dyn PreTokenize>, FormatError> {
        let is_stated = !part["behavior"].is_null();
        let behavior = if is_stated { Behavior::read(part)? } else { Behavior::Isolated };
        Ok(Arc::new(Self::Punctuation(behavior)))
    }

    pub(super) fn delimiter(part: &Value) -> Result<Arc<dyn PreTokenize>, FormatError> {
        Ok(Arc::new(Self::Delimiter(character(part, "delimiter")?)))
    }

    fn is_cut(&self, c: char) -> bool {
        match self {
            Self::Digits { .. } => c.is_numeric(),
            Self::Punctuation(_) => is_bert_punctuation(c),
            Self::Delimiter(delimiter) => c == *delimiter,
        }
    }
}

impl PreTokenize for CutAt {
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        let behavior = match self {
            Self::Digits { individual: true } => Behavior::Isolated,
            Self::Digits { individual: false } => Behavior::Contiguous,
            Self::Punctuation(behavior) => *behavior,
            Self::Delimiter(_) => Behavior::Removed,
        };
        let mut joiner = Joiner::new(behavior, take);
        let mut last = 0;
        for (at, c) in text.char_indices().filter(|(_, c)| self.is_cut(*c)) {
            if at > last {
                joiner.add(last..at, false);
            }
            last = at + c.len_utf8();
            joiner.add(at..last, true);
        }
        if last < text.len() {
            joiner.add(last..text.len(), false);
        }
        joiner.close();
    }

    fn json(&self) -> Value {
        match self {
            Self::Digits { individual } => json!({"type": "Digits", "individual_digits": individual}),
            Self::Punctuation(behavior) => json!({"type": "Punctuation", "behavior": behavior.name()}),
            Self::Delimiter(delimiter) => json!({"type": "CharDelimiterSplit", "delimiter": delimiter}),
        }
    }

    fn only_cuts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(cut: &dyn PreTokenize, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        cut.cut(text, &mut |range| words.push(text[range].to_owned()));
        words
    }

    #[test]
    fn what_is_found_is_dropped_or_joined_as_told() {
        // Oracle: `Punctuation(behavior)` of Hugging Face tokenizers 0.23.3.
        let text = "!a..b,c-";
        for (behavior, want) in [
            (Behavior::Removed, ["a", "b", "c"].as_slice()),
            (Behavior::Isolated, &["!", "a", ".", ".", "b", ",", "c", "-"]),
            (Behavior::MergedWithPrevious, &["!", "a.", ".", "b,", "c-"]),
            (Behavior::MergedWithNext, &["!a", ".", ".b", ",c", "-"]),
            (Behavior::Contiguous, &["!", "a", "..", "b", ",", "c", "-"]),
        ] {
            assert_eq!(words(&CutAt::Punctuation(behavior), text), want, "{behavior:?}");
        }
    }

    #[test]
    fn an_inverted_split_drops_what_lies_between() {
        let pattern = Pattern::read(&json!({"pattern": {"Regex": "[a-z]+"}})).unwrap();
        let split = Split { pattern, behavior: Behavior::Removed, invert: true };
        assert_eq!(words(&split, "1ab 2c"), ["ab", "c"]);
    }
}
