//! A tokenizer: text to token ids and back. It computes nothing about privacy, and carries the mark of the release that made it.
//!
//! Text flows through five stages, each a module: [`normalize`] → [`pretokenize`] → `encode` → `postprocess`, and back through
//! `decode`. [`Tokenizer`] holds one of each. [`mod@format`] reads and writes the files of Hugging Face tokenizers, BERT
//! and GPT-2, [`sentencepiece`] those of SentencePiece.
//!
//! ```
//! use tokenizer::Tokenizer;
//! let tokenizer = Tokenizer::bytes(&["</s>".to_owned()])?;
//! assert_eq!(tokenizer.encode("Aé</s>"), [1 + 0x41, 1 + 0xC3, 1 + 0xA9, 0]);
//! assert_eq!(tokenizer.decode(&[0x42]), "A");
//! # Ok::<(), tokenizer::FormatError>(())
//! ```

mod aligned_text;
mod ascii_words;
mod byte_alphabet;
pub mod character_class;
mod decode;
mod encode;
mod encoding;
mod error;
pub mod format;
mod from_parts;
pub mod normalize;
mod pattern;
mod postprocess;
pub mod pretokenize;
mod regex;
pub mod sentencepiece;
pub mod short_key;
mod special_tokens;
mod stage;
mod tokenizer;
mod vocabulary;

pub use byte_alphabet::byte_to_char;
pub use encode::batch;
pub use encoding::{Encoding, OffsetUnit};
pub use error::FormatError;
pub use from_parts::UnigramPipeline;
pub use tokenizer::{
    BLANK, DecodeStream, EOS, Encoder, PAD, Role, RoleTokens, Sampler, Segmentation, SegmentationError,
    StageMark, Tokenizer, UNK,
};
pub use vocabulary::{DuplicateToken, Vocabulary, byte_token};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
