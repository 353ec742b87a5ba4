//! An extension of DP-SIPS by this project: the noisy weights of earlier rounds steer later ones and count towards the
//! thresholds.
//!
//! * A unit skips items that the evidence so far speaks against, and so has more weight for the others.
//! * An item is released once the sum of its noisy weights over all rounds, with fixed factors, passes a threshold.
//!
//! # Guarantee
//! Let every round publish its noisy weight of *every* possible item (texts of at most 64 characters, a finite list),
//! whether a unit holds it or not. Each round is then a Gaussian mechanism: given the output of the earlier rounds, the
//! weights of a unit depend on its own items alone and have norm at most 1. What is released follows from this output and
//! from the list of items held. One unit changes that list only by the items that it alone holds, and the result is the same
//! unless one of these passes. The thresholds prevent that: over all rounds a single unit adds at most the sum of the factors
//! to one item, *whatever the noise made it do*, since it never gives an item more than 1 in a round. The noise of different
//! items is independent. With at most `cap` such items, none passes with probability (1 − p)^cap ≥ 1 − δ, where p is the
//! tail of the summed noise beyond the threshold less that bound.

use mechanisms::Stream;

use super::{Hidden, Round, RoundMethod};
use crate::release::config::ReleaseConfig;
use crate::release::error::ReleaseError;
use crate::release::fixed_point::{ONE, even_weight, noise};
use crate::release::selection::Selection;
use crate::release::threshold::quantile;

/// The bar for an item after each round, in standard deviations of its evidence times the number of rounds so far.
/// Units skip an item below it.
const SKIP_SIGMAS: f64 = 0.375;

/// The share of δ for the last round. The others divide the rest.
const LAST_DELTA: f64 = 0.7;

/// Returns the trust in the weights of a round, apart from its noise: in later rounds units share weight among fewer
/// items.
fn trust(round: usize) -> f64 {
    1.0 + round as f64
}

/// Returns the part of the threshold δ that `round` may use.
fn delta_share(round: usize, rounds: usize) -> f64 {
    match rounds {
        1 => 1.0,
        _ if round + 1 == rounds => LAST_DELTA,
        _ => (1.0 - LAST_DELTA) / (rounds - 1) as f64,
    }
}

/// The pooled evidence of the rounds so far.
#[derive(Default)]
struct Evidence {
    /// The sum of the factors: the most that one unit adds to an item's sum.
    factors: f64,
    /// The variance of the noise in a sum.
    variance: f64,
}

impl Evidence {
    /// Adds a round with noise of σ in multiples of ONE, and returns the factor for its weights.
    fn add_round(&mut self, round: usize, sigma: f64) -> f64 {
        let factor = trust(round) / (sigma * sigma);
        self.factors += factor;
        self.variance += (factor * sigma).powi(2);
        factor
    }

    /// Returns the sum that an item must reach after `round`.
    fn threshold(&self, config: &ReleaseConfig, round: usize) -> f64 {
        let delta = config.threshold_delta() * delta_share(round, config.rounds());
        let noise = self.variance.sqrt() * quantile(delta, config.cap());
        // A discrete draw lies at most one fixed-point unit beyond the normal one. The last factor is for rounding.
        (self.factors + noise + self.factors / ONE as f64) * (1.0 + 1e-12)
    }
}

/// Returns σ of the noise in multiples of ONE.
fn in_weights(sigma: u64) -> f64 {
    sigma as f64 / ONE as f64
}

#[derive(Default)]
pub(super) struct Pooled {
    evidence: Evidence,
    /// For each item, the sum over the rounds of factor × noisy weight.
    sums: Vec<f64>,
    /// Whether each item took part in the first round. The cap may leave an item out of every unit: then noise alone
    /// must not release it.
    taking_part: Vec<bool>,
    /// The factor of the current round.
    factor: f64,
    threshold: f64,
    skip_below: f64,
}

impl RoundMethod for Pooled {
    fn histogram(&mut self, hidden: Hidden<'_>, round: &Round<'_>) -> Result<Vec<u64>, ReleaseError> {
        let histogram = weigh(hidden, round.config.cap(), |unit| round.same_choice(unit))?;
        if round.index == 0 {
            self.taking_part = histogram.iter().map(|&weight| weight > 0).collect();
            self.sums = vec![0.0; histogram.len()];
        }
        self.factor = self.evidence.add_round(round.index, in_weights(round.sigma));
        self.threshold = self.evidence.threshold(round.config, round.index);
        self.skip_below = SKIP_SIGMAS * (round.index + 1) as f64 * self.evidence.variance.sqrt();
        Ok(histogram)
    }

    fn publishes(&self, item: usize, _weight: u64, selection: &Selection) -> bool {
        self.taking_part[item] && selection.released[item].is_none()
    }

    fn update(&mut self, item: usize, noisy: i64, _round: &Round<'_>, selection: &mut Selection) {
        let sum = &mut self.sums[item];
        *sum += self.factor * (noisy as f64 / ONE as f64);
        if *sum >= self.threshold {
            selection.release(item, *sum / self.evidence.factors);
        }
        // No sum is NaN, since all terms are finite.
        selection.passed_over[item] = *sum < self.skip_below;
    }

    fn first_threshold(&self, config: &ReleaseConfig) -> Result<f64, ReleaseError> {
        let mut evidence = Evidence::default();
        evidence.add_round(0, in_weights(noise(config.round_noise_multiplier(0))?.sigma()));
        Ok(evidence.threshold(config, 0) / evidence.factors)
    }
}

/// Returns the histogram of one round: even weights over a unit's open items, of norm at most 1.
pub(super) fn weigh(
    Hidden { items, selection }: Hidden<'_>,
    cap: u32,
    stream: impl Fn(u64) -> Stream,
) -> Result<Vec<u64>, ReleaseError> {
    let mut histogram = vec![0_u64; items.distinct()];
    let mut chosen: Vec<(u64, u64)> = Vec::new();
    items.each_unit(|unit, held| {
        selection.chosen_items(held, &mut chosen, cap, || stream(unit));
        let weight = even_weight(chosen.len());
        chosen.iter().for_each(|&(item, _)| histogram[item as usize] += weight);
    })?;
    Ok(histogram)
}
