//! Negative log-likelihood and its gradient. Several threads divide the rows of many logits, which changes no bit.

use super::math::{exp_row, max, vectorized_loop};
use super::threads::{PIECE, available, in_parallel};
use super::{close, ints, open, open_int, values, values_mut, zeros};
use crate::tensor::{Flex, Int, Tensor};

pub fn token_nll(logits: Tensor<Flex, 2>, targets: Tensor<Flex, 1, Int>) -> Tensor<Flex, 1> {
    let [rows, vocabulary] = logits.dims();
    let (mut logits, targets, mut nll) = (open(logits), open_int(targets), zeros([rows]));
    let each = rows_of_piece(vocabulary);
    let pieces = values_mut(&mut logits).chunks_mut(each * vocabulary).zip(ints(&targets).chunks(each));
    let pieces = pieces.zip(values_mut(&mut nll).chunks_mut(each));
    in_parallel(available(), pieces.collect(), |_, ((rows, targets), nlls)| {
        vectorized_loop!([rows: &'a mut [f32], targets: &'a [i32], nlls: &'a mut [f32], vocabulary: usize] {
            for ((row, &target), nll) in rows.chunks_exact_mut(vocabulary).zip(targets).zip(nlls) {
                let of_target = row[target as usize];
                let largest = max(row);
                *nll = exp_row(row, 1.0).ln() - (of_target - largest);
            }
        });
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
    let each = rows_of_piece(vocabulary);
    let pieces = values_mut(&mut logits).chunks_mut(each * vocabulary).zip(ints(&targets).chunks(each));
    let pieces = pieces.zip(values(&weights).chunks(each));
    in_parallel(available(), pieces.collect(), |_, ((rows, targets), weights)| {
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
    });
    close(logits)
}

/// Rows of logits that a thread takes at a time.
fn rows_of_piece(vocabulary: usize) -> usize {
    (PIECE / vocabulary).max(1)
}
