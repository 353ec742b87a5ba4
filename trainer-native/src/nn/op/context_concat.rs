//! The input of a feed-forward language model: the vectors of the last so many tokens, side by side.

use crate::nn::Kernels;
use crate::tensor::Tensor;

/// Lays the vectors of each position and of those before it side by side; before the first there are zeros.
#[derive(Clone, Copy, Debug)]
pub struct ContextConcat {
    /// Vectors a position gets, its own included.
    pub length: usize,
}

impl ContextConcat {
    /// The vectors, the oldest first.
    ///
    /// # Shapes
    /// - values: `[batch, seq, d]`
    /// - output: `[batch, seq, length·d]`
    pub fn forward<B: Kernels>(&self, values: Tensor<B, 3>) -> Tensor<B, 3> {
        B::context_concat(values, self.length)
    }

    /// Input gradient: a position's vector was used at its own place and at those that follow.
    ///
    /// # Shapes
    /// - grad: `[batch, seq, length·d]`
    /// - output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(&self, grad: Tensor<B, 3>) -> Tensor<B, 3> {
        B::context_concat_backward(grad, self.length)
    }
}
