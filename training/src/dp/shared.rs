//! Sums of clipped gradients that several ranks share.

use std::sync::Arc;

use super::{ClippedSum, PrivateGradient, StepError};
use crate::ranks::Shards;
use network::nn::Kernels;

/// Sums over the examples of all ranks. Each rank gets its own pieces of the sum.
///
/// A rank without examples takes part too: its sum is zero, and its pieces get their noise.
///
/// # Errors
/// As this rank's own sum; [`StepError::Overflow`] if a sum of any rank, or of all together, does
/// not fit 64 bits.
pub(super) fn sum_of_all(
    own: Result<ClippedSum, StepError>,
    shards: &Shards,
) -> Result<ClippedSum, StepError> {
    let ranks = shards.ranks();
    let largest = (1_u64 << 62) / ranks.count() as u64;
    let fits = |sum: &ClippedSum| sum.parts.iter().flatten().all(|integer| integer.unsigned_abs() <= largest);
    let own = own.and_then(|sum| if fits(&sum) { Ok(sum) } else { Err(StepError::Overflow) });
    if ranks.any(own.is_err()) {
        return own.and(Err(StepError::Overflow));
    }
    let own = own?;
    Ok(ClippedSum {
        parts: shards.sum(&own.parts),
        pieces: Some(Arc::clone(shards.pieces())),
        unclipped_halves: ranks.total(own.unclipped_halves.into()) as i64,
        ..own
    })
}

impl<B: Kernels> PrivateGradient<B> {
    /// Returns the same pieces, with the sum of squares over all ranks.
    pub(super) fn with_all_squares(self, shards: &Shards) -> Self {
        // The sum of squares is below 2¹²⁷, because each element's square is below 2⁶⁴.
        let squares = shards.ranks().total(self.squares as i128) as u128;
        Self { squares, elements: shards.elements(), ..self }
    }
}
