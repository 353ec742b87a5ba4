//! Words that are tokens as a whole.

use super::Token;
use crate::vocabulary::Vocabulary;

/// A model whose tokens are words.
pub(crate) struct WordLevel {
    vocabulary: Vocabulary,
    unk_id: u32,
}

impl WordLevel {
    /// `None` if the vocabulary lacks the unknown token.
    pub(crate) fn new(vocabulary: Vocabulary, unk_token: &str) -> Option<Self> {
        let unk_id = vocabulary.id(unk_token)?;
        Some(Self { vocabulary, unk_id })
    }

    fn id(&self, word: &str) -> u32 {
        self.vocabulary.id(word).unwrap_or(self.unk_id)
    }

    /// Appends the id of `word` to `out`.
    pub(crate) fn encode(&self, word: &str, out: &mut Vec<u32>) {
        if !word.is_empty() {
            out.push(self.id(word));
        }
    }

    /// The same with the place of the token.
    pub(crate) fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        if !word.is_empty() {
            out.push(Token { id: self.id(word), start: 0, end: word.len() });
        }
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(crate) fn unk_id(&self) -> u32 {
        self.unk_id
    }
}
