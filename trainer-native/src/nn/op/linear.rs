//! `y = x·W + b`, with `W` stored either way round.

use crate::nn::GradRecord;
use crate::nn::{Kernels, ParamId, Weights};
use crate::tensor::Tensor;

/// An affine or linear map of the last axis.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// As `stored` says.
    pub weight: ParamId,
    /// `[d_out]`
    pub bias: Option<ParamId>,
    /// Which axis of the weight comes first.
    pub stored: Stored,
}

/// Which axis of a stored weight comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// `[d_in, d_out]`, as Hugging Face's Conv1D.
    InOut,
    /// `[d_out, d_in]`, as PyTorch's Linear.
    OutIn,
}

impl Linear {
    /// The output; backward needs the input itself.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d_in]`
    /// - output: `[batch, seq, d_out]`
    pub fn forward<B: Kernels>(&self, weights: &Weights<B>, input: Tensor<B, 3>) -> Tensor<B, 3> {
        let [batch, seq, d_in] = input.dims();
        let weight = match self.stored {
            Stored::InOut => weights.matrix(self.weight),
            Stored::OutIn => weights.matrix(self.weight).transpose(),
        };
        let d_out = weight.dims()[1];
        let rows = input.reshape([batch * seq, d_in]);
        let output = match self.bias {
            Some(bias) => weights.affine(rows, weight, weights.vector(bias)),
            None => weights.product(rows, weight),
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
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let [batch, seq, d_out] = grad.dims();
        let weight = match self.stored {
            Stored::InOut => weights.matrix(self.weight).transpose(),
            Stored::OutIn => weights.matrix(self.weight),
        };
        let rows = grad.clone().reshape([batch * seq, d_out]);
        let input_grad = weights.product(rows, weight).reshape(input.dims());
        if let Some(bias) = self.bias {
            records.push(GradRecord::Explicit { param: bias, grads: B::sum_positions(grad.clone()) });
        }
        // The gradient of a weight is inputᵀ·grad, of one stored the other way round gradᵀ·input.
        let (input, grad) = match self.stored {
            Stored::InOut => (input, grad),
            Stored::OutIn => (grad, input),
        };
        records.push(GradRecord::Product { param: self.weight, input, grad });
        input_grad
    }
}
