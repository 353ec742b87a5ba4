//! A decoder with a layer norm before each part: GPT-2 and its successors. Families differ in where positions enter, in the
//! projections of attention, and in what the feed-forward part reads.

use super::{Batch, Description, Model};
use crate::nn::{
    AttentionMask, ForwardPass, Kernels, LayerNorm, MaybeGated, PositionEmbedding, SelfAttention,
    TokenEmbedding, Var, dropout, residual,
};

/// A decoder of GPT-2's kind: GPT-2, GPT-J, GPT-Neo, GPT-NeoX, OPT, Phi or StableLM.
#[derive(Clone, Debug)]
pub struct PreNormDecoder {
    pub(super) description: Description,
    pub(super) tokens: TokenEmbedding,
    /// Learned positions; none where attention rotates by position.
    pub(super) positions: Option<PositionEmbedding>,
    /// Whether dropout follows the embeddings.
    pub(super) drops_embedding: bool,
    pub(super) blocks: Vec<PreNormBlock>,
    pub(super) norm: LayerNorm,
}

impl Model for PreNormDecoder {
    fn description(&self) -> &Description {
        &self.description
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mut stream = self.tokens.forward(pass, batch.tokens.clone());
        if let Some(positions) = self.positions {
            stream = positions.forward(pass, stream);
        }
        if self.drops_embedding {
            stream = dropout(pass, stream);
        }
        let stream = pass.blocks(stream, &self.blocks, PreNormBlock::forward);
        self.norm.forward(pass, stream)
    }
}

/// Attention and feed-forward part.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreNormBlock {
    pub attention_norm: LayerNorm,
    pub attention: SelfAttention,
    pub inner_input: InnerInput,
    pub inner: MaybeGated,
}

/// The input of the feed-forward part of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum InnerInput {
    /// The stream after attention, normalised.
    Sequential(LayerNorm),
    /// The stream that attention reads, normalised by a norm of its own.
    Parallel(LayerNorm),
    /// The normalised stream that attention reads.
    Shared,
}

impl PreNormBlock {
    /// Applies attention and the feed-forward part, and adds their outputs to the stream.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.attention_norm.forward(pass, input.clone());
        let attended = self.attention.forward(pass, normalized.clone(), &AttentionMask::causal());
        let middle = residual(pass, attended, input.clone());
        let read = match self.inner_input {
            InnerInput::Sequential(norm) => norm.forward(pass, middle.clone()),
            InnerInput::Parallel(norm) => norm.forward(pass, input),
            InnerInput::Shared => normalized,
        };
        let transformed = self.inner.forward(pass, read);
        residual(pass, transformed, middle)
    }
}
