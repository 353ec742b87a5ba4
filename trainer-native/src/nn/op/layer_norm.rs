//! Layer normalisation.

use crate::nn::{Kernels, ParamId, Pass, Var};

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

impl LayerNorm {
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let weights = pass.weights();
        let Var { value, slot } = input;
        let (gain, bias) = (weights.vector(self.gain), weights.vector(self.bias));
        let [output, normalized, reciprocal] = B::normalize(value, gain, bias, self.epsilon);
        let needed = slot.is_some() || weights.trains(self.gain) || weights.trains(self.bias);
        pass.note(output, needed, move |grad, back| {
            let gain = back.weights.vector(self.gain);
            let (input_grad, [gain, bias]) = B::normalize_backward(grad, normalized, reciprocal, gain);
            back.explicit(self.gain, gain);
            back.explicit(self.bias, bias);
            back.add(slot, input_grad);
        })
    }
}
