//! The gated feed-forward part: one projection, through an activation, opens and closes another.
//!
//! # References
//! Shazeer 2020, <https://arxiv.org/abs/2002.05202> (GEGLU); of Gemma, T5 v1.1 and mT5.

use crate::nn::GradRecord;
use crate::nn::{Kernels, Linear, Weights};
use crate::tensor::Tensor;

/// `W_down·(gelu(W_gate·x) ∘ W_up·x)`, with GELU in its tanh form.
#[derive(Clone, Copy, Debug)]
pub struct GatedFeedForward {
    /// `[d_ff, d]`
    pub gate: Linear,
    /// `[d_ff, d]`
    pub up: Linear,
    /// `[d, d_ff]`
    pub down: Linear,
}

/// What [`GatedFeedForward::backward`] needs.
pub struct SavedGated<B: Kernels> {
    input: Tensor<B, 3>,
    gate: Tensor<B, 3>,
    up: Tensor<B, 3>,
    product: Tensor<B, 3>,
}

impl GatedFeedForward {
    /// The output.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedGated<B>) {
        let gate = self.gate.forward(weights, input.clone());
        let up = self.up.forward(weights, input.clone());
        let product = B::gelu_gate(gate.clone(), up.clone());
        let output = self.down.forward(weights, product.clone());
        (output, SavedGated { input, gate, up, product })
    }

    /// Input gradient; leaves the records of the three projections.
    ///
    /// # Shapes
    /// - grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedGated<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let SavedGated { input, gate, up, product } = saved;
        let grad = self.down.backward(weights, product, grad, records);
        let [gate_grad, up_grad] = B::gelu_gate_backward(gate, up, grad);
        self.gate.backward(weights, input.clone(), gate_grad, records)
            + self.up.backward(weights, input, up_grad, records)
    }
}
