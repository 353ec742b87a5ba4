//! Tiles of matrix products, and the copies that they are computed from.

use std::ops::Range;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use pulp::Simd;

use super::matrix::Matrix;

/// Vectors in a row of a tile: the most that leave registers for the operands.
pub const VECTORS: usize = 3;
/// Elements of a tile of the widest vectors.
pub const LARGEST_TILE: usize = 8 * VECTORS * 16;
/// Lines that are copied together across the order of memory, and the part of them that is widened at once.
const TOGETHER: usize = 4;
const PART: usize = 384;

/// A number that has a value of 32 bits.
pub trait Number: Copy {
    /// Returns numbers that lie side by side in 32 bits. It may use `scratch`, which is as long.
    fn wide<'a>(numbers: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32];
}

impl Number for f32 {
    #[inline(always)]
    fn wide<'a>(numbers: &'a [Self], _scratch: &'a mut [f32]) -> &'a [f32] {
        numbers
    }
}

impl Number for bf16 {
    #[inline(always)]
    fn wide<'a>(numbers: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32] {
        // Weights are finite, so the bits need no look for NaN.
        let bits = numbers.iter().map(|number| f32::from_bits(u32::from(number.to_bits()) << 16));
        scratch.iter_mut().zip(bits).for_each(|(wide, number)| *wide = number);
        scratch
    }
}

impl Number for f16 {
    #[inline(always)]
    fn wide<'a>(numbers: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32] {
        numbers.convert_to_f32_slice(scratch);
        scratch
    }
}

/// Computes a tile of a product from the copies of its rows and columns. The tile is `vectors` wide, and its rows are `pitch` apart in
/// `out`. With `adds`, sums start with what is there, and otherwise with zero.
#[inline(always)]
pub fn sum<S: Simd, const ROWS: usize>(
    simd: S,
    vectors: usize,
    [left, right]: [&[f32]; 2],
    out: &mut [f32],
    pitch: usize,
    adds: bool,
) {
    match vectors {
        1 => sum_of_width::<S, ROWS, 1>(simd, [left, right], out, pitch, adds),
        2 => sum_of_width::<S, ROWS, 2>(simd, [left, right], out, pitch, adds),
        _ => sum_of_width::<S, ROWS, VECTORS>(simd, [left, right], out, pitch, adds),
    }
}

#[inline(always)]
fn sum_of_width<S: Simd, const ROWS: usize, const WIDTH: usize>(
    simd: S,
    [left, right]: [&[f32]; 2],
    out: &mut [f32],
    pitch: usize,
    adds: bool,
) {
    let width = WIDTH * lanes::<S>();
    let mut sums = [[simd.splat_f32s(0.0); WIDTH]; ROWS];
    if adds {
        for (row, sums) in sums.iter_mut().enumerate() {
            let (out, _) = S::as_simd_f32s(&out[row * pitch..][..width]);
            sums.copy_from_slice(out);
        }
    }
    let (left, _) = left.as_chunks::<ROWS>();
    let (right, _) = S::as_simd_f32s(right).0.as_chunks::<WIDTH>();
    for (left, right) in left.iter().zip(right) {
        for row in 0..ROWS {
            let left = simd.splat_f32s(left[row]);
            for vector in 0..WIDTH {
                sums[row][vector] = simd.mul_add_e_f32s(left, right[vector], sums[row][vector]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let (out, _) = S::as_mut_simd_f32s(&mut out[row * pitch..][..width]);
        out.copy_from_slice(sums);
    }
}

/// Numbers of 32 bits in a vector.
#[inline(always)]
pub fn lanes<S: Simd>() -> usize {
    size_of::<S::f32s>() / size_of::<f32>()
}

/// Returns this many elements that begin a line of the cache.
pub fn aligned(memory: &mut Vec<f32>, length: usize) -> &mut [f32] {
    const LINE: usize = 64;
    if memory.len() < length + LINE {
        memory.resize(length + LINE, 0.0);
    }
    let first = memory.as_ptr().align_offset(LINE).min(LINE);
    &mut memory[first..first + length]
}

/// Copies rows of a matrix to panels of `width` rows. A panel holds the values of all its rows at one inner index, then those at the next. The
/// width of the last panel is the smallest multiple of `unit` that holds its rows; the rest of it is zero.
#[inline(always)]
pub fn copy_panels<T: Number>(
    lines: &Matrix<'_, T>,
    which: Range<usize>,
    inner: Range<usize>,
    panels: &mut [f32],
    [width, unit]: [usize; 2],
) {
    for (panel, first) in panels.chunks_mut((width * inner.len()).max(1)).zip(which.clone().step_by(width)) {
        let which = first..which.end.min(first + width);
        let width = which.len().next_multiple_of(unit);
        for (panel, begin) in panel.chunks_mut(PART * width).zip(inner.clone().step_by(PART)) {
            let part = begin..inner.end.min(begin + PART);
            let panel = &mut panel[..part.len() * width];
            copy_part(lines, which.clone(), part, panel, width);
        }
    }
}

#[inline(always)]
fn copy_part<T: Number>(
    lines: &Matrix<'_, T>,
    which: Range<usize>,
    inner: Range<usize>,
    panel: &mut [f32],
    width: usize,
) {
    let (mut scratch, count) = ([[0.0; PART]; TOGETHER], which.len());
    let [down, along] = lines.strides;
    if count < width {
        panel.fill(0.0);
    }
    if down == 1 {
        for (panel, at) in panel.chunks_exact_mut(width).zip(inner.clone()) {
            let numbers = &lines.values[which.start + at * along..][..count];
            copy_short(T::wide(numbers, &mut scratch[0][..count]), panel);
        }
        return;
    }
    let line = |at: usize| &lines.values[(which.start + at) * down + inner.start * along..];
    for first in (0..count).step_by(TOGETHER) {
        if along == 1 && first + TOGETHER <= count {
            let mut at = first;
            let wide = scratch.each_mut().map(|scratch| {
                at += 1;
                T::wide(&line(at - 1)[..inner.len()], &mut scratch[..inner.len()])
            });
            for (at, panel) in panel.chunks_exact_mut(width).enumerate() {
                panel[first..first + TOGETHER].copy_from_slice(&wide.map(|line| line[at]));
            }
            continue;
        }
        for at in first..count.min(first + TOGETHER) {
            for (number, panel) in line(at).iter().step_by(along).zip(panel.chunks_exact_mut(width)) {
                panel[at] = T::wide(&[*number], &mut [0.0])[0];
            }
        }
    }
}

/// Copies a few numbers without a call.
#[inline(always)]
fn copy_short(from: &[f32], to: &mut [f32]) {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<TOGETHER>(), to.as_chunks_mut::<TOGETHER>());
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    match to.get_mut(from.len()) {
        Some(to) => to.iter_mut().zip(from_rest).for_each(|(to, from)| *to = *from),
        None => to_rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to = *from),
    }
}
