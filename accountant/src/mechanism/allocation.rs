//! Balls in bins: every unit falls into one of b batches of an epoch at random.
//!
//! # Proof note
//! Given all other units and the outputs so far, an epoch with the unit is the uniform mixture over i of normal laws
//! displaced by the unit's contribution in step i alone, an epoch without it is the normal law. Chua et al. 2024 (and
//! Feldman & Shenfeld 2025): the pair P = (1/b)Σᵢ N(eᵢ, σ²I), Q = N(0, σ²I) dominates, also where queries are chosen
//! adaptively. There P/Q = A = (L₁ + … + L_b)/b, where under Q the Lᵢ are independent and log-normal with mean 1:
//! log L = z/σ − 1/(2σ²), z standard normal.
//!
//! E_P and E_Q of a hockey stick, either way round, are E_Q of a convex function of A. What is larger in convex order
//! therefore costs more in both directions, and stays larger under sums and products of independent factors, hence
//! under composition. *Above*: a value between two points of a geometric grid is split onto both so that its mean
//! stays; what is too far out goes to 0 or, with P-mass only, to infinity. *Below*: values are merged into their mean.
//! `above` and `below` add the laws of 1, 2, 4, … log-normals on grids that get finer as the mean gets sharper.
//!
//! Replace-one: with independent noises of σ/√2 on each, releasing the sum with the unit alone and the sum with its
//! replacement alone lets anybody add the two. So the pair of σ/√2 once each way bounds from above (two Gaussians of
//! displacement 1 and noise σ/√2 are one of displacement 2 and noise σ); removal alone bounds from below.

use crate::{AccountantError, NeighboringRelation};

use super::above::Above;
use super::below::Below;
use super::lower::{Lowered, Question, Side, positive};
use super::tabulated::{Outcome, Tabulated};

const EVENT: &str = "balls_in_bins_gaussian";

/// Beyond this many bins rounding could show.
const MOST_BINS: u64 = 1 << 30;

/// P-mass or Q-mass that a law may leave out at either end.
pub(super) const TAIL: f64 = 1e-24;

/// Points of the longest grid: a longer one is not refined further, which costs tightness only.
pub(super) const LONGEST: usize = 8192;

/// The first grid's step, in standard deviations of L and at most.
const FINENESS: (f64, f64) = (0.025, 0.05);

/// An epoch's pair.
#[derive(Clone, Debug)]
struct Epoch {
    /// With the unit against without, and the other way round.
    removed: Tabulated,
    added: Tabulated,
    /// P-mass of infinite loss in either direction.
    infinite: (f64, f64),
}

/// Epochs whose pair is known, with σ, bins, and whether it bounds from below.
#[derive(Debug, Default)]
pub(super) struct Memory(Vec<((f64, u64, bool), Epoch)>);

impl Memory {
    fn epoch(&mut self, sigma: f64, bins: u64, below: bool) -> Epoch {
        let key = (sigma, bins, below);
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == key) {
            return known.clone();
        }
        let epoch = if below { from_below(sigma, bins) } else { from_above(sigma, bins) };
        self.0.push((key, epoch.clone()));
        epoch
    }
}

/// Adds `count` epochs of `bins` steps.
pub(super) fn push(
    (out, memory): (&mut Lowered, &mut Memory),
    (side, question): (Side, Question),
    noise_multiplier: f64,
    bins: u64,
    count: u64,
) -> Result<(), AccountantError> {
    if question.group > 1 {
        return Err(AccountantError::Unsupported { event: EVENT, question: "groups of several units" });
    }
    let sigma = positive("noise_multiplier", noise_multiplier)?;
    if !(1..=MOST_BINS).contains(&bins) {
        return Err(AccountantError::OutOfRange {
            name: "batches",
            value: bins as f64,
            allowed: "1 to 2^30 an epoch",
        });
    }
    if bins == 1 {
        let moves = if question.relation == NeighboringRelation::ReplaceOne { 2.0 } else { 1.0 };
        out.mu_squared += moves * moves / (sigma * sigma) * count as f64;
        return Ok(());
    }
    if !(LEAST_NOISE..=MOST_NOISE).contains(&sigma) {
        return Err(AccountantError::OutOfRange {
            name: "noise_multiplier",
            value: sigma,
            allowed: "0.05 to 1e6 for balls in bins",
        });
    }
    if count == 0 {
        return Ok(());
    }
    let both = side == Side::Replace && !question.optimistic;
    // A smaller σ costs more.
    let used =
        if both { sigma * core::f64::consts::FRAC_1_SQRT_2 * (1.0 - 4.0 * f64::EPSILON) } else { sigma };
    let epoch = memory.epoch(used, bins, question.optimistic);
    if both || side != Side::Add {
        out.push_table(epoch.removed.clone(), count);
        out.failure += epoch.infinite.0 * count as f64;
    }
    if both || side == Side::Add {
        out.push_table(epoch.added, count);
        out.failure += epoch.infinite.1 * count as f64;
    }
    Ok(())
}

/// Whether an epoch of `bins` steps with noise `sigma` has a table.
pub(super) fn holds(sigma: f64, bins: u64) -> bool {
    (2..=MOST_BINS).contains(&bins) && (LEAST_NOISE..=MOST_NOISE).contains(&sigma)
}

/// Where a float holds every factor.
const LEAST_NOISE: f64 = 0.05;
const MOST_NOISE: f64 = 1e6;

/// The first grid's step.
fn first_step(sigma: f64) -> f64 {
    (FINENESS.0 * libm::sqrt(libm::expm1(1.0 / (sigma * sigma)))).min(FINENESS.1)
}

/// What `bins` laws, each summed with at most 2·[`LONGEST`] rounded terms, may be off by.
fn rounding(bins: u64) -> f64 {
    bins as f64 * (2.0 * LONGEST as f64 + 64.0) * f64::EPSILON
}

fn from_above(sigma: f64, bins: u64) -> Epoch {
    let law = sum(bins, Above::one(sigma, first_step(sigma)));
    let more = 1.0 + rounding(bins);
    let points = || law.points();
    let removed = points().map(|(loss, mass)| Outcome { loss, mass: mass * libm::exp(loss) * more });
    let added = points().map(|(loss, mass)| Outcome { loss: -loss, mass: mass * more });
    Epoch {
        removed: Tabulated::new(removed.collect()),
        added: Tabulated::new(added.collect()),
        infinite: (law.infinite * more, law.zero * more),
    }
}

fn from_below(sigma: f64, bins: u64) -> Epoch {
    let law = sum(bins, Below::one(sigma, first_step(sigma)));
    let doubt = rounding(bins);
    let less = 1.0 - doubt;
    // Mass and mean are rounded apart from each other.
    let removed = law
        .points()
        .map(|(mass, moment)| Outcome { loss: libm::log(moment / mass) - 3.0 * doubt, mass: moment * less });
    let added = law
        .points()
        .map(|(mass, moment)| Outcome { loss: libm::log(mass / moment) - 3.0 * doubt, mass: mass * less });
    Epoch {
        removed: Tabulated::new(removed.collect()),
        added: Tabulated::new(added.collect()),
        infinite: (0.0, 0.0),
    }
}

/// The law of a mean of independent factors.
pub(super) trait Mean: Sized + Clone {
    /// The weighted mean with `other`, on a grid `refine` times as fine; both on the same grid.
    fn mean(&self, other: &Self, weights: (f64, f64), refine: usize) -> Self;
    /// The mean with an independent copy of itself.
    fn doubled(&self, refine: usize) -> Self;
    /// The same law on a grid `times` as fine.
    fn refined(&self, times: usize) -> Self;
    /// Points of the grid.
    fn length(&self) -> usize;
}

/// The law of the mean of `bins` factors, by the binary digits of `bins`.
fn sum<L: Mean>(bins: u64, one: L) -> L {
    let (mut power, mut size) = (one, 1_u64);
    let mut found: Option<(L, u64)> = None;
    let mut level = 0;
    loop {
        if bins & size != 0 {
            found = Some(match found {
                None => (power.clone(), size),
                Some((law, items)) => {
                    let total = (items + size) as f64;
                    (law.mean(&power, (items as f64 / total, size as f64 / total), 1), items + size)
                }
            });
        }
        size *= 2;
        if size > bins {
            break;
        }
        level += 1;
        // The mean gets sharper by √2 a level.
        let refine = if level % 2 == 0 && power.length() <= LONGEST / 2 { 2 } else { 1 };
        power = power.doubled(refine);
        found = found.map(|(law, items)| (law.refined(refine), items));
    }
    found.map_or(power, |(law, _)| law)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// log E_Q[A^order]: (1/b^n)·n!·[tⁿ] (Σ_k e^{k(k−1)/2σ²}·t^k/k!)^b.
    fn log_moment(sigma: f64, bins: u64, order: usize) -> f64 {
        let single: Vec<f64> = (0..=order)
            .scan(1.0, |factorial, k| {
                let k = k as f64;
                *factorial *= k.max(1.0);
                Some((0.5 * k * (k - 1.0) / (sigma * sigma)).exp() / *factorial)
            })
            .collect();
        let mut power = vec![0.0; order + 1];
        power[0] = 1.0;
        for _ in 0..bins {
            power = (0..=order).map(|n| (0..=n).map(|k| power[k] * single[n - k]).sum()).collect();
        }
        let factorial: f64 = (1..=order).map(|k| k as f64 / bins as f64).product();
        (power[order] * factorial).ln()
    }

    #[test]
    fn moments_of_whole_orders_lie_between_those_of_both_tables() {
        for (sigma, bins) in [(1.0, 2), (1.0, 37), (0.6, 100), (2.5, 1000)] {
            let (above, below) = (from_above(sigma, bins), from_below(sigma, bins));
            assert!(above.infinite.0 < 1e-20 && above.infinite.1 < 1e-20);
            // Far beyond, a moment sees the tail that went to infinity.
            for order in [2, 3, 5].into_iter().filter(|order| *order as f64 <= 5.0 * sigma) {
                let exact = log_moment(sigma, bins, order);
                let power = (order - 1) as f64;
                let (upper, lower) = (above.removed.log_moment(power), below.removed.log_moment(power));
                assert!(
                    lower <= exact * (1.0 + 1e-9) && upper >= exact * (1.0 - 1e-9),
                    "{lower} {exact} {upper}"
                );
                assert!(
                    upper - lower <= 1e-2 * exact,
                    "σ = {sigma}, {bins} bins, order {order}: {lower} {upper}"
                );
                // E_Q[A⁻¹·A^{n+1}]: the other direction's table holds the same law.
                let mirrored = above.added.log_moment(-(order as f64));
                assert!((mirrored - upper).abs() <= 1e-7 * (1.0 + upper), "{mirrored} {upper}");
            }
        }
    }
}
