//! One interface for all models.

use std::ops::Deref;

use super::{Bpe, Encode, SentencePiece, Unigram, WordLevel, WordPiece};

/// The model of a tokenizer. The kinds are listed because each has its own form in a file.
pub(crate) enum Model {
    /// A word's best path by log-probability.
    Unigram(Unigram),
    /// Longest tokens first.
    WordPiece(WordPiece),
    /// Merges by rank.
    Bpe(Bpe),
    /// Whole words.
    WordLevel(WordLevel),
    /// The best path of a whole text, as SentencePiece finds it.
    SentencePiece(Box<SentencePiece>),
}

impl Deref for Model {
    type Target = dyn Encode;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Unigram(model) => model,
            Self::WordPiece(model) => model,
            Self::Bpe(model) => model,
            Self::WordLevel(model) => model,
            Self::SentencePiece(model) => &**model,
        }
    }
}
