//! The privacy guarantee: unit, relation, budget and sampling.

use std::sync::Arc;

use accountant::NeighboringRelation;
use mechanisms::{
    BallsInBinsGaussian, CyclicPoissonGaussian, FixedSizeSampledGaussian, MechanismError,
    PoissonSampledExamplesGaussian, PoissonSampledGaussian, PrivacyUnit, ShuffledGaussian, TrainingMechanism,
    TruncatedPoissonSampledGaussian,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The privacy guarantee. Give `epsilon` (noise is calibrated to it), `noise_multipliers` (ε follows from them), or
/// both (refused if the noise gives a larger ε).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    /// The privacy unit: the piece of data that the guarantee hides.
    pub unit: PrivacyUnit,
    /// The neighboring relation: the pairs of data sets that the guarantee compares.
    #[schemars(with = "Relation")]
    pub relation: NeighboringRelation,
    /// Probability that the guarantee fails. Must be smaller than 1 / units.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub delta: f64,
    /// Upper limit on ε at `delta`, for tokenizer and training together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1e-6, "maximum" = 1e4))]
    pub epsilon: Option<f64>,
    /// Noise multipliers set by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_multipliers: Option<NoiseMultipliers>,
    /// Whether the noise multiplier of a phase of `training.batch_schedule` is that of the first one times √(its batch / the
    /// first one's) (Hoory et al. 2021, section 3.3). Otherwise all phases have the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub scale_noise_by_sqrt_batch: bool,
    /// Share of the budget for a privately trained tokenizer when noise is calibrated.
    #[serde(default = "tokenizer_share")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub tokenizer_share: f64,
    /// How batches are sampled.
    pub sampling: Sampling,
    /// Extra steps, charged in advance, that replace interrupted ones. With sampling that is charged per pass, they are
    /// rounded up to whole passes, and each stop within a pass uses one.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000))]
    pub spare_steps: u64,
    /// How clipped gradients are summed. The noise is exact in both cases. Without it, sums are exact on the CPU and fast on other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<Arithmetic>,
}

/// How clipped gradients are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arithmetic {
    /// In 32-bit floating point within a micro-batch and in integers across micro-batches. The certificate states the
    /// rounding that remains. On the CPU, contexts of 512 tokens or more are summed exactly all the same, without
    /// `performance.group_by_length`: that takes no more time.
    Fast,
    /// Each unit's gradient is clipped and rounded to integers that depend on no other unit, and these are summed. No rounding error can
    /// exceed the clip norm. For the CPU only; up to a fifth slower for short texts.
    Exact,
}

fn tokenizer_share() -> f64 {
    0.1
}

/// How batches are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Each unit joins each batch independently, with probability expected batch size / units.
    Poisson,
    /// Each example, a window or a record, joins each batch independently, with probability expected batch size / `examples`. A unit has at
    /// most `examples_per_unit` of them, and the guarantee is for all of them together (example-level sampling, Charles et al. 2024).
    PoissonOfExamples(PoissonOfExamples),
    /// Poisson sampling that drops random units from a batch larger than `largest_batch`. Requires `replace_one` or
    /// `zero_out`.
    TruncatedPoisson(TruncatedPoisson),
    /// Passes over the shuffled units in equal batches. Charged per pass, as full participation. Requires `replace_one`
    /// or `zero_out`.
    Shuffle,
    /// Exactly the expected batch size, drawn without replacement at each step. Requires `replace_one` or `zero_out`.
    FixedSize,
    /// In each pass, every unit joins one batch, chosen independently at random. Charged per pass.
    BallsInBins,
    /// Banded matrix factorization: each unit belongs to one of `bands` parts at random, and the steps draw Poisson samples from one part
    /// after another. The noise of a step takes back parts of the noise of the `bands` − 1 steps before it. Charged per pass of `bands`
    /// steps.
    CyclicPoisson(CyclicPoisson),
}

impl Sampling {
    /// Returns whether the sample depends on the number of units, so that this number must be public and exact.
    #[must_use]
    pub fn needs_exact_units(self) -> bool {
        match self {
            Self::Poisson | Self::PoissonOfExamples(_) | Self::BallsInBins | Self::CyclicPoisson(_) => false,
            Self::TruncatedPoisson(_) | Self::Shuffle | Self::FixedSize => true,
        }
    }

    /// Returns whether every batch has the expected size.
    #[must_use]
    pub fn has_one_batch_size(self) -> bool {
        match self {
            Self::Shuffle | Self::FixedSize => true,
            Self::Poisson
            | Self::PoissonOfExamples(_)
            | Self::TruncatedPoisson(_)
            | Self::BallsInBins
            | Self::CyclicPoisson(_) => false,
        }
    }

    /// Returns whether steps are charged by whole passes.
    #[must_use]
    pub fn is_charged_by_pass(self) -> bool {
        match self {
            Self::BallsInBins | Self::Shuffle | Self::CyclicPoisson(_) => true,
            Self::Poisson | Self::PoissonOfExamples(_) | Self::TruncatedPoisson(_) | Self::FixedSize => false,
        }
    }

    /// Returns the number, declared public, of what is sampled: of examples, or of `units`.
    #[must_use]
    pub fn population(self, units: u64) -> u64 {
        match self {
            Self::PoissonOfExamples(PoissonOfExamples { examples, .. }) => examples,
            _ => units,
        }
    }

    /// Returns the name of what is sampled.
    #[must_use]
    pub fn sampled(self) -> &'static str {
        if self.examples_per_unit().is_some() { "examples" } else { "units" }
    }

    /// Returns the largest number of a unit's examples if examples are sampled; `None` if units are sampled.
    #[must_use]
    pub fn examples_per_unit(self) -> Option<u32> {
        match self {
            Self::PoissonOfExamples(PoissonOfExamples { examples_per_unit, .. }) => Some(examples_per_unit),
            _ => None,
        }
    }

    /// Returns the number of parts into which the units are divided, each of which holds a batch.
    pub(crate) fn parts(self) -> u64 {
        match self {
            Self::CyclicPoisson(CyclicPoisson { bands }) => bands.max(1),
            _ => 1,
        }
    }

    /// Returns the largest number of steps of a phase.
    pub(crate) fn max_steps(self) -> u64 {
        match self {
            Self::CyclicPoisson(_) => accountant::correlated::MAX_STEPS,
            _ => 1_000_000_000,
        }
    }

    /// Returns the mechanism that draws batches of `expected_batch_size` of [`Self::population`] in this way, for
    /// `steps` steps.
    pub(crate) fn mechanism(
        self,
        population: u64,
        steps: u64,
        expected_batch_size: u64,
        noise_multiplier: f64,
    ) -> Result<Arc<dyn TrainingMechanism>, MechanismError> {
        let probability = expected_batch_size as f64 / population as f64;
        let batches = population.div_ceil(expected_batch_size.max(1)).max(1);
        Ok(match self {
            Self::Poisson => Arc::new(PoissonSampledGaussian::new(probability, noise_multiplier)?),
            Self::PoissonOfExamples(PoissonOfExamples { examples_per_unit, .. }) => Arc::new(
                PoissonSampledExamplesGaussian::new(probability, noise_multiplier, examples_per_unit)?,
            ),
            Self::TruncatedPoisson(TruncatedPoisson { largest_batch }) => {
                Arc::new(TruncatedPoissonSampledGaussian::new(
                    probability,
                    population,
                    largest_batch,
                    noise_multiplier,
                )?)
            }
            Self::Shuffle => Arc::new(ShuffledGaussian::new(batches, noise_multiplier)?),
            Self::FixedSize => {
                Arc::new(FixedSizeSampledGaussian::new(expected_batch_size, population, noise_multiplier)?)
            }
            Self::BallsInBins => Arc::new(BallsInBinsGaussian::new(batches, noise_multiplier)?),
            Self::CyclicPoisson(CyclicPoisson { bands }) => {
                // The quotient is exact if a part is sampled whole.
                let of_part = bands.saturating_mul(expected_batch_size) as f64 / population as f64;
                Arc::new(CyclicPoissonGaussian::new(steps, bands, of_part, noise_multiplier)?)
            }
        })
    }

    /// Returns the sampling's name in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::PoissonOfExamples(_) => "poisson_of_examples",
            Self::TruncatedPoisson(_) => "truncated_poisson",
            Self::Shuffle => "shuffle",
            Self::FixedSize => "fixed_size",
            Self::BallsInBins => "balls_in_bins",
            Self::CyclicPoisson(_) => "cyclic_poisson",
        }
    }
}

/// Examples of units, of which each is sampled by itself. With the unit `owner`, an example is a record, which counts for each of its owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoissonOfExamples {
    /// Number of examples of all units, with at most `examples_per_unit` of each, declared public. With the unit `owner`, the run checks it.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub examples: u64,
    /// Largest number of examples of a unit. Of a unit that has more, so many are used, evenly spaced; of an owner, the first ones.
    #[schemars(range(min = 1, max = 256))]
    pub examples_per_unit: u32,
}

/// The limit of a truncated Poisson batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TruncatedPoisson {
    /// Maximum number of units in a batch. At least `expected_batch_size`; a few standard deviations more is best.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub largest_batch: u64,
}

/// The noise of cyclic Poisson sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CyclicPoisson {
    /// Bands of the matrix by which the noise is correlated. 1 is DP-SGD. `bands` × `expected_batch_size` is at most
    /// `data.units`, and a phase has at most 100,000 steps. Training keeps the noise of `bands` steps in memory, 8 bytes a trained parameter each.
    #[schemars(range(min = 1, max = 1024))]
    pub bands: u64,
}

/// Noise multipliers set by hand: standard deviation divided by sensitivity. Less than 0.02 protects nobody, and its ε takes
/// minutes to bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoiseMultipliers {
    /// Noise multiplier of the whole vocabulary release, as one Gaussian mechanism. For a privately trained tokenizer
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.02, "maximum" = 1e9))]
    pub tokenizer: Option<f64>,
    /// Noise multiplier of a training step, or of the first phase's steps.
    #[schemars(extend("minimum" = 0.02, "maximum" = 1e9))]
    pub training: f64,
}

// The schema of a type that the accountant owns.
/// The pairs of data sets that the guarantee compares.
#[derive(JsonSchema)]
#[schemars(rename = "NeighboringRelation", rename_all = "snake_case")]
#[expect(dead_code, reason = "describes a foreign type in the schema; never built")]
enum Relation {
    /// One unit is added or removed.
    AddOrRemoveOne,
    /// One unit is replaced by another. The number of units is public.
    ReplaceOne,
    /// The contribution of one unit is replaced by zero. The number of units is public.
    ZeroOut,
}
