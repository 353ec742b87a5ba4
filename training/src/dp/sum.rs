//! Sums of gradients, computed from the records of a backward pass.

use std::ops::Add;

use plan::Precision;

use super::clip::ClipFactors;
use network::nn::{GradRecord, Kernels, ParamSpec};
use network::tensor::{Bool, DType, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData, from_host};

/// A sum of gradients: one flat tensor a parameter.
pub(super) struct GradSum<B: Kernels>(pub(super) Vec<Tensor<B, 1>>);

impl<B: Kernels> GradSum<B> {
    /// The sum over no example.
    pub fn zero(specs: &[ParamSpec], dtype: FloatDType, device: &B::Device) -> Self {
        let zero = |spec: &ParamSpec| from_host(vec![0.0; spec.len()], [spec.len()], dtype, device);
        Self(specs.iter().map(zero).collect())
    }
}

/// The sum over the examples of both, which must be disjoint.
impl<B: Kernels> Add for GradSum<B> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.into_iter().zip(other.0).map(|(a, b)| a + b).collect())
    }
}

/// One parameter's part of the sum of a micro-batch's gradients, each of norm at most the clip norm over all parameters.
pub(crate) struct ClippedPart<B: Kernels> {
    pub(super) param: usize,
    pub(super) sum: Tensor<B, 1>,
}

/// Returns the clipped sums of records, computed one by one.
pub(super) fn clipped_parts<B: Kernels>(
    records: Vec<GradRecord<B>>,
    factors: &ClipFactors,
    specs: &[ParamSpec],
) -> impl Iterator<Item = ClippedPart<B>> {
    without_rows(records, &factors.not_finite).into_iter().map(|record| {
        let param = record.param().0;
        ClippedPart {
            param,
            sum: weighted_sum(record, Some(factors.of_param(param)), Precision::F32, &specs[param]),
        }
    })
}

/// Sums over the rows of a micro-batch, parameter by parameter as the records arrive.
pub(super) struct SumBuilder<'a, B: Kernels> {
    parts: Vec<Option<Tensor<B, 1>>>,
    precision: Precision,
    specs: &'a [ParamSpec],
}

impl<'a, B: Kernels> SumBuilder<'a, B> {
    pub fn new(specs: &'a [ParamSpec], precision: Precision) -> Self {
        Self { parts: vec![None; specs.len()], precision, specs }
    }

    /// Sums the rows of each record.
    ///
    /// # Panics
    /// If a parameter has two records, which is an error in a model of the crate `network`.
    pub fn add(&mut self, records: Vec<GradRecord<B>>) {
        for record in records {
            let index = record.param().0;
            let (spec, part) = (&self.specs[index], &mut self.parts[index]);
            assert!(part.is_none(), "{} has two records", spec.name);
            *part = Some(weighted_sum(record, None, self.precision, spec));
        }
    }

    /// Returns the sums of all parameters.
    ///
    /// # Panics
    /// If a parameter has no record, which is an error in a model of the crate `network`.
    pub fn finish(self) -> GradSum<B> {
        let parts = self.parts.into_iter().zip(self.specs);
        GradSum(
            parts.map(|(part, spec)| part.unwrap_or_else(|| panic!("{} has no record", spec.name))).collect(),
        )
    }
}

/// Returns the records with zeros in the marked rows. A factor of 0 would not remove NaN from a
/// sum, because 0·NaN is NaN.
fn without_rows<B: Kernels>(records: Vec<GradRecord<B>>, marked: &[bool]) -> Vec<GradRecord<B>> {
    if !marked.contains(&true) {
        return records;
    }
    let blank = |record: GradRecord<B>| {
        let rows: Tensor<B, 1, Bool> = Tensor::from_data(TensorData::from(marked), &record.device());
        record.without(&rows)
    };
    records.into_iter().map(blank).collect()
}

/// Sum over examples of factor × gradient, flat.
pub(super) fn weighted_sum<B: Kernels>(
    record: GradRecord<B>,
    factors: Option<&[f32]>,
    precision: Precision,
    spec: &ParamSpec,
) -> Tensor<B, 1> {
    let device = record.device();
    let of =
        |factors: &[f32], dtype: DType| from_host(factors.to_vec(), [factors.len()], dtype.into(), &device);
    let scale = |values: Tensor<B, 3>| match factors {
        Some(factors) => {
            let factors = of(factors, values.dtype());
            B::scale_examples(values, factors)
        }
        None => values,
    };
    let sum = match record {
        GradRecord::Explicit { grads, .. } => match factors {
            Some(factors) => {
                let factors = of(factors, grads.dtype());
                B::weighted_sum(grads, factors).unsqueeze()
            }
            None => grads.sum_dim(0),
        },
        GradRecord::Product { input, grad, .. } => {
            // The narrower factor takes the scaling.
            let (input, grad) =
                if input.dims()[2] < grad.dims()[2] { (scale(input), grad) } else { (input, scale(grad)) };
            B::product_in(precision, rows(input).transpose(), rows(grad))
        }
        GradRecord::Lookup { tokens, grad, .. } => {
            let table = Tensor::zeros([spec.shape[0], spec.shape[1]], (&device, grad.dtype()));
            scatter(table, tokens, scale(grad))
        }
        GradRecord::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
            let head = B::product_in(precision, rows(logits_grad).transpose(), rows(scale(hidden)));
            scatter(head, tokens, scale(grad))
        }
    };
    let [rows, columns] = sum.dims();
    sum.reshape([rows * columns])
}

/// Adds the gradients of looked-up rows to a table.
fn scatter<B: Kernels>(table: Tensor<B, 2>, tokens: Tensor<B, 2, Int>, grad: Tensor<B, 3>) -> Tensor<B, 2> {
    let lookup = rows(grad);
    let tokens = tokens.reshape([lookup.dims()[0]]);
    table.select_assign(0, tokens, lookup, IndexingUpdateOp::Add)
}

/// `[batch, seq, d]` → `[batch·seq, d]`
pub(super) fn rows<B: Kernels>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, seq, d] = values.dims();
    values.reshape([batch * seq, d])
}
