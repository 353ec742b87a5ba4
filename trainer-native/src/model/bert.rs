//! BERT: an encoder that sees both sides, norms after each part, and a head that fills masked places.
//!
//! # References
//! Devlin et al. 2019, <https://arxiv.org/abs/1810.04805>; names and initial values as Hugging Face's
//! `BertForPreTraining`, and `BertForMaskedLM` where sentences are not predicted.

use serde_json::{Value, json};

use super::{Batch, Description, HuggingFace, Model, ModelError, PlannedNetwork, Predictions, Shape};
use crate::head::{LmHead, Pooling, SequenceHead, Transform};
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, FeedForward, Initial, Kernels, LayerNorm, Linear,
    LinearSpec, MultiHeadAttention, ParamId, ParamList, Part, Pass, PositionEmbedding, SegmentEmbedding,
    TableLogits, TokenEmbedding, Var, add, branch, dropout, residual,
};
use crate::objective;

const NORM_EPSILON: f64 = 1e-12;
const INITIAL_STD: f64 = 0.02;
/// First and second sentence.
const SEGMENTS: usize = 2;

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("hidden_act", "\"gelu\""), ("layer_norm_eps", "1e-12"), ("type_vocab_size", "2")],
    fixed: &[("is_decoder", "false"), ("position_embedding_type", "\"absolute\"")],
    // Those of the pooler describe one that no version of the model has.
    irrelevant: &[
        "attention_probs_dropout_prob",
        "directionality",
        "hidden_dropout_prob",
        "output_past",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    ],
    prefix: "bert.",
    buffers: &["embeddings.position_ids", "embeddings.token_type_ids"],
    renamed: &[("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")],
    copies: &["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"],
    tagger: "classifier",
    unused: &["bert.pooler.", "cls.seq_relationship."],
    token_heads: &["cls."],
    label_heads: &["classifier.", "bert.pooler."],
    position_table: Some("bert.embeddings.position_embeddings.weight"),
    ..HuggingFace::plain("bert", "Bert")
};

/// The sizes of a BERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BertConfig {
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Most masked places of an example.
    pub predictions: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    pub layers: usize,
    /// Attention heads; divides `d_model`.
    pub heads: usize,
    /// Width of the feed-forward part.
    pub d_ff: usize,
    /// Whether it also predicts how two sentences belong together.
    pub next_sentence: bool,
}

impl BertConfig {
    /// `config.json` as `transformers` reads it.
    fn hugging_face(&self) -> Value {
        let architecture = if self.next_sentence { "BertForPreTraining" } else { "BertForMaskedLM" };
        json!({
            "model_type": "bert",
            "architectures": [architecture],
            "vocab_size": self.vocab_size,
            "hidden_size": self.d_model,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.d_ff,
            "max_position_embeddings": self.context,
            "type_vocab_size": SEGMENTS,
            "hidden_act": "gelu",
            "layer_norm_eps": NORM_EPSILON,
            "initializer_range": INITIAL_STD,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "tie_word_embeddings": true,
            "torch_dtype": "float32"
        })
    }

    /// The sizes that a `config.json` states; `None` if one is missing or does not fit the others.
    pub(crate) fn from_hugging_face(config: &Value) -> Option<Self> {
        // Larger ones could not be allocated.
        let size =
            |name: &str| config[name].as_u64().filter(|size| *size <= 1 << 20).map(|size| size as usize);
        let layers = size("num_hidden_layers").filter(|layers| *layers <= 1024)?;
        let [context, d_model, heads] =
            [size("max_position_embeddings")?, size("hidden_size")?, size("num_attention_heads")?];
        (heads > 0 && d_model > 0 && d_model.is_multiple_of(heads)).then_some(())?;
        Some(Self {
            vocab_size: size("vocab_size")?,
            context,
            predictions: objective::predictions(context),
            d_model,
            layers,
            heads,
            d_ff: size("intermediate_size")?,
            next_sentence: false,
        })
    }
}

/// A BERT.
#[derive(Clone, Debug)]
pub struct Bert {
    description: Description,
    tokens: TokenEmbedding,
    positions: PositionEmbedding,
    segments: SegmentEmbedding,
    norm: LayerNorm,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    inner: FeedForward,
    inner_norm: LayerNorm,
}

impl Bert {
    pub fn new(config: BertConfig) -> Self {
        let mut list = ParamList::default();
        let d = config.d_model;
        let mut table = |part: &str, rows: usize| {
            let name = format!("bert.embeddings.{part}_embeddings.weight");
            list.add(name, &[rows, d], Initial::Normal { std: INITIAL_STD })
        };
        let tokens = TokenEmbedding { table: table("word", config.vocab_size) };
        let positions = PositionEmbedding { table: table("position", config.context) };
        let segments = SegmentEmbedding { table: table("token_type", SEGMENTS) };
        let norm = list.layer_norm("bert.embeddings.LayerNorm", d, NORM_EPSILON);
        let blocks = (0..config.layers).map(|at| Block::new(&config, at, &mut list)).collect();
        list.enter(Part::Head);
        let masked = masked_head(&mut list, tokens.table, config.vocab_size, d);
        let sentence = config.next_sentence.then(|| sequence_head(&mut list, "cls.seq_relationship", d, 2));
        let description = Description {
            layout: list.finish(),
            vocab_size: config.vocab_size,
            width: d,
            shape: Shape {
                input: config.context,
                decoder: None,
                predictions: Predictions::AtPlaces(config.predictions),
            },
            hf_config: config.hugging_face(),
            head: masked,
            sentence,
        };
        Self { description, tokens, positions, segments, norm, blocks }
    }
}

/// The pooler, then the classes under this name.
fn sequence_head(list: &mut ParamList, name: &str, d: usize, classes: usize) -> SequenceHead {
    let pooling = Pooling::First(linear(list, "bert.pooler.dense", d, d));
    SequenceHead { pooling, drops_pooled: false, classes: linear(list, name, d, classes) }
}

/// A transformation, then products with the token table, and a bias a token.
fn masked_head(list: &mut ParamList, table: ParamId, vocabulary: usize, d: usize) -> LmHead {
    let bias = Some(list.add("cls.predictions.bias", &[vocabulary], Initial::Constant(0.0)));
    let dense = linear(list, "cls.predictions.transform.dense", d, d);
    let norm = list.layer_norm("cls.predictions.transform.LayerNorm", d, NORM_EPSILON);
    let transform = Some(Transform { dense, norm });
    LmHead { transform, logits: TableLogits { table, bias }, ..LmHead::of_table(table) }
}

impl Model for Bert {
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        let [context, d_model, layers, heads, d_ff] = plan.sizes();
        let (vocab_size, predictions) = (plan.vocab_size, objective::predictions(context));
        let next_sentence = plan.training.objective == plan::Objective::MaskedLmNextSentence;
        let config =
            BertConfig { vocab_size, context, predictions, d_model, layers, heads, d_ff, next_sentence };
        Ok(Self::new(config))
    }

    fn description(&self) -> &Description {
        &self.description
    }

    fn classifier(&self, list: &mut ParamList, classes: usize) -> SequenceHead {
        let head = sequence_head(list, "classifier", self.description.width, classes);
        SequenceHead { drops_pooled: true, ..head }
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let tokens = self.tokens.forward(pass, batch.tokens.clone());
        let segments = self.segments.forward(pass, batch.segments.clone());
        let sum = add(pass, tokens, segments);
        let sum = self.positions.forward(pass, sum);
        let stream = self.norm.forward(pass, sum);
        let mut stream = dropout(pass, stream);
        let mask = AttentionMask::padding(batch.lengths.clone());
        for &block in &self.blocks {
            let mask = mask.clone();
            stream = pass.block([stream], move |pass, [input]| block.forward(pass, input, &mask));
        }
        stream
    }
}

impl Block {
    fn new(config: &BertConfig, at: usize, list: &mut ParamList) -> Self {
        list.enter(Part::Block(at));
        let (d, d_ff) = (config.d_model, config.d_ff);
        let name = |part: &str| format!("bert.encoder.layer.{at}.{part}");
        let attention = MultiHeadAttention {
            query: linear(list, &name("attention.self.query"), d, d),
            key: linear(list, &name("attention.self.key"), d, d),
            value: linear(list, &name("attention.self.value"), d, d),
            output: linear(list, &name("attention.output.dense"), d, d),
            heads: DotProductAttention::new(config.heads, d / config.heads),
        };
        let widen = linear(list, &name("intermediate.dense"), d, d_ff);
        let narrow = linear(list, &name("output.dense"), d_ff, d);
        Self {
            attention,
            attention_norm: list.layer_norm(&name("attention.output.LayerNorm"), d, NORM_EPSILON),
            inner: FeedForward { widen, narrow, activation: Activation::Gelu, drops_activations: false },
            inner_norm: list.layer_norm(&name("output.LayerNorm"), d, NORM_EPSILON),
        }
    }

    fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>, mask: &AttentionMask<B>) -> Var<B> {
        let from = branch(pass, input.clone());
        let to = branch(pass, from.clone());
        let attended = self.attention.forward(pass, from, to, mask, None);
        let sum = residual(pass, attended, input);
        let middle = self.attention_norm.forward(pass, sum);
        let inner = self.inner.forward(pass, middle.clone());
        let sum = residual(pass, inner, middle);
        self.inner_norm.forward(pass, sum)
    }
}

/// A linear map with bias.
fn linear(list: &mut ParamList, name: &str, d_in: usize, d_out: usize) -> Linear {
    list.linear(name, LinearSpec::normal(d_in, d_out, INITIAL_STD).biased())
}
