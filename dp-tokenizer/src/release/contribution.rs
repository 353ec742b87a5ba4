//! The weights that a unit adds to a histogram, scaled to an L2 norm of at most ONE.

use mechanisms::Stream;

use super::fixed_point::{ONE, even_weight};
use super::selection::{sample_items, shuffle};

/// The way in which a unit's items are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contribution {
    /// The same weight for each item, with norm 1 for any number of them (Gopi et al. 2020; DP-SIPS).
    Even,
    /// 1 for each item, with norm at most √cap (Hoory et al. 2021).
    Presence,
    /// The counts of the unit's items, at most cap in total, with norm at most cap (Ponomareva et al. 2022).
    Counts,
}

impl Contribution {
    /// Returns the largest weight that a unit can give to each of `k` items at once.
    pub(super) fn largest_weight(self, k: u32, cap: u32) -> u64 {
        match self {
            Self::Even => even_weight(k as usize),
            Self::Presence => even_weight(cap as usize),
            Self::Counts => u64::from(cap - k.min(cap) + 1) * (ONE / u64::from(cap)),
        }
    }

    /// Returns the norm that ONE stands for, in the counts of the paper.
    pub(super) fn norm(self, cap: u32) -> f64 {
        match self {
            Self::Even => 1.0,
            Self::Presence => f64::from(cap).sqrt(),
            Self::Counts => f64::from(cap),
        }
    }

    /// Turns a unit's (item, count) list into (item, weight) and samples items where they exceed the cap.
    pub(super) fn weigh(self, items: &mut Vec<(u64, u64)>, cap: u32, stream: impl FnOnce() -> Stream) {
        let total: u64 = match self {
            Self::Counts => items.iter().map(|i| i.1).sum(),
            Self::Even | Self::Presence => items.len() as u64,
        };
        match self {
            Self::Counts if total > u64::from(cap) => {
                shuffle(items, &mut stream());
                keep_counts(items, u64::from(cap));
            }
            Self::Counts => {}
            Self::Even | Self::Presence => sample_items(items, cap, stream),
        }
        let weight = match self {
            Self::Even => even_weight(items.len()),
            Self::Presence => even_weight(cap as usize),
            Self::Counts => ONE / u64::from(cap),
        };
        for (_, count) in items {
            *count = if self == Self::Counts { *count * weight } else { weight };
        }
    }
}

/// Keeps the first items up to a total count of `room`.
fn keep_counts(items: &mut Vec<(u64, u64)>, mut room: u64) {
    items.retain_mut(|(_, count)| {
        *count = (*count).min(room);
        room -= *count;
        *count > 0
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    #[test]
    fn a_unit_has_norm_at_most_one_and_no_item_more_than_the_largest_weight() {
        let rng = TestRng::from_seed(2);
        let mut s = rng.stream(Purpose::Data, 0, 0);
        for round in 0..10_000 {
            let cap = 1 + s.below(12) as u32;
            let unit: Vec<(u64, u64)> = (0..1 + s.below(15)).map(|i| (i, 1 + s.below(6))).collect();
            for contribution in [Contribution::Even, Contribution::Presence, Contribution::Counts] {
                let mut weighed = unit.clone();
                contribution.weigh(&mut weighed, cap, || rng.stream(Purpose::Contribution, round, 0));
                let square: u128 = weighed.iter().map(|i| u128::from(i.1) * u128::from(i.1)).sum();
                assert!(square <= u128::from(ONE) * u128::from(ONE), "{contribution:?} {cap} {unit:?}");
                assert!(weighed.len() <= cap as usize);
                // A part of a unit's items has no more items than all of them, and none of larger weight.
                let largest = contribution.largest_weight(weighed.len() as u32, cap);
                assert!(weighed.iter().all(|i| i.1 <= largest), "{contribution:?} {cap} {unit:?}");
            }
        }
    }
}
