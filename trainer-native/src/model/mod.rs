//! Models as compositions of layers, with the names of Hugging Face checkpoints.

mod batch;
mod bert;
mod bert_heads;
mod decoder;
mod feed_forward;
mod gpt2;
mod pass;
mod t5;
mod t5_stack;

use std::sync::Arc;

pub use crate::data::Example;
pub use batch::{Batch, Shape};
pub use bert::{Bert, BertConfig};
pub use decoder::{Decoder, DecoderConfig};
pub use feed_forward::{FeedForward, FeedForwardConfig};
pub use gpt2::{Gpt2, Gpt2Config};
pub use t5::{T5, T5Config};

use self::pass::Pass;
use crate::nn::GradRecord;
use crate::nn::{Kernels, ParamSpec, Selection, SelectionError, Weights};
use crate::objective;
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
    /// T5, of both versions.
    T5(T5),
    /// BERT.
    Bert(Bert),
    /// A pre-norm decoder in Gemma's layout.
    Decoder(Decoder),
    /// The feed-forward language model.
    FeedForward(FeedForward),
}

impl Network {
    /// Lays layers and parameters out as the plan says.
    ///
    /// # Errors
    /// [`ModelError`] for sizes that do not fit together.
    pub fn new(
        model: &plan::Model,
        training: &plan::Training,
        vocab_size: usize,
    ) -> Result<Self, ModelError> {
        let at_least_one = [("vocab_size", vocab_size), ("context", model.context as usize)];
        let sizes = [("d_model", model.d_model), ("heads", model.heads), ("d_ff", model.d_ff)];
        for (what, value) in at_least_one.into_iter().chain(sizes.map(|(what, size)| (what, size as usize))) {
            if value == 0 {
                return Err(ModelError { what, value, allowed: "at least 1" });
            }
        }
        if model.d_head.is_none() && !model.d_model.is_multiple_of(model.heads) {
            let value = model.heads as usize;
            return Err(ModelError { what: "heads", value, allowed: "a divisor of d_model" });
        }
        let objective = training.objective;
        let [context, d_model, layers, heads, d_ff] =
            [model.context, model.d_model, model.layers, model.heads, model.d_ff].map(|size| size as usize);
        Ok(match model.family {
            plan::Family::Gpt2 => {
                Self::Gpt2(Gpt2::new(Gpt2Config { vocab_size, context, d_model, layers, heads, d_ff }))
            }
            plan::Family::T5 | plan::Family::T5V1_1 => {
                let decoder_context = objective::decoder_context(objective, context);
                let v1_1 = model.family == plan::Family::T5V1_1;
                let config =
                    T5Config { vocab_size, context, decoder_context, d_model, layers, heads, d_ff, v1_1 };
                Self::T5(T5::new(config))
            }
            plan::Family::Bert => {
                let predictions = objective::predictions(context);
                let next_sentence = objective == plan::Objective::MaskedLmNextSentence;
                let config = BertConfig {
                    vocab_size,
                    context,
                    predictions,
                    d_model,
                    layers,
                    heads,
                    d_ff,
                    next_sentence,
                };
                Self::Bert(Bert::new(config))
            }
            plan::Family::Decoder => {
                Self::Decoder(Decoder::new(DecoderConfig::from_plan(model, vocab_size)?))
            }
            plan::Family::FeedForward => {
                Self::FeedForward(FeedForward::new(FeedForwardConfig::from_plan(model, vocab_size)?))
            }
        })
    }

    /// Names, shapes and starts of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        match self {
            Self::Gpt2(model) => model.specs(),
            Self::T5(model) => model.specs(),
            Self::Bert(model) => model.specs(),
            Self::Decoder(model) => model.specs(),
            Self::FeedForward(model) => model.specs(),
        }
    }

    /// The part of the parameters that a plan trains; `None` for all.
    ///
    /// # Errors
    /// [`SelectionError`] if the plan names what this network does not have.
    pub fn selection(&self, model: &plan::Model) -> Result<Option<Selection>, SelectionError> {
        // GPT-2 alone stores its matrices [d_in, d_out].
        let conv1d = matches!(self, Self::Gpt2(_));
        Selection::new(&model.trainable, &self.specs(), model.layers as usize, conv1d)
    }

    /// Number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        match self {
            Self::Gpt2(model) => model.config().vocab_size,
            Self::T5(model) => model.config().vocab_size,
            Self::Bert(model) => model.config().vocab_size,
            Self::Decoder(model) => model.config().vocab_size,
            Self::FeedForward(model) => model.config().vocab_size,
        }
    }

    /// The shape of a batch's rows: the longest example it takes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self {
            Self::Gpt2(model) => Shape::causal(model.config().context),
            Self::T5(model) => model.shape(),
            Self::Bert(model) => model.shape(),
            Self::Decoder(model) => Shape::causal(model.config().context),
            Self::FeedForward(model) => Shape::causal(model.config().context),
        }
    }

    /// `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        match self {
            Self::Gpt2(model) => model.hf_config(),
            Self::T5(model) => model.hf_config(),
            Self::Bert(model) => model.hf_config(),
            Self::Decoder(model) => model.hf_config(),
            Self::FeedForward(model) => model.hf_config(),
        }
    }

    /// Logits at every target, padding included. The batch may be narrower than [`Network::shape`].
    ///
    /// # Shapes
    /// - output: `[rows·targets, vocabulary]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Tensor<B, 2> {
        match self {
            Self::Gpt2(model) => model.logits(weights, batch.tokens),
            Self::T5(model) => model.logits(weights, batch),
            Self::Bert(model) => model.logits(weights, batch),
            Self::Decoder(model) => model.logits(weights, batch.tokens),
            Self::FeedForward(model) => model.logits(weights, batch.tokens),
        }
    }

    /// Logits of the class of each row's pair of sentences, if the network predicts it.
    ///
    /// # Shapes
    /// - output: `[rows, 2]`
    pub fn sentence_logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Option<Tensor<B, 2>> {
        match self {
            Self::Bert(model) => model.sentence_logits(weights, &batch),
            Self::Gpt2(_) | Self::T5(_) | Self::Decoder(_) | Self::FeedForward(_) => None,
        }
    }

    /// Forward and backward of the summed per-example losses: the records that hold every example's gradient of the
    /// trained parameters.
    ///
    /// The losses themselves are never computed: they are private and nothing may depend on them.
    pub fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Vec<GradRecord<B>> {
        let mut all = Vec::with_capacity(weights.specs().len());
        self.hand_over_records(weights, batch, false, |records| all.extend(records));
        all
    }

    /// As [`Network::records`], block by block, from the last to the first, each handed over as soon as it is there. With
    /// `recompute` the forward pass keeps the blocks' inputs alone and is made again block by block: the same records.
    pub fn hand_over_records<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: Batch<B>,
        recompute: bool,
        mut take: impl FnMut(Vec<GradRecord<B>>),
    ) {
        let mut trained = |records| take(weights.trained_records(records));
        let mut pass = Pass::new(recompute, &mut trained);
        match self {
            Self::Gpt2(model) => model.records(weights, batch, &mut pass),
            Self::T5(model) => model.records(weights, batch, &mut pass),
            Self::Bert(model) => model.records(weights, batch, &mut pass),
            Self::Decoder(model) => model.records(weights, batch, &mut pass),
            Self::FeedForward(model) => model.records(weights, batch, &mut pass),
        }
        pass.hand_over();
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
        initial: crate::nn::Initial,
    ) -> crate::nn::ParamId {
        self.0.push(ParamSpec { name: name.into(), shape: shape.to_vec(), initial });
        crate::nn::ParamId(self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests;
