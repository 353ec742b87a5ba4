//! T5's relative position bias: one number for each head and bucket of distances, shared by all
//! layers of a stack.
//!
//! # References
//! Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>, section 2.1; buckets as in Hugging
//! Face's `T5Attention`.

use crate::nn::{ForwardPass, GradRecord, Kernels, ParamId, Var};
use crate::tensor::{Int, Tensor, TensorData, from_host};

/// The table of a stack's bias.
#[derive(Clone, Copy, Debug)]
pub struct RelativeBias {
    /// `[buckets, heads]`
    pub table: ParamId,
    /// Number of buckets.
    pub buckets: usize,
    /// Distance from which all distances share the last bucket.
    pub max_distance: usize,
    /// Whether keys after the query have their own buckets. Otherwise they are never seen.
    pub bidirectional: bool,
}

impl RelativeBias {
    /// Returns the bias of every pair of places, to be added to the scores of each example. The
    /// queries are at the last of the keys' positions. In generation after the first pass, the
    /// queries are one new position of each row.
    ///
    /// Each example has a gradient of the bias, summed along the diagonals:
    /// `[batch, heads, queries + keys − 1]`. It is summed over the layers that use the bias before
    /// anything is squared.
    ///
    /// # Shapes
    /// - output: `[heads, queries, keys]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, queries: usize, keys: usize) -> Var<B> {
        let weights = pass.weights();
        let table = weights.matrix(self.table);
        let (queries, keys, places) = match pass.rows_at() {
            Some(positions) => self.of_rows(positions),
            None => (queries, keys, self.of_pairs(queries, keys)),
        };
        let places: Vec<i32> = places.into_iter().map(|bucket| bucket as i32).collect();
        let places: Tensor<B, 1, Int> =
            Tensor::from_data(TensorData::new(places, [queries * keys]), &table.device());
        let heads = table.dims()[1];
        let bias = table.select(0, places).transpose().reshape([heads, queries, keys]);
        pass.note(bias, weights.trains(self.table), move |sums, back| {
            back.record(self.table, |param| self.gradients(param, queries, sums));
        })
    }

    /// Returns the buckets of every query and key.
    fn of_pairs(&self, queries: usize, keys: usize) -> Vec<usize> {
        let buckets = self.by_distance(queries, keys);
        let pair = |query: usize| (0..keys).map(move |key| key + queries - 1 - query);
        (0..queries).flat_map(pair).map(|at| buckets[at]).collect()
    }

    /// Returns the rows as queries, the keys up to the furthest of them, and the buckets of both.
    fn of_rows(&self, positions: &[usize]) -> (usize, usize, Vec<usize>) {
        let keys = positions.iter().max().map_or(0, |furthest| furthest + 1);
        let row = |&position: &usize| (0..keys).map(move |key| self.bucket(key as i64 - position as i64));
        (positions.len(), keys, positions.iter().flat_map(row).collect())
    }

    /// Returns the record of the table: the sums along the diagonals, added up by bucket.
    ///
    /// # Shapes
    /// - sums: `[batch, heads, queries + keys − 1]`
    fn gradients<B: Kernels>(self, param: ParamId, queries: usize, sums: Tensor<B, 3>) -> GradRecord<B> {
        let [batch, heads, distances] = sums.dims();
        let mut member = vec![0.0; distances * self.buckets];
        for (at, bucket) in self.by_distance(queries, distances + 1 - queries).into_iter().enumerate() {
            member[at * self.buckets + bucket] = 1.0;
        }
        let member: Tensor<B, 2> =
            from_host(member, [distances, self.buckets], sums.dtype().into(), &sums.device());
        let by_bucket = B::layer_product(sums.reshape([batch * heads, distances]), member);
        let grads = by_bucket.reshape([batch, heads, self.buckets]).swap_dims(1, 2);
        GradRecord::Explicit { param, grads: grads.reshape([batch, self.buckets * heads]) }
    }

    /// Returns the buckets of the distances key − query, from the distance of the last query to the
    /// first key up to that of the first query to the last key.
    fn by_distance(&self, queries: usize, keys: usize) -> Vec<usize> {
        (0..queries + keys - 1).map(|at| self.bucket(at as i64 - (keys as i64 - 1))).collect()
    }

    /// Returns the bucket of key − query: exact for small distances and logarithmic beyond, in
    /// single precision as in the original.
    fn bucket(&self, distance: i64) -> usize {
        let (buckets, first) = match self.bidirectional {
            true => (self.buckets / 2, if distance > 0 { self.buckets / 2 } else { 0 }),
            false => (self.buckets, 0),
        };
        let distance = match self.bidirectional {
            true => distance.unsigned_abs() as usize,
            false => (-distance).max(0) as usize,
        };
        let exact = buckets / 2;
        if distance < exact {
            return first + distance;
        }
        let scale = (self.max_distance as f64 / exact as f64).ln() as f32;
        let beyond = (distance as f32 / exact as f32).ln() / scale * (buckets - exact) as f32;
        first + (exact + beyond as usize).min(buckets - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: `T5Attention._relative_position_bucket` of transformers, by hand for the small ones.
    #[test]
    fn buckets_are_exact_near_by_and_logarithmic_far_away() {
        let both = RelativeBias { table: ParamId(0), buckets: 32, max_distance: 128, bidirectional: true };
        let got = [0, -1, -7, -8, -12, -16, -127, -500, 1, 7, 8, 500].map(|distance| both.bucket(distance));
        assert_eq!(got, [0, 1, 7, 8, 9, 10, 15, 15, 17, 23, 24, 31]);
        let past = RelativeBias { bidirectional: false, ..both };
        let got = [5, 0, -1, -15, -16, -32, -128, -1000].map(|distance| past.bucket(distance));
        assert_eq!(got, [0, 0, 1, 15, 16, 21, 31, 31]);
    }
}
