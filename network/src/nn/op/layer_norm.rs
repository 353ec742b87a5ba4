//! Layer normalisation.

use crate::nn::layout::Kind;
use crate::nn::{ForwardPass, Initializer, Kernels, ParamId, ParamList, Var};

/// Normalisation of the last axis with gain and, in most models, bias.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    /// `[d]`
    pub gain: ParamId,
    /// `[d]`
    pub bias: Option<ParamId>,
    /// A small number that is added to the variance.
    pub epsilon: f64,
}

impl ParamList {
    /// Adds a layer norm of width `d`.
    pub fn layer_norm(&mut self, name: &str, d: usize, epsilon: f64) -> LayerNorm {
        let gain = self.push(format!("{name}.weight"), &[d], Initializer::Constant(1.0), Kind::Gain);
        let bias = self.add(format!("{name}.bias"), &[d], Initializer::Constant(0.0));
        LayerNorm { gain, bias: Some(bias), epsilon }
    }

    /// Adds a layer norm of width `d` with a gain and no bias.
    pub fn layer_norm_without_bias(&mut self, name: &str, d: usize, epsilon: f64) -> LayerNorm {
        let gain = self.push(format!("{name}.weight"), &[d], Initializer::Constant(1.0), Kind::Gain);
        LayerNorm { gain, bias: None, epsilon }
    }
}

impl LayerNorm {
    /// Normalises the last axis, and applies gain and bias.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let weights = pass.weights();
        let Var { value, slot } = input;
        let gain = weights.vector(self.gain);
        let bias = self.bias.map_or_else(|| gain.zeros_like(), |bias| weights.vector(bias));
        let [output, normalized, reciprocal] = B::normalize(value, gain, bias, self.epsilon);
        let needed =
            slot.is_some() || weights.trains(self.gain) || self.bias.is_some_and(|bias| weights.trains(bias));
        pass.note(output, needed, move |grad, back| {
            let gain = back.weights.vector(self.gain);
            let (input_grad, [gain, bias]) = B::normalize_backward(grad, normalized, reciprocal, gain);
            back.explicit(self.gain, gain);
            if let Some(place) = self.bias {
                back.explicit(place, bias);
            }
            back.add(slot, input_grad);
        })
    }
}
