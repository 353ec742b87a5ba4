//! Causal self-attention between a fused query-key-value projection and an output projection.

use crate::nn::GradRecord;
use crate::nn::{Kernels, Linear, Weights};
use crate::tensor::Tensor;

/// Multi-head attention in which a position sees itself and what precedes it.
#[derive(Clone, Copy, Debug)]
pub struct CausalAttention {
    /// `[d, 3·d]`: queries, keys, values side by side.
    pub projection: Linear,
    /// `[d, d]`
    pub output: Linear,
    /// Number of heads; divides d.
    pub heads: usize,
}

/// What [`CausalAttention::backward`] needs.
pub struct SavedAttention<B: Kernels> {
    input: Tensor<B, 3>,
    projected: Tensor<B, 3>,
    probabilities: Tensor<B, 4>,
    context: Tensor<B, 3>,
}

impl CausalAttention {
    /// The attended values.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedAttention<B>) {
        let shape = input.dims();
        let projected = self.projection.forward(weights, input.clone());
        let [queries, keys, values] = self.split(projected.clone());
        let scores = weights.product(queries, keys.transpose());
        let probabilities = B::causal_softmax(scores, self.scale(shape[2]));
        let context = B::merge_heads(vec![weights.product(probabilities.clone(), values)]);
        let output = self.output.forward(weights, context.clone());
        (output, SavedAttention { input, projected, probabilities, context })
    }

    /// Input gradient; leaves the records of both projections.
    ///
    /// # Shapes
    /// - grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedAttention<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let [batch, seq, d] = grad.dims();
        let context_grad = self.output.backward(weights, saved.context, grad, records);
        let context_grad = context_grad.reshape([batch, seq, self.heads, d / self.heads]).swap_dims(1, 2);
        let [queries, keys, values] = self.split(saved.projected);
        let values_grad = weights.product(saved.probabilities.clone().transpose(), context_grad.clone());
        let probabilities_grad = weights.product(context_grad, values.transpose());
        let scores_grad = B::softmax_backward(saved.probabilities, probabilities_grad, self.scale(d));
        let queries_grad = weights.product(scores_grad.clone(), keys);
        let keys_grad = weights.product(scores_grad.transpose(), queries);
        let projected_grad = B::merge_heads(vec![queries_grad, keys_grad, values_grad]);
        self.projection.backward(weights, saved.input, projected_grad, records)
    }

    fn scale(&self, d: usize) -> f64 {
        1.0 / ((d / self.heads) as f64).sqrt()
    }

    /// Queries, keys and values as views.
    ///
    /// # Shapes
    /// - projected: `[batch, seq, 3·d]`
    /// - output: three of `[batch, heads, seq, d/heads]`
    fn split<B: Kernels>(&self, projected: Tensor<B, 3>) -> [Tensor<B, 4>; 3] {
        let [batch, seq, width] = projected.dims();
        let d_head = width / 3 / self.heads;
        let parts = projected.reshape([batch, seq, 3 * self.heads, d_head]);
        [0, 1, 2].map(|part| parts.clone().narrow(2, part * self.heads, self.heads).swap_dims(1, 2))
    }
}
