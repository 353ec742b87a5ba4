//! BERT's pre-tokenizer: words are separated by blanks, and each punctuation mark is a word.

use std::ops::Range;

use serde_json::{Value, json};

use super::{PreTokenize, place};
use crate::character_class::is_bert_punctuation;

#[derive(Debug)]
pub(super) struct BertPreTokenizer;

impl PreTokenize for BertPreTokenizer {
    fn cut(&self, text: &str, take: &mut dyn FnMut(Range<usize>)) {
        bert_words(text).for_each(|word| take(place(text, word)));
    }

    fn json(&self) -> Value {
        json!({"type": "BertPreTokenizer"})
    }
}

/// Returns the words of `text`, in order. Blanks are dropped, and each punctuation mark is a word.
pub fn bert_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = if is_bert_punctuation(first) {
            first.len_utf8()
        } else {
            rest.find(|c: char| c.is_whitespace() || is_bert_punctuation(c)).unwrap_or(rest.len())
        };
        let (word, tail) = rest.split_at(end);
        rest = tail;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_punctuation_mark_is_a_word() {
        assert_eq!(bert_words("don't stop!").collect::<Vec<_>>(), ["don", "'", "t", "stop", "!"]);
    }

    proptest! {
        #[test]
        fn words_hold_every_character_but_the_blanks(text in "\\PC*[ \t!-~]*") {
            let joined: String = bert_words(&text).collect();
            let without_blanks: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            prop_assert_eq!(joined, without_blanks);
        }

        #[test]
        fn punctuation_is_alone_in_its_word(text in "[a-z .,¿？]*") {
            for word in bert_words(&text) {
                prop_assert!(word.chars().count() == 1 || !word.chars().any(is_bert_punctuation));
            }
        }
    }
}
