//! What a head for labels reads of a text.

use std::sync::Arc;

use super::{InferenceError, InferenceModel};
use crate::dp::Reduce;
use network::Example;
use network::model::{Batch, Shape};
use network::nn::{Kernels, Weights};
use network::tensor::to_host;

impl<B: Kernels> InferenceModel<B> {
    /// The features of each example: what the head for labels reads of it, a vector of the model's width. Empty if the network has
    /// no head for labels of texts.
    ///
    /// Each is computed from its example alone and without padding, so that not even its rounding depends on another example. The
    /// features of private examples are as private as the examples: they may be used for gradients, which get noise, and must not
    /// be written to a file.
    ///
    /// # Errors
    /// [`InferenceError::Example`] for an example that does not fit the network.
    pub(crate) fn features_each(&self, examples: &[Example]) -> Result<Vec<Arc<[f32]>>, InferenceError> {
        self.network.check(examples)?;
        let shape = self.network.shape();
        let work = |weights: &Weights<B>, example: &Example| {
            let shape = Shape { input: example.input.len().max(1), ..shape };
            let batch = Batch::new(std::slice::from_ref(example), 1, shape, weights.dtype(), &self.device);
            self.network.features(weights, batch).map(|features| to_host(features).into())
        };
        let join = |mut all: Vec<Arc<[f32]>>, own: Option<Arc<[f32]>>| {
            all.extend(own);
            all
        };
        Ok(Reduce::on_threads(B::workers()).fold(examples, &self.weights, work, Vec::new(), join))
    }
}
