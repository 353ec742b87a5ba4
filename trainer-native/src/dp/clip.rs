//! Per-example clipping and the clipped sum.

use mechanisms::{Bounded, L2Sensitivity, MechanismError};

use super::{PerExampleNorms, Record};
use crate::layer::{Kernels, ParamSpec};
use crate::tensor::{Bool, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData, from_host};

/// A sum over examples of gradients of norm at most C. It cannot be read; only [`super::privatize`] opens it.
pub struct ClippedSum<B: Kernels> {
    pub(super) parts: Vec<Tensor<B, 1>>,
    l2_clip_norm: f64,
}

impl<B: Kernels> ClippedSum<B> {
    /// The sum over no example.
    pub fn zero(specs: &[ParamSpec], l2_clip_norm: f64, dtype: FloatDType, device: &B::Device) -> Self {
        let zero = |spec: &ParamSpec| from_host(vec![0.0; spec.len()], [spec.len()], dtype, device);
        Self { parts: specs.iter().map(zero).collect(), l2_clip_norm }
    }

    /// The sum over the examples of both, which must be disjoint.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let parts = self.parts.into_iter().zip(other.parts).map(|(a, b)| a + b).collect();
        Self { parts, l2_clip_norm: self.l2_clip_norm.max(other.l2_clip_norm) }
    }

    /// States what adding or removing one example can change.
    ///
    /// # Errors
    /// If the clip norm is not a positive number.
    pub fn bounded(self) -> Result<Bounded<Self>, MechanismError> {
        let sensitivity = L2Sensitivity::new(self.l2_clip_norm)?;
        Ok(Bounded::new(self, sensitivity))
    }
}

/// Sum over the first `examples` rows of their gradients, each scaled to a norm of at most `l2_clip_norm`.
///
/// Rows beyond `examples` are padding and count zero times whatever they hold; so does a row whose norm is not a finite number.
pub fn clip<B: Kernels>(
    records: Vec<Record<B>>,
    norms: PerExampleNorms,
    examples: usize,
    l2_clip_norm: f64,
    specs: &[ParamSpec],
) -> ClippedSum<B> {
    let factor =
        |(row, &norm): (usize, &f64)| if row < examples { clip_factor(norm, l2_clip_norm) } else { 0.0 };
    let factors: Vec<f32> = norms.0.iter().enumerate().map(factor).collect();
    let poisoned: Vec<bool> = norms.0.iter().map(|norm| !norm.is_finite()).collect();
    let records = if poisoned.contains(&true) { without(records, &poisoned) } else { records };
    ClippedSum { parts: sums(records, Some(&factors), specs), l2_clip_norm }
}

/// Sum over all rows of their gradients as they are: the baseline. Padding contributes 0 by its zero loss weight.
pub(super) fn plain_sum<B: Kernels>(records: Vec<Record<B>>, specs: &[ParamSpec]) -> ClippedSum<B> {
    ClippedSum { parts: sums(records, None, specs), l2_clip_norm: f64::INFINITY }
}

/// The records with zeros in place of poisoned rows: 0·NaN is NaN, so a factor of 0 would not keep them out of a sum.
fn without<B: Kernels>(records: Vec<Record<B>>, poisoned: &[bool]) -> Vec<Record<B>> {
    let blank = |record: Record<B>| {
        let rows: Tensor<B, 1, Bool> = Tensor::from_data(TensorData::from(poisoned), &record.device());
        record.without(&rows)
    };
    records.into_iter().map(blank).collect()
}

/// The largest factor ≤ 1 that brings a gradient of this norm within the bound; 0 for a norm that is no number.
fn clip_factor(norm: f64, l2_clip_norm: f64) -> f32 {
    if !norm.is_finite() {
        0.0
    } else if norm <= l2_clip_norm {
        1.0
    } else {
        let exact = l2_clip_norm / norm;
        let rounded = exact as f32;
        if f64::from(rounded) <= exact { rounded } else { rounded.next_down() }
    }
}

/// The sums of all parameters, in their order.
fn sums<B: Kernels>(
    records: Vec<Record<B>>,
    factors: Option<&[f32]>,
    specs: &[ParamSpec],
) -> Vec<Tensor<B, 1>> {
    let mut parts: Vec<Option<Tensor<B, 1>>> = vec![None; specs.len()];
    for record in records {
        let index = record.param().0;
        assert!(parts[index].is_none(), "{} has two records; its norm would be wrong", specs[index].name);
        parts[index] = Some(weighted_sum(record, factors, &specs[index]));
    }
    let parts = parts.into_iter().zip(specs);
    parts.map(|(part, spec)| part.unwrap_or_else(|| panic!("{} has no record", spec.name))).collect()
}

/// Sum over examples of factor × gradient, flat.
fn weighted_sum<B: Kernels>(record: Record<B>, factors: Option<&[f32]>, spec: &ParamSpec) -> Tensor<B, 1> {
    let device = record.device();
    let scale = |values: Tensor<B, 3>| match factors {
        Some(factors) => {
            let dtype = values.dtype().into();
            B::scale_examples(values, from_host(factors.to_vec(), [factors.len()], dtype, &device))
        }
        None => values,
    };
    let sum = match record {
        Record::Explicit { grads, .. } => {
            let [batch, n] = grads.dims();
            scale(grads.reshape([batch, 1, n])).sum_dim(0).reshape([1, n])
        }
        Record::Product { input, grad, .. } => {
            // The narrower factor takes the scaling.
            let (input, grad) =
                if input.dims()[2] < grad.dims()[2] { (scale(input), grad) } else { (input, scale(grad)) };
            rows(input).transpose().matmul(rows(grad))
        }
        Record::Lookup { tokens, grad, .. } => {
            let table = Tensor::zeros([spec.shape[0], spec.shape[1]], (&device, grad.dtype()));
            scatter(table, tokens, scale(grad))
        }
        Record::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
            let head = rows(logits_grad).transpose().matmul(rows(scale(hidden)));
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
fn rows<B: Kernels>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, seq, d] = values.dims();
    values.reshape([batch * seq, d])
}
