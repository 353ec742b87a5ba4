//! Per-example gradient norms from records.

use network::nn::{GradRecord, Kernels, ParamId};
use network::tensor::{Tensor, to_host_f64};
use plan::Precision;

/// The L2 norm of each example's gradient. It is private: only clip factors are computed from it.
pub(super) struct PerExampleNorms(pub(super) Vec<f64>);

/// A square computed in single precision may come out slightly low. This factor covers the error, so that a clipped
/// gradient is never longer than the clip norm.
const ROUND_UP: f64 = 1.0 + 1e-5;

/// The squared norms of each example's gradient, `[batch]`, parameter by parameter.
pub(super) type SquaredNorms<B> = Vec<(ParamId, Tensor<B, 1>)>;

/// The squared norms of all records.
pub(super) fn squared_norms<B: Kernels>(records: &[GradRecord<B>]) -> SquaredNorms<B> {
    records.iter().map(|record| (record.param(), squared_norm(record, Precision::F32))).collect()
}

/// Norms over all parameters, rounded up.
pub(super) fn norms<B: Kernels>(squares: &SquaredNorms<B>) -> PerExampleNorms {
    let total = squares.iter().map(|(_, part)| part.clone()).reduce(|sum, part| sum + part);
    rounded_up(total.map_or_else(Vec::new, to_host_f64))
}

/// Norms over the parameters of each group, rounded up; `group` gives the group of a parameter, below `groups`.
pub(super) fn norms_by_group<B: Kernels>(
    squares: &SquaredNorms<B>,
    groups: usize,
    group: impl Fn(ParamId) -> usize,
) -> Vec<PerExampleNorms> {
    let mut totals: Vec<Vec<f64>> = vec![Vec::new(); groups];
    for (param, part) in squares {
        let part = to_host_f64(part.clone());
        let total = &mut totals[group(*param)];
        total.resize(part.len(), 0.0);
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
    totals.into_iter().map(rounded_up).collect()
}

fn rounded_up(squares: Vec<f64>) -> PerExampleNorms {
    PerExampleNorms(squares.into_iter().map(|square| square.sqrt() * ROUND_UP).collect())
}

/// Squared norm of each example's gradient of one parameter, whose factors are rounded to this precision.
///
/// # Shapes
/// - output: `[batch]`
pub(super) fn squared_norm<B: Kernels>(record: &GradRecord<B>, precision: Precision) -> Tensor<B, 1> {
    match record {
        GradRecord::Explicit { grads, .. } => B::dots(grads.clone(), grads.clone()),
        GradRecord::Product { input, grad, .. } => product_squares(input.clone(), grad.clone(), precision),
        GradRecord::Lookup { tokens, grad, .. } => B::lookup_squares(tokens.clone(), grad.clone()),
        GradRecord::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
            // ‖E + H‖² = ‖E‖² + ‖H‖² + 2⟨E, H⟩, E from the look-up and H from the head.
            let lookup = B::lookup_squares(tokens.clone(), grad.clone());
            let head = product_squares(hidden.clone(), logits_grad.clone(), precision);
            let cross =
                B::lookup_head_dots(tokens.clone(), grad.clone(), hidden.clone(), logits_grad.clone());
            lookup + head + cross * 2.0
        }
    }
}

/// ‖inputᵀ·grad‖² of each example.
///
/// # Shapes
/// - input: `[batch, seq, d_in]`, grad: `[batch, seq, d_out]`
/// - output: `[batch]`
fn product_squares<B: Kernels>(
    input: Tensor<B, 3>,
    grad: Tensor<B, 3>,
    precision: Precision,
) -> Tensor<B, 1> {
    if precision == Precision::F32 {
        return B::product_squares(input, grad);
    }
    let ([batch, seq, d_in], d_out) = (input.dims(), grad.dims()[2]);
    let flat = |product: Tensor<B, 3>| {
        let length = product.shape().num_elements() / batch;
        product.reshape([batch, length])
    };
    if seq * (d_in + d_out) < 2 * d_in * d_out {
        let [inputs, grads] =
            [input, grad].map(|factor| flat(B::product_bf16(factor.clone(), factor.transpose())));
        // Rounding can take a square that is near zero below it.
        return B::dots(inputs, grads).clamp_min(0.0);
    }
    let gradient = flat(B::product_bf16(input.transpose(), grad));
    B::dots(gradient.clone(), gradient)
}
