//! Operations that a backend may fuse; [`portable`] gives their meaning.

mod cpu;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod gpu;
pub(crate) mod portable;

use crate::tensor::{Backend, Int, Tensor};

/// One step of Adam with decoupled weight decay, as [`Kernels::adam`] carries it out.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Weights of what the moving averages held.
    pub betas: [f64; 2],
    /// What the second average is short of, as it began at 0.
    pub second_bias: f64,
    /// Added to the root of the second average.
    pub epsilon: f64,
    /// In place of `epsilon`: the noise's part of the second average, and the least that is left without it.
    pub noise: Option<[f64; 2]>,
    /// Factor of the weights: 1 without decay.
    pub kept: f64,
    /// Learning rate over what the first average is short of.
    pub rate: f64,
}

/// A source of noise for the elements of one parameter.
pub trait NoiseSource: Sync {
    /// Fills a stretch that begins at element `first`, an even one. An element gets the same noise whatever the stretch.
    fn fill(&self, first: usize, out: &mut [f32]);

    /// Key and standard deviation, where the noise is a Gaussian fill of a stream from its beginning: a device may then
    /// draw it itself.
    fn gaussian(&self) -> Option<([u32; 8], f64)> {
        None
    }
}

impl<F: Fn(usize, &mut [f32]) + Sync> NoiseSource for F {
    fn fill(&self, first: usize, out: &mut [f32]) {
        self(first, out);
    }
}

/// A Burn backend with the operations of the layers.
pub trait Kernels: Backend {
    /// How many micro-batches may be worked on at a time. The result does not depend on it.
    fn workers() -> usize {
        1
    }

    /// Readies the process for many large tensors; called once an engine.
    fn warm_up() {}

    /// Product and bias.
    ///
    /// # Shapes
    /// - input: `[rows, d_in]`, weight: `[d_in, d_out]`, bias: `[d_out]`
    /// - output: `[rows, d_out]`
    fn affine(input: Tensor<Self, 2>, weight: Tensor<Self, 2>, bias: Tensor<Self, 1>) -> Tensor<Self, 2> {
        portable::affine(input, weight, bias)
    }

    /// Rows brought to mean 0 and variance 1, then scaled and shifted.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d]`, gain, bias: `[d]`
    /// - output: the output and the normalized input `[batch, seq, d]`, the reciprocal deviation `[batch, seq, 1]`
    fn normalize(
        input: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
        bias: Tensor<Self, 1>,
        epsilon: f64,
    ) -> [Tensor<Self, 3>; 3] {
        portable::normalize(input, gain, bias, epsilon)
    }

    /// Gradients of [`Kernels::normalize`]: of the input, and each example's of gain and bias.
    ///
    /// # Shapes
    /// - grad, normalized: `[batch, seq, d]`, reciprocal: `[batch, seq, 1]`, gain: `[d]`
    /// - output: `[batch, seq, d]` and twice `[batch, d]`
    fn normalize_backward(
        grad: Tensor<Self, 3>,
        normalized: Tensor<Self, 3>,
        reciprocal: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
    ) -> (Tensor<Self, 3>, [Tensor<Self, 2>; 2]) {
        portable::normalize_backward(grad, normalized, reciprocal, gain)
    }

    /// Rows brought to a mean square of 1, then scaled.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d]`, gain: `[d]`
    /// - output: the output and the normalized input `[batch, seq, d]`, the reciprocal root mean square
    ///   `[batch, seq, 1]`
    fn rms_normalize(input: Tensor<Self, 3>, gain: Tensor<Self, 1>, epsilon: f64) -> [Tensor<Self, 3>; 3] {
        portable::rms_normalize(input, gain, epsilon)
    }

    /// Gradients of [`Kernels::rms_normalize`]: of the input, and each example's of the gain.
    ///
    /// # Shapes
    /// - grad, normalized: `[batch, seq, d]`, reciprocal: `[batch, seq, 1]`, gain: `[d]`
    /// - output: `[batch, seq, d]` and `[batch, d]`
    fn rms_normalize_backward(
        grad: Tensor<Self, 3>,
        normalized: Tensor<Self, 3>,
        reciprocal: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
    ) -> (Tensor<Self, 3>, Tensor<Self, 2>) {
        portable::rms_normalize_backward(grad, normalized, reciprocal, gain)
    }

    /// GELU in its tanh form ("gelu_new").
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    fn gelu_new(input: Tensor<Self, 3>) -> Tensor<Self, 3> {
        portable::gelu_new(input)
    }

    /// Input gradient of [`Kernels::gelu_new`].
    ///
    /// # Shapes
    /// - input, grad, output: `[batch, seq, d]`
    fn gelu_new_backward(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 3> {
        portable::gelu_new_backward(input, grad)
    }

    /// GELU of one tensor, times another.
    ///
    /// # Shapes
    /// - gate, up, output: `[batch, seq, d]`
    fn gelu_gate(gate: Tensor<Self, 3>, up: Tensor<Self, 3>) -> Tensor<Self, 3> {
        portable::gelu_gate(gate, up)
    }

    /// Gradients of [`Kernels::gelu_gate`]: of `gate` and of `up`.
    ///
    /// # Shapes
    /// - gate, up, grad, output: `[batch, seq, d]`
    fn gelu_gate_backward(
        gate: Tensor<Self, 3>,
        up: Tensor<Self, 3>,
        grad: Tensor<Self, 3>,
    ) -> [Tensor<Self, 3>; 2] {
        portable::gelu_gate_backward(gate, up, grad)
    }

    /// Pairs of coordinates i and i + d/2 turned by the angles of their position.
    ///
    /// # Shapes
    /// - values, output: `[batch, heads, seq, d]`, cos, sin: `[seq, d/2]`
    fn rotate(values: Tensor<Self, 4>, cos: Tensor<Self, 2>, sin: Tensor<Self, 2>) -> Tensor<Self, 4> {
        portable::rotate(values, cos, sin)
    }

    /// The rows of the last `length` positions side by side, the oldest first; zeros before the first position.
    ///
    /// # Shapes
    /// - values: `[batch, seq, d]`
    /// - output: `[batch, seq, length·d]`
    fn history(values: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3> {
        portable::history(values, length)
    }

    /// Input gradient of [`Kernels::history`].
    ///
    /// # Shapes
    /// - grad: `[batch, seq, length·d]`
    /// - output: `[batch, seq, d]`
    fn history_backward(grad: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3> {
        portable::history_backward(grad, length)
    }

    /// Softmax over the keys up to each query, of scores times `scale`.
    ///
    /// # Shapes
    /// - scores, output: `[batch, heads, queries, keys]` with queries = keys
    fn causal_softmax(scores: Tensor<Self, 4>, scale: f64) -> Tensor<Self, 4> {
        portable::causal_softmax(scores, scale)
    }

    /// GELU with the normal distribution function itself: x·Φ(x).
    ///
    /// # Shapes
    /// - input, output: `[batch, seq, d]`
    fn gelu_erf(input: Tensor<Self, 3>) -> Tensor<Self, 3> {
        portable::gelu_erf(input)
    }

    /// Input gradient of [`Kernels::gelu_erf`].
    ///
    /// # Shapes
    /// - input, grad, output: `[batch, seq, d]`
    fn gelu_erf_backward(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 3> {
        portable::gelu_erf_backward(input, grad)
    }

    /// Softmax of scores times `scale` plus `bias`, over the keys before each example's `length` and, where `causal`,
    /// up to each query.
    ///
    /// # Shapes
    /// - scores, output: `[batch, heads, queries, keys]`, bias: `[heads, queries, keys]`, lengths: `[batch]`, at least 1
    fn masked_softmax(
        scores: Tensor<Self, 4>,
        bias: Option<Tensor<Self, 3>>,
        lengths: Option<Tensor<Self, 1, Int>>,
        causal: bool,
        scale: f64,
    ) -> Tensor<Self, 4> {
        portable::masked_softmax(scores, bias, lengths, causal, scale)
    }

    /// Sums along the diagonals: over all pairs of places that are key − query apart.
    ///
    /// # Shapes
    /// - values: `[batch, heads, queries, keys]`
    /// - output: `[batch, heads, queries + keys − 1]`, from −(queries − 1) to keys − 1
    fn diagonal_sums(values: Tensor<Self, 4>) -> Tensor<Self, 3> {
        portable::diagonal_sums(values)
    }

    /// Gradient of the scores of [`Kernels::causal_softmax`] and [`Kernels::masked_softmax`].
    ///
    /// # Shapes
    /// - probabilities, grad, output: `[batch, heads, queries, keys]`
    fn softmax_backward(
        probabilities: Tensor<Self, 4>,
        grad: Tensor<Self, 4>,
        scale: f64,
    ) -> Tensor<Self, 4> {
        portable::softmax_backward(probabilities, grad, scale)
    }

    /// Heads, of several tensors of one shape, laid side by side in the last axis.
    ///
    /// # Shapes
    /// - parts: `[batch, heads, seq, d_head]` each
    /// - output: `[batch, seq, parts·heads·d_head]`
    fn merge_heads(parts: Vec<Tensor<Self, 4>>) -> Tensor<Self, 3> {
        portable::merge_heads(parts)
    }

    /// Negative log-likelihood of each target, in nats.
    ///
    /// # Shapes
    /// - logits: `[rows, vocabulary]`, targets, output: `[rows]`
    fn token_nll(logits: Tensor<Self, 2>, targets: Tensor<Self, 1, Int>) -> Tensor<Self, 1> {
        portable::token_nll(logits, targets)
    }

    /// Gradient of the weighted sum of the rows' negative log-likelihoods by the logits.
    ///
    /// # Shapes
    /// - logits, output: `[rows, vocabulary]`, targets, weights: `[rows]`
    fn cross_entropy_backward(
        logits: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        weights: Tensor<Self, 1>,
    ) -> Tensor<Self, 2> {
        portable::cross_entropy_backward(logits, targets, weights)
    }

    /// Sums over positions.
    ///
    /// # Shapes
    /// - values: `[batch, seq, d]`
    /// - output: `[batch, d]`
    fn sum_positions(values: Tensor<Self, 3>) -> Tensor<Self, 2> {
        portable::sum_positions(values)
    }

    /// Each example times its factor.
    ///
    /// # Shapes
    /// - values, output: `[batch, seq, d]`, factors: `[batch]`
    fn scale_examples(values: Tensor<Self, 3>, factors: Tensor<Self, 1>) -> Tensor<Self, 3> {
        portable::scale_examples(values, factors)
    }

    /// Sum of rows, each times its weight.
    ///
    /// # Shapes
    /// - values: `[batch, n]`, weights: `[batch]`
    /// - output: `[n]`
    fn weighted_sum(values: Tensor<Self, 2>, weights: Tensor<Self, 1>) -> Tensor<Self, 1> {
        portable::weighted_sum(values, weights)
    }

    /// (values + noise) / divisor. Elements that the source leaves out become NaN, so that none passes without noise.
    ///
    /// # Shapes
    /// - values, output: `[n]`
    fn add_and_divide(values: Tensor<Self, 1>, noise: &dyn NoiseSource, divisor: f64) -> Tensor<Self, 1> {
        portable::add_and_divide(values, noise, divisor)
    }

    /// Weights and both averages of the gradient after a step of Adam, from weights, gradient and averages before it.
    ///
    /// # Shapes
    /// - all: `[n]`
    fn adam(before: [Tensor<Self, 1>; 4], step: &AdamStep) -> [Tensor<Self, 1>; 3] {
        portable::adam(before, step)
    }

    /// Matrix product that rounds as the tensors' format does. Norms and sums of gradients are made of these alone: a device's
    /// usual product may round its operands more, and a gradient then be longer than its norm says.
    ///
    /// # Shapes
    /// - a: `[…, m, k]`, b: `[…, k, n]`
    /// - output: `[…, m, n]`
    fn product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        a.matmul(b)
    }

    /// Matrix product of operands rounded to 16 bits (bfloat16), added up in 32.
    ///
    /// # Shapes
    /// As [`Kernels::product`].
    fn product_bf16<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        portable::product_bf16(a, b)
    }

    /// Inner products of rows.
    ///
    /// # Shapes
    /// - a, b: `[batch, n]`
    /// - output: `[batch]`
    fn dots(a: Tensor<Self, 2>, b: Tensor<Self, 2>) -> Tensor<Self, 1> {
        portable::dots(a, b)
    }

    /// ‖inputᵀ·grad‖² of each example, by whichever way takes fewer multiplications.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d_in]`, grad: `[batch, seq, d_out]`
    /// - output: `[batch]`
    fn product_squares(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> {
        portable::product_squares(input, grad)
    }

    /// Squared norm of each example's gradient of a table from looking tokens up, repeated tokens included.
    ///
    /// # Shapes
    /// - tokens: `[batch, looked_up]`, grad: `[batch, looked_up, d]`
    /// - output: `[batch]`
    fn lookup_squares(tokens: Tensor<Self, 2, Int>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> {
        portable::lookup_squares(tokens, grad)
    }

    /// Inner product of each example's two gradients of a tied table: from the look-up and from the head.
    ///
    /// # Shapes
    /// - tokens: `[batch, looked_up]`, grad: `[batch, looked_up, d]`, hidden: `[batch, targets, d]`,
    ///   logits_grad: `[batch, targets, vocabulary]`
    /// - output: `[batch]`
    fn lookup_head_dots(
        tokens: Tensor<Self, 2, Int>,
        grad: Tensor<Self, 3>,
        hidden: Tensor<Self, 3>,
        logits_grad: Tensor<Self, 3>,
    ) -> Tensor<Self, 1> {
        portable::lookup_head_dots(tokens, grad, hidden, logits_grad)
    }
}
