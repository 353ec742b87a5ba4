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

/// Queries, keys and values of an attention without bias, and the keys that a query sees.
#[derive(Clone)]
pub struct Attended<B: Backend> {
    /// The queries of the `group` heads that use one head of keys follow one another: `[batch, kv_heads, group·queries, d_head]`.
    pub queries: Tensor<B, 4>,
    /// `[batch, kv_heads, keys, d_head]`
    pub keys: Tensor<B, 4>,
    /// `[batch, kv_heads, keys, d_head]`
    pub values: Tensor<B, 4>,
    /// Heads of queries for a head of keys.
    pub group: usize,
    /// As in [`Mask`].
    pub lengths: Option<Tensor<B, 1, Int>>,
    /// As in [`Mask`].
    pub causal: bool,
    /// As in [`Mask`].
    pub window: Option<usize>,
    /// Factor of the products of queries and keys.
    pub scale: f64,
}

/// Attention that holds no probabilities.
pub struct BlockedAttention<B: Backend> {
    /// Returns a tensor with the shape of the queries.
    pub forward: fn(&Attended<B>) -> Tensor<B, 4>,
    /// Returns the gradients of queries, keys and values from that of the output.
    pub backward: fn(&Attended<B>, Tensor<B, 4>) -> [Tensor<B, 4>; 3],
}
