//! DP-SIPS with a memory: the noisy weights of earlier rounds steer later ones and count towards the thresholds.
//!
//! * A unit passes over items that the evidence so far speaks against, and so has more weight for the others.
//! * An item is released once its noisy weights of all rounds, added up with fixed factors, pass a threshold.
//!
//! # Guarantee
//! Let every round publish its noisy weight of *every* item there can be (texts of at most 64 characters, a finite
//! list), held by a unit or not. That is a Gaussian mechanism a round: given the earlier rounds' output a unit's weights
//! hang on nothing but its own items, and have norm at most 1. What is released follows from this output and from the
//! list of items held. That list changes with one unit by the items it alone holds, and the outputs are the same unless
//! one of those passes: that is what the thresholds are for. Over all rounds a unit alone adds at most the
//! sum of the factors to one item, *whatever the noise made it do*, since it never gives an item more than 1 in a round. The noise of different items is independent, so that with at most `cap` such items none passes
//! with probability (1 − p)^cap ≥ 1 − δ, p being the tail of the summed noise beyond threshold − that bound.

use mechanisms::{PrivacyRng, Purpose, Stream};

use super::histogram::{ONE, even_weight, noise};
use super::sips::Found;
use super::threshold::quantile;
use super::{ReleaseConfig, ReleaseError};
use crate::count::UnitItems;

/// Round r asks of an item that its evidence so far be at least this many standard deviations times r above nothing.
const DOUBT: f64 = 0.375;

/// The last round's part of δ; the others share the rest.
const LAST_DELTA: f64 = 0.7;

/// How much a weight of round r tells, beside its noise: later rounds share among fewer items.
fn trust(round: usize) -> f64 {
    1.0 + round as f64
}

/// The noisy weights of all rounds so far.
struct Evidence {
    /// Sum by item, over the rounds, of factor × noisy weight.
    sums: Vec<f64>,
    /// What every unit-of-norm's worth of weight in one item, each round, adds.
    factors: f64,
    /// Of the noise in a sum.
    variance: f64,
}

impl Evidence {
    /// Accounts for another round, with noise of σ in multiples of ONE; the factor for its weights.
    fn another(&mut self, round: usize, sigma: f64) -> f64 {
        let factor = trust(round) / (sigma * sigma);
        self.factors += factor;
        self.variance += (factor * sigma).powi(2);
        factor
    }

    /// What a sum must reach, after `round`.
    fn threshold(&self, config: &ReleaseConfig, round: usize) -> f64 {
        let noise = self.variance.sqrt() * quantile(config.delta_of_round(round), config.cap());
        // A discrete draw lies at most one fixed-point unit beyond the normal one; the rest is rounding.
        (self.factors + noise + self.factors / ONE as f64) * (1.0 + 1e-12)
    }
}

/// The part of the whole threshold δ that `round` may use.
pub(super) fn delta_share(round: usize, rounds: usize) -> f64 {
    match rounds {
        1 => 1.0,
        _ if round + 1 == rounds => LAST_DELTA,
        _ => (1.0 - LAST_DELTA) / (rounds - 1) as f64,
    }
}

/// The first round's threshold, in weights.
pub(super) fn first_threshold(config: &ReleaseConfig) -> Result<f64, ReleaseError> {
    let mut evidence = Evidence { sums: Vec::new(), factors: 0.0, variance: 0.0 };
    let sigma = noise(config.round_noise_multiplier(0))?.sigma() as f64 / ONE as f64;
    evidence.another(0, sigma);
    Ok(evidence.threshold(config, 0) / evidence.factors)
}

pub(super) fn rounds(
    items: &UnitItems,
    mut found: Found,
    config: &ReleaseConfig,
    rng: &impl PrivacyRng,
) -> Result<Found, ReleaseError> {
    let mut evidence = Evidence { sums: vec![0.0; items.distinct()], factors: 0.0, variance: 0.0 };
    let mut held = Vec::new();
    for round in 0..config.rounds() {
        let histogram =
            weigh(items, &found, config.cap(), |unit| rng.stream(Purpose::Contribution, unit, 0))?;
        if round == 0 {
            // Items that the cap left out of every unit take no part: noise alone must not release them.
            held = histogram.iter().map(|&weight| weight > 0).collect();
        }
        let noise = noise(config.round_noise_multiplier(round))?;
        let factor = evidence.another(round, noise.sigma() as f64 / ONE as f64);
        let threshold = evidence.threshold(config, round);
        let doubt = DOUBT * (round + 1) as f64 * evidence.variance.sqrt();
        let mut stream = rng.stream(Purpose::HistogramNoise, round as u64, 0);
        for (number, &weight) in histogram.iter().enumerate() {
            if !held[number] || found.weights[number].is_some() {
                continue;
            }
            let noisy = (weight as i64).saturating_add(noise.sample(&mut stream));
            let sum = &mut evidence.sums[number];
            *sum += factor * (noisy as f64 / ONE as f64);
            if *sum >= threshold {
                found.weights[number] = Some((*sum / evidence.factors).max(f64::MIN_POSITIVE));
            }
            // NaN cannot be: all terms are finite.
            found.passed_over[number] = *sum < doubt;
        }
    }
    Ok(found)
}

/// The histogram of one round: even weights over a unit's open items, of norm at most 1.
pub(super) fn weigh(
    items: &UnitItems,
    found: &Found,
    cap: u32,
    stream: impl Fn(u64) -> Stream,
) -> Result<Vec<u64>, ReleaseError> {
    let mut histogram = vec![0_u64; items.distinct()];
    let mut chosen: Vec<(u32, u64)> = Vec::new();
    items.each_unit(|unit, held| {
        found.choose(held, &mut chosen, cap, || stream(unit));
        let weight = even_weight(chosen.len());
        chosen.iter().for_each(|&(item, _)| histogram[item as usize] += weight);
    })?;
    Ok(histogram)
}
