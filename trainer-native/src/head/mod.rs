//! What is predicted from a model's hidden states. A head belongs to no family.

mod lm;
mod sequence;

pub use lm::{LmHead, Transform};
pub use sequence::{Pooling, SequenceHead};
