//! Pre-tokenizers, which split a normalized text into words. No token crosses the bounds of words.

mod bert;
mod byte_level;
mod metaspace;

use crate::aligned_text::AlignedText;

pub(crate) use bert::bert_words;
pub(crate) use byte_level::{byte_level_words, byte_to_char, char_to_byte};
pub(crate) use metaspace::{METASPACE, Metaspace, PrependScheme};

/// A pre-tokenizer as in a `tokenizer.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreTokenizer {
    /// BERT's: blanks go, punctuation stands alone.
    Bert,
    /// GPT-2's; the bytes are spelt out by the model, not here.
    ByteLevel {
        /// Whether a text that does not start with a space gets one.
        add_prefix_space: bool,
    },
    /// SentencePiece's: spaces become marks.
    Metaspace(Metaspace),
    /// Blanks go.
    WhitespaceSplit,
    /// The words of one are cut further by the next.
    Sequence(Vec<PreTokenizer>),
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
        match self {
            Self::Bert => bert_words(text).for_each(take),
            Self::ByteLevel { add_prefix_space } => {
                if *add_prefix_space && !text.is_empty() && !text.starts_with(' ') {
                    byte_level_words(&format!(" {text}")).for_each(take);
                } else {
                    byte_level_words(text).for_each(take);
                }
            }
            Self::Metaspace(space) => space.words(&space.mark(text, is_first)).for_each(take),
            Self::WhitespaceSplit => text.split_whitespace().for_each(take),
            Self::Sequence(all) => sequence(all, text, is_first, take),
        }
    }
}

impl PreTokenizer {
    /// The same with the places of what the words come from.
    pub(crate) fn each_aligned(
        &self,
        mut text: AlignedText,
        is_first: bool,
        take: &mut dyn FnMut(&AlignedText),
    ) {
        match self {
            Self::Bert => bert_words(&text.text).for_each(|word| take(&part(&text, word))),
            Self::ByteLevel { add_prefix_space } => {
                if *add_prefix_space && !text.text.starts_with(' ') {
                    text.prepend(' ');
                }
                byte_level_words(&text.text).for_each(|word| take(&part(&text, word)));
            }
            Self::Metaspace(space) => {
                space.align(&mut text, is_first);
                space.words(&text.text).for_each(|word| take(&part(&text, word)));
            }
            Self::WhitespaceSplit => {
                text.text.split_whitespace().for_each(|word| take(&part(&text, word)));
            }
            Self::Sequence(all) => aligned_sequence(all, text, is_first, take),
        }
    }
}

/// The range of `word` in `text`.
fn part(text: &AlignedText, word: &str) -> AlignedText {
    let start = word.as_ptr() as usize - text.text.as_ptr() as usize;
    text.part(start..start + word.len())
}

fn aligned_sequence(
    all: &[PreTokenizer],
    text: AlignedText,
    is_first: bool,
    take: &mut dyn FnMut(&AlignedText),
) {
    match all.split_first() {
        None => take(&text),
        Some((first, others)) => {
            let mut begins = is_first;
            first.each_aligned(text, is_first, &mut |word| {
                aligned_sequence(others, word.clone(), std::mem::take(&mut begins), take);
            });
        }
    }
}

fn sequence(all: &[PreTokenizer], text: &str, is_first: bool, take: &mut dyn FnMut(&str)) {
    match all.split_first() {
        None => take(text),
        Some((first, others)) => {
            let mut begins = is_first;
            first.each_word(text, is_first, &mut |word| {
                sequence(others, word, std::mem::take(&mut begins), take);
            });
        }
    }
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
