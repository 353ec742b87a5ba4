//! A candidate text, and choices among candidates.

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};
use serde::{Deserialize, Serialize};

/// A text that records can vote for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Candidate {
    /// Its group: the index of its label, or 0 without labels.
    pub group: usize,
    /// The text.
    pub text: String,
}

/// Returns a stream for the choices of a round in a group.
pub(super) fn stream(seed: u64, round: u64, group: usize) -> Stream {
    TestRng::from_seed(seed).stream(Purpose::Data, round, group as u32)
}

/// Draws places by weight, of which one is above 0.
pub(super) fn drawn_by_weight(weights: &[f64], count: usize, stream: &mut Stream) -> Vec<usize> {
    let mut sum = 0.0;
    let up_to = |weight: &f64| {
        sum += weight;
        sum
    };
    let sums: Vec<f64> = weights.iter().map(up_to).collect();
    (0..count)
        .map(|_| {
            let place = stream.uniform() * sum;
            sums.partition_point(|up_to| *up_to <= place).min(weights.len().saturating_sub(1))
        })
        .collect()
}
