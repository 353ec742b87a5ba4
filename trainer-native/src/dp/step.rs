//! One step of DP-SGD, as Algorithm 1 of Abadi et al. 2016, <https://arxiv.org/abs/1607.00133>.

use mechanisms::{GaussianMechanism, MechanismError, PrivacyRng, Purpose};
use plan::Clipping;

use super::clip::{Scales, Sums};
use super::norms::squares;
use super::{BaselineGradient, ClippedSum, Lot, PrivateGradient, privatize};
use crate::model::Network;
use crate::nn::{Kernels, Weights, materialize_if_cheaper};

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
/// Beside it the clip norm of the next step, where that follows the data.
///
/// # Errors
/// If the noise multiplier or the clip norm is not a positive number.
pub fn dp_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    step: &DpStep,
    clipping: Clipping,
    rng: &impl PrivacyRng,
) -> Result<(PrivateGradient<B>, Option<f64>), MechanismError> {
    let (bound, divisor) = (step.l2_clip_norm, step.expected_batch_size);
    let mechanism = GaussianMechanism::new(step.noise_multiplier)?;
    let clipped_sum = clipped_sum(model, weights, lot, bound, clipping);
    let Clipping::Adaptive(adaptive) = clipping else {
        return Ok((privatize(clipped_sum.bounded()?, &mechanism, divisor, step.step, rng), None));
    };
    // Count and gradient share the step's event: 1/σ² = 1/σ_Δ² + 1/(2σ_b)².
    let count = GaussianMechanism::new(2.0 * adaptive.count_noise * divisor)?;
    let rest = mechanism.beside(&count)?;
    let votes =
        count.privatize(clipped_sum.votes()?, &mut rng.stream(Purpose::GradientNoise, step.step, VOTES));
    let gradient = privatize(clipped_sum.bounded()?, &rest, divisor, step.step, rng);
    let unclipped = f64::from(votes[0]) / divisor + 0.5;
    let next = bound * (-adaptive.learning_rate * (unclipped - adaptive.quantile)).exp();
    Ok((gradient, Some(next)))
}

/// Sum over a lot of gradients, each brought within `bound`.
///
/// Where activations are recomputed no block's records outlive it: a first pass leaves their norms, a second their sums.
/// On a device whose sums are not the same twice, what the norms are rounded up by covers the difference.
pub(crate) fn clipped_sum<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    bound: f64,
    clipping: Clipping,
) -> ClippedSum<B> {
    lot.sum(weights, bound, |weights, batch| {
        let (examples, specs) = (batch.examples, weights.specs());
        let mut sums = Sums::new(specs);
        if lot.recompute {
            let mut all = Vec::with_capacity(specs.len());
            model.hand_over_records(weights, batch.clone(), true, |part| {
                all.extend(squares(&materialize_if_cheaper(part)))
            });
            let scales = Scales::new(clipping, &all, examples, bound, specs);
            model.hand_over_records(weights, batch, true, |part| {
                sums.add(materialize_if_cheaper(part), Some(&scales))
            });
            return sums.clipped(&scales);
        }
        let records = materialize_if_cheaper(model.records(weights, batch));
        let scales = Scales::new(clipping, &squares(&records), examples, bound, specs);
        sums.add(records, Some(&scales));
        sums.clipped(&scales)
    })
}

/// Index of the count's noise stream, which no parameter has.
const VOTES: u32 = u32::MAX;

/// Mean gradient of a lot without privacy: the same path without norms, clipping and noise.
pub fn plain_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    step: &PlainStep,
) -> BaselineGradient<B> {
    let sum = lot.sum(weights, f64::INFINITY, |weights, batch| {
        let mut sums = Sums::new(weights.specs());
        model.hand_over_records(weights, batch, lot.recompute, |part| sums.add(part, None));
        sums.plain()
    });
    BaselineGradient::mean(sum, step.expected_batch_size)
}
