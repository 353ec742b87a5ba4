//! Carries out a certified plan: trains a language model under differential privacy, on Burn.
//!
//! [`run`] is the main path. A model of the crate [`network`] is a forward pass over its operators. Their backward passes
//! leave records, from which [`dp`] takes per-example norms and the clipped sum without storing a gradient per example.

pub mod chat;
pub mod data;
pub mod disclosure;
pub mod dp;
mod drawn_texts;
mod error;
pub mod evolution;
pub mod history;
pub mod infer;
pub mod label_histogram;
pub mod limits;
pub mod memory;
pub mod model_card;
#[cfg(test)]
mod network_tests;
pub mod objective;
pub mod optim;
pub mod paraphrase;
pub mod plan_file;
pub mod progress;
pub mod ranks;
pub mod run;
pub mod score;
pub mod stop;
pub mod store;
pub mod summary;
pub mod sweep;
pub mod synthetic;
mod token_frequencies;
pub mod train;
pub mod verify;
pub mod vocabulary;
mod warm_start;
mod word_counting;
mod words_by_label;

pub use error::RunError;
