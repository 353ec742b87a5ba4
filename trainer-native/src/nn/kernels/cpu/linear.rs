//! Products with bias and weighted sums.

use super::math::vectorized;
use super::{close, open, values, values_mut, zeros};
use crate::tensor::{Flex, Tensor};

pub(crate) fn affine(
    input: Tensor<Flex, 2>,
    weight: Tensor<Flex, 2>,
    bias: Tensor<Flex, 1>,
) -> Tensor<Flex, 2> {
    let d_out = weight.dims()[1];
    let (mut output, bias) = (open(input.matmul(weight)), open(bias));
    let (rows, bias) = (values_mut(&mut output).chunks_exact_mut(d_out), values(&bias));
    vectorized(|| {
        for row in rows {
            row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
        }
    });
    close(output)
}

pub(crate) fn sum_positions(rows: Tensor<Flex, 3>) -> Tensor<Flex, 2> {
    let [batch, seq, d] = rows.dims();
    let (rows, mut sums) = (open(rows), zeros([batch, d]));
    let examples = values(&rows).chunks_exact(seq * d).zip(values_mut(&mut sums).chunks_exact_mut(d));
    vectorized(|| {
        for (example, sum) in examples {
            for row in example.chunks_exact(d) {
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
    });
    close(sums)
}

pub(crate) fn scale_examples(rows: Tensor<Flex, 3>, factors: Tensor<Flex, 1>) -> Tensor<Flex, 3> {
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

/// Works on a stretch of the output at a time, so that the stretch stays in the cache.
pub(crate) fn weighted_sum(rows: Tensor<Flex, 2>, weights: Tensor<Flex, 1>) -> Tensor<Flex, 1> {
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
