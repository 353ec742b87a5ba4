//! The methods that find private items, one file each.

mod mad2r;
mod policy;
mod pooled;
mod sips;
#[cfg(test)]
mod tests;

use mechanisms::{ReleaseMethod, Stream};

use super::config::{Method, ReleaseConfig};
use super::error::ReleaseError;
use super::selection::Selection;
use crate::count::UnitItems;

/// A round of a release, as a method sees it.
pub(super) struct Round<'a> {
    pub(super) config: &'a ReleaseConfig,
    /// The number of the round, from 0.
    pub(super) index: usize,
    /// The standard deviation of the noise, in the fixed-point unit.
    pub(super) sigma: u64,
    /// The function that returns the random stream of a unit, by the number of the unit and that of the draw.
    pub(super) choices: &'a dyn Fn(u64, u32) -> Stream,
}

impl Round<'_> {
    fn is_last(&self) -> bool {
        self.index + 1 == self.config.rounds()
    }

    /// Returns the stream for a unit's choice of items that is new in every round.
    fn choice_stream(&self, unit: u64) -> Stream {
        (self.choices)(unit, self.index as u32)
    }

    /// Returns the stream for a unit's choice of items that is the same in all rounds.
    fn same_choice(&self, unit: u64) -> Stream {
        (self.choices)(unit, 0)
    }
}

/// The items of the units, with the selection that tells which are still hidden.
#[derive(Clone, Copy)]
pub(super) struct Hidden<'a> {
    pub(super) items: &'a UnitItems,
    pub(super) selection: &'a Selection,
}

/// A method, which weighs items and learns from noisy weights. The shares of its rounds are in [`ReleaseMethod`].
///
/// # Contract
/// Given the noisy weights of the earlier rounds, one more unit moves [`Self::histogram`] by an L2 norm of at most
/// [`ONE`](super::fixed_point::ONE). Everything else depends on the units through noisy weights alone, except for the set of
/// items held, which the thresholds protect.
pub(super) trait RoundMethod {
    /// Returns the histogram of one round over the items that are still hidden, by item number.
    fn histogram(&mut self, hidden: Hidden<'_>, round: &Round<'_>) -> Result<Vec<u64>, ReleaseError>;

    /// Whether the round adds noise to the weight of this item and looks at the result.
    fn publishes(&self, _item: usize, weight: u64, _selection: &Selection) -> bool {
        weight > 0
    }

    /// Takes in the noisy weight of an item: releases it, or changes how later rounds treat it.
    fn update(&mut self, item: usize, noisy: i64, round: &Round<'_>, selection: &mut Selection);

    /// Returns the least noisy weight that the first round releases, in the counts of the method.
    fn first_threshold(&self, config: &ReleaseConfig) -> Result<f64, ReleaseError> {
        Ok(config.in_counts(config.round_threshold(0).fixed_point()?))
    }
}

/// Returns the method of a release, before its first round.
pub(super) fn of(config: &ReleaseConfig) -> Box<dyn RoundMethod> {
    match config.method() {
        Method::Planned(ReleaseMethod::Sips | ReleaseMethod::Hoory2021 | ReleaseMethod::Ponomareva2022)
        | Method::Paper(_) => Box::new(sips::Sips::default()),
        Method::Planned(ReleaseMethod::Pooled) => Box::new(pooled::Pooled::default()),
        Method::Planned(ReleaseMethod::Policy) => {
            Box::new(policy::Policy { cap: config.cap(), ..policy::Policy::default() })
        }
        Method::Planned(ReleaseMethod::Mad2r) => Box::new(mad2r::Mad2r::new(config.cap())),
    }
}
