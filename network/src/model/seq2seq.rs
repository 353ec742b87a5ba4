//! An encoder and a decoder with biases and layer norms, as in BART, mBART and Marian.

use super::{
    Batch, ConfigField, Description, FieldType, Model, ModelError, PlannedNetwork, Predictions, Shape, Sizes,
};
use crate::lengths;
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, FeedForward, ForwardPass, Initializer, Kernels,
    LayerNorm, LinearSpec, MultiHeadAttention, ParamId, ParamList, Part, PositionEmbedding, Sinusoids,
    TokenEmbedding, Var, branch, dropout, residual, scale,
};
use crate::tensor::Tensor;

const NORM_EPSILON: f64 = 1e-5;
/// Returns the field that says whether embeddings are multiplied by √d, with the family's usual value.
pub(super) const fn scale_embedding(usual: &'static str) -> ConfigField {
    ConfigField::new("scale_embedding", usual, FieldType::Flag)
}

/// Standard deviation of the matrices and tables at the start.
pub(super) const INITIAL_STD: f64 = 0.02;

/// The differences between BART, mBART and Marian.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Row of the first position in a learned table; `None` if positions are sinusoids.
    pub first_position: Option<usize>,
    /// Whether a norm follows the embeddings.
    pub norms_embedding: bool,
    /// Whether norms come before each part and after the last block, instead of after each part.
    pub norms_first: bool,
    /// Activation of the feed-forward part.
    pub activation: Activation,
}

/// The sizes of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seq2SeqSizes {
    /// Sizes of either side: encoder and decoder have as many blocks each.
    pub common: Sizes,
    /// Longest input of the decoder.
    pub decoder_context: usize,
    /// Whether a looked-up row is multiplied by √d.
    pub scales_embedding: bool,
}

impl Seq2SeqSizes {
    /// Returns the sizes of a plan's model.
    ///
    /// # Errors
    /// [`ModelError`] for an odd width with sinusoids.
    pub fn of(plan: PlannedNetwork<'_>, style: Style) -> Result<Self, ModelError> {
        let common = Sizes::of(plan);
        let value = common.d_model;
        if style.first_position.is_none() && !value.is_multiple_of(2) {
            return Err(ModelError::Size { what: "d_model", value, allowed: "an even number" });
        }
        Ok(Self {
            common,
            decoder_context: lengths::decoder_context(plan.training.objective, plan.model),
            scales_embedding: plan.config.flag(&scale_embedding("false")),
        })
    }

    /// Returns the number of positions of each table.
    pub fn positions(self) -> usize {
        self.common.context.max(self.decoder_context)
    }

    /// Returns the shape of a batch's rows.
    pub fn shape(self) -> Shape {
        let decoder = Some(self.decoder_context);
        Shape { input: self.common.context, decoder, predictions: Predictions::EachPosition }
    }
}

/// A model without its head.
#[derive(Clone, Debug)]
pub(super) struct Seq2Seq {
    table: TokenEmbedding,
    factor: Option<f64>,
    width: usize,
    encoder: Stack,
    decoder: Stack,
}

/// An encoder–decoder of BART's kind: BART, mBART or Marian.
#[derive(Clone, Debug)]
pub struct Seq2SeqModel {
    pub(super) description: Description,
    pub(super) body: Seq2Seq,
}

impl Model for Seq2SeqModel {
    fn description(&self) -> &Description {
        &self.description
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        self.body.forward(pass, batch)
    }
}

#[derive(Clone, Debug)]
struct Stack {
    positions: Positions,
    norm: Option<LayerNorm>,
    blocks: Vec<Block>,
    last_norm: Option<LayerNorm>,
}

#[derive(Clone, Copy, Debug)]
enum Positions {
    Learned(PositionEmbedding),
    Sinusoids(Sinusoids),
}

#[derive(Clone, Copy, Debug)]
struct Block {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    /// Attention of the decoder to the encoder's output.
    cross: Option<Cross>,
    inner: FeedForward,
    inner_norm: LayerNorm,
    norms_first: bool,
}

#[derive(Clone, Copy, Debug)]
struct Cross {
    attention: MultiHeadAttention,
    norm: LayerNorm,
}

/// A side of an encoder–decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Encoder,
    Decoder,
}

impl Side {
    /// Returns the side's name in the names of parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encoder => "encoder",
            Self::Decoder => "decoder",
        }
    }
}

impl Seq2Seq {
    /// Adds the parameters to `list`.
    pub fn new(sizes: Seq2SeqSizes, style: Style, list: &mut ParamList) -> Self {
        let (d, matrix) = (sizes.common.d_model, Initializer::Normal { std: INITIAL_STD });
        let table =
            TokenEmbedding { table: list.add("model.shared.weight", &[sizes.common.vocab_size, d], matrix) };
        let encoder = Stack::new(sizes, style, Side::Encoder, list);
        let decoder = Stack::new(sizes, style, Side::Decoder, list);
        let factor = sizes.scales_embedding.then(|| (d as f64).sqrt());
        Self { table, factor, width: d, encoder, decoder }
    }

    /// Returns the token table.
    pub fn table(&self) -> ParamId {
        self.table.table
    }

    /// Returns the norm that makes the decoder's output.
    pub fn last_norm(&self) -> Option<LayerNorm> {
        let decoder = &self.decoder;
        decoder.last_norm.or_else(|| decoder.blocks.last().map(|block| block.inner_norm))
    }

    /// Runs the encoder, and the decoder on its own input and the encoder's output.
    ///
    /// # Shapes
    /// - output: `[rows, seq, d]`, of the decoder
    pub fn forward<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mask = AttentionMask::padding(batch.lengths.clone());
        let memory = encoder_output(pass, batch, self.width, |pass| {
            let input = self.table.forward(pass, batch.tokens.clone());
            let input = self.scaled(pass, input);
            self.encoder.forward(pass, input, &mask, None)
        });
        let output = self.table.forward(pass, batch.decoder_input());
        let output = self.scaled(pass, output);
        // The decoder's padding comes last, so no place with a target sees it.
        self.decoder.forward(pass, output, &AttentionMask::causal(), Some((memory, mask)))
    }

    fn scaled<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, rows: Var<B>) -> Var<B> {
        match self.factor {
            Some(factor) => scale(pass, rows, factor),
            None => rows,
        }
    }
}

/// Returns the encoder's output, `[rows, seq, width]`. In generation, attention keeps what it needs of that output in the
/// first pass; later passes get zeros that are never read.
pub(super) fn encoder_output<B: Kernels>(
    pass: &mut ForwardPass<'_, B>,
    batch: &Batch<B>,
    width: usize,
    encode: impl FnOnce(&mut ForwardPass<'_, B>) -> Var<B>,
) -> Var<B> {
    match pass.rows_at().map(<[usize]>::len) {
        Some(rows) => Var::constant(Tensor::zeros([rows, 1, width], &batch.tokens.device())),
        None => encode(pass),
    }
}

impl Stack {
    fn new(sizes: Seq2SeqSizes, style: Style, side: Side, list: &mut ParamList) -> Self {
        let d = sizes.common.d_model;
        let positions = match style.first_position {
            Some(first) => {
                let name = format!("model.{}.embed_positions.weight", side.name());
                let rows = first + sizes.positions();
                let table = list.add(name, &[rows, d], Initializer::Normal { std: INITIAL_STD });
                Positions::Learned(PositionEmbedding { table, first })
            }
            None => Positions::Sinusoids(Sinusoids { width: d }),
        };
        let norm = style
            .norms_embedding
            .then(|| list.layer_norm(&format!("model.{}.layernorm_embedding", side.name()), d, NORM_EPSILON));
        let blocks = (0..sizes.common.layers).map(|at| Block::new(sizes, style, side, at, list)).collect();
        if side == Side::Decoder {
            list.enter(Part::Output);
        }
        let last_norm = style
            .norms_first
            .then(|| list.layer_norm(&format!("model.{}.layer_norm", side.name()), d, NORM_EPSILON));
        Self { positions, norm, blocks, last_norm }
    }

    /// Runs the embeddings' positions and norm, and all blocks.
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
        let mut stream = match self.positions {
            Positions::Learned(positions) => positions.forward(pass, input),
            Positions::Sinusoids(positions) => positions.forward(pass, input),
        };
        if let Some(norm) = self.norm {
            stream = norm.forward(pass, stream);
        }
        stream = dropout(pass, stream);
        for &block in &self.blocks {
            let mask = mask.clone();
            stream = match memory.clone() {
                None => pass.block([stream], move |pass, [input]| {
                    let middle = block.attend(pass, input, &mask);
                    block.transform(pass, middle)
                }),
                Some((memory, padding)) => pass.block([stream, memory], move |pass, [input, memory]| {
                    let middle = block.attend(pass, input, &mask);
                    let middle = match block.cross {
                        Some(Cross { attention, norm }) => {
                            let from = block.before(pass, norm, middle.clone());
                            let attended = attention.across(pass, from, memory, &padding);
                            let sum = residual(pass, attended, middle);
                            block.after(pass, norm, sum)
                        }
                        None => middle,
                    };
                    block.transform(pass, middle)
                }),
            };
        }
        match self.last_norm {
            Some(norm) => norm.forward(pass, stream),
            None => stream,
        }
    }
}

impl Block {
    fn new(sizes: Seq2SeqSizes, style: Style, side: Side, at: usize, list: &mut ParamList) -> Self {
        if side == Side::Decoder {
            list.enter(Part::Block(at));
        }
        let Sizes { d_model: d, d_ff, heads, .. } = sizes.common;
        let name = |part: &str| format!("model.{}.layers.{at}.{part}", side.name());
        let attention = attention(list, &name("self_attn"), d, heads);
        let attention_norm = list.layer_norm(&name("self_attn_layer_norm"), d, NORM_EPSILON);
        let cross = (side == Side::Decoder).then(|| Cross {
            attention: self::attention(list, &name("encoder_attn"), d, heads),
            norm: list.layer_norm(&name("encoder_attn_layer_norm"), d, NORM_EPSILON),
        });
        let (widen, narrow) =
            (list.linear(&name("fc1"), map(d, d_ff)), list.linear(&name("fc2"), map(d_ff, d)));
        let inner = FeedForward { widen, narrow, activation: style.activation, drops_activations: false };
        let inner_norm = list.layer_norm(&name("final_layer_norm"), d, NORM_EPSILON);
        let norms_first = style.norms_first;
        Self { attention, attention_norm, cross, inner, inner_norm, norms_first }
    }

    fn attend<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        input: Var<B>,
        mask: &AttentionMask<B>,
    ) -> Var<B> {
        let from = match self.norms_first {
            true => self.attention_norm.forward(pass, input.clone()),
            false => branch(pass, input.clone()),
        };
        let attended = self.attention.forward(pass, from.clone(), from, mask, None);
        let sum = residual(pass, attended, input);
        self.after(pass, self.attention_norm, sum)
    }

    fn transform<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let from = self.before(pass, self.inner_norm, input.clone());
        let output = self.inner.forward(pass, from);
        let sum = residual(pass, output, input);
        self.after(pass, self.inner_norm, sum)
    }

    fn before<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, norm: LayerNorm, input: Var<B>) -> Var<B> {
        if self.norms_first { norm.forward(pass, input) } else { input }
    }

    fn after<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, norm: LayerNorm, sum: Var<B>) -> Var<B> {
        if self.norms_first { sum } else { norm.forward(pass, sum) }
    }
}

fn attention(list: &mut ParamList, name: &str, d: usize, heads: usize) -> MultiHeadAttention {
    let parts = ["q_proj", "k_proj", "v_proj", "out_proj"];
    MultiHeadAttention::new(list, name, parts, map(d, d), DotProductAttention::new(heads, d / heads))
}

/// Describes a linear map with bias.
fn map(d_in: usize, d_out: usize) -> LinearSpec {
    LinearSpec::normal(d_in, d_out, INITIAL_STD).biased()
}
