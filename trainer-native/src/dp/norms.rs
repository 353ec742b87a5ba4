//! Per-example gradient norms from records.

use super::Record;
use crate::layer::Kernels;
use crate::tensor::{Tensor, to_host_f64};

/// The L2 norm of each example's whole gradient. Private: it has no way out but [`super::clip`].
pub struct PerExampleNorms(pub(super) Vec<f64>);

#[cfg(test)]
impl PerExampleNorms {
    /// The norms themselves.
    pub(crate) fn for_tests(&self) -> &[f64] {
        &self.0
    }
}

/// Squares of single-precision sums may come out a little low; this factor covers it, so that a clipped gradient is
/// never longer than the bound.
const ROUND_UP: f64 = 1.0 + 1e-5;

/// Norms over all parameters of all records, rounded up.
pub fn per_example_norms<B: Kernels>(records: &[Record<B>]) -> PerExampleNorms {
    let total = records.iter().map(squared_norms).reduce(|sum, part| sum + part);
    let squares = total.map_or_else(Vec::new, to_host_f64);
    PerExampleNorms(squares.into_iter().map(|square| square.sqrt() * ROUND_UP).collect())
}

/// Norms over the parameters of each of `groups` groups, rounded up; `group` says to which a record belongs.
pub(super) fn norms_by_group<B: Kernels>(
    records: &[Record<B>],
    groups: usize,
    group: impl Fn(&Record<B>) -> usize,
) -> Vec<PerExampleNorms> {
    let mut totals: Vec<Vec<f64>> = vec![Vec::new(); groups];
    for record in records {
        let squares = to_host_f64(squared_norms(record));
        let total = &mut totals[group(record)];
        total.resize(squares.len(), 0.0);
        total.iter_mut().zip(squares).for_each(|(total, square)| *total += square);
    }
    let norms = |squares: Vec<f64>| squares.into_iter().map(|square| square.sqrt() * ROUND_UP).collect();
    totals.into_iter().map(norms).map(PerExampleNorms).collect()
}

/// Squared norm of each example's gradient of one parameter.
///
/// # Shapes
/// - output: `[batch]`
fn squared_norms<B: Kernels>(record: &Record<B>) -> Tensor<B, 1> {
    match record {
        Record::Explicit { grads, .. } => B::dots(grads.clone(), grads.clone()),
        Record::Product { input, grad, .. } => B::product_squares(input.clone(), grad.clone()),
        Record::Lookup { tokens, grad, .. } => B::lookup_squares(tokens.clone(), grad.clone()),
        Record::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
            // ‖E + H‖² = ‖E‖² + ‖H‖² + 2⟨E, H⟩, E from the look-up and H from the head.
            let lookup = B::lookup_squares(tokens.clone(), grad.clone());
            let head = B::product_squares(hidden.clone(), logits_grad.clone());
            let cross =
                B::lookup_head_dots(tokens.clone(), grad.clone(), hidden.clone(), logits_grad.clone());
            lookup + head + cross * 2.0
        }
    }
}
