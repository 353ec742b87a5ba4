//! Differentially private vocabularies: text in, released words, a tokenizer out.
//!
//! The pipeline: [`corpus`] (records) → [`mod@unit`] (privacy units) → [`count`] (their items) → [`release`] (private words)
//! → [`train`] (a vocabulary) → [`tokenizer::Tokenizer`] → `tokens` (an encoded corpus on disk).

// The command line uses the library as a program does.
#[cfg(all(feature = "cli", not(target_arch = "wasm32")))]
extern crate self as dp_tokenizer;

#[cfg(all(feature = "cli", not(target_arch = "wasm32")))]
pub mod cli;
pub mod corpus;
pub mod count;
#[cfg(not(target_arch = "wasm32"))]
pub mod identity;
mod items;
#[cfg(feature = "js")]
pub mod js;
pub mod preview;
pub mod release;
pub mod survey;
#[cfg(not(target_arch = "wasm32"))]
pub mod tokens;
pub mod train;
pub mod unit;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
