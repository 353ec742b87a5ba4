//! GPT-2: learned positions, layer norm before each part, gelu_new, and a head tied to the token table.
//!
//! # References
//! Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; names and initial values as Hugging
//! Face's `GPT2LMHeadModel`.

use std::sync::Arc;

use serde_json::json;

use super::pass::{Kept, Pass};
use super::{Batch, ParamList};
use crate::nn::GradRecord;
use crate::nn::{
    Activation, CausalAttention, FeedForward, Initial, Kernels, LayerNorm, Linear, LmHead, ParamId,
    ParamSpec, PositionEmbedding, SavedAttention, SavedFeedForward, SavedNorm, Stored, TokenEmbedding,
    Weights,
};
use crate::tensor::{Int, Tensor};

const NORM_EPSILON: f64 = 1e-5;
const INITIAL_STD: f64 = 0.02;

/// The sizes of a GPT-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpt2Config {
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

/// The layers of a GPT-2 and the list of its parameters.
#[derive(Clone, Debug)]
pub struct Gpt2 {
    config: Gpt2Config,
    specs: Arc<[ParamSpec]>,
    tokens: TokenEmbedding,
    positions: PositionEmbedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: LmHead,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    norm_1: LayerNorm,
    attention: CausalAttention,
    norm_2: LayerNorm,
    inner: FeedForward,
    /// The last of its parameters in the model's list.
    last: ParamId,
}

struct SavedBlock<B: Kernels> {
    norm_1: SavedNorm<B>,
    attention: SavedAttention<B>,
    norm_2: SavedNorm<B>,
    inner: SavedFeedForward<B>,
}

struct SavedForward<B: Kernels> {
    blocks: Vec<Kept<B, SavedBlock<B>>>,
    norm: SavedNorm<B>,
    hidden: Tensor<B, 3>,
}

impl Gpt2 {
    /// Lays out layers and parameters.
    #[must_use]
    pub fn new(config: Gpt2Config) -> Self {
        let mut list = ParamList::default();
        let matrix = Initial::Normal { std: INITIAL_STD };
        let d = config.d_model;
        let tokens =
            TokenEmbedding { table: list.add("transformer.wte.weight", &[config.vocab_size, d], matrix) };
        let positions =
            PositionEmbedding { table: list.add("transformer.wpe.weight", &[config.context, d], matrix) };
        let blocks = (0..config.layers).map(|at| Block::new(&config, at, &mut list)).collect();
        let norm = norm(&mut list, "ln_f", d);
        let head = LmHead { table: tokens.table };
        Self { config, specs: list.0.into(), tokens, positions, blocks, norm, head }
    }

    /// Sizes.
    #[must_use]
    pub fn config(&self) -> &Gpt2Config {
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
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": config.vocab_size,
            "n_positions": config.context,
            "n_ctx": config.context,
            "n_embd": config.d_model,
            "n_layer": config.layers,
            "n_head": config.heads,
            "n_inner": config.d_ff,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": NORM_EPSILON,
            "initializer_range": INITIAL_STD,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
            "tie_word_embeddings": true,
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
        for (block, kept) in self.blocks.iter().zip(saved.blocks).rev() {
            if weights.frozen_up_to(block.last) {
                return;
            }
            let saved = kept.saved(|input| block.forward(weights, input));
            grad = block.backward(weights, saved, grad, &mut pass.records);
            pass.hand_over();
        }
        pass.records.push(self.positions.record(&grad));
        pass.records.push(GradRecord::TiedEmbedding {
            param: self.tokens.table,
            tokens: batch.tokens,
            grad,
            hidden: saved.hidden,
            logits_grad: loss.logits_grad,
        });
    }

    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        tokens: Tensor<B, 2, Int>,
        recompute: bool,
    ) -> SavedForward<B> {
        let seq = tokens.dims()[1];
        let mut stream = self.tokens.forward(weights, tokens) + self.positions.forward(weights, seq);
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let (output, kept) = Kept::of(recompute, stream, |input| block.forward(weights, input));
            stream = output;
            blocks.push(kept);
        }
        let (hidden, norm) = self.norm.forward(weights, stream);
        SavedForward { blocks, norm, hidden }
    }
}

impl Block {
    fn new(config: &Gpt2Config, at: usize, list: &mut ParamList) -> Self {
        let d = config.d_model;
        let matrix = Initial::Normal { std: INITIAL_STD };
        // GPT-2 scales what enters the residual stream by the number of such entries.
        let residual = Initial::Normal { std: INITIAL_STD / ((2 * config.layers) as f64).sqrt() };
        let norm_1 = norm(list, &format!("h.{at}.ln_1"), d);
        let projection = linear(list, &format!("h.{at}.attn.c_attn"), d, 3 * d, matrix);
        let output = linear(list, &format!("h.{at}.attn.c_proj"), d, d, residual);
        let norm_2 = norm(list, &format!("h.{at}.ln_2"), d);
        let widen = linear(list, &format!("h.{at}.mlp.c_fc"), d, config.d_ff, matrix);
        let narrow = linear(list, &format!("h.{at}.mlp.c_proj"), config.d_ff, d, residual);
        let attention = CausalAttention { projection, output, heads: config.heads };
        let last = ParamId(list.0.len() - 1);
        let inner = FeedForward { widen, narrow, activation: Activation::GeluTanh };
        Self { norm_1, attention, norm_2, inner, last }
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
        let (output, inner) = self.inner.forward(weights, normalized);
        (output + middle, SavedBlock { norm_1, attention, norm_2, inner })
    }

    fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedBlock<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let inner = self.inner.backward(weights, saved.inner, grad.clone(), records);
        let inner = self.norm_2.backward(weights, saved.norm_2, inner, records);
        let middle = inner + grad;
        let inner = self.attention.backward(weights, saved.attention, middle.clone(), records);
        let inner = self.norm_1.backward(weights, saved.norm_1, inner, records);
        inner + middle
    }
}

/// Lays out a Conv1D of this name.
fn linear(list: &mut ParamList, name: &str, d_in: usize, d_out: usize, initial: Initial) -> Linear {
    let weight = list.add(format!("transformer.{name}.weight"), &[d_in, d_out], initial);
    let bias = list.add(format!("transformer.{name}.bias"), &[d_out], Initial::Constant(0.0));
    Linear { weight, bias: Some(bias), stored: Stored::InOut }
}

/// Lays out a layer norm of this name.
fn norm(list: &mut ParamList, name: &str, d: usize) -> LayerNorm {
    let gain = list.add(format!("transformer.{name}.weight"), &[d], Initial::Constant(1.0));
    let bias = list.add(format!("transformer.{name}.bias"), &[d], Initial::Constant(0.0));
    LayerNorm { gain, bias, epsilon: NORM_EPSILON }
}
