//! The models that encode words as token ids.

mod batch;
mod bpe;
mod cache;
mod double_array;
mod lattice;
mod longest_first;
mod merges;
mod model;
mod sentencepiece;
mod unigram;
mod word_level;
mod wordpiece;

use std::ops::Range;

use crate::vocabulary::Vocabulary;

pub use batch::batch;
pub(crate) use bpe::{Alphabet, Bpe, WordRules};
pub(crate) use cache::WordCache;
pub(crate) use double_array::DoubleArray;
pub(crate) use lattice::{Edge, Lattice, Path};
use longest_first::LongestFirst;
pub(crate) use merges::Merges;
pub(crate) use model::Model;
pub(crate) use sentencepiece::{SentencePiece, implied_merges};
pub(crate) use unigram::Unigram;
pub(crate) use word_level::WordLevel;
pub(crate) use wordpiece::{WordPiece, WordPieceConfig};

/// A token with its range of bytes in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A model, which cuts a word into tokens. A word may be a whole text.
pub(crate) trait Encode {
    /// Returns the name of the kind of model, for messages.
    fn kind(&self) -> &'static str;

    /// Appends the ids of `word` to `out`.
    fn encode(&self, word: &str, out: &mut Vec<u32>);

    /// Appends the tokens of `word` to `out`: the ids of [`Self::encode`] with their places.
    fn tokens(&self, word: &str, out: &mut Vec<Token>);

    /// Returns the vocabulary, if the model holds one. A model without one implements [`Self::len`], [`Self::token`]
    /// and [`Self::id`].
    fn listed(&self) -> Option<&Vocabulary> {
        None
    }

    /// Returns the number of tokens.
    fn len(&self) -> usize {
        self.listed().map_or(0, Vocabulary::len)
    }

    /// Returns the token as the vocabulary writes it.
    fn token(&self, id: u32) -> Option<&str> {
        self.listed()?.token(id)
    }

    /// Returns the id of a token written as in the vocabulary.
    fn id(&self, token: &str) -> Option<u32> {
        self.listed()?.id(token)
    }

    /// Returns the id of the unknown token, if there is one.
    fn unk_id(&self) -> Option<u32>;

    /// Appends the ids of the word at `place` of `text`, which the cache may know. A model that can cut a word further without a
    /// change of its ids does so here.
    fn encode_cached(&self, text: &str, place: Range<usize>, cache: &mut WordCache, out: &mut Vec<u32>) {
        let word = &text[place.clone()];
        cache.extend_within(text.as_bytes(), place, out, |out| self.encode(word, out));
    }

    /// Returns the text from which decoding starts: the token, or the text that a `.model` shows for it.
    fn surface(&self, id: u32) -> Option<&str> {
        self.token(id)
    }

    /// Whether the model takes words as they are and spells their bytes in GPT-2's alphabet.
    fn spells_bytes(&self) -> bool {
        false
    }

    /// Whether `<0x00>` to `<0xFF>` stand for bytes.
    fn falls_back_to_bytes(&self) -> bool {
        false
    }

    /// Whether a character without a token leaves none behind.
    fn drops_characters(&self) -> bool {
        false
    }

    /// Returns every piece that can stand in `word`, with its log-probability; `None` if the model scores no pieces.
    fn edges(&self, _word: &str) -> Option<Vec<Edge>> {
        None
    }

    /// Appends the tokens of a path of [`Self::edges`].
    fn tokens_of_path(&self, _word: &str, _path: &[Edge], _out: &mut Vec<Token>) {}

    /// Appends the tokens of `word` where each merge is left out if `drops` says so; false if the model does not merge.
    fn tokens_with_dropout(
        &self,
        _word: &str,
        _drops: &mut dyn FnMut() -> bool,
        _out: &mut Vec<Token>,
    ) -> bool {
        false
    }
}
