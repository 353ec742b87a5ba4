//! The operations that a backend may fuse. [`portable`] defines each in plain tensor operations. A
//! backend overrides those that it computes faster or more exactly.

mod adam;
mod attention;
mod cpu;
mod factors;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod gpu;
pub mod portable;

pub use adam::{AdamStep, AdamTensors};
pub use attention::{Attended, BlockedAttention, CachedKeys, Mask};
pub use factors::{GradientFactors, SumTile};

pub(super) use self::cpu::in_parallel;
pub use self::cpu::{has_matrix_unit, zeros_in_memory};
pub use self::portable::piece_length;
use crate::tensor::{Backend, FloatDType, Int, Tensor};
use plan::Precision;

/// Implements kernels by functions for tensors of 32 bits. Tensors of other formats use the
/// portable definition.
///
/// `if` names the tensor whose format decides.
macro_rules! fused_in_f32 {
    ($(fn $kernel:ident($($argument:ident: $type:ty),* $(,)?) -> $output:ty = $fused:path, if $tensor:expr;)*) => {$(
        fn $kernel($($argument: $type),*) -> $output {
            if $tensor.dtype() == $crate::tensor::DType::F32 {
                $fused($($argument),*)
            } else {
                $crate::nn::kernels::portable::$kernel($($argument),*)
            }
        }
    )*};
}
use fused_in_f32;

/// A Burn backend with the kernels of the layers.
pub trait Kernels: Backend {
    /// Whether frozen weights stay in the 16 bits of their file.
    const HOLDS_16_BITS: bool = false;

    /// Whether no operation of a forward or backward pass lets one row of a batch change the rounding of another, for weights of 32 bits
    /// and products of this precision. Exact sums then compute several examples in one pass.
    fn rows_are_independent(_precision: Precision) -> bool {
        false
    }

    /// Returns the number of micro-batches that are processed at a time. Affects speed only.
    fn workers() -> usize {
        1
    }

    /// Runs `work`, whose kernels may use this number of threads. Affects speed only.
    fn on_threads<T>(_threads: usize, work: impl FnOnce() -> T) -> T {
        work()
    }

    /// Widens values of 16 bits to 32 bits. No value changes.
    fn widen<const D: usize>(values: Tensor<Self, D>) -> Tensor<Self, D> {
        values.cast(FloatDType::F32)
    }

    /// Prepares the process for many large tensors. Called once before training or inference.
    fn warm_up() {}

    /// Matrix product plus bias.
    ///
    /// # Shapes
    /// - input: `[rows, d_in]`, weight: `[d_in, d_out]`, bias: `[d_out]`
    /// - output: `[rows, d_out]`
    fn affine(input: Tensor<Self, 2>, weight: Tensor<Self, 2>, bias: Tensor<Self, 1>) -> Tensor<Self, 2> {
        portable::affine(input, weight, bias)
    }

    /// Layer normalization: scales rows to mean 0 and variance 1, multiplies them by the gain and adds the bias.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d]`, gain, bias: `[d]`
    /// - output: the output and the normalized input `[batch, seq, d]`, the reciprocal standard deviation `[batch, seq, 1]`
    fn normalize(
        input: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
        bias: Tensor<Self, 1>,
        epsilon: f64,
    ) -> [Tensor<Self, 3>; 3] {
        portable::normalize(input, gain, bias, epsilon)
    }

    /// Gradients of [`Kernels::normalize`]: of the input, and per example of gain and bias.
    ///
    /// # Shapes
    /// - grad, normalized: `[batch, seq, d]`, reciprocal: `[batch, seq, 1]`, gain: `[d]`
    /// - output: `[batch, seq, d]` and two of `[batch, d]`
    fn normalize_backward(
        grad: Tensor<Self, 3>,
        normalized: Tensor<Self, 3>,
        reciprocal: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
    ) -> (Tensor<Self, 3>, [Tensor<Self, 2>; 2]) {
        portable::normalize_backward(grad, normalized, reciprocal, gain)
    }

    /// RMS normalization: scales rows to a mean square of 1 and multiplies them by the gain.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d]`, gain: `[d]`
    /// - output: the output and the normalized input `[batch, seq, d]`, the reciprocal root mean square
    ///   `[batch, seq, 1]`
    fn rms_normalize(input: Tensor<Self, 3>, gain: Tensor<Self, 1>, epsilon: f64) -> [Tensor<Self, 3>; 3] {
        portable::rms_normalize(input, gain, epsilon)
    }

    /// Gradients of [`Kernels::rms_normalize`]: of the input, and per example of the gain.
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

    /// GELU in its tanh form, "gelu_new".
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

    /// gelu_new(gate)·up
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

    /// gate·σ(gate)·up
    ///
    /// # Shapes
    /// - gate, up, output: `[batch, seq, d]`
    fn silu_gate(gate: Tensor<Self, 3>, up: Tensor<Self, 3>) -> Tensor<Self, 3> {
        portable::silu_gate(gate, up)
    }

    /// Gradients of [`Kernels::silu_gate`]: of `gate` and of `up`.
    ///
    /// # Shapes
    /// - gate, up, grad, output: `[batch, seq, d]`
    fn silu_gate_backward(
        gate: Tensor<Self, 3>,
        up: Tensor<Self, 3>,
        grad: Tensor<Self, 3>,
    ) -> [Tensor<Self, 3>; 2] {
        portable::silu_gate_backward(gate, up, grad)
    }

    /// Rotates the pairs of coordinates i and i + d/2 by the angles of their position.
    ///
    /// # Shapes
    /// - values, output: `[batch, heads, seq, d]`, cos, sin: `[seq, d/2]`
    fn rotate(values: Tensor<Self, 4>, cos: Tensor<Self, 2>, sin: Tensor<Self, 2>) -> Tensor<Self, 4> {
        portable::rotate(values, cos, sin)
    }

    /// Concatenates the rows of the last `length` positions, oldest first, with zeros before the first position.
    ///
    /// # Shapes
    /// - values: `[batch, seq, d]`
    /// - output: `[batch, seq, length·d]`
    fn context_concat(values: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3> {
        portable::context_concat(values, length)
    }

    /// Input gradient of [`Kernels::context_concat`].
    ///
    /// # Shapes
    /// - grad: `[batch, seq, length·d]`
    /// - output: `[batch, seq, d]`
    fn context_concat_backward(grad: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3> {
        portable::context_concat_backward(grad, length)
    }

    /// Softmax of scores times `scale`, where a query attends to no later key. The last query belongs to the last key.
    ///
    /// # Shapes
    /// - scores, output: `[batch, heads, queries, keys]` with queries ≤ keys
    fn causal_softmax(scores: Tensor<Self, 4>, scale: f64) -> Tensor<Self, 4> {
        portable::causal_softmax(scores, scale)
    }

    /// Exact GELU: x·Φ(x).
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

    /// Softmax of scores times `scale`, plus a bias, over the keys that the mask admits.
    ///
    /// # Shapes
    /// - scores, output: `[batch, heads, queries, keys]`
    fn masked_softmax(scores: Tensor<Self, 4>, mask: Mask<Self>, scale: f64) -> Tensor<Self, 4> {
        portable::masked_softmax(scores, mask, scale)
    }

    /// `softmax(scale·Q·Kᵀ)·V` and its gradients without holding probabilities, if the device has them for these tensors.
    fn blocked_attention(_attended: &Attended<Self>) -> Option<BlockedAttention<Self>> {
        None
    }

    /// Attention of one query of each row to the keys in use: softmax of the products times
    /// `scale`, plus the bias, and the sum of the values. Query head h uses key head
    /// h·kv_heads/heads.
    ///
    /// # Shapes
    /// - queries: `[rows, heads, 1, d_head]`
    /// - output: `[rows, 1, heads·d_head]`
    fn cached_attention(queries: Tensor<Self, 4>, keys: CachedKeys<'_, Self>, scale: f64) -> Tensor<Self, 3> {
        portable::cached_attention(queries, keys, scale)
    }

    /// Writes each row's new position to place `at` of the row's third axis, and returns `kept`.
    ///
    /// # Shapes
    /// - kept, output: `[rows, heads, capacity, d_head]`, new: `[rows, heads, 1, d_head]`, at: one place a row
    fn write_position(kept: Tensor<Self, 4>, new: Tensor<Self, 4>, at: &[usize]) -> Tensor<Self, 4> {
        portable::write_position(kept, new, at)
    }

    /// Sums along diagonals: one for each distance key − query.
    ///
    /// # Shapes
    /// - values: `[batch, heads, queries, keys]`
    /// - output: `[batch, heads, queries + keys − 1]`, from −(queries − 1) to keys − 1
    fn diagonal_sums(values: Tensor<Self, 4>) -> Tensor<Self, 3> {
        portable::diagonal_sums(values)
    }

    /// Gradient of the scores in [`Kernels::causal_softmax`] and [`Kernels::masked_softmax`].
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

    /// Concatenates the heads of several tensors in the last axis.
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

    /// Gradient, with respect to the logits, of the weighted sum of the rows' negative log-likelihoods.
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

    /// Sum over positions.
    ///
    /// # Shapes
    /// - values: `[batch, seq, d]`
    /// - output: `[batch, d]`
    fn sum_positions(values: Tensor<Self, 3>) -> Tensor<Self, 2> {
        portable::sum_positions(values)
    }

    /// Multiplies each example by its factor.
    ///
    /// # Shapes
    /// - values, output: `[batch, seq, d]`, factors: `[batch]`
    fn scale_examples(values: Tensor<Self, 3>, factors: Tensor<Self, 1>) -> Tensor<Self, 3> {
        portable::scale_examples(values, factors)
    }

    /// Weighted sum of rows.
    ///
    /// # Shapes
    /// - values: `[batch, n]`, weights: `[batch]`
    /// - output: `[n]`
    fn weighted_sum(values: Tensor<Self, 2>, weights: Tensor<Self, 1>) -> Tensor<Self, 1> {
        portable::weighted_sum(values, weights)
    }

    /// Rounds each element to the nearest multiple of `unit`, a power of two, and adds these multiples to `sums`, which is in
    /// the memory of the host. Returns whether all elements are below 2⁵¹ units and all sums below 2⁶², so that nothing
    /// wrapped.
    ///
    /// # Shapes
    /// - values: `[n]` for n sums
    fn add_on_grid(values: Tensor<Self, 1>, unit: f64, sums: &mut [i64]) -> bool {
        portable::add_on_grid(values, unit, sums)
    }

    /// Rounds each element times `factor` toward zero and adds these integers to `sums`, which is in the memory of the host.
    /// Subtracts the sum of the integers' squares, computed without rounding, from `room`, and returns what is left. Leaves out
    /// stretches of up to 1,024 integers of a row whose squares exceed the room left, and those with an element that is not
    /// finite.
    ///
    /// # Shapes
    /// - values: `[rows, columns]`; row i is added to the sums from i·`pitch` on
    fn add_truncated(
        values: Tensor<Self, 2>,
        factor: f64,
        room: u128,
        sums: &mut [i64],
        pitch: usize,
    ) -> u128 {
        portable::add_truncated(values, factor, room, sums, pitch)
    }

    /// Computes the gradients of a matrix, each times its factor, rounds them toward zero, and hands over their sum tile by tile, from the
    /// first rows to the last. Takes squares from each gradient's room and leaves out what exceeds it, as [`Kernels::add_truncated`] does.
    /// The integers of a gradient do not depend on the other gradients. Tiles that are zero may be missing.
    fn add_factors(
        gradients: &mut [GradientFactors<Self>],
        shape: [usize; 2],
        add: &mut dyn FnMut(SumTile<'_>),
    ) {
        portable::add_factors(gradients, shape, add);
    }

    /// Sum of the squares of all elements, in double precision.
    ///
    /// # Shapes
    /// - values: `[n]`
    fn square_sum(values: Tensor<Self, 1>) -> f64 {
        portable::square_sum(values)
    }

    /// Takes one step of Adam for one parameter.
    ///
    /// # Shapes
    /// - grad: `[n]`
    fn adam(tensors: AdamTensors<Self>, grad: Tensor<Self, 1>, step: &AdamStep) -> AdamTensors<Self> {
        portable::adam(tensors, grad, step)
    }

    /// Matrix product that rounds no more than the tensors' format. Gradient norms and sums use this product only. A device's
    /// default product may round its operands further, and a gradient could then be longer than its computed norm.
    ///
    /// # Shapes
    /// - a: `[…, m, k]`, b: `[…, k, n]`
    /// - output: `[…, m, n]`
    fn product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        a.matmul(b)
    }

    /// Matrix product of activations in a training step, as attention needs it.
    ///
    /// # Shapes
    /// - a: `[…, m, k]`, b: `[…, k, n]`
    /// - output: `[…, m, n]`
    fn attention_product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        a.matmul(b)
    }

    /// A layer's matrix product in a training step. The weight may be a transposed view, and in 16 bits on a device that holds
    /// them.
    ///
    /// # Shapes
    /// - input: `[rows, d_in]`, weight: `[d_in, d_out]`
    /// - output: `[rows, d_out]`
    fn layer_product(input: Tensor<Self, 2>, weight: Tensor<Self, 2>) -> Tensor<Self, 2> {
        input.matmul(weight)
    }

    /// Matrix product of few rows and many columns, as one step of generation needs. It may use several threads. `b` may be in 16
    /// bits on a device that holds them.
    ///
    /// # Shapes
    /// - a: `[m, k]`, b: `[k, n]`
    /// - output: `[m, n]`
    fn wide_product(a: Tensor<Self, 2>, b: Tensor<Self, 2>) -> Tensor<Self, 2> {
        a.matmul(b)
    }

    /// [`Kernels::product`] of operands rounded to bfloat16, accumulated in 32 bits.
    fn product_bf16<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        portable::product_bf16(a, b)
    }

    /// [`Kernels::product`] or [`Kernels::product_bf16`].
    fn product_in<const D: usize>(
        precision: Precision,
        a: Tensor<Self, D>,
        b: Tensor<Self, D>,
    ) -> Tensor<Self, D> {
        match precision {
            Precision::F32 => Self::product(a, b),
            Precision::Bf16 => Self::product_bf16(a, b),
        }
    }

    /// Inner product of each pair of rows.
    ///
    /// # Shapes
    /// - a, b: `[batch, n]`
    /// - output: `[batch]`
    fn dots(a: Tensor<Self, 2>, b: Tensor<Self, 2>) -> Tensor<Self, 1> {
        portable::dots(a, b)
    }

    /// ‖inputᵀ·grad‖² of each example, by the form that needs fewer multiplications.
    ///
    /// # Shapes
    /// - input: `[batch, seq, d_in]`, grad: `[batch, seq, d_out]`
    /// - output: `[batch]`
    fn product_squares(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> {
        portable::product_squares(input, grad)
    }

    /// Squared norm of each example's gradient of an embedding table. Tokens may repeat.
    ///
    /// # Shapes
    /// - tokens: `[batch, looked_up]`, grad: `[batch, looked_up, d]`
    /// - output: `[batch]`
    fn lookup_squares(tokens: Tensor<Self, 2, Int>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> {
        portable::lookup_squares(tokens, grad)
    }

    /// Inner product of each example's two gradients of a tied table, from the embedding and from the head.
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
