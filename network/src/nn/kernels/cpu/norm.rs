//! Layer normalization and RMS normalization.

use super::math::{dot, sum, sum_zip, vectorized};
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
    let rows = values_mut(&mut normalized).chunks_exact_mut(d);
    let rows = rows.zip(values_mut(&mut output).chunks_exact_mut(d)).zip(values_mut(&mut reciprocal));
    vectorized(|| {
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
    let out = values_mut(&mut input_grad);
    let examples = values_mut(&mut gain_grads).chunks_exact_mut(d);
    let examples = examples.zip(values_mut(&mut bias_grads).chunks_exact_mut(d)).enumerate();
    vectorized(|| {
        let mut inner = vec![0.0_f32; d];
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
    let rows = values_mut(&mut normalized).chunks_exact_mut(d);
    let rows = rows.zip(values_mut(&mut output).chunks_exact_mut(d)).zip(values_mut(&mut reciprocal));
    vectorized(|| {
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
    let rows = values_mut(&mut grad).chunks_exact_mut(d);
    let rows = rows.zip(values(&normalized).chunks_exact(d)).zip(values(&reciprocal)).enumerate();
    let gain_grads_of = values_mut(&mut gain_grads);
    vectorized(|| {
        for (row, ((grad, normalized), reciprocal)) in rows {
            let example = row / seq * d;
            let gain_grad = &mut gain_grads_of[example..example + d];
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
