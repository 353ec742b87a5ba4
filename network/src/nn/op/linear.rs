//! `y = x·W + b`, with `W` stored in either order of its axes.

use crate::nn::layout::Kind;
use crate::nn::tape::Backward;
use crate::nn::{ForwardPass, GradRecord, Initializer, Kernels, ParamId, ParamList, Stored, Var, Weights};
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

/// A linear layer to be added to a [`ParamList`].
#[derive(Clone, Copy, Debug)]
pub struct LinearSpec {
    /// Width of the input.
    pub d_in: usize,
    /// Width of the output.
    pub d_out: usize,
    /// Initial values of the weight.
    pub initial: Initializer,
    /// Whether the layer has a bias.
    pub bias: bool,
    /// The order of the weight's axes.
    pub stored: Stored,
}

impl LinearSpec {
    /// Describes a map without bias that is stored as in PyTorch's Linear and starts at normal
    /// values.
    #[must_use]
    pub fn normal(d_in: usize, d_out: usize, std: f64) -> Self {
        Self { d_in, d_out, initial: Initializer::Normal { std }, bias: false, stored: Stored::OutIn }
    }

    /// Adds a bias.
    #[must_use]
    pub fn biased(self) -> Self {
        Self { bias: true, ..self }
    }

    /// Stores the weight as in Hugging Face's Conv1D.
    #[must_use]
    pub fn conv1d(self) -> Self {
        Self { stored: Stored::InOut, ..self }
    }
}

impl ParamList {
    /// Adds a linear layer, whose bias starts at 0.
    pub fn linear(&mut self, name: &str, map: LinearSpec) -> Linear {
        let LinearSpec { d_in, d_out, initial, bias, stored } = map;
        let shape = match stored {
            Stored::InOut => [d_in, d_out],
            Stored::OutIn => [d_out, d_in],
        };
        let weight = self.push(format!("{name}.weight"), &shape, initial, Kind::Matrix(stored));
        let bias = bias.then(|| self.add(format!("{name}.bias"), &[d_out], Initializer::Constant(0.0)));
        Linear { weight, bias, stored }
    }
}

impl Linear {
    /// Applies the map to each position.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d_in]`
    /// - output: `[batch, seq, d_out]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
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

    fn map<B: Kernels>(self, pass: &ForwardPass<'_, B>, input: Tensor<B, 3>) -> Tensor<B, 3> {
        let weights = pass.weights();
        let [batch, seq, d_in] = input.dims();
        let weight = match self.stored {
            Stored::InOut => weights.held_matrix(self.weight),
            Stored::OutIn => weights.held_matrix(self.weight).transpose(),
        };
        let d_out = weight.dims()[1];
        let rows = input.reshape([batch * seq, d_in]);
        let change = weights.apart(self.weight).map(|(adapter, [a, b])| adapter.apply(rows.clone(), a, b));
        let output = match self.bias {
            Some(bias) => pass.affine(rows, weight, weights.vector(bias)),
            None => pass.product(rows, weight),
        };
        plus(output, change).reshape([batch, seq, d_out])
    }

    /// Returns the gradient of the input, `[batch·seq, d_in]`.
    fn map_back<B: Kernels>(self, weights: &Weights<B>, grad: Tensor<B, 3>) -> Tensor<B, 2> {
        let [batch, seq, d_out] = grad.dims();
        let weight = match self.stored {
            Stored::InOut => weights.held_matrix(self.weight).transpose(),
            Stored::OutIn => weights.held_matrix(self.weight),
        };
        let rows = grad.reshape([batch * seq, d_out]);
        let change =
            weights.apart(self.weight).map(|(adapter, [a, b])| adapter.apply_back(rows.clone(), a, b));
        plus(weights.layer_product(rows, weight), change)
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
            let [a, b] = [adapter.a, adapter.b].map(|place| back.weights.trained_matrix(place));
            back.records(adapter.records(a, b, input, grad));
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

fn plus<B: Kernels>(output: Tensor<B, 2>, change: Option<Tensor<B, 2>>) -> Tensor<B, 2> {
    match change {
        Some(change) => output + change,
        None => output,
    }
}
