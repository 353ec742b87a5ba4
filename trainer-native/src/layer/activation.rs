//! Activations: no parameters, so no record.

use super::Kernels;
use crate::tensor::Tensor;

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
