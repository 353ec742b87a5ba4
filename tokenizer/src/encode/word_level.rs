//! A model whose tokens are whole words.

use super::{Encode, Token};
use crate::vocabulary::Vocabulary;

pub(crate) struct WordLevel {
    vocabulary: Vocabulary,
    unk_id: u32,
}

impl WordLevel {
    /// Returns a model over `vocabulary`; `None` if it lacks the unknown token.
    pub(crate) fn new(vocabulary: Vocabulary, unk_token: &str) -> Option<Self> {
        let unk_id = vocabulary.id(unk_token)?;
        Some(Self { vocabulary, unk_id })
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(crate) fn unknown_id(&self) -> u32 {
        self.unk_id
    }
}

impl Encode for WordLevel {
    fn kind(&self) -> &'static str {
        "WordLevel"
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) {
        if !word.is_empty() {
            out.push(self.vocabulary.id(word).unwrap_or(self.unk_id));
        }
    }

    fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        let mut ids = Vec::new();
        self.encode(word, &mut ids);
        out.extend(ids.into_iter().map(|id| Token { id, start: 0, end: word.len() }));
    }

    fn listed(&self) -> Option<&Vocabulary> {
        Some(&self.vocabulary)
    }

    fn unk_id(&self) -> Option<u32> {
        Some(self.unk_id)
    }
}
