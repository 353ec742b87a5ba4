//! MaxAdaptiveDegree: units of few items take weight back from items that have more than enough.
//!
//! A unit of d ≤ m items first gives each 1/d. An item beyond the limit τ keeps τ and sends the share r = 1 − τ/w of
//! each gift back; a unit that gets e = (mean of r over its items) back gives each of its items κ·e/m, and each
//! 1/√d − 1/d on top. Units of more than m items give 1/√d. Here m is [`MAX_DEGREE`] and κ = 1 − 1/(2√m).
//!
//! This is the idea of MaxAdaptiveDegree (Chen et al. 2025, <https://arxiv.org/abs/2502.08878>) as its abstract and introduction
//! tell it; the constants, κ and the proof are this module's own, and where the paper's second round biases
//! weights by what the first one saw, here units pass over the items that would hardly reach the next threshold. κ = 1
//! would be too much: a unit of m items, half of them so far beyond τ that nearly all is sent back, gets e = 1/2 and
//! gives m/2 items 1/√m + 1/(2m), and the others 1/√m − 1/(2m), of norm √(1 + 1/(4m)).
//!
//! # Sensitivity
//! A unit beyond m moves nothing but its own gifts, of norm 1. Add one of d ≤ m items. Of its gift 1/d to item i let the
//! share xᵢ be cut off, and X be the mean of the xᵢ: the excess beyond τ grows by X in all. The excess as a function of
//! w is convex and 0 at 0, so xᵢ ≥ rᵢ and the unit's own e is at most X; the rest, X − e, goes back to other units.
//! Each of those spreads its part, times κ/m, over at most m items: all of them move the histogram by at most
//! κ(X − e)/√m. The unit's own part is 1/√d + κe/m − xᵢ/d for item i. For a given X its norm is largest when each xᵢ
//! is 0 or 1: then its square is d·a² − X(2a − 1/d) with a = 1/√d + κe/m. That this is at most (1 − κ(X − e)/√m)²
//! needs, with the last square's quadratic term left out, a function convex in e to be at most 0. It is at e = 0, for
//! 2κ/√m ≤ 2/√d − 1/d (2/√t − 1/t falls for t ≥ 1, and κ makes it equal at d = m); and at e = X, where it asks that
//! κ ≤ (m/d)(1 − 1/(2√d)), which is least at d = m, and κX/m ≤ 2X/m. So the sum of both parts has norm at most 1.
//!
//! # Largest weight of each of k items of one unit alone
//! With d ≥ k items, 1/√d + κ(1 − k/d)/m: at most 1/√k, since (1 + √(k/d))·√k ≤ 2√m ≤ m for m ≥ 4. The threshold of
//! even weights therefore holds.
//!
//! Rounding: what comes back is summed in multiples of 2⁻⁴⁴, so that the roundings of [`MOST_UNITS`] units are below
//! 2⁻¹⁷; all weights are 1 − 2⁻⁸ of the above, which leaves room for them and for the last rounding (2⁻⁹).

use mechanisms::Stream;

use super::contribution::keep_some;
use super::histogram::{ONE, even_weight};
use super::sips::Found;
use super::{MOST_UNITS, ReleaseError};
use crate::count::UnitItems;

/// Units with more items than this do not adapt.
pub(super) const MAX_DEGREE: usize = 50;

/// How far above the threshold, in σ, weight becomes excess.
const ABOVE: f64 = 2.0;

/// Bits below ONE's unit in which returned weight is summed.
const FINE: u32 = 20;

/// The weight beyond which an item sends gifts back, for a round with this threshold and σ.
pub(super) fn limit(threshold: i64, sigma: u64) -> u64 {
    threshold.max(0) as u64 + (ABOVE * sigma as f64) as u64
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
        found.open(held, &mut open);
        keep_some(&mut open, cap, || stream(unit));
        if open.len() <= MAX_DEGREE {
            open.iter().for_each(|&(item, _)| first[item as usize] += ONE / open.len() as u64);
        }
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
        found.open(held, &mut open);
        keep_some(&mut open, cap, || stream(unit));
        let degree = open.len();
        let even = even_weight(degree);
        if degree > MAX_DEGREE {
            open.iter().for_each(|&(item, _)| histogram[item as usize] += even);
            return;
        }
        let gift = again(open.iter().map(|&(item, _)| returned[item as usize]).sum(), degree);
        for &(item, _) in &open {
            histogram[item as usize] += even - ONE / degree as u64;
            fine[item as usize] += gift;
        }
    })?;
    for (weight, fine) in histogram.iter_mut().zip(fine) {
        *weight += fine >> FINE;
        *weight -= weight.div_ceil(256);
    }
    Ok(histogram)
}

/// κ·e/m in the fine unit.
fn again(returned: f64, degree: usize) -> u64 {
    let m = MAX_DEGREE as f64;
    let share = returned / degree.max(1) as f64 * (1.0 - 0.5 / m.sqrt()) / m;
    (share * (ONE << FINE) as f64) as u64
}
