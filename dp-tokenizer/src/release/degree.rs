//! MaxAdaptiveDegree: units of few items take weight back from items that have more than enough. In a second round, what
//! the first saw biases the weights.
//!
//! A unit of d items means to give item i the weight aᵢ: 1/√d each, unless there is a bias. Where d ≤ m it first gives
//! no more than gᵢ ≤ 1/d of that. An item beyond the limit τ keeps τ and sends the share r = 1 − τ/w of each first gift
//! back; a unit that gets e = Σ rᵢgᵢ back gives each of its items κ·e/m, and each aᵢ − gᵢ on top. Units of more than m
//! items give aᵢ. Here m is [`MAX_DEGREE`], κ = 1 − 1/(2√m), and gᵢ as large as 2(aᵢ − κ/√m) and aᵢ allow.
//!
//! The bias: an item whose noisy weight w̃ of the first round lies beyond the threshold ρ of the second gets the share
//! max([`LEAST`], ρ/w̃) of an even weight; the unit's other items are raised alike, by at most [`MOST`], so far that
//! the norm is 1. Items that w̃ says will hardly reach ρ are passed over.
//!
//! # What is whose
//! MAD2R is of Chen, Cohen-Addad, Epasto and Zadimoghaddam 2025 (<https://arxiv.org/abs/2502.08878>). Adaptive weights by
//! rerouting excess from items far above the threshold, and a second round whose weighting is biased by the results of the
//! first, are in its abstract. The form of both (1/d first, then 1/√d − 1/d; m = 50, τ two σ above the threshold, what is
//! rerouted discounted by κ; bounds from noisy weights, a share of at least 1/2, a raise of at most 2) is as we understand
//! the paper, without its text at hand. This module's own are the limit on gᵢ under a bias, the proof, and what measuring
//! chose: w̃ itself in place of a lower bound of one σ less, [`HOPE`] of 2 in place of 3, and rounds of 1:4 in place of 1:9.
//!
//! # Sensitivity
//! A unit's aᵢ and gᵢ hang on its own items and on noisy weights alone. A unit beyond m moves nothing but its own gifts,
//! of norm at most 1. Add one of d ≤ m items. Of its first gift gᵢ to item i let the share xᵢ be cut off, and
//! X = Σ xᵢgᵢ: the excess beyond τ grows by X in all. The excess as a function of w is convex and 0 at 0, so xᵢ ≥ rᵢ and
//! the unit's own e is at most X; the rest, X − e, goes back to other units. Each of those spreads its part, times κ/m,
//! over at most m items: all of them move the histogram by at most B(X − e), B = κ/√m. The unit's own part is
//! aᵢ + κe/m − xᵢgᵢ for item i. As (y − xg)² ≤ y² − x(2yg − g²) for x in 0..1, that it has norm at most 1 − B(X − e)
//! follows, with the last square's quadratic term left out, from
//!
//! Σ(aᵢ + κe/m)² − Σ xᵢgᵢ(2aᵢ + 2κe/m − gᵢ) ≤ 1 − 2B(X − e),
//!
//! and the left less the right side is convex in e (the bound is above 0, for X ≤ 1 and B < 1). At e = 0 it is at most
//! −Σ xᵢgᵢ(2aᵢ − gᵢ − 2B), at most 0 for gᵢ ≤ 2(aᵢ − B). At e = X the same sum of 2B comes from 2(κX/m)Σaᵢ ≤ 2BX, as
//! Σaᵢ ≤ √d ≤ √m, and the rest, (κX/m)²d − 2κX²/m, is at most 0. So the sum of both parts has norm at most 1.
//!
//! Without a bias the condition allows all of 1/d (2/√t − 1/t falls for t ≥ 1, and κ makes it 2B at t = m). Of a reduced
//! item it allows less, or nothing: its weight then stays where it is. A unit of m items, half of them so far beyond τ
//! that nearly all is sent back, shows that κ = 1 would be too much: it gives m/2 items 1/√m + 1/(2m), and the others
//! 1/√m − 1/(2m), of norm √(1 + 1/(4m)).
//!
//! # Largest weight of each of k items of one unit alone
//! With d ≥ k items, 1/√d + κ(1 − k/d)/m without a bias: at most 1/√k, since (1 + √(k/d))·√k ≤ 2√m ≤ m for m ≥ 4. With
//! one, b = [`MOST`] in place of the first 1: at most b/√k likewise, and at most 1 as any part of the unit's own. The
//! threshold of a biased round holds for these.
//!
//! # Rounding
//! What comes back is summed in multiples of 2⁻⁴⁴, so that the roundings of [`MOST_UNITS`] units are below
//! 2⁻¹⁷; all weights are 1 − 2⁻⁸ of the above, which leaves room for them and for the last rounding (2⁻⁹).

use mechanisms::Stream;

use super::histogram::{ONE, even_weight};
use super::sips::Found;
use super::{MOST_UNITS, ReleaseError};
use crate::count::UnitItems;

/// Units with more items than this do not adapt.
pub(super) const MAX_DEGREE: usize = 50;

/// How far above the threshold, in σ, weight becomes excess.
const ABOVE: f64 = 2.0;

/// How far, in σ of the first round, an item may lie below the second's threshold and still get weight.
const HOPE: f64 = 2.0;

/// The least share of an even weight that a bias leaves.
const LEAST: f64 = 0.5;

/// The most that a bias raises an even weight by.
pub(super) const MOST: f64 = 2.0;

/// Bits below ONE's unit in which returned weight is summed.
const FINE: u32 = 20;

/// The weight beyond which an item sends gifts back, for a round with this threshold and σ.
pub(super) fn limit(threshold: i64, sigma: u64) -> u64 {
    threshold.max(0) as u64 + (ABOVE * sigma as f64) as u64
}

/// What the noisy weights of one round say of the next.
pub(super) struct Outlook {
    /// Below this an item hardly reaches the next threshold.
    hopeless: f64,
    /// Of the next round.
    threshold: f64,
}

impl Outlook {
    /// From σ of one round to the threshold of the next.
    pub(super) fn new(sigma: u64, threshold: i64) -> Self {
        let threshold = threshold as f64;
        Self { hopeless: threshold - HOPE * sigma as f64, threshold }
    }

    pub(super) fn is_hopeless(&self, noisy: i64) -> bool {
        (noisy as f64) < self.hopeless
    }

    /// The share of an even weight that is enough.
    pub(super) fn share(&self, noisy: i64) -> f64 {
        let noisy = noisy as f64;
        if noisy > self.threshold { (self.threshold / noisy).max(LEAST) } else { 1.0 }
    }
}

/// The histogram of one round.
pub(super) fn weigh(
    items: &UnitItems,
    found: &Found,
    (limit, cap): (u64, u32),
    stream: impl Fn(u64) -> Stream,
) -> Result<Vec<u64>, ReleaseError> {
    let mut open: Vec<(u32, u64)> = Vec::new();
    let mut first = vec![0_u64; items.distinct()];
    let mut units = 0_u64;
    items.each_unit(|unit, held| {
        units += 1;
        found.choose(held, &mut open, cap, || stream(unit));
        intend(&mut open, found);
        let degree = open.len();
        open.iter().for_each(|&(item, weight)| first[item as usize] += first_gift(weight, degree));
    })?;
    if units > MOST_UNITS {
        return Err(ReleaseError::too_many_units());
    }
    // Beyond the limit: the share sent back. Up to it: none.
    let sent_back = |first: u64| if first > limit { (first - limit) as f64 / first as f64 } else { 0.0 };
    let returned: Vec<f64> = first.iter().map(|&weight| sent_back(weight)).collect();
    let mut histogram: Vec<u64> = first.into_iter().map(|weight| weight.min(limit)).collect();
    let mut fine = vec![0_u64; items.distinct()];
    items.each_unit(|unit, held| {
        found.choose(held, &mut open, cap, || stream(unit));
        intend(&mut open, found);
        let degree = open.len();
        let back = |&(item, weight): &(u32, u64)| returned[item as usize] * first_gift(weight, degree) as f64;
        let gift = again(open.iter().map(back).sum());
        for &(item, weight) in &open {
            histogram[item as usize] += weight - first_gift(weight, degree);
            fine[item as usize] += gift;
        }
    })?;
    for (weight, fine) in histogram.iter_mut().zip(fine) {
        *weight += fine >> FINE;
        *weight -= weight.div_ceil(256);
    }
    Ok(histogram)
}

/// Turns a unit's items into what it means to give them, aᵢ, of L2 norm at most ONE.
fn intend(open: &mut [(u32, u64)], found: &Found) {
    let even = even_weight(open.len()) as f64;
    // What the reduced items leave of the squares, in even weights; and the number of the others.
    let (mut left, mut others) = (0.0, 0.0);
    for &(item, _) in open.iter() {
        let share = found.share(item);
        left += 1.0 - share * share;
        others += f64::from(share >= 1.0);
    }
    // The factor outweighs the roundings. No others: infinite, and used for none.
    let raise = (1.0 + left / others).sqrt().min(MOST) * (1.0 - 1e-12);
    for (item, weight) in open {
        let share = found.share(*item);
        *weight = (even * if share < 1.0 { share } else { raise }) as u64;
    }
}

/// gᵢ of aᵢ.
fn first_gift(weight: u64, degree: usize) -> u64 {
    if degree > MAX_DEGREE {
        return 0;
    }
    let bound = (discount() / (MAX_DEGREE as f64).sqrt() * ONE as f64).ceil() as u64;
    (ONE / degree as u64).min(weight).min(2 * weight.saturating_sub(bound))
}

/// κ.
fn discount() -> f64 {
    1.0 - 0.5 / (MAX_DEGREE as f64).sqrt()
}

/// κ·e/m in the fine unit, for e in multiples of ONE⁻¹.
fn again(returned: f64) -> u64 {
    (returned * (1_u64 << FINE) as f64 * discount() / MAX_DEGREE as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    /// The bound of the module's proof for a unit of so many items, of which some are reduced: the norm of its own part and
    /// what its gifts move elsewhere, where `cut` says what share of each first gift is cut off, and e = `kept`·X.
    fn moved(open: &[(u32, u64)], cut: &[f64], kept: f64, gift: impl Fn(u64) -> u64) -> f64 {
        let one = ONE as f64;
        let gone: Vec<f64> = open.iter().zip(cut).map(|(o, x)| x * gift(o.1) as f64 / one).collect();
        let x: f64 = gone.iter().sum();
        let again = discount() * kept * x / MAX_DEGREE as f64;
        let own: f64 =
            open.iter().zip(&gone).map(|(o, gone)| (o.1 as f64 / one + again - gone).powi(2)).sum();
        own.sqrt() + discount() / (MAX_DEGREE as f64).sqrt() * (1.0 - kept) * x
    }

    #[test]
    fn a_biased_unit_moves_the_histogram_by_at_most_one_and_nearly_that_however_its_gifts_are_cut() {
        let mut s = TestRng::from_seed(4).stream(Purpose::Data, 0, 0);
        let (mut largest, mut careless) = (0.0_f64, 0.0_f64);
        for _ in 0..20_000 {
            let degree = 1 + s.below(MAX_DEGREE as u64) as usize;
            let kinds = s.below(4);
            let bias = (0..degree).map(|_| [1.0, LEAST, 0.8][s.below(1 + kinds.min(2)) as usize]).collect();
            let found = Found { bias, ..Found::default() };
            let mut open: Vec<(u32, u64)> = (0..degree as u32).map(|item| (item, 1)).collect();
            intend(&mut open, &found);
            let square: u128 = open.iter().map(|o| u128::from(o.1) * u128::from(o.1)).sum();
            assert!(square <= u128::from(ONE) * u128::from(ONE));
            assert!(open.iter().all(|o| o.1 as f64 <= MOST * even_weight(degree) as f64));
            // Which gifts are cut: by chance, or those of the reduced items, which are the sought ones.
            let cut: Vec<f64> = match kinds {
                3 => open.iter().map(|o| f64::from(found.share(o.0) < 1.0)).collect(),
                _ => (0..degree).map(|_| s.below(3) as f64 / 2.0).collect(),
            };
            let kept = s.below(3) as f64 / 2.0;
            largest = largest.max(moved(&open, &cut, kept, |weight| first_gift(weight, degree)));
            careless = careless.max(moved(&open, &cut, kept, |_| ONE / degree as u64));
        }
        assert!(largest <= 1.0 + 1e-6 && largest > 0.999, "{largest}");
        assert!(
            careless > 1.005,
            "first gifts of 1/d under a bias move more than 1, and the test sees it: {careless}"
        );
    }
}
