//! `y = x·W + b`, with `W` stored in either order of its axes.

use crate::nn::tape::Backward;
use crate::nn::{GradRecord, Kernels, ParamId, Pass, Var, Weights};
use crate::tensor::Tensor;

/// An affine or linear map of the last axis.
///
/// If low-rank adapters are trained instead of the weight, they get its records (see
/// [`crate::nn::Adapter`]).
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// The weight, with axes in the order of `stored`.
    pub weight: ParamId,
    /// `[d_out]`
    pub bias: Option<ParamId>,
    /// The order of the weight's axes.
    pub stored: Stored,
}

/// The order of the axes of a stored weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// `[d_in, d_out]`, as Hugging Face's Conv1D.
    InOut,
    /// `[d_out, d_in]`, as PyTorch's Linear.
    OutIn,
}

impl Linear {
    /// # Shapes
    /// - input: `[batch, seq, d_in]`
    /// - output: `[batch, seq, d_out]`
    pub fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let weights = pass.weights();
        let trained = weights.trains(self.weight);
        let needed = input.slot.is_some() || trained || self.bias.is_some_and(|bias| weights.trains(bias));
        let saved = trained.then(|| input.value.clone());
        let shape = input.dims();
        let output = self.map(pass, input.value);
        pass.note(output, needed, move |grad, back| {
            if input.slot.is_some() {
                back.add(input.slot, self.map_back(back.weights, grad.clone()).reshape(shape));
            }
            self.leave_records(saved, grad, back);
        })
    }

    fn map<B: Kernels>(self, pass: &Pass<'_, B>, input: Tensor<B, 3>) -> Tensor<B, 3> {
        let weights = pass.weights();
        let [batch, seq, d_in] = input.dims();
        let weight = match self.stored {
            Stored::InOut => weights.matrix(self.weight),
            Stored::OutIn => weights.matrix(self.weight).transpose(),
        };
        let d_out = weight.dims()[1];
        let rows = input.reshape([batch * seq, d_in]);
        let output = match self.bias {
            Some(bias) => pass.affine(rows, weight, weights.vector(bias)),
            None => pass.product(rows, weight),
        };
        output.reshape([batch, seq, d_out])
    }

    /// Input gradient, `[batch·seq, d_in]`.
    fn map_back<B: Kernels>(self, weights: &Weights<B>, grad: Tensor<B, 3>) -> Tensor<B, 2> {
        let [batch, seq, d_out] = grad.dims();
        let weight = match self.stored {
            Stored::InOut => weights.matrix(self.weight).transpose(),
            Stored::OutIn => weights.matrix(self.weight),
        };
        weights.product(grad.reshape([batch * seq, d_out]), weight)
    }

    /// Leaves the records of the layer. `input` is given if the weight or its adapter is trained.
    fn leave_records<B: Kernels>(
        self,
        input: Option<Tensor<B, 3>>,
        grad: Tensor<B, 3>,
        back: &mut Backward<'_, B>,
    ) {
        if let Some(bias) = self.bias {
            back.record(bias, |param| GradRecord::Explicit { param, grads: B::sum_positions(grad.clone()) });
        }
        let Some(input) = input else { return };
        if let Some(adapter) = back.weights.adapter(self.weight) {
            back.records(adapter.records(back.weights, input, grad));
            return;
        }
        // The gradient of a weight is inputᵀ·grad, or gradᵀ·input if it is stored in the other
        // order.
        let (input, grad) = match self.stored {
            Stored::InOut => (input, grad),
            Stored::OutIn => (grad, input),
        };
        back.record(self.weight, |param| GradRecord::Product { param, input, grad });
    }
}
