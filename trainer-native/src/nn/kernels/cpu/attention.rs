//! Softmax with masks, rotary positions and the layout of heads.

use super::math::{dot, exp_row, vectorized};
use super::{close, ints, open, open_int, values, values_mut, zeros};
use crate::tensor::{Flex, Int, Tensor};

pub(crate) fn rotate(rows: Tensor<Flex, 4>, cos: Tensor<Flex, 2>, sin: Tensor<Flex, 2>) -> Tensor<Flex, 4> {
    let [seq, pairs] = cos.dims();
    let (mut rows, cos, sin) = (open(rows), open(cos), open(sin));
    let (cos, sin) = (values(&cos), values(&sin));
    let each = values_mut(&mut rows).chunks_exact_mut(2 * pairs).enumerate();
    vectorized(|| {
        for (row, values) in each {
            let angles = row % seq * pairs..(row % seq + 1) * pairs;
            let (first, second) = values.split_at_mut(pairs);
            let pairs = first.iter_mut().zip(second).zip(&cos[angles.clone()]).zip(&sin[angles]);
            for (((first, second), cos), sin) in pairs {
                let (a, b) = (*first, *second);
                *first = a * cos - b * sin;
                *second = b * cos + a * sin;
            }
        }
    });
    close(rows)
}

pub(crate) fn causal_softmax(scores: Tensor<Flex, 4>, scale: f64) -> Tensor<Flex, 4> {
    masked_softmax(scores, None, None, true, scale)
}

pub(crate) fn masked_softmax(
    scores: Tensor<Flex, 4>,
    bias: Option<Tensor<Flex, 3>>,
    lengths: Option<Tensor<Flex, 1, Int>>,
    causal: bool,
    scale: f64,
) -> Tensor<Flex, 4> {
    let [_, heads, queries, keys] = scores.dims();
    let (mut scores, bias, lengths) = (open(scores), bias.map(open), lengths.map(open_int));
    let (bias, lengths, scale) = (bias.as_ref().map(values), lengths.as_ref().map(ints), scale as f32);
    let rows = values_mut(&mut scores).chunks_exact_mut(keys).enumerate();
    vectorized(|| {
        for (row, scores) in rows {
            let (query, example) = (row % queries, row / queries / heads);
            let length = lengths.map_or(keys, |lengths| lengths[example] as usize);
            let seen = length.min(if causal { keys - queries + query + 1 } else { keys });
            let (seen, unseen) = scores.split_at_mut(seen);
            let sum = match bias {
                Some(bias) => {
                    let of_row = &bias[row % (heads * queries) * keys..];
                    seen.iter_mut().zip(of_row).for_each(|(score, bias)| *score = *score * scale + bias);
                    exp_row(seen, 1.0)
                }
                None => exp_row(seen, scale),
            };
            let reciprocal = 1.0 / sum;
            seen.iter_mut().for_each(|value| *value *= reciprocal);
            unseen.fill(0.0);
        }
    });
    close(scores)
}

pub(crate) fn softmax_backward(
    probabilities: Tensor<Flex, 4>,
    grad: Tensor<Flex, 4>,
    scale: f64,
) -> Tensor<Flex, 4> {
    let keys = grad.dims()[3];
    let (probabilities, mut grad, scale) = (open(probabilities), open(grad), scale as f32);
    let rows = values(&probabilities).chunks_exact(keys).zip(values_mut(&mut grad).chunks_exact_mut(keys));
    vectorized(|| {
        for (probabilities, grad) in rows {
            let along = dot(probabilities, grad);
            for (grad, probability) in grad.iter_mut().zip(probabilities) {
                *grad = (*grad - along) * probability * scale;
            }
        }
    });
    close(grad)
}

/// Adds each row, shifted by its query, to the zeros of its example's and head's distances.
pub(crate) fn diagonal_sums(scores: Tensor<Flex, 4>) -> Tensor<Flex, 3> {
    let [batch, heads, queries, keys] = scores.dims();
    let distances = queries + keys - 1;
    let (scores, mut sums) = (open(scores), zeros([batch, heads, distances]));
    let of_heads = values(&scores).chunks_exact(queries * keys);
    let of_heads = of_heads.zip(values_mut(&mut sums).chunks_exact_mut(distances));
    vectorized(|| {
        for (scores, sums) in of_heads {
            for (query, row) in scores.chunks_exact(keys).enumerate() {
                let first = queries - 1 - query;
                sums[first..first + keys].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
    });
    close(sums)
}

pub(crate) fn merge_heads(parts: Vec<Tensor<Flex, 4>>) -> Tensor<Flex, 3> {
    let [batch, heads, seq, d_head] = parts[0].dims();
    let width = parts.len() * heads * d_head;
    let mut output = zeros([batch, seq, width]);
    let out = values_mut(&mut output);
    for (at, part) in parts.into_iter().enumerate() {
        let part = open(part);
        for (row, values) in values(&part).chunks_exact(d_head).enumerate() {
            let (position, head, example) = (row % seq, row / seq % heads, row / seq / heads);
            let start = (example * seq + position) * width + (at * heads + head) * d_head;
            out[start..start + d_head].copy_from_slice(values);
        }
    }
    close(output)
}
