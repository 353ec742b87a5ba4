//! Sums on a grid, and Adam.

use super::super::{AdamStep, AdamTensors};
use crate::tensor::{Backend, Tensor, to_host_f64};

pub fn add_on_grid<B: Backend>(values: Tensor<B, 1>, unit: f64, sums: &mut [i64]) -> bool {
    add_rounded(&to_host_f64(values), unit, sums)
}

/// [`Kernels::add_on_grid`](super::super::Kernels::add_on_grid) of values on the host.
#[inline(always)]
pub fn add_rounded<T: Copy + Into<f64>>(values: &[T], unit: f64, sums: &mut [i64]) -> bool {
    const TO_INTEGER: f64 = 6_755_399_441_055_744.0; // 1.5·2⁵²: a number added to it is rounded to an integer
    const MAX_TERM: f64 = (1_u64 << 51) as f64;
    const MAX_SUM: u64 = 1 << 62;
    let scale = 1.0 / unit;
    let mut refused = u64::from(values.len() != sums.len());
    for (&value, sum) in values.iter().zip(sums) {
        let scaled = value.into() * scale;
        let integer = (scaled + TO_INTEGER).to_bits().wrapping_sub(TO_INTEGER.to_bits());
        *sum = sum.wrapping_add(integer as i64);
        let is_small = scaled.abs() < MAX_TERM; // false for NaN
        refused |= u64::from(!is_small);
        refused |= u64::from((*sum as u64).wrapping_add(MAX_SUM) > 2 * MAX_SUM);
    }
    refused == 0
}

pub fn adam<B: Backend>(tensors: AdamTensors<B>, grad: Tensor<B, 1>, step: &AdamStep) -> AdamTensors<B> {
    let [beta1, beta2] = step.betas;
    let first = tensors.first * beta1 + grad.clone() * (1.0 - beta1);
    let second = tensors.second * beta2 + grad.square() * (1.0 - beta2);
    let corrected = second.clone() / step.second_bias;
    let scale = match step.noise {
        Some([noise, floor]) => (corrected - noise).clamp_min(floor).sqrt(),
        None => corrected.sqrt() + step.epsilon,
    };
    AdamTensors { value: tensors.value * step.kept - first.clone() / scale * step.rate, first, second }
}

/// Number of elements below which a thread is not worth its cost.
const LEAST_PIECE: usize = 1 << 16;

/// The number of elements that each thread updates: an even share, at least `LEAST_PIECE`, rounded up to 8 so that no
/// block of random numbers is split.
pub fn piece_length(length: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    length.div_ceil(cores).max(LEAST_PIECE).next_multiple_of(8)
}
