//! BERT: an encoder that sees both sides, norms after each part, and a head that fills masked places.
//!
//! # References
//! Devlin et al. 2019, <https://arxiv.org/abs/1810.04805>; names and initial values as Hugging Face's
//! `BertForPreTraining`, and `BertForMaskedLM` where sentences are not predicted.

use std::sync::Arc;

use serde_json::json;

use super::bert_heads::{MaskedHead, SentenceHead};
use super::pass::{Kept, Pass};
use super::{Batch, ParamList, Shape};
use crate::nn::GradRecord;
use crate::nn::{
    Activation, AttentionMask, FeedForward, Initial, Kernels, LayerNorm, Linear, MultiHeadAttention,
    ParamSpec, PositionEmbedding, SavedFeedForward, SavedMultiHead, SavedNorm, Stored, TokenEmbedding,
    Weights,
};
use crate::tensor::{Int, Tensor};

pub(super) const NORM_EPSILON: f64 = 1e-12;
const INITIAL_STD: f64 = 0.02;
/// First and second sentence.
const SEGMENTS: usize = 2;

/// The sizes of a BERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BertConfig {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Most masked places of an example.
    pub predictions: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Attention heads; divides `d_model`.
    pub heads: usize,
    /// Width of the feed-forward part.
    pub d_ff: usize,
    /// Whether it also predicts how two sentences belong together.
    pub next_sentence: bool,
}

/// The layers of a BERT and the list of its parameters.
#[derive(Clone, Debug)]
pub struct Bert {
    config: BertConfig,
    specs: Arc<[ParamSpec]>,
    tokens: TokenEmbedding,
    positions: PositionEmbedding,
    segments: TokenEmbedding,
    norm: LayerNorm,
    blocks: Vec<Block>,
    masked: MaskedHead,
    sentence: Option<SentenceHead>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    inner: FeedForward,
    inner_norm: LayerNorm,
}

struct SavedBlock<B: Kernels> {
    attention: SavedMultiHead<B>,
    attention_norm: SavedNorm<B>,
    inner: SavedFeedForward<B>,
    inner_norm: SavedNorm<B>,
}

struct SavedForward<B: Kernels> {
    norm: SavedNorm<B>,
    blocks: Vec<Kept<B, SavedBlock<B>>>,
    sight: AttentionMask<B>,
    /// `[batch, seq, d]`
    hidden: Tensor<B, 3>,
}

impl Bert {
    /// Lays out layers and parameters.
    #[must_use]
    pub fn new(config: BertConfig) -> Self {
        let mut list = ParamList::default();
        let matrix = Initial::Normal { std: INITIAL_STD };
        let d = config.d_model;
        let mut table = |part: &str, rows: usize| {
            list.add(format!("bert.embeddings.{part}_embeddings.weight"), &[rows, d], matrix)
        };
        let tokens = TokenEmbedding { table: table("word", config.vocab_size) };
        let positions = PositionEmbedding { table: table("position", config.context) };
        let segments = TokenEmbedding { table: table("token_type", SEGMENTS) };
        let norm = norm(&mut list, "bert.embeddings.LayerNorm", d);
        let blocks = (0..config.layers).map(|at| Block::new(&config, at, &mut list)).collect();
        let masked = MaskedHead::new(&mut list, tokens.table, config.vocab_size, d);
        let sentence = config.next_sentence.then(|| SentenceHead::new(&mut list, d));
        Self { config, specs: list.0.into(), tokens, positions, segments, norm, blocks, masked, sentence }
    }

    /// Sizes.
    #[must_use]
    pub fn config(&self) -> &BertConfig {
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
        Shape { input: self.config.context, decoder: None, gathered: Some(self.config.predictions) }
    }

    /// `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        let config = &self.config;
        let architecture = if config.next_sentence { "BertForPreTraining" } else { "BertForMaskedLM" };
        json!({
            "model_type": "bert",
            "architectures": [architecture],
            "vocab_size": config.vocab_size,
            "hidden_size": config.d_model,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "intermediate_size": config.d_ff,
            "max_position_embeddings": config.context,
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

    /// Logits at the masked places.
    ///
    /// # Shapes
    /// - output: `[rows·targets, vocabulary]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Tensor<B, 2> {
        let saved = self.forward(weights, &batch, true);
        self.masked.forward(weights, &saved.hidden, batch.positions).0
    }

    /// Logits of the sentences' class, if the network predicts it.
    ///
    /// # Shapes
    /// - output: `[rows, 2]`
    pub fn sentence_logits<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: &Batch<B>,
    ) -> Option<Tensor<B, 2>> {
        let head = self.sentence.as_ref()?;
        Some(head.logits(weights, &self.forward(weights, batch, true).hidden))
    }

    /// Forward and backward of the summed per-example losses: the records that hold every example's gradient.
    ///
    /// The loss is the mean over masked places, plus that of the sentences where there are two.
    pub(super) fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>, pass: &mut Pass<'_, B>) {
        let saved = self.forward(weights, &batch, pass.recompute);
        let Batch { tokens, segments, positions, targets, target_weights, .. } = batch;
        let (logits, masked) = self.masked.forward(weights, &saved.hidden, positions);
        let (mut grad, loss) =
            self.masked.backward(weights, masked, logits, targets, target_weights, &mut pass.records);
        if let Some(head) = &self.sentence {
            let labels = (batch.sentences, batch.sentence_weights);
            grad = grad + head.gradient(weights, &saved.hidden, labels, &mut pass.records);
        }
        for (block, kept) in self.blocks.iter().zip(saved.blocks).rev() {
            if weights.frozen_up_to(block.inner_norm.bias) {
                return;
            }
            let of_block = kept.saved(|input| block.forward(weights, input, saved.sight.clone()));
            grad = block.backward(weights, of_block, grad, &mut pass.records);
            pass.hand_over();
        }
        let grad = self.norm.backward(weights, saved.norm, grad, &mut pass.records);
        pass.records.push(self.positions.record(&grad));
        pass.records.push(self.segment_record(segments, &grad));
        pass.records.push(GradRecord::TiedEmbedding {
            param: self.tokens.table,
            tokens,
            grad,
            hidden: loss.hidden,
            logits_grad: loss.logits_grad,
        });
    }

    /// Each example's gradient of the two segment vectors, whole.
    ///
    /// # Shapes
    /// - segments: `[batch, seq]`, grad: `[batch, seq, d]`
    fn segment_record<B: Kernels>(&self, segments: Tensor<B, 2, Int>, grad: &Tensor<B, 3>) -> GradRecord<B> {
        let [batch, seq, d] = grad.dims();
        let second = segments.float().cast(grad.dtype()).reshape([batch, 1, seq]);
        let member = Tensor::cat(vec![second.clone().neg() + 1.0, second], 1);
        let grads = member.matmul(grad.clone()).reshape([batch, SEGMENTS * d]);
        GradRecord::Explicit { param: self.segments.table, grads }
    }

    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: &Batch<B>,
        recompute: bool,
    ) -> SavedForward<B> {
        let seq = batch.tokens.dims()[1];
        let sum = self.tokens.forward(weights, batch.tokens.clone())
            + self.segments.forward(weights, batch.segments.clone())
            + self.positions.forward(weights, seq);
        let (mut hidden, norm) = self.norm.forward(weights, sum);
        let sight = AttentionMask { lengths: Some(batch.lengths.clone()), causal: false, bias: None };
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let forward = |input| block.forward(weights, input, sight.clone());
            let (output, kept) = Kept::of(recompute, hidden, forward);
            hidden = output;
            blocks.push(kept);
        }
        SavedForward { norm, blocks, sight, hidden }
    }
}

impl Block {
    fn new(config: &BertConfig, at: usize, list: &mut ParamList) -> Self {
        let (d, d_ff) = (config.d_model, config.d_ff);
        let name = format!("bert.encoder.layer.{at}");
        let mut dense =
            |part: &str, d_out: usize, d_in: usize| linear(list, &format!("{name}.{part}"), d_out, d_in);
        let (query, key, value) = (
            dense("attention.self.query", d, d),
            dense("attention.self.key", d, d),
            dense("attention.self.value", d, d),
        );
        let output = dense("attention.output.dense", d, d);
        let widen = dense("intermediate.dense", d_ff, d);
        let narrow = dense("output.dense", d, d_ff);
        let scale = 1.0 / ((d / config.heads) as f64).sqrt();
        Self {
            attention: MultiHeadAttention { query, key, value, output, heads: config.heads, scale },
            attention_norm: norm(list, &format!("{name}.attention.output.LayerNorm"), d),
            inner: FeedForward { widen, narrow, activation: Activation::Gelu },
            inner_norm: norm(list, &format!("{name}.output.LayerNorm"), d),
        }
    }

    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
        sight: AttentionMask<B>,
    ) -> (Tensor<B, 3>, SavedBlock<B>) {
        let (attended, attention) = self.attention.forward(weights, input.clone(), input.clone(), sight);
        let (middle, attention_norm) = self.attention_norm.forward(weights, attended + input);
        let (inner_output, inner) = self.inner.forward(weights, middle.clone());
        let (output, inner_norm) = self.inner_norm.forward(weights, inner_output + middle);
        (output, SavedBlock { attention, attention_norm, inner, inner_norm })
    }

    fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedBlock<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let grad = self.inner_norm.backward(weights, saved.inner_norm, grad, records);
        let middle = self.inner.backward(weights, saved.inner, grad.clone(), records) + grad;
        let grad = self.attention_norm.backward(weights, saved.attention_norm, middle, records);
        let grads = self.attention.backward(weights, saved.attention, grad.clone(), records);
        grads.from + grads.to + grad
    }
}

/// A linear map with bias, laid out under this name.
pub(super) fn linear(list: &mut ParamList, name: &str, d_out: usize, d_in: usize) -> Linear {
    let matrix = Initial::Normal { std: INITIAL_STD };
    let weight = list.add(format!("{name}.weight"), &[d_out, d_in], matrix);
    let bias = Some(list.add(format!("{name}.bias"), &[d_out], Initial::Constant(0.0)));
    Linear { weight, bias, stored: Stored::OutIn }
}

/// A layer norm, laid out under this name.
pub(super) fn norm(list: &mut ParamList, name: &str, d: usize) -> LayerNorm {
    let gain = list.add(format!("{name}.weight"), &[d], Initial::Constant(1.0));
    let bias = list.add(format!("{name}.bias"), &[d], Initial::Constant(0.0));
    LayerNorm { gain, bias, epsilon: NORM_EPSILON }
}
