//! Kernels of graphics processors that differ from the library's: noise drawn on the device, and products that round no more
//! than their tensors' format.

mod noise;
mod product;

use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime};

use super::{Kernels, NoiseSource, fused_in_f32};
use crate::tensor::Tensor;

impl<R: CubeRuntime, T: BoolElement> Kernels for CubeBackend<R, f32, i32, T> {
    fused_in_f32! {
        fn add_and_divide(values: Tensor<Self, 1>, noise: &dyn NoiseSource, divisor: f64) -> Tensor<Self, 1>
            = noise::add_and_divide, if values;
    }

    fn product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product(a, b)
    }

    fn product_bf16<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product_bf16(a, b)
    }
}
