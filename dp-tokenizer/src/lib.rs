//! Differentially private vocabularies: text in, released words, a tokenizer out.
//!
//! The data's way: [`corpus`] (records) → [`mod@unit`] (whose they are) → [`count`] (their items) → [`release`] (the items
//! that may be shown) → [`train`] (a vocabulary from released words) →
//! [`Tokenizer`] → `tokens` (an encoded corpus on disk).

mod aligned;
mod character;
pub mod corpus;
pub mod count;
mod decode;
pub mod encode;
pub mod format;
pub mod normalize;
mod offsets;
pub mod pretokenize;
mod pretrained;
pub mod preview;
pub mod release;
mod short;
mod tokenizer;
#[cfg(not(target_arch = "wasm32"))]
pub mod tokens;
pub mod train;
pub mod unit;
mod vocabulary;

pub use format::FormatError;
pub use offsets::{Encoding, OffsetUnit};
pub use tokenizer::{EOS, Encoder, PAD, Tokenizer, UNK};
pub use vocabulary::{DuplicateToken, Vocabulary};
