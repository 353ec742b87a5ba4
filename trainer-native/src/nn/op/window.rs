//! A window of attention as a bias on the scores: a key out of reach gets a number far below every product.

use crate::nn::{Kernels, Pass, Var};
use crate::tensor::from_host;

/// Keys that are seen by their distance from the query alone. It has no parameters.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The largest distance of a key that is seen.
    pub reach: usize,
}

impl Window {
    /// Added to a score, it leaves no probability. It is finite, so that a row of padding without a key is no NaN.
    const UNSEEN: f32 = -1e30;

    /// The bias of each query and key, as [`super::RelativeBias::forward`]; `None` where every key is within reach.
    ///
    /// # Shapes
    /// - output: `[heads, positions, positions]`; in generation after the first pass `[heads, rows, keys]`
    pub fn bias<B: Kernels>(self, pass: &Pass<'_, B>, heads: usize, positions: usize) -> Option<Var<B>> {
        let queries: Vec<usize> = match pass.rows_at() {
            Some(rows) => rows.to_vec(),
            None => (0..positions).collect(),
        };
        let keys = queries.iter().max().map_or(0, |furthest| furthest + 1);
        if keys <= self.reach + 1 {
            return None;
        }
        let of_pair = |query: usize, key: usize| {
            if query.abs_diff(key) <= self.reach { 0.0 } else { Self::UNSEEN }
        };
        let of_query = |&query: &usize| (0..keys).map(move |key| of_pair(query, key));
        let bias: Vec<f32> = queries.iter().flat_map(of_query).collect();
        let weights = pass.weights();
        let device = weights.model_values()[0].device();
        let bias = from_host(bias, [1, queries.len(), keys], weights.dtype(), &device);
        Some(Var::constant(bias.repeat_dim(0, heads)))
    }
}
