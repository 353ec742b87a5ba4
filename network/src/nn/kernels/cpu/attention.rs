//! Softmax with masks, rotary positions and the layout of heads.

use std::ops::Range;

use super::math::{dot, exp_row, vectorized_loop};
use super::{close, ints, open, open_int, values, values_mut, zeros};
use crate::nn::{CachedKeys, Mask};
use crate::tensor::{Flex, Tensor};

pub fn rotate(rows: Tensor<Flex, 4>, cos: Tensor<Flex, 2>, sin: Tensor<Flex, 2>) -> Tensor<Flex, 4> {
    let [seq, pairs] = cos.dims();
    let (mut rows, cos, sin) = (open(rows), open(cos), open(sin));
    let (cos, sin) = (values(&cos), values(&sin));
    let all = values_mut(&mut rows);
    vectorized_loop!([all: &'a mut [f32], cos: &'a [f32], sin: &'a [f32], seq: usize, pairs: usize] {
        for (row, values) in all.chunks_exact_mut(2 * pairs).enumerate() {
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

/// The keys that a query sees, of which the first `length` are not padding.
#[inline(always)]
pub fn seen(
    query: usize,
    [queries, keys]: [usize; 2],
    length: usize,
    causal: bool,
    window: Option<usize>,
) -> Range<usize> {
    // A decoder that writes more than its encoder read has more queries than keys; without `causal`, this is not used.
    let next = (keys + query + 1).saturating_sub(queries);
    let after = window.map_or(keys, |window| next + window - 1);
    let end = length.min(if causal { next } else { after.min(keys) });
    window.map_or(0, |window| next.saturating_sub(window)).min(end)..end
}

pub fn causal_softmax(scores: Tensor<Flex, 4>, scale: f64) -> Tensor<Flex, 4> {
    masked_softmax(scores, Mask { bias: None, lengths: None, causal: true, window: None }, scale)
}

pub fn masked_softmax(scores: Tensor<Flex, 4>, mask: Mask<Flex>, scale: f64) -> Tensor<Flex, 4> {
    let [_, heads, queries, keys] = scores.dims();
    let Mask { bias, lengths, causal, window } = mask;
    let (mut scores, bias, lengths) = (open(scores), bias.map(open), lengths.map(open_int));
    let (bias, lengths, scale) = (bias.as_ref().map(values), lengths.as_ref().map(ints), scale as f32);
    let rows = values_mut(&mut scores);
    vectorized_loop!([
        rows: &'a mut [f32], bias: Option<&'a [f32]>, lengths: Option<&'a [i32]>, causal: bool, window: Option<usize>,
        scale: f32, heads: usize, queries: usize, keys: usize
    ] {
        for (row, scores) in rows.chunks_exact_mut(keys).enumerate() {
            let (query, example) = (row % queries, row / queries / heads);
            let length = lengths.map_or(keys, |lengths| lengths[example] as usize);
            let Range { start, end } = seen(query, [queries, keys], length, causal, window);
            let (seen, unseen) = scores.split_at_mut(end);
            let (distant, seen) = seen.split_at_mut(start);
            distant.fill(0.0);
            let sum = match bias {
                Some(bias) => {
                    let of_row = &bias[row % (heads * queries) * keys + start..];
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

pub fn softmax_backward(
    probabilities: Tensor<Flex, 4>,
    grad: Tensor<Flex, 4>,
    scale: f64,
) -> Tensor<Flex, 4> {
    let keys = grad.dims()[3];
    let (probabilities, mut grad) = (open(probabilities), open(grad));
    rows_backward(values(&probabilities), values_mut(&mut grad), keys, scale as f32);
    close(grad)
}

/// Replaces the gradients of rows of probabilities by those of the scores.
pub fn rows_backward(probabilities: &[f32], grads: &mut [f32], keys: usize, scale: f32) {
    vectorized_loop!([probabilities: &'a [f32], grads: &'a mut [f32], keys: usize, scale: f32] {
        for (probabilities, grad) in probabilities.chunks_exact(keys).zip(grads.chunks_exact_mut(keys)) {
            let along = dot(probabilities, grad);
            for (grad, probability) in grad.iter_mut().zip(probabilities) {
                *grad = (*grad - along) * probability * scale;
            }
        }
    });
}

/// Adds each row, shifted by its query, to the sums of its example's and head's distances, which
/// start at 0.
pub fn diagonal_sums(scores: Tensor<Flex, 4>) -> Tensor<Flex, 3> {
    let [batch, heads, queries, keys] = scores.dims();
    let distances = queries + keys - 1;
    let (scores, mut sums) = (open(scores), zeros([batch, heads, distances]));
    let (scores, all_sums) = (values(&scores), values_mut(&mut sums));
    vectorized_loop!([scores: &'a [f32], all_sums: &'a mut [f32], queries: usize, keys: usize, distances: usize] {
        let of_heads = scores.chunks_exact(queries * keys).zip(all_sums.chunks_exact_mut(distances));
        for (scores, sums) in of_heads {
            for (query, row) in scores.chunks_exact(keys).enumerate() {
                let first = queries - 1 - query;
                sums[first..first + keys].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
    });
    close(sums)
}

pub fn merge_heads(parts: Vec<Tensor<Flex, 4>>) -> Tensor<Flex, 3> {
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

pub fn cached_attention(
    queries: Tensor<Flex, 4>,
    CachedKeys { kept, used, bias, window, cap }: CachedKeys<'_, Flex>,
    scale: f64,
) -> Tensor<Flex, 3> {
    let [rows, heads, _, d_head] = queries.dims();
    let [_, kv_heads, capacity, _] = kept[0].dims();
    let bias_keys = bias.as_ref().map_or(0, |bias| bias.dims()[2]);
    let (queries, bias, mut output) = (open(queries), bias.map(open), zeros([rows, 1, heads * d_head]));
    let [keys, summands] = kept.map(open);
    let (keys, summands, bias) = (values(&keys), values(&summands), bias.as_ref().map(values));
    let (scale, cap) = (scale as f32, cap.map(|cap| cap as f32));
    let (queries, out) = (values(&queries), values_mut(&mut output));
    vectorized_loop!([
        queries: &'a [f32], keys: &'a [f32], summands: &'a [f32], bias: Option<&'a [f32]>, out: &'a mut [f32],
        used: &'a [usize], window: Option<usize>, cap: Option<f32>, scale: f32, rows: usize, heads: usize,
        kv_heads: usize, capacity: usize, d_head: usize, bias_keys: usize
    ] {
        let mut scores = vec![0.0; used.iter().copied().max().unwrap_or(0)];
        let of_heads = queries.chunks_exact(d_head).zip(out.chunks_exact_mut(d_head));
        for (at, (query, output)) in of_heads.enumerate() {
            let (row, head) = (at / heads, at % heads);
            let unseen = window.map_or(0, |window| used[row].saturating_sub(window));
            let first = ((row * kv_heads + head * kv_heads / heads) * capacity + unseen) * d_head;
            let scores = &mut scores[..used[row] - unseen];
            for (score, key) in scores.iter_mut().zip(keys[first..].chunks_exact(d_head)) {
                *score = dot(query, key) * scale;
            }
            if let Some(cap) = cap {
                scores.iter_mut().for_each(|score| *score = (*score / cap).tanh() * cap);
            }
            if let Some(bias) = bias {
                let of_row = &bias[(head * rows + row) * bias_keys + unseen..];
                scores.iter_mut().zip(of_row).for_each(|(score, bias)| *score += bias);
            }
            let reciprocal = 1.0 / exp_row(scores, 1.0);
            for (weight, value) in scores.iter().zip(summands[first..].chunks_exact(d_head)) {
                output.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * reciprocal * value);
            }
        }
    });
    close(output)
}

/// Writes the positions in place if nothing else holds the tensor.
pub fn write_position(kept: Tensor<Flex, 4>, new: Tensor<Flex, 4>, at: &[usize]) -> Tensor<Flex, 4> {
    let [_, heads, capacity, d_head] = kept.dims();
    let (mut kept, new) = (open(kept), open(new));
    let places = values_mut(&mut kept).chunks_exact_mut(capacity * d_head);
    for (index, (places, new)) in places.zip(values(&new).chunks_exact(d_head)).enumerate() {
        let first = at[index / heads] * d_head;
        places[first..first + d_head].copy_from_slice(new);
    }
    close(kept)
}
