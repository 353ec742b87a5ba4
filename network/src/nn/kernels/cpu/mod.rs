//! Fused kernels of the processor backend, for tensors of 32 bits. They open tensors as slices, and write in place if nothing
//! else holds the tensor.

mod activation;
mod amx;
mod attention;
mod blocked_attention;
mod context;
mod factors;
mod ghost_norm;
mod linear;
mod loss;
mod math;
mod matrix;
mod narrow;
mod norm;
mod parts;
mod product;
mod row_product;
#[cfg(test)]
mod tests;
mod threads;
mod tile;
mod update;

pub use self::amx::is_present as has_matrix_unit;
pub use self::threads::{in_parallel, zeros_in_memory};

use super::{
    AdamStep, AdamTensors, Attended, BlockedAttention, CachedKeys, GradientFactors, Kernels, Mask, SumTile,
    fused_in_f32, portable,
};
use plan::Precision;

use crate::tensor::{DType, Flex, FlexTensor, Int, Tensor, TensorData, TensorPrimitive};

impl Kernels for Flex {
    const HOLDS_16_BITS: bool = true;

    fn on_threads<T>(threads: usize, work: impl FnOnce() -> T) -> T {
        threads::on_threads(threads, work)
    }

    fn widen<const D: usize>(values: Tensor<Self, D>) -> Tensor<Self, D> {
        narrow::widen(values)
    }

    /// Products of layers say so in `row_product` and `amx`. Attention multiplies the matrices of each row and head by themselves, and other
    /// kernels read one row after the other.
    fn rows_are_independent(precision: Precision) -> bool {
        precision == Precision::F32 || has_matrix_unit()
    }

    fn workers() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Makes glibc's allocator keep large blocks. It returns blocks above a threshold to the
    /// system, which then clears every page again for the next tensor; this took a fifth of a
    /// step's time. It raises the threshold to the largest block that was freed, up to 32 MiB
    /// (mallopt(3)). Other allocators are not affected.
    fn warm_up() {
        const LARGEST: usize = (32 << 20) - (64 << 10);
        drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGEST)));
    }

    fn product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product(a, b)
    }

    fn product_bf16<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product_bf16(a, b)
    }

    fn attention_product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product(a, b)
    }

    fn blocked_attention(attended: &Attended<Self>) -> Option<BlockedAttention<Self>> {
        let in_blocks =
            BlockedAttention { forward: blocked_attention::forward, backward: blocked_attention::backward };
        (attended.queries.dtype() == DType::F32).then_some(in_blocks)
    }

    fn add_factors(
        gradients: &mut [GradientFactors<Self>],
        shape: [usize; 2],
        add: &mut dyn FnMut(SumTile<'_>),
    ) {
        factors::add_factors(gradients, shape, add);
    }

    fn wide_product(a: Tensor<Self, 2>, b: Tensor<Self, 2>) -> Tensor<Self, 2> {
        if narrow::is_narrow(&b) && a.dtype() == DType::F32 {
            return threads::on_threads(Self::workers(), || narrow::product(a, b));
        }
        linear::wide_product(a, b, Self::workers())
    }

    fn layer_product(input: Tensor<Self, 2>, weight: Tensor<Self, 2>) -> Tensor<Self, 2> {
        match input.dtype() {
            DType::F32 => row_product::product(input, weight),
            _ => input.matmul(weight),
        }
    }

    fn affine(input: Tensor<Self, 2>, weight: Tensor<Self, 2>, bias: Tensor<Self, 1>) -> Tensor<Self, 2> {
        match input.dtype() {
            DType::F32 => linear::add_bias(Self::layer_product(input, weight), bias),
            _ => portable::affine(input, weight, bias),
        }
    }

    fused_in_f32! {
        fn normalize(input: Tensor<Self, 3>, gain: Tensor<Self, 1>, bias: Tensor<Self, 1>, epsilon: f64) -> [Tensor<Self, 3>; 3]
            = norm::normalize, if input;
        fn normalize_backward(
            grad: Tensor<Self, 3>, normalized: Tensor<Self, 3>, reciprocal: Tensor<Self, 3>, gain: Tensor<Self, 1>,
        ) -> (Tensor<Self, 3>, [Tensor<Self, 2>; 2]) = norm::normalize_backward, if grad;
        fn rms_normalize(input: Tensor<Self, 3>, gain: Tensor<Self, 1>, epsilon: f64) -> [Tensor<Self, 3>; 3]
            = norm::rms_normalize, if input;
        fn rms_normalize_backward(
            grad: Tensor<Self, 3>, normalized: Tensor<Self, 3>, reciprocal: Tensor<Self, 3>, gain: Tensor<Self, 1>,
        ) -> (Tensor<Self, 3>, Tensor<Self, 2>) = norm::rms_normalize_backward, if grad;
        fn gelu_new(input: Tensor<Self, 3>) -> Tensor<Self, 3> = activation::gelu_new, if input;
        fn gelu_new_backward(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 3>
            = activation::gelu_new_backward, if grad;
        fn gelu_gate(gate: Tensor<Self, 3>, up: Tensor<Self, 3>) -> Tensor<Self, 3> = activation::gelu_gate, if gate;
        fn gelu_gate_backward(gate: Tensor<Self, 3>, up: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> [Tensor<Self, 3>; 2]
            = activation::gelu_gate_backward, if grad;
        fn silu_gate(gate: Tensor<Self, 3>, up: Tensor<Self, 3>) -> Tensor<Self, 3> = activation::silu_gate, if gate;
        fn silu_gate_backward(gate: Tensor<Self, 3>, up: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> [Tensor<Self, 3>; 2]
            = activation::silu_gate_backward, if grad;
        fn gelu_erf(input: Tensor<Self, 3>) -> Tensor<Self, 3> = activation::gelu_erf, if input;
        fn gelu_erf_backward(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 3>
            = activation::gelu_erf_backward, if grad;
        fn rotate(values: Tensor<Self, 4>, cos: Tensor<Self, 2>, sin: Tensor<Self, 2>) -> Tensor<Self, 4>
            = attention::rotate, if values;
        fn context_concat(values: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3> = context::context_concat, if values;
        fn context_concat_backward(grad: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3>
            = context::context_concat_backward, if grad;
        fn causal_softmax(scores: Tensor<Self, 4>, scale: f64) -> Tensor<Self, 4> = attention::causal_softmax, if scores;
        fn masked_softmax(scores: Tensor<Self, 4>, mask: Mask<Self>, scale: f64) -> Tensor<Self, 4>
            = attention::masked_softmax, if scores;
        fn cached_attention(queries: Tensor<Self, 4>, keys: CachedKeys<'_, Self>, scale: f64) -> Tensor<Self, 3>
            = attention::cached_attention, if queries;
        fn write_position(kept: Tensor<Self, 4>, new: Tensor<Self, 4>, at: &[usize]) -> Tensor<Self, 4>
            = attention::write_position, if kept;
        fn softmax_backward(probabilities: Tensor<Self, 4>, grad: Tensor<Self, 4>, scale: f64) -> Tensor<Self, 4>
            = attention::softmax_backward, if grad;
        fn diagonal_sums(values: Tensor<Self, 4>) -> Tensor<Self, 3> = attention::diagonal_sums, if values;
        fn merge_heads(parts: Vec<Tensor<Self, 4>>) -> Tensor<Self, 3> = attention::merge_heads, if parts[0];
        fn token_nll(logits: Tensor<Self, 2>, targets: Tensor<Self, 1, Int>) -> Tensor<Self, 1> = loss::token_nll, if logits;
        fn cross_entropy_backward(logits: Tensor<Self, 2>, targets: Tensor<Self, 1, Int>, weights: Tensor<Self, 1>) -> Tensor<Self, 2>
            = loss::cross_entropy_backward, if logits;
        fn sum_positions(values: Tensor<Self, 3>) -> Tensor<Self, 2> = linear::sum_positions, if values;
        fn scale_examples(values: Tensor<Self, 3>, factors: Tensor<Self, 1>) -> Tensor<Self, 3> = linear::scale_examples, if values;
        fn weighted_sum(values: Tensor<Self, 2>, weights: Tensor<Self, 1>) -> Tensor<Self, 1> = linear::weighted_sum, if values;
        fn add_on_grid(values: Tensor<Self, 1>, unit: f64, sums: &mut [i64]) -> bool = update::add_on_grid, if values;
        fn add_truncated(values: Tensor<Self, 2>, factor: f64, room: u128, sums: &mut [i64], pitch: usize) -> u128
            = update::add_truncated, if values;
        fn square_sum(values: Tensor<Self, 1>) -> f64 = update::square_sum, if values;
        fn adam(tensors: AdamTensors<Self>, grad: Tensor<Self, 1>, step: &AdamStep) -> AdamTensors<Self> = update::adam, if grad;
        fn dots(a: Tensor<Self, 2>, b: Tensor<Self, 2>) -> Tensor<Self, 1> = ghost_norm::dots, if a;
        fn product_squares(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> = ghost_norm::product_squares, if input;
        fn lookup_squares(tokens: Tensor<Self, 2, Int>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> = ghost_norm::lookup_squares, if grad;
        fn lookup_head_dots(
            tokens: Tensor<Self, 2, Int>, grad: Tensor<Self, 3>, hidden: Tensor<Self, 3>, logits_grad: Tensor<Self, 3>,
        ) -> Tensor<Self, 1> = ghost_norm::lookup_head_dots, if grad;
    }
}

/// Returns the tensor with storage that is exactly its elements in row-major order.
fn open<const D: usize>(tensor: Tensor<Flex, D>) -> FlexTensor {
    tensor.into_primitive().tensor().to_contiguous()
}

fn open_int<const D: usize>(tensor: Tensor<Flex, D, Int>) -> FlexTensor {
    tensor.into_primitive().to_contiguous()
}

fn close<const D: usize>(tensor: FlexTensor) -> Tensor<Flex, D> {
    Tensor::from_primitive(TensorPrimitive::Float(tensor))
}

/// Zeros in one allocation: [`FlexTensor::empty`] copies them to another one.
fn zeros<const D: usize>(shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(vec![0.0_f32; shape.iter().product()], shape))
}

fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.storage()
}

fn values_mut(tensor: &mut FlexTensor) -> &mut [f32] {
    tensor.storage_mut()
}

fn ints(tensor: &FlexTensor) -> &[i32] {
    tensor.storage()
}
