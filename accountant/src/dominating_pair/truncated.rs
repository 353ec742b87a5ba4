//! Truncated Poisson sampling: batches cut to a largest size by leaving out units at random.
//!
//! # Proof note
//! Let K be the number of sampled units among the other N − 1. Neighbours share its law, because N is public and the relation
//! exchanges one unit or zeroes it out. Also tell the attacker whether K ≥ cap: this only helps the attacker, and it has the
//! same probability p for both data sets, like a public coin.
//! * K < cap: no unit is left out. The unit takes part with probability q: the pair of Poisson sampling.
//! * K ≥ cap: without the unit the batch is a uniform subset S of cap others, whatever K is. With it (kept with
//!   probability q·cap/(K+1) given K, hence q′ = cap/N·P(Bin(N, q) > cap)/p given K ≥ cap) it replaces a uniform member y of S.
//!   Given S and y the sum is displaced by x − y, of norm at most 2, with probability q′ and otherwise not at all, for both
//!   data sets. By joint convexity the worst S and y bound the rest: the replace-one pair of displacement 2 at q′, which also
//!   covers a unit that is zeroed out.
//!
//! From below: if all other units contribute nothing, the release *is* the Poisson-sampled Gaussian at the unit's overall
//! probability of being kept, q·(1 − p) + q′·p, step by step. Under add-or-remove N is not public, K differs between
//! neighbours, and there is no such coin: the event is refused.

use super::fixed_size::LARGEST_POPULATION;
use super::poisson::{Poisson, binomial, sampled_pair};
use super::{Builder, Component, Law, Mechanism, MixturePair, positive};
use crate::numeric::binomial;
use crate::{AccountantError, NeighboringRelation, Result};

const EVENT: &str = "truncated_poisson_sampled_gaussian";

/// Largest probability of a full batch. Beyond it, the probability of a batch that is not full
/// would lose its digits.
const MAX_FULL: f64 = 0.99;

/// A step with Poisson sampling, truncated to a largest batch.
pub(super) struct TruncatedPoisson {
    pub(super) sampling_probability: f64,
    pub(super) noise_multiplier: f64,
    pub(super) units: u64,
    pub(super) largest_batch: u64,
}

/// The pair of a step, chosen by a public coin: `truncated` with `probability`, and `whole`
/// otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TruncationMixture {
    pub(crate) probability: f64,
    pub(crate) whole: MixturePair,
    pub(crate) truncated: MixturePair,
}

/// Probabilities of a Poisson batch that is cut to a largest size.
#[derive(Clone, Copy, Debug)]
struct BatchProbabilities {
    /// The probability that the other units fill the batch.
    full: f64,
    /// The probability, given that they do, that the unit is kept; rounded up.
    kept_when_full: f64,
    /// The probability that the unit is kept, rounded down.
    kept: f64,
}

impl BatchProbabilities {
    fn new(step: TruncatedPoisson) -> Self {
        let q = step.sampling_probability;
        let (n, cap) = (step.units as f64, step.largest_batch as f64);
        let full = binomial::at_least(cap, n - 1.0, q);
        let both = cap / n * binomial::at_least(cap + 1.0, n, q);
        // The slack is ten times the error of the binomial.
        let slack = 10.0 * binomial::RELATIVE;
        Self {
            full,
            kept_when_full: if full > 0.0 { (both / full * (1.0 + slack)).min(1.0) } else { 0.0 },
            kept: (q * (1.0 - full) + both) * (1.0 - slack),
        }
    }

    /// The pair of steps in which the others fill the batch.
    fn truncated_pair(&self, sigma: f64) -> MixturePair {
        let displaced = vec![Component { weight: self.kept_when_full, shift: 2.0 }];
        MixturePair::new(sigma, displaced.clone(), displaced)
    }
}

impl Mechanism for TruncatedPoisson {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let view = builder.view;
        if view.request.relation == NeighboringRelation::AddOrRemoveOne {
            let question = "add_or_remove_one, under which the number of units is not public";
            return Err(AccountantError::Unsupported { event: EVENT, question });
        }
        view.single_unit(EVENT)?;
        let Self { sampling_probability, noise_multiplier, units, largest_batch } = self;
        if !(1..=LARGEST_POPULATION).contains(&units) {
            return Err(AccountantError::out_of_range("units", units as f64, "1 to 1e12 units"));
        }
        if largest_batch == 0 {
            return Err(AccountantError::out_of_range("largest_batch", 0.0, "at least 1"));
        }
        let sampled = sampling_probability > 0.0 && sampling_probability < 1.0;
        if largest_batch >= units || !sampled && sampling_probability != 1.0 {
            return Poisson::of_units(sampling_probability, noise_multiplier).add_to(builder, count);
        }
        if !sampled {
            let allowed = "below 1 where batches are cut to a largest size";
            let name = "sampling_probability";
            return Err(AccountantError::out_of_range(name, sampling_probability, allowed));
        }
        let sigma = positive("noise_multiplier", noise_multiplier)?;
        let probabilities = BatchProbabilities::new(self);
        if view.request.is_lower() {
            let sampling_probability = probabilities.kept;
            return Poisson::of_units(sampling_probability, noise_multiplier).add_to(builder, count);
        }
        if probabilities.full.is_nan() || probabilities.full >= MAX_FULL {
            let allowed = "so large that batches are filled less than 99 times out of 100";
            return Err(AccountantError::out_of_range("largest_batch", largest_batch as f64, allowed));
        }
        let mixture = TruncationMixture {
            probability: probabilities.full.max(f64::MIN_POSITIVE),
            whole: sampled_pair(
                view.direction,
                binomial(view.request.group_size, sampling_probability),
                sigma,
            ),
            truncated: probabilities.truncated_pair(sigma),
        };
        builder.pair.push(Law::Truncated(mixture), count);
        Ok(())
    }
}
