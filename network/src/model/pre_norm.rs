//! A decoder's block with a layer norm before each part, as in OPT and GPT-Neo.

use crate::nn::{AttentionMask, FeedForward, Kernels, LayerNorm, MultiHeadAttention, Pass, Var, residual};

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
    pub fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.attention_norm.forward(pass, input.clone());
        let mask = AttentionMask::causal();
        let attended = self.attention.forward(pass, normalized.clone(), normalized, &mask, None);
        let middle = residual(pass, attended, input);
        let normalized = self.inner_norm.forward(pass, middle.clone());
        let output = self.inner.forward(pass, normalized);
        residual(pass, output, middle)
    }
}
