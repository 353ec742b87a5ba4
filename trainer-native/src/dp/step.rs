//! One step of DP-SGD: Algorithm 1 of Abadi et al. 2016, <https://arxiv.org/abs/1607.00133>.
//!
//! | Algorithm 1 | here |
//! |---|---|
//! | take a random sample Lₜ | [`TrainingData::sample_lot`] |
//! | compute the gradient of each example, clip it to norm C, and sum | [`clipped_sum`] |
//! | add noise N(0, σ²C²), and divide by the lot size L | [`private_gradient`] |
//! | descend | [`crate::optim::Optimizer::step`], which takes the [`PrivateGradient`] |

use mechanisms::{GaussianMechanism, MechanismError, PrivacyRng};
use plan::{CertifiedPlan, Clipping};

use super::{ClippedSum, Lot, PerExampleGrads, PrivateGradient, adaptive, add_noise_and_average};
use crate::RunError;
use crate::data::{Dataset, Example, LabelledSet, Sampler};
use crate::disclosure::Private;
use crate::model::Network;
use crate::nn::{Kernels, Weights};
use crate::objective::Objective;

/// The figures of one private step. All of them come from the certified plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DpStep {
    /// Number of the step, from 0. It addresses the step's random figures.
    pub step: u64,
    /// Noise on the clipped sum, in units of the clip norm.
    pub noise: GaussianMechanism,
    /// Largest L2 norm of one example's gradient.
    pub l2_clip_norm: f64,
    /// Divisor of the noisy sum: a constant of the plan, never the number of examples sampled.
    pub expected_batch_size: f64,
    /// Learning rate of this step.
    pub learning_rate: f64,
}

/// Where lots are sampled from.
pub(crate) struct TrainingData {
    pub sampler: Sampler,
    pub set: TrainingSet,
    pub objective: Objective,
}

/// What units contribute to a lot.
pub(crate) enum TrainingSet {
    /// A window of their text.
    Windows(Box<Dataset>),
    /// A labelled record.
    Records(LabelledSet),
}

impl TrainingData {
    /// Samples units by the plan's mechanism and makes an example of one window or record of each.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the plan has no such step or a token file cannot be read.
    pub fn sample_lot(
        &mut self,
        plan: &CertifiedPlan,
        step: u64,
        rng: &impl PrivacyRng,
    ) -> Result<Private<Vec<Example>>, RunError> {
        let population = match &self.set {
            TrainingSet::Windows(dataset) => dataset.units(),
            TrainingSet::Records(records) => records.units(),
        };
        let units = self.sampler.draw(plan, step, population as u64, rng)?;
        match &self.set {
            TrainingSet::Windows(dataset) => {
                let windows = dataset.sample_windows(&units, step, rng)?;
                Ok(self.objective.examples(&windows, step, rng))
            }
            TrainingSet::Records(records) => Ok(records.sample(&units, step, rng)),
        }
    }
}

/// The sum of a lot's gradients, each clipped to a norm of at most `l2_clip_norm`.
pub(crate) fn clipped_sum<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    l2_clip_norm: f64,
    clipping: Clipping,
) -> ClippedSum<B> {
    let sum = lot.sum(weights, |weights, micro_batch| {
        let gradients = PerExampleGrads::compute(model, weights, micro_batch, lot.recompute);
        gradients.clip_and_sum(clipping, l2_clip_norm)
    });
    sum.unwrap_or_else(|| ClippedSum::zero(weights.specs(), l2_clip_norm, weights.dtype(), lot.device))
}

/// The noisy average of a lot's clipped gradients, and the next clip norm where clipping is adaptive.
///
/// # Errors
/// For a clip norm or an expected batch size that is not a finite number above 0.
pub(crate) fn private_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    step: &DpStep,
    clipping: Clipping,
    rng: &impl PrivacyRng,
) -> Result<(PrivateGradient<B>, Option<f64>), MechanismError> {
    let sum = clipped_sum(model, weights, lot, step.l2_clip_norm, clipping);
    let (noise, next_clip_norm) = match clipping {
        Clipping::Adaptive(settings) => adaptive::release_count(&sum, settings, step, rng)?,
        Clipping::Flat | Clipping::PerLayer | Clipping::Automatic(_) => (step.noise, None),
    };
    let gradient = add_noise_and_average(sum.bounded()?, &noise, step.expected_batch_size, step.step, rng);
    Ok((gradient, next_clip_norm))
}
