//! Attention with padding and bias, and exact GELU, on slices.

use super::math::{exp, exp_row};
use super::rows::vectorized;

/// What decides which keys the rows of scores see. Axes: `[batch, heads, queries, keys]`.
pub struct AttentionMask<'a> {
    /// `[heads, queries, keys]`
    pub bias: Option<&'a [f32]>,
    /// `[batch]`
    pub lengths: Option<&'a [i32]>,
    pub causal: bool,
    pub scale: f32,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
}

/// Scores become probabilities in place; keys that are not seen get 0.
pub fn masked_softmax(scores: &mut [f32], sight: &AttentionMask<'_>) {
    let &AttentionMask { heads, queries, keys, scale, .. } = sight;
    vectorized(|| {
        for (row, scores) in scores.chunks_exact_mut(keys).enumerate() {
            let (query, example) = (row % queries, row / queries / heads);
            let mut seen = sight.lengths.map_or(keys, |lengths| lengths[example] as usize).min(keys);
            if sight.causal {
                seen = seen.min(query + 1);
            }
            let (seen, unseen) = scores.split_at_mut(seen);
            let sum = match sight.bias {
                Some(bias) => {
                    let of_row = &bias[row % (heads * queries) * keys..];
                    seen.iter_mut().zip(of_row).for_each(|(score, bias)| *score = *score * scale + bias);
                    exp_row(seen, 1.0)
                }
                None => exp_row(seen, scale),
            };
            let reciprocal = 1.0 / sum;
            seen.iter_mut().for_each(|value| *value *= reciprocal);
            unseen.fill(0.0);
        }
    });
}

/// Adds each row, shifted by its query, to the zeros of its example's and head's distances.
pub fn diagonal_sums(values: &[f32], queries: usize, keys: usize, sums: &mut [f32]) {
    let distances = queries + keys - 1;
    vectorized(|| {
        for (values, sums) in values.chunks_exact(queries * keys).zip(sums.chunks_exact_mut(distances)) {
            for (query, row) in values.chunks_exact(keys).enumerate() {
                let first = queries - 1 - query;
                sums[first..first + keys].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
    });
}

/// x·Φ(x)
pub fn gelu(input: &[f32], output: &mut [f32]) {
    vectorized(|| {
        for (&x, out) in input.iter().zip(output) {
            *out = x * normal(x).0;
        }
    });
}

/// Turns the output's gradients into the input's, in place.
pub fn gelu_backward(input: &[f32], grad: &mut [f32]) {
    vectorized(|| {
        for (&x, grad) in input.iter().zip(grad) {
            let (distribution, density) = normal(x);
            *grad *= distribution + x * density;
        }
    });
}

/// Φ(x) to 1e-7 and the density at x.
///
/// # References
/// Abramowitz and Stegun 7.1.26.
#[inline(always)]
fn normal(x: f32) -> (f32, f32) {
    const DENSITY_AT_0: f32 = crate::nn::kernels::portable::NORMAL_DENSITY_AT_0 as f32;
    let magnitude = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2 * magnitude);
    let bell = exp(-0.5 * x * x);
    let mut series = 1.061_405_4;
    for coefficient in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        series = series * t + coefficient;
    }
    let tail = 0.5 * series * t * bell;
    (if x > 0.0 { 1.0 - tail } else { tail }, bell * DENSITY_AT_0)
}
