//! The sampled examples of a step, and the micro-batches in which they are computed.

use std::ops::Add;

use super::Reduce;
use crate::ranks::Shards;
use network::Example;
use network::model::{Batch, Shape};
use network::nn::{Kernels, Weights};
use network::tensor::Backend;

/// The lot of a step: one example of each sampled unit. It may be empty.
///
/// How it is cut into micro-batches affects speed and memory only.
pub(crate) struct Lot<'a, B: Backend> {
    /// The sampled examples.
    pub examples: &'a [Example],
    /// Rows of a micro-batch; the last one is padded.
    pub physical_batch: usize,
    /// Shape of a micro-batch's rows.
    pub shape: Shape,
    /// Whether the backward pass recomputes activations block by block.
    pub recompute: bool,
    /// Device of the tensors.
    pub device: &'a B::Device,
    /// The ranks that share the lot, if there are several. `examples` are then this rank's own.
    pub shards: Option<&'a Shards>,
}

impl<B: Kernels> Lot<'_, B> {
    /// The sum over the micro-batches, in their order, of what `of_micro_batch` computes; `None` for an empty lot.
    pub(super) fn sum<T: Add<Output = T> + Send>(
        &self,
        weights: &Weights<B>,
        of_micro_batch: impl Fn(&Weights<B>, Batch<B>) -> T + Sync,
    ) -> Option<T> {
        Reduce::on_threads(B::workers()).sum(&self.micro_batches(), weights, |weights, examples| {
            of_micro_batch(weights, self.batch(weights, examples))
        })
    }

    /// Computes each micro-batch, in any order.
    pub(super) fn for_each(&self, weights: &Weights<B>, work: impl Fn(&Weights<B>, Batch<B>) + Sync) {
        Reduce::on_threads(B::workers()).for_each(&self.micro_batches(), weights, |weights, examples| {
            work(weights, self.batch(weights, examples));
        });
    }

    fn micro_batches(&self) -> Vec<&[Example]> {
        self.examples.chunks(self.physical_batch).collect()
    }

    fn batch(&self, weights: &Weights<B>, examples: &[Example]) -> Batch<B> {
        Batch::new(examples, self.physical_batch, self.shape, weights.dtype(), self.device)
    }
}
