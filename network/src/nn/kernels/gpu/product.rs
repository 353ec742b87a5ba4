//! Matrix products that round no more than their tensors' format.
//!
//! The library's default product of 32-bit tensors uses the tensor cores of NVIDIA's processors, which round each operand to 10
//! bits (TF32). A gradient's computed norm could then be too low by a thousandth. That is a hundred times the margin by which
//! norms are rounded up.

use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime};
use cubek::matmul::definition::{MatmulElems, MatmulGlobalElems};
use cubek::matmul::launch::{Strategy, launch_ref};
use cubek::std::InputBinding;

use crate::nn::kernels::portable;
use crate::tensor::{DType, Tensor, TensorPrimitive};

/// [`crate::nn::Kernels::product`] without matrix units; NaN if no kernel can be launched.
pub(super) fn product<R: CubeRuntime, T: BoolElement, const D: usize>(
    a: Tensor<CubeBackend<R, f32, i32, T>, D>,
    b: Tensor<CubeBackend<R, f32, i32, T>, D>,
) -> Tensor<CubeBackend<R, f32, i32, T>, D> {
    let (device, dtype) = (a.device(), a.dtype());
    let mut shape = a.dims();
    shape[D - 1] = b.dims()[D - 1];
    let [a, b]: [CubeTensor<R>; 2] = [a, b].map(|operand| operand.into_primitive().tensor());
    let out = Tensor::<CubeBackend<R, f32, i32, T>, D>::empty(shape, (&device, dtype));
    let out: CubeTensor<R> = out.into_primitive().tensor();
    for strategy in [Strategy::SimpleUnit(Default::default()), Strategy::Naive] {
        let operand = |tensor: &CubeTensor<R>| InputBinding::new(tensor.clone().binding(), dtype.into());
        let (out_binding, storage) = (out.clone().binding(), dtype.into());
        let mut types =
            MatmulElems::from_globals(&MatmulGlobalElems { lhs: storage, rhs: storage, out: storage });
        if launch_ref(&strategy, &out.client, operand(&a), operand(&b), out_binding, &mut types).is_ok() {
            return Tensor::from_primitive(TensorPrimitive::Float(out));
        }
    }
    Tensor::full(shape, f32::NAN, (&device, dtype))
}

/// [`crate::nn::Kernels::product_bf16`] on matrix units, where the device has them for this format.
pub(super) fn product_bf16<R: CubeRuntime, T: BoolElement, const D: usize>(
    a: Tensor<CubeBackend<R, f32, i32, T>, D>,
    b: Tensor<CubeBackend<R, f32, i32, T>, D>,
) -> Tensor<CubeBackend<R, f32, i32, T>, D> {
    let operands: [CubeTensor<R>; 2] =
        [&a, &b].map(|operand| operand.clone().cast(DType::BF16).into_primitive().tensor());
    let [left, right] = operands;
    match matmul(left, right, None, MatmulStrategy::default(), DType::F32) {
        Ok(product) => Tensor::from_primitive(TensorPrimitive::Float(product)),
        Err(_) => portable::product_bf16(a, b),
    }
}
