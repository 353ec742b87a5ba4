//! Model families: sizes, Hugging Face names and configuration, and the forward pass. Each family is one file.
//!
//! To add a family, write its file and add a line to `families!`.

mod batch;
mod bert;
mod classifier;
mod decoder;
mod feed_forward;
mod gpt2;
mod hugging_face;
mod llama;
mod t5;

use std::sync::Arc;

pub use batch::{Batch, Shape};
use bert::Bert;
pub use classifier::{Labels, SequenceClassifier};
use decoder::Decoder;
use feed_forward::FeedForward;
pub(crate) use gpt2::Gpt2;
#[cfg(test)]
pub(crate) use gpt2::Gpt2Config;
pub(crate) use hugging_face::HuggingFace;
use llama::Llama;
use t5::T5;

use crate::data::{Example, ExampleError};
use crate::head::{LmHead, Pooling, SequenceHead};
use crate::nn::{
    Cache, GradRecord, Kernels, Layout, LinearSpec, ParamList, ParamSpec, Pass, Selection, SelectionError,
    Var, Weights,
};
use crate::tensor::{Int, Tensor};

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

/// Standard deviation of a new classifier's weights.
const CLASSIFIER_STD: f64 = 0.02;

/// What there is to know of a model beside its forward pass.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    /// The parameters.
    pub layout: Layout,
    /// Number of tokens.
    pub vocab_size: usize,
    /// Width of the hidden states.
    pub width: usize,
    /// The shape of a batch's rows: the longest example it takes.
    pub shape: Shape,
    /// `config.json` as `transformers` reads it.
    pub hf_config: serde_json::Value,
    /// What predicts tokens.
    pub head: LmHead,
    /// What predicts the class of a pair of sentences, if the model does.
    pub sentence: Option<SequenceHead>,
}

/// What decides the shape of a network.
#[derive(Clone, Copy)]
pub(crate) struct PlannedNetwork<'a> {
    pub model: &'a plan::Model,
    pub training: &'a plan::Training,
    pub vocab_size: usize,
}

impl PlannedNetwork<'_> {
    /// Context, width, blocks, heads and feed-forward width.
    fn sizes(self) -> [usize; 5] {
        let plan::Model { context, d_model, layers, heads, d_ff, .. } = *self.model;
        [context, d_model, layers, heads, d_ff].map(|size| size as usize)
    }
}

/// What the file of a family says, beside what its checkpoints look like on Hugging Face: `HUGGING_FACE`.
pub(crate) trait Model {
    /// The model that a plan asks for.
    ///
    /// # Errors
    /// [`ModelError`] for sizes that do not fit together.
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError>
    where
        Self: Sized;

    /// What there is to know beside the forward pass.
    fn description(&self) -> &Description;

    /// A new head for classes of whole sequences, with the names of `transformers`. Its parameters are added to `list`.
    fn classifier(&self, list: &mut ParamList, classes: usize) -> SequenceHead {
        let classes =
            list.linear("score", LinearSpec::normal(self.description().width, classes, CLASSIFIER_STD));
        SequenceHead { pooling: Pooling::Last, classes }
    }

    /// The forward pass: what the heads read. In generation, `batch` holds the tokens that the cache has not seen.
    ///
    /// # Shapes
    /// - output: `[rows, seq, d]`, of the decoder if there is one
    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B>
    where
        Self: Sized;
}

/// One line per family: its file and type, and its names in a plan.
macro_rules! families {
    ($($file:ident::$family:ident: $($plan:ident)|+;)+) => {
        /// A model of any family that a plan can name.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "each variant holds the type of its name")]
        pub enum Network {
            $($family($family),)+
        }

        impl Network {
            fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
                Ok(match plan.model.family {
                    $($(plan::Family::$plan)|+ => Self::$family(<$family as Model>::from_plan(plan)?),)+
                })
            }

            /// The families of checkpoints that can be read.
            pub(crate) fn checkpoints() -> impl Iterator<Item = &'static HuggingFace> {
                [$(&$file::HUGGING_FACE),+].into_iter()
            }

            fn model(&self) -> &dyn Model {
                match self {
                    $(Self::$family(model) => model,)+
                }
            }

            fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
                match self {
                    $(Self::$family(model) => model.hidden(pass, batch),)+
                }
            }
        }
    };
}

families! {
    gpt2::Gpt2: Gpt2;
    t5::T5: T5 | T5V1_1;
    bert::Bert: Bert;
    decoder::Decoder: Decoder;
    feed_forward::FeedForward: FeedForward;
    llama::Llama: Llama;
}

impl Network {
    /// The model that a plan asks for.
    ///
    /// # Errors
    /// [`ModelError`] for sizes that do not fit together.
    pub fn new(
        model: &plan::Model,
        training: &plan::Training,
        vocab_size: usize,
    ) -> Result<Self, ModelError> {
        let sizes = [
            ("vocab_size", vocab_size),
            ("context", model.context as usize),
            ("d_model", model.d_model as usize),
            ("heads", model.heads as usize),
            ("d_ff", model.d_ff as usize),
        ];
        if let Some((what, value)) = sizes.into_iter().find(|&(_, value)| value == 0) {
            return Err(ModelError { what, value, allowed: "at least 1" });
        }
        if model.d_head.is_none() && !model.d_model.is_multiple_of(model.heads) {
            let value = model.heads as usize;
            return Err(ModelError { what: "heads", value, allowed: "a divisor of d_model" });
        }
        Self::from_plan(PlannedNetwork { model, training, vocab_size })
    }

    fn description(&self) -> &Description {
        self.model().description()
    }

    /// The parameters, and what each is for.
    pub(crate) fn layout(&self) -> &Layout {
        &self.description().layout
    }

    /// Names, shapes and starts of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        Arc::clone(self.layout().specs())
    }

    /// The part of the parameters that a plan trains; `None` for all.
    ///
    /// # Errors
    /// [`SelectionError`] if the plan names what this network does not have.
    pub fn selection(&self, model: &plan::Model) -> Result<Option<Selection>, SelectionError> {
        Selection::new(&model.trainable, self.layout(), model.layers as usize)
    }

    /// Number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.description().vocab_size
    }

    /// The shape of a batch's rows: the longest example it takes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.description().shape
    }

    /// Refuses examples that do not fit the network.
    ///
    /// # Errors
    /// [`ExampleError`] of the first one.
    pub fn check(&self, examples: &[Example]) -> Result<(), ExampleError> {
        let (shape, vocab_size) = (self.shape(), self.vocab_size());
        for (index, example) in examples.iter().enumerate() {
            if let Some(problem) = shape.problem(example, vocab_size) {
                return Err(ExampleError { index, problem });
            }
        }
        Ok(())
    }

    /// `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        self.description().hf_config.clone()
    }

    /// Logits at every target, padding included. The batch may be narrower than [`Network::shape`].
    ///
    /// # Shapes
    /// - output: `[rows·targets, vocabulary]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Tensor<B, 2> {
        self.token_logits(Pass::measuring(weights), &batch)
    }

    /// Logits of the token that follows each row. `batch` has the tokens that `cache` has not seen: at first whole texts of
    /// one length without padding, later one token of each row. An encoder–decoder reads its input in the first pass only;
    /// the cache counts the decoder's tokens. No row may grow beyond the context.
    ///
    /// # Shapes
    /// - output: `[rows, vocabulary]`
    ///
    /// # Panics
    /// If a later pass has several tokens of a row.
    pub fn next_logits<B: Kernels>(
        &self,
        weights: &Weights<B>,
        cache: &mut Cache<B>,
        batch: &Batch<B>,
    ) -> Tensor<B, 2> {
        let [rows, positions] = batch.decoder_tokens.as_ref().unwrap_or(&batch.tokens).dims();
        assert!(cache.positions().is_empty() || positions == 1, "one new token of each row");
        let logits = self.token_logits(Pass::generating(weights, cache), batch);
        cache.advance(rows, positions);
        logits
    }

    fn token_logits<B: Kernels>(&self, mut pass: Pass<'_, B>, batch: &Batch<B>) -> Tensor<B, 2> {
        let hidden = self.hidden(&mut pass, batch);
        let logits = self.description().head.forward(&mut pass, hidden, batch.positions.clone());
        flat(logits.into_value())
    }

    /// Logits of the class of each row's pair of sentences, if the network predicts it.
    ///
    /// # Shapes
    /// - output: `[rows, 2]`
    pub fn sentence_logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Option<Tensor<B, 2>> {
        let head = self.description().sentence?;
        let mut pass = Pass::measuring(weights);
        let hidden = self.hidden(&mut pass, &batch);
        Some(flat(head.forward(&mut pass, hidden, batch.lengths).into_value()))
    }

    /// Forward and backward pass of the summed per-example losses: the records that hold every example's gradient of the
    /// trained parameters.
    ///
    /// The losses themselves are never computed: they are private and nothing may depend on them.
    pub fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Vec<GradRecord<B>> {
        let mut all = Vec::with_capacity(weights.specs().len());
        self.hand_over_records(weights, batch, false, |records| all.extend(records));
        all
    }

    /// As [`Network::records`], block by block, from the last to the first, each handed over as soon as it is complete. With
    /// `recompute` the forward pass keeps the blocks' inputs alone and is computed again block by block: the same records.
    pub fn hand_over_records<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: Batch<B>,
        recompute: bool,
        mut take: impl FnMut(Vec<GradRecord<B>>),
    ) {
        let mut pass = Pass::training(weights, recompute);
        let hidden = self.hidden(&mut pass, &batch);
        if let Some(head) = self.description().sentence {
            let logits = head.forward(&mut pass, hidden.clone(), batch.lengths);
            pass.seed(logits, |logits| {
                cross_entropy_gradient(logits, batch.sentences, batch.sentence_weights)
            });
        }
        let logits = self.description().head.forward(&mut pass, hidden, batch.positions);
        let rows = batch.targets.dims().iter().product::<usize>();
        let (targets, target_weights) = (batch.targets.reshape([rows]), batch.target_weights.reshape([rows]));
        pass.seed(logits, |logits| cross_entropy_gradient(logits, targets, target_weights));
        pass.backward(&mut take);
    }
}

/// Gradient by the logits of the weighted sum of the rows' negative log-likelihoods. It takes the logits' memory.
///
/// # Shapes
/// - logits, output: `[batch, n, classes]`, targets, weights: `[batch·n]`
fn cross_entropy_gradient<B: Kernels>(
    logits: Tensor<B, 3>,
    targets: Tensor<B, 1, Int>,
    weights: Tensor<B, 1>,
) -> Tensor<B, 3> {
    let shape = logits.dims();
    B::cross_entropy_backward(flat(logits), targets, weights).reshape(shape)
}

/// `[batch, n, classes]` → `[batch·n, classes]`
fn flat<B: Kernels>(logits: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, n, classes] = logits.dims();
    logits.reshape([batch * n, classes])
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
