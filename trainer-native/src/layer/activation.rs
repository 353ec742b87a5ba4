//! Activations: no parameters, so no record.

use super::Kernels;
use crate::tensor::{Tensor, activation};

/// GELU in its tanh form, Hugging Face's "gelu_new".
#[derive(Clone, Copy, Debug)]
pub struct Gelu;

impl Gelu {
    /// The output; backward needs the input itself.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(&self, input: Tensor<B, 3>) -> Tensor<B, 3> {
        B::gelu_new(input)
    }

    /// Input gradient.
    ///
    /// # Shapes
    /// - input, grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(&self, input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
        B::gelu_new_backward(input, grad)
    }
}

/// What is above 0.
#[derive(Clone, Copy, Debug)]
pub struct Relu;

impl Relu {
    /// The output.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(&self, input: Tensor<B, 3>) -> Tensor<B, 3> {
        activation::relu(input)
    }

    /// Input gradient; backward needs the output.
    ///
    /// # Shapes
    /// - activated, grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(&self, activated: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
        grad.mask_fill(activated.lower_equal_elem(0.0), 0.0)
    }
}
