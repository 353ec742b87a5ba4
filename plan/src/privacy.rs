//! The promise: who is protected, against what, and how much it may cost.

use accountant::NeighboringRelation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is promised. Give `epsilon` (noise is calibrated to it), `noise_multipliers` (ε follows), or both
/// (refused when ε is smaller than what the noise gives).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    /// What one person's data is, and so what is hidden.
    pub unit: Unit,
    /// Which pairs of data sets must be hard to tell apart.
    #[schemars(with = "Relation")]
    pub relation: NeighboringRelation,
    /// Probability with which the promise may fail: smaller than 1 / units.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub delta: f64,
    /// The largest ε the whole pipeline may have at `delta`, tokenizer and training together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub epsilon: Option<f64>,
    /// The noise, where it is fixed by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_multipliers: Option<NoiseMultipliers>,
    /// Share of the budget that a privately trained tokenizer gets when noise is calibrated.
    #[serde(default = "tokenizer_share")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub tokenizer_share: f64,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Extra steps charged up front: a crash burns a step and takes one from here. Where sampling is charged a pass, as
    /// many passes as these steps begin; every stop in the middle of a pass takes one.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000))]
    pub spare_steps: u64,
}

fn tokenizer_share() -> f64 {
    0.1
}

/// What is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// One record.
    Record,
    /// All records of one user.
    User,
    /// A run of so many words: a record is cut into disjoint pieces of at most this length.
    Words(#[schemars(range(min = 1, max = 1_000_000))] u32),
}

/// How batches are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Each unit joins each step independently, with probability expected batch size / units.
    Poisson,
    /// As Poisson, and from a batch that is too large units are left out at random; under `replace_one` or `zero_out`.
    TruncatedPoisson(TruncatedPoisson),
    /// Passes over the shuffled units, cut into equal batches; under `replace_one` or `zero_out`. Charged a pass, at the
    /// price of full participation.
    Shuffle,
    /// Exactly the expected batch size of units each step, without replacement; under `replace_one` or `zero_out`.
    FixedSize,
    /// Passes in each of which every unit falls into one batch at random, independently of the others. Charged a pass.
    BallsInBins,
}

impl Sampling {
    /// Whether every unit takes part in one batch of each pass, so that privacy is charged a pass and not a step.
    #[must_use]
    pub fn is_by_pass(self) -> bool {
        matches!(self, Self::Shuffle | Self::BallsInBins)
    }

    /// Whether what is drawn depends on the number of units, so that the number must be public and exact.
    #[must_use]
    pub fn needs_exact_units(self) -> bool {
        match self {
            Self::Poisson | Self::BallsInBins => false,
            Self::TruncatedPoisson(_) | Self::Shuffle | Self::FixedSize => true,
        }
    }

    /// Its name in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::TruncatedPoisson(_) => "truncated_poisson",
            Self::Shuffle => "shuffle",
            Self::FixedSize => "fixed_size",
            Self::BallsInBins => "balls_in_bins",
        }
    }
}

/// Where a Poisson batch is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TruncatedPoisson {
    /// Most units a batch keeps; no fewer than `expected_batch_size`, and best a few standard deviations above.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub largest_batch: u64,
}

/// Noise fixed by hand: standard deviation over sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoiseMultipliers {
    /// Of the whole vocabulary release, seen as one Gaussian; for a privately trained tokenizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e9))]
    pub tokenizer: Option<f64>,
    /// Of a training step.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e9))]
    pub training: f64,
}

// The schema's view of a type that the accountant owns.
/// Which pairs of data sets must be hard to tell apart.
#[derive(JsonSchema)]
#[schemars(rename = "NeighboringRelation", rename_all = "snake_case")]
#[expect(dead_code, reason = "describes a foreign type in the schema; never built")]
enum Relation {
    /// One unit is added or removed.
    AddOrRemoveOne,
    /// One unit is exchanged for another; the number of units is public.
    ReplaceOne,
    /// One unit's contribution is replaced by nothing; the number of units is public.
    ZeroOut,
}
