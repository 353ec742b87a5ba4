//! What the kernels of attention take.

use crate::tensor::{Backend, Int, Tensor};

/// Which keys an attention sees, and what is added to its scores.
#[derive(Clone)]
pub struct Mask<B: Backend> {
    /// Added to the scores of every example: `[heads, queries, keys]`.
    pub bias: Option<Tensor<B, 3>>,
    /// Number of keys of each example that are no padding, at least 1; all where absent: `[batch]`.
    pub lengths: Option<Tensor<B, 1, Int>>,
    /// Whether a query attends to no later key. The last query belongs to the last key.
    pub causal: bool,
    /// A query attends only to keys at a smaller distance than this, at least 1; to all where absent.
    pub window: Option<usize>,
}

/// Keys and values that earlier passes of generation computed.
pub struct CachedKeys<'a, B: Backend> {
    /// Keys and values: `[rows, kv_heads, capacity, d_head]` each.
    pub kept: [Tensor<B, 4>; 2],
    /// How many of each row's keys are in use, at least 1.
    pub used: &'a [usize],
    /// Added to the scores: `[heads, rows, keys]`, with keys ≥ the largest of `used`.
    pub bias: Option<Tensor<B, 3>>,
    /// The query attends only to this many of the last keys in use, at least 1; to all where absent.
    pub window: Option<usize>,
    /// Scores, after `scale`, become cap·tanh(score / cap).
    pub cap: Option<f64>,
}
