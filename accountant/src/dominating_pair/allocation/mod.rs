//! Balls in bins: every unit falls into one of b batches of an epoch at random.
//!
//! # Proof note
//! Given all other units and the outputs so far, an epoch with the unit is the uniform mixture over i of normal laws
//! displaced by the unit's contribution in step i alone; an epoch without it is the normal law. The pair
//! P = (1/b)Σᵢ N(eᵢ, σ²I), Q = N(0, σ²I) dominates, also for queries that are chosen adaptively (Chua et al. 2024,
//! <https://arxiv.org/abs/2412.16802>; Feldman & Shenfeld 2025, <https://arxiv.org/abs/2502.08202>). For this pair
//! P/Q = A = (L₁ + … + L_b)/b, where under Q the Lᵢ are independent and log-normal with mean 1: log L = z/σ − 1/(2σ²) with
//! z standard normal.
//!
//! The hockey-stick divergence in either direction is E_Q of a convex function of A. A law of A that is larger in convex order
//! therefore costs more in both directions, and stays larger under sums and products of independent factors, hence
//! under composition. *Upper law*: a value between two points of a geometric grid is split onto both with its mean preserved;
//! what lies too far out goes to 0 or, with P-mass only, to infinity. *Lower law*: values are merged into their mean.
//! `upper` and `lower` add the laws of 1, 2, 4, … log-normals on grids that get finer as the mean gets sharper.
//!
//! Replace-one: release the sum with the unit alone and the sum with its replacement alone, each with independent noise of
//! σ/√2; anybody can add the two. So the pair of σ/√2, once in each direction, bounds from above. (Two Gaussians of
//! displacement 1 and noise σ/√2 are one of displacement 2 and noise σ.) From below: let the unit and its replacement be orthogonal and
//! all others contribute nothing. Along the one the outputs are those of removal, along the other those of addition, independently:
//! the pair of σ, once in each direction. Or let them be opposite: `statistic`.
//!
//! The exact pair under replace-one is P = (1/b)Σᵢ N(eᵢ, σ²I), Q = (1/b)Σᵢ N(−eᵢ, σ²I). Over the density of N(0, σ²I), the step of bin i has
//! the log-normal factors p and p′ of unit and replacement. A divergence is E[F], with F convex and homogeneous in (Σp, Σp′) and of
//! negative mixed derivative; so it is after each step, given the outputs so far. By Price's theorem E[F] grows with ‖x‖ and ‖x′‖ and as x·x′
//! falls. Its two sums depend on each other, so that a law of one mean does not give it: from below, one statistic of the outputs does nearly, and from
//! above no tight law of both sums is computed, so that the bounds do not meet.

mod lower;
mod statistic;
mod strided_sums;
mod upper;

use super::{Builder, Direction, DiscretePair, DominatingPair, Law, Mechanism, Outcome, positive};
use crate::{AccountantError, Result};
use lower::LowerLaw;
use upper::UpperLaw;

const EVENT: &str = "balls_in_bins_gaussian";

/// Largest number of bins. Beyond it, rounding could show.
const MAX_BINS: u64 = 1 << 30;

/// P-mass or Q-mass that a law may leave out at either end.
const TAIL: f64 = 1e-24;

/// Points of the longest grid. A longer one is not refined further, which costs tightness only.
const LONGEST: usize = 8192;

/// The first grid's step: at most this many standard deviations of L, and at most `WIDEST_STEP`.
const STEP_PER_DEVIATION: f64 = 0.025;
const WIDEST_STEP: f64 = 0.05;

/// An epoch's pair in both directions.
#[derive(Clone, Debug)]
struct Epoch {
    remove: OneWay,
    add: OneWay,
}

/// An epoch's pair in one direction.
#[derive(Clone, Debug)]
struct OneWay {
    pair: DiscretePair,
    /// P-mass of infinite loss.
    infinite: f64,
}

/// An epoch: its noise, and the number of bins into which a unit may fall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BallsInBins {
    pub(super) noise_multiplier: f64,
    pub(super) bins: u64,
}

/// The epochs whose pairs are known, from below (`true`) or from above.
#[derive(Debug, Default)]
pub(super) struct EpochCache(Vec<(BallsInBins, bool, Epoch)>);

impl EpochCache {
    fn epoch(&mut self, step: BallsInBins, from_below: bool) -> Epoch {
        let same = |known: &&(BallsInBins, bool, Epoch)| known.0 == step && known.1 == from_below;
        if let Some((_, _, known)) = self.0.iter().find(same) {
            return known.clone();
        }
        let BallsInBins { noise_multiplier, bins } = step;
        let epoch = if from_below {
            lower_epoch(noise_multiplier, bins)
        } else {
            upper_epoch(noise_multiplier, bins)
        };
        self.0.push((step, from_below, epoch.clone()));
        epoch
    }
}

impl Mechanism for BallsInBins {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let (view, pair) = (builder.view, &mut builder.pair);
        view.single_unit(EVENT)?;
        let sigma = positive("noise_multiplier", self.noise_multiplier)?;
        if !(1..=MAX_BINS).contains(&self.bins) {
            return Err(AccountantError::out_of_range("batches", self.bins as f64, "1 to 2^30 an epoch"));
        }
        if self.bins == 1 {
            let displacement = view.displacement();
            pair.push_mu_squared(displacement * displacement / (sigma * sigma) * count as f64);
            return Ok(());
        }
        if !self.is_computable() {
            let allowed = "0.05 to 1e6 for balls in bins";
            return Err(AccountantError::out_of_range("noise_multiplier", sigma, allowed));
        }
        if count == 0 {
            return Ok(());
        }
        let from_below = view.request.is_lower();
        let both_ways = view.direction == Direction::Replace;
        if both_ways
            && from_below
            && view.request.alternative.is_some()
            && let Some(law) = statistic::lower_exchange(sigma, self.bins)
        {
            pair.push(Law::Discrete(law), count);
            return Ok(());
        }
        let used = if both_ways && !from_below {
            // A smaller σ costs more.
            sigma * core::f64::consts::FRAC_1_SQRT_2 * (1.0 - 4.0 * f64::EPSILON)
        } else {
            sigma
        };
        let epoch = builder.epochs.epoch(Self { noise_multiplier: used, ..self }, from_below);
        if both_ways || view.direction != Direction::Add {
            push(pair, epoch.remove, count);
        }
        if both_ways || view.direction == Direction::Add {
            push(pair, epoch.add, count);
        }
        Ok(())
    }
}

impl BallsInBins {
    /// Whether the epoch has several bins and is in the range of this computation.
    pub(super) fn is_computable(self) -> bool {
        (2..=MAX_BINS).contains(&self.bins) && (LEAST_NOISE..=MAX_NOISE).contains(&self.noise_multiplier)
    }

    /// The discrete pair of one epoch from below.
    pub(super) fn lower_pair(self, builder: &mut Builder<'_>) -> DiscretePair {
        let known = builder.epochs.epoch(self, true);
        if builder.view.direction == Direction::Add { known.add.pair } else { known.remove.pair }
    }
}

fn push(pair: &mut DominatingPair, epoch: OneWay, count: u64) {
    pair.push(Law::Discrete(epoch.pair), count);
    pair.push_failure(epoch.infinite, count);
}

/// Smallest noise multiplier for which a float holds every factor.
const LEAST_NOISE: f64 = 0.05;
const MAX_NOISE: f64 = 1e6;

/// The first grid's step.
fn first_step(sigma: f64) -> f64 {
    (STEP_PER_DEVIATION * f64::sqrt(libm::expm1(1.0 / (sigma * sigma)))).min(WIDEST_STEP)
}

/// Relative rounding error of `bins` laws, each summed from at most 2·[`LONGEST`] terms.
fn rounding(bins: u64) -> f64 {
    bins as f64 * (2.0 * LONGEST as f64 + 64.0) * f64::EPSILON
}

fn upper_epoch(sigma: f64, bins: u64) -> Epoch {
    let law = law_of_mean(bins, UpperLaw::one(sigma, first_step(sigma)));
    let more = 1.0 + rounding(bins);
    let points = || law.points();
    let remove = points().map(|(loss, mass)| Outcome { loss, mass: mass * libm::exp(loss) * more });
    let add = points().map(|(loss, mass)| Outcome { loss: -loss, mass: mass * more });
    Epoch {
        remove: OneWay { pair: DiscretePair::new(remove.collect()), infinite: law.infinite * more },
        add: OneWay { pair: DiscretePair::new(add.collect()), infinite: law.zero * more },
    }
}

fn lower_epoch(sigma: f64, bins: u64) -> Epoch {
    let law = law_of_mean(bins, LowerLaw::one(sigma, first_step(sigma)));
    let error = rounding(bins);
    let less = 1.0 - error;
    // Mass and mean are rounded separately.
    let remove = law
        .points()
        .map(|(mass, moment)| Outcome { loss: libm::log(moment / mass) - 3.0 * error, mass: moment * less });
    let add = law
        .points()
        .map(|(mass, moment)| Outcome { loss: libm::log(mass / moment) - 3.0 * error, mass: mass * less });
    Epoch {
        remove: OneWay { pair: DiscretePair::new(remove.collect()), infinite: 0.0 },
        add: OneWay { pair: DiscretePair::new(add.collect()), infinite: 0.0 },
    }
}

/// Weights of a mean of two.
#[derive(Clone, Copy)]
struct Weights {
    one: f64,
    other: f64,
}

/// The law of a mean of independent factors.
trait MeanLaw: Sized + Clone {
    /// The weighted mean with `other`, on a grid `refine` times as fine; both on the same grid. If
    /// `twice` is set, `other` is an independent copy of the law, and each pair of points is
    /// counted twice.
    fn combined(&self, other: &Self, weights: Weights, refine: usize, twice: bool) -> Self;

    /// The weighted mean with another law.
    fn mean(&self, other: &Self, weights: Weights, refine: usize) -> Self {
        self.combined(other, weights, refine, false)
    }

    /// The mean with an independent copy of itself.
    fn doubled(&self, refine: usize) -> Self {
        self.combined(self, Weights { one: 0.5, other: 0.5 }, refine, true)
    }

    /// Returns the same law on a grid `times` as fine.
    fn refined(&self, times: usize) -> Self;
    /// Points of the grid.
    fn length(&self) -> usize;
}

/// The law of the mean of `bins` factors, by the binary digits of `bins`.
fn law_of_mean<L: MeanLaw>(bins: u64, one: L) -> L {
    let (mut power, mut size) = (one, 1_u64);
    let mut found: Option<(L, u64)> = None;
    let mut level = 0;
    loop {
        if bins & size != 0 {
            found = Some(match found {
                None => (power.clone(), size),
                Some((law, items)) => {
                    let total = (items + size) as f64;
                    let weights = Weights { one: items as f64 / total, other: size as f64 / total };
                    (law.mean(&power, weights, 1), items + size)
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
            let (above, below) = (upper_epoch(sigma, bins), lower_epoch(sigma, bins));
            assert!(above.remove.infinite < 1e-20 && above.add.infinite < 1e-20);
            // Far beyond the grid, a moment depends on the tail that went to infinity.
            for order in [2, 3, 5].into_iter().filter(|order| *order as f64 <= 5.0 * sigma) {
                let exact = log_moment(sigma, bins, order);
                let power = (order - 1) as f64;
                let (upper, lower) =
                    (above.remove.pair.log_moment(power), below.remove.pair.log_moment(power));
                assert!(
                    lower <= exact * (1.0 + 1e-9) && upper >= exact * (1.0 - 1e-9),
                    "{lower} {exact} {upper}"
                );
                assert!(
                    upper - lower <= 1e-2 * exact,
                    "σ = {sigma}, {bins} bins, order {order}: {lower} {upper}"
                );
                // E_Q[A⁻¹·A^{n+1}]: the other direction's table holds the same law.
                let mirrored = above.add.pair.log_moment(-(order as f64));
                assert!((mirrored - upper).abs() <= 1e-7 * (1.0 + upper), "{mirrored} {upper}");
            }
        }
    }
}
