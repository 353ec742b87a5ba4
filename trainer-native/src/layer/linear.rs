//! `y = x·W + b`, with `W` stored `[d_in, d_out]` as Hugging Face's Conv1D.

use super::{Kernels, ParamId, Weights};
use crate::dp::Record;
use crate::tensor::Tensor;

/// An affine map of the last axis.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// `[d_in, d_out]`
    pub weight: ParamId,
    /// `[d_out]`
    pub bias: ParamId,
}

impl Linear {
    /// The output; backward needs the input itself.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d_in]`
    /// - output: `[batch, seq, d_out]`
    pub fn forward<B: Kernels>(&self, weights: &Weights<B>, input: Tensor<B, 3>) -> Tensor<B, 3> {
        let [batch, seq, d_in] = input.dims();
        let weight = weights.matrix(self.weight);
        let d_out = weight.dims()[1];
        let output = B::affine(input.reshape([batch * seq, d_in]), weight, weights.vector(self.bias));
        output.reshape([batch, seq, d_out])
    }

    /// Input gradient; leaves the records of weight and bias.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d_in]`, grad: `[batch, seq, d_out]`
    /// - output: `[batch, seq, d_in]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
        grad: Tensor<B, 3>,
        records: &mut Vec<Record<B>>,
    ) -> Tensor<B, 3> {
        let [batch, seq, d_out] = grad.dims();
        let weight = weights.matrix(self.weight);
        let d_in = weight.dims()[0];
        let flat = grad.clone().reshape([batch * seq, d_out]);
        let input_grad = flat.matmul(weight.transpose()).reshape([batch, seq, d_in]);
        records.push(Record::Explicit { param: self.bias, grads: B::sum_positions(grad.clone()) });
        records.push(Record::Product { param: self.weight, input, grad });
        input_grad
    }
}
