//! Multi-head attention: projections, softmax of the products of queries and keys, and a sum of values.
//!
//! # References
//! Vaswani et al. 2017, <https://arxiv.org/abs/1706.03762>; several query heads to a key head: Ainslie et al. 2023,
//! <https://arxiv.org/abs/2305.13245>.

use super::{AttentionMask, DotProductAttention, FusedOrder, Linear, LinearSpec, branch};
use crate::nn::{Cache, ForwardPass, Kernels, ParamList, Var};

/// Self-attention with one projection for queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub struct FusedAttention {
    /// `[d, 3·d]`: queries, keys and values in this order.
    pub projection: Linear,
    /// `[d, d]`
    pub output: Linear,
    /// Attention between the two projections.
    pub heads: DotProductAttention,
    /// The order of queries, keys and values in the projection.
    pub order: FusedOrder,
}

impl FusedAttention {
    /// Applies the projection, attention and the output projection.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        input: Var<B>,
        mask: &AttentionMask<B>,
    ) -> Var<B> {
        let projected = self.projection.forward(pass, input);
        let context = self.heads.fused(pass, projected, self.order, mask);
        self.output.forward(pass, context)
    }
}

/// Self-attention with either kind of projections.
#[derive(Clone, Copy, Debug)]
pub enum SelfAttention {
    /// One projection for queries, keys and values.
    Fused(FusedAttention),
    /// A projection each for queries, keys and values.
    Separate(MultiHeadAttention),
}

impl SelfAttention {
    /// Applies self-attention.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        input: Var<B>,
        mask: &AttentionMask<B>,
    ) -> Var<B> {
        match self {
            Self::Fused(attention) => attention.forward(pass, input, mask),
            Self::Separate(attention) => attention.forward(pass, input.clone(), input, mask, None),
        }
    }
}

/// Attention with four projections, over the same or another sequence.
#[derive(Clone, Copy, Debug)]
pub struct MultiHeadAttention {
    /// Projection from d to heads·d_head.
    pub query: Linear,
    /// Projection from d to kv_heads·d_head.
    pub key: Linear,
    /// Projection from d to kv_heads·d_head.
    pub value: Linear,
    /// Projection from heads·d_head to d.
    pub output: Linear,
    /// Attention between the projections.
    pub heads: DotProductAttention,
}

impl MultiHeadAttention {
    /// Adds the four projections to `list`, each of them as `spec` says. `parts` are the names of queries, keys, values and
    /// output below `name`.
    pub fn new(
        list: &mut ParamList,
        name: &str,
        parts: [&str; 4],
        spec: LinearSpec,
        heads: DotProductAttention,
    ) -> Self {
        let [query, key, value, output] = parts.map(|part| list.linear(&format!("{name}.{part}"), spec));
        Self { query, key, value, output, heads }
    }

    /// Applies attention of the positions of `from` to those of `to`, which is the same sequence.
    ///
    /// # Shapes
    /// - from, to, output: `[batch, seq, d]`, bias: `[heads, queries, keys]`, added to the scores of every example
    pub fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        from: Var<B>,
        to: Var<B>,
        mask: &AttentionMask<B>,
        bias: Option<Var<B>>,
    ) -> Var<B> {
        let values = self.value.forward(pass, to.clone());
        let keys = self.key.forward(pass, to);
        let queries = self.query.forward(pass, from);
        let context = self.heads.apart(pass, [queries, keys, values], mask, bias);
        self.output.forward(pass, context)
    }

    /// Applies attention of a sequence to another, such as the encoder's output. Generation reads `memory` in its first
    /// pass only, in which it must have no padding.
    ///
    /// # Shapes
    /// - from, output: `[batch, queries, d]`, memory: `[batch, keys, d]`
    pub fn across<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        from: Var<B>,
        memory: Var<B>,
        mask: &AttentionMask<B>,
    ) -> Var<B> {
        let kept = pass.later_cache().map(Cache::kept);
        if let Some(kept) = kept {
            let queries = self.query.forward(pass, from);
            let context = self.heads.recall(queries, kept);
            return self.output.forward(pass, context);
        }
        let memory = branch(pass, memory);
        let values = self.value.forward(pass, memory.clone());
        let keys = self.key.forward(pass, memory);
        self.heads.keep(pass, &keys, &values);
        let queries = self.query.forward(pass, from);
        let context = self.heads.apart(pass, [queries, keys, values], mask, None);
        self.output.forward(pass, context)
    }
}
