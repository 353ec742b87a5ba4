//! Products with bias and weighted sums.

use super::super::Kernels;
use crate::tensor::{Backend, DType, Tensor};

pub fn affine<B: Backend>(input: Tensor<B, 2>, weight: Tensor<B, 2>, bias: Tensor<B, 1>) -> Tensor<B, 2> {
    input.matmul(weight) + bias.unsqueeze()
}

pub fn product_bf16<B: Backend, const D: usize>(a: Tensor<B, D>, b: Tensor<B, D>) -> Tensor<B, D> {
    let dtype = a.dtype();
    let [a, b] = [a, b].map(|operand| operand.cast(DType::BF16).cast(dtype));
    a.matmul(b)
}

pub fn sum_positions<B: Backend>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, _, d] = values.dims();
    values.sum_dim(1).reshape([batch, d])
}

pub fn scale_examples<B: Backend>(values: Tensor<B, 3>, factors: Tensor<B, 1>) -> Tensor<B, 3> {
    let batch = factors.dims()[0];
    values * factors.reshape([batch, 1, 1])
}

pub fn weighted_sum<B: Kernels>(values: Tensor<B, 2>, weights: Tensor<B, 1>) -> Tensor<B, 1> {
    let n = values.dims()[1];
    B::product(weights.unsqueeze::<2>(), values).reshape([n])
}
