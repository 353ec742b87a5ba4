//! Dropout: values set to 0 at random in training, the others scaled up to keep the mean.
//!
//! Which values are dropped depends on the example's own seed and on the place in the network
//! alone. An example therefore has the same gradient in every batch, in the pass for norms and in
//! the pass for sums, and when a block is recomputed.
//!
//! # References
//! Srivastava et al. 2014, <https://jmlr.org/papers/v15/srivastava14a.html>.

use std::sync::Arc;

use crate::tensor::{Backend, Tensor, from_host};

/// The dropout of a training pass.
#[derive(Clone, Debug)]
pub(super) struct Dropout {
    /// Share of the values that are set to 0, below 1.
    rate: f64,
    /// Seeds of the batch's rows.
    seeds: Arc<[u64]>,
    /// Number of dropouts before this place of the network.
    site: u64,
}

impl Dropout {
    /// Creates the dropout of a pass over a batch, one seed a row; `None` for a rate of 0.
    pub(super) fn new(rate: f64, seeds: &Arc<[u64]>) -> Option<Self> {
        (rate > 0.0).then(|| Self { rate, seeds: Arc::clone(seeds), site: 0 })
    }

    /// Factors of a tensor's values in row-major order: 0 or 1 / (1 − rate). Row i of the batch has
    /// values at `places`, which identify its values.
    fn factors(&mut self, places: impl Iterator<Item = u64> + Clone) -> Vec<f32> {
        self.site += 1;
        let (kept, dropped_below) = ((1.0 / (1.0 - self.rate)) as f32, (self.rate * 2.0_f64.powi(64)) as u64);
        let of_row = |&seed: &u64| {
            let key = mix(seed ^ mix(self.site));
            let factor =
                move |place: u64| if mix(key.wrapping_add(place)) < dropped_below { 0.0 } else { kept };
            places.clone().map(factor)
        };
        self.seeds.iter().flat_map(of_row).collect()
    }

    /// Factors of a value of the pass.
    ///
    /// # Shapes
    /// - like, output: `[batch, seq, d]`
    pub(super) fn of_value<B: Backend>(&mut self, like: &Tensor<B, 3>) -> Tensor<B, 3> {
        let dims @ [_, seq, d] = like.dims();
        from_host(self.factors(0..(seq * d) as u64), dims, like.dtype().into(), &like.device())
    }

    /// Factors of attention probabilities. The place of a probability is determined by its head,
    /// query and key, and does not depend on the length of the padded sequences.
    ///
    /// # Shapes
    /// - like, output: `[batch, kv_heads, group·queries, keys]`
    pub(super) fn of_probabilities<B: Backend>(
        &mut self,
        like: &Tensor<B, 4>,
        queries: usize,
    ) -> Tensor<B, 4> {
        let dims @ [_, kv_heads, rows, keys] = like.dims();
        let (rows, keys, queries) = ((kv_heads * rows) as u64, keys as u64, queries as u64);
        let places = (0..rows).flat_map(move |row| {
            let first = (row / queries) << 40 | (row % queries) << 20;
            first..first + keys
        });
        from_host(self.factors(places), dims, like.dtype().into(), &like.device())
    }
}

/// Mixes the bits of a number: the finalizer of SplitMix64 after its increment (Steele, Lea & Flood 2014). Privacy does
/// not depend on it, because an example moves the sum by at most the clip norm whatever is dropped.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(seed: u64) -> Vec<f32> {
        Dropout { rate: 0.1, seeds: [seed].into(), site: 0 }.factors(0..40_000)
    }

    /// Binomial(40,000, 0.1) is within 4.9 standard deviations of its mean with probability 1 − 1e-6, which rejects 0.11.
    #[test]
    fn the_stated_share_is_dropped_and_the_rest_keeps_the_mean() {
        let (own, other) = (factors(7), factors(8));
        let dropped = own.iter().filter(|factor| **factor == 0.0).count() as f64;
        let deviation = (40_000.0 * 0.1 * 0.9_f64).sqrt();
        assert!((dropped - 4000.0).abs() < 4.9 * deviation, "{dropped}");
        assert!((dropped - 4400.0).abs() > 4.9 * deviation, "{dropped}");
        assert!(own.iter().all(|factor| *factor == 0.0 || *factor == (1.0 / 0.9) as f32));
        let both = own.iter().zip(&other).filter(|(a, b)| **a == 0.0 && **b == 0.0).count() as f64;
        assert!((both - 400.0).abs() < 100.0, "another seed drops other values: {both}");
    }

    #[test]
    fn a_row_has_the_same_factors_in_every_batch_and_others_at_every_place_of_the_network() {
        let mut alone = Dropout { rate: 0.5, seeds: [3].into(), site: 0 };
        let mut among = Dropout { rate: 0.5, seeds: [9, 3].into(), site: 0 };
        let first = alone.factors(0..64);
        assert_eq!(first, among.factors(0..64)[64..]);
        assert_ne!(first, alone.factors(0..64));
    }
}
