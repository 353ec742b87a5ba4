//! Fast ways to find the words of well-known pre-tokenizers, chosen when a tokenizer is loaded.

use std::ops::Range;

use super::{
    METASPACE, MarkCuts, Metaspace, PreTokenizer, byte_level::each_byte_level_word, next_blank, place,
};
use crate::short_key::short_word;

/// The way in which the words of a text are found: by the pre-tokenizer of the file, or faster with the same result.
#[derive(Clone, Copy)]
pub(crate) enum WordFinder {
    /// The text is one word.
    Whole,
    /// The stages of the pre-tokenizer find the words.
    Stages,
    /// The stages only cut, so that words stand in the text as they are.
    Cuts,
    /// As [`Self::Cuts`], with one stage, a pattern of which each match is a word.
    Matches,
    /// GPT-2's rule finds the words.
    ByteLevel,
    /// Words lie between blanks, and a mark goes before each.
    Opened,
    /// A word begins at each blank or mark. Blanks become marks.
    AtBlanks(Metaspace),
    /// A word begins at each run of blanks and marks before which the model allows a cut. Blanks become marks, and
    /// nothing else changes, so the text is not normalized before.
    AtRuns(Marks, MarkCuts),
}

/// The condition for a mark before a text whose blanks become marks.
#[derive(Clone, Copy)]
pub(crate) enum Marks {
    Never,
    Always,
    Metaspace(Metaspace),
}

impl Marks {
    fn are_due(self, text: &str, is_first: bool) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Metaspace(space) => space.is_due(is_first) && !text.starts_with([' ', METASPACE]),
        }
    }
}

/// A word where it stands in a text.
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    pub(crate) place: Range<usize>,
    /// The word's [`crate::short_key::short_key`]; 0 if it was not computed.
    pub(crate) key: u128,
    pub(crate) spelling: Spelling,
}

/// The spelling in which the model gets a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// The word as it stands.
    AsWritten,
    /// The word with a mark before it, as every word of the text.
    Opened,
    /// The word with marks for its blanks.
    Marked,
}

impl<'t> Word<'t> {
    fn whole(text: &'t str) -> Self {
        Self { text, place: 0..text.len(), key: 0, spelling: Spelling::AsWritten }
    }

    /// Appends the word, as the model gets it, to `out`.
    pub(crate) fn spell(&self, out: &mut String) {
        let word = &self.text[self.place.clone()];
        match self.spelling {
            Spelling::AsWritten => out.push_str(word),
            Spelling::Opened => {
                out.push(METASPACE);
                out.push_str(word);
            }
            Spelling::Marked => push_marked(out, word),
        }
    }
}

impl WordFinder {
    /// Hands each word of `text` to `take`, in order. `is_first`: the text is the beginning of the input.
    #[inline]
    pub(crate) fn each(
        self,
        stages: &PreTokenizer,
        text: &str,
        is_first: bool,
        mut take: impl FnMut(Word<'_>),
    ) {
        match self {
            Self::Whole => take(Word::whole(text)),
            Self::Opened if !text.contains(METASPACE) => {
                for word in text.split_whitespace() {
                    take(Word { text, place: place(text, word), key: 0, spelling: Spelling::Opened });
                }
            }
            Self::Stages | Self::Opened => {
                stages.each_word(text, is_first, &mut |word| take(Word::whole(word)));
            }
            Self::Cuts => stages.each_place(0, text, 0..text.len(), &mut |place| {
                take(Word { text, place, key: 0, spelling: Spelling::AsWritten });
            }),
            Self::ByteLevel => {
                each_byte_level_word(text, |place, key| {
                    take(Word { text, place, key, spelling: Spelling::AsWritten });
                });
            }
            Self::Matches => {
                if let Some(matches) = stages.matches() {
                    matches.each(text, |place, key| {
                        take(Word { text, place, key, spelling: Spelling::AsWritten });
                    });
                }
            }
            Self::AtBlanks(space) => {
                let due = Marks::Metaspace(space).are_due(text, is_first);
                marked(text, due, |_, length| length > 0, |from| after_one(text, from), take);
            }
            Self::AtRuns(marks, cuts) => {
                // A blank alone may be one of several, and a character that merges with the next blank does not end a word.
                let is_whole = |text: &[u8; 16], length| length > 1 && cuts.allow_after(text[length - 1]);
                let end = |from| cuts.end(text, from, &[' ', METASPACE], next_blank);
                marked(text, marks.are_due(text, is_first), is_whole, end, take);
            }
        }
    }
}

/// Hands the words of a text to `take`. If `due`, a mark goes before the first one. `end` returns the end of the word
/// that starts at a place. `is_whole` tells whether the stretch up to the next space, of this length, is a word.
#[inline(always)]
fn marked(
    text: &str,
    due: bool,
    is_whole: impl Fn(&[u8; 16], usize) -> bool,
    end: impl Fn(usize) -> usize,
    mut take: impl FnMut(Word<'_>),
) {
    let mut from = 0;
    if due && !text.is_empty() {
        from = end(0);
        let mut opened = String::with_capacity(from + METASPACE.len_utf8());
        opened.push(METASPACE);
        push_marked(&mut opened, &text[..from]);
        take(Word::whole(&opened));
    }
    while let Some(rest) = text.as_bytes().get(from..).filter(|rest| !rest.is_empty()) {
        // Most words are short.
        let short = rest
            .first_chunk()
            .and_then(|bytes| short_word(bytes).filter(|(length, _)| is_whole(bytes, *length)));
        let (to, key) = short.map_or_else(|| (end(from), 0), |(length, key)| (from + length, key));
        take(Word { text, place: from..to, key, spelling: Spelling::Marked });
        from = to;
    }
}

/// Returns the end of the word at `from`, which may open with one blank or mark.
fn after_one(text: &str, from: usize) -> usize {
    let opening = text[from..].chars().next().map_or(0, char::len_utf8);
    next_blank(text, from + opening)
}

/// Appends a text with marks for its blanks.
fn push_marked(out: &mut String, text: &str) {
    for (at, part) in text.split(' ').enumerate() {
        if at > 0 {
            out.push(METASPACE);
        }
        out.push_str(part);
    }
}
