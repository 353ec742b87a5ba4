//! A pre-norm decoder: RMS norms, rotary positions, grouped-query attention, gated GELU; Gemma's layout.
//!
//! # References
//! Gemma Team 2024, <https://arxiv.org/abs/2403.08295>; names and initial values as Hugging Face's `GemmaForCausalLM`.

use serde_json::{Value, json};

use super::{Batch, Description, HuggingFace, Model, ModelError, PlannedNetwork, Shape};
use crate::head::LmHead;
use crate::nn::{
    AttentionMask, DotProductAttention, Gate, GatedFeedForward, Initial, Kernels, LinearSpec,
    MultiHeadAttention, ParamList, Part, Pass, RmsNorm, Rotary, TokenEmbedding, Var, add, scale,
};

const STYLE: Style = Style {
    scaled_embedding: true,
    norm_epsilon: 1e-6,
    unit_offset: true,
    rotary_base: 10_000.0,
    gate: Gate::GeluTanh,
};

/// Standard deviation of the matrices at the start.
const INITIAL_STD: f64 = 0.02;

/// What the families with this kind of block differ in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Whether a looked-up row is multiplied by √d, so that a table of small numbers can also make the logits.
    pub scaled_embedding: bool,
    /// Added to the mean square in norms.
    pub norm_epsilon: f64,
    /// Whether a norm's factor is 1 + gain.
    pub unit_offset: bool,
    pub rotary_base: f64,
    /// Of the feed-forward part.
    pub gate: Gate,
}

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("head_dim", "256"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
    ],
    fixed: &[("rope_scaling", "null"), ("use_bidirectional_attention", "null")],
    read: |config, field| match field {
        "rope_theta" => rope_theta(config),
        "hidden_act" => Some(activation(config)),
        _ => None,
    },
    irrelevant: &["attention_dropout", "hidden_activation"],
    buffers: &["rotary_emb.inv_freq", "embed_scale"],
    ..HuggingFace::plain("gemma", "Gemma")
};

/// The rotary base. Newer files put it among other parameters. Where these ask for scaled or partial positions, or for
/// others in each kind of layer, the answer is all of them, which is the base of no model here.
pub(super) fn rope_theta(config: &Value) -> Option<Value> {
    let all = &config["rope_parameters"];
    let parameters = all.as_object()?;
    let is_plain = parameters.iter().all(|(name, value)| match name.as_str() {
        "rope_type" | "type" => value.is_null() || value == "default",
        name => name == "rope_theta",
    });
    if is_plain {
        parameters.get("rope_theta").filter(|base| !base.is_null()).cloned()
    } else {
        Some(all.clone())
    }
}

/// Gemma's first files say "gelu" and mean its tanh form.
fn activation(config: &Value) -> Value {
    match config["hidden_activation"].as_str().or(config["hidden_act"].as_str()) {
        None | Some("gelu") => json!("gelu_pytorch_tanh"),
        Some(other) => json!(other),
    }
}

/// The sizes of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderConfig {
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    pub layers: usize,
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub d_head: usize,
    /// Width of the feed-forward part.
    pub d_ff: usize,
    /// Whether the head is the token table.
    pub tied: bool,
}

impl DecoderConfig {
    /// The sizes that a plan gives.
    ///
    /// # Errors
    /// [`ModelError`] for heads that cannot be grouped or are of odd width.
    pub(crate) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        let PlannedNetwork { model, vocab_size, .. } = plan;
        let size = |of: u32| of as usize;
        let (d_model, heads) = (size(model.d_model), size(model.heads));
        let kv_heads = size(model.kv_heads.unwrap_or(model.heads));
        let d_head = model.d_head.map_or(d_model / heads, size);
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(ModelError { what: "kv_heads", value: kv_heads, allowed: "a divisor of heads" });
        }
        if d_head == 0 || !d_head.is_multiple_of(2) {
            return Err(ModelError { what: "d_head", value: d_head, allowed: "an even number" });
        }
        Ok(Self {
            vocab_size,
            context: size(model.context),
            d_model,
            layers: size(model.layers),
            heads,
            kv_heads,
            d_head,
            d_ff: size(model.d_ff),
            tied: !model.untied,
        })
    }

    /// `config.json` as `transformers` reads it, with the fields that are the family's own.
    fn hugging_face(&self, style: Style, mut own: Value) -> Value {
        let common = json!({
            "vocab_size": self.vocab_size,
            "max_position_embeddings": self.context,
            "hidden_size": self.d_model,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.d_head,
            "intermediate_size": self.d_ff,
            "rms_norm_eps": style.norm_epsilon,
            "rope_theta": style.rotary_base,
            "attention_bias": false,
            "attention_dropout": 0.0,
            "initializer_range": INITIAL_STD,
            "tie_word_embeddings": self.tied,
            "torch_dtype": "float32"
        });
        if let (Some(own), Value::Object(common)) = (own.as_object_mut(), common) {
            own.extend(common);
        }
        own
    }
}

/// A decoder in Gemma's layout.
#[derive(Clone, Debug)]
pub struct Decoder(Body);

/// What the families with this kind of block have in common.
#[derive(Clone, Debug)]
pub(super) struct Body {
    description: Description,
    tokens: TokenEmbedding,
    embedding_scale: Option<f64>,
    blocks: Vec<Block>,
    norm: RmsNorm,
}

/// A block with a norm before each part.
#[derive(Clone, Copy, Debug)]
struct Block {
    norm_1: RmsNorm,
    attention: MultiHeadAttention,
    norm_2: RmsNorm,
    feed_forward: GatedFeedForward,
}

impl Decoder {
    pub fn new(config: &DecoderConfig) -> Self {
        let own = json!({
            "model_type": "gemma",
            "architectures": ["GemmaForCausalLM"],
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_activation": "gelu_pytorch_tanh",
        });
        Self(Body::new(config, STYLE, own))
    }
}

impl Model for Decoder {
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        Ok(Self::new(&DecoderConfig::from_plan(plan)?))
    }

    fn description(&self) -> &Description {
        self.0.description()
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        self.0.forward(pass, batch)
    }
}

impl Body {
    /// `hf_config` has the fields that are the family's own.
    pub fn new(config: &DecoderConfig, style: Style, hf_config: Value) -> Self {
        let mut list = ParamList::default();
        let (d, table) = (config.d_model, [config.vocab_size, config.d_model]);
        let matrix = Initial::Normal { std: INITIAL_STD };
        let tokens = TokenEmbedding { table: list.add("model.embed_tokens.weight", &table, matrix) };
        let blocks = (0..config.layers).map(|at| Block::new(config, style, at, &mut list)).collect();
        list.enter(Part::Output);
        let norm = style.norm(&mut list, "model.norm", d);
        list.enter(Part::Head);
        let head = if config.tied { tokens.table } else { list.add("lm_head.weight", &table, matrix) };
        let description = Description {
            layout: list.finish(),
            vocab_size: config.vocab_size,
            width: d,
            shape: Shape::causal(config.context),
            hf_config: config.hugging_face(style, hf_config),
            head: LmHead::of_table(head),
            sentence: None,
        };
        let embedding_scale = style.scaled_embedding.then(|| (d as f64).sqrt());
        Self { description, tokens, embedding_scale, blocks, norm }
    }

    pub fn description(&self) -> &Description {
        &self.description
    }

    /// # Shapes
    /// - output: `[rows, seq, d]`
    pub fn forward<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mut stream = self.tokens.forward(pass, batch.tokens.clone());
        if let Some(factor) = self.embedding_scale {
            stream = scale(pass, stream, factor);
        }
        for &block in &self.blocks {
            stream = pass.block([stream], move |pass, [input]| block.forward(pass, input));
        }
        self.norm.forward(pass, stream)
    }
}

impl Style {
    pub fn norm(self, list: &mut ParamList, name: &str, d: usize) -> RmsNorm {
        list.rms_norm(name, d, self.norm_epsilon, self.unit_offset)
    }
}

impl Block {
    pub fn new(config: &DecoderConfig, style: Style, at: usize, list: &mut ParamList) -> Self {
        list.enter(Part::Block(at));
        let DecoderConfig { d_model: d, heads, kv_heads, d_head, d_ff, .. } = *config;
        let name = |part: &str| format!("model.layers.{at}.{part}");
        let matrix = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD);
        let norm_1 = style.norm(list, &name("input_layernorm"), d);
        let rotary = Some(Rotary { base: style.rotary_base, d_head });
        let attention = MultiHeadAttention {
            query: list.linear(&name("self_attn.q_proj"), matrix(d, heads * d_head)),
            key: list.linear(&name("self_attn.k_proj"), matrix(d, kv_heads * d_head)),
            value: list.linear(&name("self_attn.v_proj"), matrix(d, kv_heads * d_head)),
            output: list.linear(&name("self_attn.o_proj"), matrix(heads * d_head, d)),
            heads: DotProductAttention { kv_heads, rotary, ..DotProductAttention::new(heads, d_head) },
        };
        let norm_2 = style.norm(list, &name("post_attention_layernorm"), d);
        let feed_forward = GatedFeedForward {
            gate: list.linear(&name("mlp.gate_proj"), matrix(d, d_ff)),
            up: list.linear(&name("mlp.up_proj"), matrix(d, d_ff)),
            down: list.linear(&name("mlp.down_proj"), matrix(d_ff, d)),
            activation: style.gate,
            drops_activations: false,
        };
        Self { norm_1, attention, norm_2, feed_forward }
    }

    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.norm_1.forward(pass, input.clone());
        let mask = AttentionMask::causal();
        let attended = self.attention.forward(pass, normalized.clone(), normalized, &mask, None);
        let middle = add(pass, attended, input);
        let normalized = self.norm_2.forward(pass, middle.clone());
        let output = self.feed_forward.forward(pass, normalized);
        add(pass, output, middle)
    }
}
