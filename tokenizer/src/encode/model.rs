//! One interface for all models.

use std::ops::Deref;

use super::{Bpe, Encode, SentencePiece, Unigram, WordLevel, WordPiece};

/// The model of a tokenizer. The kinds are listed because each has its own form in a file.
pub(crate) enum Model {
    /// A unigram model, which finds a word's best path by log-probability.
    Unigram(Unigram),
    /// A WordPiece model, which takes the longest tokens first.
    WordPiece(WordPiece),
    /// A BPE model, which merges symbols by rank.
    Bpe(Bpe),
    /// A model whose tokens are whole words.
    WordLevel(WordLevel),
    /// The model of a `.model` file, which finds the same pieces as SentencePiece.
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
