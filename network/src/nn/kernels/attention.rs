//! Arguments of the attention kernels.

use crate::tensor::{Backend, Int, Tensor};

/// The keys that an attention sees, and the bias of its scores.
#[derive(Clone)]
pub struct Mask<B: Backend> {
    /// Bias of the scores of every example: `[heads, queries, keys]`.
    pub bias: Option<Tensor<B, 3>>,
    /// Number of keys of each example that are not padding, at least 1; all if absent: `[batch]`.
    pub lengths: Option<Tensor<B, 1, Int>>,
    /// Whether a query attends to no later key. The last query belongs to the last key.
    pub causal: bool,
    /// Distance, at least 1, from which a query does not see keys; all are seen if absent.
    pub window: Option<usize>,
}

/// Keys and values that earlier passes of generation computed.
pub struct CachedKeys<'a, B: Backend> {
    /// Keys and values: `[rows, kv_heads, capacity, d_head]` each.
    pub kept: [Tensor<B, 4>; 2],
    /// Number of keys in use, at least 1, for each row.
    pub used: &'a [usize],
    /// Bias of the scores: `[heads, rows, keys]`, with keys ≥ the largest of `used`.
    pub bias: Option<Tensor<B, 3>>,
    /// Number of the last keys in use that the query sees, at least 1; all if absent.
    pub window: Option<usize>,
    /// If c is given, each score x, after `scale`, becomes c·tanh(x / c).
    pub cap: Option<f64>,
}
