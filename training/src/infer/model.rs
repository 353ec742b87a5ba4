//! A model for inference.

use thiserror::Error;

use crate::ranks::Ranks;
use network::model::{Batch, ModelError, Network, Predictions, Shape};
use network::nn::{Kernels, Weights};
use network::tensor::{Tensor, to_host};
use network::tensor_file::{NamedTensor, TensorError, TensorMap};
use network::{Example, ExampleError};

/// The reasons why a model cannot be loaded or cannot take an example.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InferenceError {
    /// A model that cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Weights that do not fit the model.
    #[error("model weights: {0}; use the weights that the run wrote for this plan")]
    Weights(#[from] TensorError),
    /// An example that does not fit the model.
    #[error(transparent)]
    Example(#[from] ExampleError),
}

/// A network with given weights. It has no optimizer, and it computes in 32 bits.
#[derive(Clone, Debug)]
pub struct InferenceModel<B: Kernels> {
    pub(super) network: Network,
    pub(super) weights: Weights<B>,
    pub(super) physical_batch: usize,
    pub(super) device: B::Device,
    /// The ranks that measure the model together.
    pub(super) ranks: Ranks,
}

impl<B: Kernels> InferenceModel<B> {
    /// Loads weights into a network. `physical_batch` examples, and at least one, are computed at a time on each worker.
    ///
    /// # Errors
    /// [`InferenceError::Weights`] if a tensor is missing, unknown, or of another shape.
    pub fn new(
        network: Network,
        weights: Vec<NamedTensor>,
        physical_batch: usize,
        device: B::Device,
    ) -> Result<Self, InferenceError> {
        B::warm_up();
        let mut tensors = TensorMap::new(weights)?;
        let values = tensors.take_all::<B>(&network.specs(), &device)?;
        tensors.finish()?;
        let weights = Weights::new(network.specs(), values);
        Ok(Self::of_weights(network, weights, physical_batch, device))
    }

    /// Creates a model from weights that are on the device, such as those of a model in training.
    pub(crate) fn of_weights(
        network: Network,
        weights: Weights<B>,
        physical_batch: usize,
        device: B::Device,
    ) -> Self {
        let weights = weights.precision(plan::Precision::F32);
        Self { network, weights, physical_batch: physical_batch.max(1), device, ranks: Ranks::alone() }
    }

    /// Divides later measurements among the ranks. All ranks must measure the same examples.
    #[must_use]
    pub(crate) fn on_ranks(self, ranks: &Ranks) -> Self {
        Self { ranks: ranks.clone(), ..self }
    }

    /// Returns the logits at each position where the network predicts: each position of the input or of the decoder's
    /// input, or the example's own positions.
    ///
    /// # Errors
    /// [`InferenceError::Example`] for an example that is empty or does not fit the network.
    pub fn logits(&self, example: &Example) -> Result<Vec<Vec<f32>>, InferenceError> {
        let flat = to_host(self.logits_of(example)?);
        Ok(flat.chunks_exact(self.network.outputs()).map(<[f32]>::to_vec).collect())
    }

    /// Returns the logits of the token after the decoder's input or, without a decoder, after the input. Only the last
    /// `context` tokens of the input are read.
    ///
    /// # Errors
    /// As [`InferenceModel::logits`].
    pub fn next_token_logits(
        &self,
        input: &[u32],
        decoder_input: &[u32],
    ) -> Result<Vec<f32>, InferenceError> {
        let input = self.window(input).to_vec();
        let example = Example { input, decoder_input: decoder_input.to_vec(), ..Example::default() };
        let logits = self.logits_of(&example)?;
        let last = logits.dims()[0] - 1;
        Ok(to_host(logits.narrow(0, last, 1)))
    }

    /// Returns the last tokens, as many as the network reads at once.
    pub(super) fn window<'a>(&self, tokens: &'a [u32]) -> &'a [u32] {
        &tokens[tokens.len().saturating_sub(self.network.shape().input)..]
    }

    /// Returns the logits as a tensor, `[positions, vocabulary]`.
    fn logits_of(&self, example: &Example) -> Result<Tensor<B, 2>, InferenceError> {
        Ok(self.network.logits(&self.weights, self.batch(example)?))
    }

    /// Makes a batch of one example, without padding.
    pub(super) fn batch(&self, example: &Example) -> Result<Batch<B>, InferenceError> {
        let examples = std::slice::from_ref(example);
        self.network.check(examples)?;
        let shape = self.network.shape();
        let shape = Shape {
            input: example.input.len(),
            decoder: shape.decoder.map(|_| example.decoder_input.len()),
            predictions: match shape.predictions {
                // The token after a text is predicted at the text's last position.
                Predictions::AtPlaces(_) if example.positions.is_empty() => Predictions::EachPosition,
                Predictions::AtPlaces(_) => Predictions::AtPlaces(example.positions.len()),
                other => other,
            },
        };
        if shape.input == 0 || shape.targets() == 0 {
            return Err(ExampleError { problem: "is empty" }.into());
        }
        Ok(Batch::new(examples, 1, shape, self.weights.dtype(), &self.device))
    }
}
