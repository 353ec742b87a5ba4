//! Layer normalisation.

use crate::nn::GradRecord;
use crate::nn::{Kernels, ParamId, Weights};
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
    /// `[batch, seq, 1]`
    reciprocal: Tensor<B, 3>,
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
        let (gain, bias) = (weights.vector(self.gain), weights.vector(self.bias));
        let [output, normalized, reciprocal] = B::normalize(input, gain, bias, self.epsilon);
        (output, SavedNorm { normalized, reciprocal })
    }

    /// Input gradient; leaves the records of gain and bias.
    ///
    /// # Shapes
    /// - grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedNorm<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let gain = weights.vector(self.gain);
        let (input_grad, [gain, bias]) =
            B::normalize_backward(grad, saved.normalized, saved.reciprocal, gain);
        records.push(GradRecord::Explicit { param: self.gain, grads: gain });
        records.push(GradRecord::Explicit { param: self.bias, grads: bias });
        input_grad
    }
}
