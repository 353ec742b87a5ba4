//! Differentially private vocabularies: text in, released words, a tokenizer out.
//!
//! The pipeline: [`corpus`] (records) → [`mod@unit`] (privacy units) → [`count`] (their items) → [`release`] (private words)
//! → [`train`] (a vocabulary) → [`Tokenizer`] → `tokens` (an encoded corpus on disk).

// The command line uses the library as a program does.
#[cfg(all(feature = "cli", not(target_arch = "wasm32")))]
extern crate self as dp_tokenizer;

mod aligned_text;
mod byte_alphabet;
mod character_class;
#[cfg(all(feature = "cli", not(target_arch = "wasm32")))]
pub mod cli;
pub mod corpus;
pub mod count;
mod decode;
mod encode;
#[cfg(not(target_arch = "wasm32"))]
mod exclusive_file;
pub mod format;
pub mod identity;
#[cfg(feature = "js")]
pub mod js;
pub mod normalize;
mod offsets;
mod pattern;
mod postprocess;
mod pretokenize;
mod pretrained;
pub mod preview;
mod regex;
pub mod release;
mod short_key;
mod tokenizer;
#[cfg(not(target_arch = "wasm32"))]
pub mod tokens;
pub mod train;
pub mod unit;
mod vocabulary;
mod word_hasher;

#[cfg(not(target_arch = "wasm32"))]
pub use exclusive_file::{ExclusiveError, ExclusiveFile};
pub use format::FormatError;
pub use offsets::{Encoding, OffsetUnit};
pub use tokenizer::{
    DecodeStream, EOS, Encoder, PAD, Role, RoleTokens, Sampler, Segmentation, SegmentationError, StageMark,
    Tokenizer, UNK,
};
pub use vocabulary::{DuplicateToken, Vocabulary};
