//! Clips the gradients of a lot, and adds them up.

use plan::{Arithmetic, Clipping};

use super::exact::{ExactClip, add_examples};
use super::grid_sum::{GridSum, Integers};
use super::lot::Group;
use super::{ClippedSum, Lot, PerExampleGrads, StepError};
use network::model::{Batch, Network};
use network::nn::{Kernels, Weights};

/// The way in which gradients are clipped and summed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summation {
    pub clipping: Clipping,
    pub arithmetic: Arithmetic,
}

/// Clips the gradients of examples, and rounds them to integers on one grid.
pub(super) struct Summing<'a> {
    model: &'a Network,
    clipping: Clipping,
    l2_clip_norm: f64,
    grid_step: f64,
    /// The clipping of exact arithmetic.
    exact: Option<ExactClip>,
}

impl<'a> Summing<'a> {
    /// # Errors
    /// For a clip norm that exact arithmetic does not take.
    pub fn new(
        model: &'a Network,
        summation: Summation,
        l2_clip_norm: f64,
        grid_step: f64,
    ) -> Result<Self, StepError> {
        let Summation { clipping, arithmetic } = summation;
        let exact = match arithmetic {
            Arithmetic::Exact => Some(ExactClip::new(clipping, l2_clip_norm, grid_step)?),
            Arithmetic::Fast => None,
        };
        Ok(Self { model, clipping, l2_clip_norm, grid_step, exact })
    }

    pub fn l2_clip_norm(&self) -> f64 {
        self.l2_clip_norm
    }

    pub fn grid_step(&self) -> f64 {
        self.grid_step
    }

    /// Returns the groups that workers compute.
    pub fn groups<'b, B: Kernels>(&self, lot: &Lot<'b, B>, weights: &Weights<B>) -> Vec<Group<'b>> {
        match self.exact.is_some() {
            true => lot.groups_for_exact_sums(weights.rows_are_independent()),
            false => lot.groups(),
        }
    }

    /// Adds the clipped gradients of a group.
    pub fn add<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batches: &mut dyn Iterator<Item = Batch<B>>,
        recompute: bool,
        sum: &mut impl Integers,
    ) {
        if let Some(clip) = &self.exact {
            let examples = batches.flat_map(|batch| clip.examples(self.model, weights, batch, recompute));
            return add_examples(examples.collect(), weights.specs(), sum);
        }
        for micro_batch in batches {
            let gradients = PerExampleGrads::compute(self.model, weights, micro_batch, recompute);
            // A device computes a part while the part before it is read.
            let mut before = None;
            let mut add = |part| before.replace(part).into_iter().for_each(|part| sum.add(part));
            let unclipped_halves = gradients.clip_and_sum(self.clipping, self.l2_clip_norm, &mut add);
            before.into_iter().for_each(|part| sum.add(part));
            sum.count(unclipped_halves);
        }
    }
}

/// Adds a lot's gradients, each clipped to the clip norm, to a sum over no example.
///
/// # Errors
/// [`StepError::Overflow`] if a sum does not fit 64 bits.
pub(super) fn clipped_sum<B: Kernels>(
    summing: &Summing<'_>,
    weights: &Weights<B>,
    lot: &Lot<'_, B>,
    sum: GridSum,
) -> Result<ClippedSum, StepError> {
    lot.for_each(&summing.groups(lot, weights), weights, |weights, batches| {
        summing.add(weights, batches, lot.recompute, &mut &sum);
    });
    sum.finish()
}
