//! The policy Gaussian: each unit in turn moves the weights of its items towards a common target.
//!
//! # Sensitivity
//! Let h = target − histogram, restricted to the items of one unit. The unit moves h to h − P(h), where P projects onto
//! the vectors that have no negative entry and norm at most 1. This set is convex, so h ↦ h − P(h) never increases the
//! distance of two points, and P(h) has norm at most 1. An additional unit therefore moves the histogram by at most 1 when
//! its turn comes, and no later unit increases the difference. Two neighboring corpora take their common units in the
//! same order.
//!
//! Rounding: weights are multiples of 2⁻⁴⁰, so one turn may separate two histograms by another 2·√4096·2⁻⁴⁰ = 2⁻³³, and
//! [`MAX_UNITS`](crate::release::fixed_point::MAX_UNITS) turns by 2⁻⁹. The last rounding to ONE's unit adds at most √(2³⁰)·2⁻²⁴ = 2⁻⁹. A turn moves by at most
//! 1 − 2⁻⁸, which leaves room for both.
//!
//! # References
//! Gopi et al. 2020, <https://arxiv.org/abs/2002.09745>, ℓ2-descent

use mechanisms::Stream;

use super::{Hidden, Round, RoundMethod};
use crate::release::error::ReleaseError;
use crate::release::fixed_point::ONE;
use crate::release::selection::{Selection, sample_items};

/// The number of bits below ONE's unit.
const EXTRA_BITS: u32 = 16;

/// The distance by which a unit may move the histogram, in the finer unit: 1 − 2⁻⁸.
const STEP: u64 = (ONE - (ONE >> 8)) << EXTRA_BITS;

/// The distance of the target above the threshold, in σ. An item that reaches the target is almost surely released.
const TARGET_SIGMAS: f64 = 4.0;

#[derive(Default)]
pub(super) struct Policy {
    pub(super) cap: u32,
    /// The weight at which an item needs no more.
    pub(super) target: u64,
    pub(super) threshold: i64,
}

impl Policy {
    /// Returns the histogram after every unit's turn.
    pub(super) fn weigh(
        &self,
        Hidden { items, selection }: Hidden<'_>,
        stream: impl Fn(u64) -> Stream,
    ) -> Result<Vec<u64>, ReleaseError> {
        // 2^40 times a target beyond 2^23 would overflow; noise that large releases nothing anyway.
        let target = self.target.min(ONE << 23) << EXTRA_BITS;
        let mut histogram = vec![0_u64; items.distinct()];
        let mut open: Vec<(u64, u64)> = Vec::new();
        items.each_unit(|unit, held| {
            selection.open_items(held, &mut open);
            sample_items(&mut open, self.cap, || stream(unit));
            take_turn(&mut histogram, &open, target, STEP);
        })?;
        histogram.iter_mut().for_each(|weight| *weight >>= EXTRA_BITS);
        Ok(histogram)
    }
}

impl RoundMethod for Policy {
    fn histogram(&mut self, hidden: Hidden<'_>, round: &Round<'_>) -> Result<Vec<u64>, ReleaseError> {
        self.threshold = round.config.round_threshold(round.index).fixed_point()?;
        self.target = self.threshold.max(0) as u64 + (TARGET_SIGMAS * round.sigma as f64) as u64;
        self.weigh(hidden, |unit| round.choice_stream(unit))
    }

    fn update(&mut self, item: usize, noisy: i64, round: &Round<'_>, selection: &mut Selection) {
        if noisy >= self.threshold {
            selection.release(item, round.config.in_counts(noisy));
        }
    }
}

/// Moves the weights of one unit's items to the target, or a step towards it if the target is further than a step.
fn take_turn(histogram: &mut [u64], held: &[(u64, u64)], target: u64, step: u64) {
    let gap = |histogram: &[u64], item: u64| target.saturating_sub(histogram[item as usize]);
    let square: f64 = held.iter().map(|&(item, _)| (gap(histogram, item) as f64).powi(2)).sum();
    let norm = square.sqrt();
    // The last factor outweighs the rounding of root and quotient.
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
        let mut histogram = vec![0, 9 << EXTRA_BITS, 20 << EXTRA_BITS];
        let held = [(0, 1), (1, 1), (2, 1)];
        take_turn(&mut histogram, &held, 10 << EXTRA_BITS, 5 << EXTRA_BITS);
        // The gaps are 10 and 1: the step of length 5 lies along them. A weight beyond the target stays.
        let step = 5.0 / 101_f64.sqrt();
        assert!((histogram[0] as f64 / f64::from(1 << EXTRA_BITS) - 10.0 * step).abs() < 1e-4);
        assert!((histogram[1] as f64 / f64::from(1 << EXTRA_BITS) - 9.0 - step).abs() < 1e-4);
        assert_eq!(histogram[2], 20 << EXTRA_BITS);
        take_turn(&mut histogram, &held, 10 << EXTRA_BITS, 50 << EXTRA_BITS);
        assert_eq!(histogram, [10 << EXTRA_BITS, 10 << EXTRA_BITS, 20 << EXTRA_BITS]);
    }
}
