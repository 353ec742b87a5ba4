//! Models as compositions of layers, with the names of Hugging Face checkpoints.

mod batch;
mod gpt2;

use std::sync::Arc;

pub use batch::{Batch, Example, Shape};
pub use gpt2::{Gpt2, Gpt2Config};

use crate::dp::Record;
use crate::layer::{Kernels, ParamSpec, Weights};
use crate::tensor::Tensor;

/// A size of a model that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model: {what} = {value}; allowed: {allowed}")]
pub struct ModelError {
    /// Field of the plan's model.
    pub what: &'static str,
    /// What was given.
    pub value: usize,
    /// What is allowed.
    pub allowed: &'static str,
}

/// A network of any family that a plan can name.
#[derive(Clone, Debug)]
pub enum Network {
    /// GPT-2.
    Gpt2(Gpt2),
}

impl Network {
    /// Lays layers and parameters out as the plan says.
    ///
    /// # Errors
    /// [`ModelError`] for sizes that do not fit together.
    pub fn new(
        model: &plan::Model,
        _training: &plan::Training,
        vocab_size: usize,
    ) -> Result<Self, ModelError> {
        let at_least_one = [("vocab_size", vocab_size), ("context", model.context as usize)];
        let sizes = [("d_model", model.d_model), ("heads", model.heads), ("d_ff", model.d_ff)];
        for (what, value) in at_least_one.into_iter().chain(sizes.map(|(what, size)| (what, size as usize))) {
            if value == 0 {
                return Err(ModelError { what, value, allowed: "at least 1" });
            }
        }
        if !model.d_model.is_multiple_of(model.heads) {
            let value = model.heads as usize;
            return Err(ModelError { what: "heads", value, allowed: "a divisor of d_model" });
        }
        Ok(match model.family {
            plan::Family::Gpt2 => Self::Gpt2(Gpt2::new(Gpt2Config {
                vocab_size,
                context: model.context as usize,
                d_model: model.d_model as usize,
                layers: model.layers as usize,
                heads: model.heads as usize,
                d_ff: model.d_ff as usize,
            })),
        })
    }

    /// Names, shapes and starts of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        match self {
            Self::Gpt2(model) => model.specs(),
        }
    }

    /// Number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        match self {
            Self::Gpt2(model) => model.config().vocab_size,
        }
    }

    /// The shape of a batch's rows: the longest example it takes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self {
            Self::Gpt2(model) => Shape::causal(model.config().context),
        }
    }

    /// `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        match self {
            Self::Gpt2(model) => model.hf_config(),
        }
    }

    /// Logits at every target, padding included. The batch may be narrower than [`Network::shape`].
    ///
    /// # Shapes
    /// - output: `[rows·targets, vocabulary]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Tensor<B, 2> {
        match self {
            Self::Gpt2(model) => model.logits(weights, batch.tokens),
        }
    }

    /// Forward and backward of the summed per-example losses: the records that hold every example's gradient.
    ///
    /// The losses themselves are never computed: they are private and nothing may depend on them.
    pub fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Vec<Record<B>> {
        match self {
            Self::Gpt2(model) => model.records(weights, batch),
        }
    }
}

/// The list of parameters while a model is laid out.
#[derive(Default)]
pub(crate) struct ParamList(pub Vec<ParamSpec>);

impl ParamList {
    /// Adds a parameter under its Hugging Face name.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        initial: crate::layer::Initial,
    ) -> crate::layer::ParamId {
        self.0.push(ParamSpec { name: name.into(), shape: shape.to_vec(), initial });
        crate::layer::ParamId(self.0.len() - 1)
    }
}
