//! A pre-norm decoder: RMS norms, rotary positions, grouped-query attention, gated GELU; Gemma's layout.
//!
//! # References
//! Gemma Team 2024, <https://arxiv.org/abs/2403.08295>; names and initial values as Hugging Face's `GemmaForCausalLM`.

use serde_json::json;

use super::{Batch, Model, ModelError, Shape};
use crate::head::LmHead;
use crate::nn::{
    AttentionMask, DotProductAttention, Gate, GatedFeedForward, Initial, Kernels, Layout, LinearSpec,
    MultiHeadAttention, ParamId, ParamList, Part, Pass, RmsNorm, Rotary, TokenEmbedding, Var, add, scale,
};

const NORM_EPSILON: f64 = 1e-6;
const INITIAL_STD: f64 = 0.02;
const ROTARY_BASE: f64 = 10_000.0;

/// The sizes of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderConfig {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks.
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
    pub fn from_plan(model: &plan::Model, vocab_size: usize) -> Result<Self, ModelError> {
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
}

/// A decoder.
#[derive(Clone, Debug)]
pub struct Decoder {
    config: DecoderConfig,
    layout: Layout,
    tokens: TokenEmbedding,
    blocks: Vec<Block>,
    norm: RmsNorm,
    /// The token table, or one of its own.
    head: ParamId,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    norm_1: RmsNorm,
    attention: MultiHeadAttention,
    norm_2: RmsNorm,
    feed_forward: GatedFeedForward,
}

impl Decoder {
    /// Lists the parameters.
    #[must_use]
    pub fn new(config: DecoderConfig) -> Self {
        let mut list = ParamList::default();
        let (d, table) = (config.d_model, [config.vocab_size, config.d_model]);
        let matrix = Initial::Normal { std: INITIAL_STD };
        let tokens = TokenEmbedding { table: list.add("model.embed_tokens.weight", &table, matrix) };
        let blocks = (0..config.layers).map(|at| Block::new(&config, at, &mut list)).collect();
        list.enter(Part::Output);
        let norm = list.rms_norm("model.norm", d, NORM_EPSILON, true);
        let head = if config.tied { tokens.table } else { list.add("lm_head.weight", &table, matrix) };
        Self { config, layout: list.finish(), tokens, blocks, norm, head }
    }
}

impl Model for Decoder {
    fn from_plan(
        model: &plan::Model,
        _training: &plan::Training,
        vocab_size: usize,
    ) -> Result<Self, ModelError> {
        Ok(Self::new(DecoderConfig::from_plan(model, vocab_size)?))
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn shape(&self) -> Shape {
        Shape::causal(self.config.context)
    }

    fn hf_config(&self) -> serde_json::Value {
        let config = &self.config;
        json!({
            "model_type": "gemma",
            "architectures": ["GemmaForCausalLM"],
            "vocab_size": config.vocab_size,
            "max_position_embeddings": config.context,
            "hidden_size": config.d_model,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.kv_heads,
            "head_dim": config.d_head,
            "intermediate_size": config.d_ff,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_activation": "gelu_pytorch_tanh",
            "rms_norm_eps": NORM_EPSILON,
            "rope_theta": ROTARY_BASE,
            "attention_bias": false,
            "attention_dropout": 0.0,
            "initializer_range": INITIAL_STD,
            "tie_word_embeddings": config.tied,
            "torch_dtype": "float32"
        })
    }

    fn head(&self) -> LmHead {
        LmHead::of_table(self.head)
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let rows = self.tokens.forward(pass, batch.tokens.clone());
        // A table of small numbers can then also make the logits.
        let mut stream = scale(pass, rows, (self.config.d_model as f64).sqrt());
        for &block in &self.blocks {
            stream = pass.block([stream], move |pass, [input]| block.forward(pass, input));
        }
        self.norm.forward(pass, stream)
    }
}

impl Block {
    fn new(config: &DecoderConfig, at: usize, list: &mut ParamList) -> Self {
        list.enter(Part::Block(at));
        let DecoderConfig { d_model: d, heads, kv_heads, d_head, d_ff, .. } = *config;
        let name = |part: &str| format!("model.layers.{at}.{part}");
        let matrix = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD);
        let norm_1 = list.rms_norm(&name("input_layernorm"), d, NORM_EPSILON, true);
        let rotary = Some(Rotary { base: ROTARY_BASE, d_head });
        let attention = MultiHeadAttention {
            query: list.linear(&name("self_attn.q_proj"), matrix(d, heads * d_head)),
            key: list.linear(&name("self_attn.k_proj"), matrix(d, kv_heads * d_head)),
            value: list.linear(&name("self_attn.v_proj"), matrix(d, kv_heads * d_head)),
            output: list.linear(&name("self_attn.o_proj"), matrix(heads * d_head, d)),
            heads: DotProductAttention { kv_heads, rotary, ..DotProductAttention::new(heads, d_head) },
        };
        let norm_2 = list.rms_norm(&name("post_attention_layernorm"), d, NORM_EPSILON, true);
        let feed_forward = GatedFeedForward {
            gate: list.linear(&name("mlp.gate_proj"), matrix(d, d_ff)),
            up: list.linear(&name("mlp.up_proj"), matrix(d, d_ff)),
            down: list.linear(&name("mlp.down_proj"), matrix(d_ff, d)),
            activation: Gate::GeluTanh,
        };
        Self { norm_1, attention, norm_2, feed_forward }
    }

    fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.norm_1.forward(pass, input.clone());
        let attended =
            self.attention.forward(pass, normalized.clone(), normalized, &AttentionMask::causal(), None);
        let middle = add(pass, attended, input);
        let normalized = self.norm_2.forward(pass, middle.clone());
        let output = self.feed_forward.forward(pass, normalized);
        add(pass, output, middle)
    }
}
