//! A variant of MAD2R by this project: units with few items move weight from items that have more than enough to their
//! other items. The first round biases the weights of the second.
//!
//! # Definition
//! A unit of d items intends to give item i the weight aᵢ: 1/√d each, unless there is a bias. Let m be [`MAX_DEGREE`]. A unit
//! with d ≤ m first gives item i the initial weight gᵢ ≤ 1/d, a part of aᵢ. An item whose initial weights sum to w beyond
//! the limit τ keeps τ and returns the share r = 1 − τ/w of each initial weight. A unit that gets e = Σ rᵢgᵢ back gives each
//! of its items κ·e/m, and then the rest aᵢ − gᵢ. A unit of more than m items gives aᵢ. Here κ = 1 − 1/(2√m), and gᵢ is as
//! large as 2(aᵢ − κ/√m) and aᵢ allow.
//!
//! The bias: an item whose noisy weight w̃ of the first round exceeds the threshold ρ of the second gets the share
//! max([`MIN_BIAS`], ρ/w̃) of an even weight. The weights of the unit's other items grow by a common factor of at most
//! [`MAX_BIAS`] until the norm is 1. Items that will hardly reach ρ, judging by w̃, are passed over.
//!
//! # What is the paper's and what is ours
//! MAD2R is by Chen, Cohen-Addad, Epasto and Zadimoghaddam 2025 (<https://arxiv.org/abs/2502.08878>). Its abstract describes
//! adaptive weights that reroute excess from items far above the threshold, and a second round whose weights are biased by
//! the results of the first. We wrote the form of both without the full text at hand: 1/d first, then 1/√d − 1/d; m = 50; τ
//! two σ above the threshold; rerouted weight discounted by κ; bounds from noisy weights, a share of at least 1/2, a factor
//! of at most 2. Our own are the limit on gᵢ under a bias, the proof, and three choices from measurements: w̃ itself in place
//! of a lower bound one σ below it, [`SKIP_SIGMAS`] = 2 in place of 3, and round shares of 1:4 in place of 1:9.
//!
//! # Sensitivity
//! The aᵢ and gᵢ of a unit depend on its own items and on noisy weights alone. A unit with more than m items adds its own
//! weights and changes nothing else, and they have norm at most 1. Now add a unit with d ≤ m items. Let xᵢ be the share of its
//! initial weight gᵢ that item i cuts off, and X = Σ xᵢgᵢ: the total excess beyond τ grows by X. The excess as a function of
//! w is convex and 0 at 0, so xᵢ ≥ rᵢ and the unit's own e is at most X. The rest, X − e, returns to other units. Each of
//! those spreads its part, times κ/m, over at most m items, so together they move the histogram by at most B(X − e) with
//! B = κ/√m. The unit's own part is aᵢ + κe/m − xᵢgᵢ for item i. Since (y − xg)² ≤ y² − x(2yg − g²) for x in 0..1, its norm
//! is at most 1 − B(X − e) if the following holds, where the last square's quadratic term is left out:
//!
//! Σ(aᵢ + κe/m)² − Σ xᵢgᵢ(2aᵢ + 2κe/m − gᵢ) ≤ 1 − 2B(X − e).
//!
//! The left side less the right side is convex in e, and the bound is above 0 because X ≤ 1 and B < 1. At e = 0 the difference
//! is at most −Σ xᵢgᵢ(2aᵢ − gᵢ − 2B), which is at most 0 for gᵢ ≤ 2(aᵢ − B). At e = X the same sum of 2B comes from
//! 2(κX/m)Σaᵢ ≤ 2BX, as Σaᵢ ≤ √d ≤ √m, and the rest, (κX/m)²d − 2κX²/m, is at most 0. So both parts together have norm at
//! most 1.
//!
//! Without a bias the condition allows all of 1/d (2/√t − 1/t falls for t ≥ 1, and κ makes it 2B at t = m). For a reduced
//! item it allows less, or nothing: its weight then stays where it is. κ = 1 would be too much: let a unit have m items, half
//! of them so far beyond τ that nearly all is returned. It gives m/2 items 1/√m + 1/(2m) and the others 1/√m − 1/(2m), which
//! has norm √(1 + 1/(4m)).
//!
//! # Largest weight of each of k items that only one unit holds
//! With d ≥ k items and without a bias it is 1/√d + κ(1 − k/d)/m. This is at most 1/√k, since (1 + √(k/d))·√k ≤ 2√m ≤ m for
//! m ≥ 4. With a bias, b = [`MAX_BIAS`] replaces the first 1: at most b/√k likewise, and at most 1 as any part of the unit's
//! own weights. The threshold of a biased round holds for these.
//!
//! # Rounding
//! Returned weight is summed in multiples of 2⁻⁴⁴, so that the rounding errors of [`MAX_UNITS`](crate::release::fixed_point::MAX_UNITS) units stay below 2⁻¹⁷. All
//! weights are 1 − 2⁻⁸ of the above, which leaves room for these errors and for the last rounding (2⁻⁹).

use mechanisms::Stream;

use super::{Hidden, Round, RoundMethod};
use crate::release::config::ReleaseConfig;
use crate::release::error::ReleaseError;
use crate::release::fixed_point::{ONE, even_weight};
use crate::release::selection::Selection;
use crate::release::threshold::Threshold;

/// The most items of a unit that adapts; m of the module's definition.
const MAX_DEGREE: usize = 50;

/// The distance above the threshold, in σ, beyond which weight is excess.
const EXCESS_SIGMAS: f64 = 2.0;

/// The distance below the threshold of the second round, in σ of the first, beyond which an item gets no weight.
const SKIP_SIGMAS: f64 = 2.0;

/// The least factor for the even weight of an item that has enough.
const MIN_BIAS: f64 = 0.5;

/// The largest factor by which a bias raises an even weight.
const MAX_BIAS: f64 = 2.0;

/// The number of bits below ONE's unit in which returned weight is summed.
const EXTRA_BITS: u32 = 20;

pub(super) struct Mad2r {
    pub(super) cap: u32,
    /// τ: the weight beyond which an item returns initial weights.
    pub(super) limit: u64,
    /// The factor for an even weight of each item; below 1 for an item that has enough. Empty in the first round, where
    /// nothing is known.
    pub(super) bias: Vec<f64>,
    pub(super) threshold: i64,
    pub(super) next: Option<NextRound>,
}

/// The figures with which the noisy weights of one round decide the weights of the next.
pub(super) struct NextRound {
    /// The noisy weight below which an item will hardly reach the next threshold.
    skip_below: f64,
    /// ρ, the threshold of the next round.
    threshold: f64,
}

impl NextRound {
    /// Returns the figures for noise of σ in this round, and the threshold of the next.
    pub(super) fn new(sigma: u64, threshold: i64) -> Self {
        let threshold = threshold as f64;
        Self { skip_below: threshold - SKIP_SIGMAS * sigma as f64, threshold }
    }

    fn skips(&self, noisy: i64) -> bool {
        (noisy as f64) < self.skip_below
    }

    /// Returns the factor for an item's weight in the next round: threshold / `noisy`, at least `MIN_BIAS`, where its
    /// noisy weight exceeds the threshold; else 1.
    pub(super) fn share(&self, noisy: i64) -> f64 {
        let noisy = noisy as f64;
        if noisy > self.threshold { (self.threshold / noisy).max(MIN_BIAS) } else { 1.0 }
    }
}

impl Mad2r {
    pub(super) fn new(cap: u32) -> Self {
        Self { cap, limit: 0, bias: Vec::new(), threshold: 0, next: None }
    }

    /// Returns the histogram of one round.
    pub(super) fn weigh(
        &self,
        Hidden { items, selection }: Hidden<'_>,
        stream: impl Fn(u64) -> Stream,
    ) -> Result<Vec<u64>, ReleaseError> {
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut initial = vec![0_u64; items.distinct()];
        items.each_unit(|unit, held| {
            selection.chosen_items(held, &mut open, self.cap, || stream(unit));
            self.set_intended_weights(&mut open);
            let degree = open.len();
            open.iter().for_each(|&(item, weight)| initial[item as usize] += initial_weight(weight, degree));
        })?;
        // The share of each initial weight that an item beyond the limit returns.
        let returned_share = |weight: u64| match weight.checked_sub(self.limit) {
            Some(excess) if excess > 0 => excess as f64 / weight as f64,
            _ => 0.0,
        };
        let returned: Vec<f64> = initial.iter().map(|&weight| returned_share(weight)).collect();
        let mut histogram: Vec<u64> = initial.into_iter().map(|weight| weight.min(self.limit)).collect();
        let mut rerouted = vec![0_u64; items.distinct()];
        items.each_unit(|unit, held| {
            selection.chosen_items(held, &mut open, self.cap, || stream(unit));
            self.set_intended_weights(&mut open);
            let degree = open.len();
            let back = |&(item, weight): &(u64, u64)| {
                returned[item as usize] * initial_weight(weight, degree) as f64
            };
            let share = rerouted_weight(open.iter().map(back).sum());
            for &(item, weight) in &open {
                histogram[item as usize] += weight - initial_weight(weight, degree);
                rerouted[item as usize] += share;
            }
        })?;
        for (weight, rerouted) in histogram.iter_mut().zip(rerouted) {
            *weight += rerouted >> EXTRA_BITS;
            *weight -= weight.div_ceil(256);
        }
        Ok(histogram)
    }

    /// Replaces the counts of a unit's items by the weights aᵢ that it intends to give them, of L2 norm at most ONE.
    fn set_intended_weights(&self, open: &mut [(u64, u64)]) {
        let even = even_weight(open.len()) as f64;
        // The sum of squares that the reduced items free, in units of an even weight's square, and the number of the
        // other items.
        let (mut freed, mut others) = (0.0, 0.0);
        for &(item, _) in open.iter() {
            let share = self.share(item);
            freed += 1.0 - share * share;
            others += f64::from(share >= 1.0);
        }
        // The last term outweighs the rounding errors. Without other items the root is infinite, and used for none.
        let factor = (1.0 + freed / others).sqrt().min(MAX_BIAS) * (1.0 - 1e-12);
        for (item, weight) in open {
            let share = self.share(*item);
            *weight = (even * if share < 1.0 { share } else { factor }) as u64;
        }
    }

    /// Returns the factor for the even weight of an item; 1 where nothing is known.
    fn share(&self, item: u64) -> f64 {
        self.bias.get(item as usize).copied().unwrap_or(1.0)
    }
}

/// Returns the threshold of a round. Only the first has no bias.
fn threshold(config: &ReleaseConfig, round: usize) -> Threshold {
    Threshold { max_bias: if round > 0 { MAX_BIAS } else { 1.0 }, ..config.round_threshold(round) }
}

impl RoundMethod for Mad2r {
    fn histogram(&mut self, hidden: Hidden<'_>, round: &Round<'_>) -> Result<Vec<u64>, ReleaseError> {
        self.threshold = threshold(round.config, round.index).fixed_point()?;
        self.limit = self.threshold.max(0) as u64 + (EXCESS_SIGMAS * round.sigma as f64) as u64;
        let histogram = self.weigh(hidden, |unit| round.same_choice(unit))?;
        self.next = None;
        if !round.is_last() {
            let next = threshold(round.config, round.index + 1).fixed_point()?;
            self.next = Some(NextRound::new(round.sigma, next));
            self.bias = vec![1.0; histogram.len()];
        }
        Ok(histogram)
    }

    fn update(&mut self, item: usize, noisy: i64, round: &Round<'_>, selection: &mut Selection) {
        if noisy >= self.threshold {
            selection.release(item, round.config.in_counts(noisy));
        }
        if let Some(next) = &self.next {
            selection.passed_over[item] = next.skips(noisy);
            self.bias[item] = next.share(noisy);
        }
    }
}

/// Returns the initial weight gᵢ for the intended weight aᵢ.
fn initial_weight(weight: u64, degree: usize) -> u64 {
    if degree > MAX_DEGREE {
        return 0;
    }
    let bound = (discount() / (MAX_DEGREE as f64).sqrt() * ONE as f64).ceil() as u64;
    (ONE / degree as u64).min(weight).min(2 * weight.saturating_sub(bound))
}

/// Returns the discount κ.
fn discount() -> f64 {
    1.0 - 0.5 / (MAX_DEGREE as f64).sqrt()
}

/// Returns κ·e/m in the finer unit, for e in multiples of ONE⁻¹.
fn rerouted_weight(returned: f64) -> u64 {
    (returned * (1_u64 << EXTRA_BITS) as f64 * discount() / MAX_DEGREE as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    /// Returns the bound of the module's proof: the norm of a unit's own part, plus what its initial weights move
    /// elsewhere. `cut` has the share xᵢ of each initial weight that is cut off, and e = `kept`·X.
    fn moved(open: &[(u64, u64)], cut: &[f64], kept: f64, initial: impl Fn(u64) -> u64) -> f64 {
        let one = ONE as f64;
        let gone: Vec<f64> = open.iter().zip(cut).map(|(o, x)| x * initial(o.1) as f64 / one).collect();
        let x: f64 = gone.iter().sum();
        let rerouted = discount() * kept * x / MAX_DEGREE as f64;
        let own: f64 =
            open.iter().zip(&gone).map(|(o, gone)| (o.1 as f64 / one + rerouted - gone).powi(2)).sum();
        own.sqrt() + discount() / (MAX_DEGREE as f64).sqrt() * (1.0 - kept) * x
    }

    #[test]
    fn a_biased_unit_moves_the_histogram_by_at_most_one_and_nearly_that_however_its_weights_are_cut() {
        let mut s = TestRng::from_seed(4).stream(Purpose::Data, 0, 0);
        let (mut largest, mut careless) = (0.0_f64, 0.0_f64);
        for _ in 0..20_000 {
            let degree = 1 + s.below(MAX_DEGREE as u64) as usize;
            let kinds = s.below(4);
            let bias =
                (0..degree).map(|_| [1.0, MIN_BIAS, 0.8][s.below(1 + kinds.min(2)) as usize]).collect();
            let method = Mad2r { bias, ..Mad2r::new(100) };
            let mut open: Vec<(u64, u64)> = (0..degree as u64).map(|item| (item, 1)).collect();
            method.set_intended_weights(&mut open);
            let square: u128 = open.iter().map(|o| u128::from(o.1) * u128::from(o.1)).sum();
            assert!(square <= u128::from(ONE) * u128::from(ONE));
            assert!(open.iter().all(|o| o.1 as f64 <= MAX_BIAS * even_weight(degree) as f64));
            // The weights to cut are chosen by chance, or are those of the reduced items, which are in demand.
            let cut: Vec<f64> = match kinds {
                3 => open.iter().map(|o| f64::from(method.share(o.0) < 1.0)).collect(),
                _ => (0..degree).map(|_| s.below(3) as f64 / 2.0).collect(),
            };
            let kept = s.below(3) as f64 / 2.0;
            largest = largest.max(moved(&open, &cut, kept, |weight| initial_weight(weight, degree)));
            careless = careless.max(moved(&open, &cut, kept, |_| ONE / degree as u64));
        }
        assert!(largest <= 1.0 + 1e-6 && largest > 0.999, "{largest}");
        assert!(
            careless > 1.005,
            "initial weights of 1/d under a bias move more than 1, and the test sees it: {careless}"
        );
    }
}
