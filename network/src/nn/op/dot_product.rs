//! Dot-product attention: softmax of the products of queries and keys, and a sum of values. Its
//! only parameters are those of norms of queries and keys.

use super::rotary::Angles;
use super::{RmsNorm, Rotary};
use crate::nn::cache::Kept;
use crate::nn::{Attended, BlockedAttention, Cache, CachedKeys, ForwardPass, Kernels, Mask, Var, Weights};
use crate::tensor::{Int, Tensor};

/// `softmax(scale·Q·Kᵀ + bias)·V`, head by head.
#[derive(Clone, Copy, Debug)]
pub struct DotProductAttention {
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads. Query head h uses key head h·kv_heads/heads.
    pub kv_heads: usize,
    /// Factor of the products of queries and keys: 1/√d_head, or 1 in T5.
    pub scale: f64,
    /// Norms of each head of separately projected queries and keys, before they are rotated.
    pub norms: Option<[RmsNorm; 2]>,
    /// Rotation of queries and keys by their positions.
    pub rotary: Option<Rotary>,
    /// If c is given, each product x, after `scale`, becomes c·tanh(x / c).
    pub cap: Option<f64>,
    /// Distance, at least 1, from which a query does not see keys; all are seen if absent.
    pub window: Option<usize>,
}

/// The order in which queries, keys and values lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusedOrder {
    /// The queries of all heads, then their keys, then their values.
    ByPart,
    /// Query, key and value of each head together.
    ByHead,
}

/// The keys that a query sees.
#[derive(Clone, Debug)]
pub struct AttentionMask<B: Kernels> {
    /// Number of keys of each example that are not padding, at least 1; all if absent. `[batch]`
    pub lengths: Option<Tensor<B, 1, Int>>,
    /// Whether a query sees no key after its own place.
    pub causal: bool,
}

/// The tensors that the backward pass needs. A group is the query heads of one key head.
struct Saved<B: Kernels> {
    attended: Attended<B>,
    probabilities: Probabilities<B>,
    angles: Option<Angles<B>>,
}

enum Probabilities<B: Kernels> {
    /// They are computed again.
    Blocked(BlockedAttention<B>),
    Held {
        /// `[batch, kv_heads, group·queries, keys]`
        probabilities: Tensor<B, 4>,
        /// tanh(product / cap), if products are capped. `[batch, kv_heads, group·queries, keys]`
        capped: Option<Tensor<B, 4>>,
        /// Factors of the probabilities, if the pass has dropout.
        dropout: Option<Tensor<B, 4>>,
    },
}

/// Gradients of queries, keys, values, and scores.
struct Grads<B: Kernels> {
    /// Gradients of queries, keys and values: `[batch, heads or kv_heads, seq, d_head]` each.
    projected: [Tensor<B, 4>; 3],
    /// `[batch, kv_heads, group·queries, keys]`; absent where an attention has no bias.
    scores: Option<Tensor<B, 4>>,
}

impl<B: Kernels> AttentionMask<B> {
    /// Lets a position see itself and those before it.
    #[must_use]
    pub fn causal() -> Self {
        Self { lengths: None, causal: true }
    }

    /// Lets a position see everything but padding.
    #[must_use]
    pub fn padding(lengths: Tensor<B, 1, Int>) -> Self {
        Self { lengths: Some(lengths), causal: false }
    }

    /// Computes the softmax of the scores. The last query is at the place of the last key.
    ///
    /// # Shapes
    /// - scores, output: `[batch, heads, queries, keys]`, bias: `[heads, queries, keys]`
    fn softmax(
        &self,
        scores: Tensor<B, 4>,
        bias: Option<Tensor<B, 3>>,
        scale: f64,
        window: Option<usize>,
    ) -> Tensor<B, 4> {
        match (&bias, &self.lengths, window) {
            (None, None, None) if self.causal => B::causal_softmax(scores, scale),
            _ => {
                let mask = Mask { bias, lengths: self.lengths.clone(), causal: self.causal, window };
                B::masked_softmax(scores, mask, scale)
            }
        }
    }
}

impl DotProductAttention {
    /// Creates causal attention with as many key heads as query heads and the usual scale.
    #[must_use]
    pub fn new(heads: usize, d_head: usize) -> Self {
        let scale = 1.0 / (d_head as f64).sqrt();
        Self { heads, kv_heads: heads, scale, norms: None, rotary: None, cap: None, window: None }
    }

    /// Applies attention to queries, keys and values that lie side by side.
    ///
    /// # Shapes
    /// - projected: `[batch, seq, (heads + 2·kv_heads)·d_head]`
    /// - output: `[batch, seq, heads·d_head]`
    pub(super) fn fused<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        projected: Var<B>,
        order: FusedOrder,
        mask: &AttentionMask<B>,
    ) -> Var<B> {
        let Var { value, slot } = projected;
        let parts = self.apart_from(value, order);
        if let Some(cache) = pass.later_cache() {
            return self.attend_from_rows(cache, parts, None);
        }
        let (context, saved) = self.attend(pass, parts, mask, None);
        pass.note(context, slot.is_some(), move |grad, back| {
            let grads = self.backward(back.weights, saved, grad);
            back.add(slot, B::merge_heads(self.together(grads.projected, order)));
        })
    }

    /// Splits queries, keys and values that lie side by side.
    ///
    /// # Shapes
    /// - fused: `[batch, seq, (heads + 2·kv_heads)·d_head]`
    /// - output: `[batch, heads or kv_heads, seq, d_head]` each
    fn apart_from<B: Kernels>(self, fused: Tensor<B, 3>, order: FusedOrder) -> [Tensor<B, 4>; 3] {
        let all = self.split(fused, self.heads + 2 * self.kv_heads);
        let [batch, _, seq, d_head] = all.dims();
        match order {
            FusedOrder::ByPart => {
                let (heads, kv_heads) = (self.heads, self.kv_heads);
                [(0, heads), (heads, kv_heads), (heads + kv_heads, kv_heads)]
                    .map(|(first, count)| all.clone().narrow(1, first, count))
            }
            FusedOrder::ByHead => {
                let by_head = all.reshape([batch, self.heads, 3, seq, d_head]);
                [0, 1, 2]
                    .map(|part| by_head.clone().narrow(2, part, 1).reshape([batch, self.heads, seq, d_head]))
            }
        }
    }

    /// Inverts [`Self::apart_from`]. Returns tensors whose heads follow one another.
    fn together<B: Kernels>(self, parts: [Tensor<B, 4>; 3], order: FusedOrder) -> Vec<Tensor<B, 4>> {
        match order {
            FusedOrder::ByPart if self.heads == self.kv_heads => parts.into(),
            FusedOrder::ByPart => vec![Tensor::cat(parts.into(), 1)],
            FusedOrder::ByHead => {
                let [batch, heads, seq, d_head] = parts[0].dims();
                let by_head = Tensor::stack::<5>(parts.into(), 2);
                vec![by_head.reshape([batch, 3 * heads, seq, d_head])]
            }
        }
    }

    /// Applies attention to queries, keys and values from separate projections.
    ///
    /// # Shapes
    /// - queries, output: `[batch, queries, heads·d_head]`, keys, values: `[batch, keys, kv_heads·d_head]`,
    ///   bias: `[heads, queries, keys]`
    pub(super) fn apart<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        projected: [Var<B>; 3],
        mask: &AttentionMask<B>,
        bias: Option<Var<B>>,
    ) -> Var<B> {
        let [mut queries, mut keys, values] = projected;
        if let Some([of_queries, of_keys]) = self.norms {
            queries = of_queries.forward(pass, queries);
            keys = of_keys.forward(pass, keys);
        }
        let projected = [queries, keys, values];
        let slots = projected.each_ref().map(|part| part.slot);
        let [queries, keys, values] = projected.map(Var::into_value);
        let parts = [
            self.split(queries, self.heads),
            self.split(keys, self.kv_heads),
            self.split(values, self.kv_heads),
        ];
        if let Some(cache) = pass.later_cache() {
            return self.attend_from_rows(cache, parts, bias);
        }
        let bias_slot = bias.as_ref().and_then(|bias| bias.slot);
        let (context, saved) = self.attend(pass, parts, mask, bias.map(Var::into_value));
        let needed = bias_slot.is_some() || slots.iter().any(Option::is_some);
        pass.note(context, needed, move |grad, back| {
            let Grads { projected, scores } = self.backward(back.weights, saved, grad);
            if let Some(scores) = scores.filter(|_| bias_slot.is_some()) {
                back.add(bias_slot, B::diagonal_sums(scores));
            }
            for (slot, grad) in slots.into_iter().zip(projected) {
                back.add(slot, B::merge_heads(vec![grad]));
            }
        })
    }

    /// Applies attention of one new position of each row to itself and to the row's positions in
    /// the cache, after the first pass of generation.
    ///
    /// # Shapes
    /// - projected: `[rows, heads or kv_heads, 1, d_head]` each, bias: `[heads, rows, keys]`
    /// - output: `[rows, 1, heads·d_head]`
    fn attend_from_rows<B: Kernels>(
        self,
        cache: &mut Cache<B>,
        projected: [Tensor<B, 4>; 3],
        bias: Option<Var<B>>,
    ) -> Var<B> {
        let [mut queries, mut keys, values] = projected;
        if let Some(rotary) = self.rotary {
            let angles = rotary.angles(cache.positions(), &queries);
            queries = angles.turn_rows(queries);
            keys = angles.turn_rows(keys);
        }
        self.attend_to_kept(queries, cache.extend([keys, values]), bias.map(Var::into_value))
    }

    /// Keeps the keys and values of another sequence, in the first pass of generation.
    ///
    /// # Shapes
    /// - keys, values: `[rows, keys, kv_heads·d_head]`
    pub(super) fn keep<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, keys: &Var<B>, values: &Var<B>) {
        if let Some(cache) = pass.cache() {
            cache.keep([keys, values].map(|part| self.split(part.value.clone(), self.kv_heads)).into());
        }
    }

    /// Applies attention to the keys and values that [`Self::keep`] kept, after the first pass of
    /// generation.
    ///
    /// # Shapes
    /// - queries, output: `[rows, 1, heads·d_head]`
    pub(super) fn recall<B: Kernels>(self, queries: Var<B>, kept: Kept<B>) -> Var<B> {
        self.attend_to_kept(self.split(queries.into_value(), self.heads), kept, None)
    }

    fn attend_to_kept<B: Kernels>(
        self,
        queries: Tensor<B, 4>,
        kept: Kept<B>,
        bias: Option<Tensor<B, 3>>,
    ) -> Var<B> {
        let Kept { keys, values, used } = kept;
        let keys = CachedKeys { kept: [keys, values], used: &used, bias, window: self.window, cap: self.cap };
        Var::constant(B::cached_attention(queries, keys, self.scale))
    }

    /// Applies attention. Returns its output, and the tensors that the backward pass needs.
    ///
    /// # Shapes
    /// - projected: `[batch, heads or kv_heads, seq, d_head]` each
    /// - output: `[batch, queries, heads·d_head]`
    fn attend<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        projected: [Tensor<B, 4>; 3],
        mask: &AttentionMask<B>,
        bias: Option<Tensor<B, 3>>,
    ) -> (Tensor<B, 3>, Saved<B>) {
        let [mut queries, mut keys, values] = projected;
        let positions: Vec<usize> = (0..queries.dims()[2]).collect();
        let angles = self.rotary.map(|rotary| rotary.angles(&positions, &queries));
        if let Some(angles) = &angles {
            queries = angles.turn(queries);
            keys = angles.turn(keys);
        }
        // Keys and values under a causal mask do not change when more tokens follow.
        if let Some(cache) = pass.cache().filter(|_| mask.causal) {
            cache.keep(vec![keys.clone(), values.clone()]);
        }
        let [_, _, query_count, _] = queries.dims();
        let attended = Attended {
            queries: self.by_key_head(queries),
            keys,
            values,
            group: self.heads / self.kv_heads,
            lengths: mask.lengths.clone(),
            causal: mask.causal,
            window: self.window,
            scale: self.scale,
        };
        let weights = pass.weights();
        let is_plain = bias.is_none() && self.cap.is_none() && pass.dropout.is_none();
        if let Some(blocked) = B::blocked_attention(&attended).filter(|_| is_plain) {
            let context = B::merge_heads(vec![self.by_query_head((blocked.forward)(&attended))]);
            return (context, Saved { attended, probabilities: Probabilities::Blocked(blocked), angles });
        }
        let products = weights.product(attended.queries.clone(), attended.keys.clone().transpose());
        let (scores, scale, capped) = match self.cap {
            Some(cap) => {
                let capped = (products * (self.scale / cap)).tanh();
                (capped.clone() * cap, 1.0, Some(capped))
            }
            None => (products, self.scale, None),
        };
        let scores = self.by_query_head(scores);
        let probabilities = self.by_key_head(mask.softmax(scores, bias, scale, self.window));
        let dropout = &mut pass.dropout;
        let dropout = dropout.as_mut().map(|dropout| dropout.of_probabilities(&probabilities, query_count));
        let context = weights.product(dropped(probabilities.clone(), &dropout), attended.values.clone());
        let context = B::merge_heads(vec![self.by_query_head(context)]);
        (
            context,
            Saved { attended, probabilities: Probabilities::Held { probabilities, capped, dropout }, angles },
        )
    }

    /// Returns the gradients of queries, keys, values and scores.
    ///
    /// # Shapes
    /// - grad: `[batch, queries, heads·d_head]`
    fn backward<B: Kernels>(self, weights: &Weights<B>, saved: Saved<B>, grad: Tensor<B, 3>) -> Grads<B> {
        let Saved { attended, probabilities, angles } = saved;
        let grad = self.by_key_head(self.split(grad, self.heads));
        let ([queries_grad, mut keys_grad, values_grad], scores) = match probabilities {
            Probabilities::Blocked(blocked) => ((blocked.backward)(&attended, grad), None),
            Probabilities::Held { probabilities, capped, dropout } => {
                let Attended { queries, keys, values, .. } = attended;
                // The queries of a group lie along one axis, so these products also sum over the group.
                let values_grad =
                    weights.product(dropped(probabilities.clone(), &dropout).transpose(), grad.clone());
                let probabilities_grad = dropped(weights.product(grad, values.transpose()), &dropout);
                let mut scores = B::softmax_backward(probabilities, probabilities_grad, self.scale);
                if let Some(capped) = capped {
                    scores = scores * (capped.square().neg() + 1.0);
                }
                let keys_grad = weights.product(scores.clone().transpose(), queries);
                ([weights.product(scores.clone(), keys), keys_grad, values_grad], Some(scores))
            }
        };
        let mut queries_grad = self.by_query_head(queries_grad);
        if let Some(angles) = angles {
            queries_grad = angles.turn_back(queries_grad);
            keys_grad = angles.turn_back(keys_grad);
        }
        Grads { projected: [queries_grad, keys_grad, values_grad], scores }
    }

    /// `[batch, seq, heads·d_head]` → `[batch, heads, seq, d_head]`
    fn split<B: Kernels>(self, projected: Tensor<B, 3>, heads: usize) -> Tensor<B, 4> {
        let [batch, seq, width] = projected.dims();
        projected.reshape([batch, seq, heads, width / heads]).swap_dims(1, 2)
    }

    /// `[batch, heads, seq, n]` → `[batch, kv_heads, heads/kv_heads·seq, n]`
    fn by_key_head<B: Kernels>(self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        if self.heads == self.kv_heads {
            return values;
        }
        let [batch, heads, seq, n] = values.dims();
        values.reshape([batch, self.kv_heads, heads / self.kv_heads * seq, n])
    }

    /// Inverts [`Self::by_key_head`].
    fn by_query_head<B: Kernels>(self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        if self.heads == self.kv_heads {
            return values;
        }
        let [batch, _, rows, n] = values.dims();
        values.reshape([batch, self.heads, rows * self.kv_heads / self.heads, n])
    }
}

/// Returns the values after dropout, if there is one.
fn dropped<B: Kernels>(values: Tensor<B, 4>, dropout: &Option<Tensor<B, 4>>) -> Tensor<B, 4> {
    match dropout {
        Some(factors) => values * factors.clone(),
        None => values,
    }
}
