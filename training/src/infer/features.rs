//! Computes the features of a text: what a head for labels reads of it.

use std::sync::Arc;

use super::{InferenceError, InferenceModel, by_length, in_order};
use crate::dp::Reduce;
use network::Example;
use network::model::{Batch, Shape};
use network::nn::{Kernels, Weights};
use network::tensor::to_host;

/// Tokens of examples that share a pass: so many that copying a weight takes little of the time of a product.
const TOKENS: usize = 512;

impl<B: Kernels> InferenceModel<B> {
    /// Returns the features of each example: the vectors, of the model's width, that the head for labels of texts or tags of words reads.
    /// Returns an empty list if the network has no such head.
    ///
    /// No example changes another one's features, not even by rounding: an example has a pass of its own without padding, or shares one with
    /// examples of its length where no row changes the rounding of another ([`Kernels::rows_are_independent`]). The features of private
    /// examples are as private as the examples: they may be used for gradients, which get noise, and must not be written to a file.
    ///
    /// # Errors
    /// [`InferenceError::Example`] for an example that does not fit the network.
    pub(crate) fn features_each(&self, examples: &[Example]) -> Result<Vec<Arc<[f32]>>, InferenceError> {
        self.each_by_length(examples, |weights, batch, own| {
            let Some(features) = self.network.features(weights, batch) else { return Vec::new() };
            let [_, places, width] = features.dims();
            let rows = to_host(features);
            let rows = rows.chunks_exact((places * width).max(1)).zip(own);
            rows.filter_map(|(row, example)| Some(row[..self.network.features_read(example)?].into()))
                .collect()
        })
    }

    /// Returns the number of values that [`Self::features_each`] returns for these examples.
    pub(crate) fn feature_values(&self, examples: &[Example]) -> usize {
        examples.iter().filter_map(|example| self.network.features_read(example)).sum()
    }

    /// Returns what `of_states` makes of the hidden states of each example's tokens. They are as independent of other examples as those of
    /// [`Self::features_each`], and as private.
    ///
    /// # Errors
    /// [`InferenceError::Example`] for an example that does not fit the network.
    pub(super) fn states_each<T: Send>(
        &self,
        examples: &[Example],
        of_states: impl Fn(Vec<Vec<f32>>) -> T + Sync,
    ) -> Result<Vec<T>, InferenceError> {
        self.each_by_length(examples, |weights, batch, _| {
            let hidden = self.network.hidden(weights, &batch);
            let [rows, seq, d] = hidden.dims();
            let flat = to_host(hidden.reshape([rows * seq, d]));
            let states = |row: &[f32]| of_states(row.chunks_exact(d).map(<[f32]>::to_vec).collect());
            flat.chunks_exact(seq * d).map(states).collect()
        })
    }

    /// Applies `work` to batches of examples of one length, and returns what it makes of each example, in their order.
    fn each_by_length<T: Send>(
        &self,
        examples: &[Example],
        work: impl Fn(&Weights<B>, Batch<B>, &[Example]) -> Vec<T> + Sync,
    ) -> Result<Vec<T>, InferenceError> {
        self.network.check(examples)?;
        let tokens = if self.weights.rows_are_independent() { TOKENS } else { 1 };
        let groups = by_length(examples, 1, |length| tokens.div_ceil(length));
        let shape = self.network.shape();
        let compute = |weights: &Weights<B>, (input, members): &(usize, Vec<usize>)| {
            let own: Vec<Example> = members.iter().map(|&at| examples[at].clone()).collect();
            let shape = Shape { input: *input, ..shape };
            work(weights, Batch::new(&own, own.len(), shape, weights.dtype(), &self.device), &own)
        };
        let join = |mut all: Vec<T>, own: Vec<T>| {
            all.extend(own);
            all
        };
        let workers = Reduce::on_threads(B::workers());
        Ok(in_order(&groups, workers.fold(&groups, &self.weights, compute, Vec::new(), join)))
    }
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose, TestRng};
    use serde_json::json;

    use super::*;
    use crate::network_tests::testing::network;
    use network::tensor::{Flex, FlexDevice};

    /// PITFALLS 55. A unit that changes another unit's features, even by rounding, would change more than its own gradient.
    #[test]
    fn features_are_the_same_to_the_bit_whatever_the_other_examples_are() {
        let wide = json!({ "family": "bert", "d_model": 64, "heads": 4, "d_ff": 136 });
        let [texts, words] = ["sequence_classification", "token_classification"];
        let bert = json!({ "family": "bert", "pooling": "mean" });
        let cases = [(&bert, texts), (&json!({ "family": "gpt2" }), texts), (&wide, texts), (&wide, words)];
        for (fields, task) in cases {
            let network = network(fields, task, 20);
            let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
            let weights = Weights::<Flex>::initialize(network.specs(), &mut init, &FlexDevice);
            let model = InferenceModel::of_weights(network, weights, 3, FlexDevice);
            let example = |n: u32| Example {
                input: (0..=n % 12).map(|at| (n * 7 + at * 3) % 20).collect(),
                targets: if task == words {
                    (0..=n / 12).map(|at| (n + at) % 3).collect()
                } else {
                    vec![n % 3]
                },
                positions: if task == words {
                    (0..=n / 12).map(|at| at.min(n % 12)).collect()
                } else {
                    vec![]
                },
                ..Example::default()
            };
            let examples: Vec<Example> = (0..17).map(example).collect();
            let all = model.features_each(&examples).unwrap();
            assert_eq!(all.len(), examples.len());
            for (own, example) in all.iter().zip(&examples) {
                assert_eq!(model.features_each(std::slice::from_ref(example)).unwrap(), [Arc::clone(own)]);
            }
            let reversed: Vec<Example> = examples.iter().rev().cloned().collect();
            assert!(model.features_each(&reversed).unwrap().into_iter().rev().eq(all));
        }
    }
}
