//! `y = x·Wᵀ + b`, with `W` stored `[d_out, d_in]` as PyTorch's Linear.

use super::{Kernels, ParamId, Weights};
use crate::dp::Record;
use crate::tensor::Tensor;

/// An affine or linear map of the last axis.
#[derive(Clone, Copy, Debug)]
pub struct Dense {
    /// `[d_out, d_in]`
    pub weight: ParamId,
    /// `[d_out]`
    pub bias: Option<ParamId>,
}

impl Dense {
    /// The output; backward needs the input itself.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d_in]`
    /// - output: `[batch, seq, d_out]`
    pub fn forward<B: Kernels>(&self, weights: &Weights<B>, input: Tensor<B, 3>) -> Tensor<B, 3> {
        let [batch, seq, d_in] = input.dims();
        let weight = weights.matrix(self.weight).transpose();
        let d_out = weight.dims()[1];
        let rows = input.reshape([batch * seq, d_in]);
        let output = match self.bias {
            Some(bias) => B::affine(rows, weight, weights.vector(bias)),
            None => rows.matmul(weight),
        };
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
        let d_in = weight.dims()[1];
        let input_grad = grad.clone().reshape([batch * seq, d_out]).matmul(weight);
        if let Some(bias) = self.bias {
            records.push(Record::Explicit { param: bias, grads: B::sum_positions(grad.clone()) });
        }
        // The gradient of W is gradᵀ·input: the roles of the two factors are exchanged.
        records.push(Record::Product { param: self.weight, input: grad, grad: input });
        input_grad.reshape([batch, seq, d_in])
    }
}
