//! One step without privacy: the same computation without norms, clipping and noise.

use super::gradients::plain_sum;
use super::sum::GradSum;
use super::{BaselineGradient, Lot};
use crate::model::Network;
use crate::nn::{Kernels, Weights};

/// The figures of one step of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainStep {
    /// Divisor of the sum.
    pub expected_batch_size: f64,
    /// Learning rate of this step.
    pub learning_rate: f64,
}

/// The average gradient of a lot.
pub(crate) fn plain_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    step: &PlainStep,
) -> BaselineGradient<B> {
    let sum = lot.sum(weights, |weights, micro_batch| plain_sum(model, weights, micro_batch, lot.recompute));
    let sum = sum.unwrap_or_else(|| GradSum::zero(weights.specs(), weights.dtype(), lot.device));
    BaselineGradient::mean(sum, step.expected_batch_size)
}
