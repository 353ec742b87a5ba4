//! Squared norms of per-example gradients, computed without the gradients themselves.

use pulp::{Simd, WithSimd};

use super::super::portable::{self, ROUNDING};
use super::math::{dot, vectorized_loop};
use super::{close, ints, open, open_int, values, values_mut, zeros};
use crate::tensor::{Flex, Int, Tensor};

/// Rows of a block. The 4 × 4 sums stay in registers while a pair of row groups is read.
const ROWS: usize = 4;

/// Computes inner products in blocks that are summed in double precision.
pub fn dots(a: Tensor<Flex, 2>, b: Tensor<Flex, 2>) -> Tensor<Flex, 1> {
    const BLOCK: usize = 512;
    let [batch, length] = a.dims();
    let (a, b, mut dots) = (open(a), open(b), zeros([batch]));
    let (left, right, out) = (values(&a), values(&b), values_mut(&mut dots));
    vectorized_loop!([left: &'a [f32], right: &'a [f32], out: &'a mut [f32], length: usize] {
        for ((a, b), out) in left.chunks_exact(length).zip(right.chunks_exact(length)).zip(out) {
            let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
            *out = blocks.map(|(a, b)| f64::from(dot(a, b))).sum::<f64>() as f32;
        }
    });
    close(dots)
}

/// Σ_{s,t} ⟨input_s, input_t⟩·⟨grad_s, grad_t⟩ for each example, unless the gradient itself costs less.
pub fn product_squares(input: Tensor<Flex, 3>, grad: Tensor<Flex, 3>) -> Tensor<Flex, 1> {
    let [batch, seq, d_in] = input.dims();
    let d_out = grad.dims()[2];
    // Gram matrices are symmetric, so this form computes half of each.
    if seq * (d_in + d_out) / 2 >= d_in * d_out {
        return portable::product_squares(input, grad);
    }
    let (input, grad, mut squares) = (open(input), open(grad), zeros([batch]));
    let examples = values(&input).chunks_exact(seq * d_in).zip(values(&grad).chunks_exact(seq * d_out));
    for ((input, grad), out) in examples.zip(values_mut(&mut squares)) {
        *out = pulp::Arch::new().dispatch(Example { input, grad, seq }) as f32;
    }
    close(squares)
}

/// Σ_{s,t} [token_s = token_t]·⟨grad_s, grad_t⟩ for each example.
pub fn lookup_squares(tokens: Tensor<Flex, 2, Int>, grad: Tensor<Flex, 3>) -> Tensor<Flex, 1> {
    let [batch, seq, d] = grad.dims();
    let (tokens, grad, mut squares) = (open_int(tokens), open(grad), zeros([batch]));
    let examples = ints(&tokens).chunks_exact(seq).zip(values(&grad).chunks_exact(seq * d));
    for ((tokens, grad), out) in examples.zip(values_mut(&mut squares)) {
        let mut total = 0.0_f64;
        for s in 0..seq {
            for t in (s..seq).filter(|&t| tokens[t] == tokens[s]) {
                let weight = if s == t { 1.0 } else { 2.0 };
                let product = f64::from(dot(&grad[s * d..s * d + d], &grad[t * d..t * d + d]));
                total += weight * rounded_up(product);
            }
        }
        *out = total as f32;
    }
    close(squares)
}

/// Σ_{s,t} logits_grad[s, token_t]·⟨hidden_s, grad_t⟩ for each example, where s is a target and t a looked-up token.
pub fn lookup_head_dots(
    tokens: Tensor<Flex, 2, Int>,
    grad: Tensor<Flex, 3>,
    hidden: Tensor<Flex, 3>,
    logits_grad: Tensor<Flex, 3>,
) -> Tensor<Flex, 1> {
    let [batch, looked_up] = tokens.dims();
    let [_, targets, vocabulary] = logits_grad.dims();
    let products = open(hidden.matmul(grad.transpose()));
    let (tokens, logits_grad, mut dots) = (open_int(tokens), open(logits_grad), zeros([batch]));
    let examples = ints(&tokens).chunks_exact(looked_up);
    let examples = examples.zip(values(&logits_grad).chunks_exact(targets * vocabulary));
    let examples = examples.zip(values(&products).chunks_exact(targets * looked_up));
    for (((tokens, logits_grad), products), out) in examples.zip(values_mut(&mut dots)) {
        let rows = logits_grad.chunks_exact(vocabulary).zip(products.chunks_exact(looked_up));
        let of_row = |(row, products): (&[f32], &[f32])| {
            let terms = tokens.iter().zip(products).map(|(&t, p)| f64::from(row[t as usize] * p));
            terms.map(rounded_up).sum::<f64>()
        };
        *out = rows.map(of_row).sum::<f64>() as f32;
    }
    close(dots)
}

/// Returns a term plus its allowance for rounding. A sum of such terms is never below the exact
/// sum.
#[inline(always)]
fn rounded_up(term: f64) -> f64 {
    term + term.abs() * ROUNDING
}

struct Example<'a> {
    input: &'a [f32],
    grad: &'a [f32],
    seq: usize,
}

impl WithSimd for Example<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let mut total = 0.0_f64;
        for s in (0..self.seq).step_by(ROWS) {
            for t in (s..self.seq).step_by(ROWS) {
                let inputs = block(simd, group(self.input, self.seq, s), group(self.input, self.seq, t));
                let grads = block(simd, group(self.grad, self.seq, s), group(self.grad, self.seq, t));
                for i in 0..ROWS {
                    for j in 0..ROWS {
                        let (row, column) = (s + i, t + j);
                        // Rows after the end repeat the last row and are not counted. The lower triangle equals the upper one.
                        if column < self.seq && row <= column {
                            let weight = if row == column { 1.0 } else { 2.0 };
                            total += weight * rounded_up(f64::from(inputs[i][j]) * f64::from(grads[i][j]));
                        }
                    }
                }
            }
        }
        total
    }
}

/// Returns rows `first..first + ROWS`, repeating the last row after the end.
#[inline(always)]
fn group(values: &[f32], seq: usize, first: usize) -> [&[f32]; ROWS] {
    let d = values.len() / seq;
    let mut rows = [values; ROWS];
    for (at, row) in rows.iter_mut().enumerate() {
        let start = (first + at).min(seq - 1) * d;
        *row = &values[start..start + d];
    }
    rows
}

/// Returns all inner products between two groups of rows.
///
/// It uses plain loops, because the compiler translates a closure passed to `map` separately,
/// without vector instructions.
#[inline(always)]
fn block<S: Simd>(simd: S, left: [&[f32]; ROWS], right: [&[f32]; ROWS]) -> [[f32; ROWS]; ROWS] {
    let count = left[0].len() / S::F32_LANES;
    let (left, left_rest) = split::<S>(left, count);
    let (right, right_rest) = split::<S>(right, count);
    let mut sums = [[simd.splat_f32s(0.0); ROWS]; ROWS];
    for at in 0..count {
        let column = [right[0][at], right[1][at], right[2][at], right[3][at]];
        for (sums, left) in sums.iter_mut().zip(left) {
            let value = left[at];
            for (sum, column) in sums.iter_mut().zip(column) {
                *sum = simd.mul_add_e_f32s(value, column, *sum);
            }
        }
    }
    let mut products = [[0.0; ROWS]; ROWS];
    for ((products, sums), left) in products.iter_mut().zip(sums).zip(left_rest) {
        for ((product, sum), right) in products.iter_mut().zip(sums).zip(right_rest) {
            *product = simd.reduce_sum_f32s(sum);
            for (a, b) in left.iter().zip(right) {
                *product += a * b;
            }
        }
    }
    products
}

/// Splits rows into whole vectors and remainders.
#[inline(always)]
fn split<S: Simd>(rows: [&[f32]; ROWS], count: usize) -> ([&[S::f32s]; ROWS], [&[f32]; ROWS]) {
    let mut whole: [&[S::f32s]; ROWS] = [&[]; ROWS];
    let mut rest: [&[f32]; ROWS] = [&[]; ROWS];
    for ((row, whole), rest) in rows.iter().zip(&mut whole).zip(&mut rest) {
        let (vectors, remainder) = S::as_simd_f32s(row);
        *whole = &vectors[..count];
        *rest = remainder;
    }
    (whole, rest)
}
