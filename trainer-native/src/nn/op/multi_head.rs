//! Attention with four projections, over the same or another sequence, with padding, future and bias.

use crate::nn::GradRecord;
use crate::nn::{Kernels, Linear, Weights};
use crate::tensor::{Int, Tensor};

/// Multi-head attention from the positions of one sequence to those of the same or another.
#[derive(Clone, Copy, Debug)]
pub struct MultiHeadAttention {
    /// `[heads·d_head, d]`
    pub query: Linear,
    /// `[heads·d_head, d]`
    pub key: Linear,
    /// `[heads·d_head, d]`
    pub value: Linear,
    /// `[d, heads·d_head]`
    pub output: Linear,
    /// Number of heads.
    pub heads: usize,
    /// Factor of the products of queries and keys: 1/√d_head, or 1 in T5.
    pub scale: f64,
}

/// Which keys a query sees, and what is added to its scores.
#[derive(Clone, Debug)]
pub struct AttentionMask<B: Kernels> {
    /// How many keys of each example are no padding, at least 1; all where absent. `[batch]`
    pub lengths: Option<Tensor<B, 1, Int>>,
    /// Whether a query sees no key after its own place.
    pub causal: bool,
    /// Added to the scores of every example. `[heads, queries, keys]`
    pub bias: Option<Tensor<B, 3>>,
}

/// What [`MultiHeadAttention::backward`] needs.
pub struct SavedMultiHead<B: Kernels> {
    /// `[batch, queries, d]`
    from: Tensor<B, 3>,
    /// `[batch, keys, d]`
    to: Tensor<B, 3>,
    /// `[batch, heads, queries or keys, d_head]`
    queries: Tensor<B, 4>,
    keys: Tensor<B, 4>,
    values: Tensor<B, 4>,
    /// `[batch, heads, queries, keys]`
    probabilities: Tensor<B, 4>,
    /// `[batch, queries, heads·d_head]`
    context: Tensor<B, 3>,
}

/// Gradients that attention hands back.
pub struct MultiHeadGrads<B: Kernels> {
    /// Of the sequence that asks. `[batch, queries, d]`
    pub from: Tensor<B, 3>,
    /// Of the sequence that is looked at. `[batch, keys, d]`
    pub to: Tensor<B, 3>,
    /// Of the scores, times `scale`; with a scale of 1 also that of the bias. `[batch, heads, queries, keys]`
    pub scores: Tensor<B, 4>,
}

impl MultiHeadAttention {
    /// The attended values.
    ///
    /// # Shapes
    /// - from, output: `[batch, queries, d]`, to: `[batch, keys, d]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        from: Tensor<B, 3>,
        to: Tensor<B, 3>,
        sight: AttentionMask<B>,
    ) -> (Tensor<B, 3>, SavedMultiHead<B>) {
        let queries = self.split(self.query.forward(weights, from.clone()));
        let keys = self.split(self.key.forward(weights, to.clone()));
        let values = self.split(self.value.forward(weights, to.clone()));
        let scores = weights.product(queries.clone(), keys.clone().transpose());
        let probabilities = B::masked_softmax(scores, sight.bias, sight.lengths, sight.causal, self.scale);
        let context = B::merge_heads(vec![weights.product(probabilities.clone(), values.clone())]);
        let output = self.output.forward(weights, context.clone());
        (output, SavedMultiHead { from, to, queries, keys, values, probabilities, context })
    }

    /// Gradients of both sequences and of the scores; leaves the records of the four projections.
    ///
    /// # Shapes
    /// - grad: `[batch, queries, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedMultiHead<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> MultiHeadGrads<B> {
        let SavedMultiHead { from, to, queries, keys, values, probabilities, context } = saved;
        let context_grad = self.split(self.output.backward(weights, context, grad, records));
        let values_grad = weights.product(probabilities.clone().transpose(), context_grad.clone());
        let probabilities_grad = weights.product(context_grad, values.transpose());
        let scores = B::softmax_backward(probabilities, probabilities_grad, self.scale);
        let queries_grad = B::merge_heads(vec![weights.product(scores.clone(), keys)]);
        let keys_grad = B::merge_heads(vec![weights.product(scores.clone().transpose(), queries)]);
        let values_grad = B::merge_heads(vec![values_grad]);
        let from_grad = self.query.backward(weights, from, queries_grad, records);
        let to_grad = self.key.backward(weights, to.clone(), keys_grad, records)
            + self.value.backward(weights, to, values_grad, records);
        MultiHeadGrads { from: from_grad, to: to_grad, scores }
    }

    /// `[batch, seq, heads·d_head]` → `[batch, heads, seq, d_head]`
    fn split<B: Kernels>(&self, projected: Tensor<B, 3>) -> Tensor<B, 4> {
        let [batch, seq, width] = projected.dims();
        projected.reshape([batch, seq, self.heads, width / self.heads]).swap_dims(1, 2)
    }
}
