//! Per-example gradient norms from records.

use super::Record;
use crate::layer::Kernels;
use crate::tensor::{Tensor, to_host_f64};

/// The L2 norm of each example's whole gradient. Private: it has no way out but [`super::clip`].
pub struct PerExampleNorms(pub(super) Vec<f64>);

/// Squares of single-precision sums may come out a little low; this factor covers it, so that a clipped gradient is
/// never longer than the bound.
const ROUND_UP: f64 = 1.0 + 1e-5;

/// Norms over all parameters of all records, rounded up.
pub fn per_example_norms<B: Kernels>(records: &[Record<B>]) -> PerExampleNorms {
    let total = records.iter().flat_map(squares).reduce(|sum, part| sum + part);
    let squares = total.map_or_else(Vec::new, to_host_f64);
    PerExampleNorms(squares.into_iter().map(|square| square.sqrt() * ROUND_UP).collect())
}

/// Squared norms, `[batch]` each.
fn squares<B: Kernels>(record: &Record<B>) -> Vec<Tensor<B, 1>> {
    match record {
        Record::Linear { input, grad, .. } => {
            vec![product_squares(input, grad), row_squares(sum_positions(grad))]
        }
        Record::Norm { normalized, grad, .. } => {
            let gain = sum_positions(&(normalized.clone() * grad.clone()));
            vec![row_squares(gain), row_squares(sum_positions(grad))]
        }
        Record::Position { grad, .. } => {
            let [batch, seq, d] = grad.dims();
            vec![row_squares(grad.clone().reshape([batch, seq * d]))]
        }
        Record::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
            let [batch, seq] = tokens.dims();
            // ‖E + H‖² = ‖E‖² + ‖H‖² + 2⟨E, H⟩, E from the look-up and H from the head.
            let same = tokens.clone().reshape([batch, seq, 1]).equal(tokens.clone().reshape([batch, 1, seq]));
            let lookup = grad.clone().matmul(grad.clone().transpose()) * same.float().cast(grad.dtype());
            let columns = tokens.clone().reshape([batch, 1, seq]).expand([batch, seq, seq]);
            let at_tokens = logits_grad.clone().gather(2, columns);
            let cross = hidden.clone().matmul(grad.clone().transpose()) * at_tokens;
            vec![sum_rows(lookup + cross * 2.0), product_squares(hidden, logits_grad)]
        }
    }
}

/// ‖inputᵀ·grad‖² of each example, by whichever way takes fewer multiplications.
///
/// # Shapes
/// - input: `[batch, seq, d_in]`, grad: `[batch, seq, d_out]`
/// - output: `[batch]`
fn product_squares<B: Kernels>(input: &Tensor<B, 3>, grad: &Tensor<B, 3>) -> Tensor<B, 1> {
    let [batch, seq, d_in] = input.dims();
    let d_out = grad.dims()[2];
    if seq * (d_in + d_out) < d_in * d_out {
        let inputs = input.clone().matmul(input.clone().transpose());
        let grads = grad.clone().matmul(grad.clone().transpose());
        sum_rows(inputs * grads)
    } else {
        let product = input.clone().transpose().matmul(grad.clone());
        row_squares(product.reshape([batch, d_in * d_out]))
    }
}

fn sum_positions<B: Kernels>(values: &Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, _, d] = values.dims();
    values.clone().sum_dim(1).reshape([batch, d])
}

fn row_squares<B: Kernels>(values: Tensor<B, 2>) -> Tensor<B, 1> {
    let batch = values.dims()[0];
    values.square().sum_dim(1).reshape([batch])
}

fn sum_rows<B: Kernels>(values: Tensor<B, 3>) -> Tensor<B, 1> {
    let [batch, rows, columns] = values.dims();
    values.reshape([batch, rows * columns]).sum_dim(1).reshape([batch])
}
