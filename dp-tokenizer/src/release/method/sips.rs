//! DP-SIPS: rounds of evenly weighted histograms. Released items leave, so that later rounds weigh the others more.
//!
//! With one round this is the weighted Gaussian mechanism of Gopi et al. 2020 (<https://arxiv.org/abs/2002.09745>), and
//! with the weights of a paper its word histogram.
//!
//! # References
//! Swanberg et al. 2023, <https://arxiv.org/abs/2301.01998>

use super::{Hidden, Round, RoundMethod};
use crate::release::contribution;
use crate::release::error::ReleaseError;
use crate::release::selection::Selection;

#[derive(Default)]
pub(super) struct Sips {
    /// Of the round under way.
    threshold: i64,
}

impl RoundMethod for Sips {
    fn histogram(&mut self, hidden: Hidden<'_>, round: &Round<'_>) -> Result<Vec<u64>, ReleaseError> {
        let config = round.config;
        self.threshold = config.round_threshold(round.index).fixed_point()?;
        let choice = |unit| round.choice_stream(unit);
        Ok(contribution::histogram(hidden, config.contribution(), config.cap(), choice)?)
    }

    fn update(&mut self, item: usize, noisy: i64, round: &Round<'_>, selection: &mut Selection) {
        if noisy >= self.threshold {
            selection.release(item, round.config.in_counts(noisy));
        }
    }
}
