//! The sampled examples of a step, worked off in micro-batches of one fixed shape.

use super::{ClippedSum, fold_in_order};
use crate::model::{Batch, Example, Shape};
use crate::nn::{Kernels, Weights};
use crate::tensor::Backend;

/// A lot of any size, empty included, and how it is cut. The cut only schedules work.
pub struct Lot<'a, B: Backend> {
    /// One example a sampled unit.
    pub examples: &'a [Example],
    /// Rows of a micro-batch; the last one is padded to it.
    pub physical_batch: usize,
    /// Shape of a micro-batch's rows.
    pub shape: Shape,
    /// Whether blocks of layers are computed again for the backward pass, for less memory: the same sums.
    pub recompute: bool,
    /// Where tensors live.
    pub device: &'a B::Device,
}

impl<B: Kernels> Lot<'_, B> {
    /// Sum over the micro-batches, in their order, of what `part` makes of each.
    pub(super) fn sum(
        &self,
        weights: &Weights<B>,
        l2_clip_norm: f64,
        part: impl Fn(&Weights<B>, Batch<B>) -> ClippedSum<B> + Sync,
    ) -> ClippedSum<B> {
        let pieces: Vec<&[Example]> = self.examples.chunks(self.physical_batch).collect();
        let work = |weights: &Weights<B>, piece: &&[Example]| {
            part(weights, Batch::new(piece, self.physical_batch, self.shape, weights.dtype(), self.device))
        };
        let workers = B::workers().min(pieces.len()).max(1);
        let join = |sum: Option<ClippedSum<B>>, part| {
            Some(match sum {
                Some(sum) => sum.join(part),
                None => part,
            })
        };
        let sum = fold_in_order(&pieces, vec![weights.clone(); workers], work, None, join);
        let zero = || ClippedSum::zero(weights.specs(), l2_clip_norm, weights.dtype(), self.device);
        sum.unwrap_or_else(zero)
    }
}
