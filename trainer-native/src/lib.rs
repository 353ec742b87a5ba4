//! Carries out a certified plan: trains a language model under differential privacy, on Burn.
//!
//! [`run`] is the main path. A model of the crate [`network`] is a forward pass over its operators. Their backward passes
//! leave records, from which [`dp`] takes per-example norms and the clipped sum without storing a gradient per example.

mod audit;
mod chat;
pub mod cli;
pub mod data;
pub mod disclosure;
pub mod dp;
mod durable;
mod error;
mod export;
mod exposure;
mod history;
pub mod infer;
mod init;
mod label_histogram;
mod limits;
mod membership;
mod memorization;
mod memory;
mod model_card;
#[cfg(test)]
mod network_tests;
mod objective;
pub mod optim;
mod peft;
mod plan_file;
pub mod pretrained;
mod progress;
mod quality;
mod ranks;
mod rehearsal;
mod report;
pub mod run;
mod runs;
pub mod score;
mod stop;
mod store;
mod summary;
pub mod sweep;
pub mod synthesis;
pub mod tensor_file;
pub mod train;
pub mod verify;
mod vocabulary;

pub use error::RunError;
