//! T5: an encoder that reads with gaps, a decoder that writes what was there. Norms without mean or bias, attention
//! without a scale, relative positions.
//!
//! Version 1.0 has a ReLU and one table for encoder, decoder and head; version 1.1 (also mT5) a gated GELU and a head
//! of its own.
//!
//! # References
//! Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>; Shazeer 2020, <https://arxiv.org/abs/2002.05202>; names as
//! Hugging Face's `T5ForConditionalGeneration`.

use std::sync::Arc;

use serde_json::json;

use super::pass::Pass;
use super::t5_stack::{Kind, SavedStack, Stack};
use super::{Batch, ParamList, Shape};
use crate::nn::GradRecord;
use crate::nn::{Initial, Kernels, Linear, LmHead, ParamId, ParamSpec, Stored, TokenEmbedding, Weights};
use crate::tensor::{Int, Tensor};

/// Buckets of relative distances.
pub(super) const BUCKETS: usize = 32;
/// Distances from here on share the last bucket.
pub(super) const MAX_DISTANCE: usize = 128;
/// Added to the mean square in norms.
pub(super) const NORM_EPSILON: f64 = 1e-6;

/// The sizes of a T5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct T5Config {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Longest input of the encoder.
    pub context: usize,
    /// Longest input of the decoder.
    pub decoder_context: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Blocks of the encoder, and as many of the decoder.
    pub layers: usize,
    /// Attention heads; divides `d_model`.
    pub heads: usize,
    /// Width of the feed-forward part.
    pub d_ff: usize,
    /// Whether it is version 1.1: a gated GELU and a head of its own.
    pub v1_1: bool,
}

/// The layers of a T5 and the list of its parameters.
#[derive(Clone, Debug)]
pub struct T5 {
    config: T5Config,
    specs: Arc<[ParamSpec]>,
    table: TokenEmbedding,
    encoder: Stack,
    decoder: Stack,
    head: Head,
}

/// What makes the logits.
#[derive(Clone, Copy, Debug)]
enum Head {
    /// The token table, after a factor of d^−½.
    Tied(LmHead),
    /// `[vocabulary, d]`
    Own(ParamId),
}

struct SavedForward<B: Kernels> {
    encoder: SavedStack<B>,
    decoder: SavedStack<B>,
    /// The head's input, scaled. `[batch, targets, d]`
    hidden: Tensor<B, 3>,
}

impl T5 {
    /// Lays out layers and parameters.
    #[must_use]
    pub fn new(config: T5Config) -> Self {
        let mut list = ParamList::default();
        let (d, vocabulary) = (config.d_model, config.vocab_size);
        let table = list.add("shared.weight", &[vocabulary, d], Initial::Normal { std: 1.0 });
        let encoder = Stack::new(&config, Kind::Encoder, &mut list);
        let decoder = Stack::new(&config, Kind::Decoder, &mut list);
        let head = if config.v1_1 {
            // As the original code draws it: logits of order 1 whatever the width.
            let std = (d as f64).powf(-0.5);
            Head::Own(list.add("lm_head.weight", &[vocabulary, d], Initial::Normal { std }))
        } else {
            Head::Tied(LmHead { table })
        };
        Self { config, specs: list.0.into(), table: TokenEmbedding { table }, encoder, decoder, head }
    }

    /// Sizes.
    #[must_use]
    pub fn config(&self) -> &T5Config {
        &self.config
    }

    /// Names, shapes and starts of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        Arc::clone(&self.specs)
    }

    /// The shape of a batch's rows.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let T5Config { context, decoder_context, .. } = self.config;
        Shape { input: context, decoder: Some(decoder_context), gathered: None }
    }

    /// `config.json` as `transformers` reads it; the ids of special tokens are the tokenizer's to add.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        let config = &self.config;
        json!({
            "model_type": "t5",
            "architectures": ["T5ForConditionalGeneration"],
            "vocab_size": config.vocab_size,
            "d_model": config.d_model,
            "d_kv": config.d_model / config.heads,
            "d_ff": config.d_ff,
            "num_layers": config.layers,
            "num_decoder_layers": config.layers,
            "num_heads": config.heads,
            "relative_attention_num_buckets": BUCKETS,
            "relative_attention_max_distance": MAX_DISTANCE,
            "n_positions": config.context,
            "dropout_rate": 0.0,
            "layer_norm_epsilon": NORM_EPSILON,
            "initializer_factor": 1.0,
            "feed_forward_proj": if config.v1_1 { "gated-gelu" } else { "relu" },
            "is_encoder_decoder": true,
            "tie_word_embeddings": !config.v1_1,
            "torch_dtype": "float32"
        })
    }

    /// Logits at every place of the decoder.
    ///
    /// # Shapes
    /// - output: `[rows·targets, vocabulary]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Tensor<B, 2> {
        let decoder_tokens = decoder_tokens(&batch);
        let saved = self.forward(weights, &batch, decoder_tokens, true);
        self.head(weights, saved.hidden)
    }

    /// Forward and backward of the summed per-example losses: the records that hold every example's gradient.
    ///
    /// The table's gradient has up to three parts: the encoder's look-ups, the decoder's and the head. The look-ups of
    /// both are one record, side by side, so that the norm has all cross terms.
    pub(super) fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>, pass: &mut Pass<'_, B>) {
        let decoder_tokens = decoder_tokens(&batch);
        let saved = self.forward(weights, &batch, decoder_tokens.clone(), pass.recompute);
        let Batch { tokens, targets, target_weights, .. } = batch;
        let logits = self.head(weights, saved.hidden.clone());
        let head = LmHead { table: self.head_table() };
        let loss = head.backward(weights, logits, targets, target_weights);
        let hidden_grad = loss.hidden_grad * self.head_scale();
        let (decoder_grad, memory_grad) = self.decoder.backward(weights, saved.decoder, hidden_grad, pass);
        let (hidden, logits_grad) = (saved.hidden, loss.logits_grad);
        if let Head::Own(head) = self.head {
            let (input, grad) = (logits_grad.clone(), hidden.clone());
            pass.records.push(GradRecord::Product { param: head, input, grad });
        }
        if weights.frozen_up_to(self.encoder.last()) {
            return;
        }
        let memory_grad = memory_grad.unwrap_or_else(|| decoder_grad.zeros_like());
        let (encoder_grad, _) = self.encoder.backward(weights, saved.encoder, memory_grad, pass);
        let param = self.table.table;
        let tokens = Tensor::cat(vec![tokens, decoder_tokens], 1);
        let grad = Tensor::cat(vec![encoder_grad, decoder_grad], 1);
        pass.records.push(match self.head {
            Head::Tied(_) => GradRecord::TiedEmbedding { param, tokens, grad, hidden, logits_grad },
            Head::Own(_) => GradRecord::Lookup { param, tokens, grad },
        });
    }

    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: &Batch<B>,
        decoder_tokens: Tensor<B, 2, Int>,
        recompute: bool,
    ) -> SavedForward<B> {
        let input = self.table.forward(weights, batch.tokens.clone());
        let lengths = Some(batch.lengths.clone());
        let (memory, encoder) = self.encoder.forward(weights, input, None, lengths.clone(), recompute);
        let output = self.table.forward(weights, decoder_tokens);
        let (hidden, decoder) = self.decoder.forward(weights, output, Some(memory), lengths, recompute);
        SavedForward { encoder, decoder, hidden: hidden * self.head_scale() }
    }

    fn head<B: Kernels>(&self, weights: &Weights<B>, hidden: Tensor<B, 3>) -> Tensor<B, 2> {
        LmHead { table: self.head_table() }.forward(weights, hidden)
    }

    fn head_table(&self) -> ParamId {
        match self.head {
            Head::Tied(LmHead { table }) | Head::Own(table) => table,
        }
    }

    /// Factor of the head's input.
    fn head_scale(&self) -> f64 {
        match self.head {
            Head::Tied(_) => (self.config.d_model as f64).powf(-0.5),
            Head::Own(_) => 1.0,
        }
    }
}

/// The decoder's input; a batch without one has a decoder that reads token 0 alone.
fn decoder_tokens<B: Kernels>(batch: &Batch<B>) -> Tensor<B, 2, Int> {
    match &batch.decoder_tokens {
        Some(tokens) => tokens.clone(),
        None => Tensor::zeros([batch.tokens.dims()[0], 1], &batch.tokens.device()),
    }
}

/// A linear map without bias, laid out under this name.
pub(super) fn linear(list: &mut ParamList, name: &str, d_out: usize, d_in: usize, variance: f64) -> Linear {
    let initial = Initial::Normal { std: variance.sqrt() };
    let weight = list.add(format!("{name}.weight"), &[d_out, d_in], initial);
    Linear { weight, bias: None, stored: Stored::OutIn }
}
