//! Models as compositions of layers, with the names of Hugging Face checkpoints.

mod batch;
mod gpt2;

pub use batch::TokenBatch;
pub use gpt2::{Gpt2, Gpt2Config};
