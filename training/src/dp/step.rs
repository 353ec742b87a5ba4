//! One step of DP-SGD: Algorithm 1 of Abadi et al. 2016, <https://arxiv.org/abs/1607.00133>.
//!
//! | Algorithm 1 | here |
//! |---|---|
//! | take a random sample Lₜ | [`TrainingData::sample_lot`] |
//! | compute the gradient of each example, clip it to norm C, and sum | [`clipped_sum`] |
//! | add noise N(0, σ²C²), and divide by the lot size L | [`private_gradient`] |
//! | descend | [`crate::optim::Optimizer::step`], which takes the [`PrivateGradient`] |

use mechanisms::{GaussianMechanism, L2Sensitivity, PrivacyRng, Purpose};
use plan::{CertifiedPlan, Clipping, PrivacyUnit};

use super::adaptive::CountRelease;
use super::grid_sum::GridSum;
use super::shared::{sum_in_rounds, sum_of_all};
use super::summing::{Summation, Summing, clipped_sum};
use super::{Carried, Lot, NoisyAverage, PrivateGradient, StepError};
use crate::RunError;
use crate::data::{BatchSampler, BoundedExamples, Dataset, LabelledSet, choose};
use crate::disclosure::Private;
use crate::objective::Objective;
use crate::ranks::Share;
use network::Example;
use network::model::Network;
use network::nn::{Kernels, Weights};

/// The figures of one private step. All of them come from the certified plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DpStep {
    /// Number of the step, from 0. It addresses the step's random numbers.
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

/// The data from which lots are sampled.
pub(crate) struct TrainingData {
    pub sampler: BatchSampler,
    pub set: TrainingSet,
    pub objective: Objective,
    /// The units' examples, if these are sampled and not the units.
    pub examples: Option<BoundedExamples>,
}

/// The contribution of a unit to a lot.
pub(crate) enum TrainingSet {
    /// Windows of their text.
    Windows(Box<Dataset>),
    /// Labelled records.
    Records(LabelledSet),
}

/// Number of units whose windows are counted at once.
const UNITS_AT_ONCE: usize = 1 << 16;

impl TrainingSet {
    /// Number of units, which is private if the text is private.
    fn units(&self) -> u64 {
        match self {
            Self::Windows(dataset) => dataset.units() as u64,
            Self::Records(records) => records.units() as u64,
        }
    }

    /// Finds out how many windows or records these units have, each of which is given once. All ranks call this together.
    fn measure(&mut self, units: &[u64]) -> Result<(), RunError> {
        match self {
            Self::Windows(dataset) => dataset.measure(units),
            Self::Records(records) => records.measure(units),
        }
    }

    /// Lists the examples of all units, each of which gives at most `most`.
    fn bounded_examples(&mut self, most: u32) -> Result<BoundedExamples, RunError> {
        let mut examples = BoundedExamples::new(most);
        let units: Vec<u64> = (0..self.units()).collect();
        for units in units.chunks(UNITS_AT_ONCE) {
            self.measure(units)?;
            units.iter().for_each(|&unit| examples.push(self.number_of(unit)));
        }
        Ok(examples)
    }

    /// Number of windows or records of a unit.
    fn number_of(&self, unit: u64) -> usize {
        match self {
            Self::Windows(dataset) => dataset.windows_of(unit as usize),
            Self::Records(records) => records.examples_of(unit as usize),
        }
    }
}

impl TrainingData {
    /// The data of a plan. All ranks call this together.
    ///
    /// # Errors
    /// [`RunError::Failed`] on all ranks if a file cannot be read.
    pub(crate) fn new(
        plan: &plan::Plan,
        mut set: TrainingSet,
        objective: Objective,
    ) -> Result<Self, RunError> {
        // Where records have several owners, each of them is an example: reading the text has bounded them.
        let most = plan.privacy().sampling.examples_per_unit();
        let examples = match most.filter(|_| plan.privacy().unit != PrivacyUnit::Owner) {
            Some(most) => Some(set.bounded_examples(most)?),
            None => None,
        };
        Ok(Self { sampler: BatchSampler::default(), set, objective, examples })
    }

    /// Samples by the plan's mechanism and makes an example of windows or records of each sampled unit that is in the rank's share.
    /// All ranks call this together.
    ///
    /// # Errors
    /// [`RunError::Failed`] on all ranks if the plan has no such step or a file cannot be read.
    pub(crate) fn sample_lot(
        &mut self,
        plan: &CertifiedPlan,
        step: u64,
        share: Share,
        rng: &dyn PrivacyRng,
    ) -> Result<Private<Vec<Example>>, RunError> {
        let views = plan.plan().training().views_per_unit as usize;
        let population = self.examples.as_ref().map_or(self.set.units(), BoundedExamples::count);
        let sampled = self.sampler.draw(plan, step, population, rng)?;
        let mut units = match &self.examples {
            Some(examples) => examples.units(sampled.for_mechanism()),
            None => sampled.for_mechanism().clone(),
        };
        units.sort_unstable();
        units.dedup();
        self.set.measure(&units)?;
        let number_of = |unit| self.set.number_of(unit);
        let lot = match &self.examples {
            Some(examples) => examples.find(&sampled, number_of),
            None => choose(&sampled, number_of, views, &mut rng.stream(Purpose::Window, step, 0)),
        };
        match &self.set {
            TrainingSet::Windows(dataset) => {
                Ok(self.objective.examples(&dataset.read_lot(lot, share)?, views, step, rng))
            }
            TrainingSet::Records(records) => records.read_lot(lot, share, step, rng),
        }
    }
}

/// The noisy average of a lot's clipped gradients, and the next clip norm where clipping is adaptive.
///
/// # Errors
/// For a clip norm or an expected batch size that is not a finite number above 0; as [`clipped_sum`].
pub(crate) fn private_gradient<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    step: &DpStep,
    summation: Summation,
    carried: &mut Carried,
    rng: &dyn PrivacyRng,
) -> Result<(PrivateGradient<B>, Option<f64>), StepError> {
    let count = match summation.clipping {
        Clipping::Adaptive(settings) => Some(CountRelease::new(settings, step.expected_batch_size)?),
        Clipping::Flat | Clipping::PerLayer | Clipping::Automatic(_) => None,
    };
    let noise = match (&count, &carried.block) {
        (Some(count), _) => step.noise.beside(count.noise())?,
        (None, Some(block)) => block.bands().mechanism(step.noise)?,
        (None, None) => step.noise,
    };
    let grid_step = noise.grid(L2Sensitivity::new(step.l2_clip_norm)?)?.unit();
    let summing = Summing::new(model, summation, step.l2_clip_norm, grid_step)?;
    let sum = if let Some(shards) = lot.shards.filter(|shards| shards.divide_sums()) {
        sum_in_rounds(&summing, weights, lot, shards)?
    } else {
        let zeros = std::mem::take(&mut carried.zeros);
        let sum = GridSum::in_memory(zeros, weights.specs(), step.l2_clip_norm, grid_step);
        let sum = clipped_sum(&summing, weights, lot, sum);
        match lot.shards {
            Some(shards) => sum_of_all(sum, shards)?,
            None => sum?,
        }
    };
    let next_clip_norm = count.map(|count| count.next_clip_norm(&sum, step.step, rng)).transpose()?;
    let release = NoisyAverage { noise, step: step.step, divisor: step.expected_batch_size };
    let gradient = release.of(carried, sum.bounded()?, rng, lot.device)?;
    let gradient = match lot.shards {
        Some(shards) => {
            // The sum was in pieces of parameters, and the next one begins with whole parameters or in messages.
            carried.zeros = Vec::new();
            gradient.with_all_squares(shards)
        }
        None => gradient,
    };
    Ok((gradient, next_clip_norm))
}
