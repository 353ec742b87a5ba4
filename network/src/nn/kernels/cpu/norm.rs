//! Layer normalization and RMS normalization.

use super::math::{dot, sum, sum_zip, vectorized_loop};
use super::{close, open, values, values_mut, zeros};
use crate::tensor::{Flex, Tensor};

pub fn normalize(
    input: Tensor<Flex, 3>,
    gain: Tensor<Flex, 1>,
    bias: Tensor<Flex, 1>,
    epsilon: f64,
) -> [Tensor<Flex, 3>; 3] {
    let shape @ [batch, seq, d] = input.dims();
    let (mut normalized, gain, bias) = (open(input), open(gain), open(bias));
    let (mut output, mut reciprocal) = (zeros(shape), zeros([batch, seq, 1]));
    let (scale, epsilon) = (1.0 / d as f32, epsilon as f32);
    let (gain, bias) = (values(&gain), values(&bias));
    let (rows, out, reciprocals) =
        (values_mut(&mut normalized), values_mut(&mut output), values_mut(&mut reciprocal));
    vectorized_loop!([
        rows: &'a mut [f32], out: &'a mut [f32], reciprocals: &'a mut [f32], gain: &'a [f32], bias: &'a [f32], d: usize,
        scale: f32, epsilon: f32
    ] {
        let rows = rows.chunks_exact_mut(d).zip(out.chunks_exact_mut(d)).zip(reciprocals);
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
    [close(output), close(normalized), close(reciprocal)]
}

pub fn normalize_backward(
    grad: Tensor<Flex, 3>,
    normalized: Tensor<Flex, 3>,
    reciprocal: Tensor<Flex, 3>,
    gain: Tensor<Flex, 1>,
) -> (Tensor<Flex, 3>, [Tensor<Flex, 2>; 2]) {
    let shape @ [batch, seq, d] = grad.dims();
    let [grad, normalized, reciprocal] = [grad, normalized, reciprocal].map(open);
    let gain = open(gain);
    let (mut input_grad, mut gain_grads, mut bias_grads) =
        (zeros(shape), zeros([batch, d]), zeros([batch, d]));
    let scale = 1.0 / d as f32;
    let (grad, normalized, reciprocal, gain) =
        (values(&grad), values(&normalized), values(&reciprocal), values(&gain));
    let (out, gain_sums, bias_sums) =
        (values_mut(&mut input_grad), values_mut(&mut gain_grads), values_mut(&mut bias_grads));
    vectorized_loop!([
        grad: &'a [f32], normalized: &'a [f32], reciprocal: &'a [f32], gain: &'a [f32], out: &'a mut [f32],
        gain_sums: &'a mut [f32], bias_sums: &'a mut [f32], seq: usize, d: usize, scale: f32
    ] {
        let mut inner = vec![0.0_f32; d];
        let examples = gain_sums.chunks_exact_mut(d).zip(bias_sums.chunks_exact_mut(d)).enumerate();
        for (example, (gain_grad, bias_grad)) in examples {
            for row in example * seq..(example + 1) * seq {
                let span = row * d..(row + 1) * d;
                let (grad, normalized) = (&grad[span.clone()], &normalized[span.clone()]);
                for (((inner, grad), gain), bias_grad) in
                    inner.iter_mut().zip(grad).zip(gain).zip(&mut *bias_grad)
                {
                    *inner = grad * gain;
                    *bias_grad += grad;
                }
                for ((gain_grad, grad), normalized) in gain_grad.iter_mut().zip(grad).zip(normalized) {
                    *gain_grad += grad * normalized;
                }
                let mean = sum(&inner) * scale;
                let along = dot(&inner, normalized) * scale;
                let reciprocal = reciprocal[row];
                for ((out, inner), normalized) in out[span].iter_mut().zip(&inner).zip(normalized) {
                    *out = (inner - mean - normalized * along) * reciprocal;
                }
            }
        }
    });
    (close(input_grad), [close(gain_grads), close(bias_grads)])
}

pub fn rms_normalize(input: Tensor<Flex, 3>, gain: Tensor<Flex, 1>, epsilon: f64) -> [Tensor<Flex, 3>; 3] {
    let shape @ [batch, seq, d] = input.dims();
    let (mut normalized, gain) = (open(input), open(gain));
    let (mut output, mut reciprocal) = (zeros(shape), zeros([batch, seq, 1]));
    let (scale, epsilon, gain) = (1.0 / d as f32, epsilon as f32, values(&gain));
    let (rows, out, reciprocals) =
        (values_mut(&mut normalized), values_mut(&mut output), values_mut(&mut reciprocal));
    vectorized_loop!([
        rows: &'a mut [f32], out: &'a mut [f32], reciprocals: &'a mut [f32], gain: &'a [f32], d: usize, scale: f32,
        epsilon: f32
    ] {
        let rows = rows.chunks_exact_mut(d).zip(out.chunks_exact_mut(d)).zip(reciprocals);
        for ((row, out), reciprocal) in rows {
            let square = sum_zip(row, row, |x, _| x * x) * scale;
            *reciprocal = 1.0 / (square + epsilon).sqrt();
            for ((x, out), gain) in row.iter_mut().zip(out).zip(gain) {
                *x *= *reciprocal;
                *out = *x * gain;
            }
        }
    });
    [close(output), close(normalized), close(reciprocal)]
}

pub fn rms_normalize_backward(
    grad: Tensor<Flex, 3>,
    normalized: Tensor<Flex, 3>,
    reciprocal: Tensor<Flex, 3>,
    gain: Tensor<Flex, 1>,
) -> (Tensor<Flex, 3>, Tensor<Flex, 2>) {
    let [batch, seq, d] = grad.dims();
    let [mut grad, normalized, reciprocal] = [grad, normalized, reciprocal].map(open);
    let (gain, mut gain_grads) = (open(gain), zeros([batch, d]));
    let (scale, gain) = (1.0 / d as f32, values(&gain));
    let (rows, normalized, reciprocal) = (values_mut(&mut grad), values(&normalized), values(&reciprocal));
    let gain_sums = values_mut(&mut gain_grads);
    vectorized_loop!([
        rows: &'a mut [f32], normalized: &'a [f32], reciprocal: &'a [f32], gain: &'a [f32], gain_sums: &'a mut [f32],
        seq: usize, d: usize, scale: f32
    ] {
        let rows = rows.chunks_exact_mut(d).zip(normalized.chunks_exact(d)).zip(reciprocal).enumerate();
        for (row, ((grad, normalized), reciprocal)) in rows {
            let example = row / seq * d;
            let gain_grad = &mut gain_sums[example..example + d];
            for (((grad, normalized), gain), gain_grad) in
                grad.iter_mut().zip(normalized).zip(gain).zip(gain_grad)
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
    (close(grad), close(gain_grads))
}
