//! A decoder with learned positions and a layer norm before each part, as in OPT and GPT-Neo.

use super::{Batch, Description, Model};
use crate::nn::{
    AttentionMask, FeedForward, ForwardPass, Kernels, LayerNorm, MultiHeadAttention, PositionEmbedding,
    TokenEmbedding, Var, dropout, residual,
};

/// A model of one of these families.
#[derive(Clone, Debug)]
pub struct PreNormDecoder {
    pub(super) description: Description,
    pub(super) tokens: TokenEmbedding,
    pub(super) positions: PositionEmbedding,
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
        let tokens = self.tokens.forward(pass, batch.tokens.clone());
        let mut stream = self.positions.forward(pass, tokens);
        if self.drops_embedding {
            stream = dropout(pass, stream);
        }
        let stream = pass.blocks(stream, &self.blocks, PreNormBlock::forward);
        self.norm.forward(pass, stream)
    }
}

/// Attention and feed-forward, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreNormBlock {
    pub attention_norm: LayerNorm,
    pub attention: MultiHeadAttention,
    pub inner_norm: LayerNorm,
    pub inner: FeedForward,
}

impl PreNormBlock {
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.attention_norm.forward(pass, input.clone());
        let mask = AttentionMask::causal();
        let attended = self.attention.forward(pass, normalized.clone(), normalized, &mask, None);
        let middle = residual(pass, attended, input);
        let normalized = self.inner_norm.forward(pass, middle.clone());
        let output = self.inner.forward(pass, normalized);
        residual(pass, output, middle)
    }
}
