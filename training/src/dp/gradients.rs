//! The gradients of each example of a micro-batch.

use plan::Clipping;

use super::clip::ClipFactors;
use super::norms::{SquaredNorms, squared_norms};
use super::sum::{ClippedPart, GradSum, SumBuilder, clipped_parts};
use network::model::{Batch, Network};
use network::nn::{GradRecord, Kernels, ParamSpec, Weights, materialize_if_cheaper};

/// The gradients of the examples of a micro-batch.
///
/// Whole gradients would take as much memory as the model for each example. The gradients are
/// therefore held as the records of a backward pass, which give their norms and their weighted sum.
pub(crate) struct PerExampleGrads<'a, B: Kernels> {
    records: Records<'a, B>,
    /// Rows that are examples; the rows after them are padding.
    examples: usize,
    specs: &'a [ParamSpec],
}

enum Records<'a, B: Kernels> {
    Held(Vec<GradRecord<B>>),
    /// Records that are computed block by block whenever they are needed, so that only one block's
    /// records exist at a time. If sums differ from run to run on a device, the rounding up of the
    /// norms covers the difference.
    Recomputed {
        model: &'a Network,
        weights: &'a Weights<B>,
        batch: Batch<B>,
    },
}

impl<'a, B: Kernels> PerExampleGrads<'a, B> {
    /// Runs the forward and the backward pass. With `recompute`, it runs them when the gradients
    /// are used.
    pub fn compute(model: &'a Network, weights: &'a Weights<B>, batch: Batch<B>, recompute: bool) -> Self {
        let (examples, specs) = (batch.examples, weights.specs());
        let records = if recompute {
            Records::Recomputed { model, weights, batch }
        } else {
            Records::Held(materialize_if_cheaper(model.records(weights, batch)))
        };
        Self { records, examples, specs }
    }

    #[cfg(test)]
    pub fn of_records(records: Vec<GradRecord<B>>, examples: usize, specs: &'a [ParamSpec]) -> Self {
        Self { records: Records::Held(records), examples, specs }
    }

    /// Scales each gradient to a norm of at most `l2_clip_norm`, and hands over their sum parameter by parameter, so that no sum is held
    /// as a whole. Returns the part of these examples in [`ClippedSum::unclipped_halves`](super::ClippedSum).
    pub(crate) fn clip_and_sum(
        self,
        clipping: Clipping,
        l2_clip_norm: f64,
        mut take: impl FnMut(ClippedPart<B>),
    ) -> i64 {
        let squares = self.squared_norms();
        let factors = ClipFactors::new(clipping, &squares, self.examples, l2_clip_norm, self.specs);
        let mut hand_over = |records| clipped_parts(records, &factors, self.specs).for_each(&mut take);
        match self.records {
            Records::Held(records) => hand_over(records),
            Records::Recomputed { model, weights, batch } => {
                model.hand_over_records(weights, batch, true, |block| {
                    hand_over(materialize_if_cheaper(block));
                });
            }
        }
        factors.unclipped_halves
    }

    fn squared_norms(&self) -> SquaredNorms<B> {
        match &self.records {
            Records::Held(records) => squared_norms(records),
            Records::Recomputed { model, weights, batch } => {
                let mut all = Vec::with_capacity(self.specs.len());
                model.hand_over_records(weights, batch.clone(), true, |block| {
                    all.extend(squared_norms(&materialize_if_cheaper(block)));
                });
                all
            }
        }
    }
}

/// The sum of the gradients of a micro-batch, not clipped. Padding contributes 0 because its loss has weight 0.
pub(super) fn plain_sum<B: Kernels>(
    model: &Network,
    weights: &Weights<B>,
    batch: Batch<B>,
    recompute: bool,
) -> GradSum<B> {
    let mut sum = SumBuilder::new(weights.specs(), weights.product_precision());
    model.hand_over_records(weights, batch, recompute, |block| sum.add(block));
    sum.finish()
}
