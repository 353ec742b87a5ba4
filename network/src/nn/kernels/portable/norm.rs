//! Layer normalization and RMS normalization.

use super::sum_positions;
use crate::tensor::{Backend, Tensor};

pub fn normalize<B: Backend>(
    input: Tensor<B, 3>,
    gain: Tensor<B, 1>,
    bias: Tensor<B, 1>,
    epsilon: f64,
) -> [Tensor<B, 3>; 3] {
    let centered = input.clone() - input.mean_dim(2);
    let variance = centered.clone().square().mean_dim(2);
    let reciprocal = (variance + epsilon).sqrt().recip();
    let normalized = centered * reciprocal.clone();
    let output = normalized.clone() * gain.unsqueeze() + bias.unsqueeze();
    [output, normalized, reciprocal]
}

pub fn normalize_backward<B: Backend>(
    grad: Tensor<B, 3>,
    normalized: Tensor<B, 3>,
    reciprocal: Tensor<B, 3>,
    gain: Tensor<B, 1>,
) -> (Tensor<B, 3>, [Tensor<B, 2>; 2]) {
    let params = [sum_positions(normalized.clone() * grad.clone()), sum_positions(grad.clone())];
    let inner = grad * gain.unsqueeze();
    let mean = inner.clone().mean_dim(2);
    let along = (inner.clone() * normalized.clone()).mean_dim(2);
    ((inner - mean - normalized * along) * reciprocal, params)
}

pub fn rms_normalize<B: Backend>(input: Tensor<B, 3>, gain: Tensor<B, 1>, epsilon: f64) -> [Tensor<B, 3>; 3] {
    let reciprocal = (input.clone().square().mean_dim(2) + epsilon).sqrt().recip();
    let normalized = input * reciprocal.clone();
    let output = normalized.clone() * gain.unsqueeze();
    [output, normalized, reciprocal]
}

pub fn rms_normalize_backward<B: Backend>(
    grad: Tensor<B, 3>,
    normalized: Tensor<B, 3>,
    reciprocal: Tensor<B, 3>,
    gain: Tensor<B, 1>,
) -> (Tensor<B, 3>, Tensor<B, 2>) {
    let gain_grads = sum_positions(normalized.clone() * grad.clone());
    let inner = grad * gain.unsqueeze();
    let along = (inner.clone() * normalized.clone()).mean_dim(2);
    ((inner - normalized * along) * reciprocal, gain_grads)
}
