//! The plain feed-forward part of a block.

use crate::nn::GradRecord;
use crate::nn::{Activation, Kernels, Linear, Weights};
use crate::tensor::Tensor;

/// `W_narrow·f(W_widen·x)`
#[derive(Clone, Copy, Debug)]
pub struct FeedForward {
    /// From d to d_ff.
    pub widen: Linear,
    /// From d_ff to d.
    pub narrow: Linear,
    /// What stands between them.
    pub activation: Activation,
}

/// What [`FeedForward::backward`] needs.
pub struct SavedFeedForward<B: Kernels> {
    /// `[batch, seq, d]`
    input: Tensor<B, 3>,
    /// `[batch, seq, d_ff]`
    widened: Tensor<B, 3>,
    /// `[batch, seq, d_ff]`
    activated: Tensor<B, 3>,
}

impl FeedForward {
    /// The output.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedFeedForward<B>) {
        let widened = self.widen.forward(weights, input.clone());
        let activated = self.activation.forward(widened.clone());
        let output = self.narrow.forward(weights, activated.clone());
        (output, SavedFeedForward { input, widened, activated })
    }

    /// Input gradient; leaves the records of both projections.
    ///
    /// # Shapes
    /// - grad, output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedFeedForward<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let inner = self.narrow.backward(weights, saved.activated, grad, records);
        let inner = self.activation.backward(saved.widened, inner);
        self.widen.backward(weights, saved.input, inner, records)
    }
}
