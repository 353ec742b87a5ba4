//! The models that encode words as token ids.

mod batch;
mod bpe;
mod cache;
mod double_array;
mod lattice;
mod model;
mod sentencepiece;
mod unigram;
mod word_level;
mod wordpiece;

pub use batch::batch;
pub(crate) use bpe::{Alphabet, Bpe, WordRules};
pub(crate) use cache::WordCache;
pub(crate) use double_array::DoubleArray;
pub(crate) use lattice::{Edge, Lattice, Path};
pub(crate) use model::{Encode, Model, Token};
pub(crate) use sentencepiece::{SentencePiece, implied_merges};
pub(crate) use unigram::Unigram;
pub use unigram::byte_token;
pub(crate) use word_level::WordLevel;
pub(crate) use wordpiece::{WordPiece, WordPieceConfig};
