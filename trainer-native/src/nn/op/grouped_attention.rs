//! Causal self-attention with rotary positions, in which several query heads share a key and a value head.
//!
//! # References
//! Ainslie et al. 2023, <https://arxiv.org/abs/2305.13245>; one shared head for all is Shazeer's multi-query attention.

use crate::nn::Angles;
use crate::nn::GradRecord;
use crate::nn::{Kernels, Linear, Rotary, Weights};
use crate::tensor::Tensor;

/// Attention in which a position sees itself and what precedes it.
#[derive(Clone, Copy, Debug)]
pub struct GroupedAttention {
    /// `[heads·d_head, d]`
    pub query: Linear,
    /// `[kv_heads·d_head, d]`
    pub key: Linear,
    /// `[kv_heads·d_head, d]`
    pub value: Linear,
    /// `[d, heads·d_head]`
    pub output: Linear,
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads: query head h uses the h·kv_heads/heads-th.
    pub kv_heads: usize,
    /// Positions of queries and keys; knows the width of a head.
    pub rotary: Rotary,
}

/// What [`GroupedAttention::backward`] needs. Axes: `[batch, kv_heads, heads/kv_heads·seq or seq, d_head or seq]`.
pub struct SavedGroupedAttention<B: Kernels> {
    input: Tensor<B, 3>,
    queries: Tensor<B, 4>,
    keys: Tensor<B, 4>,
    values: Tensor<B, 4>,
    probabilities: Tensor<B, 4>,
    context: Tensor<B, 3>,
    angles: Angles<B>,
}

impl GroupedAttention {
    /// The attended values.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedGroupedAttention<B>) {
        let angles = self.rotary.angles(input.dims()[1], &input);
        let queries = self.split(self.query.forward(weights, input.clone()), self.heads);
        let queries = self.by_key_head(angles.turn(queries));
        let keys = angles.turn(self.split(self.key.forward(weights, input.clone()), self.kv_heads));
        let values = self.split(self.value.forward(weights, input.clone()), self.kv_heads);
        let scores = self.by_query_head(weights.product(queries.clone(), keys.clone().transpose()));
        let probabilities = self.by_key_head(B::causal_softmax(scores, self.scale()));
        let context = weights.product(probabilities.clone(), values.clone());
        let context = B::merge_heads(vec![self.by_query_head(context)]);
        let output = self.output.forward(weights, context.clone());
        (output, SavedGroupedAttention { input, queries, keys, values, probabilities, context, angles })
    }

    /// Input gradient; leaves the records of the four projections.
    ///
    /// # Shapes
    /// - grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedGroupedAttention<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let SavedGroupedAttention { input, queries, keys, values, probabilities, context, angles } = saved;
        let context_grad = self.output.backward(weights, context, grad, records);
        let context_grad = self.by_key_head(self.split(context_grad, self.heads));
        // The queries of a group lie along one axis, so these products also sum over the group.
        let values_grad = weights.product(probabilities.clone().transpose(), context_grad.clone());
        let probabilities_grad = weights.product(context_grad, values.transpose());
        let scores_grad = B::softmax_backward(probabilities, probabilities_grad, self.scale());
        let queries_grad = angles.turn_back(self.by_query_head(weights.product(scores_grad.clone(), keys)));
        let keys_grad = angles.turn_back(weights.product(scores_grad.transpose(), queries));
        let mut into_input = |layer: &Linear, grad: Tensor<B, 4>| {
            layer.backward(weights, input.clone(), B::merge_heads(vec![grad]), records)
        };
        into_input(&self.query, queries_grad)
            + into_input(&self.key, keys_grad)
            + into_input(&self.value, values_grad)
    }

    fn scale(&self) -> f64 {
        1.0 / (self.rotary.d_head as f64).sqrt()
    }

    /// `[batch, seq, heads·d_head]` → `[batch, heads, seq, d_head]`
    fn split<B: Kernels>(&self, values: Tensor<B, 3>, heads: usize) -> Tensor<B, 4> {
        let [batch, seq, _] = values.dims();
        values.reshape([batch, seq, heads, self.rotary.d_head]).swap_dims(1, 2)
    }

    /// `[batch, heads, seq, n]` → `[batch, kv_heads, heads/kv_heads·seq, n]`
    fn by_key_head<B: Kernels>(&self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        let [batch, heads, seq, n] = values.dims();
        values.reshape([batch, self.kv_heads, heads / self.kv_heads * seq, n])
    }

    /// The inverse of [`Self::by_key_head`].
    fn by_query_head<B: Kernels>(&self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        let [batch, _, rows, n] = values.dims();
        values.reshape([batch, self.heads, rows * self.kv_heads / self.heads, n])
    }
}
