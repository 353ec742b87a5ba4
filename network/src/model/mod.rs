//! Model families: sizes, Hugging Face names and configuration, and the forward pass. Each family is one file.
//!
//! To add a family, write its file and add a line to `families!`. The plan needs its name and the number of its parameters:
//! "Where to add" in ARCHITECTURE.md has all places.

mod bart;
mod batch;
mod bert;
mod config_field;
mod decoder;
mod distilbert;
mod electra;
mod encoder;
mod feed_forward;
mod gemma;
mod gemma2;
mod gemma3;
mod gpt2;
mod gpt_neo;
mod gpt_neox;
mod gptj;
mod granite;
mod hugging_face;
mod llama;
mod marian;
mod mbart;
mod mistral;
mod modernbert;
mod network;
mod olmo2;
mod opt;
mod output_bias;
mod phi;
mod phi3;
mod pre_norm;
mod qwen2;
mod qwen3;
mod roberta;
mod rope;
mod seq2seq;
mod smollm3;
mod stablelm;
mod t5;
mod vaultgemma;

pub use batch::{Batch, Predictions, Shape};
pub use config_field::{ConfigField, ConfigValues, FieldType};
use decoder::Decoder;
use encoder::EncoderModel;
use feed_forward::FeedForwardLm;
pub use gpt2::gpt2;
pub use hugging_face::HuggingFace;
use modernbert::ModernBert;
pub use network::Network;
use pre_norm::PreNormDecoder;
pub use roberta::ROBERTA_PADDING;
pub use rope::{base as rope_base, frequencies as rope_frequencies, scaling as rope_scaling};
pub(crate) use rope::{malformed as rope_malformed, name_in_file as rope_name};
use seq2seq::Seq2SeqModel;
use t5::T5;

use crate::head::{LABELS_STD, LmHead, Pooling, SequenceHead};
use crate::nn::{ForwardPass, Kernels, Layout, LinearSpec, ParamList, Var};

/// A model that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A size that is not allowed.
    #[error("model: {what} = {value}; allowed: {allowed}")]
    Size {
        /// Field of the plan's model.
        what: &'static str,
        /// The given size.
        value: usize,
        /// The allowed sizes.
        allowed: &'static str,
    },
    /// A field of `config.json` that the family does not have, or a value that it does not accept.
    #[error("model.config: {0}")]
    Config(String),
}

/// The description of a model, apart from its forward pass.
#[derive(Clone, Debug)]
pub struct Description {
    /// The parameters.
    pub layout: Layout,
    /// Number of tokens.
    pub vocab_size: usize,
    /// Width of the hidden states.
    pub width: usize,
    /// The shape of a batch's rows: that of the longest example.
    pub shape: Shape,
    /// `config.json` as `transformers` reads it.
    pub hf_config: serde_json::Value,
    /// Head that predicts tokens.
    pub head: LmHead,
    /// Head that predicts the class of a pair of sentences, if the model has one.
    pub sentence: Option<SequenceHead>,
}

impl Description {
    /// Describes a model with the parameters in `list`. Its number of tokens and its width are
    /// those of its head's table.
    fn new(list: ParamList, head: LmHead, shape: Shape, hf_config: serde_json::Value) -> Self {
        let layout = list.finish();
        let table = &layout.specs()[head.logits.table.0].shape;
        let (vocab_size, width) = (table[0], table[1]);
        Self { layout, vocab_size, width, shape, hf_config, head, sentence: None }
    }
}

/// The parts of a plan that determine the shape of a network.
#[derive(Clone, Copy)]
pub struct PlannedNetwork<'a> {
    /// The plan's model.
    pub model: &'a plan::Model,
    /// The plan's training, which names the objective.
    pub training: &'a plan::Training,
    /// Number of tokens.
    pub vocab_size: usize,
    /// `model.config` with the family's usual values.
    pub config: &'a ConfigValues,
}

/// The sizes that a plan gives every model.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Attention heads; divides `d_model`.
    pub heads: usize,
    /// Width of the feed-forward part.
    pub d_ff: usize,
}

impl Sizes {
    fn of(plan: PlannedNetwork<'_>) -> Self {
        let plan::Model { context, d_model, layers, heads, d_ff, .. } = *plan.model;
        Self {
            vocab_size: plan.vocab_size,
            context: context as usize,
            d_model: d_model as usize,
            layers: layers as usize,
            heads: heads as usize,
            d_ff: d_ff as usize,
        }
    }
}

/// A model below its head, in addition to what a family's file has: `HUGGING_FACE`, the description of
/// its checkpoints, and `from_plan`, which builds the model that a plan asks for.
pub trait Model {
    /// Returns the description of the model.
    fn description(&self) -> &Description;

    /// Creates a head for classes of whole sequences, with the names of `transformers`, and adds
    /// its parameters to `list`.
    fn classifier(&self, list: &mut ParamList, classes: usize) -> SequenceHead {
        let classes = list.linear("score", LinearSpec::normal(self.description().width, classes, LABELS_STD));
        SequenceHead { pooling: Pooling::Last, drops_pooled: false, classes }
    }

    /// Runs the forward pass and returns the hidden states that the heads read. In generation,
    /// `batch` holds the tokens that the cache has not seen.
    ///
    /// # Shapes
    /// - output: `[rows, seq, d]`, of the decoder if there is one
    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B>
    where
        Self: Sized;
}

/// Registers each family in one line: its file, its name and the type of its models, and its names in a plan.
macro_rules! families {
    ($($file:ident: $family:ident($model:ty) = $($plan:ident)|+;)+) => {
        /// The part of a model below its head, of any family that a plan can name.
        #[derive(Clone, Debug)]
        pub enum Backbone {
            $(#[allow(missing_docs, reason = "the type says it")] $family($model),)+
        }

        impl Backbone {
            fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
                Ok(match plan.model.family {
                    $($(plan::Family::$plan)|+ => Self::$family($file::from_plan(plan)?),)+
                })
            }

            /// Returns the description of a family's checkpoints.
            pub fn hugging_face(family: plan::Family) -> &'static HuggingFace {
                match family {
                    $($(plan::Family::$plan)|+ => &$file::HUGGING_FACE,)+
                }
            }

            /// Returns the families whose checkpoints can be read.
            pub fn checkpoints() -> impl Iterator<Item = &'static HuggingFace> {
                [$(&$file::HUGGING_FACE),+].into_iter()
            }

            fn model(&self) -> &dyn Model {
                match self {
                    $(Self::$family(model) => model,)+
                }
            }

            fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
                match self {
                    $(Self::$family(model) => model.hidden(pass, batch),)+
                }
            }
        }
    };
}

families! {
    gpt2: Gpt2(PreNormDecoder) = Gpt2;
    t5: T5(T5) = T5 | T5V1_1;
    bert: Bert(EncoderModel) = Bert;
    gemma: Gemma(Decoder) = Decoder;
    gemma2: Gemma2(Decoder) = Gemma2;
    gemma3: Gemma3(Decoder) = Gemma3;
    vaultgemma: VaultGemma(Decoder) = VaultGemma;
    llama: Llama(Decoder) = Llama;
    mistral: Mistral(Decoder) = Mistral;
    olmo2: Olmo2(Decoder) = Olmo2;
    granite: Granite(Decoder) = Granite;
    smollm3: SmolLm3(Decoder) = SmolLm3;
    phi3: Phi3(Decoder) = Phi3;
    qwen2: Qwen2(Decoder) = Qwen2;
    qwen3: Qwen3(Decoder) = Qwen3;
    roberta: Roberta(EncoderModel) = Roberta;
    distilbert: DistilBert(EncoderModel) = DistilBert;
    electra: Electra(EncoderModel) = Electra;
    gpt_neox: GptNeoX(PreNormDecoder) = GptNeoX;
    phi: Phi(PreNormDecoder) = Phi;
    stablelm: StableLm(PreNormDecoder) = StableLm;
    gptj: GptJ(PreNormDecoder) = GptJ;
    opt: Opt(PreNormDecoder) = Opt;
    gpt_neo: GptNeo(PreNormDecoder) = GptNeo;
    modernbert: ModernBert(ModernBert) = ModernBert;
    bart: Bart(Seq2SeqModel) = Bart;
    mbart: MBart(Seq2SeqModel) = MBart;
    marian: Marian(Seq2SeqModel) = Marian;
    feed_forward: FeedForward(FeedForwardLm) = FeedForward;
}
