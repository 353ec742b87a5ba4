//! Kernels of graphics processors that differ from the library's: products that round no more than their tensors' format.

#[cfg(all(test, feature = "wgpu"))]
mod device_tests;
mod product;

use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime};

use super::Kernels;
use crate::tensor::Tensor;

impl<R: CubeRuntime, T: BoolElement> Kernels for CubeBackend<R, f32, i32, T> {
    fn product<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product(a, b)
    }

    fn product_bf16<const D: usize>(a: Tensor<Self, D>, b: Tensor<Self, D>) -> Tensor<Self, D> {
        product::product_bf16(a, b)
    }
}
