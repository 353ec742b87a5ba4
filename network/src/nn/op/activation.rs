//! Activation functions, applied to each element. They have no parameters.

use crate::nn::kernels::portable;
use crate::nn::{ForwardPass, Kernels, Var};
use crate::tensor::{Tensor, activation};

/// An activation function, applied to each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0)
    Relu,
    /// x·Φ(x), with the normal distribution function itself.
    Gelu,
    /// GELU in its tanh form, Hugging Face's "gelu_new".
    GeluTanh,
    /// x·σ(x), Hugging Face's "silu" and "swish".
    Silu,
    /// The hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Applies the function to each element.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let Var { value, slot } = input;
        // The outputs of ReLU and of tanh are sufficient for their gradients, and the next operator
        // saves them anyway.
        let (output, saved) = match self {
            Self::Relu => shared(activation::relu(value)),
            Self::Tanh => shared(value.tanh()),
            Self::Gelu => (B::gelu_erf(value.clone()), value),
            Self::GeluTanh => (B::gelu_new(value.clone()), value),
            Self::Silu => (activation::silu(value.clone()), value),
        };
        pass.note(output, slot.is_some(), move |grad, back| back.add(slot, self.backward(saved, grad)))
    }

    fn backward<B: Kernels>(self, saved: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
        match self {
            Self::Relu => grad.mask_fill(saved.lower_equal_elem(0.0), 0.0),
            Self::Gelu => B::gelu_erf_backward(saved, grad),
            Self::GeluTanh => B::gelu_new_backward(saved, grad),
            Self::Silu => grad * portable::silu_slope(saved),
            Self::Tanh => grad * (saved.square().neg() + 1.0),
        }
    }
}

fn shared<B: Kernels>(output: Tensor<B, 3>) -> (Tensor<B, 3>, Tensor<B, 3>) {
    (output.clone(), output)
}
