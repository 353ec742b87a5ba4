//! Negative log-likelihood and its gradient.

use super::math::{exp_row, max, vectorized_loop};
use super::{close, ints, open, open_int, values, values_mut, zeros};
use crate::tensor::{Flex, Int, Tensor};

pub fn token_nll(logits: Tensor<Flex, 2>, targets: Tensor<Flex, 1, Int>) -> Tensor<Flex, 1> {
    let [rows, vocabulary] = logits.dims();
    let (mut logits, targets, mut nll) = (open(logits), open_int(targets), zeros([rows]));
    let (rows, targets, nlls) = (values_mut(&mut logits), ints(&targets), values_mut(&mut nll));
    vectorized_loop!([rows: &'a mut [f32], targets: &'a [i32], nlls: &'a mut [f32], vocabulary: usize] {
        for ((row, &target), nll) in rows.chunks_exact_mut(vocabulary).zip(targets).zip(nlls) {
            let of_target = row[target as usize];
            let largest = max(row);
            *nll = exp_row(row, 1.0).ln() - (of_target - largest);
        }
    });
    close(nll)
}

pub fn cross_entropy_backward(
    logits: Tensor<Flex, 2>,
    targets: Tensor<Flex, 1, Int>,
    weights: Tensor<Flex, 1>,
) -> Tensor<Flex, 2> {
    let vocabulary = logits.dims()[1];
    let (mut logits, targets, weights) = (open(logits), open_int(targets), open(weights));
    let (rows, targets, weights) = (values_mut(&mut logits), ints(&targets), values(&weights));
    vectorized_loop!([rows: &'a mut [f32], targets: &'a [i32], weights: &'a [f32], vocabulary: usize] {
        for ((row, &target), &weight) in rows.chunks_exact_mut(vocabulary).zip(targets).zip(weights) {
            if weight == 0.0 {
                // Padding has no gradient, whatever its logits are.
                row.fill(0.0);
                continue;
            }
            let scale = weight / exp_row(row, 1.0);
            row.iter_mut().for_each(|value| *value *= scale);
            row[target as usize] -= weight;
        }
    });
    close(logits)
}
