//! Products with bias and weighted sums.

use std::panic::resume_unwind;

use super::math::{vectorized, vectorized_loop};
use super::product::product;
use super::{close, open, values, values_mut, zeros};
use crate::tensor::{DType, Flex, Tensor};

/// Adds a bias to each row.
pub fn add_bias(rows: Tensor<Flex, 2>, bias: Tensor<Flex, 1>) -> Tensor<Flex, 2> {
    let width = rows.dims()[1];
    let (mut output, bias) = (open(rows), open(bias));
    let (rows, bias) = (values_mut(&mut output).chunks_exact_mut(width), values(&bias));
    vectorized(|| {
        for row in rows {
            row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
        }
    });
    close(output)
}

/// Rows up to which a product spends much of its time on copying a transposed weight into its own layout.
pub(super) const FEW_ROWS: usize = 256;

/// Elements from which a weight is large: it does not stay in the cache between products.
const LARGE: usize = 1 << 18;

/// Computes the product of few rows and a large transposed weight W as (Wᵀ·inputᵀ)ᵀ, which copies the input in place of the weight.
fn product_of_few_rows(input: Tensor<Flex, 2>, weight: Tensor<Flex, 2>) -> Tensor<Flex, 2> {
    let ([rows, d_in], d_out) = (input.dims(), weight.dims()[1]);
    let (input, weight) = (input.into_primitive().tensor(), weight.into_primitive().tensor());
    let is_transposed = weight.layout().strides() == [1, d_in as isize];
    let is_copied = is_transposed && input.dtype() == DType::F32 && rows <= FEW_ROWS && d_in * d_out >= LARGE;
    let [input, weight] = [close::<2>(input), close(weight)];
    match is_copied {
        true => transposed(product(weight.transpose(), input.transpose())),
        false => product(input, weight),
    }
}

/// Copies a matrix in the other order of its axes.
pub(super) fn transposed(matrix: Tensor<Flex, 2>) -> Tensor<Flex, 2> {
    const SIDE: usize = 16;
    let [rows, columns] = matrix.dims();
    let (matrix, mut copy) = (open(matrix), zeros([columns, rows]));
    let (from, to) = (values(&matrix), values_mut(&mut copy));
    for first in (0..rows).step_by(SIDE) {
        let height = SIDE.min(rows - first);
        for left in (0..columns).step_by(SIDE) {
            let width = SIDE.min(columns - left);
            let mut tile = [[0.0_f32; SIDE]; SIDE];
            for (tile, row) in tile.iter_mut().zip(first..first + height) {
                tile[..width].copy_from_slice(&from[row * columns + left..][..width]);
            }
            for (at, column) in (left..left + width).enumerate() {
                let to = &mut to[column * rows + first..][..height];
                to.iter_mut().zip(&tile).for_each(|(to, tile)| *to = tile[at]);
            }
        }
    }
    close(copy)
}

/// Number of multiplications below which a thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 18;

/// Computes the product with several threads, each of which computes some of the columns.
pub fn wide_product(a: Tensor<Flex, 2>, b: Tensor<Flex, 2>, threads: usize) -> Tensor<Flex, 2> {
    let ([m, k], n) = (a.dims(), b.dims()[1]);
    let threads = threads.min(m * k * n / WORTH_A_THREAD).min(n);
    if threads < 2 {
        return product_of_few_rows(a, b);
    }
    let width = n.div_ceil(threads);
    let columns = |first: usize| b.clone().narrow(1, first, width.min(n - first));
    let parts = std::thread::scope(|scope| {
        let others: Vec<_> = (width..n)
            .step_by(width)
            .map(|first| {
                let (a, b) = (a.clone(), columns(first));
                scope.spawn(move || product_of_few_rows(a, b))
            })
            .collect();
        let first = product_of_few_rows(a.clone(), columns(0));
        let others = others.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    });
    Tensor::cat(parts, 1)
}

pub fn sum_positions(rows: Tensor<Flex, 3>) -> Tensor<Flex, 2> {
    let [batch, seq, d] = rows.dims();
    let (rows, mut sums) = (open(rows), zeros([batch, d]));
    let (rows, all_sums) = (values(&rows), values_mut(&mut sums));
    vectorized_loop!([rows: &'a [f32], all_sums: &'a mut [f32], seq: usize, d: usize] {
        for (example, sum) in rows.chunks_exact(seq * d).zip(all_sums.chunks_exact_mut(d)) {
            for row in example.chunks_exact(d) {
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
    });
    close(sums)
}

pub fn scale_examples(rows: Tensor<Flex, 3>, factors: Tensor<Flex, 1>) -> Tensor<Flex, 3> {
    let [_, seq, d] = rows.dims();
    let (mut rows, factors) = (open(rows), open(factors));
    let examples = values_mut(&mut rows).chunks_exact_mut(seq * d).zip(values(&factors));
    vectorized(|| {
        for (values, factor) in examples {
            values.iter_mut().for_each(|value| *value *= factor);
        }
    });
    close(rows)
}

/// Processes a stretch of the output at a time, so that the stretch stays in the cache.
pub fn weighted_sum(rows: Tensor<Flex, 2>, weights: Tensor<Flex, 1>) -> Tensor<Flex, 1> {
    const STRETCH: usize = 4096;
    let length = rows.dims()[1];
    let (rows, weights, mut sum) = (open(rows), open(weights), zeros([length]));
    let (rows, weights) = (values(&rows), values(&weights));
    let stretches = values_mut(&mut sum).chunks_mut(STRETCH).enumerate();
    vectorized(|| {
        for (at, sum) in stretches {
            for (row, &weight) in rows.chunks_exact(length).zip(weights) {
                sum.iter_mut().zip(&row[at * STRETCH..]).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    });
    close(sum)
}
