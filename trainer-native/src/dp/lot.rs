//! The sampled windows of a step, worked off in micro-batches of one fixed shape.

use super::{ClippedSum, fold_in_order};
use crate::layer::{Kernels, Weights};
use crate::model::TokenBatch;
use crate::tensor::Backend;

/// A lot of any size, empty included, and how it is cut. The cut only schedules work.
pub struct Lot<'a, B: Backend> {
    /// One window a sampled unit.
    pub windows: &'a [Vec<u32>],
    /// Rows of a micro-batch; the last one is padded to it.
    pub physical_batch: usize,
    /// Positions of a micro-batch.
    pub context: usize,
    /// Where tensors live.
    pub device: &'a B::Device,
}

impl<B: Kernels> Lot<'_, B> {
    /// Sum over the micro-batches, in their order, of what `part` makes of each.
    pub(super) fn sum(
        &self,
        weights: &Weights<B>,
        l2_clip_norm: f64,
        part: impl Fn(&Weights<B>, TokenBatch<B>) -> ClippedSum<B> + Sync,
    ) -> ClippedSum<B> {
        let zero = ClippedSum::zero(weights.specs(), l2_clip_norm, weights.dtype(), self.device);
        let pieces: Vec<&[Vec<u32>]> = self.windows.chunks(self.physical_batch).collect();
        let work = |weights: &Weights<B>, piece: &&[Vec<u32>]| {
            let (rows, seq) = (self.physical_batch, self.context);
            part(weights, TokenBatch::new(piece, rows, seq, weights.dtype(), self.device))
        };
        let workers = B::workers().min(pieces.len()).max(1);
        fold_in_order(&pieces, vec![weights.clone(); workers], work, zero, ClippedSum::join)
    }
}
