//! GELU, exact and in its tanh form, SiLU, and gates.

use crate::tensor::{Backend, Tensor, activation};

pub const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
pub const GELU_CUBIC: f64 = 0.044_715;
/// 1/√(2π)
pub const NORMAL_DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;

pub fn gelu_new<B: Backend>(input: Tensor<B, 3>) -> Tensor<B, 3> {
    let inner = (input.clone() + input.clone().powi_scalar(3) * GELU_CUBIC) * SQRT_2_OVER_PI;
    input * (inner.tanh() + 1.0) * 0.5
}

pub fn gelu_new_backward<B: Backend>(input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
    let square = input.clone().square();
    let inner = input.clone() * (square.clone() * GELU_CUBIC + 1.0) * SQRT_2_OVER_PI;
    let tanh = inner.tanh();
    let slope = (square * (3.0 * GELU_CUBIC) + 1.0) * SQRT_2_OVER_PI;
    let derivative = (tanh.clone() + 1.0) * 0.5 + input * 0.5 * (tanh.square() * (-1.0) + 1.0) * slope;
    grad * derivative
}

pub fn gelu_gate<B: Backend>(gate: Tensor<B, 3>, up: Tensor<B, 3>) -> Tensor<B, 3> {
    gelu_new(gate) * up
}

pub fn gelu_gate_backward<B: Backend>(
    gate: Tensor<B, 3>,
    up: Tensor<B, 3>,
    grad: Tensor<B, 3>,
) -> [Tensor<B, 3>; 2] {
    let up_grad = grad.clone() * gelu_new(gate.clone());
    [gelu_new_backward(gate, grad * up), up_grad]
}

pub fn silu_gate<B: Backend>(gate: Tensor<B, 3>, up: Tensor<B, 3>) -> Tensor<B, 3> {
    activation::silu(gate) * up
}

pub fn silu_gate_backward<B: Backend>(
    gate: Tensor<B, 3>,
    up: Tensor<B, 3>,
    grad: Tensor<B, 3>,
) -> [Tensor<B, 3>; 2] {
    let up_grad = grad.clone() * activation::silu(gate.clone());
    [grad * up * silu_slope(gate), up_grad]
}

/// d/dx x·σ(x) = σ(x)·(1 + x·(1 − σ(x)))
pub fn silu_slope<B: Backend>(input: Tensor<B, 3>) -> Tensor<B, 3> {
    let sigmoid = activation::sigmoid(input.clone());
    (input * (sigmoid.clone().neg() + 1.0) + 1.0) * sigmoid
}

pub fn gelu_erf<B: Backend>(input: Tensor<B, 3>) -> Tensor<B, 3> {
    input.clone() * normal_distribution(input)
}

pub fn gelu_erf_backward<B: Backend>(input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
    let density = (input.clone().square() * (-0.5)).exp() * NORMAL_DENSITY_AT_0;
    grad * (normal_distribution(input.clone()) + input * density)
}

/// Φ(x)
fn normal_distribution<B: Backend>(input: Tensor<B, 3>) -> Tensor<B, 3> {
    ((input * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}
