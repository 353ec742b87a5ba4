//! Attention in blocks of queries. The probabilities of a block stay in the cache, and the backward pass computes them again, so that no
//! matrix of all queries and keys is held, nor products with keys that no query of a block sees.
//!
//! # References
//! Dao et al. 2022, "FlashAttention", <https://arxiv.org/abs/2205.14135>; blocks of keys, which it has too, would not fit a cache better
//! here.

use std::ops::Range;

use super::attention::{rows_backward, seen};
use super::math::{exp_row, vectorized_loop};
use super::matrix::Matrix;
use super::parts::{WORTH_THREADS, positive};
use super::product::{add_product, multiply};
use super::threads::{available, in_parallel};
use super::{close, ints, open_int, values_mut, zeros};
use crate::nn::Attended;
use crate::tensor::{Flex, FlexTensor, Tensor};

/// Queries of a block. It does not depend on the number of threads, and neither do the bits of a result.
const ROWS: usize = 64;

/// See [`crate::nn::BlockedAttention::forward`].
pub fn forward(attended: &Attended<Flex>) -> Tensor<Flex, 4> {
    let heads = Heads::of(attended);
    let mut output = zeros(attended.queries.dims());
    let outputs = values_mut(&mut output).chunks_exact_mut(heads.rows() * heads.d_head);
    in_parallel(heads.threads(), outputs.collect(), |head, output| {
        let [queries, keys, values] = heads.operands(head);
        let mut scores = Vec::new();
        for block in heads.blocks(head) {
            heads.probabilities(&block, &queries, &keys, &mut scores);
            let probabilities = Matrix::in_order(&scores, block.rows.len());
            multiply(&probabilities, &values.rows(block.keys), &mut output[block.place]);
        }
    });
    close(output)
}

/// See [`crate::nn::BlockedAttention::backward`].
pub fn backward(attended: &Attended<Flex>, grad: Tensor<Flex, 4>) -> [Tensor<Flex, 4>; 3] {
    let heads = Heads::of(attended);
    let grad = positive(grad);
    let [mut to_queries, mut to_keys, mut to_values] =
        [&attended.queries, &attended.keys, &attended.values].map(|operand| zeros(operand.dims()));
    let of_keys = heads.keys * heads.d_head;
    let outputs = values_mut(&mut to_queries).chunks_exact_mut(heads.rows() * heads.d_head);
    let outputs = outputs.zip(values_mut(&mut to_keys).chunks_exact_mut(of_keys));
    let outputs = outputs.zip(values_mut(&mut to_values).chunks_exact_mut(of_keys));
    in_parallel(heads.threads(), outputs.collect(), |head, ((to_queries, to_keys), to_values)| {
        let [queries, keys, values] = heads.operands(head);
        let grads = Matrix::of(&grad, head);
        let (mut probabilities, mut scores) = (Vec::new(), Vec::new());
        for block in heads.blocks(head) {
            heads.probabilities(&block, &queries, &keys, &mut probabilities);
            let rows = block.rows.len();
            let (grad, block_keys) = (grads.rows(block.rows.clone()), block.keys.clone());
            let place = block_keys.start * heads.d_head..block_keys.end * heads.d_head;
            add_product(
                &Matrix::in_order(&probabilities, rows).transposed(),
                &grad,
                &mut to_values[place.clone()],
            );
            scores.resize(probabilities.len(), 0.0);
            multiply(&grad, &values.rows(block_keys.clone()).transposed(), &mut scores);
            rows_backward(&probabilities, &mut scores, block_keys.len(), heads.scale);
            let scores = Matrix::in_order(&scores, rows);
            multiply(&scores, &keys.rows(block_keys), &mut to_queries[block.place]);
            add_product(&scores.transposed(), &queries.rows(block.rows), &mut to_keys[place]);
        }
    });
    [to_queries, to_keys, to_values].map(close)
}

/// The heads of keys of all examples, numbered in this order: examples, heads.
struct Heads {
    /// Queries, keys and values.
    operands: [FlexTensor; 3],
    lengths: Option<FlexTensor>,
    causal: bool,
    window: Option<usize>,
    scale: f32,
    /// Heads of keys of an example.
    kv_heads: usize,
    /// Heads of queries for a head of keys.
    group: usize,
    queries: usize,
    keys: usize,
    d_head: usize,
}

/// Some queries of a head of queries.
struct Block {
    /// Their rows among those of the head of keys.
    rows: Range<usize>,
    /// The number of the first query.
    first: usize,
    example: usize,
    /// The keys that any of them sees.
    keys: Range<usize>,
    /// The place of their values in a tensor of the shape of the queries.
    place: Range<usize>,
}

impl Heads {
    fn of(attended: &Attended<Flex>) -> Self {
        let Attended { queries, keys, values, group, lengths, causal, window, scale } = attended;
        let [_, kv_heads, rows, d_head] = queries.dims();
        Self {
            operands: [queries, keys, values].map(|operand| positive(operand.clone())),
            lengths: lengths.clone().map(open_int),
            causal: *causal,
            window: *window,
            scale: *scale as f32,
            kv_heads,
            group: *group,
            queries: rows / group,
            keys: keys.dims()[2],
            d_head,
        }
    }

    /// Rows of queries of a head of keys.
    fn rows(&self) -> usize {
        self.group * self.queries
    }

    fn threads(&self) -> usize {
        let multiplications = self.rows() * self.keys * self.d_head * self.kv_heads;
        if multiplications < WORTH_THREADS { 1 } else { available() }
    }

    fn operands(&self, head: usize) -> [Matrix<'_>; 3] {
        self.operands.each_ref().map(|operand| Matrix::of(operand, head))
    }

    /// The keys that a query sees.
    fn seen(&self, example: usize, query: usize) -> Range<usize> {
        let length = self.lengths.as_ref().map_or(self.keys, |lengths| ints(lengths)[example] as usize);
        seen(query, [self.queries, self.keys], length, self.causal, self.window)
    }

    /// The blocks of a head of keys, without those that see no key.
    fn blocks(&self, head: usize) -> impl Iterator<Item = Block> {
        let example = head / self.kv_heads;
        let firsts =
            (0..self.group).flat_map(|at| (0..self.queries).step_by(ROWS).map(move |first| (at, first)));
        let block = move |(at, first): (usize, usize)| {
            let queries = first..self.queries.min(first + ROWS);
            let rows = at * self.queries + queries.start..at * self.queries + queries.end;
            let seen = queries.map(|query| self.seen(example, query)).filter(|keys| !keys.is_empty());
            let keys = seen.reduce(|all, keys| all.start.min(keys.start)..all.end.max(keys.end))?;
            let place = rows.start * self.d_head..rows.end * self.d_head;
            Some(Block { rows, first, example, keys, place })
        };
        firsts.filter_map(block)
    }

    /// Writes the probabilities of a block: `[rows, keys]`.
    fn probabilities(&self, block: &Block, queries: &Matrix<'_>, keys: &Matrix<'_>, scores: &mut Vec<f32>) {
        let width = block.keys.len();
        scores.resize(block.rows.len() * width, 0.0);
        multiply(&queries.rows(block.rows.clone()), &keys.rows(block.keys.clone()).transposed(), scores);
        let heads = self;
        vectorized_loop!([heads: &'a Heads, block: &'a Block, scores: &'a mut [f32], width: usize] {
            for (at, row) in scores.chunks_exact_mut(width).enumerate() {
                let seen = heads.seen(block.example, block.first + at);
                let (row, after) = row.split_at_mut(seen.end.saturating_sub(block.keys.start));
                let (before, row) = row.split_at_mut(seen.start.saturating_sub(block.keys.start).min(row.len()));
                let reciprocal = 1.0 / exp_row(row, heads.scale);
                row.iter_mut().for_each(|value| *value *= reciprocal);
                before.fill(0.0);
                after.fill(0.0);
            }
        });
    }
}
