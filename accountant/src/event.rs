//! Privacy events: what a mechanism reports to the accountant.
//!
//! An event carries the parameters that accounting needs and no others. The meaning of an event never changes; an unknown
//! event is refused. In JSON: `{"type": "poisson_sampled_gaussian", …}`.

use serde::{Deserialize, Serialize};

/// The pairs of data sets that must be hard to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighboringRelation {
    /// A unit is added or removed.
    AddOrRemoveOne,
    /// A unit is exchanged for another; the number of units is public.
    ReplaceOne,
    /// A unit's contribution is zeroed out; the number of units is public.
    ZeroOut,
}

/// A use of the private data.
///
/// `noise_multiplier` is σ divided by the L2 sensitivity of adding or removing one unit (L1 for Laplace).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum DpEvent {
    /// Gaussian noise on a query over the whole data set.
    Gaussian {
        /// σ over L2 sensitivity.
        noise_multiplier: f64,
    },
    /// Gaussian noise on a sum over a Poisson sample of the data set.
    PoissonSampledGaussian {
        /// Probability with which each unit takes part, independently.
        sampling_probability: f64,
        /// σ over the L2 norm one unit can contribute.
        noise_multiplier: f64,
    },
    /// Gaussian noise on a sum over a Poisson sample of the examples of all units, of which each unit has up to `examples_per_unit`.
    ///
    /// Its pair is that of a group of so many units under [`Self::PoissonSampledGaussian`].
    /// Reference: Charles et al. 2024, "Fine-tuning large language models with user-level differential privacy" (example-level sampling),
    /// <https://arxiv.org/abs/2407.07737>.
    PoissonSampledExamplesGaussian {
        /// Probability with which each example takes part, independently.
        sampling_probability: f64,
        /// σ over the L2 norm that one example can contribute.
        noise_multiplier: f64,
        /// Largest number of examples of a unit, 1 to 256.
        examples_per_unit: u32,
    },
    /// Gaussian noise on a sum over a Poisson sample that is cut to a largest size by leaving out units at random.
    ///
    /// Supported where the number of units is public: under `replace_one` and `zero_out`. In a cut batch units depend on each
    /// other, hence a displacement of twice the norm. A largest batch that is rarely reached costs little.
    TruncatedPoissonSampledGaussian {
        /// Probability with which each unit is sampled, independently.
        sampling_probability: f64,
        /// σ over the L2 norm one unit can contribute.
        noise_multiplier: f64,
        /// Number of units, public.
        units: u64,
        /// Largest number of units in a batch.
        largest_batch: u64,
    },
    /// Gaussian noise on a sum over each of the batches into which every epoch cuts the shuffled data set.
    ///
    /// This is not Poisson sampling and is never charged as such. The upper bound is that of full participation, one Gaussian
    /// an epoch; the lower bound is what the sum of an epoch's outputs reveals.
    ShuffledGaussian {
        /// σ over the L2 norm one unit can contribute.
        noise_multiplier: f64,
        /// Batches an epoch.
        batches: u64,
        /// Epochs.
        epochs: u64,
    },
    /// Gaussian noise on a sum over a batch of exactly `sample_size` units, drawn without replacement.
    ///
    /// A unit that is drawn takes the place of another and moves the sum by up to twice the norm, so the Poisson figure does not
    /// apply. Under `add_or_remove_one` the guarantee is for data sets of at least `population` units.
    /// Reference: Lebeda, Regehr, Kamath & Steinke 2024, <https://arxiv.org/abs/2405.20769>.
    FixedSizeSampledGaussian {
        /// Units in every batch.
        sample_size: u64,
        /// Number of units in the data set.
        population: u64,
        /// σ over the L2 norm one unit can contribute.
        noise_multiplier: f64,
    },
    /// Gaussian noise on the sum over each of `batches` bins. Every epoch each unit falls into one bin at random, independently
    /// of the others.
    ///
    /// References: Chua et al. 2024, <https://arxiv.org/abs/2412.16802>; Feldman & Shenfeld 2025,
    /// <https://arxiv.org/abs/2502.08202>.
    BallsInBinsGaussian {
        /// σ over the L2 norm one unit can contribute.
        noise_multiplier: f64,
        /// Bins an epoch; each is one step.
        batches: u64,
        /// Epochs.
        epochs: u64,
    },
    /// One round of banded matrix factorization under cyclic Poisson sampling: as many consecutive steps as the matrix C has bands. Every
    /// unit belongs to one step of each round and is sampled there; the noise of a step is correlated with that of the steps before it.
    ///
    /// Groups of units are refused: their members move rows of C that overlap.
    /// Reference: Choquette-Choo et al. 2023, Theorem 4, <https://arxiv.org/abs/2306.08153>.
    CyclicPoissonSampledGaussian {
        /// Probability with which each unit takes part in its step of the round.
        sampling_probability: f64,
        /// σ over the L2 norm by which one participation moves the rows of C, the largest column norm times the clip norm.
        noise_multiplier: f64,
    },
    /// Noisy counts or weights of items, of which only those above a threshold are released.
    ThresholdedHistogram {
        /// σ over the L2 norm of one unit's contribution to the histogram.
        noise_multiplier: f64,
        /// Probability that an item of one unit alone passes the threshold.
        threshold_delta: f64,
    },
    /// Laplace noise on a query over the whole data set.
    Laplace {
        /// Scale of the noise over L1 sensitivity.
        noise_multiplier: f64,
    },
    /// Laplace noise on a query over a Poisson sample of the data set.
    ///
    /// Groups and `replace_one` are refused.
    /// Reference: Zhu, Dong & Wang 2022, Theorem 11, <https://arxiv.org/abs/2106.08567>.
    PoissonSampledLaplace {
        /// Probability with which each unit takes part, independently.
        sampling_probability: f64,
        /// Scale of the noise over L1 sensitivity.
        noise_multiplier: f64,
    },
    /// Every unit reports one of `buckets` values: its own, or with probability `noise_parameter` one that is drawn uniformly from all.
    ///
    /// Whether a unit reports is public, so that `add_or_remove_one` is refused; a unit that is zeroed out reports a fixed value.
    /// Reference: Warner 1965; Kairouz, Bonawitz & Ramage 2016, <https://arxiv.org/abs/1602.07387>.
    RandomizedResponse {
        /// Probability of a report that is drawn uniformly.
        noise_parameter: f64,
        /// Number of values, at least 2.
        buckets: u64,
    },
    /// A mechanism of which (ε, δ) alone are known, pure differential privacy at δ = 0. Its ε has no lower bound.
    ///
    /// Reference: Kairouz, Oh & Viswanath 2015, "The composition theorem for differential privacy", <https://arxiv.org/abs/1311.0776>.
    EpsilonDelta {
        /// ε if one unit is added or removed.
        epsilon: f64,
        /// δ if one unit is added or removed.
        delta: f64,
    },
    /// The discrete Gaussian on one whole-numbered query over the whole data set.
    ///
    /// Reference: Canonne, Kamath & Steinke 2020, <https://arxiv.org/abs/2004.00010>.
    DiscreteGaussian {
        /// The parameter σ of the distribution, in counts.
        standard_deviation: f64,
        /// Largest change of the query if one unit is added or removed.
        sensitivity: u64,
    },
    /// A mechanism of which its concentration alone is known: each Rényi divergence of order α, in either direction, is at most α·ρ if one
    /// unit is added or removed. Its ε has no lower bound.
    ///
    /// The exponential mechanism is of this kind, with ρ an eighth of the square of the range by which one unit moves its scores
    /// (Cesar & Rogers 2021, <https://arxiv.org/abs/2004.07223>).
    /// Reference: Bun & Steinke 2016, Definition 1.1, <https://arxiv.org/abs/1605.02065>.
    ZeroConcentrated {
        /// Largest Rényi divergence over its order.
        rho: f64,
    },
    /// The best of several trials by a score that depends on the released trials alone. The trial and its score are released.
    ///
    /// Reference: Papernot & Steinke 2022, <https://arxiv.org/abs/2110.03620>.
    PrivateSelection {
        /// A trial.
        event: Box<DpEvent>,
        /// The distribution of their number.
        trials: Trials,
    },
    /// Several events on the same data, in any order.
    Composed {
        /// The events.
        events: Vec<DpEvent>,
    },
    /// Several uses of the same event.
    SelfComposed {
        /// The event.
        event: Box<DpEvent>,
        /// Number of uses.
        count: u64,
    },
}

/// The distribution of the number of trials. It must be drawn without looking at the data, and kept secret unless it is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Trials {
    /// Truncated negative binomial on 1, 2, …; geometric with shape 1, logarithmic with shape 0.
    TruncatedNegativeBinomial {
        /// η > −1.
        shape: f64,
        /// γ, strictly between 0 and 1: the smaller, the more trials.
        stop: f64,
    },
    /// Poisson; nothing is released where there is no trial.
    Poisson {
        /// Mean number of trials, at least 1.
        mean: f64,
    },
    /// A fixed number, all of which may be released: their composition.
    Fixed {
        /// Number of trials.
        count: u64,
    },
}

/// The event of an iterative thresholded vocabulary release (DP-SIPS, Swanberg et al. 2023).
///
/// `noise_multiplier` is that of the whole release seen as one Gaussian: μ = 1/`noise_multiplier`. Round i gets
/// `round_shares[i]` of μ² and an equal part of `threshold_delta`; `count_share` of μ² is spent on a plain Gaussian
/// count of the words already released (no such count at 0).
///
/// ```
/// use accountant::{DpEvent, vocabulary_release_event};
/// let event = vocabulary_release_event(4.0, 1e-9, &[0.25, 0.5], 0.25);
/// let DpEvent::Composed { events } = event else { unreachable!() };
/// assert_eq!(events.len(), 3);
/// // A quarter of μ² is half of μ: twice the noise.
/// assert_eq!(events[0], DpEvent::ThresholdedHistogram { noise_multiplier: 8.0, threshold_delta: 5e-10 });
/// assert_eq!(events[2], DpEvent::Gaussian { noise_multiplier: 8.0 });
/// ```
#[must_use]
pub fn vocabulary_release_event(
    noise_multiplier: f64,
    threshold_delta: f64,
    round_shares: &[f64],
    count_share: f64,
) -> DpEvent {
    let mut events: Vec<DpEvent> = round_shares
        .iter()
        .map(|share| DpEvent::ThresholdedHistogram {
            noise_multiplier: noise_multiplier / f64::sqrt(*share),
            threshold_delta: threshold_delta / round_shares.len() as f64,
        })
        .collect();
    if count_share > 0.0 {
        events.push(DpEvent::Gaussian { noise_multiplier: noise_multiplier / f64::sqrt(count_share) });
    }
    DpEvent::Composed { events }
}
