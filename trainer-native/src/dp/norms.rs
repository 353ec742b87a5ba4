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
    let total = records.iter().map(squared_norms).reduce(|sum, part| sum + part);
    let squares = total.map_or_else(Vec::new, to_host_f64);
    PerExampleNorms(squares.into_iter().map(|square| square.sqrt() * ROUND_UP).collect())
}

/// Squared norm of each example's gradient of one parameter.
///
/// # Shapes
/// - output: `[batch]`
fn squared_norms<B: Kernels>(record: &Record<B>) -> Tensor<B, 1> {
    match record {
        Record::Explicit { grads, .. } => B::dots(grads.clone(), grads.clone()),
        Record::Product { input, grad, .. } => product_squares(input, grad),
        Record::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
            let [batch, seq] = tokens.dims();
            // ‖E + H‖² = ‖E‖² + ‖H‖² + 2⟨E, H⟩, E from the look-up and H from the head.
            let same = tokens.clone().reshape([batch, seq, 1]).equal(tokens.clone().reshape([batch, 1, seq]));
            let lookup = B::dots(gram(grad, grad), flat(same.float().cast(grad.dtype())));
            let columns = tokens.clone().reshape([batch, 1, seq]).expand([batch, seq, seq]);
            let cross = B::dots(gram(hidden, grad), flat(logits_grad.clone().gather(2, columns)));
            lookup + product_squares(hidden, logits_grad) + cross * 2.0
        }
    }
}

/// ‖inputᵀ·grad‖² of each example, by whichever way takes fewer multiplications.
///
/// # Shapes
/// - input: `[batch, seq, d_in]`, grad: `[batch, seq, d_out]`
/// - output: `[batch]`
fn product_squares<B: Kernels>(input: &Tensor<B, 3>, grad: &Tensor<B, 3>) -> Tensor<B, 1> {
    let [_, seq, d_in] = input.dims();
    let d_out = grad.dims()[2];
    if seq * (d_in + d_out) < d_in * d_out {
        B::dots(gram(input, input), gram(grad, grad))
    } else {
        let product = flat(input.clone().transpose().matmul(grad.clone()));
        B::dots(product.clone(), product)
    }
}

/// Inner products of positions, flat.
///
/// # Shapes
/// - a, b: `[batch, seq, d]`
/// - output: `[batch, seq·seq]`
fn gram<B: Kernels>(a: &Tensor<B, 3>, b: &Tensor<B, 3>) -> Tensor<B, 2> {
    flat(a.clone().matmul(b.clone().transpose()))
}

fn flat<B: Kernels>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, rows, columns] = values.dims();
    values.reshape([batch, rows * columns])
}
