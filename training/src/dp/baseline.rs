//! One step without privacy: the same computation without norms, clipping and noise.

use super::gradients::plain_sum;
use super::sum::GradSum;
use super::{BaselineGradient, Lot};
use network::model::Network;
use network::nn::{Kernels, Weights};

/// The average gradient of a lot.
pub(crate) fn plain_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    expected_batch_size: f64,
) -> BaselineGradient<B> {
    let sum = lot.sum(weights, |weights, micro_batch| plain_sum(model, weights, micro_batch, lot.recompute));
    let sum = sum.unwrap_or_else(|| GradSum::zero(weights.specs(), weights.dtype(), lot.device));
    BaselineGradient::mean(sum, expected_batch_size)
}
