//! Kernels on slices. Each runs under the widest vector instructions of the processor at hand.

use super::math::{dot, exp, exp_row, sum, sum_zip};
use crate::nn::kernels::portable::{GELU_CUBIC, SQRT_2_OVER_PI};

/// Runs `work` under the widest vector instructions of the processor.
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Adds `row` to each row.
pub fn add_row(values: &mut [f32], row: &[f32]) {
    vectorized(|| {
        for values in values.chunks_exact_mut(row.len()) {
            values.iter_mut().zip(row).for_each(|(value, add)| *value += add);
        }
    });
}

/// `input` becomes the normalized rows; gives (output, reciprocal deviations).
pub fn normalize(
    input: &mut [f32],
    output: &mut [f32],
    reciprocal: &mut [f32],
    gain: &[f32],
    bias: &[f32],
    epsilon: f32,
) {
    let d = gain.len();
    let scale = 1.0 / d as f32;
    vectorized(|| {
        let rows = input.chunks_exact_mut(d).zip(output.chunks_exact_mut(d)).zip(reciprocal);
        for ((row, out), reciprocal) in rows {
            let mean = sum(row) * scale;
            let variance = sum_zip(row, row, |x, _| (x - mean) * (x - mean)) * scale;
            *reciprocal = 1.0 / (variance + epsilon).sqrt();
            for (((x, out), gain), bias) in row.iter_mut().zip(out).zip(gain).zip(bias) {
                *x = (*x - mean) * *reciprocal;
                *out = *x * gain + bias;
            }
        }
    });
}

/// What [`normalize_backward`] reads.
pub struct NormGrads<'a> {
    pub grad: &'a [f32],
    pub normalized: &'a [f32],
    pub reciprocal: &'a [f32],
    pub gain: &'a [f32],
    /// Positions an example.
    pub seq: usize,
}

/// Writes input gradients, and adds each example's gradients of gain and bias to zeros.
pub fn normalize_backward(
    from: &NormGrads<'_>,
    input_grad: &mut [f32],
    gain_grads: &mut [f32],
    bias_grads: &mut [f32],
) {
    let d = from.gain.len();
    let scale = 1.0 / d as f32;
    let example = from.seq * d;
    vectorized(|| {
        let mut inner = vec![0.0_f32; d];
        for (at, (gain_grad, bias_grad)) in
            gain_grads.chunks_exact_mut(d).zip(bias_grads.chunks_exact_mut(d)).enumerate()
        {
            for row in 0..from.seq {
                let span = at * example + row * d..at * example + (row + 1) * d;
                let (grad, normalized) = (&from.grad[span.clone()], &from.normalized[span.clone()]);
                for (((inner, grad), gain), bias_grad) in
                    inner.iter_mut().zip(grad).zip(from.gain).zip(&mut *bias_grad)
                {
                    *inner = grad * gain;
                    *bias_grad += grad;
                }
                for ((gain_grad, grad), normalized) in gain_grad.iter_mut().zip(grad).zip(normalized) {
                    *gain_grad += grad * normalized;
                }
                let mean = sum(&inner) * scale;
                let along = dot(&inner, normalized) * scale;
                let reciprocal = from.reciprocal[at * from.seq + row];
                for ((out, inner), normalized) in input_grad[span].iter_mut().zip(&inner).zip(normalized) {
                    *out = (inner - mean - normalized * along) * reciprocal;
                }
            }
        }
    });
}

/// x·σ(2u) with u = √(2/π)·(x + 0.044715·x³): the tanh form, since 1 + tanh u = 2σ(2u).
pub fn gelu(input: &[f32], output: &mut [f32]) {
    vectorized(|| {
        for (&x, out) in input.iter().zip(output) {
            *out = x * gate(x);
        }
    });
}

/// Turns the output's gradients into the input's, in place.
pub fn gelu_backward(input: &[f32], grad: &mut [f32]) {
    vectorized(|| {
        for (&x, grad) in input.iter().zip(grad) {
            *grad *= gate_slope(x, gate(x));
        }
    });
}

/// Derivative of gelu(x) = x·gate(x).
#[inline(always)]
pub fn gate_slope(x: f32, gate: f32) -> f32 {
    const SLOPE: f32 = (2.0 * SQRT_2_OVER_PI) as f32;
    const SLOPE_SQUARE: f32 = (6.0 * SQRT_2_OVER_PI * GELU_CUBIC) as f32;
    gate + x * gate * (1.0 - gate) * (SLOPE + SLOPE_SQUARE * x * x)
}

/// gelu(x) / x
#[inline(always)]
pub fn gate(x: f32) -> f32 {
    const LINEAR: f32 = (-2.0 * SQRT_2_OVER_PI) as f32;
    const CUBIC: f32 = (-2.0 * SQRT_2_OVER_PI * GELU_CUBIC) as f32;
    1.0 / (1.0 + exp(x * (LINEAR + CUBIC * x * x)))
}

/// Scores become probabilities in place; keys after the query get 0.
pub fn causal_softmax(scores: &mut [f32], seq: usize, scale: f32) {
    vectorized(|| {
        for (row, scores) in scores.chunks_exact_mut(seq).enumerate() {
            let (past, future) = scores.split_at_mut(row % seq + 1);
            let reciprocal = 1.0 / exp_row(past, scale);
            past.iter_mut().for_each(|value| *value *= reciprocal);
            future.fill(0.0);
        }
    });
}

/// Gradients of probabilities become gradients of scores, in place.
pub fn softmax_backward(probabilities: &[f32], grad: &mut [f32], seq: usize, scale: f32) {
    vectorized(|| {
        for (probabilities, grad) in probabilities.chunks_exact(seq).zip(grad.chunks_exact_mut(seq)) {
            let along = dot(probabilities, grad);
            for (grad, probability) in grad.iter_mut().zip(probabilities) {
                *grad = (*grad - along) * probability * scale;
            }
        }
    });
}

/// Negative log-likelihoods; the logits are used up.
pub fn token_nll(logits: &mut [f32], targets: &[i32], nll: &mut [f32]) {
    let vocabulary = logits.len() / targets.len();
    vectorized(|| {
        for ((row, &target), nll) in logits.chunks_exact_mut(vocabulary).zip(targets).zip(nll) {
            let of_target = row[target as usize];
            let largest = super::math::max(row);
            *nll = exp_row(row, 1.0).ln() - (of_target - largest);
        }
    });
}

/// Logits become the gradient of the weighted negative log-likelihood, in place.
pub fn cross_entropy_backward(logits: &mut [f32], targets: &[i32], weights: &[f32]) {
    let vocabulary = logits.len() / targets.len();
    vectorized(|| {
        for ((row, &target), &weight) in logits.chunks_exact_mut(vocabulary).zip(targets).zip(weights) {
            if weight == 0.0 {
                // Padding: whatever the logits are, its gradient is 0.
                row.fill(0.0);
                continue;
            }
            let scale = weight / exp_row(row, 1.0);
            row.iter_mut().for_each(|value| *value *= scale);
            row[target as usize] -= weight;
        }
    });
}

/// Copies `[batch, heads, seq, d_head]` into columns `first..` of rows of `width`.
pub fn merge_heads(
    part: &[f32],
    [heads, seq, d_head]: [usize; 3],
    out: &mut [f32],
    width: usize,
    first: usize,
) {
    for (at, values) in part.chunks_exact(d_head).enumerate() {
        let (position, head, example) = (at % seq, at / seq % heads, at / seq / heads);
        let start = (example * seq + position) * width + first + head * d_head;
        out[start..start + d_head].copy_from_slice(values);
    }
}

/// Adds the rows of each example to a row of zeros.
pub fn sum_positions(values: &[f32], seq: usize, d: usize, out: &mut [f32]) {
    vectorized(|| {
        for (example, out) in values.chunks_exact(seq * d).zip(out.chunks_exact_mut(d)) {
            for row in example.chunks_exact(d) {
                out.iter_mut().zip(row).for_each(|(out, value)| *out += value);
            }
        }
    });
}

/// Scales equal pieces by a factor each.
pub fn scale_examples(values: &mut [f32], factors: &[f32]) {
    let example = values.len() / factors.len();
    vectorized(|| {
        for (values, factor) in values.chunks_exact_mut(example).zip(factors) {
            values.iter_mut().for_each(|value| *value *= factor);
        }
    });
}

/// Adds pieces as long as `out`, each times its weight, to zeros; a stretch at a time, so that it stays in the cache.
pub fn weighted_sum(values: &[f32], weights: &[f32], out: &mut [f32]) {
    const STRETCH: usize = 4096;
    let length = out.len();
    vectorized(|| {
        for (at, out) in out.chunks_mut(STRETCH).enumerate() {
            for (values, &weight) in values.chunks_exact(length).zip(weights) {
                let values = &values[at * STRETCH..];
                out.iter_mut().zip(values).for_each(|(out, value)| *out += weight * value);
            }
        }
    });
}

/// Inner products of equal pieces, in blocks summed in double precision.
pub fn dots(a: &[f32], b: &[f32], out: &mut [f32]) {
    const BLOCK: usize = 512;
    let piece = a.len() / out.len();
    vectorized(|| {
        for ((a, b), out) in a.chunks_exact(piece).zip(b.chunks_exact(piece)).zip(out) {
            let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
            *out = blocks.map(|(a, b)| f64::from(dot(a, b))).sum::<f64>() as f32;
        }
    });
}
