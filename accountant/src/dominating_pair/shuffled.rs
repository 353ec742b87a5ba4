//! Shuffled batches: every epoch cuts the shuffled data set into batches.
//!
//! From above an epoch is charged one Gaussian mechanism of full participation, never the Poisson figure.
//!
//! # Proof note
//! A lower bound needs only one pair of neighbours.
//! * If all other units contribute nothing, an epoch is one of balls in bins: the unit falls into a uniform batch. Under
//!   replace-one let all others contribute −e, the unit e and its replacement −e: the same at half the noise.
//! * Zero-out, all others contribute −e and the unit contributes e (Chua et al. 2024, "How private are DP-SGD implementations?",
//!   <https://arxiv.org/abs/2403.17673>): one batch is displaced by 2 rather than 1. Observing only the largest output costs
//!   the attacker information. Its distribution functions are Φ((m−2)/σ)·Φ(m/σ)^{b−1} and Φ((m−1)/σ)·Φ(m/σ)^{b−1}. The cells of m,
//!   each of them one outcome, include every threshold test of that paper between cells, and compose over epochs (Chua et
//!   al. 2024, "Scalable DP-SGD", <https://arxiv.org/abs/2411.04205>).
//!
//! Of the two zero-out pairs the one with the larger moment is taken; either is valid.

use super::allocation::BallsInBins;
use super::gaussian::Gaussian;
use super::{Builder, Direction, DiscretePair, Law, Mechanism, Outcome, positive};
use crate::numeric::normal;
use crate::{NeighboringRelation, Result};

/// An epoch of shuffled batches.
pub(super) struct Shuffled {
    pub(super) noise_multiplier: f64,
    pub(super) batches: u64,
}

impl Mechanism for Shuffled {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let batches = positive("batches", self.batches as f64)?;
        let request = builder.view.request;
        if !request.is_lower() {
            return Gaussian { noise_multiplier: self.noise_multiplier }.add_to(builder, count);
        }
        let sigma = positive("noise_multiplier", self.noise_multiplier)?;
        // Others that contribute against an exchanged unit are worth half the noise.
        let replaced = request.relation == NeighboringRelation::ReplaceOne;
        let noise_multiplier = if replaced { 0.5 * sigma } else { sigma };
        let alone = BallsInBins { noise_multiplier, bins: self.batches };
        if request.group_size > 1 || !alone.is_computable() {
            // The sum of an epoch's outputs has σ²·batches of noise, whichever batch a unit fell into.
            return Gaussian { noise_multiplier: sigma }.add_part(builder, count as f64 / batches);
        }
        let alone = alone.lower_pair(builder);
        let largest = largest_output(sigma, self.batches, builder.view.direction);
        let zeroed = request.relation == NeighboringRelation::ZeroOut;
        let better = zeroed && largest.log_moment(1.0) > alone.log_moment(1.0);
        builder.pair.push(Law::Discrete(if better { largest } else { alone }), count);
        Ok(())
    }
}

/// Cells of the largest output for each σ.
const CELLS: f64 = 40.0;

/// Relative error of differences of tails.
const SLACK: f64 = 1e-10;

/// The largest of `batches` outputs, one of them displaced by 2 under P and by 1 under Q, or the other way round.
fn largest_output(sigma: f64, batches: u64, direction: Direction) -> DiscretePair {
    let others = batches as f64 - 1.0;
    let log_cdf = |x: f64| normal::log_sf(-x / sigma);
    let tail = |m: f64, shift: f64| -libm::expm1(log_cdf(m - shift) + others * log_cdf(m));
    // Only the upper tail separates the two; the rest is one outcome.
    let width = sigma / CELLS;
    let from = normal::isf((0.5 / batches as f64).max(1e-300)) * sigma - 4.0 * sigma;
    let cells = f64::ceil((2.0 - from.min(0.0) + 12.0 * sigma + libm::fabs(from)) / width).min(4e4);
    let mut outcomes = Vec::new();
    let mut add = |with: f64, without: f64| {
        let (p, q) = if direction == Direction::Add { (without, with) } else { (with, without) };
        if p > 1e-290 && q > 1e-290 {
            outcomes.push(Outcome { loss: libm::log(p / q) - 3.0 * SLACK, mass: p * (1.0 - SLACK) });
        }
    };
    let (mut with, mut without) = (tail(from, 2.0), tail(from, 1.0));
    add(1.0 - with, 1.0 - without);
    let mut index = 1.0;
    while index <= cells {
        let next = from + index * width;
        let (beyond, beyond_without) = (tail(next, 2.0), tail(next, 1.0));
        // A difference that is mostly rounding is left out.
        if with - beyond > 1e-4 * with && without - beyond_without > 1e-4 * without {
            add(with - beyond, without - beyond_without);
        }
        (with, without) = (beyond, beyond_without);
        index += 1.0;
    }
    add(with, without);
    DiscretePair::new(outcomes)
}
