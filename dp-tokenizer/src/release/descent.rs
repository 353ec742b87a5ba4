//! The policy Gaussian: each unit, one after the other, moves the items it holds towards a common target.
//!
//! # Sensitivity
//! Let h = target − histogram, on the items of one unit. The unit's move takes h to h − P(h), where P projects onto
//! the vectors that are nowhere negative and of norm at most 1: a convex set, so h ↦ h − P(h) brings no two points
//! further apart, and P(h) has norm at most 1. Adding a unit therefore moves the histogram by at most 1 when its turn
//! comes, and no later unit makes that more. The units that two neighbouring corpora share come in the same order.
//!
//! Rounding: amounts are multiples of 2⁻⁴⁰, so a turn may part two histograms by another 2·√4096·2⁻⁴⁰ = 2⁻³³, and
//! [`MOST_UNITS`] turns by 2⁻⁹; the last rounding to ONE's unit adds at most √(2³⁰)·2⁻²⁴ = 2⁻⁹. A turn moves by
//! 1 − 2⁻⁸ at most, which leaves room for both.

use mechanisms::Stream;

use super::contribution::keep_some;
use super::histogram::ONE;
use super::sips::Found;
use super::{MOST_UNITS, ReleaseError};
use crate::count::UnitItems;

/// Bits below ONE's unit.
const FINE: u32 = 16;

/// How far a unit may move the histogram, in the fine unit: 1 − 2⁻⁸.
const STEP: u64 = (ONE - (ONE >> 8)) << FINE;

/// How far above the threshold, in σ, the target lies: an item that reaches it is released nearly surely.
const ABOVE: f64 = 4.0;

/// The target for a round with this threshold and σ.
pub(super) fn target(threshold: i64, sigma: u64) -> u64 {
    threshold.max(0) as u64 + (ABOVE * sigma as f64) as u64
}

/// The histogram after every unit's turn.
pub(super) fn weigh(
    items: &UnitItems,
    found: &Found,
    (target, cap): (u64, u32),
    stream: impl Fn(u64) -> Stream,
) -> Result<Vec<u64>, ReleaseError> {
    // 2^40 times a target beyond 2^23 would not fit; noise so large releases nothing anyway.
    let target = target.min(ONE << 23) << FINE;
    let mut histogram = vec![0_u64; items.distinct()];
    let mut open: Vec<(u32, u64)> = Vec::new();
    let (mut units, mut last, mut in_order) = (0_u64, None, true);
    items.each_unit(|unit, held| {
        units += 1;
        in_order &= last.is_none_or(|last| last < unit);
        last = Some(unit);
        if units > MOST_UNITS || !in_order {
            return;
        }
        found.open(held, &mut open);
        keep_some(&mut open, cap, || stream(unit));
        turn(&mut histogram, &open, target, STEP);
    })?;
    if units > MOST_UNITS {
        return Err(ReleaseError::too_many_units());
    }
    if !in_order {
        return Err(ReleaseError::NotInOrder);
    }
    histogram.iter_mut().for_each(|weight| *weight >>= FINE);
    Ok(histogram)
}

/// One unit's move: all the way to the target, or a step towards it.
fn turn(histogram: &mut [u64], held: &[(u32, u64)], target: u64, step: u64) {
    let gap = |histogram: &[u64], item: u32| target.saturating_sub(histogram[item as usize]);
    let square: f64 = held.iter().map(|&(item, _)| (gap(histogram, item) as f64).powi(2)).sum();
    let norm = square.sqrt();
    // The factor outweighs the rounding of root and quotient.
    let scale = if norm <= step as f64 { 1.0 } else { step as f64 / norm * (1.0 - 1e-12) };
    for &(item, _) in held {
        let gap = gap(histogram, item);
        histogram[item as usize] += if scale < 1.0 { (gap as f64 * scale) as u64 } else { gap };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_fills_what_is_missing_and_no_more() {
        let mut histogram = vec![0, 9 << FINE, 20 << FINE];
        let held = [(0, 1), (1, 1), (2, 1)];
        turn(&mut histogram, &held, 10 << FINE, 5 << FINE);
        // Gaps 10 and 1: a step of length 5 along them; what is beyond the target stays.
        let step = 5.0 / 101_f64.sqrt();
        assert!((histogram[0] as f64 / f64::from(1 << FINE) - 10.0 * step).abs() < 1e-4);
        assert!((histogram[1] as f64 / f64::from(1 << FINE) - 9.0 - step).abs() < 1e-4);
        assert_eq!(histogram[2], 20 << FINE);
        turn(&mut histogram, &held, 10 << FINE, 50 << FINE);
        assert_eq!(histogram, [10 << FINE, 10 << FINE, 20 << FINE]);
    }
}
