//! One step of DP-SGD, as Algorithm 1 of Abadi et al. 2016, <https://arxiv.org/abs/1607.00133>.

use mechanisms::{GaussianMechanism, MechanismError, PrivacyRng};

use super::{BaselineGradient, Lot, PrivateGradient, clip, per_example_norms, plain_sum, privatize};
use crate::layer::{Kernels, Weights};
use crate::model::Network;

/// What one private step is made of. Every figure comes from the certified plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DpStep {
    /// Standard deviation of the noise on the sum, in units of the clip norm.
    pub noise_multiplier: f64,
    /// Longest gradient an example may contribute.
    pub l2_clip_norm: f64,
    /// The divisor: a constant of the plan, never the drawn size.
    pub expected_batch_size: f64,
    /// Of the optimizer, at this step.
    pub learning_rate: f64,
    /// Logical step: the address of its noise.
    pub step: u64,
}

/// What one step of the non-private baseline is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainStep {
    /// The divisor.
    pub expected_batch_size: f64,
    /// Of the optimizer, at this step.
    pub learning_rate: f64,
}

/// Gradient of a lot: compute per-example gradients, clip them, add noise to the sum, divide by the expected size.
///
/// # Errors
/// If the noise multiplier or the clip norm is not a positive number.
pub fn dp_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    step: &DpStep,
    rng: &impl PrivacyRng,
) -> Result<PrivateGradient<B>, MechanismError> {
    let mechanism = GaussianMechanism::new(step.noise_multiplier)?;
    let clipped_sum = lot.sum(weights, step.l2_clip_norm, |weights, batch| {
        let examples = batch.examples;
        let records = model.records(weights, batch);
        let norms = per_example_norms(&records);
        clip(records, norms, examples, step.l2_clip_norm, weights.specs())
    });
    Ok(privatize(clipped_sum.bounded()?, &mechanism, step.expected_batch_size, step.step, rng))
}

/// Mean gradient of a lot without privacy: the same path without norms, clipping and noise.
pub fn plain_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    step: &PlainStep,
) -> BaselineGradient<B> {
    let sum = lot.sum(weights, f64::INFINITY, |weights, batch| {
        plain_sum(model.records(weights, batch), weights.specs())
    });
    BaselineGradient::mean(sum, step.expected_batch_size)
}
