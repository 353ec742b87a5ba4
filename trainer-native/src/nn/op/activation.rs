//! Functions of each element: no parameters, so no record.

use crate::nn::Kernels;
use crate::tensor::{Tensor, activation};

/// A function of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0)
    Relu,
    /// x·Φ(x), with the normal distribution function itself.
    Gelu,
    /// GELU in its tanh form, Hugging Face's "gelu_new".
    GeluTanh,
}

impl Activation {
    /// The output; backward needs the input itself, or the output of a ReLU.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, input: Tensor<B, 3>) -> Tensor<B, 3> {
        match self {
            Self::Relu => activation::relu(input),
            Self::Gelu => B::gelu_erf(input),
            Self::GeluTanh => B::gelu_new(input),
        }
    }

    /// Input gradient.
    ///
    /// # Shapes
    /// - input, grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(self, input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
        match self {
            Self::Relu => grad.mask_fill(input.lower_equal_elem(0.0), 0.0),
            Self::Gelu => B::gelu_erf_backward(input, grad),
            Self::GeluTanh => B::gelu_new_backward(input, grad),
        }
    }
}
