//! The blocks of T5's encoder or decoder.

use super::ParamList;
use super::pass::{Kept, Pass};
use super::t5::{BUCKETS, MAX_DISTANCE, NORM_EPSILON, T5Config, linear};
use crate::nn::GradRecord;
use crate::nn::{
    Activation, AttentionMask, FeedForward, GatedFeedForward, Initial, Kernels, MultiHeadAttention, ParamId,
    RelativeBias, RelativeGrads, RmsNorm, SavedFeedForward, SavedGated, SavedMultiHead, SavedRmsNorm,
    Weights,
};
use crate::tensor::{Int, Tensor};

/// Which of the two stacks it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Encoder,
    Decoder,
}

/// Blocks with norm before each part, a norm after all, and one relative bias for all.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    kind: Kind,
    bias: RelativeBias,
    blocks: Vec<Block>,
    norm: RmsNorm,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    attention: MultiHeadAttention,
    attention_norm: RmsNorm,
    /// Of the decoder: to the encoder's output.
    cross: Option<(MultiHeadAttention, RmsNorm)>,
    inner: Inner,
    inner_norm: RmsNorm,
}

#[derive(Clone, Copy, Debug)]
enum Inner {
    Plain(FeedForward),
    Gated(GatedFeedForward),
}

/// What [`Stack::backward`] needs.
pub(super) struct SavedStack<B: Kernels> {
    blocks: Vec<Kept<B, SavedBlock<B>>>,
    views: Views<B>,
    norm: SavedRmsNorm<B>,
}

/// What all blocks of a stack see: their own sequence, and the encoder's output.
struct Views<B: Kernels> {
    own: AttentionMask<B>,
    across: Option<(Tensor<B, 3>, AttentionMask<B>)>,
}

struct SavedBlock<B: Kernels> {
    attention: (SavedMultiHead<B>, SavedRmsNorm<B>),
    cross: Option<(SavedMultiHead<B>, SavedRmsNorm<B>)>,
    inner: SavedInner<B>,
    inner_norm: SavedRmsNorm<B>,
}

enum SavedInner<B: Kernels> {
    Plain(SavedFeedForward<B>),
    Gated(SavedGated<B>),
}

impl Stack {
    /// Lays the blocks out.
    pub fn new(config: &T5Config, kind: Kind, list: &mut ParamList) -> Self {
        let name = match kind {
            Kind::Encoder => "encoder",
            Kind::Decoder => "decoder",
        };
        let block = |at| Block::new(config, kind, &format!("{name}.block.{at}.layer"), list);
        let blocks: Vec<Block> = (0..config.layers).map(block).collect();
        let table = list.add(
            format!("{name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
            &[BUCKETS, config.heads],
            Initial::Normal { std: (config.d_model as f64).powf(-0.5) },
        );
        let bidirectional = kind == Kind::Encoder;
        let bias = RelativeBias { table, buckets: BUCKETS, max_distance: MAX_DISTANCE, bidirectional };
        let norm = norm(list, &format!("{name}.final_layer_norm"), config.d_model);
        Self { kind, bias, blocks, norm }
    }

    /// The last of its parameters in the model's list.
    pub fn last(&self) -> ParamId {
        self.norm.gain
    }

    /// The stack's output.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`, memory: `[batch, keys, d]` for the decoder, lengths: `[batch]`, of the
    ///   encoder's input
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
        memory: Option<Tensor<B, 3>>,
        lengths: Option<Tensor<B, 1, Int>>,
        recompute: bool,
    ) -> (Tensor<B, 3>, SavedStack<B>) {
        let seq = input.dims()[1];
        let bias = Some(self.bias.forward(weights, seq, seq));
        let own = match self.kind {
            Kind::Encoder => AttentionMask { lengths: lengths.clone(), causal: false, bias },
            // Its padding comes last, so no place with a target sees it.
            Kind::Decoder => AttentionMask { lengths: None, causal: true, bias },
        };
        let across = memory.map(|memory| (memory, AttentionMask { lengths, causal: false, bias: None }));
        let views = Views { own, across };
        let mut stream = input;
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let (output, kept) = Kept::of(recompute, stream, |input| block.forward(weights, input, &views));
            stream = output;
            blocks.push(kept);
        }
        let (output, norm) = self.norm.forward(weights, stream);
        (output, SavedStack { blocks, views, norm })
    }

    /// Gradients of the input and, in the decoder, of the encoder's output; leaves the records of all parameters.
    ///
    /// # Shapes
    /// - grad: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedStack<B>,
        grad: Tensor<B, 3>,
        pass: &mut Pass<'_, B>,
    ) -> (Tensor<B, 3>, Option<Tensor<B, 3>>) {
        let mut bias = RelativeGrads::new(grad.dims()[1]);
        let mut memory: Option<Tensor<B, 3>> = None;
        let mut grad = self.norm.backward(weights, saved.norm, grad, &mut pass.records);
        for (block, kept) in self.blocks.iter().zip(saved.blocks).rev() {
            let of_block = kept.saved(|input| block.forward(weights, input, &saved.views));
            let (input, of_memory) = block.backward(weights, of_block, grad, &mut bias, &mut pass.records);
            pass.hand_over();
            grad = input;
            memory = match (memory, of_memory) {
                (Some(sum), Some(part)) => Some(sum + part),
                (sum, part) => sum.or(part),
            };
        }
        pass.records.extend(self.bias.record(bias));
        (grad, memory)
    }
}

impl Block {
    fn new(config: &T5Config, kind: Kind, name: &str, list: &mut ParamList) -> Self {
        let (d, d_ff) = (config.d_model, config.d_ff);
        let attention = attention(list, &format!("{name}.0.SelfAttention"), config);
        let attention_norm = norm(list, &format!("{name}.0.layer_norm"), d);
        let cross = (kind == Kind::Decoder).then(|| {
            let cross = self::attention(list, &format!("{name}.1.EncDecAttention"), config);
            (cross, norm(list, &format!("{name}.1.layer_norm"), d))
        });
        let last = if kind == Kind::Decoder { 2 } else { 1 };
        let mut inner = |part: &str, d_out: usize, d_in: usize| {
            linear(list, &format!("{name}.{last}.DenseReluDense.{part}"), d_out, d_in, 1.0 / d_in as f64)
        };
        let inner = if config.v1_1 {
            let (gate, up) = (inner("wi_0", d_ff, d), inner("wi_1", d_ff, d));
            Inner::Gated(GatedFeedForward { gate, up, down: inner("wo", d, d_ff) })
        } else {
            let (widen, narrow) = (inner("wi", d_ff, d), inner("wo", d, d_ff));
            Inner::Plain(FeedForward { widen, narrow, activation: Activation::Relu })
        };
        let inner_norm = norm(list, &format!("{name}.{last}.layer_norm"), d);
        Self { attention, attention_norm, cross, inner, inner_norm }
    }

    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
        views: &Views<B>,
    ) -> (Tensor<B, 3>, SavedBlock<B>) {
        let (normalized, attention_norm) = self.attention_norm.forward(weights, input.clone());
        let (attended, attention) =
            self.attention.forward(weights, normalized.clone(), normalized, views.own.clone());
        let mut stream = attended + input;
        let mut saved_cross = None;
        if let (Some((cross, norm)), Some((memory, across))) = (&self.cross, views.across.clone()) {
            let (normalized, saved_norm) = norm.forward(weights, stream.clone());
            let (attended, saved) = cross.forward(weights, normalized, memory, across);
            stream = attended + stream;
            saved_cross = Some((saved, saved_norm));
        }
        let (normalized, inner_norm) = self.inner_norm.forward(weights, stream.clone());
        let (output, inner) = self.inner.forward(weights, normalized);
        let saved =
            SavedBlock { attention: (attention, attention_norm), cross: saved_cross, inner, inner_norm };
        (output + stream, saved)
    }

    fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedBlock<B>,
        grad: Tensor<B, 3>,
        bias: &mut RelativeGrads<B>,
        records: &mut Vec<GradRecord<B>>,
    ) -> (Tensor<B, 3>, Option<Tensor<B, 3>>) {
        let inner = self.inner.backward(weights, saved.inner, grad.clone(), records);
        let mut grad = grad + self.inner_norm.backward(weights, saved.inner_norm, inner, records);
        let mut memory = None;
        if let (Some((cross, norm)), Some((saved, saved_norm))) = (&self.cross, saved.cross) {
            let grads = cross.backward(weights, saved, grad.clone(), records);
            grad = grad + norm.backward(weights, saved_norm, grads.from, records);
            memory = Some(grads.to);
        }
        let (attention, attention_norm) = saved.attention;
        let grads = self.attention.backward(weights, attention, grad.clone(), records);
        bias.add(grads.scores);
        let inner = self.attention_norm.backward(weights, attention_norm, grads.from + grads.to, records);
        (grad + inner, memory)
    }
}

impl Inner {
    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        input: Tensor<B, 3>,
    ) -> (Tensor<B, 3>, SavedInner<B>) {
        match self {
            Self::Plain(part) => {
                let (output, saved) = part.forward(weights, input);
                (output, SavedInner::Plain(saved))
            }
            Self::Gated(part) => {
                let (output, saved) = part.forward(weights, input);
                (output, SavedInner::Gated(saved))
            }
        }
    }

    fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedInner<B>,
        grad: Tensor<B, 3>,
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        match (self, saved) {
            (Self::Plain(part), SavedInner::Plain(saved)) => part.backward(weights, saved, grad, records),
            (Self::Gated(part), SavedInner::Gated(saved)) => part.backward(weights, saved, grad, records),
            _ => unreachable!("a part's own forward pass made what it saved"),
        }
    }
}

/// The four projections of an attention, under the names of T5.
fn attention(list: &mut ParamList, name: &str, config: &T5Config) -> MultiHeadAttention {
    let d = config.d_model;
    let mut project = |part: &str, variance: f64| linear(list, &format!("{name}.{part}"), d, d, variance);
    // Queries start small in place of a scale of the scores.
    let query = project("q", config.heads as f64 / (d * d) as f64);
    let (key, value) = (project("k", 1.0 / d as f64), project("v", 1.0 / d as f64));
    let output = project("o", 1.0 / d as f64);
    MultiHeadAttention { query, key, value, output, heads: config.heads, scale: 1.0 }
}

fn norm(list: &mut ParamList, name: &str, d: usize) -> RmsNorm {
    let gain = list.add(format!("{name}.weight"), &[d], Initial::Constant(1.0));
    RmsNorm { gain, epsilon: NORM_EPSILON, unit_offset: false }
}
