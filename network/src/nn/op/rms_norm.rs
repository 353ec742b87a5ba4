//! Root-mean-square normalisation: no mean is subtracted and no bias is added.
//!
//! # References
//! Zhang & Sennrich 2019, <https://arxiv.org/abs/1910.07467>; T5's layer norm is an RMS norm.

use crate::nn::layout::Kind;
use crate::nn::{ForwardPass, Initializer, Kernels, ParamId, ParamList, Var, Weights};
use crate::tensor::Tensor;

/// Normalisation of the last axis, or of each head in it, to a mean square of 1, with a gain.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    /// `[d]`
    pub gain: ParamId,
    /// A small number that is added to the mean square.
    pub epsilon: f64,
    /// Whether the factor is 1 + gain, as in Gemma, instead of the gain itself.
    pub unit_offset: bool,
}

impl ParamList {
    /// Adds an RMS norm of width `d`. With `unit_offset` its factor is 1 + gain.
    pub fn rms_norm(&mut self, name: &str, d: usize, epsilon: f64, unit_offset: bool) -> RmsNorm {
        let start = if unit_offset { 0.0 } else { 1.0 };
        let gain = self.push(format!("{name}.weight"), &[d], Initializer::Constant(start), Kind::Gain);
        RmsNorm { gain, epsilon, unit_offset }
    }
}

impl RmsNorm {
    /// Normalises the last axis, or each head in it, and applies the gain.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, n·d]` for a gain of `[d]`: each of the n heads is normalised by itself
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let weights = pass.weights();
        let Var { value, slot } = input;
        let (shape @ [batch, seq, width], factor) = (value.dims(), self.factor(weights));
        let d = factor.dims()[0];
        let by_head = [batch, seq * width / d, d];
        let [output, normalized, reciprocal] = B::rms_normalize(value.reshape(by_head), factor, self.epsilon);
        let needed = slot.is_some() || weights.trains(self.gain);
        pass.note(output.reshape(shape), needed, move |grad, back| {
            let (grad, factor) = (grad.reshape(by_head), self.factor(back.weights));
            let (input_grad, gain) = B::rms_normalize_backward(grad, normalized, reciprocal, factor);
            back.explicit(self.gain, gain);
            back.add(slot, input_grad.reshape(shape));
        })
    }

    fn factor<B: Kernels>(self, weights: &Weights<B>) -> Tensor<B, 1> {
        let gain = weights.vector(self.gain);
        if self.unit_offset { gain + 1.0 } else { gain }
    }
}
