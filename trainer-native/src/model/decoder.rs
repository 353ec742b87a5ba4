//! A pre-norm decoder: RMS norms, rotary positions, grouped-query attention, gated GELU; Gemma's layout.
//!
//! # References
//! Gemma Team 2024, <https://arxiv.org/abs/2403.08295>; names and initial values as Hugging Face's `GemmaForCausalLM`.

use std::sync::Arc;

use serde_json::json;

use super::pass::{Kept, Pass};
use super::{Batch, ModelError, ParamList};
use crate::nn::GradRecord;
use crate::nn::{
    GatedFeedForward, GroupedAttention, Initial, Kernels, Linear, LmHead, ParamId, ParamSpec, RmsNorm,
    Rotary, SavedGated, SavedGroupedAttention, SavedRmsNorm, Stored, TokenEmbedding, Weights,
};
use crate::tensor::{Int, Tensor};

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

/// The layers of a decoder and the list of its parameters.
#[derive(Clone, Debug)]
pub struct Decoder {
    config: DecoderConfig,
    specs: Arc<[ParamSpec]>,
    tokens: TokenEmbedding,
    blocks: Vec<Block>,
    norm: RmsNorm,
    /// The token table's, or one of its own.
    head: LmHead,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    norm_1: RmsNorm,
    attention: GroupedAttention,
    norm_2: RmsNorm,
    feed_forward: GatedFeedForward,
}

struct SavedBlock<B: Kernels> {
    norm_1: SavedRmsNorm<B>,
    attention: SavedGroupedAttention<B>,
    norm_2: SavedRmsNorm<B>,
    feed_forward: SavedGated<B>,
}

struct SavedForward<B: Kernels> {
    blocks: Vec<Kept<B, SavedBlock<B>>>,
    norm: SavedRmsNorm<B>,
    hidden: Tensor<B, 3>,
}

impl Decoder {
    /// Lays out layers and parameters.
    #[must_use]
    pub fn new(config: DecoderConfig) -> Self {
        let mut list = ParamList::default();
        let (d, table) = (config.d_model, [config.vocab_size, config.d_model]);
        let matrix = Initial::Normal { std: INITIAL_STD };
        let tokens = TokenEmbedding { table: list.add("model.embed_tokens.weight", &table, matrix) };
        let blocks = (0..config.layers).map(|at| Block::new(&config, at, &mut list)).collect();
        let norm = norm(&mut list, "model.norm", d);
        let head = if config.tied { tokens.table } else { list.add("lm_head.weight", &table, matrix) };
        Self { config, specs: list.0.into(), tokens, blocks, norm, head: LmHead { table: head } }
    }

    /// Sizes.
    #[must_use]
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Names, shapes and starts of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        Arc::clone(&self.specs)
    }

    /// `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
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

    /// Logits at every position.
    ///
    /// # Shapes
    /// - tokens: `[batch, seq]`
    /// - output: `[batch·seq, vocabulary]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, tokens: Tensor<B, 2, Int>) -> Tensor<B, 2> {
        let saved = self.forward(weights, tokens, true);
        self.head.forward(weights, saved.hidden)
    }

    /// Forward and backward of the summed per-example losses: the records that hold every example's gradient.
    ///
    /// The losses themselves are never computed: they are private and nothing may depend on them.
    pub(super) fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>, pass: &mut Pass<'_, B>) {
        let saved = self.forward(weights, batch.tokens.clone(), pass.recompute);
        let logits = self.head.forward(weights, saved.hidden.clone());
        let loss = self.head.backward(weights, logits, batch.targets, batch.target_weights);
        let mut grad = self.norm.backward(weights, saved.norm, loss.hidden_grad, &mut pass.records);
        let (hidden, logits_grad) = (saved.hidden, loss.logits_grad);
        if !self.config.tied {
            let (input, grad) = (logits_grad.clone(), hidden.clone());
            pass.records.push(GradRecord::Product { param: self.head.table, input, grad });
        }
        for (block, kept) in self.blocks.iter().zip(saved.blocks).rev() {
            if weights.frozen_up_to(block.feed_forward.down.weight) {
                return;
            }
            let saved = kept.saved(|input| block.forward(weights, input));
            grad = block.backward(weights, saved, grad, &mut pass.records);
            pass.hand_over();
        }
        let (tokens, grad) = (batch.tokens, grad * self.embedding_scale());
        if self.config.tied {
            pass.records.push(GradRecord::TiedEmbedding {
                param: self.tokens.table,
                tokens,
                grad,
                hidden,
                logits_grad,
            });
        } else {
            pass.records.push(GradRecord::Lookup { param: self.tokens.table, tokens, grad });
        }
    }

    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        tokens: Tensor<B, 2, Int>,
        recompute: bool,
    ) -> SavedForward<B> {
        let mut stream = self.tokens.forward(weights, tokens) * self.embedding_scale();
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let (output, kept) = Kept::of(recompute, stream, |input| block.forward(weights, input));
            stream = output;
            blocks.push(kept);
        }
        let (hidden, norm) = self.norm.forward(weights, stream);
        SavedForward { blocks, norm, hidden }
    }

    /// What a looked-up row is multiplied by, so that a table of small numbers can also make the logits.
    fn embedding_scale(&self) -> f64 {
        (self.config.d_model as f64).sqrt()
    }
}

impl Block {
    fn new(config: &DecoderConfig, at: usize, list: &mut ParamList) -> Self {
        let DecoderConfig { d_model: d, heads, kv_heads, d_head, d_ff, .. } = *config;
        let norm_1 = norm(list, &format!("model.layers.{at}.input_layernorm"), d);
        let mut attention = |name: &str, d_out, d_in| {
            dense(list, &format!("model.layers.{at}.self_attn.{name}"), d_out, d_in)
        };
        let attention = GroupedAttention {
            query: attention("q_proj", heads * d_head, d),
            key: attention("k_proj", kv_heads * d_head, d),
            value: attention("v_proj", kv_heads * d_head, d),
            output: attention("o_proj", d, heads * d_head),
            heads,
            kv_heads,
            rotary: Rotary { base: ROTARY_BASE, d_head },
        };
        let norm_2 = norm(list, &format!("model.layers.{at}.post_attention_layernorm"), d);
        let mut part =
            |name: &str, d_out, d_in| dense(list, &format!("model.layers.{at}.mlp.{name}"), d_out, d_in);
        let feed_forward = GatedFeedForward {
            gate: part("gate_proj", d_ff, d),
            up: part("up_proj", d_ff, d),
            down: part("down_proj", d, d_ff),
        };
        Self { norm_1, attention, norm_2, feed_forward }
    }

    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedBlock<B>) {
        let (normalized, norm_1) = self.norm_1.forward(weights, input.clone());
        let (attended, attention) = self.attention.forward(weights, normalized);
        let middle = attended + input;
        let (normalized, norm_2) = self.norm_2.forward(weights, middle.clone());
        let (output, feed_forward) = self.feed_forward.forward(weights, normalized);
        (output + middle, SavedBlock { norm_1, attention, norm_2, feed_forward })
    }

    fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedBlock<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let inner = self.feed_forward.backward(weights, saved.feed_forward, grad.clone(), records);
        let middle = self.norm_2.backward(weights, saved.norm_2, inner, records) + grad;
        let inner = self.attention.backward(weights, saved.attention, middle.clone(), records);
        self.norm_1.backward(weights, saved.norm_1, inner, records) + middle
    }
}

/// Lays out a linear map without bias.
fn dense(list: &mut ParamList, name: &str, d_out: usize, d_in: usize) -> Linear {
    let initial = Initial::Normal { std: INITIAL_STD };
    let weight = list.add(format!("{name}.weight"), &[d_out, d_in], initial);
    Linear { weight, bias: None, stored: Stored::OutIn }
}

/// Lays out an RMS norm whose factor is 1 + gain.
fn norm(list: &mut ParamList, name: &str, d: usize) -> RmsNorm {
    let gain: ParamId = list.add(format!("{name}.weight"), &[d], Initial::Constant(0.0));
    RmsNorm { gain, epsilon: NORM_EPSILON, unit_offset: true }
}
