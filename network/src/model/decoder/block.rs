//! A block: attention and a gated feed-forward part, with their norms.

use super::{HeadNorms, INITIAL_STD, Norms, Projections, Sizes, Style};
use crate::nn::{
    AttentionMask, DotProductAttention, ForwardPass, FusedAttention, FusedGatedFeedForward, FusedOrder,
    GatedFeedForward, Kernels, Linear, LinearSpec, MultiHeadAttention, ParamList, RmsNorm, SelfAttention,
    Var, add, scale,
};

/// A block with norms before its parts, after them, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    attention: SelfAttention,
    feed_forward: GatedPart,
    /// Norms of the input of each part.
    norms_before: [Option<RmsNorm>; 2],
    /// Norms of the output of each part.
    norms_after: [Option<RmsNorm>; 2],
    /// Factor of the output of each part.
    residual_factor: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum GatedPart {
    Apart(GatedFeedForward),
    Fused(FusedGatedFeedForward),
}

/// The list of parameters while a block is built.
pub(super) struct Parts<'a> {
    pub sizes: Sizes,
    pub style: &'a Style,
    pub list: &'a mut ParamList,
    /// The block's index.
    pub at: usize,
}

impl Parts<'_> {
    fn norm(&mut self, part: &str, d: usize) -> RmsNorm {
        let name = format!("model.layers.{}.{part}", self.at);
        self.list.rms_norm(&name, d, self.sizes.norm_epsilon, self.style.unit_offset)
    }

    fn linear(&mut self, part: &str, [d_in, d_out]: [usize; 2], bias: bool) -> Linear {
        let name = format!("model.layers.{}.{part}", self.at);
        self.list.linear(&name, LinearSpec { bias, ..LinearSpec::normal(d_in, d_out, INITIAL_STD) })
    }

    fn attention(&mut self, heads: DotProductAttention) -> SelfAttention {
        let Sizes { d_model: d, d_head, attention_bias, .. } = self.sizes;
        let (queries, keys) = (heads.heads * d_head, heads.kv_heads * d_head);
        if self.style.projections == Projections::Fused {
            let projection = self.linear("self_attn.qkv_proj", [d, queries + 2 * keys], false);
            let output = self.linear("self_attn.o_proj", [queries, d], false);
            return SelfAttention::Fused(FusedAttention {
                projection,
                output,
                heads,
                order: FusedOrder::ByPart,
            });
        }
        let biased = attention_bias || self.style.projections == Projections::Biased;
        let query = self.linear("self_attn.q_proj", [d, queries], biased);
        let key = self.linear("self_attn.k_proj", [d, keys], biased);
        let value = self.linear("self_attn.v_proj", [d, keys], biased);
        let output = self.linear("self_attn.o_proj", [queries, d], attention_bias);
        let norms = self.style.head_norms.map(|norms| {
            let widths = match norms {
                HeadNorms::Each => [d_head, d_head],
                HeadNorms::All => [queries, keys],
            };
            [self.norm("self_attn.q_norm", widths[0]), self.norm("self_attn.k_norm", widths[1])]
        });
        SelfAttention::Separate(MultiHeadAttention {
            query,
            key,
            value,
            output,
            heads: DotProductAttention { norms, ..heads },
        })
    }

    fn feed_forward(&mut self) -> GatedPart {
        let (Sizes { d_model: d, d_ff, mlp_bias, .. }, activation) = (self.sizes, self.style.gate);
        if self.style.projections == Projections::Fused {
            let gate_up = self.linear("mlp.gate_up_proj", [d, 2 * d_ff], false);
            let down = self.linear("mlp.down_proj", [d_ff, d], false);
            return GatedPart::Fused(FusedGatedFeedForward { gate_up, down, activation });
        }
        GatedPart::Apart(GatedFeedForward {
            gate: self.linear("mlp.gate_proj", [d, d_ff], mlp_bias),
            up: self.linear("mlp.up_proj", [d, d_ff], mlp_bias),
            down: self.linear("mlp.down_proj", [d_ff, d], mlp_bias),
            activation,
            drops_activations: false,
        })
    }
}

impl Block {
    pub fn new(parts: &mut Parts<'_>, heads: DotProductAttention) -> Self {
        let d = parts.sizes.d_model;
        let Style { norms, feed_forward_norm, .. } = *parts.style;
        let [before, after] = [norms != Norms::After, norms != Norms::Before];
        let norm_1 = before.then(|| parts.norm("input_layernorm", d));
        let attention = parts.attention(heads);
        let after_1 = after.then(|| parts.norm("post_attention_layernorm", d));
        let norm_2 = before.then(|| parts.norm(feed_forward_norm, d));
        let feed_forward = parts.feed_forward();
        let after_2 = after.then(|| parts.norm("post_feedforward_layernorm", d));
        Self {
            attention,
            feed_forward,
            norms_before: [norm_1, norm_2],
            norms_after: [after_1, after_2],
            residual_factor: parts.sizes.residual_factor,
        }
    }

    /// Applies attention and the feed-forward part with their norms, each added to the stream.
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    pub fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let read = normalized(self.norms_before[0], pass, input.clone());
        let attended = self.attention.forward(pass, read, &AttentionMask::causal());
        let middle = self.add_part(0, pass, attended, input);
        let read = normalized(self.norms_before[1], pass, middle.clone());
        let output = match self.feed_forward {
            GatedPart::Apart(part) => part.forward(pass, read),
            GatedPart::Fused(part) => part.forward(pass, read),
        };
        self.add_part(1, pass, output, middle)
    }

    /// Adds the output of one of the two parts to the stream.
    fn add_part<B: Kernels>(
        self,
        part: usize,
        pass: &mut ForwardPass<'_, B>,
        output: Var<B>,
        stream: Var<B>,
    ) -> Var<B> {
        let mut output = normalized(self.norms_after[part], pass, output);
        if let Some(factor) = self.residual_factor {
            output = scale(pass, output, factor);
        }
        add(pass, output, stream)
    }
}

fn normalized<B: Kernels>(norm: Option<RmsNorm>, pass: &mut ForwardPass<'_, B>, value: Var<B>) -> Var<B> {
    match norm {
        Some(norm) => norm.forward(pass, value),
        None => value,
    }
}
