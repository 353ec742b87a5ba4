//! Root-mean-square normalisation on slices.

use super::math::{dot, sum_zip};
use super::rows::vectorized;

/// `input` becomes the normalized rows.
pub fn normalize(input: &mut [f32], output: &mut [f32], reciprocal: &mut [f32], gain: &[f32], epsilon: f32) {
    let d = gain.len();
    let scale = 1.0 / d as f32;
    vectorized(|| {
        let rows = input.chunks_exact_mut(d).zip(output.chunks_exact_mut(d)).zip(reciprocal);
        for ((row, out), reciprocal) in rows {
            let square = sum_zip(row, row, |x, _| x * x) * scale;
            *reciprocal = 1.0 / (square + epsilon).sqrt();
            for ((x, out), gain) in row.iter_mut().zip(out).zip(gain) {
                *x *= *reciprocal;
                *out = *x * gain;
            }
        }
    });
}

/// What [`normalize_backward`] reads beside the gradient.
pub struct Saved<'a> {
    pub normalized: &'a [f32],
    pub reciprocal: &'a [f32],
    pub gain: &'a [f32],
    /// Positions an example.
    pub seq: usize,
}

/// Turns the output's gradients into the input's, in place, and adds each example's gradient of the gain to zeros.
pub fn normalize_backward(from: &Saved<'_>, grad: &mut [f32], gain_grads: &mut [f32]) {
    let d = from.gain.len();
    let scale = 1.0 / d as f32;
    vectorized(|| {
        let rows = grad.chunks_exact_mut(d).zip(from.normalized.chunks_exact(d)).zip(from.reciprocal);
        for (at, ((grad, normalized), reciprocal)) in rows.enumerate() {
            let example = at / from.seq * d;
            let gain_grad = &mut gain_grads[example..example + d];
            for (((grad, normalized), gain), gain_grad) in
                grad.iter_mut().zip(normalized).zip(from.gain).zip(gain_grad)
            {
                *gain_grad += *grad * normalized;
                *grad *= gain;
            }
            let along = dot(grad, normalized) * scale;
            for (grad, normalized) in grad.iter_mut().zip(normalized) {
                *grad = (*grad - normalized * along) * reciprocal;
            }
        }
    });
}
