//! T5: an encoder reads text with gaps, and a decoder writes the missing parts. Norms have no mean
//! or bias, attention has no scale, and positions are relative.
//!
//! Version 1.0 has a ReLU and one table for encoder, decoder and head; version 1.1 (also mT5) a
//! gated GELU and, unless a file ties it, a head of its own.
//!
//! # References
//! Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>; Shazeer 2020,
//! <https://arxiv.org/abs/2002.05202>; names as Hugging Face's `T5ForConditionalGeneration`.

use serde_json::{Value, json};

use super::seq2seq::{Side, encoder_output};
use super::{
    Batch, ConfigField, Description, FieldType, HuggingFace, Model, ModelError, PlannedNetwork, Predictions,
    Shape, Sizes,
};
use crate::head::{LmHead, Pooling, SequenceHead};
use crate::lengths;
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, FeedForward, ForwardPass, Gate, GatedFeedForward,
    Initializer, Kernels, Linear, LinearSpec, MaybeGated, MultiHeadAttention, ParamId, ParamList, Part,
    RelativeBias, RmsNorm, TokenEmbedding, Var, branch, dropout, residual,
};

const BUCKETS: usize = 32;
/// Distance from which all distances share the last bucket.
const MAX_DISTANCE: usize = 128;
const NORM_EPSILON: f64 = 1e-6;
/// Whether the head is the token table; usual in version 1.0.
const TIED: ConfigField = ConfigField::new("tie_word_embeddings", "null", FieldType::FlagOrNull);
/// Whether the decoder's output is divided by √d before the head; usual where the head is the token table.
const SCALED: ConfigField = ConfigField::new("scale_decoder_outputs", "null", FieldType::FlagOrNull);

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("feed_forward_proj", "\"relu\""),
        ("layer_norm_epsilon", "1e-6"),
        ("relative_attention_max_distance", "128"),
        ("relative_attention_num_buckets", "32"),
    ],
    read,
    contradiction,
    positions: None,
    config_fields: &[TIED, SCALED],
    // Relative positions have no limit, so `n_positions` has no effect.
    irrelevant: &[
        "n_positions",
        "dropout_rate",
        "output_past",
        "initializer_factor",
        // `contradiction` refuses these three unless they agree with the model.
        "dense_act_fn",
        "is_gated_act",
        "is_encoder_decoder",
    ],
    plan_fields: &[
        ("d_model", "model.d_model"),
        ("num_layers", "model.layers"),
        ("num_decoder_layers", "model.layers"),
        ("num_heads", "model.heads"),
        ("d_ff", "model.d_ff"),
        ("d_kv", "model.d_head"),
    ],
    // Parameters of classifiers have this prefix; those of models of text do not.
    prefix: "transformer.",
    label_heads: &["classification_head."],
    // The first published files contain this tensor, which no version of the model has used.
    unused: &["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"],
    copies: &[
        "lm_head.weight",
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "transformer.encoder.embed_tokens.weight",
        "transformer.decoder.embed_tokens.weight",
    ],
    ..HuggingFace::plain("t5", "T5")
};

fn read(config: &Value, field: &str) -> Option<Value> {
    match field {
        // mT5 is T5 version 1.1 with another vocabulary.
        "model_type" if config[field] == "mt5" => Some(json!("t5")),
        "num_decoder_layers" if config[field].is_null() => Some(config["num_layers"].clone()),
        // `null` if it agrees with `tie_word_embeddings`, which is usual.
        "scale_decoder_outputs" => {
            let tied = config[TIED.name] != false;
            // mT5 in transformers 5 ties the tables and never scales.
            let scaled = match config["model_type"] == "mt5" {
                true => false,
                // transformers takes null for false.
                false => config.get(field).map_or(tied, |scaled| *scaled == true),
            };
            Some(if scaled == tied { Value::Null } else { json!(scaled) })
        }
        _ => None,
    }
}

/// Returns the refusal of fields that contradict `feed_forward_proj`. `transformers` computes with these fields, not
/// with `feed_forward_proj`.
fn contradiction(config: &Value) -> Option<String> {
    let projection = config["feed_forward_proj"].as_str().unwrap_or("relu");
    let (is_gated, activation) = match projection.strip_prefix("gated-") {
        Some("gelu") => (true, "gelu_new"),
        Some(activation) => (true, activation),
        None => (false, projection),
    };
    let implied = [
        ("dense_act_fn", json!(activation)),
        ("is_gated_act", json!(is_gated)),
        ("is_encoder_decoder", json!(true)),
    ];
    let (name, usual) =
        implied.into_iter().find(|(name, usual)| config.get(*name).is_some_and(|own| own != usual))?;
    let own = &config[name];
    Some(match name {
        "is_encoder_decoder" => format!("{name} = {own}; allowed: true"),
        _ => format!(
            "{name} = {own}, but feed_forward_proj = {projection:?} means {usual}; remove one of the two"
        ),
    })
}

/// The sizes of a T5.
#[derive(Clone, Copy, Debug)]
pub struct T5Config {
    /// Sizes of either side: encoder and decoder have as many blocks each.
    pub sizes: Sizes,
    /// Longest input of the decoder.
    pub decoder_context: usize,
    /// Width of a head.
    pub d_head: usize,
    /// Whether the feed-forward part is a gated GELU, as in version 1.1.
    pub gated: bool,
    /// Whether the head is the token table, as in version 1.0.
    pub tied: bool,
    /// Whether the decoder's output is divided by √d before the head; by default, it is if `tied` is true.
    pub scaled: Option<bool>,
    /// Whether a classifier reads the hidden states: its parameters have other names.
    pub classifies: bool,
}

impl T5Config {
    /// Returns the beginning of all parameters' names.
    fn prefix(&self) -> &'static str {
        if self.classifies { HUGGING_FACE.prefix } else { "" }
    }

    /// Returns `config.json` as `transformers` reads it. The tokenizer adds the ids of special
    /// tokens.
    fn hugging_face(&self) -> serde_json::Value {
        json!({
            "model_type": "t5",
            "architectures": ["T5ForConditionalGeneration"],
            "vocab_size": self.sizes.vocab_size,
            "d_model": self.sizes.d_model,
            "d_kv": self.d_head,
            "d_ff": self.sizes.d_ff,
            "num_layers": self.sizes.layers,
            "num_decoder_layers": self.sizes.layers,
            "num_heads": self.sizes.heads,
            "relative_attention_num_buckets": BUCKETS,
            "relative_attention_max_distance": MAX_DISTANCE,
            "n_positions": self.sizes.context,
            "dropout_rate": 0.0,
            "layer_norm_epsilon": NORM_EPSILON,
            "initializer_factor": 1.0,
            "feed_forward_proj": if self.gated { "gated-gelu" } else { "relu" },
            "is_encoder_decoder": true,
            "tie_word_embeddings": self.tied,
            "torch_dtype": "float32"
        })
    }
}

/// A T5.
#[derive(Clone, Debug)]
pub struct T5 {
    description: Description,
    table: TokenEmbedding,
    /// The table of a head for tokens, if it is not the one that the model reads.
    head_table: Option<ParamId>,
    encoder: Stack,
    decoder: Stack,
}

/// Blocks with a norm before each part, a norm after the last block, and one relative bias for all
/// blocks.
#[derive(Clone, Debug)]
struct Stack {
    bias: RelativeBias,
    blocks: Vec<Block>,
    norm: RmsNorm,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    attention: MultiHeadAttention,
    attention_norm: RmsNorm,
    /// Attention of the decoder to the encoder's output.
    cross: Option<Cross>,
    inner: MaybeGated,
    inner_norm: RmsNorm,
}

#[derive(Clone, Copy, Debug)]
struct Cross {
    attention: MultiHeadAttention,
    norm: RmsNorm,
}

impl T5 {
    pub fn new(config: T5Config) -> Self {
        let mut list = ParamList::default();
        let (d, vocabulary) = (config.sizes.d_model, config.sizes.vocab_size);
        let table = list.add(
            format!("{}shared.weight", config.prefix()),
            &[vocabulary, d],
            Initializer::Normal { std: 1.0 },
        );
        let encoder = Stack::new(&config, Side::Encoder, &mut list);
        let decoder = Stack::new(&config, Side::Decoder, &mut list);
        list.enter(Part::Head);
        let scale = (d as f64).powf(-0.5);
        let head = if config.tied {
            table
        } else {
            // The original code draws the head in the same way: logits are of order 1 whatever the width is.
            list.add("lm_head.weight", &[vocabulary, d], Initializer::Normal { std: scale })
        };
        let scale = config.scaled.unwrap_or(config.tied).then_some(scale);
        let head = LmHead { scale, ..LmHead::of_table(head).of_tokens(table) };
        let description = Description::new(
            list,
            head,
            Shape {
                input: config.sizes.context,
                decoder: Some(config.decoder_context),
                predictions: Predictions::EachPosition,
            },
            config.hugging_face(),
        );
        let head_table =
            Some(description.head.logits.table).filter(|&own| own != table && !config.classifies);
        Self { description, table: TokenEmbedding { table }, head_table, encoder, decoder }
    }
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<T5, ModelError> {
    let sizes = Sizes::of(plan);
    let is_v1_1 = plan.model.family == plan::Family::T5V1_1;
    let flag = |field: &ConfigField| plan.config.value(field).as_bool();
    Ok(T5::new(T5Config {
        sizes,
        decoder_context: lengths::decoder_context(plan.training.objective, plan.model),
        d_head: plan.model.d_head.map_or(sizes.d_model / sizes.heads, |width| width as usize),
        gated: is_v1_1,
        tied: flag(&TIED).unwrap_or(!is_v1_1),
        scaled: flag(&SCALED),
        classifies: plan.training.objective.has_labels(),
    }))
}

impl Model for T5 {
    fn description(&self) -> &Description {
        &self.description
    }

    /// Creates a head like `T5ClassificationHead`, on the decoder's last position.
    fn classifier(&self, list: &mut ParamList, classes: usize) -> SequenceHead {
        let d = self.description.width;
        let std = (d as f64).powf(-0.5);
        let mut layer = |name: &str, d_out| {
            list.linear(&format!("classification_head.{name}"), LinearSpec::normal(d, d_out, std).biased())
        };
        let (dense, classes) = (layer("dense", d), layer("out_proj", classes));
        SequenceHead { pooling: Pooling::LastThrough(dense, Activation::Tanh), drops_pooled: true, classes }
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mask = AttentionMask::padding(batch.lengths.clone());
        let memory = encoder_output(pass, batch, self.description.width, |pass| {
            let input = self.table.forward(pass, batch.tokens.clone());
            self.encoder.forward(pass, input, &mask, None)
        });
        if let Some(table) = self.head_table {
            pass.leave_record_here(table);
        }
        let output = self.table.forward(pass, batch.decoder_input());
        // The decoder's padding comes last, so no place with a target sees it.
        self.decoder.forward(pass, output, &AttentionMask::causal(), Some((memory, mask)))
    }
}

impl Stack {
    fn new(config: &T5Config, side: Side, list: &mut ParamList) -> Self {
        let name = format!("{}{}", config.prefix(), side.name());
        let blocks = (0..config.sizes.layers).map(|at| Block::new(config, side, at, list)).collect();
        if side == Side::Decoder {
            list.enter(Part::Block(0));
        }
        let table = list.add(
            format!("{name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
            &[BUCKETS, config.sizes.heads],
            Initializer::Normal { std: (config.sizes.d_model as f64).powf(-0.5) },
        );
        let bidirectional = side == Side::Encoder;
        let bias = RelativeBias { table, buckets: BUCKETS, max_distance: MAX_DISTANCE, bidirectional };
        if side == Side::Decoder {
            list.enter(Part::Output);
        }
        let norm = norm(list, &format!("{name}.final_layer_norm"), config.sizes.d_model);
        Self { bias, blocks, norm }
    }

    /// Runs all blocks and the last norm. Only a decoder has a `memory`, the encoder's output.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`, memory: `[batch, keys, d]`, of the decoder
    fn forward<B: Kernels>(
        &self,
        pass: &mut ForwardPass<'_, B>,
        input: Var<B>,
        mask: &AttentionMask<B>,
        memory: Option<(Var<B>, AttentionMask<B>)>,
    ) -> Var<B> {
        let seq = input.dims()[1];
        let bias = self.bias.forward(pass, seq, seq);
        let mut stream = dropout(pass, input);
        for &block in &self.blocks {
            let mask = mask.clone();
            stream = match memory.clone() {
                None => pass.block([stream, bias.clone()], move |pass, [input, bias]| {
                    let middle = block.attend(pass, input, &mask, bias);
                    block.transform(pass, middle)
                }),
                Some((memory, padding)) => {
                    let inputs = [stream, bias.clone(), memory];
                    pass.block(inputs, move |pass, [input, bias, memory]| {
                        let middle = block.attend(pass, input, &mask, bias);
                        let middle = match block.cross {
                            Some(Cross { attention, norm }) => {
                                let from = norm.forward(pass, middle.clone());
                                let attended = attention.across(pass, from, memory, &padding);
                                residual(pass, attended, middle)
                            }
                            None => middle,
                        };
                        block.transform(pass, middle)
                    })
                }
            };
        }
        let output = self.norm.forward(pass, stream);
        dropout(pass, output)
    }
}

impl Block {
    fn new(config: &T5Config, side: Side, at: usize, list: &mut ParamList) -> Self {
        let (d, d_ff) = (config.sizes.d_model, config.sizes.d_ff);
        if side == Side::Decoder {
            list.enter(Part::Block(at));
        }
        let name = format!("{}{}.block.{at}.layer", config.prefix(), side.name());
        let attention = attention(list, &format!("{name}.0.SelfAttention"), config);
        let attention_norm = norm(list, &format!("{name}.0.layer_norm"), d);
        let cross = (side == Side::Decoder).then(|| Cross {
            attention: self::attention(list, &format!("{name}.1.EncDecAttention"), config),
            norm: norm(list, &format!("{name}.1.layer_norm"), d),
        });
        let last = if side == Side::Decoder { 2 } else { 1 };
        let mut inner = |part: &str, d_in: usize, d_out: usize| {
            linear(list, &format!("{name}.{last}.DenseReluDense.{part}"), d_in, d_out, 1.0 / d_in as f64)
        };
        let inner = if config.gated {
            let (gate, up) = (inner("wi_0", d, d_ff), inner("wi_1", d, d_ff));
            let down = inner("wo", d_ff, d);
            let activation = Gate::GeluTanh;
            MaybeGated::Gated(GatedFeedForward { gate, up, down, activation, drops_activations: true })
        } else {
            let (widen, narrow) = (inner("wi", d, d_ff), inner("wo", d_ff, d));
            let activation = Activation::Relu;
            MaybeGated::Plain(FeedForward { widen, narrow, activation, drops_activations: true })
        };
        let inner_norm = norm(list, &format!("{name}.{last}.layer_norm"), d);
        Self { attention, attention_norm, cross, inner, inner_norm }
    }

    fn attend<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        input: Var<B>,
        mask: &AttentionMask<B>,
        bias: Var<B>,
    ) -> Var<B> {
        let from = self.attention_norm.forward(pass, input.clone());
        let to = branch(pass, from.clone());
        let attended = self.attention.forward(pass, from, to, mask, Some(bias));
        residual(pass, attended, input)
    }

    fn transform<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.inner_norm.forward(pass, input.clone());
        let output = self.inner.forward(pass, normalized);
        residual(pass, output, input)
    }
}

/// Adds the four projections of an attention to `list`, under the names of T5.
fn attention(list: &mut ParamList, name: &str, config: &T5Config) -> MultiHeadAttention {
    let (d, inner) = (config.sizes.d_model, config.sizes.heads * config.d_head);
    // Queries start small in place of a scale of the scores.
    let query_variance = 1.0 / (d * config.d_head) as f64;
    let mut project = |part: &str, variance| linear(list, &format!("{name}.{part}"), d, inner, variance);
    let query = project("q", query_variance);
    let (key, value) = (project("k", 1.0 / d as f64), project("v", 1.0 / d as f64));
    let output = linear(list, &format!("{name}.o"), inner, d, 1.0 / inner as f64);
    let heads =
        DotProductAttention { scale: 1.0, ..DotProductAttention::new(config.sizes.heads, config.d_head) };
    MultiHeadAttention { query, key, value, output, heads }
}

fn linear(list: &mut ParamList, name: &str, d_in: usize, d_out: usize, variance: f64) -> Linear {
    list.linear(name, LinearSpec::normal(d_in, d_out, variance.sqrt()))
}

fn norm(list: &mut ParamList, name: &str, d: usize) -> RmsNorm {
    list.rms_norm(name, d, NORM_EPSILON, false)
}
