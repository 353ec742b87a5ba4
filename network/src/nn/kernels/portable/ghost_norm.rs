//! Squared norms of per-example gradients, computed without the gradients themselves.
//!
//! # References
//! Goodfellow 2015, <https://arxiv.org/abs/1510.01799>; Li et al. 2021, <https://arxiv.org/abs/2110.05679>, section 4.

use super::super::Kernels;
use crate::tensor::{Backend, Int, Tensor};

/// Fraction of the sum of absolute terms that is added to a squared norm, so that rounding never makes the norm too low.
///
/// If the terms of an example nearly cancel, the rounding error may be large compared with their sum, but it is small
/// compared with the sum of their absolute values: d products in 16 partial sums have an error of about 6e-8·√(d/16) of it.
pub const ROUNDING: f64 = 4e-6;

pub fn dots<B: Backend>(a: Tensor<B, 2>, b: Tensor<B, 2>) -> Tensor<B, 1> {
    let batch = a.dims()[0];
    (a * b).sum_dim(1).reshape([batch])
}

pub fn product_squares<B: Kernels>(input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 1> {
    let [_, seq, d_in] = input.dims();
    let d_out = grad.dims()[2];
    if seq * (d_in + d_out) < d_in * d_out {
        upper_dots(gram(input.clone(), input), gram(grad.clone(), grad))
    } else {
        let product = flat(B::product(input.clone().transpose(), grad.clone()));
        upper_square(dots(product.clone(), product), input, grad)
    }
}

/// Returns the square of a norm plus its allowance for rounding. Products of positions may cancel.
/// The rounding error of their sum is then at most [`ROUNDING`]·√(Σ|input|²·Σ|grad|²): about
/// 6e-8·√seq of it.
fn upper_square<B: Backend>(square: Tensor<B, 1>, input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 1> {
    let [batch, ..] = input.dims();
    let length = |values: Tensor<B, 3>| flat(values).square().sum_dim(1).reshape([batch]).sqrt();
    (square.sqrt() + length(input) * length(grad) * ROUNDING).square()
}

pub fn lookup_squares<B: Kernels>(tokens: Tensor<B, 2, Int>, grad: Tensor<B, 3>) -> Tensor<B, 1> {
    let [batch, seq] = tokens.dims();
    let same = tokens.clone().reshape([batch, seq, 1]).equal(tokens.reshape([batch, 1, seq]));
    let same = same.float().cast(grad.dtype());
    upper_dots(gram(grad.clone(), grad), flat(same))
}

pub fn lookup_head_dots<B: Kernels>(
    tokens: Tensor<B, 2, Int>,
    grad: Tensor<B, 3>,
    hidden: Tensor<B, 3>,
    logits_grad: Tensor<B, 3>,
) -> Tensor<B, 1> {
    let [batch, looked_up] = tokens.dims();
    let targets = hidden.dims()[1];
    let columns = tokens.reshape([batch, 1, looked_up]).expand([batch, targets, looked_up]);
    upper_dots(gram(hidden, grad), flat(logits_grad.gather(2, columns)))
}

/// Inner products of rows, rounded up by [`ROUNDING`].
fn upper_dots<B: Backend>(a: Tensor<B, 2>, b: Tensor<B, 2>) -> Tensor<B, 1> {
    let batch = a.dims()[0];
    let terms = a * b;
    (terms.clone().sum_dim(1) + terms.abs().sum_dim(1) * ROUNDING).reshape([batch])
}

/// Inner products of all pairs of positions: `[batch, m, d]` and `[batch, n, d]` → `[batch, m·n]`
fn gram<B: Kernels>(a: Tensor<B, 3>, b: Tensor<B, 3>) -> Tensor<B, 2> {
    flat(B::product(a, b.transpose()))
}

fn flat<B: Backend>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, rows, columns] = values.dims();
    values.reshape([batch, rows * columns])
}
