//! GELU, exact and in its tanh form, SiLU, and gates. Several threads divide a large tensor, which changes no bit.

use super::super::portable::{GELU_CUBIC, NORMAL_DENSITY_AT_0, SQRT_2_OVER_PI};
use super::math::{exp, vectorized};
use super::threads::{PIECE, available, in_parallel};
use super::{close, open, values, values_mut, zeros};
use crate::tensor::{Flex, Tensor};

/// x·σ(2u) with u = √(2/π)·(x + 0.044715·x³). This equals the tanh form, because 1 + tanh u = 2σ(2u).
pub fn gelu_new(input: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
    map(input, |x| x * gate(x))
}

pub fn gelu_new_backward(input: Tensor<Flex, 3>, grad: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
    scale(input, grad, |x| gate_slope(x, gate(x)))
}

pub fn gelu_gate(gate_input: Tensor<Flex, 3>, up: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
    scale(gate_input, up, |x| x * gate(x))
}

pub fn gelu_gate_backward(
    gate_input: Tensor<Flex, 3>,
    up: Tensor<Flex, 3>,
    grad: Tensor<Flex, 3>,
) -> [Tensor<Flex, 3>; 2] {
    scale_both(gate_input, up, grad, |x| {
        let open = gate(x);
        (x * open, gate_slope(x, open))
    })
}

/// x·σ(x)·up
pub fn silu_gate(gate_input: Tensor<Flex, 3>, up: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
    scale(gate_input, up, |x| x * sigmoid(x))
}

pub fn silu_gate_backward(
    gate_input: Tensor<Flex, 3>,
    up: Tensor<Flex, 3>,
    grad: Tensor<Flex, 3>,
) -> [Tensor<Flex, 3>; 2] {
    scale_both(gate_input, up, grad, |x| {
        let sigmoid = sigmoid(x);
        (x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid)))
    })
}

/// x·Φ(x)
pub fn gelu_erf(input: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
    map(input, |x| x * normal(x).0)
}

pub fn gelu_erf_backward(input: Tensor<Flex, 3>, grad: Tensor<Flex, 3>) -> Tensor<Flex, 3> {
    scale(input, grad, |x| {
        let (distribution, density) = normal(x);
        distribution + x * density
    })
}

/// Returns f(x) for each element.
fn map(input: Tensor<Flex, 3>, f: impl Fn(f32) -> f32 + Sync) -> Tensor<Flex, 3> {
    let mut output = zeros(input.dims());
    let input = open(input);
    let pieces = values(&input).chunks(PIECE).zip(values_mut(&mut output).chunks_mut(PIECE));
    in_parallel(available(), pieces.collect(), |_, (input, output)| {
        let pairs = input.iter().zip(output);
        vectorized(|| {
            for (&x, out) in pairs {
                *out = f(x);
            }
        });
    });
    close(output)
}

/// Returns factors·f(input), element by element.
fn scale(input: Tensor<Flex, 3>, factors: Tensor<Flex, 3>, f: impl Fn(f32) -> f32 + Sync) -> Tensor<Flex, 3> {
    let (input, mut factors) = (open(input), open(factors));
    let pieces = values(&input).chunks(PIECE).zip(values_mut(&mut factors).chunks_mut(PIECE));
    in_parallel(available(), pieces.collect(), |_, (input, factors)| {
        let pairs = input.iter().zip(factors);
        vectorized(|| {
            for (&x, factor) in pairs {
                *factor *= f(x);
            }
        });
    });
    close(factors)
}

/// Returns the gradients of f(input)·factors: of the input and of the factors. `f` gives its value and its slope.
fn scale_both(
    input: Tensor<Flex, 3>,
    factors: Tensor<Flex, 3>,
    grad: Tensor<Flex, 3>,
    f: impl Fn(f32) -> (f32, f32) + Sync,
) -> [Tensor<Flex, 3>; 2] {
    let (mut input, mut factors, grad) = (open(input), open(factors), open(grad));
    let pieces = values_mut(&mut input).chunks_mut(PIECE).zip(values_mut(&mut factors).chunks_mut(PIECE));
    let pieces = pieces.zip(values(&grad).chunks(PIECE));
    in_parallel(available(), pieces.collect(), |_, ((input, factors), grad)| {
        let triples = input.iter_mut().zip(factors).zip(grad);
        vectorized(|| {
            for ((input, factor), grad) in triples {
                let (value, slope) = f(*input);
                *input = grad * *factor * slope;
                *factor = grad * value;
            }
        });
    });
    [close(input), close(factors)]
}

/// σ(x)
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// gelu_new(x) / x
#[inline(always)]
fn gate(x: f32) -> f32 {
    const LINEAR: f32 = (-2.0 * SQRT_2_OVER_PI) as f32;
    const CUBIC: f32 = (-2.0 * SQRT_2_OVER_PI * GELU_CUBIC) as f32;
    1.0 / (1.0 + exp(x * (LINEAR + CUBIC * x * x)))
}

/// Derivative of gelu_new(x) = x·gate(x).
#[inline(always)]
fn gate_slope(x: f32, gate: f32) -> f32 {
    const SLOPE: f32 = (2.0 * SQRT_2_OVER_PI) as f32;
    const SLOPE_SQUARE: f32 = (6.0 * SQRT_2_OVER_PI * GELU_CUBIC) as f32;
    gate + x * gate * (1.0 - gate) * (SLOPE + SLOPE_SQUARE * x * x)
}

/// Φ(x), with an error of at most 1e-7, and the density at x.
///
/// # References
/// Abramowitz and Stegun 7.1.26.
#[inline(always)]
fn normal(x: f32) -> (f32, f32) {
    const DENSITY_AT_0: f32 = NORMAL_DENSITY_AT_0 as f32;
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
