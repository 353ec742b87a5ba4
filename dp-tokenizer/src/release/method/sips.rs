//! DP-SIPS: rounds of evenly weighted histograms. Released items leave, so that later rounds weigh the others more.
//!
//! With one round this is the weighted Gaussian mechanism of Gopi et al. 2020 (<https://arxiv.org/abs/2002.09745>), and
//! with the weights of a paper its word histogram.
//!
//! # References
//! Swanberg et al. 2023, <https://arxiv.org/abs/2301.01998>

use mechanisms::Stream;

use super::{Hidden, Round, RoundMethod};
use crate::release::contribution::Contribution;
use crate::release::error::ReleaseError;
use crate::release::selection::Selection;
use crate::unit::UnitError;

#[derive(Default)]
pub(super) struct Sips {
    /// The threshold of the current round.
    threshold: i64,
}

impl RoundMethod for Sips {
    fn histogram(&mut self, hidden: Hidden<'_>, round: &Round<'_>) -> Result<Vec<u64>, ReleaseError> {
        let config = round.config;
        self.threshold = config.round_threshold(round.index).fixed_point()?;
        let choice = |unit| round.choice_stream(unit);
        Ok(histogram(hidden, config.contribution(), config.cap(), choice)?)
    }

    fn update(&mut self, item: usize, noisy: i64, round: &Round<'_>, selection: &mut Selection) {
        if noisy >= self.threshold {
            selection.release(item, round.config.in_counts(noisy));
        }
    }
}

/// Returns the histogram of one round over the items that are still hidden. A unit adds an L2 norm of at most ONE.
pub(super) fn histogram(
    Hidden { items, selection }: Hidden<'_>,
    contribution: Contribution,
    cap: u32,
    stream: impl Fn(u64) -> Stream,
) -> Result<Vec<u64>, UnitError> {
    let mut histogram = vec![0_u64; items.distinct()];
    let mut open: Vec<(u64, u64)> = Vec::new();
    items.each_unit(|unit, held| {
        selection.open_items(held, &mut open);
        contribution.weigh(&mut open, cap, || stream(unit));
        open.iter().for_each(|&(n, weight)| histogram[n as usize] += weight);
    })?;
    Ok(histogram)
}
