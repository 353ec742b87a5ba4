//! Squared norms of `inputᵀ·grad` through the Gram matrices of both, of which only one triangle is ever computed.

use pulp::{Simd, WithSimd};

use crate::nn::kernels::portable::ROUNDING;

/// Rows of a block: 4 × 4 sums stay in registers while a pair of row groups is read.
const ROWS: usize = 4;

/// Σ_{s,t} ⟨input_s, input_t⟩·⟨grad_s, grad_t⟩ for each example.
pub fn gram_dots(input: &[f32], grad: &[f32], seq: usize, out: &mut [f32]) {
    let (d_in, d_out) = (input.len() / out.len(), grad.len() / out.len());
    for ((input, grad), out) in input.chunks_exact(d_in).zip(grad.chunks_exact(d_out)).zip(out) {
        *out = pulp::Arch::new().dispatch(Example { input, grad, seq }) as f32;
    }
}

/// Inner products of the rows of equal tokens: Σ_{s,t} [token_s = token_t]·⟨grad_s, grad_t⟩ for each example.
pub fn lookup_squares(tokens: &[i32], grad: &[f32], seq: usize, out: &mut [f32]) {
    let d = grad.len() / tokens.len();
    for ((tokens, grad), out) in tokens.chunks_exact(seq).zip(grad.chunks_exact(seq * d)).zip(out) {
        let mut total = 0.0_f64;
        for s in 0..seq {
            for t in (s..seq).filter(|&t| tokens[t] == tokens[s]) {
                let weight = if s == t { 1.0 } else { 2.0 };
                let product = f64::from(super::math::dot(&grad[s * d..s * d + d], &grad[t * d..t * d + d]));
                total += weight * rounded_up(product);
            }
        }
        *out = total as f32;
    }
}

/// Σ_{s,t} logits_grad[s, token_t]·products[s, t] for each example; s is one of `targets`, t a looked-up token.
pub fn at_tokens(tokens: &[i32], logits_grad: &[f32], products: &[f32], targets: usize, out: &mut [f32]) {
    let looked_up = tokens.len() / out.len();
    let vocabulary = logits_grad.len() / (out.len() * targets);
    let examples = tokens.chunks_exact(looked_up).zip(logits_grad.chunks_exact(targets * vocabulary));
    let products = products.chunks_exact(targets * looked_up);
    for (((tokens, logits_grad), products), out) in examples.zip(products).zip(out) {
        let rows = logits_grad.chunks_exact(vocabulary).zip(products.chunks_exact(looked_up));
        let total: f64 = rows
            .map(|(row, products)| {
                tokens
                    .iter()
                    .zip(products)
                    .map(|(&t, p)| rounded_up(f64::from(row[t as usize] * p)))
                    .sum::<f64>()
            })
            .sum();
        *out = total as f32;
    }
}

/// A term with its share of the allowance for rounding; the sum of such terms is no lower than the true sum.
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
                        // Rows past the end repeat the last one and do not count; below the diagonal is the mirror.
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

/// Rows `first..first + ROWS`, the last row again where there are no more.
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

/// All inner products between two groups of rows.
///
/// Plain loops throughout: a closure handed to `map` is compiled on its own, without the vector instructions.
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

/// Rows as vectors and what is left of each.
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
