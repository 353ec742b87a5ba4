//! Pre-tokenizers, which split a normalized text into words. No token crosses the bounds of words.

mod bert;
mod byte_level;
mod metaspace;
mod split;
mod words;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::aligned_text::AlignedText;
use crate::byte_alphabet::spell_bytes;

pub use bert::bert_words;
pub use byte_level::byte_level_words;
pub(crate) use metaspace::{METASPACE, next_blank, next_mark};
pub use metaspace::{Metaspace, PrependScheme};
pub(crate) use split::{Behavior, CutAt, Split};
pub(crate) use words::{UnicodeScripts, Whitespace};

/// A pre-tokenizer as in a `tokenizer.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreTokenizer {
    /// BERT's: blanks go, punctuation stands alone.
    Bert,
    /// GPT-2's.
    ByteLevel {
        /// Whether a text that does not start with a space gets one.
        add_prefix_space: bool,
        /// Whether words are cut by GPT-2's rule.
        use_regex: bool,
        /// Whether the bytes are spelt out here, because stages follow; otherwise the model does so.
        spells: bool,
    },
    /// SentencePiece's: spaces become marks.
    Metaspace(Metaspace),
    /// Blanks go.
    WhitespaceSplit,
    /// One of those that only a `tokenizer.json` asks for.
    OfFile(OfFile),
    /// The words of one are cut further by the next. No sequence is in another.
    Sequence(Vec<PreTokenizer>),
}

/// A pre-tokenizer that only a `tokenizer.json` asks for. It is behind a trait, so that a program that reads no such file, as
/// a page, does not contain it.
#[derive(Clone, Debug)]
pub(crate) struct OfFile(pub(crate) Arc<dyn Cut>);

impl PartialEq for OfFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.json() == other.0.json()
    }
}

impl Eq for OfFile {}

/// A pre-tokenizer that cuts a text without changing it, with its form in a `tokenizer.json`.
pub(crate) trait Cut: Debug + Send + Sync {
    /// Hands the places of the words of `text` to `take`, in order. No word is empty.
    fn words(&self, text: &str, take: &mut dyn FnMut(Range<usize>));

    /// As a `tokenizer.json` writes it.
    fn json(&self) -> Value;
}

/// The pre-tokenizers of T5 and of most files made from a SentencePiece `.model`.
pub(crate) const OF_T5: [PreTokenizer; 2] = [
    PreTokenizer::WhitespaceSplit,
    PreTokenizer::Metaspace(Metaspace {
        replacement: METASPACE,
        prepend_scheme: PrependScheme::Always,
        split: true,
    }),
];

impl PreTokenizer {
    /// Hands each word of `text` to `take`, in order. `is_first`: the text is the beginning of the input.
    pub(crate) fn each_word(&self, text: &str, is_first: bool, take: &mut dyn FnMut(&str)) {
        each_word(self.stages(), text, is_first, take);
    }

    /// The same with the places of what the words come from, which tell where the input begins.
    pub(crate) fn each_aligned(&self, text: AlignedText, take: &mut dyn FnMut(&AlignedText)) {
        each_aligned(self.stages(), text, take);
    }

    /// Whether a mark goes before each word that comes from the beginning of the input, which only the words' places tell:
    /// a normalizer can make several words of one character, or drop the first ones.
    pub(crate) fn marks_by_place(&self, is_normalized: bool) -> bool {
        let is_first = |stage: &Self| matches!(stage, Self::Metaspace(space) if space.prepend_scheme == PrependScheme::First);
        let earlier_stages = usize::from(!is_normalized);
        self.stages().iter().skip(earlier_stages).any(is_first)
    }

    /// Makes the bytes be spelt out before what follows.
    pub(crate) fn spell(&mut self) {
        match self {
            Self::ByteLevel { spells, .. } => *spells = true,
            Self::Sequence(all) => all.iter_mut().for_each(Self::spell),
            _ => {}
        }
    }

    /// All of a sequence, or itself.
    pub(crate) fn stages(&self) -> &[Self] {
        match self {
            Self::Sequence(all) => all,
            one => std::slice::from_ref(one),
        }
    }

    /// Whether it hands on each text as it is.
    fn does_nothing(&self) -> bool {
        matches!(self, Self::ByteLevel { add_prefix_space: false, use_regex: false, spells: false })
    }

    /// The text with what is put in before it is cut.
    fn marked<'a>(&self, text: &'a str, is_first: bool) -> Cow<'a, str> {
        match self {
            Self::ByteLevel { add_prefix_space: true, .. } if !text.starts_with(' ') => {
                Cow::Owned([" ", text].concat())
            }
            Self::Metaspace(space) => space.mark(text, is_first),
            _ => Cow::Borrowed(text),
        }
    }

    /// The same with the places of what it comes from.
    fn align(&self, text: &mut AlignedText) {
        match self {
            Self::ByteLevel { add_prefix_space: true, .. } if !text.text.starts_with(' ') => {
                text.prepend(" ")
            }
            Self::Metaspace(space) => space.align(text),
            _ => {}
        }
    }

    /// Hands the places of the words of a marked text to `take`.
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        let place = |word: &str| {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            start..start + word.len()
        };
        match self {
            Self::Bert => bert_words(text).for_each(|word| take(place(word))),
            Self::ByteLevel { use_regex: true, .. } => {
                byte_level_words(text).for_each(|word| take(place(word)));
            }
            // A sequence has been taken apart before.
            Self::ByteLevel { .. } | Self::Sequence(_) => take(0..text.len()),
            Self::Metaspace(space) => space.words(text).for_each(|word| take(place(word))),
            Self::WhitespaceSplit => text.split_whitespace().for_each(|word| take(place(word))),
            Self::OfFile(OfFile(cut)) => cut.words(text, take),
        }
    }
}

fn each_word(all: &[PreTokenizer], text: &str, is_first: bool, take: &mut dyn FnMut(&str)) {
    let Some((stage, others)) = all.split_first().filter(|_| !text.is_empty()) else { return take(text) };
    let marked = stage.marked(text, is_first);
    let spells = matches!(stage, PreTokenizer::ByteLevel { spells: true, .. });
    stage.cut(&marked, &mut |place| {
        let opens = is_first && place.start == 0;
        let word = &marked[place];
        match others {
            [last] if last.does_nothing() && !spells => take(word),
            _ if spells => each_word(others, &spell_bytes(word), opens, take),
            [] => take(word),
            _ => each_word(others, word, opens, take),
        }
    });
}

fn each_aligned(all: &[PreTokenizer], mut text: AlignedText, take: &mut dyn FnMut(&AlignedText)) {
    let Some((stage, others)) = all.split_first().filter(|_| !text.text.is_empty()) else {
        return take(&text);
    };
    stage.align(&mut text);
    stage.cut(&text.text, &mut |place| {
        let mut word = text.part(place);
        if matches!(stage, PreTokenizer::ByteLevel { spells: true, .. }) {
            word.spell_bytes();
        }
        each_aligned(others, word, take);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_t5_have_one_mark_each() {
        let mut words = Vec::new();
        PreTokenizer::Sequence(OF_T5.to_vec())
            .each_word("a\n  b", true, &mut |word| words.push(word.to_owned()));
        assert_eq!(words, ["▁a", "▁b"]);
    }
}
