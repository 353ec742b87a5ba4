//! Products of rows and a weight that is held in 16 bits. A block of the weight is widened at a time, and stays in the cache until it
//! is multiplied. The blocks do not depend on the number of threads, so neither do the bits of the product.

use std::ops::Range;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::linear::{FEW_ROWS, transposed};
use super::math::vectorized;
use super::matrix::Matrix;
use super::product::{add_product, product as matrix_product};
use super::threads::{self, in_parallel};
use super::{close, open, values, values_mut, zeros};
use crate::tensor::{DType, Flex, FlexTensor, Tensor};

/// Elements of a weight that are widened at a time.
const BLOCK: usize = 1 << 18;

/// Multiplications of a product from which further threads save more than they cost.
const WORTH_THREADS: usize = 1 << 23;

/// Rows up to which a product with some columns of a long transposed weight copies less of its input than one with some of its rows copies
/// of the weight.
const FEW_FOR_LONG: usize = 64;

/// Parts of a sum over a long axis, which are computed in parallel and added in their order.
const PARTS: usize = 8;

pub fn is_narrow<const D: usize>(values: &Tensor<Flex, D>) -> bool {
    matches!(values.dtype(), DType::F16 | DType::BF16)
}

/// Widens values to 32 bits directly. The library's own conversion passes through 64 bits.
pub fn widen<const D: usize>(narrow: Tensor<Flex, D>) -> Tensor<Flex, D> {
    let (narrow, mut wide) = (open(narrow.clone()), zeros(narrow.dims()));
    let all = 0..values(&wide).len();
    widen_to(&narrow, all, values_mut(&mut wide));
    close(wide)
}

fn widen_to(narrow: &FlexTensor, place: Range<usize>, wide: &mut [f32]) {
    match narrow.dtype() {
        // Weights are finite, so the bits need no look for NaN.
        DType::BF16 => vectorized(|| {
            let narrow: &[bf16] = &narrow.storage()[place];
            let bits = narrow.iter().map(|value| f32::from_bits(u32::from(value.to_bits()) << 16));
            wide.iter_mut().zip(bits).for_each(|(wide, value)| *wide = value);
        }),
        _ => narrow.storage::<f16>()[place].convert_to_f32_slice(wide),
    }
}

/// Computes the product of rows of 32 bits and a weight of 16 bits, `[d_in, d_out]`.
pub fn product(input: Tensor<Flex, 2>, weight: Tensor<Flex, 2>) -> Tensor<Flex, 2> {
    let ([rows, d_in], d_out) = (input.dims(), weight.dims()[1]);
    let threads = if rows * d_in * d_out < WORTH_THREADS { 1 } else { threads::available() };
    let primitive = weight.clone().into_primitive().tensor();
    let input: Tensor<Flex, 2> = close(open(input));
    let is_long = d_in > 4 * d_out;
    if primitive.layout().strides() == [1, d_in as isize] && d_in > 1 {
        let by = if is_long && rows > FEW_FOR_LONG { by_parts } else { by_columns };
        return by(&input, &open(weight.transpose()), d_out, threads, true);
    }
    let by = if is_long { by_parts } else { by_columns };
    by(&input, &open(weight), d_out, threads, false)
}

/// Computes some columns of the output at a time. `weight` is `[d_out, d_in]` if it is transposed.
fn by_columns(
    input: &Tensor<Flex, 2>,
    weight: &FlexTensor,
    d_out: usize,
    threads: usize,
    is_transposed: bool,
) -> Tensor<Flex, 2> {
    let [rows, d_in] = input.dims();
    // An even number of equal blocks, so that two threads end at about the same time.
    let blocks = (d_in * d_out).div_ceil(BLOCK).next_multiple_of(2);
    let width = d_out.div_ceil(blocks.max(1)).next_multiple_of(16).min(d_out.max(1));
    let mut output = zeros([rows, d_out]);
    let blocks = d_out.div_ceil(width);
    let mut places: Vec<Vec<&mut [f32]>> = (0..blocks).map(|_| Vec::with_capacity(rows)).collect();
    for row in values_mut(&mut output).chunks_mut(d_out.max(1)) {
        places.iter_mut().zip(row.chunks_mut(width)).for_each(|(place, piece)| place.push(piece));
    }
    in_parallel(threads, places, |block, place| {
        let (first, columns) = (block * width, width.min(d_out - block * width));
        let part = if is_transposed {
            let block =
                widened(weight, std::iter::once(first * d_in..(first + columns) * d_in), [columns, d_in]);
            match rows <= FEW_ROWS {
                true => transposed(matrix_product(block, input.clone().transpose())),
                false => matrix_product(input.clone(), block.transpose()),
            }
        } else {
            let of_row = |row: usize| row * d_out + first..row * d_out + first + columns;
            matrix_product(input.clone(), widened(weight, (0..d_in).map(of_row), [d_in, columns]))
        };
        let part = open(part);
        for (piece, row) in place.into_iter().zip(values(&part).chunks(columns)) {
            piece.copy_from_slice(row);
        }
    });
    close(output)
}

/// Computes the product with a long first axis of the weight as a sum over parts of it. `weight` is `[d_out, d_in]` if it is transposed.
fn by_parts(
    input: &Tensor<Flex, 2>,
    weight: &FlexTensor,
    d_out: usize,
    threads: usize,
    is_transposed: bool,
) -> Tensor<Flex, 2> {
    let [rows, d_in] = input.dims();
    let height = (BLOCK / d_out.max(1)).max(1);
    let each = d_in.div_ceil(PARTS).next_multiple_of(height);
    let input = open(input.clone());
    let mut sums: Vec<FlexTensor> = (0..d_in.div_ceil(each)).map(|_| zeros([rows, d_out])).collect();
    in_parallel(threads, sums.iter_mut().collect(), |part, sum| {
        let end = d_in.min((part + 1) * each);
        let mut wide = Vec::new();
        for first in (part * each..end).step_by(height) {
            let height = height.min(end - first);
            wide.resize(height * d_out, 0.0);
            let columns = Matrix::of(&input, 0).columns(first..first + height);
            if is_transposed {
                for (row, wide) in wide.chunks_exact_mut(height).enumerate() {
                    widen_to(weight, row * d_in + first..row * d_in + first + height, wide);
                }
                add_product(&columns, &Matrix::in_order(&wide, d_out).transposed(), values_mut(sum));
            } else {
                widen_to(weight, first * d_out..(first + height) * d_out, &mut wide);
                add_product(&columns, &Matrix::in_order(&wide, height), values_mut(sum));
            }
        }
    });
    let sum = sums.into_iter().map(close).reduce(|sum, part| sum + part);
    sum.unwrap_or_else(|| close(zeros([rows, d_out])))
}

/// Widens these stretches of a weight, one after the other.
fn widened(
    narrow: &FlexTensor,
    places: impl Iterator<Item = Range<usize>>,
    shape: [usize; 2],
) -> Tensor<Flex, 2> {
    let mut wide = zeros(shape);
    let mut rest = values_mut(&mut wide);
    for place in places {
        let (to, after) = rest.split_at_mut(place.len());
        widen_to(narrow, place, to);
        rest = after;
    }
    close(wide)
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    use super::super::threads::on_threads;
    use super::*;
    use crate::tensor::{FlexDevice, FloatDType, from_host, to_host};

    /// Oracle: the product with the weight widened as a whole. Sums over up to 5,000 terms of size 1 differ by 32-bit rounding.
    #[test]
    fn products_are_those_of_the_widened_weight_with_the_same_bits_on_any_number_of_threads() {
        let mut stream = TestRng::from_seed(1).stream(Purpose::Initialization, 0, 0);
        let mut draw = |shape: [usize; 2], dtype| {
            let mut values = vec![0.0; shape[0] * shape[1]];
            stream.fill_gaussian_f32(&mut values, 1.0);
            from_host::<Flex, 2>(values, shape, dtype, &FlexDevice)
        };
        let shapes = [(3, 40, 70), (1, 700, 900), (300, 300, 901), (70, 5_000, 300), (5, 1, 7)];
        for (dtype, is_transposed) in
            [FloatDType::BF16, FloatDType::F16].into_iter().flat_map(|dtype| [(dtype, true), (dtype, false)])
        {
            for (rows, d_in, d_out) in shapes {
                let input = draw([rows, d_in], FloatDType::F32);
                let weight = match is_transposed {
                    true => draw([d_out, d_in], dtype).transpose(),
                    false => draw([d_in, d_out], dtype),
                };
                let want = to_host(input.clone().matmul(weight.clone().cast(FloatDType::F32)));
                let of = |threads| to_host(on_threads(threads, || product(input.clone(), weight.clone())));
                let found = of(1);
                for (found, want) in found.iter().zip(&want) {
                    assert!((found - want).abs() < 1e-3, "{rows} {d_in} {d_out}: {found} {want}");
                }
                assert_eq!((found.len(), &of(3)), (want.len(), &found));
            }
        }
    }
}
