//! The kernels that a graphics processor does not take from the library as they are: noise, and products that round as their
//! tensors' format does.

mod noise;
mod product;

use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime};

use super::{Kernels, NoiseSource};
use crate::tensor::Tensor;

impl<R: CubeRuntime, T: BoolElement> Kernels for CubeBackend<R, f32, i32, T> {
    fn add_and_divide(values: Tensor<Self, 1>, noise: &dyn NoiseSource, divisor: f64) -> Tensor<Self, 1> {
        noise::add_and_divide(values, noise, divisor)
    }

    fn product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product(a, b)
    }

    fn product_bf16<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product_bf16(a, b)
    }
}
