//! ModernBERT: rotary positions, a window in two of three blocks, norms before each part, gated GELU, and hardly a bias.
//!
//! # References
//! Warner et al. 2024, <https://arxiv.org/abs/2412.13663>; names and initial values as Hugging Face's
//! `ModernBertForMaskedLM`.

use serde_json::{Value, json};

use super::rope::{self, scaling_among};
use super::{
    Batch, ConfigField, ConfigValues, Description, FieldType, HuggingFace, Model, ModelError, PlannedNetwork,
    Shape, Sizes,
};
use crate::head::{LABELS_STD, LmHead, Pooling, SequenceHead};
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, ForwardPass, FusedAttention, FusedGatedFeedForward,
    FusedOrder, Gate, Initializer, Kernels, LayerNorm, Linear, LinearSpec, ParamList, Part, TableLogits,
    TokenEmbedding, Var, dropout, residual,
};

const INITIAL_STD: f64 = 0.02;
const NORM_EPSILON: ConfigField = ConfigField::new("norm_eps", "1e-5", FieldType::Positive);
const GLOBAL_BASE: ConfigField = ConfigField::new("global_rope_theta", "160000.0", FieldType::Positive);
const LOCAL_BASE: ConfigField = ConfigField::new("local_rope_theta", "10000.0", FieldType::Positive);
/// Width of a window, half of it on either side of a token.
const WINDOW: ConfigField = ConfigField::new("local_attention", "128", FieldType::Count);
/// Period of the blocks that see everything, beginning with the first block.
const GLOBAL_EVERY: ConfigField = ConfigField::new("global_attn_every_n_layers", "3", FieldType::Count);

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("decoder_bias", "true"),
        ("hidden_activation", "\"gelu\""),
        ("local_attention", "128"),
        ("norm_eps", "1e-5"),
    ],
    fixed: &[
        ("attention_bias", "false"),
        ("classifier_activation", "\"gelu\""),
        ("classifier_bias", "false"),
        ("classifier_pooling", "\"cls\""),
        ("mlp_bias", "false"),
        ("norm_bias", "false"),
        (rope::SCALING, "null"),
    ],
    read,
    contradiction: rope::not_by_layer,
    config_fields: &[NORM_EPSILON, GLOBAL_BASE, LOCAL_BASE, WINDOW, GLOBAL_EVERY],
    irrelevant: &[
        "attention_dropout",
        "deterministic_flash_attn",
        "embedding_dropout",
        "initializer_cutoff_factor",
        "mlp_dropout",
        // Affects speed only.
        "reference_compile",
        "repad_logits_with_grad",
        "sparse_pred_ignore_index",
        "sparse_prediction",
        // Versions before the final one wrote these beside norm_eps and rotary positions.
        "layer_norm_eps",
        "position_embedding_type",
    ],
    copies: &["decoder.weight"],
    tagger: "classifier",
    token_heads: &["decoder."],
    label_heads: &["classifier."],
    ..HuggingFace::plain("modernbert", "ModernBert")
};

fn read(config: &Value, field: &str) -> Option<Value> {
    let parameters = |layers: &str| &config["rope_parameters"][layers];
    let base_of = |layers: &str, old: &str| {
        [&parameters(layers)[rope::BASE], &config[old]].into_iter().find(|base| !base.is_null()).cloned()
    };
    match field {
        "global_rope_theta" => Some(base_of("full_attention", field).unwrap_or_else(|| GLOBAL_BASE.usual())),
        "local_rope_theta" => Some(base_of("sliding_attention", field).unwrap_or_else(|| LOCAL_BASE.usual())),
        rope::SCALING => {
            let scaling = |layers: &str| scaling_among(config, parameters(layers));
            let of_layers = ["full_attention", "sliding_attention"].map(scaling);
            of_layers.into_iter().chain([config[field].clone()]).find(|scaling| !scaling.is_null())
        }
        // Only a trained head depends on the pooling. A new head reads the first position.
        "classifier_pooling" if !has_classifier(config) => Some(json!("cls")),
        "classifier_pooling" if config[field].is_null() => Some(json!("cls")),
        "global_attn_every_n_layers" if config[field].is_null() => Some(json!(global_every(config))),
        "layer_types" if config[field].is_null() => {
            let layers = config["num_hidden_layers"].as_u64().unwrap_or(0).min(1024);
            Some(layer_types(layers as usize, global_every(config)))
        }
        _ => None,
    }
}

fn has_classifier(config: &Value) -> bool {
    let classes = config["architectures"].as_array().map_or(&[][..], Vec::as_slice);
    classes.iter().any(|class| class == "ModernBertForSequenceClassification")
}

/// Returns the period of the blocks that see everything in a file.
fn global_every(config: &Value) -> usize {
    let given = config[GLOBAL_EVERY.name].as_u64().and_then(|every| usize::try_from(every).ok());
    let types = config["layer_types"].as_array().map_or(&[][..], Vec::as_slice);
    let next = types.iter().skip(1).position(|kind| kind == "full_attention").map(|at| at + 1);
    given.or(next).unwrap_or(3).max(1)
}

fn layer_types(layers: usize, every: usize) -> Value {
    let kind = |at: usize| if at.is_multiple_of(every) { "full_attention" } else { "sliding_attention" };
    (0..layers).map(kind).collect()
}

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes, every: usize) -> Value {
    json!({
        "model_type": "modernbert",
        "architectures": ["ModernBertForMaskedLM"],
        "vocab_size": sizes.vocab_size,
        "max_position_embeddings": sizes.context,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.d_ff,
        "hidden_activation": "gelu",
        "layer_types": layer_types(sizes.layers, every),
        "decoder_bias": true,
        "classifier_pooling": "cls",
        "initializer_range": INITIAL_STD,
        "attention_dropout": 0.0,
        "embedding_dropout": 0.0,
        "mlp_dropout": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

/// A ModernBERT.
#[derive(Clone, Debug)]
pub struct ModernBert {
    description: Description,
    tokens: TokenEmbedding,
    norm: LayerNorm,
    blocks: Vec<Block>,
    final_norm: LayerNorm,
    /// Layer before each head, of tokens and of labels.
    dense: Linear,
    dense_norm: LayerNorm,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// Norm before attention, which the first block does not have.
    attention_norm: Option<LayerNorm>,
    attention: FusedAttention,
    inner_norm: LayerNorm,
    inner: FusedGatedFeedForward,
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<ModernBert, ModelError> {
    let (sizes, config, mut list) = (Sizes::of(plan), plan.config, ParamList::default());
    let (d, epsilon) = (sizes.d_model, epsilon(config));
    let table = list.add(
        "model.embeddings.tok_embeddings.weight",
        &[sizes.vocab_size, d],
        Initializer::Normal { std: INITIAL_STD },
    );
    let norm = list.layer_norm_without_bias("model.embeddings.norm", d, epsilon);
    let every = config.count(&GLOBAL_EVERY).unwrap_or(1);
    let blocks = (0..sizes.layers).map(|at| Block::new(sizes, config, at, &mut list));
    let blocks = blocks.collect::<Result<_, _>>()?;
    list.enter(Part::Output);
    let final_norm = list.layer_norm_without_bias("model.final_norm", d, epsilon);
    let dense = list.linear("head.dense", LinearSpec::normal(d, d, residual_std(sizes)));
    let dense_norm = list.layer_norm_without_bias("head.norm", d, epsilon);
    list.enter(Part::Head);
    let bias = Some(list.add("decoder.bias", &[sizes.vocab_size], Initializer::Constant(0.0)));
    let description = Description::new(
        list,
        LmHead { logits: TableLogits { table, bias }, ..LmHead::of_table(table) },
        Shape::masked(sizes.context),
        hugging_face(sizes, every),
    );
    let tokens = TokenEmbedding { table };
    Ok(ModernBert { description, tokens, norm, blocks, final_norm, dense, dense_norm })
}

impl Model for ModernBert {
    fn description(&self) -> &Description {
        &self.description
    }

    fn classifier(&self, list: &mut ParamList, classes: usize) -> SequenceHead {
        let map = LinearSpec::normal(self.description.width, classes, LABELS_STD).biased();
        let classes = list.linear("classifier", map);
        SequenceHead { pooling: Pooling::FirstAlone, drops_pooled: true, classes }
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let tokens = self.tokens.forward(pass, batch.tokens.clone());
        let stream = self.norm.forward(pass, tokens);
        let stream = dropout(pass, stream);
        let mask = AttentionMask::padding(batch.lengths.clone());
        let stream =
            pass.blocks(stream, &self.blocks, move |block, pass, input| block.forward(pass, input, &mask));
        let output = self.final_norm.forward(pass, stream);
        let dense = self.dense.forward(pass, output);
        let activated = Activation::Gelu.forward(pass, dense);
        self.dense_norm.forward(pass, activated)
    }
}

fn epsilon(config: &ConfigValues) -> f64 {
    config.positive(&NORM_EPSILON)
}

/// Returns the standard deviation of the initial weights of layers whose output is added to the residual
/// stream, and of the layer before a head.
fn residual_std(sizes: Sizes) -> f64 {
    INITIAL_STD / ((2 * sizes.layers) as f64).sqrt()
}

impl Block {
    fn new(sizes: Sizes, config: &ConfigValues, at: usize, list: &mut ParamList) -> Result<Self, ModelError> {
        list.enter(Part::Block(at));
        let Sizes { d_model: d, d_ff, heads, .. } = sizes;
        let name = |part: &str| format!("model.layers.{at}.{part}");
        let is_global = at.is_multiple_of(config.count(&GLOBAL_EVERY).unwrap_or(1).max(1));
        let base = config.positive(if is_global { &GLOBAL_BASE } else { &LOCAL_BASE });
        let width = d / heads;
        let rotary = rope::of_width(base, width, width, &format!("the width of a head is {width}"))?;
        let half = config.count(&WINDOW).map(|window| window / 2 + 1);
        let epsilon = epsilon(config);
        let norm = |list: &mut ParamList, part: &str| list.layer_norm_without_bias(&name(part), d, epsilon);
        Ok(Self {
            attention_norm: (at > 0).then(|| norm(list, "attn_norm")),
            attention: FusedAttention {
                projection: list.linear(&name("attn.Wqkv"), LinearSpec::normal(d, 3 * d, INITIAL_STD)),
                output: list.linear(&name("attn.Wo"), LinearSpec::normal(d, d, residual_std(sizes))),
                heads: DotProductAttention {
                    rotary: Some(rotary),
                    window: half.filter(|_| !is_global),
                    ..DotProductAttention::new(heads, width)
                },
                order: FusedOrder::ByPart,
            },
            inner_norm: norm(list, "mlp_norm"),
            inner: FusedGatedFeedForward {
                gate_up: list.linear(&name("mlp.Wi"), LinearSpec::normal(d, 2 * d_ff, INITIAL_STD)),
                down: list.linear(&name("mlp.Wo"), LinearSpec::normal(d_ff, d, residual_std(sizes))),
                activation: Gate::Gelu,
            },
        })
    }

    fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        input: Var<B>,
        mask: &AttentionMask<B>,
    ) -> Var<B> {
        let normalized = match self.attention_norm {
            Some(norm) => norm.forward(pass, input.clone()),
            None => input.clone(),
        };
        let attended = self.attention.forward(pass, normalized, mask);
        let middle = residual(pass, attended, input);
        let normalized = self.inner_norm.forward(pass, middle.clone());
        let output = self.inner.forward(pass, normalized);
        residual(pass, output, middle)
    }
}
