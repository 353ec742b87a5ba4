//! Root-mean-square normalisation: no mean is taken off, no bias added.
//!
//! # References
//! Zhang & Sennrich 2019, <https://arxiv.org/abs/1910.07467>; T5's layer norm is this one.

use crate::nn::GradRecord;
use crate::nn::{Kernels, ParamId, Weights};
use crate::tensor::Tensor;

/// Normalisation of the last axis to a mean square of 1, with a gain.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    /// `[d]`
    pub gain: ParamId,
    /// Added to the mean square.
    pub epsilon: f64,
    /// Whether the factor is 1 + gain, as Gemma's, instead of the gain itself.
    pub unit_offset: bool,
}

/// What [`RmsNorm::backward`] needs.
pub struct SavedRmsNorm<B: Kernels> {
    /// `[batch, seq, d]`
    normalized: Tensor<B, 3>,
    /// `[batch, seq, 1]`
    reciprocal: Tensor<B, 3>,
}

impl RmsNorm {
    /// Normalized and scaled input.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedRmsNorm<B>) {
        let [output, normalized, reciprocal] = B::rms_normalize(input, self.factor(weights), self.epsilon);
        (output, SavedRmsNorm { normalized, reciprocal })
    }

    /// Input gradient; leaves the record of the gain.
    ///
    /// # Shapes
    /// - grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedRmsNorm<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let (input_grad, gain) =
            B::rms_normalize_backward(grad, saved.normalized, saved.reciprocal, self.factor(weights));
        records.push(GradRecord::Explicit { param: self.gain, grads: gain });
        input_grad
    }

    fn factor<B: Kernels>(&self, weights: &Weights<B>) -> Tensor<B, 1> {
        let gain = weights.vector(self.gain);
        if self.unit_offset { gain + 1.0 } else { gain }
    }
}
