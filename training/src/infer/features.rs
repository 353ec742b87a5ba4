//! Computes the features of a text: what a head for labels reads of it.

use std::sync::Arc;

use super::{InferenceError, InferenceModel};
use crate::dp::Reduce;
use network::Example;
use network::model::{Batch, Shape};
use network::nn::{Kernels, Weights};
use network::tensor::to_host;

impl<B: Kernels> InferenceModel<B> {
    /// Returns the features of each example: the vector, of the model's width, that the head for labels reads. Returns
    /// an empty list if the network has no head for labels of texts.
    ///
    /// Each is computed from its example alone and without padding, so that not even its rounding depends on another example. The
    /// features of private examples are as private as the examples: they may be used for gradients, which get noise, and must not
    /// be written to a file.
    ///
    /// # Errors
    /// [`InferenceError::Example`] for an example that does not fit the network.
    pub(crate) fn features_each(&self, examples: &[Example]) -> Result<Vec<Arc<[f32]>>, InferenceError> {
        let features = self.each_alone(examples, |weights, batch| {
            self.network.features(weights, batch).map(|features| to_host(features).into())
        });
        features.map(|features| features.into_iter().flatten().collect())
    }

    /// Returns what `of_states` makes of the hidden states of each example's tokens. Each is computed from its example alone, as
    /// [`Self::features_each`] computes features, and is as private.
    ///
    /// # Errors
    /// [`InferenceError::Example`] for an example that does not fit the network.
    pub(super) fn hidden_alone<T: Send>(
        &self,
        examples: &[Example],
        of_states: impl Fn(Vec<Vec<f32>>) -> T + Sync,
    ) -> Result<Vec<T>, InferenceError> {
        self.each_alone(examples, |weights, batch| {
            let hidden = self.network.hidden(weights, &batch);
            let [rows, seq, d] = hidden.dims();
            let flat = to_host(hidden.reshape([rows * seq, d]));
            of_states(flat.chunks_exact(d).map(<[f32]>::to_vec).collect())
        })
    }

    /// Applies `work` to a batch of each example alone, without padding.
    fn each_alone<T: Send>(
        &self,
        examples: &[Example],
        work: impl Fn(&Weights<B>, Batch<B>) -> T + Sync,
    ) -> Result<Vec<T>, InferenceError> {
        self.network.check(examples)?;
        let shape = self.network.shape();
        let work = |weights: &Weights<B>, example: &Example| {
            let shape = Shape { input: example.input.len().max(1), ..shape };
            let batch = Batch::new(std::slice::from_ref(example), 1, shape, weights.dtype(), &self.device);
            work(weights, batch)
        };
        let join = |mut all: Vec<T>, own: T| {
            all.push(own);
            all
        };
        Ok(Reduce::on_threads(B::workers()).fold(examples, &self.weights, work, Vec::new(), join))
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
        for fields in [json!({ "family": "bert", "pooling": "mean" }), json!({ "family": "gpt2" })] {
            let network = network(&fields, "sequence_classification", 20);
            let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
            let weights = Weights::<Flex>::initialize(network.specs(), &mut init, &FlexDevice);
            let model = InferenceModel::of_weights(network, weights, 3, FlexDevice);
            let example = |n: u32| Example {
                input: (0..=n % 12).map(|at| (n * 7 + at * 3) % 20).collect(),
                targets: vec![n % 3],
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
