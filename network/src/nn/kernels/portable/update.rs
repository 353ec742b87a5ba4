//! Sums on a grid, and Adam.

use super::super::{AdamStep, AdamTensors};
use crate::tensor::{Backend, Tensor, to_host_f64};

/// 1.5·2⁵²: a number added to it is rounded to an integer.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
/// Numbers below this can be rounded so.
const MAX_TERM: f64 = (1_u64 << 51) as f64;

pub fn add_on_grid<B: Backend>(values: Tensor<B, 1>, unit: f64, sums: &mut [i64]) -> bool {
    add_rounded(&to_host_f64(values), unit, sums)
}

/// [`Kernels::add_on_grid`](super::super::Kernels::add_on_grid) of values on the host.
#[inline(always)]
pub fn add_rounded<T: Copy + Into<f64>>(values: &[T], unit: f64, sums: &mut [i64]) -> bool {
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

pub fn add_truncated<B: Backend>(
    values: Tensor<B, 2>,
    factor: f64,
    room: u128,
    sums: &mut [i64],
    pitch: usize,
) -> u128 {
    let columns = values.dims()[1];
    add_truncated_values(&to_host_f64(values), columns, factor, room, sums, pitch)
}

/// Number of elements whose integers are checked and added together. They stay in the innermost cache.
const STRETCH: usize = 1024;

/// [`Kernels::add_truncated`](super::super::Kernels::add_truncated) of values on the host.
#[inline(always)]
pub fn add_truncated_values<T: Copy + Into<f64>>(
    values: &[T],
    columns: usize,
    factor: f64,
    mut room: u128,
    sums: &mut [i64],
    pitch: usize,
) -> u128 {
    let mut truncation = Truncation::default();
    for (values, sums) in values.chunks(columns.max(1)).zip(sums.chunks_mut(pitch.max(1))) {
        for (values, sums) in values.chunks(STRETCH).zip(sums.chunks_mut(STRETCH)) {
            let size = [1, values.len()];
            room = truncation.add(Stretch { values, width: values.len(), size }, factor, room, sums, 0);
        }
    }
    room
}

/// Up to 1,024 values in rows of `width`.
pub struct Stretch<'a, T> {
    pub values: &'a [T],
    pub width: usize,
    /// Rows and columns that are added; all other values are zero.
    pub size: [usize; 2],
}

/// Rounds stretches toward zero. It holds the integers of one.
pub struct Truncation {
    narrow: [i32; STRETCH],
    wide: [i64; STRETCH],
}

impl Default for Truncation {
    fn default() -> Self {
        Self { narrow: [0; STRETCH], wide: [0; STRETCH] }
    }
}

impl Truncation {
    /// Adds the values times `factor`, rounded toward zero, to sums whose rows are `pitch` apart. Adds nothing if a value has no integer, or
    /// if their squares exceed the room. Returns the room that is left.
    #[inline(always)]
    pub fn add<T: Copy + Into<f64>>(
        &mut self,
        stretch: Stretch<'_, T>,
        factor: f64,
        room: u128,
        sums: &mut [i64],
        pitch: usize,
    ) -> u128 {
        let Stretch { values, width, size } = stretch;
        let Self { narrow, wide } = self;
        let (narrow, wide) = (&mut narrow[..values.len()], &mut wide[..values.len()]);
        if let Some(square) = truncate_narrow(values, factor, narrow) {
            let Some(rest) = room.checked_sub(square.into()) else { return room };
            add_rows(narrow, width, size, sums, pitch);
            return rest;
        }
        let square = truncate(values, factor, wide);
        let Some(rest) = square.and_then(|square| room.checked_sub(square)) else { return room };
        add_rows(wide, width, size, sums, pitch);
        rest
    }
}

#[inline(always)]
fn add_rows<I: Copy + Into<i64>>(
    integers: &[I],
    width: usize,
    [rows, columns]: [usize; 2],
    sums: &mut [i64],
    pitch: usize,
) {
    for (row, integers) in integers.chunks_exact(width.max(1)).take(rows).enumerate() {
        let sums = &mut sums[row * pitch..][..columns];
        for (sum, &integer) in sums.iter_mut().zip(integers) {
            *sum = sum.wrapping_add(integer.into());
        }
    }
}

/// Rounds values times `factor` toward zero and returns the sum of the integers' squares; `None` unless all are below 2²⁶, so that the sum
/// fits.
#[inline(always)]
fn truncate_narrow<T: Copy + Into<f64>>(values: &[T], factor: f64, integers: &mut [i32]) -> Option<u64> {
    const LIMIT: f64 = (1 << 26) as f64;
    let (mut refused, mut square) = (0_u32, 0_u64);
    for (&value, integer) in values.iter().zip(integers) {
        let scaled = (value.into() * factor).trunc();
        let is_small = scaled.abs() < LIMIT; // false for NaN
        refused |= u32::from(!is_small);
        *integer = (scaled + TO_INTEGER).to_bits() as i32;
        square = square.wrapping_add((i64::from(*integer) * i64::from(*integer)) as u64);
    }
    (refused == 0).then_some(square)
}

/// Rounds values times `factor` toward zero and returns the sum of the integers' squares, without rounding; `None` if an integer is
/// 2⁵¹ or more, or a value is not a number.
#[inline(always)]
fn truncate<T: Copy + Into<f64>>(values: &[T], factor: f64, integers: &mut [i64]) -> Option<u128> {
    let (mut refused, mut square) = (0, 0_u128);
    for (&value, integer) in values.iter().zip(integers) {
        let scaled = (value.into() * factor).trunc();
        let is_small = scaled.abs() < MAX_TERM; // false for NaN
        refused |= u64::from(!is_small);
        *integer = (scaled + TO_INTEGER).to_bits().wrapping_sub(TO_INTEGER.to_bits()) as i64;
        square = square.wrapping_add(u128::from(integer.unsigned_abs()).pow(2));
    }
    (refused == 0).then_some(square)
}

pub fn square_sum<B: Backend>(values: Tensor<B, 1>) -> f64 {
    square_sum_of(&to_host_f64(values))
}

/// Sum of squares, in 32 partial sums.
#[inline(always)]
pub fn square_sum_of<T: Copy + Into<f64>>(values: &[T]) -> f64 {
    let mut partial = [0.0_f64; 32];
    let chunks = values.chunks_exact(partial.len());
    let rest = chunks.remainder();
    for chunk in chunks {
        for (sum, &value) in partial.iter_mut().zip(chunk) {
            let value: f64 = value.into();
            *sum += value * value;
        }
    }
    for (sum, &value) in partial.iter_mut().zip(rest) {
        let value: f64 = value.into();
        *sum += value * value;
    }
    partial.into_iter().sum()
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
