//! Layer normalisation.

use super::{Kernels, ParamId, Weights};
use crate::dp::Record;
use crate::tensor::Tensor;

/// Normalisation of the last axis with gain and bias.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    /// `[d]`
    pub gain: ParamId,
    /// `[d]`
    pub bias: ParamId,
    /// Added to the variance.
    pub epsilon: f64,
}

/// What [`LayerNorm::backward`] needs.
pub struct SavedNorm<B: Kernels> {
    /// `[batch, seq, d]`
    normalized: Tensor<B, 3>,
    /// `[batch·seq, 1]`
    reciprocal: Tensor<B, 2>,
}

impl LayerNorm {
    /// Normalized, scaled and shifted input.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedNorm<B>) {
        let shape @ [batch, seq, d] = input.dims();
        let (output, normalized, reciprocal) = B::normalize(
            input.reshape([batch * seq, d]),
            weights.vector(self.gain),
            weights.vector(self.bias),
            self.epsilon,
        );
        (output.reshape(shape), SavedNorm { normalized: normalized.reshape(shape), reciprocal })
    }

    /// Input gradient and record.
    ///
    /// # Shapes
    /// - grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedNorm<B>,
        grad: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, Record<B>) {
        let shape @ [batch, seq, d] = grad.dims();
        let rows = [batch * seq, d];
        let input_grad = B::normalize_backward(
            grad.clone().reshape(rows),
            saved.normalized.clone().reshape(rows),
            saved.reciprocal,
            weights.vector(self.gain),
        );
        let record = Record::Norm { gain: self.gain, bias: self.bias, normalized: saved.normalized, grad };
        (input_grad.reshape(shape), record)
    }
}
